"""Which row to ask about next: the one that covers the most of what the labels leave uncertain.

Coverage is that of MaxHerding (``agcd.herding``): a row counts as covered as far as a labelled or asked row is near.
Covering a row is worth as much as the labels leave it uncertain (``agcd.beliefs``). Uncertainty alone would draw
questions into borders that no answer can clear up, and coverage alone would go on asking where everything is clear;
what was covered once stays so, whatever the beliefs become. There are no phases, no shares per slot, and the number of
classes plays no part.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array

from agcd.arrays import unit
from agcd.beliefs import Beliefs
from agcd.herding import coverage_by, neighbour_sigma2
from agcd.propagation import N_NEIGHBOURS, nearest, normalised_graph
from agcd.types import BoolArray, FloatArray, IntArray

Floats = NDArray[np.float32]

KERNEL_NEIGHBOURS = 100
"""Neighbours that a row may cover. σ is the distance to about the 20th, so the kernel has fallen to a few percent at
the hundredth; 50 lost a few tenths of a point, 200 picked the same rows (docs/LOG.md)."""


class Asking:
    """One question after another about the rows of a pool, each decided after all answers so far.

    Rows are positions in ``x``. A question that is asked and not answered yet counts as covered (``cover``), so several
    people can be asked at once and a batch is nothing but questions without answers in between.

    Parameters
    ----------
    x : (n, d), features.
    y_class : (n,), the classes of labelled rows, −1 elsewhere.
    may_ask : (n,), the rows that may be asked about; None: all without a label.
    n_neighbours : neighbours along which labels are propagated.
    """

    def __init__(
        self,
        x: FloatArray,
        y_class: IntArray,
        may_ask: BoolArray | None = None,
        *,
        n_neighbours: int = N_NEIGHBOURS,
    ):
        x = np.asarray(unit(x), np.float32)
        near, cosine = nearest(x, min(max(KERNEL_NEIGHBOURS, n_neighbours), len(x) - 1))
        closest = np.argsort(-cosine, axis=1, kind="stable")[:, :n_neighbours]
        graph = normalised_graph(np.take_along_axis(near, closest, 1), np.take_along_axis(cosine, closest, 1))
        self.beliefs = Beliefs(graph, int(y_class.max(initial=-1)) + 1)
        self.beliefs.add_all(y_class)
        self.kernel = coverage_kernel(near, cosine, neighbour_sigma2(x))
        self.covered = np.zeros(len(x), np.float32)
        self.may_ask = y_class < 0 if may_ask is None else may_ask & (y_class < 0)
        self._unlabelled = y_class < 0
        self._weights = self._weigh()
        self.cover(np.flatnonzero(y_class >= 0))

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
        rise = self.kernel.data - self.covered[self.kernel.indices]
        np.maximum(rise, 0, out=rise)
        rise *= self._weights[self.kernel.indices]
        return np.asarray(np.add.reduceat(rise, self.kernel.indptr[:-1]), np.float32)

    def cover(self, rows: Iterable[int]) -> None:
        """These rows are labelled, or asked about: what lies near them is covered, and they are not asked again."""
        for row in rows:
            own = slice(self.kernel.indptr[row], self.kernel.indptr[row + 1])
            places = self.kernel.indices[own]
            self.covered[places] = np.maximum(self.covered[places], self.kernel.data[own])
            self.may_ask[row] = False

    def tell(self, row: int, y_class: int) -> None:
        """The answer to a question."""
        self.cover([row])
        self._unlabelled[row] = False
        self.beliefs.add(np.array([row]), y_class)
        self._weights = self._weigh()

    def _weigh(self) -> Floats:
        """(n,): what covering each row is worth, which only answers change: nothing where it is labelled."""
        return np.where(self._unlabelled, 1 - self.beliefs.at().margin, np.float32(0))


def coverage_kernel(near: IntArray, cosine: Floats, sigma2: float) -> csr_array:
    """exp(−distance² / σ²) between rows of unit length and their neighbours: (n, k), (n, k) → (n, n), symmetric.

    Each row has itself, with 1, and every row of which either is a neighbour of the other.
    """
    n, k = near.shape
    values = coverage_by(np.maximum(2 - 2 * cosine, 0), sigma2)
    values[near == np.arange(n)[:, None]] = 0  # a row that stands in for a neighbour it lacks
    one_way = csr_array((values.ravel(), near.ravel(), np.arange(n + 1) * k), shape=(n, n))
    return csr_array(one_way.maximum(one_way.T) + eye_array(n, dtype=np.float32), dtype=np.float32)
