"""Miniatures of the original layouts: a few classes, a few tiny images, the same files and lists."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat

from agcd.lab.published import PUBLISHED, load_published
from agcd.types import Dataset

CARS = ("Acura TL Sedan 2012", "Acura Integra Type R 2001", "Ram C/V Cargo Van Minivan 2012")
"""Three classes in the order of the original list, which is not alphabetical; one cannot be the name of a folder."""


def picture(path: Path, value: int = 0) -> Path:
    """A tiny image at ``path`` whose content is told apart by ``value``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    colour = (value % 256, value // 256 % 256, 99)
    Image.new("RGB", (4, 3), colour).save(path, "PNG")
    return path


def load(name: str, path: Path, cache: Path) -> Dataset:
    return load_published(PUBLISHED[name], path, cache)


def rows_of(dataset: Dataset) -> list[tuple[str, str, bool]]:
    """File name, class name and is_test of every row."""
    labels = [dataset.classes[c] for c in dataset.y_class.tolist()]
    names = [path.name for path in dataset.paths or ()]
    return list(zip(names, labels, dataset.is_test.tolist(), strict=True))


def packed(folder: Path, archive: Path) -> Path:
    """``folder`` as a gzipped tar archive with that folder at its top."""
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, folder.name)
    return archive


def make_cub(folder: Path) -> Path:
    """Three classes of two images, one for training and one for testing."""
    names = {1: "001.Black_footed_Albatross", 2: "002.Laysan_Albatross", 10: "010.Red_winged_Blackbird"}
    return _write_cub(folder / "CUB_200_2011", names)


def make_whole_cub(folder: Path) -> Path:
    """All 200 classes, as the published split needs them, again of two images."""
    return _write_cub(folder / "CUB_200_2011", {c: f"{c:03d}.Bird_{c}" for c in range(1, 201)})


def _write_cub(root: Path, names: Mapping[int, str]) -> Path:
    """The original lists and folders; of every class an image for training comes first, then one for testing."""
    rows = [(c, f"{name}/{name[4:]}_{i}.jpg") for c, name in names.items() for i in (0, 1)]
    for value, (_, file) in enumerate(rows):
        picture(root / "images" / file, value)
    lists = {
        "classes.txt": [f"{c} {name}" for c, name in names.items()],
        "images.txt": [f"{i} {file}" for i, (_, file) in enumerate(rows, start=1)],
        "image_class_labels.txt": [f"{i} {c}" for i, (c, _) in enumerate(rows, start=1)],
        "train_test_split.txt": [f"{i} {i % 2}" for i in range(1, len(rows) + 1)],
    }
    for name, lines in lists.items():
        (root / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return root


def make_aircraft(folder: Path) -> Path:
    """Three variants, listed as in the original with spaces and slashes in names; images out of class order."""
    root = folder / "fgvc-aircraft-2013b"
    data = root / "data"
    for value, image in enumerate(("1025794", "0034309", "1340192", "0056978")):
        picture(data / "images" / f"{image}.jpg", value)
    lists = {
        "variants.txt": "F-16A/B\nATR-72\nAn-12\n",
        "images_variant_trainval.txt": "1025794 F-16A/B\n0034309 An-12\n1340192 ATR-72\n",
        "images_variant_test.txt": "0056978 An-12\n",
    }
    for name, text in lists.items():
        (data / name).write_text(text, encoding="utf-8")
    return root


def make_cars(folder: Path) -> Path:
    """The original lists: classes count from 1, test labels stand in a file of their own."""
    root = folder / "stanford_cars"
    fields = [("bbox_x1", "O"), ("class", "O"), ("fname", "O")]
    for part, file, numbers in (
        ("cars_train", "devkit/cars_train_annos.mat", (3, 1, 2)),
        ("cars_test", "cars_test_annos_withlabels.mat", (2,)),
    ):
        table = np.array([(7, c, f"{i:05d}.jpg") for i, c in enumerate(numbers, start=1)], dtype=fields)
        (root / "devkit").mkdir(parents=True, exist_ok=True)
        savemat(root / file, {"annotations": table})
        for i, c in enumerate(numbers, start=1):
            picture(root / part / f"{i:05d}.jpg", 10 * i + c + 100 * (part == "cars_test"))
    savemat(root / "devkit" / "cars_meta.mat", {"class_names": np.array(CARS, dtype=object)})
    return root


def make_imagenet(folder: Path, *, ids: tuple[int, ...], n_train: int = 1) -> Path:
    """1000 class folders of which only ``ids`` have images, and one test image each in val/<wnid>/."""
    for i in range(1000):
        (folder / "train" / f"n{i:08d}").mkdir(parents=True)
    for i in ids:
        for j in range(n_train):
            picture(folder / "train" / f"n{i:08d}" / f"n{i:08d}_{j}.JPEG", i)
        picture(folder / "val" / f"n{i:08d}" / f"ILSVRC2012_val_{i:08d}.JPEG", 1000 + i)
    return folder


def make_herbarium(folder: Path) -> Path:
    """Classes 0, 2 and 10, whose order as text is not that of the numbers."""
    for value, name in enumerate(("0", "2", "10")):
        for i in range(2):
            picture(folder / "small-train" / name / f"{i}.jpg", 10 * value + i)
        picture(folder / "small-validation" / name / "9.jpg", 100 + value)
    return folder
