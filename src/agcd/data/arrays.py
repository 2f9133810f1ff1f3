"""Embeddings from elsewhere (text, audio, CLIP …) as a data set."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agcd.data.items import clean_name
from agcd.data.missing import is_missing
from agcd.errors import DataError, did_you_mean
from agcd.io import BAD_ARRAY, digest_bytes
from agcd.types import UNLABELLED, Dataset, FloatArray, IntArray

Label = str | int
"""A class name, or a number of a class; −1 is unlabelled."""


def from_arrays(
    x: ArrayLike,
    y: ArrayLike | None = None,
    *,
    x_test: ArrayLike | None = None,
    y_test: ArrayLike | None = None,
    classes: Sequence[str] | None = None,
    name: str = "arrays",
) -> Dataset:
    """Embeddings ``x`` (n × d) with labels ``y`` (n,), and likewise for testing, as a data set of n + n_test rows.

    Labels are class names or numbers; −1, None, NaN and "" mean unlabelled. With ``classes``, numbers count into
    it and names must be in it; without, the classes are the labels that occur, sorted.
    """
    x_train = _matrix(x, "x")
    labels = as_labels(y, len(x_train), "y")
    parts = [x_train]
    if x_test is not None:
        parts.append(_matrix(x_test, "x_test"))
        labels += as_labels(y_test, len(parts[1]), "y_test")
        if parts[1].shape[1] != x_train.shape[1]:
            raise DataError(f"x has {x_train.shape[1]} columns but x_test has {parts[1].shape[1]}.")
    elif y_test is not None:
        raise DataError("y_test is given without x_test.")
    names, y_class = number_labels(labels, classes)
    stacked = np.concatenate(parts)
    is_test = np.arange(len(stacked)) >= len(x_train)
    keys = tuple(digest_bytes(row.tobytes()) for row in stacked)
    return Dataset(name=name, classes=names, y_class=y_class, is_test=is_test, keys=keys, x=stacked)


def from_npz(path: Path | str) -> Dataset:
    """Embeddings from an ``.npz`` file of arrays ``x_train y_train x_test y_test classes``, or ``x y``.

    All but the first are optional.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"There is no file at {path}: an .npz file with an array 'x' or 'x_train' is expected.")
    arrays = _read_npz(path)
    x_name = "x_train" if "x_train" in arrays else "x"
    if x_name not in arrays:
        raise DataError(f"{path} has no array 'x_train' or 'x'.{did_you_mean('x_train', arrays)}")
    classes = arrays.get("classes")
    try:
        return from_arrays(
            arrays[x_name],
            arrays.get("y_train" if x_name == "x_train" else "y"),
            x_test=arrays.get("x_test"),
            y_test=arrays.get("y_test"),
            classes=None if classes is None else _decoded(classes.ravel()).astype(str).tolist(),
            name=path.stem,
        )
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _read_npz(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as handle:  # np.load leaves its own handle open when it fails
            file = np.load(handle, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise ValueError("a single array, not an archive of named arrays")
            return {key: file[key] for key in file.files}
    except (*BAD_ARRAY, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is not a readable .npz file ({error}).") from None


def _matrix(values: ArrayLike, what: str) -> FloatArray:
    """Embeddings as finite little-endian float32, at least 1 × 1."""
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        raise DataError(f"{what} has rows of different lengths; numbers of shape (n, d) are expected.") from None
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise DataError(
            f"{what} is of shape {array.shape} and type {array.dtype}; numbers of shape (n, d) are expected."
        )
    if array.size == 0:
        raise DataError(f"{what} is empty: its shape is {array.shape}.")
    with np.errstate(over="ignore"):  # what overflows becomes Inf and is refused below
        array = array.astype("<f4")
    bad_rows = np.flatnonzero(~np.isfinite(array).all(1))
    if len(bad_rows):
        raise DataError(
            f"{what} has NaN or Inf in {len(bad_rows)} of {len(array)} rows, the first is row {bad_rows[0]}."
        )
    return array


def as_labels(y: ArrayLike | Sequence[Any] | None, n: int, what: str) -> list[Label]:
    """Labels one by one, unlabelled as −1."""
    if y is None:
        return [UNLABELLED] * n
    array = _decoded(_as_given(y))
    if array.shape != (n,):
        raise DataError(f"{what} is of shape {array.shape}, but there are {n} rows; shape ({n},) is expected.")
    return [_label(value, what) for value in array.tolist()]


def _as_given(y: ArrayLike) -> NDArray[Any]:
    """``y`` as an array; of a list with names and numbers NumPy would make names of all."""
    if isinstance(y, list | tuple) and len({isinstance(value, str) for value in y}) > 1:
        return np.array(y, dtype=object)
    return np.asarray(y)


def _decoded(array: NDArray[Any]) -> NDArray[Any]:
    return np.char.decode(array, "utf-8", "replace") if array.dtype.kind == "S" else array


def _label(value: Any, what: str) -> Label:
    if is_missing(value):
        return UNLABELLED
    if isinstance(value, str):
        return clean_name(value)
    if (isinstance(value, int) or (isinstance(value, float) and value.is_integer())) and value >= UNLABELLED:
        return int(value)
    raise DataError(f"{what} holds {value!r}; a class name, a class number or −1 is expected.")


def number_labels(labels: Sequence[Label], classes: Sequence[str] | None) -> tuple[tuple[str, ...], IntArray]:
    """Class names and the class of every label, by its place among them."""
    given = {label for label in labels if label != UNLABELLED}
    if len({type(label) for label in given}) > 1:
        raise DataError("Labels are partly names and partly numbers; use one of them.")
    place: dict[Label, int]
    if classes is None:
        ordered = sorted(given)
        place, names = {label: i for i, label in enumerate(ordered)}, tuple(str(label) for label in ordered)
    else:
        names = tuple(clean_name(name) for name in classes)
        numbers_given = all(isinstance(label, int) for label in given)
        place = {(i if numbers_given else name): i for i, name in enumerate(names)}
        _check_classes(names, given - set(place))
    return names, np.array([place.get(label, UNLABELLED) for label in labels], dtype=np.int64)


def _check_classes(names: tuple[str, ...], unknown: set[Label]) -> None:
    if len(set(names)) < len(names):
        raise DataError(f"classes names {next(n for n in names if names.count(n) > 1)!r} twice.")
    if unknown:
        label = sorted(unknown, key=str)[0]
        raise DataError(f"Label {label!r} is not one of the {len(names)} classes.")
