"""Label propagation over a graph of nearest neighbours: how certain labels make every row, and which row to ask.

Rows are joined with their nearest neighbours in feature space. Every class sends out as much evidence as any other,
divided among its labelled rows, and the evidence flows along the graph and fades on the way (Zhou et al. 2003). The
*certainty* of a row is high when much evidence has reached it and most of it speaks for one class. What is certain may
be learned from; what is not should be asked about; and the answer that makes the most certain is that of the row with
the widest *reach*: the most uncertainty around it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from agcd.arrays import blocks, unit
from agcd.types import BoolArray, FloatArray, IntArray

Floats = NDArray[np.float32]

N_NEIGHBOURS = 10
"""10 or 20 came out alike (docs/LOG.md)."""
SHARPNESS = 10
"""The power of the cosine that joins two neighbours: closer ones count for much more."""
FADING = 0.9
"""What is left of evidence after one step along the graph."""
N_STEPS = 20
"""Steps of propagation: of what has flowed so far, 0.9²⁰ = 12 % is left."""
REACH_STEPS = 10
"""Steps along the graph that the reach of a row counts; chosen with the strategy, not tuned."""
FAINT_EVIDENCE = 2.0
"""The evidence, as a multiple of the median row's, at which an undisputed row has certainty ½."""
EXACT_ROWS = 20_000
"""Neighbours are looked for among all rows up to so many, among those of nearby cells beyond."""
CELL_ROWS = 1000
NEARBY_CELLS = 8
"""Cells of about a thousand rows, eight of which are searched: the work per row stays that of 8,000 rows."""
_BLOCK_NUMBERS = 1 << 22
"""More than strategies take: products of wide blocks pay more than staying in the cache."""
_CLASSES_AT_ONCE = 64
"""Columns of evidence held at a time: bounds memory at 64 numbers per row, whatever the number of classes."""


@dataclass(frozen=True)
class Propagation:
    """What the labels of some rows say about all rows."""

    y_class: IntArray
    """(n,): the class with the most evidence; −1 where none has arrived."""
    margin: Floats
    """(n,): the share of the evidence that speaks for that class, less the share of the next one."""
    amount: Floats
    """(n,): all evidence that has arrived, as a multiple of what the middle one of the rows it reached has."""

    @property
    def certainty(self) -> Floats:
        """(n,), between 0 and 1: the margin of the class, or less where little evidence has arrived."""
        return np.asarray(np.minimum(self.margin, self.amount / (self.amount + FAINT_EVIDENCE)), np.float32)


def neighbour_graph(x: FloatArray, k: int = N_NEIGHBOURS) -> csr_array:
    """Weights (n, n) between each row of ``x`` (n, d) and its ``k`` nearest by cosine, symmetric and normalised.

    Two rows are joined when either is among the nearest of the other.
    """
    x = unit(np.asarray(x, np.float32))
    return normalised_graph(*nearest(x, min(k, len(x) - 1)))


def normalised_graph(near: IntArray, cosine: Floats) -> csr_array:
    """The graph of rows with these neighbours and cosines to them: (n, k), (n, k) → (n, n)."""
    n, k = near.shape
    weights = np.maximum(cosine, 0) ** SHARPNESS
    one_way = csr_array((weights.ravel(), near.ravel(), np.arange(n + 1) * k), shape=(n, n))
    joined = (one_way + one_way.T).tocsr()
    scale = diags_array(1 / np.sqrt(np.maximum(joined.sum(1), 1e-12)), dtype=np.float32)
    return csr_array(scale @ joined @ scale, dtype=np.float32)


def nearest(x: Floats, k: int) -> tuple[IntArray, Floats]:
    """The ``k`` rows with the largest cosine to each row of unit length, without itself: (n, d) → (n, k), (n, k).

    Exact up to ``EXACT_ROWS``. Of more rows about every ``CELL_ROWS``-th is the centre of a cell, and neighbours are
    those found in the nearest cells.
    """
    if len(x) <= EXACT_ROWS:
        everything = np.arange(len(x))
        return _nearest_among(x, everything, everything, k)
    centres = x[::CELL_ROWS]
    cell = np.concatenate([(x[part] @ centres.T).argmax(1) for part in blocks(len(x), len(centres), _BLOCK_NUMBERS)])
    members = np.split(np.argsort(cell, kind="stable"), np.cumsum(np.bincount(cell, minlength=len(centres)))[:-1])
    similar = centres @ centres.T
    np.fill_diagonal(similar, np.inf)  # a centre of length zero is no nearer to itself than to others
    nearby = np.argsort(-similar, axis=1, kind="stable")[:, :NEARBY_CELLS]
    near, cosine = np.empty((len(x), k), np.int64), np.empty((len(x), k), np.float32)
    for own, cells in zip(members, nearby, strict=True):
        if len(own):
            candidates = np.concatenate([members[c] for c in cells])
            near[own], cosine[own] = _nearest_among(x, own, candidates, k)
    return near, cosine


