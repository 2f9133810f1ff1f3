"""Pictures sorted into class folders: safe names, originals as they were, and a sort that can be broken off."""

from __future__ import annotations

import csv
import errno
import ntpath
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agcd.app.answers import Answer, find_class, rename_class, write_answers
from agcd.app.export.folders import JUNK, MANIFEST, UNNAMED, WAYS, Sorted, Way, checked_way, sort_into_folders
from agcd.app.export.row_tables import prediction_table
from agcd.app.export.safe_names import folded, folder_names, free_name, safe_file_name, safe_name
from agcd.app.labels import SAID
from agcd.app.model import make_start_view, row_features, train
from agcd.app.project import Project
from agcd.data.tables import read_table
from agcd.errors import ConfigError, DataError
from support.projects import N_IMAGES, answer_all, make_project, truth

# ----------------------------------------------------------------------------------------------------- safe names

HARD = st.sampled_from(["con", "NUL.txt", "..", ".", "", " ", "a/b", "a\\b", "lpt1", "\u202e", "x" * 400, "ß", "SS"])
NAMES = st.text(max_size=300) | HARD


@given(NAMES)
def test_a_safe_name_is_one_that_every_file_system_takes(text: str) -> None:
    name = safe_name(text)
    assert name
    assert name == name.strip()
    assert not name.startswith(".")
    assert not name.endswith(".")
    assert not set(name) & set('<>:"/\\|?*\0\n\r\t')
    assert len(name.encode()) <= 160
    assert name.partition(".")[0].casefold() not in ("con", "prn", "aux", "nul", "com1", "lpt9")


@given(st.lists(NAMES, max_size=30))
def test_no_two_classes_share_a_folder_even_without_upper_and_lower_case(names: list[str]) -> None:
    found = folder_names(names, (UNNAMED, JUNK))
    assert len({folded(name) for name in (*found, UNNAMED, JUNK)}) == len(names) + 2


@given(st.lists(NAMES.filter(lambda name: "/" not in name and "\0" not in name), max_size=30))
def test_no_two_files_share_a_name_and_all_fit(names: list[str]) -> None:
    taken: set[str] = set()
    for name in names:
        found = free_name(*safe_file_name(name), taken)
        assert len(found.encode()) <= 255
        assert not found.startswith(".")
        taken.add(folded(found))
    assert len(taken) == len(names)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("A/B", "A_B"),
        ("St. Bernard", "St. Bernard"),
        (".git", "_git"),
        ("con", "_con"),
        ("...", "_"),
        ("ends. ", "ends"),
    ],
)
def test_names_stay_readable(text: str, name: str) -> None:
    assert safe_name(text) == name


def test_the_ending_of_a_file_is_kept() -> None:
    assert free_name(*safe_file_name("a/b/IMG.1.JPG"), {"img.1.jpg"}) == "IMG.1 (2).JPG"
    assert free_name(*safe_file_name("x" * 300 + ".jpeg"), ()).endswith("x.jpeg")


