"""Which rows and which of their views make up each training batch, and reading them while the last one is learned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from torch import Tensor

from agcd.features.rows import RowFeatures
from agcd.types import IntArray


class Batch(NamedTuple):
    """Rows (B,) and the tail's input (2B, …) for two views of each: first views, then second."""

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


def read_ahead(features: RowFeatures, batches: Iterable[IntArray], rng: np.random.Generator) -> Iterator[Batch]:
    """Every batch with two random views of its rows; the next one is read from the disk meanwhile."""
    before: tuple[IntArray, Future[Tensor]] | None = None
    with ThreadPoolExecutor(1, thread_name_prefix="agcd-read") as reader:
        for rows in batches:
            first, second = two_views(len(rows), features.n_views, rng)
            wanted = np.concatenate([rows, rows]), np.concatenate([first, second])
            reading = rows, reader.submit(features.read, *wanted)
            if before:
                yield Batch(before[0], before[1].result())
            before = reading
        if before:
            yield Batch(before[0], before[1].result())
