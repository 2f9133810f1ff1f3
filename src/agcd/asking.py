"""Which row to ask about next: the one that covers the most of what the labels leave uncertain.

Coverage is that of MaxHerding (``agcd.herding``): a row counts as covered as far as a labelled or asked row is near.
Covering a row is worth as much as the labels leave it uncertain (``agcd.beliefs``). Uncertainty alone would draw
questions into borders that no answer can clear up, and coverage alone would go on asking where everything is clear;
what was covered once stays so, whatever the beliefs become. There are no phases, no shares per slot, and the number of
classes plays no part.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, get_index_dtype

from agcd.accuracy import DRAWN_EVERY
from agcd.arrays import entries_of, unit
from agcd.beliefs import Belief, Beliefs
from agcd.evidence import NO_CLASS
from agcd.herding import coverage_by, neighbour_sigma2
from agcd.propagation import N_NEIGHBOURS, nearest, normalised_graph
from agcd.rng import generator
from agcd.types import BoolArray, FloatArray, IntArray

Floats = NDArray[np.float32]

KERNEL_NEIGHBOURS = 100
"""Neighbours that a row may cover. σ is the distance to about the 20th, so the kernel has fallen to a few percent at
the hundredth; 50 lost a few tenths of a point, 200 picked the same rows (docs/LOG.md)."""


_NO_ROWS = np.empty(0, np.int64)


@dataclass(frozen=True)
class Neighbours:
    """The rows nearest to each row of a pool: all that asking needs of its features, so that it can be kept."""

    near: IntArray
    """(n, k)"""
    cosine: Floats
    """(n, k)"""
    sigma2: float
    """The squared width of the coverage kernel (``agcd.herding``)."""

    @classmethod
    def of(cls, x: FloatArray, k: int = KERNEL_NEIGHBOURS) -> Self:
        """The neighbours in a pool of features (n, d)."""
        x = np.asarray(unit(x), np.float32)
        near, cosine = nearest(x, min(k, len(x) - 1))
        falling = np.argsort(-cosine, axis=1, kind="stable")
        near, cosine = np.take_along_axis(near, falling, 1), np.take_along_axis(cosine, falling, 1)
        return cls(near, cosine, neighbour_sigma2(x))


@dataclass(frozen=True)
class Moment:
    """What the labels of one moment say; later ones do not change it."""

    y_class: IntArray
    """(n,): the labels."""
    beliefs: Beliefs
    belief: Belief
    """Of all rows."""
    kernel: csr_array
    """Of ``coverage_kernel``."""

    def after(self, y_class: IntArray) -> Moment:
        """What other labels (n,) say."""
        beliefs = self.beliefs.copy()
        beliefs.follow(self.y_class, y_class)
        return Moment(y_class, beliefs, beliefs.at(), self.kernel)


class Asking:
    """One question after another about the rows of a pool, each decided after all answers so far.

    Rows are positions in ``x``. A question that is asked and not answered yet counts as covered (``cover``), so several
    people can be asked at once and a batch is nothing but questions without answers in between.

    Parameters
    ----------
    x : (n, d), features; or the neighbours among them.
    y_class : (n,), the classes of labelled rows, −1 elsewhere.
    may_ask : (n,), the rows that may be asked about; None: all without a label.
    n_neighbours : neighbours along which labels are propagated.
    """

    def __init__(
        self,
        x: FloatArray | Neighbours,
        y_class: IntArray,
        may_ask: BoolArray | None = None,
        *,
        n_neighbours: int = N_NEIGHBOURS,
    ):
        pool = x if isinstance(x, Neighbours) else Neighbours.of(x, max(KERNEL_NEIGHBOURS, n_neighbours))
        n = len(pool.near)
        graph = normalised_graph(pool.near[:, :n_neighbours], pool.cosine[:, :n_neighbours])
        self.beliefs = Beliefs(graph, int(y_class.max(initial=-1)) + 1)
        self.kernel = coverage_kernel(pool.near, pool.cosine, pool.sigma2)
        self.covered = np.zeros(n, np.float32)
        self._open = self.kernel.data.copy()
        """By entry (i, j) of the kernel, what j would cover of i that nothing covers yet."""
        self._may_ask = np.ones(n, np.bool_) if may_ask is None else may_ask
        self.may_ask = self._may_ask.copy()
        self.y_class = np.full(n, NO_CLASS, np.int64)
        """(n,): the labels so far."""
        self._weigh()
        self.asked = _NO_ROWS
        """Rows without a label that are asked about or passed over."""
        self.follow(y_class)

    def next(self) -> int:
        """The row to ask about next; it is an error if none is left."""
        gain = np.where(self.may_ask, self.gains(), -1)
        best = int(gain.argmax())
        if not self.may_ask[best]:
            raise IndexError("every row is labelled or asked about")
        return best

    def draw(self, rng: np.random.Generator) -> int:
        """A row drawn at random of those that may be asked about: what ``agcd.accuracy`` learns most from."""
        left = np.flatnonzero(self.may_ask)
        if not len(left):
            raise IndexError("every row is labelled or asked about")
        return int(rng.choice(left))

    def gains(self) -> Floats:
        """(n,): how much uncertainty each row would cover that nothing covers yet."""
        is_open = csr_array((self._open, self.kernel.indices, self.kernel.indptr), shape=self.kernel.shape)
        return np.asarray(is_open.T @ self._weights, np.float32)

    def gain(self, row: int) -> float:
        """The same for one row."""
        own = slice(self.kernel.indptr[row], self.kernel.indptr[row + 1])
        places = self.kernel.indices[own]
        return float((np.maximum(self.kernel.data[own] - self.covered[places], 0) * self._weights[places]).sum())

    def question(self, number: int) -> tuple[int, bool]:
        """The row of question ``number`` (from 0 on), and whether it was drawn at random: every fourth is, so that
        ``agcd.accuracy`` can judge by the answers how good the beliefs are."""
        is_drawn = (number + 1) % DRAWN_EVERY == 0
        return (self.draw(generator(0, "question", number)) if is_drawn else self.next()), is_drawn

    def cover(self, rows: Iterable[int]) -> None:
        """These rows are labelled, or asked about: what lies near them is covered, and they are not asked again."""
        closed = np.fromiter(rows, np.int64)
        own, before = entries_of(self.kernel.indptr, closed), self.covered.copy()
        np.maximum.at(self.covered, self.kernel.indices[own], self.kernel.data[own])
        self.may_ask[closed] = False
        self._reopen(np.flatnonzero(self.covered > before))

    def _reopen(self, rows: IntArray) -> None:
        """Work out what is open of ``rows``, which are covered otherwise than before."""
        entries = entries_of(self.kernel.indptr, rows)
        covered = np.repeat(self.covered[rows], np.diff(self.kernel.indptr)[rows])
        self._open[entries] = np.maximum(self.kernel.data[entries] - covered, 0)

    def tell(self, row: int, y_class: int) -> None:
        """The answer to a question."""
        self.cover([row])
        self.y_class[row] = y_class
        self.beliefs.add(np.array([row]), y_class)
        self._weigh()

    def follow(self, y_class: IntArray, asked: IntArray = _NO_ROWS) -> None:
        """Bring the labels to ``y_class`` (n,), and the rows that are asked about or passed over without one to
        ``asked``; answers may be new, others, or taken back. As if it had been so from the start, up to rounding."""
        before = self.y_class
        self.beliefs.follow(before, y_class)
        closed, closed_before = (y_class >= 0), (before >= 0)
        closed[asked] = True
        closed_before[self.asked] = True
        is_changed = not np.array_equal(before, y_class)
        self.y_class, self.asked = y_class.copy(), asked.copy()
        if (closed_before & ~closed).any():  # what they covered others may cover too: begin anew
            self.covered[:] = 0
            self._open[:] = self.kernel.data
            self.may_ask = self._may_ask.copy()
            closed_before[:] = False
        self.cover(np.flatnonzero(closed & ~closed_before).tolist())
        if is_changed:
            self._weigh()

    def moment(self) -> Moment:
        """What the labels say now, to be kept."""
        return Moment(self.y_class.copy(), self.beliefs.copy(), self.belief, self.kernel)

    def _weigh(self) -> None:
        """Work out what only answers change: what is believed of all rows, and what covering each is worth, which is
        nothing where it is labelled."""
        self.belief: Belief = self.beliefs.at()
        self._weights = np.where(self.y_class < 0, 1 - self.belief.margin, np.float32(0))


def coverage_kernel(near: IntArray, cosine: Floats, sigma2: float) -> csr_array:
    """exp(−distance² / σ²) between rows of unit length and their neighbours: (n, k), (n, k) → (n, n), symmetric.

    Each row has itself, with 1, and every row of which either is a neighbour of the other.
    """
    n, k = near.shape
    values = coverage_by(np.maximum(2 - 2 * cosine, 0), sigma2)
    values[near == np.arange(n)[:, None]] = 0  # a row that stands in for a neighbour it lacks
    ends = np.arange(n + 1) * k
    index = get_index_dtype(maxval=max(n, 2 * n * k))  # the smaller one makes ``gains`` a third faster
    one_way = csr_array((values.ravel(), near.ravel().astype(index), ends.astype(index)), shape=(n, n))
    return csr_array(one_way.maximum(one_way.T) + eye_array(n, dtype=np.float32), dtype=np.float32)