# ---------------------------------------------------------------------------------------------------- the sorting


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rounds, one picture thrown out, and one in a class with a difficult name."""
    folder = tmp_path_factory.mktemp("trained")
    with make_project(folder) as project:
        train(project)
        answer_all(project)
        pool = project.label_state()[0].pool_rows.tolist()
        write_answers(project, [Answer(pool[0], "junk"), Answer(pool[1], "='A/B")])
        train(project)
    return folder


@pytest.fixture
def project(trained: Path, tmp_path: Path) -> Iterator[Project]:
    shutil.copytree(trained / "project", tmp_path / "project")
    shutil.copytree(trained / "images", tmp_path / "images")
    settings = tmp_path / "project" / "agcd.toml"
    settings.write_text(settings.read_text().replace(str(trained), str(tmp_path)))
    with Project.open(tmp_path / "project") as opened:
        assert opened.images == tmp_path / "images"
        yield opened


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file with what is in it and when it was changed."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def lines(out: Path) -> list[dict[str, str]]:
    with (out / MANIFEST).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def files(out: Path) -> set[str]:
    """What lies in the folder, but for the manifest and the lock."""
    found = (path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_symlink() or path.is_file())
    return {name for name in found if name != MANIFEST and not name.startswith(".sorted.lock")}


def expected_folders(project: Project) -> dict[str, str]:
    """By path of the picture, spelled out from the snapshot."""
    snapshot = project.trained_snapshot()
    n_classes, found = len(snapshot.labels.registry.infos), {}
    for row, path in enumerate(project.paths):
        (group,) = snapshot.says(np.array([row])).group.tolist()
        if group < 0:
            found[path] = JUNK
        elif group < n_classes:
            found[path] = snapshot.names[group].replace("/", "_")
        else:
            found[path] = f"{UNNAMED}/{snapshot.names[group]}"
    return found


def check(project: Project, out: Path) -> None:
    """Every picture lies in its folder once, with its content, and nothing else does."""
    told, expected = lines(out), expected_folders(project)
    assert {line["path"]: line["file"].rpartition("/")[0].removeprefix("'") for line in told} == expected
    assert files(out) == {line["file"].removeprefix("'") for line in told}
    assert len(told) == project.n_rows
    for line in told:
        copy = out / line["file"].removeprefix("'")
        assert copy.read_bytes() == (project.images / line["path"]).read_bytes()


@pytest.mark.parametrize("how", WAYS)
def test_every_picture_lies_in_its_class_and_the_originals_are_untouched(
    project: Project, tmp_path: Path, how: Way
) -> None:
    before, out = contents(project.images), tmp_path / "out"
    done = sort_into_folders(project, out, how)
    check(project, out)
    assert contents(project.images) == before
    assert (out / "='A_B").is_dir()
    assert done.n_named + done.n_unnamed + done.n_junk == N_IMAGES
    assert (done.n_junk, done.n_missing, done.n_copied) == (1, 0, 0)
    for line in lines(out):
        placed, source = out / line["file"].removeprefix("'"), project.images / line["path"]
        assert placed.is_symlink() == (how == "symlink")
        assert (how != "copy") == os.path.samefile(placed, source)
        assert line["how"] == how
        if how == "symlink":
            assert os.readlink(placed) == str(source)


def test_the_manifest_says_who_named_a_picture_and_how_certain_it_is(project: Project, tmp_path: Path) -> None:
    sort_into_folders(project, tmp_path / "out")
    for line in lines(tmp_path / "out"):
        assert line["by"] in ("human", "answers")
        assert 0 <= float(line["certainty"]) <= 1
        assert (line["by"] != "human") or float(line["certainty"]) == 1


def test_only_what_people_checked_is_sorted_if_they_say_so(project: Project, tmp_path: Path) -> None:
    sort_into_folders(project, tmp_path / "out")
    done = sort_into_folders(project, tmp_path / "out", only_checked=True)
    assert {line["by"] for line in lines(tmp_path / "out")} == {"human"}
    assert (done.n_named, done.n_unnamed, done.n_junk) == (project.labels().n(*SAID), 0, 1)
    assert len(files(tmp_path / "out")) == done.n_named + 1
    assert not (tmp_path / "out" / UNNAMED).exists()


def test_sorting_again_moves_only_what_belongs_elsewhere(project: Project, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sort_into_folders(project, out)
    before = {name: (out / name).stat().st_ino for name in files(out)}
    sort_into_folders(project, out)
    assert {name: (out / name).stat().st_ino for name in files(out)} == before
    rename_class(project, find_class(project, "green-square").id, "Green Square", "ann")
    rename_class(project, find_class(project, "blue-triangle").id, "Blue-Triangle", "ann")
    sort_into_folders(project, out)
    check(project, out)
    assert not (out / "green-square").exists()
    assert {(out / name).stat().st_ino for name in files(out)} == set(before.values()), "moved, not copied again"


@pytest.mark.parametrize("then", WAYS)
@pytest.mark.parametrize("first", WAYS)
def test_another_way_replaces_what_the_first_made(project: Project, tmp_path: Path, first: Way, then: Way) -> None:
    before = contents(project.images)
    sort_into_folders(project, tmp_path / "out", first)
    sort_into_folders(project, tmp_path / "out", then)
    check(project, tmp_path / "out")
    assert {line["how"] for line in lines(tmp_path / "out")} == {then}
    assert contents(project.images) == before


def test_files_with_one_name_are_numbered_and_keep_their_numbers(project: Project, tmp_path: Path) -> None:
    out = tmp_path / "out"
    name = Path(project.paths[0]).name
    rows = [row for row, path in enumerate(project.paths) if Path(path).name == name]
    write_answers(project, [Answer(row, "twins") for row in rows])
    sort_into_folders(project, out)
    said = {project.paths[row] for row in rows}  # others that look like them are called so, too
    places = {line["path"]: line["file"] for line in lines(out) if line["path"] in said}
    stem, ending = Path(name).stem, Path(name).suffix
    assert len(rows) == 3
    assert set(places.values()) == {f"twins/{stem}{number}{ending}" for number in ("", " (2)", " (3)")}
    write_answers(project, [Answer(rows[0], "alone")])
    sort_into_folders(project, out)
    kept = {line["path"]: line["file"] for line in lines(out)}
    assert all(kept[project.paths[row]] == places[project.paths[row]] for row in rows[1:])
    check(project, out)


def test_foreign_files_are_never_touched_nor_written_over(project: Project, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sort_into_folders(project, out)
    (out / "green-square" / "notes.txt").write_text("mine")
    (out / "my own").mkdir()
    rename_class(project, find_class(project, "green-square").id, "other", "ann")
    (out / "other").mkdir()
    for name in os.listdir(out / "green-square"):
        (out / "other" / name.upper()).write_text("mine too")
    n_foreign = len(files(out)) - N_IMAGES
    sort_into_folders(project, out)
    assert (out / "green-square" / "notes.txt").read_text() == "mine"
    assert (out / "my own").is_dir()
    assert sum(path.read_bytes() == b"mine too" for path in (out / "other").iterdir()) == n_foreign - 1
    assert len(files(out)) == N_IMAGES + n_foreign


def test_before_any_training_what_has_a_label_is_sorted(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        done = sort_into_folders(project, tmp_path / "out", only_checked=True)
        assert (done.n_named, done.n_classes) == (9, 3)
        assert done.sentence() == f"9 pictures in 3 classes: {tmp_path / 'out'}."
        whole = sort_into_folders(project, tmp_path / "out")
        assert whole.n_named + whole.n_unnamed == N_IMAGES


def test_before_any_training_pictures_follow_the_live_names(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        make_start_view(project, row_features(project, n_views=1), with_map=False)
        write_answers(project, [Answer(row, truth(project.paths[row])) for row in range(10, 40, 6)])
        done = sort_into_folders(project, tmp_path / "out")
        table = prediction_table(project, project.snapshot())
        assert project.n_finished == 0
    assert (done.n_named + done.n_unnamed, done.n_missing) == (N_IMAGES, 0)
    assert {"human", "answers"} == set(table["by"])
    lines = {line["path"]: line for _, line in read_table(tmp_path / "out" / MANIFEST, ("class",))}
    for path, name, by in zip(table["path"], table["class"], table["by"], strict=True):
        assert (lines[path]["class"], lines[path]["by"]) == (name, by)
        assert Path(lines[path]["file"]).parts[-2] == name


# -------------------------------------------------------------------------------------------------------- Windows


def test_where_nobody_may_make_symbolic_links_pictures_are_copied(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*words: Any) -> None:
        raise OSError(22, "A required privilege is not held by the client")

    monkeypatch.setattr(os, "symlink", refused)
    done = sort_into_folders(project, tmp_path / "out", "symlink")
    assert done.n_copied == N_IMAGES
    assert done.sentence().endswith(f"{N_IMAGES} pictures were copied, because no link can be made there.")
    monkeypatch.undo()
    assert sort_into_folders(project, tmp_path / "out", "symlink").n_copied == 0


@pytest.mark.parametrize("name", ["CONIN$", "com¹.tar", "Nul ", "aux. .", "LPT9", "a:b", "trailing. ", "a\\b", "C:"])
def test_what_windows_keeps_for_itself_is_no_name(name: str) -> None:
    safe = safe_name(name)
    assert not PureWindowsPath(safe).is_reserved()
    assert PureWindowsPath(safe).parts == (safe,)
    assert safe == safe.rstrip(". ")
    assert not ntpath.splitdrive(safe)[0]


# ------------------------------------------------------------------------------------------------------- refusals


def test_a_folder_with_other_files_is_refused(project: Project, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(DataError, match="holds files that were not sorted into it"):
        sort_into_folders(project, tmp_path / "out")
    with pytest.raises(DataError, match="is a file"):
        sort_into_folders(project, tmp_path / "out" / "mine.txt")
    assert files(tmp_path / "out") == {"mine.txt"}


@pytest.mark.parametrize("place", ["images", "images/sorted", ".", "link/sorted"])
def test_originals_and_sorted_pictures_never_lie_in_one_another(project: Project, tmp_path: Path, place: str) -> None:
    (tmp_path / "link").symlink_to(project.images)
    before = contents(project.images)
    with pytest.raises(DataError, match="lie in one another"):
        sort_into_folders(project, tmp_path / place)
    assert contents(project.images) == before


def test_a_link_in_the_place_of_a_class_folder_is_refused(project: Project, tmp_path: Path) -> None:
    out, before = tmp_path / "out", contents(project.images)
    sort_into_folders(project, out)
    shutil.rmtree(out / "green-square")
    (out / "green-square").symlink_to(project.images / "green-square")
    for how in WAYS:
        with pytest.raises(DataError, match="is a link to another place"):
            sort_into_folders(project, out, how)
    assert contents(project.images) == before


@pytest.mark.parametrize(
    "file", ["../images/x.png", "/etc/passwd", "alone.png", "a/../../x.png", "a/..\\..\\x.png", "C:/x.png", "a/C:x.png"]
)
def test_a_manifest_that_leads_elsewhere_is_refused(project: Project, tmp_path: Path, file: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / MANIFEST).write_text(f"file,path,how\n{file},x.png,copy\n")
    with pytest.raises(DataError, match="is no file in a class folder"):
        sort_into_folders(project, tmp_path / "out")


def test_two_sorts_at_once_are_refused(project: Project, tmp_path: Path) -> None:
    def again(done: int, total: int) -> None:
        with pytest.raises(DataError, match="already"):
            sort_into_folders(project, tmp_path / "out")

    sort_into_folders(project, tmp_path / "out", progress=again)
    check(project, tmp_path / "out")


def test_an_unknown_way_and_lost_images_are_one_sentence(project: Project, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Did you mean 'symlink'"):
        checked_way("simlink")
    project.images = tmp_path / "gone"
    with pytest.raises(DataError, match=r"set 'images' in agcd\.toml"):
        sort_into_folders(project, tmp_path / "out")


# ------------------------------------------------------------------------------------------------ trouble on the way


def test_without_links_the_pictures_are_copied_and_that_is_said(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    done = sort_into_folders(project, tmp_path / "out", "link")
    assert done.n_copied == N_IMAGES
    assert "50 pictures were copied, because no link can be made there." in done.sentence()
    check(project, tmp_path / "out")
    before = {name: (tmp_path / "out" / name).stat().st_ino for name in files(tmp_path / "out")}
    sort_into_folders(project, tmp_path / "out", "link")
    assert {name: (tmp_path / "out" / name).stat().st_ino for name in files(tmp_path / "out")} == before


def test_a_lost_original_is_counted_and_its_copy_is_kept(project: Project, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sort_into_folders(project, out)
    lost, never = project.paths[-1], project.paths[-2]
    for path in (lost, never):
        (project.images / path).unlink()
    (gone,) = [line["file"] for line in lines(out) if line["path"] == never]
    (out / gone).unlink()
    write_answers(project, [Answer(len(project.paths) - 1, "kept")])
    done = sort_into_folders(project, out, "symlink")
    assert done.n_missing == 1
    assert "1 picture could not be found or read." in done.sentence()
    assert (out / "kept" / Path(lost).name).is_file()
    assert not (out / "kept" / Path(lost).name).is_symlink()


@pytest.mark.parametrize("how", WAYS)
def test_a_sort_broken_off_anywhere_is_finished_by_the_next(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: Way
) -> None:
    """A class gets another name and the way changes between the two sorts; each is stopped at several places."""
    out, before = tmp_path / "out", contents(project.images)
    for stop in (0, 1, 7, 30):
        broken_off(project, out, how, stop, monkeypatch)
    sort_into_folders(project, out, how)
    check(project, out)
    rename_class(project, find_class(project, "green-square").id, "green", "ann")
    other = WAYS[(WAYS.index(how) + 1) % len(WAYS)]
    for stop in (0, 1, 7, 30):
        broken_off(project, out, other, stop, monkeypatch)
    sort_into_folders(project, out, how)
    check(project, out)
    assert {line["how"] for line in lines(out)} == {how}
    assert contents(project.images) == before


def broken_off(project: Project, out: Path, how: Way, stop: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop at the ``stop``-th file that is put into its place, right after it was."""
    n_left = [stop]
    replace = os.replace

    def stopping(source: Any, target: Any) -> None:
        replace(source, target)
        n_left[0] -= 1
        if n_left[0] < 0:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched, suppress(KeyboardInterrupt):  # or there was less to do
        patched.setattr(os, "replace", stopping)
        sort_into_folders(project, out, how)


