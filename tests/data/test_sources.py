"""A folder becomes the same rows on every machine, or one sentence; what cannot be used is listed with a reason."""

from __future__ import annotations

import os
import shutil
import unicodedata
from pathlib import Path

import pytest
from PIL import Image

from agcd.data.health import contradictory_rows, describe_health, duplicate_rows, leaked_rows
from agcd.data.sources import from_folder
from agcd.errors import DataError
from agcd.io import digest_bytes
from agcd.types import Dataset
from support.datasets import toy_images, toy_rows


def put(path: Path, colour: str | int = "red") -> Path:
    """A one-colour PNG at ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (4, 3), colour).save(path, "PNG")
    return path


def names(dataset: Dataset, root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in dataset.paths or ()]


def reasons(dataset: Dataset) -> dict[str, str]:
    return {q.path: q.reason for q in dataset.quarantine}


# --- folders


def test_class_folders_become_rows_sorted_by_path_with_content_keys(tmp_path: Path) -> None:
    root = toy_images(tmp_path / "data")
    dataset = from_folder(root)
    assert dataset.name == "data"
    assert dataset.classes == ("blue-triangle", "green-square", "red-circle")
    assert names(dataset, root) == sorted(p.relative_to(root).as_posix() for p in root.rglob("*.png"))
    assert dataset.y_class.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert not dataset.is_test.any()
    paths = dataset.paths or ()
    assert dataset.keys == tuple(digest_bytes(path.read_bytes()) for path in paths)


def test_rows_do_not_depend_on_the_order_in_which_the_disk_lists_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = toy_images(tmp_path / "data")
    before = from_folder(root)
    scandir = os.scandir

    class Backwards:
        def __init__(self, path: Path) -> None:
            with scandir(path) as entries:
                self.entries = sorted(entries, key=lambda e: e.name, reverse=True)

        def __enter__(self) -> list[os.DirEntry[str]]:
            return self.entries

        def __exit__(self, *args: object) -> None: ...

    monkeypatch.setattr(os, "scandir", Backwards)
    after = from_folder(root)
    assert (after.keys, after.paths, after.classes) == (before.keys, before.paths, before.classes)


def test_train_and_test_folders_share_their_classes_and_val_joins_train(tmp_path: Path) -> None:
    for path in ("train/a/1.png", "val/b/1.png", "Test/a/1.png", "Test/b/1.png", "train/unlabelled/x/1.png"):
        put(tmp_path / path)
    for path in ("unlabeled/deep/er/1.png", "2.png", "train/3.png"):
        put(tmp_path / path)
    dataset = from_folder(tmp_path)
    label = dict(zip(names(dataset, tmp_path), dataset.y_class.tolist(), strict=True))
    assert dataset.classes == ("a", "b")
    assert [name for name, test in zip(label, dataset.is_test, strict=True) if test] == [
        "Test/a/1.png",
        "Test/b/1.png",
    ]
    assert {name for name, c in label.items() if c == -1} == {
        "2.png",
        "train/3.png",
        "train/unlabelled/x/1.png",
        "unlabeled/deep/er/1.png",
    }


def test_a_folder_called_train_beside_other_classes_is_a_class(tmp_path: Path) -> None:
    put(tmp_path / "train" / "1.png")
    put(tmp_path / "bus" / "1.png")
    assert from_folder(tmp_path).classes == ("bus", "train")


def test_train_and_test_beside_a_class_folder_are_refused(tmp_path: Path) -> None:
    for path in ("train/a/1.png", "test/a/1.png", "cats/1.png"):
        put(tmp_path / path)
    with pytest.raises(DataError, match="train and test folders beside 'cats'"):
        from_folder(tmp_path)


@pytest.mark.parametrize("folder", ["unlabelled", "unlabeled", "_unlabelled", "Unlabelled"])
def test_unlabelled_folders_and_images_in_the_root_have_no_label(tmp_path: Path, folder: str) -> None:
    put(tmp_path / "a" / "1.png")
    put(tmp_path / folder / "deep" / "2.png")
    put(tmp_path / "3.png")
    dataset = from_folder(tmp_path)
    assert dataset.classes == ("a",)
    assert sorted(dataset.y_class.tolist()) == [-1, -1, 0]


def test_a_pool_without_any_label_is_fine(tmp_path: Path) -> None:
    put(tmp_path / "1.png")
    dataset = from_folder(tmp_path)
    assert (dataset.classes, dataset.n_rows) == ((), 1)


def test_nested_class_folders_give_the_outer_class(tmp_path: Path) -> None:
    put(tmp_path / "a" / "2020" / "may" / "1.png")
    put(tmp_path / "b" / "1.png")
    assert from_folder(tmp_path).classes == ("a", "b")


def test_clutter_is_passed_over_in_silence(tmp_path: Path) -> None:
    put(tmp_path / "a" / "1.png")
    for path in ("a/.hidden.png", "a/.ipynb_checkpoints/1.png", "__MACOSX/a/1.png", ".git/1.png", "a/._1.png"):
        put(tmp_path / path)
    for path in ("Thumbs.db", ".DS_Store", "a/notes.txt", "labels.csv"):
        (tmp_path / path).write_text("x")
    (tmp_path / "empty").mkdir()
    dataset = from_folder(tmp_path)
    assert (names(dataset, tmp_path), dataset.classes, dataset.quarantine) == (["a/1.png"], ("a",), ())


@pytest.mark.parametrize(
    "name", ["emoji 🍎", "quote\"'", "comma,semi;", "tab\tline\nend", "\u202egnp", "n" * 255, "a&<b>", "=cmd|x"]
)
def test_odd_class_names_are_kept_as_they_are(tmp_path: Path, name: str) -> None:
    put(tmp_path / name / "1.png")
    assert from_folder(tmp_path).classes == (name,)


def test_class_names_are_composed_unicode(tmp_path: Path) -> None:
    put(tmp_path / unicodedata.normalize("NFD", "café") / "1.png")
    assert from_folder(tmp_path).classes == (unicodedata.normalize("NFC", "café"),)


@pytest.mark.parametrize(
    ("one", "other"),
    [("Cat", "cat"), ("caf\u00e9", "cafe\u0301"), ("train/Cat", "test/cat"), ("Straße", "STRASSE")],
)
def test_two_folders_with_the_same_name_up_to_case_or_form_are_refused(tmp_path: Path, one: str, other: str) -> None:
    put(tmp_path / one / "1.png")
    put(tmp_path / other / "1.png")
    with pytest.raises(DataError) as caught:
        from_folder(tmp_path)
    assert ascii(one) in str(caught.value)
    assert ascii(other) in str(caught.value)


def test_subfolders_of_unlabelled_are_not_class_names(tmp_path: Path) -> None:
    for path in ("train/cat/1.png", "test/cat/1.png", "unlabelled/Cat/1.png"):
        put(tmp_path / path)
    assert from_folder(tmp_path).classes == ("cat",)


def test_unusable_files_are_quarantined_with_a_reason_and_the_rest_is_kept(tmp_path: Path) -> None:
    put(tmp_path / "a" / "good.png")
    folder = tmp_path / "a"
    (folder / "empty.jpg").write_bytes(b"")
    (folder / "text.jpg").write_text("hello")
    (folder / "phone.HEIC").write_bytes(b"\0\0\0\x18ftypheic")
    (folder / "drawing.svg").write_text("<svg/>")
    os.mkfifo(folder / "pipe.jpg")
    dataset = from_folder(tmp_path)
    assert names(dataset, tmp_path) == ["a/good.png"]
    found = reasons(dataset)
    assert found["a/empty.jpg"] == "empty file"
    assert "supported format" in found["a/text.jpg"]
    assert "supported format" in found["a/phone.HEIC"] or "agcd[heif]" in found["a/phone.HEIC"]
    assert found["a/drawing.svg"] == "format .svg is not supported"
    assert found["a/pipe.jpg"] == "not a regular file"
    assert len(found) == 5


def test_a_class_whose_images_are_all_unusable_is_dropped(tmp_path: Path) -> None:
    put(tmp_path / "a" / "1.png")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "1.png").write_text("no")
    assert from_folder(tmp_path).classes == ("a",)


def test_links_that_leave_the_root_are_quarantined_and_loops_end(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "root-private"
    secret = put(outside / "secret.png")
    put(root / "a" / "1.png")
    (root / "a" / "out.png").symlink_to(secret)
    (root / "a" / "up.png").symlink_to("../../root-private/secret.png")
    (root / "b").symlink_to(outside)
    (root / "a" / "loop").symlink_to(root)
    (root / "a" / "self.png").symlink_to("self.png")
    (root / "a" / "inside.png").symlink_to("1.png")
    dataset = from_folder(root)
    assert names(dataset, root) == ["a/1.png", "a/inside.png"]
    found = reasons(dataset)
    assert {found[name] for name in ("a/out.png", "a/up.png", "b")} == {
        "link that leads outside the data folder; --allow-outside follows it",
        "link that leads outside the data folder; --follow-links --allow-outside follows it",
    }
    assert found["a/loop"] == "link to a folder; --follow-links follows it"
    assert found["a/self.png"] == "link that leads nowhere"


def test_a_root_that_is_itself_a_link_is_read(tmp_path: Path) -> None:
    toy_images(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    assert from_folder(tmp_path / "link").n_rows == 12


def test_names_that_are_not_unicode_are_quarantined(tmp_path: Path) -> None:
    put(tmp_path / "a" / "1.png")
    shutil.copy(os.fsencode(tmp_path / "a" / "1.png"), os.fsencode(tmp_path / "a") + b"/\xff.png")
    dataset = from_folder(tmp_path)
    assert (dataset.n_rows, reasons(dataset)) == (1, {"a/\\udcff.png": "name is not valid UTF-8"})


def test_missing_and_empty_folders_say_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no folder at .*nowhere: .*per class is expected"):
        from_folder(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"holds no usable image: one subfolder of images per class is expected\.$"):
        from_folder(tmp_path)
    (tmp_path / "a.png").write_text("no")
    with pytest.raises(DataError, match=r"of 1 unusable ones the first is a\.png"):
        from_folder(tmp_path)


def test_the_same_content_twice_is_found_as_duplicate_leak_and_contradiction(tmp_path: Path) -> None:
    put(tmp_path / "train/a/1.png", "red")
    put(tmp_path / "train/a/2.png", "green")
    put(tmp_path / "train/b/1.png", "green")
    put(tmp_path / "test/a/1.png", "red")
    put(tmp_path / "test/b/1.png", "blue")
    dataset = from_folder(tmp_path)
    rows = {name: row for row, name in enumerate(names(dataset, tmp_path))}
    assert leaked_rows(dataset).tolist() == [rows["train/a/1.png"]]
    assert [g.tolist() for g in contradictory_rows(dataset)] == [[rows["train/a/2.png"], rows["train/b/1.png"]]]
    assert len(duplicate_rows(dataset)) == 2
    assert len(leaked_rows(toy_rows([3, 3]))) == 0
    (tmp_path / "train/a/3.png").write_bytes(b"no image")
    lines = describe_health(from_folder(tmp_path))
    pieces = ("1 file set aside, the first is train/a/3.png", "1 train row also for testing", "1 item in several rows")
    assert all(piece in line for piece, line in zip(pieces, lines, strict=True))
    assert describe_health(toy_rows([3, 3])) == []


def test_a_copy_without_a_label_contradicts_nothing(tmp_path: Path) -> None:
    put(tmp_path / "a/1.png", "red")
    put(tmp_path / "unlabelled/1.png", "red")
    dataset = from_folder(tmp_path)
    assert (len(duplicate_rows(dataset)), len(contradictory_rows(dataset))) == (1, 0)
