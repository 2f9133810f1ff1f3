"""Labels as people have them: missing or not, of one kind, and coming back as they went in."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agcd.data.missing import is_missing
from agcd.errors import DataError
from agcd.types import UNLABELLED, IntArray

_MISSING_TEXTS = frozenset({"nan", "NaN", "None", "<NA>", "NaT"})
"""What NumPy makes of missing labels when it makes texts of everything."""
_LARGEST = 2**62
_MAX_SHOWN = 60


def known_labels(y: Any, n_rows: int) -> tuple[list[Any], IntArray]:
    """The distinct labels in sorted order, and the number of each row's label, −1 for unlabelled."""
    if y is None:
        return [], np.full(n_rows, UNLABELLED, np.int64)
    values = label_list(y, "y")
    if len(values) != n_rows:
        raise DataError(f"y has {len(values)} labels for {n_rows} samples; one per sample is expected.")
    check_one_kind(values)
    known = sorted({value for value in values if value is not None})
    number = {value: i for i, value in enumerate(known)}
    return known, np.asarray([UNLABELLED if value is None else number[value] for value in values], np.int64)


def taught_labels(rows: Any, labels: Any, n_rows: int, names: Sequence[Any]) -> tuple[IntArray, list[Any]]:
    """The rows that were answered and what they are called; ``names`` are the labels heard before."""
    numbers = row_numbers(rows, n_rows)
    values = label_list([labels] if np.ndim(rows) == 0 else labels, "labels")
    if len(numbers) != len(values):
        raise DataError(f"{len(numbers)} rows came with {len(values)} labels; one label per row is expected.")
    said: dict[int, Any] = {}
    for row, value in zip(numbers.tolist(), values, strict=True):
        if value is not None and said.setdefault(row, value) != value:
            raise DataError(f"Row {row} is called {said[row]!r} and {value!r}; one label per row is expected.")
    if not said:
        raise DataError(
            f"All of the {len(values)} labels are missing, so there is nothing to learn: give at least one."
        )
    check_one_kind([*names, *said.values()])
    return np.asarray(list(said), np.int64), list(said.values())


def row_numbers(rows: Any, n_rows: int) -> IntArray:
    """Positions in the training samples, from positions or from a Boolean mask over all of them."""
    array = np.asarray(rows.detach().cpu() if hasattr(rows, "detach") else rows)
    if array.dtype == np.bool_:
        if array.shape != (n_rows,):
            raise DataError(f"The mask has the shape {array.shape}; ({n_rows},) fits the training samples.")
        return np.flatnonzero(array)
    array = np.atleast_1d(array)
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise DataError(f"Rows of type {array.dtype} were given; whole numbers or a Boolean mask are expected.")
    if array.min() < 0 or array.max() >= n_rows:
        raise DataError(f"Rows must lie in 0 to {n_rows - 1}.")
    return array.astype(np.int64)


def label_list(given: Any, what: str) -> list[Any]:
    """Every label as a Python value (text, whole number or truth value), None where it is missing."""
    if isinstance(given, str | bytes):
        raise DataError(f"{what} is the one text {_shown(given)}; one label per sample is expected.")
    if hasattr(given, "detach"):  # a tensor, known without loading torch
        given = given.detach().cpu().numpy()
    if isinstance(given, np.ma.MaskedArray):
        hidden, given = np.ma.getmaskarray(given), given.data.astype(object)
        given[hidden] = None
    if isinstance(given, np.ndarray) and given.dtype.kind == "U":
        for text in _MISSING_TEXTS.intersection(given.ravel().tolist()):
            raise DataError(
                f"{what} holds the text {text!r}, which NumPy makes of a missing label: give a list, or dtype=object."
            )
    values = np.asarray(given, dtype=object)
    if values.ndim == 2 and values.shape[1] == 1:  # a table of one column
        values = values[:, 0]
    if values.ndim != 1:
        raise DataError(f"{what} has the shape {values.shape}; one label per sample is expected: (n,).")
    return [_plain(value, what) for value in values]


def check_one_kind(labels: Sequence[Any]) -> None:
    """Refuse text beside numbers, and True beside 1."""
    first: dict[str, Any] = {}
    for label in labels:
        if label is not None:
            first.setdefault(_kind(label), label)
    if len(first) > 1:
        some = " and ".join(f"{kind} ({_shown(label)})" for kind, label in first.items())
        raise DataError(f"Labels are of several kinds, {some}; one kind is expected.")


def slot_labels(names: Sequence[Any], slot_of_class: IntArray, n_slots: int) -> NDArray[Any]:
    """The label of every slot: the name of its class, or a new one for slots without."""
    named = {int(slot): names[c] for c, slot in enumerate(slot_of_class)}
    kinds = {_kind(name) for name in names}
    if kinds <= {"whole numbers"}:
        fresh = count(max(names, default=-1) + 1)
        return np.asarray([named[s] if s in named else next(fresh) for s in range(n_slots)], np.int64)
    if kinds == {"truth values"} and len(named) == n_slots:  # objects would make −2 of ~True
        return np.asarray([named[s] for s in range(n_slots)], bool)
    taken = set(names)
    return np.asarray(
        [named[s] if s in named else _untaken(f"unnamed #{s}", taken) for s in range(n_slots)], dtype=object
    )


def _untaken(name: str, taken: set[Any]) -> str:
    """The name, with a mark if somebody has taught it as that of a class."""
    return name if name not in taken else _untaken(f"{name}'", taken)


def _kind(label: Any) -> str:
    if isinstance(label, bool):
        return "truth values"
    return "whole numbers" if isinstance(label, int) else "text"


def _plain(value: Any, what: str) -> Any:
    """A label as a Python value; a column of numbers with NaN in it has made whole numbers floats."""
    if is_missing(value):
        return None
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        if abs(value) < _LARGEST:
            return int(value)
        raise DataError(f"{what} holds {value!r}, which is too large for the number of a class: give it as text.")
    raise DataError(f"{what} holds {_shown(value)}; text, whole numbers or truth values are expected.")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