def test_a_killed_sort_leaves_no_half_file(project: Project, tmp_path: Path) -> None:
    code = (
        "import os, signal, shutil, sys\nfrom pathlib import Path\n"
        "from agcd.app.project import Project\nfrom agcd.app.export import folders\n"
        "copy, n = shutil.copy2, [12]\n"
        "def half(source, part):\n"
        "    n[0] -= 1\n"
        "    if n[0]: return copy(source, part)\n"
        "    Path(part).write_bytes(Path(source).read_bytes()[:10]); os.kill(os.getpid(), signal.SIGKILL)\n"
        "folders.shutil.copy2 = half\n"
        "with Project.open(Path(sys.argv[1])) as project: folders.sort_into_folders(project, Path(sys.argv[2]))\n"
    )
    out = tmp_path / "out"
    command = [sys.executable, "-c", code, str(project.folder), str(out)]
    assert subprocess.run(command, check=False).returncode == -9
    originals = {content for content, _ in contents(project.images).values()}
    whole = [name for name in files(out) if (out / name).read_bytes() in originals]
    assert len(whole) == 11
    assert files(out) - set(whole) == {".sorted.part"}
    sort_into_folders(project, out)
    check(project, out)


# ------------------------------------------------------------------------------------------------ the command line


def test_the_command_says_what_it_did_and_refuses_in_one_sentence(project: Project, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "agcd.cli", "sort", str(project.folder), str(tmp_path / "out")]
    done = subprocess.run([*command, "--how", "link"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith(f"1 junk: {tmp_path / 'out'}.")
    check(project, tmp_path / "out")
    refused = subprocess.run([*command, "--how", "move"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert refused.stderr == "error: Pictures cannot be sorted by 'move'. Allowed: copy, link, symlink.\n"


def test_singular_and_plural() -> None:
    assert Sorted(Path("x"), 1, 1).sentence() == "1 picture in 1 class: x."
    many = Sorted(Path("x"), 2, 1200, 3, 4, 2, 1).sentence()
    assert many == (
        "1,200 pictures in 2 classes, 3 without a name, 4 junk: x. 1 picture was copied, because no link can be made "
        "there. 2 pictures could not be found or read."
    )
