"""CUB, FGVC-Aircraft and Stanford Cars from miniatures of their original files, from archives, and damaged."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

import agcd.data.archives as archives
from agcd.errors import DataError
from support.published import CARS, load, make_aircraft, make_cars, make_cub, packed, picture, rows_of

CUB_ROWS = [
    ("Black_footed_Albatross_0.jpg", "Black footed Albatross", False),
    ("Black_footed_Albatross_1.jpg", "Black footed Albatross", True),
    ("Laysan_Albatross_0.jpg", "Laysan Albatross", False),
    ("Laysan_Albatross_1.jpg", "Laysan Albatross", True),
    ("Red_winged_Blackbird_0.jpg", "Red winged Blackbird", False),
    ("Red_winged_Blackbird_1.jpg", "Red winged Blackbird", True),
]


# --- CUB


def test_cub_rows_follow_images_txt_and_classes_their_ids(tmp_path: Path) -> None:
    root = make_cub(tmp_path)
    for path in (root, tmp_path):
        dataset = load("cub", path, tmp_path / "cache")
        assert dataset.name == "cub"
        assert dataset.classes == ("Black footed Albatross", "Laysan Albatross", "Red winged Blackbird")
        assert rows_of(dataset) == CUB_ROWS
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("piece", ["images.txt", "image_class_labels.txt", "train_test_split.txt", "classes.txt"])
def test_a_missing_list_is_named_with_what_is_expected(tmp_path: Path, piece: str) -> None:
    (make_cub(tmp_path) / piece).unlink()
    with pytest.raises(DataError, match=rf"CUB_200_2011 lacks {piece}: for cub, CUB_200_2011 .* is expected\.$"):
        load("cub", tmp_path, tmp_path / "cache")


@pytest.mark.parametrize(
    ("piece", "text", "message"),
    [
        ("images.txt", "1\n", "images.txt, line 1: '1'; a new id, a space and a value are expected"),
        ("images.txt", "1 a.jpg\n1 b.jpg\n", "images.txt, line 2"),
        ("images.txt", "1 ../../secret.jpg\n", "lists '../../secret.jpg'; a path inside"),
        ("images.txt", "1 /etc/passwd\n", "lists '/etc/passwd'; a path inside"),
        ("images.txt", "77 a.jpg\n", "image_class_labels.txt has no line for '77'"),
        ("image_class_labels.txt", "1 55\n", "classes.txt has no line for '55'"),
        ("classes.txt", "one 001.A\n", "classes.txt has the id 'one'"),
        ("classes.txt", "1 001.A\n2 002.A\n10 010.B\n", "names the class 'A' twice"),
    ],
)
def test_damaged_cub_lists_are_one_sentence(tmp_path: Path, piece: str, text: str, message: str) -> None:
    (make_cub(tmp_path) / piece).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        load("cub", tmp_path, tmp_path / "cache")


def test_an_absent_image_is_an_error_and_a_damaged_one_is_set_aside(tmp_path: Path) -> None:
    root = make_cub(tmp_path)
    first, second = (root / "images" / "001.Black_footed_Albatross" / f"Black_footed_Albatross_{i}.jpg" for i in (0, 1))
    second.write_bytes(b"no image")
    dataset = load("cub", root, tmp_path / "cache")
    assert [q.path for q in dataset.quarantine] == [f"images/{second.parent.name}/{second.name}"]
    assert (dataset.n_rows, len(dataset.classes)) == (5, 3)
    first.unlink()
    with pytest.raises(DataError, match=r"lacks 1 of 6 images, the first is .*/Black_footed_Albatross_0\.jpg\.$"):
        load("cub", root, tmp_path / "cache")


# --- archives


@pytest.mark.parametrize(("name", "make"), [("cub", make_cub), ("fgvc_aircraft", make_aircraft)])
def test_an_archive_reads_like_its_folder_and_is_unpacked_once(
    tmp_path: Path, name: str, make: Callable[[Path], Path]
) -> None:
    root = make(tmp_path)
    archive = packed(root, tmp_path / "original.tgz")
    cache = tmp_path / "cache"
    from_archive = load(name, archive, cache)
    assert from_archive.keys == load(name, root, cache).keys
    assert rows_of(from_archive) == rows_of(load(name, root, cache))
    marks = [path.stat().st_ino for path in (cache / "published").iterdir()]
    load(name, archive, cache)
    assert [path.stat().st_ino for path in (cache / "published").iterdir()] == marks
    assert len(marks) == 1


def hostile(archive: Path, member: tarfile.TarInfo) -> Path:
    with tarfile.open(archive, "w:gz") as tar:
        member.size = 0 if member.type != tarfile.REGTYPE else 4
        tar.addfile(member, io.BytesIO(b"evil"))
    return archive


@pytest.mark.parametrize("name", ["../evil.txt", "CUB_200_2011/../../evil.txt"])
def test_a_member_outside_the_folder_is_refused_and_nothing_is_left(tmp_path: Path, name: str) -> None:
    archive = hostile(tmp_path / "a.tgz", tarfile.TarInfo(name))
    with pytest.raises(DataError, match="would be written outside its folder"):
        load("cub", archive, tmp_path / "deep" / "cache")
    assert not list(tmp_path.rglob("evil.txt"))
    assert not list((tmp_path / "deep" / "cache" / "published").iterdir())


def test_an_absolute_name_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "target" / "evil.txt"
    archive = hostile(tmp_path / "a.tgz", tarfile.TarInfo(str(target)))
    with pytest.raises(DataError, match="would be written outside its folder"):
        load("cub", archive, tmp_path / "cache")
    assert not target.exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_in_an_archive_are_refused(tmp_path: Path, kind: bytes) -> None:
    member = tarfile.TarInfo("CUB_200_2011/images.txt")
    member.type, member.linkname = kind, "elsewhere"
    with pytest.raises(DataError, match="neither a file nor a folder"):
        load("cub", hostile(tmp_path / "a.tgz", member), tmp_path / "cache")


def test_an_archive_that_would_fill_the_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = packed(make_cub(tmp_path), tmp_path / "a.tgz")
    monkeypatch.setattr(archives, "MAX_BYTES", 100)
    with pytest.raises(DataError, match="holds more than 100 bytes"):
        load("cub", archive, tmp_path / "cache")
    monkeypatch.setattr(archives, "MAX_BYTES", 10**9)
    monkeypatch.setattr(archives, "MAX_MEMBERS", 3)
    with pytest.raises(DataError, match="or 3 files"):
        load("cub", archive, tmp_path / "cache")


def test_cut_off_and_foreign_archives_are_one_sentence(tmp_path: Path) -> None:
    whole = packed(make_cub(tmp_path), tmp_path / "a.tgz").read_bytes()
    holes = [whole[:at] + b"\xff" * 40 + whole[at + 40 :] for at in range(100, len(whole) - 100, 50)]
    for content in (b"", b"text", whole[: len(whole) // 2], whole[:-9], *holes):
        (tmp_path / "b.tgz").write_bytes(content)
        with pytest.raises(DataError, match=r"b\.tgz is not a readable archive"):
            load("cub", tmp_path / "b.tgz", tmp_path / "cache")


def test_a_file_where_a_folder_is_needed_and_a_path_to_nothing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not a folder: small-train"):
        load("herbarium19", packed(make_cub(tmp_path), tmp_path / "a.tgz"), tmp_path / "cache")
    with pytest.raises(DataError, match=r"There is nothing at .*nowhere: CUB_200_2011"):
        load("cub", tmp_path / "nowhere", tmp_path / "cache")


# --- FGVC-Aircraft


def test_aircraft_trains_on_trainval_in_its_order_and_sorts_variants_as_the_published_ids_do(tmp_path: Path) -> None:
    root = make_aircraft(tmp_path)
    for path in (tmp_path, root, root / "data"):
        dataset = load("fgvc_aircraft", path, tmp_path / "cache")
        assert dataset.classes == ("ATR-72", "An-12", "F-16A/B")
        assert rows_of(dataset) == [
            ("1025794.jpg", "F-16A/B", False),
            ("0034309.jpg", "An-12", False),
            ("1340192.jpg", "ATR-72", False),
            ("0056978.jpg", "An-12", True),
        ]


def test_damaged_aircraft_lists_are_one_sentence(tmp_path: Path) -> None:
    data = make_aircraft(tmp_path) / "data"
    (data / "images_variant_test.txt").write_text("0056978 Zeppelin\n")
    with pytest.raises(DataError, match=r"names the variant 'Zeppelin', which variants\.txt does not have"):
        load("fgvc_aircraft", tmp_path, tmp_path / "cache")
    (data / "images_variant_test.txt").write_text("../../x An-12\n")
    with pytest.raises(DataError, match=r"lists '\.\./\.\./x\.jpg'"):
        load("fgvc_aircraft", tmp_path, tmp_path / "cache")
    (data / "variants.txt").unlink()
    with pytest.raises(DataError, match=r"lacks variants\.txt"):
        load("fgvc_aircraft", tmp_path, tmp_path / "cache")


# --- Stanford Cars


CAR_ROWS = [
    ("00001.jpg", CARS[2], False),
    ("00002.jpg", CARS[0], False),
    ("00003.jpg", CARS[1], False),
    ("00001.jpg", CARS[1], True),
]


def test_cars_classes_count_from_one_in_the_lists_and_keep_the_order_of_the_meta_file(tmp_path: Path) -> None:
    root = make_cars(tmp_path)
    for path in (root, tmp_path):
        dataset = load("stanford_cars", path, tmp_path / "cache")
        assert dataset.classes == CARS
        assert rows_of(dataset) == CAR_ROWS


def as_class_folders(root: Path, target: Path) -> Path:
    """The same images in {train,test}/<class name>/, as the data set is passed on since its page is gone."""
    for name, label, is_test in CAR_ROWS:
        folder = target / ("test" if is_test else "train") / label.replace("/", "-")
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / ("cars_test" if is_test else "cars_train") / name, folder / name)
    return target


@pytest.mark.parametrize("names", ["cars_meta.mat", "names.csv"])
@pytest.mark.parametrize("inner", ["", "car_data/car_data"])
def test_cars_in_class_folders_give_the_same_rows(tmp_path: Path, names: str, inner: str) -> None:
    root = make_cars(tmp_path / "lists")
    target = as_class_folders(root, tmp_path / "folders" / inner)
    if names == "names.csv":
        (tmp_path / "folders" / names).write_text("\n".join(f'"{name}"' for name in CARS), encoding="utf-8")
    else:
        shutil.copy(root / "devkit" / names, tmp_path / "folders" / names)
    dataset = load("stanford_cars", tmp_path / "folders", tmp_path / "cache")
    assert (dataset.classes, rows_of(dataset)) == (CARS, CAR_ROWS)
    assert dataset.keys == load("stanford_cars", root, tmp_path / "cache").keys
    picture(target / "train" / "Trabant" / "1.jpg")
    with pytest.raises(DataError, match="has a folder 'Trabant', which is none of the 3 classes"):
        load("stanford_cars", tmp_path / "folders", tmp_path / "cache")


def test_cars_in_class_folders_need_the_order_of_the_ids(tmp_path: Path) -> None:
    target = as_class_folders(make_cars(tmp_path / "lists"), tmp_path / "folders")
    with pytest.raises(DataError, match=r"lacks cars_meta\.mat"):
        load("stanford_cars", target, tmp_path / "cache")


def test_cars_without_test_labels_or_with_damaged_lists_are_one_sentence(tmp_path: Path) -> None:
    root = make_cars(tmp_path)
    labels = root / "cars_test_annos_withlabels.mat"
    content = labels.read_bytes()
    labels.unlink()
    with pytest.raises(DataError, match=r"lacks cars_test_annos_withlabels\.mat: for stanford_cars"):
        load("stanford_cars", root, tmp_path / "cache")
    for damaged in (b"", b"text", content[:150]):
        labels.write_bytes(damaged)
        with pytest.raises(DataError, match=r"is not a readable MATLAB file|has no variable 'annotations'"):
            load("stanford_cars", root, tmp_path / "cache")
    shutil.copy(root / "devkit" / "cars_meta.mat", labels)
    with pytest.raises(DataError, match="has no variable 'annotations'"):
        load("stanford_cars", root, tmp_path / "cache")


@pytest.mark.parametrize(
    ("fields", "row", "message"),
    [
        (("bbox_x1", "fname"), (7, "00001.jpg"), "has no usable fields 'fname' and 'class'"),
        (("class", "fname"), (4, "00001.jpg"), "gives '00001.jpg' the class 4; 1 to 3 are expected"),
        (("class", "fname"), (0, "00001.jpg"), "gives '00001.jpg' the class 0; 1 to 3 are expected"),
        (("class", "fname"), (1, "../../x.jpg"), r"lists '\.\./\.\./x\.jpg'; a path inside"),
    ],
)
def test_car_annotations_that_do_not_fit_are_one_sentence(
    tmp_path: Path, fields: tuple[str, ...], row: tuple[object, ...], message: str
) -> None:
    root = make_cars(tmp_path)
    table = np.array([row], dtype=[(name, "O") for name in fields])
    savemat(root / "cars_test_annos_withlabels.mat", {"annotations": table})
    with pytest.raises(DataError, match=message):
        load("stanford_cars", root, tmp_path / "cache")
