"""Array steps that several strategies share: reading in blocks, ranking inside groups, distances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from agcd.types import FloatArray, IntArray

BLOCK_ENTRIES = 1 << 17
"""Numbers per block: one megabyte in float64, which stays in the processor's cache between two uses."""


def blocks(n: int, width: int) -> Iterator[slice]:
    """Slices that cover ``range(n)``, each of about ``BLOCK_ENTRIES`` numbers when one item has ``width``."""
    step = max(1, BLOCK_ENTRIES // max(1, width))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def rank_within(group: IntArray, score: np.ndarray[Any, Any]) -> IntArray:
    """The place (0, 1, …) of each item among its own group, lowest score first, ties by position.

    Parameters
    ----------
    group : shape (n,), any integers
    score : shape (n,)
    """
    order = np.lexsort((score, group))
    place = np.arange(len(group))
    is_first = np.ones(len(group), dtype=bool)
    is_first[1:] = group[order][1:] != group[order][:-1]
    rank = np.empty(len(group), dtype=np.int64)
    rank[order] = place - np.maximum.accumulate(np.where(is_first, place, 0))
    return rank


def unit(x: FloatArray) -> FloatArray:
    """Rows brought to length one, in float32 at least; zero rows stay zero: (n, d) → (n, d)."""
    x = floats(x)
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return np.asarray(x / np.where(length > 0, length, 1), dtype=x.dtype)


def floats(x: FloatArray) -> FloatArray:
    """In the precision given, in float32 at least."""
    return np.asarray(x, dtype=np.result_type(x.dtype, np.float32))


def pair_squares(a: FloatArray, b: FloatArray) -> FloatArray:
    """Squared distances (n, m) of all pairs of rows; never negative."""
    square = np.einsum("ij,ij->i", a, a)[:, None] + np.einsum("ij,ij->i", b, b) - 2 * (a @ b.T)
    return np.asarray(np.maximum(square, 0), dtype=square.dtype)
