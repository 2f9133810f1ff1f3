"""ImageNet-100 and Herbarium-19 from miniatures of their class folders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from agcd.errors import DataError
from agcd.lab.published.class_folders import imagenet100_ids
from support.published import load, make_herbarium, make_imagenet, picture, rows_of

IDS = imagenet100_ids()


def test_the_hundred_ids_are_those_of_the_published_rule() -> None:
    state = np.random.get_state()  # noqa: NPY002 - the twin draws as the published code does, from the global generator
    try:
        np.random.seed(0)  # noqa: NPY002
        twin = np.sort(np.random.choice(range(1000), size=(100,), replace=False))  # noqa: NPY002
    finally:
        np.random.set_state(state)  # noqa: NPY002
    assert twin.tolist() == list(IDS)
    assert IDS[:5] == (1, 14, 27, 31, 45)
    assert len(set(IDS)) == 100


@pytest.fixture(scope="module")
def imagenet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_imagenet(tmp_path_factory.mktemp("imagenet"), ids=IDS)


def test_only_the_hundred_classes_are_read_in_the_order_of_their_wnids(imagenet: Path, tmp_path: Path) -> None:
    stranger = picture(imagenet / "train" / "n00000000" / "n00000000_0.JPEG", 5)
    dataset = load("imagenet100", imagenet, tmp_path)
    assert dataset.classes == tuple(f"n{i:08d}" for i in IDS)
    assert rows_of(dataset)[0] == ("n00000001_0.JPEG", "n00000001", False)
    assert dataset.y_class.tolist() == [*range(100), *range(100)]
    assert dataset.is_test.tolist() == [False] * 100 + [True] * 100
    assert stranger not in (dataset.paths or ())


def kaggle(imagenet: Path, folder: Path) -> Path:
    """The same images as ILSVRC/Data/CLS-LOC with a flat val/ and its solution file, which is not in order."""
    root = folder / "ILSVRC" / "Data" / "CLS-LOC"
    (root / "val").mkdir(parents=True)
    (root / "train").symlink_to(imagenet / "train")
    lines = []
    for i in IDS:
        name = f"ILSVRC2012_val_{i:08d}"
        picture(root / "val" / f"{name}.JPEG", 1000 + i)
        lines.append(f"{name},n{i:08d} 1 2 30 40 n{i:08d} 5 6 70 80")
    lines.append("ILSVRC2012_val_00050000,n00000002 1 2 3 4")  # of a class that is not chosen: need not be there
    (folder / "LOC_val_solution.csv").write_text("\n".join(["ImageId,PredictionString", *lines[::-1]]))
    return folder


def test_a_flat_validation_folder_is_read_by_its_solution_file(imagenet: Path, tmp_path: Path) -> None:
    root = kaggle(imagenet, tmp_path / "kaggle")
    expected = rows_of(load("imagenet100", imagenet, tmp_path))
    for path in (root, root / "ILSVRC" / "Data" / "CLS-LOC"):
        assert rows_of(load("imagenet100", path, tmp_path)) == expected
    (root / "LOC_val_solution.csv").write_text("ImageId,PredictionString\n../../x,n00000001 1 2 3 4\n")
    with pytest.raises(DataError, match=r"lists '\.\./\.\./x\.JPEG'; a path inside"):
        load("imagenet100", root, tmp_path)
    (root / "LOC_val_solution.csv").unlink()
    with pytest.raises(DataError, match=r"lacks val/<wnid>, LOC_val_solution\.csv: for imagenet100"):
        load("imagenet100", root, tmp_path)


def test_classes_get_english_names_where_the_synset_list_is_there(imagenet: Path, tmp_path: Path) -> None:
    root = kaggle(imagenet, tmp_path / "kaggle")
    (root / "LOC_synset_mapping.txt").write_text("n00000001 crane, machine\nn00000014 crane\n")
    dataset = load("imagenet100", root, tmp_path)
    assert dataset.classes[:3] == ("n00000001 crane", "n00000014 crane", "n00000027")


def test_other_numbers_of_class_folders_are_refused(tmp_path: Path) -> None:
    for i in range(100):
        picture(tmp_path / "train" / f"n{i:08d}" / "1.JPEG", i)
    (tmp_path / "val").mkdir()
    with pytest.raises(DataError, match="has 100 class folders; all 1000 are expected"):
        load("imagenet100", tmp_path, tmp_path / "cache")
    with pytest.raises(DataError, match="lacks train, val: for imagenet100, ImageNet-1k"):
        load("imagenet100", tmp_path / "train", tmp_path / "cache")


def test_missing_validation_folders_are_named(imagenet: Path, tmp_path: Path) -> None:
    (tmp_path / "train").symlink_to(imagenet / "train")
    picture(tmp_path / "val" / "n00000001" / "1.JPEG")
    with pytest.raises(DataError, match=r"lacks val/n00000014, val/n00000027, val/n00000031, val/n00000045, …: for"):
        load("imagenet100", tmp_path, tmp_path / "cache")


def test_herbarium_classes_are_sorted_as_text_as_the_published_ids_are(tmp_path: Path) -> None:
    dataset = load("herbarium19", make_herbarium(tmp_path), tmp_path / "cache")
    assert dataset.classes == ("0", "10", "2")
    assert rows_of(dataset) == [
        ("0.jpg", "0", False),
        ("1.jpg", "0", False),
        ("0.jpg", "10", False),
        ("1.jpg", "10", False),
        ("0.jpg", "2", False),
        ("1.jpg", "2", False),
        ("9.jpg", "0", True),
        ("9.jpg", "10", True),
        ("9.jpg", "2", True),
    ]


def test_herbarium_without_a_part_or_with_a_stray_class_is_one_sentence(tmp_path: Path) -> None:
    root = make_herbarium(tmp_path)
    picture(root / "small-validation" / "77" / "1.jpg")
    with pytest.raises(DataError, match="small-validation has the class '77'"):
        load("herbarium19", root, tmp_path / "cache")
    with pytest.raises(DataError, match="lacks small-train, small-validation: for herbarium19, small-train"):
        load("herbarium19", root / "small-train", tmp_path / "cache")


def test_hidden_and_foreign_files_are_passed_over(tmp_path: Path) -> None:
    root = make_herbarium(tmp_path)
    picture(root / "small-train" / "0" / "._0.jpg")
    (root / "small-train" / "0" / "notes.txt").write_text("no image")
    (root / "small-train" / ".DS_Store").mkdir()
    assert load("herbarium19", root, tmp_path / "cache").n_rows == 9
