"""Which rows and which of their views make up each training batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agcd.features.devices import CPU, sent
from agcd.features.reading import read_in_turn
from agcd.features.rows import RowFeatures
from agcd.training.process_group import SINGLE_PROCESS, ProcessGroup, at_least_one, share
from agcd.types import IntArray


class Batch(NamedTuple):
    """Rows (B,) and the tail's input (2B, …) for two views of each: first views, then second.

    In a process group ``inputs`` are those of the rows that this one works on; all else is of all rows. Positions stand
    beside ``y_class`` because a device that is given a Boolean mask must be asked how many it lets through, and nobody
    should wait for it at every step.
    """

    rows: IntArray
    inputs: Tensor
    y_class: Tensor
    """(B,), −1 for rows that count as unlabelled."""
    labelled: Tensor
    """Where in the batch the labelled rows are."""
    unlabelled: Tensor


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
    features: RowFeatures,
    batches: Sequence[IntArray],
    y_class: Sequence[IntArray],
    rng: np.random.Generator,
    group: ProcessGroup = SINGLE_PROCESS,
    device: torch.device = CPU,
) -> Iterator[Batch]:
    """Every batch with two random views of its rows and their classes, good until the next one is asked for.

    All of it is on the device; what says which row is what goes there once, before the first batch.
    """
    labelled = [np.flatnonzero(y >= 0) for y in y_class]
    unlabelled = [np.flatnonzero(y < 0) for y in y_class]
    told = [sent_together(parts, device) for parts in (y_class, labelled, unlabelled)]

    def requests() -> Iterator[tuple[IntArray, IntArray]]:
        for rows in batches:
            first, second = two_views(len(rows), features.n_views, rng)
            own = at_least_one(share(group, len(rows)))
            yield np.concatenate([rows[own], rows[own]]), np.concatenate([first[own], second[own]])

    inputs = read_in_turn(features, requests(), device)
    yield from map(Batch, batches, inputs, *told)


def sent_together(parts: Sequence[NDArray[Any]], device: torch.device) -> tuple[Tensor, ...]:
    """Arrays of one kind as tensors on the device, by one transfer."""
    if not parts:
        return ()
    return torch.split(sent(np.concatenate(parts), device), [len(part) for part in parts])
