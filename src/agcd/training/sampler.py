"""Which rows and which of their views make up each training batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from torch import Tensor

from agcd.features.reading import read_in_turn
from agcd.features.rows import RowFeatures
from agcd.training.process_group import SINGLE_PROCESS, ProcessGroup, at_least_one, share
from agcd.types import IntArray


class Batch(NamedTuple):
    """Rows (B,) and the tail's input (2B, …) for two views of each: first views, then second.

    In a process group ``inputs`` are those of the rows that this one works on; ``rows`` are all.
    """

    rows: IntArray
    inputs: Tensor


def balanced_batches(
    labelled: IntArray, unlabelled: IntArray, batch_size: int, rng: np.random.Generator
) -> Iterator[IntArray]:
    """One epoch of rows, drawn with replacement so that half of each batch is labelled in expectation.

    As many draws as there are rows, the last partial batch dropped (unless it is the only one). With no
    labelled rows, or no unlabelled ones, all rows weigh the same.
    """
    rows = np.concatenate([labelled, unlabelled])
    weights = np.ones(len(rows))
    if len(labelled) and len(unlabelled):
        weights[len(labelled) :] = len(labelled) / len(unlabelled)
    n_batches = max(1, len(rows) // batch_size)
    drawn = rng.choice(rows, size=(n_batches, min(batch_size, len(rows))), p=weights / weights.sum())
    yield from drawn


def shuffled_batches(rows: IntArray, batch_size: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Every row once, in random order; the last batch may be smaller."""
    order = rng.permutation(rows)
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]


def two_views(n: int, n_views: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Two different view numbers for each of ``n`` rows (the same one twice if there is only one)."""
    first = rng.integers(n_views, size=n)
    if n_views == 1:
        return first, first
    return first, (first + 1 + rng.integers(n_views - 1, size=n)) % n_views


def read_batches(
    features: RowFeatures, batches: Iterable[IntArray], rng: np.random.Generator, group: ProcessGroup = SINGLE_PROCESS
) -> Iterator[Batch]:
    """Every batch with two random views of its rows, good until the next one is asked for."""
    being_read: deque[IntArray] = deque()

    def requests() -> Iterator[tuple[IntArray, IntArray]]:
        for rows in batches:
            being_read.append(rows)
            first, second = two_views(len(rows), features.n_views, rng)
            own = at_least_one(share(group, len(rows)))
            yield np.concatenate([rows[own], rows[own]]), np.concatenate([first[own], second[own]])

    for inputs in read_in_turn(features, requests()):
        yield Batch(being_read.popleft(), inputs)