def _nearest_among(x: Floats, rows: IntArray, candidates: IntArray, k: int) -> tuple[IntArray, Floats]:
    """The nearest ``candidates`` of each of ``rows``; where there are too few, a row stands in as its own neighbour
    with cosine 0, which joins nothing."""
    near, cosine = np.repeat(rows[:, None], k, 1), np.zeros((len(rows), k), np.float32)
    others = x[candidates]
    k = min(k, len(candidates) - 1)
    if k < 1:
        return near, cosine
    for part in blocks(len(rows), len(candidates), _BLOCK_NUMBERS):
        similar = x[rows[part]] @ others.T
        similar[rows[part, None] == candidates] = -np.inf
        best = np.argpartition(-similar, k - 1, axis=1)[:, :k]
        near[part, :k], cosine[part, :k] = candidates[best], np.take_along_axis(similar, best, 1)
    return near, cosine


def propagate_labels(graph: csr_array, y_class: IntArray, n_classes: int) -> Propagation:
    """The class that the labels of the nearest labelled rows suggest for every row, and how strongly.

    Parameters
    ----------
    y_class : (n,), the class of labelled rows, −1 elsewhere.
    """
    n, labelled = len(y_class), np.flatnonzero(y_class >= 0)
    share = 1 / np.bincount(y_class[labelled], minlength=n_classes)[y_class[labelled]]
    best, second, total = (np.zeros(n, np.float32) for _ in range(3))
    winner = np.full(n, -1, dtype=np.int64)
    for first in range(0, n_classes, _CLASSES_AT_ONCE):
        own = (y_class[labelled] >= first) & (y_class[labelled] < first + _CLASSES_AT_ONCE)
        start = np.zeros((n, min(_CLASSES_AT_ONCE, n_classes - first)), np.float32)
        start[labelled[own], y_class[labelled[own]] - first] = share[own]
        arrived = _flow(graph, start)
        total += arrived.sum(1)
        place = arrived.argmax(1)
        top = np.take_along_axis(arrived, place[:, None], 1)[:, 0]
        arrived[np.arange(n), place] = 0
        second = np.maximum(np.minimum(best, top), np.maximum(second, arrived.max(1)))
        winner = np.where(top > best, place + first, winner)
        best = np.maximum(best, top)
    reached = total[(y_class < 0) & (total > 0)]
    middle = np.median(reached) if len(reached) else 1.0
    tiny = np.float32(1e-30)
    margin = np.asarray((best - second) / np.maximum(total, tiny), np.float32)
    return Propagation(winner, margin, np.asarray(total / max(middle, tiny), np.float32))


def _flow(graph: csr_array, start: Floats) -> Floats:
    """Where evidence is after it has flowed along the graph and faded, step by step: (n, C) → (n, C)."""
    now = start
    for _ in range(N_STEPS):
        now = FADING * (graph @ now) + (1 - FADING) * start
    return now


def widest_reach(graph: csr_array, uncertainty: Floats, may_pick: BoolArray, count: int) -> IntArray:
    """Rows with the most uncertainty around them, one after another: (n,), (n,) → (up to count,).

    The reach of a row is the sum of the uncertainty around it, faded by the way there. Every pick takes away
    the uncertainty it reaches (all of it where it arrives at least half as strong as at home), so that the next one
    lies elsewhere.
    """
    uncertainty, may_pick = uncertainty.astype(np.float32), may_pick.copy()
    picks: list[int] = []
    for _ in range(min(count, int(may_pick.sum()))):
        pick = int(np.where(may_pick, faded_sum(graph, uncertainty), -1).argmax())
        picks.append(pick)
        may_pick[pick] = False
        touched = np.zeros(len(uncertainty), np.float32)
        touched[pick] = 1
        touched = faded_sum(graph, touched)
        uncertainty = uncertainty * (1 - np.minimum(2 * touched / touched[pick], 1))
    return np.asarray(picks, dtype=np.int64)


def faded_sum(graph: csr_array, x: Floats) -> Floats:
    """Each row's own number and what the rows around it send: Σₜ (fading · graph)ᵗ x."""
    total, sent = x.copy(), x
    for _ in range(REACH_STEPS):
        sent = FADING * (graph @ sent)
        total += sent
    return total
