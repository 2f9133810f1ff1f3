"""Embeddings become the same rows as images do, or one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agcd.data.sources import from_arrays, from_npz, load_dataset
from agcd.errors import DataError
from agcd.io import digest_bytes

X = np.arange(12, dtype=np.float64).reshape(4, 3)


def test_embeddings_become_float32_rows_with_content_keys() -> None:
    dataset = from_arrays(X, [2, 7, -1, 2], x_test=X[:1] + 100, y_test=[7], name="mine")
    assert dataset.x is not None
    assert dataset.x.dtype == np.float32
    assert dataset.x.shape == (5, 3)
    assert dataset.classes == ("2", "7")
    assert dataset.y_class.tolist() == [0, 1, -1, 0, 1]
    assert dataset.is_test.tolist() == [False] * 4 + [True]
    assert dataset.keys[0] == digest_bytes(X[0].astype("<f4").tobytes())
    assert (dataset.paths, dataset.name) == (None, "mine")


def test_keys_depend_on_content_alone_and_duplicates_are_allowed() -> None:
    dataset = from_arrays(np.asfortranarray(np.vstack([X, X]).astype(np.float16)))
    assert dataset.keys[:4] == dataset.keys[4:] == from_arrays(X).keys


@pytest.mark.parametrize(
    ("y", "classes", "y_class"),
    [
        (["b", "a", "", "b"], ("a", "b"), [1, 0, -1, 1]),
        (["b", None, "a", "b"], ("a", "b"), [1, -1, 0, 1]),
        (np.array(["b", "a", -1, "b"]), ("a", "b"), [1, 0, -1, 1]),
        (np.array([b"b", b"a", b"", b"b"]), ("a", "b"), [1, 0, -1, 1]),
        ([10.0, np.nan, 9.0, 10.0], ("9", "10"), [1, -1, 0, 1]),
        (["cafe\u0301", "caf\u00e9", "z", "z"], ("caf\u00e9", "z"), [0, 0, 1, 1]),
        (None, (), [-1] * 4),
        ([-1] * 4, (), [-1] * 4),
    ],
)
def test_labels_are_names_or_numbers_and_may_be_missing(y: Any, classes: tuple[str, ...], y_class: list[int]) -> None:
    dataset = from_arrays(X, y)
    assert (dataset.classes, dataset.y_class.tolist()) == (classes, y_class)


def test_given_classes_keep_their_order_and_may_have_no_rows() -> None:
    by_number = from_arrays(X, [2, 0, -1, 2], classes=["z", "empty", "a"])
    by_name = from_arrays(X, ["a", "z", "", "a"], classes=["z", "empty", "a"])
    assert by_number.classes == by_name.classes == ("z", "empty", "a")
    assert by_number.y_class.tolist() == by_name.y_class.tolist() == [2, 0, -1, 2]


def bad(row: int, value: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    x = X.copy()
    x[row:, 1] = value
    return x


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": bad(2, np.nan)}, "x has NaN or Inf in 2 of 4 rows, the first is row 2"),
        ({"x": bad(3, np.inf)}, "in 1 of 4 rows, the first is row 3"),
        ({"x": bad(1, 1e300)}, "in 3 of 4 rows"),
        ({"x": X[0]}, r"shape \(3,\)"),
        ({"x": X[None]}, r"shape \(1, 4, 3\)"),
        ({"x": X.astype(str)}, "numbers of shape"),
        ({"x": X[:0]}, "x is empty"),
        ({"x": X[:, :0]}, "x is empty"),
        ({"x": X, "y": [1, 2]}, r"y is of shape \(2,\), but there are 4 rows"),
        ({"x": X, "y": [[1], [2], [3], [4]]}, r"y is of shape \(4, 1\)"),
        ({"x": X, "x_test": X[:, :2]}, "x has 3 columns but x_test has 2"),
        ({"x": X, "y_test": [1]}, "y_test is given without x_test"),
        ({"x": X, "y": [0, 1, 2, 3], "classes": ["a", "b"]}, "Label 2 is not one of the 2 classes"),
        ({"x": X, "y": ["a", "b", "a", "c"], "classes": ["a", "b"]}, "Label 'c' is not one"),
        ({"x": X, "y": [0, 1, 0, 1], "classes": ["a", "a"]}, "classes names 'a' twice"),
        ({"x": X, "y": [0, 1, 0, -2]}, "y holds -2"),
        ({"x": X, "y": [0, 1, 0, 1.5]}, "y holds 1.5"),
        ({"x": X, "y": [0, 1, 0, np.inf]}, "y holds inf"),
        ({"x": X, "y": np.array([0, "a", 0, 1], dtype=object)}, "partly names and partly numbers"),
    ],
)
def test_wrong_arrays_are_one_sentence(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        from_arrays(**arguments)


def test_npz_files_are_read_in_both_namings(tmp_path: Path) -> None:
    classes = np.array(["a", "b", "c"])
    np.savez(tmp_path / "full.npz", x_train=X, y_train=[0, 1, 2, -1], x_test=X, y_test=[0, 1, 2, 0], classes=classes)
    np.savez(tmp_path / "short.npz", x=X.astype(np.float16), y=["u", "v", "u", "v"])
    full, short = from_npz(tmp_path / "full.npz"), load_dataset(tmp_path / "short.npz")
    assert (full.name, full.classes, full.n_rows) == ("full", ("a", "b", "c"), 8)
    assert (short.classes, short.y_class.tolist()) == (("u", "v"), [0, 1, 0, 1])


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "sprung",))

    np.savez(tmp_path / "trap.npz", x=np.array([[Trap()]], dtype=object))
    with pytest.raises(DataError, match=r"not a readable \.npz file"):
        from_npz(tmp_path / "trap.npz")
    assert not (tmp_path / "sprung").exists()


def test_unreadable_npz_files_are_one_sentence(tmp_path: Path) -> None:
    np.save(tmp_path / "single.npy", X)
    (tmp_path / "single.npy").rename(tmp_path / "single.npz")
    (tmp_path / "text.npz").write_text("hello")
    (tmp_path / "empty.npz").write_bytes(b"")
    np.savez(tmp_path / "cut.npz", x=np.zeros((50, 50)))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "cut.npz").read_bytes()[:4000])
    for name in ("single", "text", "empty", "cut"):
        with pytest.raises(DataError, match=r"not a readable \.npz file"):
            from_npz(tmp_path / f"{name}.npz")
    np.savez(tmp_path / "names.npz", xtrain=X)
    with pytest.raises(DataError, match=r"no array 'x_train' or 'x'\. Did you mean 'xtrain'"):
        from_npz(tmp_path / "names.npz")
    np.savez(tmp_path / "nan.npz", x=bad(0, np.nan))
    with pytest.raises(DataError, match=r"nan\.npz: x has NaN or Inf in 4 of 4 rows"):
        from_npz(tmp_path / "nan.npz")
    with pytest.raises(DataError, match="There is no file"):
        from_npz(tmp_path / "gone.npz")


def test_a_path_that_cannot_be_read_says_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"There is nothing at .*: a folder, a list of images .* is expected"):
        load_dataset(tmp_path / "gone")
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(DataError, match=r"notes\.txt cannot be read as data"):
        load_dataset(tmp_path / "notes.txt")
