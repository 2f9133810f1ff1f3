"""``init`` says what it understood before it writes, asks where it is not sure, and keeps how it was told to read."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

from agcd.app.create import read_settings, read_source_options
from agcd.app.project import Project
from agcd.cli import app
from agcd.cli.project import ask_which
from agcd.data.reading import Choice, SourceOptions, take_first
from agcd.errors import ConfigError, DataError
from support.inputs import linked, put, tree, zipped
from support.projects import SETTINGS

TOY = ["--set", "backbone.name=toy", "--set", "backbone.image_size=32"]
NESTED = "animals/cat/1 animals/cat/2 animals/dog/1 animals/dog/2 plants/rose/1 plants/rose/2"


@pytest.fixture
def nested(tmp_path: Path) -> Path:
    """Classes in groups, which have two readings."""
    tree(NESTED)(tmp_path / "photos")
    return tmp_path / "photos"


def said(folder: Path, images: Path, **more: Any) -> list[str]:
    lines: list[str] = []
    Project.create(folder, images, settings=SETTINGS, say=lines.append, **more).close()
    return lines


def old_classes(folder: Path) -> tuple[str, ...]:
    with Project.open(folder) as project:
        return project.label_state()[0].classes


def test_what_was_understood_is_said_first(tmp_path: Path) -> None:
    tree("train/cat/1 train/cat/2 train/dog/1 train/unlabelled/1 valid/dog/2 test/cat/3")(tmp_path / "photos")
    lines = said(tmp_path / "project", tmp_path / "photos")
    assert lines[:8] == [
        "understood: 2 known classes with 4 labels, 1 unlabelled, 1 for testing",
        "  read test/, train/ and valid/ as splits; class folders lie 2 deep",
        "  test/  1 picture, for testing",
        "    cat/  1 picture: a class",
        "  train/  4 pictures, for training",
        "    cat/  2 pictures: a class",
        "    dog/  1 picture: a class",
        "    unlabelled/  1 picture: no label",
    ]


def test_an_unsure_reading_is_refused_where_nobody_can_be_asked_and_nothing_is_written(
    nested: Path, tmp_path: Path
) -> None:
    with pytest.raises(DataError) as caught:
        said(tmp_path / "project", nested)
    pieces = ("3 classes, cat, dog and rose (--class-level 2)", "2 classes, animals and plants (--class-level 1)")
    assert all(piece in str(caught.value) for piece in (*pieces, "add --class-level N, or --yes for the first"))
    assert not (tmp_path / "project").exists()


def test_yes_takes_the_first_reading_and_the_project_remembers_it(nested: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["init", str(tmp_path / "project"), "--images", str(nested), "--yes", *TOY])
    assert (done.exit_code, done.stdout.splitlines()[0]) == (
        0,
        "understood: 3 known classes with 6 labels, 0 unlabelled",
    )
    assert old_classes(tmp_path / "project") == ("cat", "dog", "rose")
    assert read_source_options(tmp_path / "project").class_level == 2


def test_a_terminal_is_asked_and_its_answer_counts(
    nested: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Sequence[Choice]] = []

    def second(source: Path, doubts: Sequence[str], choices: Sequence[Choice]) -> Choice:
        asked.append(choices)
        return choices[1]

    monkeypatch.setattr("agcd.cli.project.ask_which", second)
    monkeypatch.setattr("agcd.cli.project.has_terminal", lambda: True)
    done = CliRunner().invoke(app, ["init", str(tmp_path / "project"), "--images", str(nested), *TOY])
    assert done.exit_code == 0, done.output
    assert [choice.class_level for choice in asked[0]] == [2, 1]
    assert old_classes(tmp_path / "project") == ("animals", "plants")


@pytest.mark.parametrize(("typed", "number"), [("\n", 0), ("1\n", 0), ("2\n", 1), ("7\nx\n2\n", 1)])
def test_enter_takes_the_first_choice_and_a_number_the_one_it_names(
    typed: str, number: int, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    answers = iter(typed.splitlines())
    monkeypatch.setattr("typer.prompt", lambda text, default: next(answers) or default)
    choices = [Choice("two classes", 2), Choice("no labels", 0)]
    assert ask_which(Path("photos"), ["It may be either."], choices) is choices[number]
    out = capsys.readouterr().out
    assert "not sure: It may be either." in out
    assert "1  read it as two classes" in out
    assert "2  read it as no labels" in out


def test_zero_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typer.prompt", lambda text, default: "0")
    with pytest.raises(DataError, match="Nothing was made of photos"):
        ask_which(Path("photos"), ["It may be either."], [Choice("two classes", 2)])


def test_options_are_written_into_the_settings_and_read_back(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    linked(outside=True, folder=True)(tmp_path / "photos")
    options = SourceOptions(1, follow_links=True, allow_outside=True)
    said(tmp_path / "project", tmp_path / "photos", options=options)
    values = tomllib.loads((tmp_path / "project" / "agcd.toml").read_text())
    assert values["source"] == {"class_level": 1, "follow_links": True, "allow_outside": True}
    back = read_source_options(tmp_path / "project")
    assert (back.class_level, back.follow_links, back.allow_outside) == (1, True, True)
    assert back.unpack_to == tmp_path / "project" / "unpacked"
    assert old_classes(tmp_path / "project") == ("bird", "cat", "dog")
    with Project.open(tmp_path / "project") as project:
        assert all(path.is_file() for path in project.dataset().paths or ())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("source = 3", "a section"),
        ("[source]\nclass_levle = 1", "Did you mean 'class_level'"),
        ("[source]\nclass_level = true", "source.class_level is True; a number from 0"),
        ("[source]\nclass_level = -1", "source.class_level is -1; a number from 0"),
        ('[source]\nfollow_links = "yes"', "source.follow_links is 'yes'; true or false"),
    ],
)
def test_wrong_settings_of_the_source_are_one_sentence(text: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "agcd.toml").write_text(f'images = "x"\n{text}\n')
    with pytest.raises(ConfigError, match=sentence):
        read_source_options(tmp_path)
    assert read_settings(tmp_path / "agcd.toml")[1] == tmp_path / "x"


def test_a_project_made_from_an_archive_has_its_pictures_inside_and_may_be_moved(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    members = {f"{name}/{i}.png": content for name in ("cat", "dog") for i, content in enumerate(pictures(tmp_path))}
    archive = zipped({name: data + bytes(i) for i, (name, data) in enumerate(members.items())})(tmp_path / "photos")
    said(tmp_path / "project", archive)
    assert read_settings(tmp_path / "project" / "agcd.toml")[1] == tmp_path / "project" / "unpacked" / "photos"
    (tmp_path / "project").rename(tmp_path / "moved")
    with Project.open(tmp_path / "moved") as project:
        assert project.paths == ("cat/0.png", "cat/1.png", "dog/0.png", "dog/1.png")
        assert all(path.is_file() for path in project.dataset().paths or ())


def pictures(folder: Path) -> list[bytes]:
    put(folder, "a.png", "b.png")
    return [(folder / name).read_bytes() for name in ("a.png", "b.png")]


def test_an_archive_whose_project_is_not_made_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    archive = zipped({"cat/1.png": pictures(tmp_path)[0]})(tmp_path / "photos")
    with pytest.raises(ConfigError, match="too few"):
        Project.create(tmp_path / "project", archive, None, 9, SETTINGS, choose=take_first)
    assert not (tmp_path / "project").exists()


def test_labels_know_the_columns_of_lists_and_paths_of_windows_and_no_folder_need_be_understood(
    nested: Path, tmp_path: Path
) -> None:
    (nested / "labels.csv").write_text("File Name;Class Name\nanimals\\cat\\1.png;red\nplants/rose/2.png;blue\n")
    Project.create(tmp_path / "project", nested, nested / "labels.csv", settings=SETTINGS).close()
    assert old_classes(tmp_path / "project") == ("blue", "red")
    assert read_source_options(tmp_path / "project").class_level == 0, "folders name nothing"


def test_labels_may_name_files_alone_where_that_is_clear(tmp_path: Path) -> None:
    tree("train/1 train/2 test/1")(tmp_path / "photos")
    (tmp_path / "labels.csv").write_text("filename,label\n2.png,cat\n")
    Project.create(tmp_path / "project", tmp_path / "photos", tmp_path / "labels.csv", settings=SETTINGS).close()
    assert old_classes(tmp_path / "project") == ("cat",)
    (tmp_path / "labels.csv").write_text("filename,label\n1.png,cat\n")
    with pytest.raises(DataError, match=r"line 2: '1\.png' is not one of the usable items"):
        Project.create(tmp_path / "other", tmp_path / "photos", tmp_path / "labels.csv", settings=SETTINGS)


def test_near_duplicates_are_listed_by_name(tmp_path: Path) -> None:
    tree("cat/1 dog/1")(tmp_path / "photos")
    Image.open(tmp_path / "photos/cat/1.png").save(tmp_path / "photos/dog/copy.jpg", quality=95)
    lines = said(tmp_path / "project", tmp_path / "photos")
    assert lines[lines.index("2 images nearly the same as another one") + 1] == "  cat/1.png and dog/copy.jpg"
