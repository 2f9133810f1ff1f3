"""Generalised coverage: how well a few rows stand for all, and the rows that raise it most.

With a Gaussian kernel k(x, s) = exp(−|x − s|² / σ²) a row x is *covered* by a set S as far as its nearest member is
near: max over S of k(x, s), between 0 and 1. The generalised coverage of S (Bae, Noh and Sutherland 2024) is the
weighted sum of that over all rows. It is monotone and submodular, so taking the row with the largest gain, one after
another, reaches at least 1 − 1/e of the best possible.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agcd.arrays import Float64Array, blocks, each_block, lowest, squared_distances
from agcd.types import BoolArray, FloatArray, IntArray

Floats = NDArray[np.float32]

N_NEIGHBOURS = 20
"""The neighbour whose distance sets the default σ; ProbCover and TypiClust look at as many."""
N_MEASURED = 1000
"""Rows by which that distance is measured: the median of a thousand is within a few percent."""
SMALLEST_SIGMA2 = 1e-4
"""For rows of unit length: a product in float32 tells squared distances to about 1e-6, so finer kernels are noise."""
RENEWED_AT_ONCE = 64
"""Gains computed anew at a time: fewer starve the matrix product, more are seldom needed."""
MOST_KEPT = 10_000
"""The kernel of up to so many rows is kept (400 MB) instead of computed again for every gain: four times as fast."""


def greedy_coverage(
    x: FloatArray, weights: FloatArray, covered: FloatArray, may_pick: BoolArray, count: int, sigma2: float
) -> tuple[IntArray, Floats]:
    """The rows that raise Σ weight · coverage most, one after another, and the coverage of each row after them.

    Gains only fall as picks are made, so a gain of an earlier moment is an upper bound: rows are measured again only
    while one with a larger bound may still win (lazy greedy, Minoux 1978). The picks are those of measuring every row
    for every pick; among equals the first row wins. The kernel of more than ``MOST_KEPT`` rows is computed in blocks
    whenever it is needed, so memory grows with n only.

    Parameters
    ----------
    x : (n, d)
    weights : (n,), what covering each row is worth, ≥ 0.
    covered : (n,), the coverage so far, e.g. by labelled rows (``coverage_by``); zeros if there is none.
    may_pick : (n,)
    sigma2 : σ², as ``neighbour_sigma2`` gives it.

    Returns
    -------
    (min(count, rows that may be picked),), most wanted first, and (n,).
    """
    kernel = _Kernel(x, sigma2)
    weights, covered = weights.astype(np.float32), covered.astype(np.float32)
    candidates = np.flatnonzero(may_pick)
    gain = np.full(len(x), -np.inf, dtype=np.float32)
    gain[candidates] = _gains(kernel, candidates, weights, covered)
    fresh = np.ones(len(x), dtype=bool)
    picks: list[int] = []
    while len(picks) < min(count, len(candidates)):
        best = int(gain.argmax())
        if fresh[best]:
            picks.append(best)
            covered = np.maximum(covered, kernel.lines(np.array([best]))[0])
            gain[best] = -np.inf
            fresh[:] = False
        else:
            stale = lowest(np.where(fresh, np.inf, -gain), RENEWED_AT_ONCE)
            stale = stale[gain[stale] > -np.inf]
            gain[stale] = _gains(kernel, stale, weights, covered)
            fresh[stale] = True
    return np.asarray(picks, dtype=np.int64), covered


class _Kernel:
    """exp(−|x − s|² / σ²) between all rows and some of them, by matrix products."""

    def __init__(self, x: FloatArray, sigma2: float):
        self.x = np.asarray(x, np.float32) * np.float32(np.sqrt(2 / sigma2))
        self.half_norms = np.einsum("ij,ij->i", self.x, self.x) / 2
        self.kept: Floats | None = None
        if len(x) <= MOST_KEPT:
            kept = np.empty((len(x), len(x)), np.float32)

            def work(part: slice) -> None:
                self._compute(np.arange(part.start, part.stop), kept[part])

            each_block(len(x), max(len(x) // 16, 1), work)
            self.kept = kept

    def lines(self, positions: IntArray) -> Floats:
        """(m,) → (m, n), the caller's own."""
        if self.kept is not None:
            return self.kept[positions]
        return self._compute(positions, np.empty((len(positions), len(self.x)), np.float32))

    def _compute(self, positions: IntArray, out: Floats) -> Floats:
        np.matmul(self.x[positions], self.x.T, out=out)
        out -= self.half_norms[positions, None]
        out -= self.half_norms
        np.minimum(out, 0, out=out)  # a distance may round to below zero
        return np.exp(out, out=out)


def _gains(kernel: _Kernel, positions: IntArray, weights: Floats, covered: Floats) -> Floats:
    """By how much each of some rows would raise the weighted coverage: (m,) → (m,)."""
    out = np.empty(len(positions), dtype=np.float32)

    def work(part: slice) -> None:
        raised = kernel.lines(positions[part])
        raised -= covered
        np.maximum(raised, 0, out=raised)
        out[part] = raised @ weights

    each_block(len(positions), max(len(covered) // 16, 1), work)
    return out


def coverage_by(nearest: FloatArray, sigma2: float) -> Floats:
    """The coverage of rows whose nearest covering row is at these squared distances: (n,) → (n,); 0 at infinity."""
    return np.exp(-np.asarray(nearest, np.float64) / sigma2).astype(np.float32)


def neighbour_sigma2(x: FloatArray, k: int = N_NEIGHBOURS) -> float:
    """The median squared distance of a row to its k-th nearest other: (n, d) → number.

    Of more than ``N_MEASURED`` rows, so many at equal steps are measured (against all). With one row it is 1.
    """
    k = min(k, len(x) - 1)
    if k < 1:
        return 1.0
    measured = np.unique(np.linspace(0, len(x) - 1, min(len(x), N_MEASURED)).astype(np.int64))
    found: Float64Array = np.empty(len(measured))
    for part in blocks(len(measured), max(len(x) // 16, 1)):
        square = squared_distances(x[measured[part]], x)
        square[np.arange(len(square)), measured[part]] = np.inf
        found[part] = np.partition(square, k - 1, axis=1)[:, k - 1]
    return max(float(np.median(found)), SMALLEST_SIGMA2)
