"""Strategies that spread their picks over the feature space: k-means and CoreSet.

Neither forms an array of pool × pool: CoreSet measures the pool against a handful of picks at a time, in blocks, and
k-means clusters a sample of a large pool.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from agcd.arrays import Float64Array, blocks, each_block, floats, rank_within, subsample
from agcd.errors import ConfigError
from agcd.types import FloatArray, IntArray, PoolView, grows_with

FEWEST_CANDIDATES, MOST_CANDIDATES = 1 << 12, 1 << 17
"""Of CoreSet's exact search: bounds of what is copied into memory at a time (200 MB for 384 numbers in float32)."""


@grows_with("picks")
def kmeans(
    view: PoolView,
    budget: int,
    rng: np.random.Generator,
    *,
    n_init: int = 1,
    minibatch: bool = False,
    max_candidates: int | None = 100_000,
) -> IntArray:
    """Picks the row nearest to each centre of a k-means clustering with as many clusters as questions.

    Large clusters come first. Where fewer clusters than questions are left (equal features), the next nearest
    members follow. ``n_init`` restarts are made (the paper's code left it to the library, whose default has
    changed from 10 to 1). Of a pool larger than ``max_candidates`` so many rows are drawn at random, clustered and
    asked about; ``minibatch`` trades some more quality for speed.
    """
    from sklearn.cluster import KMeans, MiniBatchKMeans  # here, because it takes a second to load
    from sklearn.exceptions import ConvergenceWarning

    if n_init < 1:
        raise ConfigError(f"n_init is {n_init}; it must be at least 1.")
    view = subsample(view, max_candidates, budget, rng)
    x = floats(view.features)
    model = (MiniBatchKMeans if minibatch else KMeans)(
        min(budget, len(x)), n_init=n_init, random_state=int(rng.integers(2**31))
    )
    with warnings.catch_warnings():  # fewer distinct points than clusters is no fault here
        warnings.simplefilter("ignore", ConvergenceWarning)
        cluster = np.asarray(model.fit_predict(x), dtype=np.int64)
    distance = np.empty(len(x))
    for part in blocks(len(x), x.shape[1]):
        gap = x[part] - model.cluster_centers_[cluster[part]]
        distance[part] = np.einsum("ij,ij->i", gap, gap)
    size = np.bincount(cluster)[cluster]
    return view.rows[np.lexsort((distance, -size, rank_within(cluster, distance)))[:budget]]


@grows_with("picks")
def coreset(view: PoolView, budget: int, rng: np.random.Generator, *, max_candidates: int | None = None) -> IntArray:
    """Picks, one after another, the row farthest from everything labelled or picked so far.

    Greedy farthest-first (Sener & Savarese 2018, without their integer programme). With nothing labelled the first
    pick is the row farthest from the mean of the pool. Ties go to the lower row.

    Exact at any size; with ``max_candidates`` so many rows are drawn at random first and the picks are among them.
    """
    view = subsample(view, max_candidates, budget, rng)
    return view.rows[farthest_first(view.features, view.labelled_features, min(budget, len(view.rows)))]


def farthest_first(x: FloatArray, labelled: FloatArray, count: int) -> IntArray:
    """Positions of the greedy farthest-first picks: (n, d), (m, d) → (count,).

    Distances to the nearest pick only fall, so those of an earlier moment are upper bounds. The rows with the largest
    bounds are the *candidates*: as long as one of them is farther than any bound outside, it is the farthest of all,
    and only candidates need to be measured against each pick. When none is, the whole pool is measured against the
    picks made since, in one matrix product per block. There are as many candidates as make both kinds of work equal.
    """
    picks: list[int] = []
    nearest = nearest_labelled(x, labelled)
    if not len(labelled):
        picks.append(int(squared_distance_to(x, x.mean(axis=0, dtype=np.float64)).argmax()))
        nearest = squared_distance_to(x, x[picks[0]])
    n_candidates = len(x) // 32
    while len(picks) < count:
        n_candidates = min(max(n_candidates, FEWEST_CANDIDATES), MOST_CANDIDATES)
        nearest[picks] = -1.0  # below every distance, so never again, even when all that is left is at zero
        new, n_measured = _farthest_among(_Candidates.of(x, nearest, n_candidates), count - len(picks))
        picks += new
        if len(picks) < count:
            lower(nearest, x, x[new])
        if n_measured < len(x):
            n_candidates *= 2
        elif n_measured > 4 * len(x):
            n_candidates //= 2
    return np.asarray(picks)


@dataclass
class _Candidates:
    """The rows with the largest distances, lower rows first among equals, and what is known of all others."""

    positions: IntArray
    points: FloatArray
    nearest: Float64Array
    ceiling: float
    """No row outside is farther than this."""
    first_outside: int
    """No row outside that reaches the ceiling comes before this one."""

    @classmethod
    def of(cls, x: FloatArray, nearest: Float64Array, count: int) -> _Candidates:
        count = min(count, len(nearest))
        ceiling = float(np.partition(nearest, len(nearest) - count)[len(nearest) - count])
        above, equal = np.flatnonzero(nearest > ceiling), np.flatnonzero(nearest == ceiling)
        inside, outside = np.split(equal, [count - len(above)])
        positions = np.sort(np.concatenate([above, inside]))
        first_outside = int(outside[0]) if len(outside) else len(nearest)
        return cls(positions, floats(x[positions]), nearest[positions], ceiling, first_outside)

    def keep(self, which: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
        self.positions, self.points, self.nearest = self.positions[which], self.points[which], self.nearest[which]


def _farthest_among(candidates: _Candidates, count: int) -> tuple[list[int], int]:
    """Picks, as long as the farthest row of all is a candidate, and how many distances that took; at least one pick."""
    picks: list[int] = []
    n_measured = 0
    while len(picks) < count:
        best = int(candidates.nearest.argmax())
        position, farthest = int(candidates.positions[best]), candidates.nearest[best]
        if farthest < candidates.ceiling or (farthest == candidates.ceiling and position > candidates.first_outside):
            break
        picks.append(position)
        n_measured += len(candidates.points)
        distance = squared_distance_to(candidates.points, candidates.points[best])
        np.minimum(candidates.nearest, distance, out=candidates.nearest)
        candidates.nearest[best] = -1.0
        useful = candidates.nearest >= candidates.ceiling
        if not useful.any():
            break
        if 2 * useful.sum() < len(useful):
            candidates.keep(useful)
    return picks, n_measured


def squared_distance_to(x: FloatArray, centre: FloatArray) -> Float64Array:
    """|x_i − centre|²: (n, d), (d,) → (n,).

    By differences and not by |x|² + |c|² − 2x·c, whose rounding hides how near a near-duplicate is (the reference
    takes the root of such a negative number and then picks the NaN).
    """
    point = centre.astype(np.result_type(x.dtype, np.float32))
    out = np.empty(len(x))

    def work(part: slice) -> None:
        gap = x[part].astype(point.dtype, copy=False) - point
        out[part] = np.einsum("ij,ij->i", gap, gap)

    each_block(len(x), x.shape[1], work)
    return out


def nearest_labelled(x: FloatArray, labelled: FloatArray) -> Float64Array:
    """The squared distance of each item to its nearest labelled one: (n, d), (m, d) → (n,); inf when m = 0."""
    out = np.full(len(x), np.inf)
    if len(labelled):
        lower(out, x, labelled)
    return out


def lower(nearest: Float64Array, x: FloatArray, centres: FloatArray) -> None:
    """Lower squared distances ``nearest`` (n,) to those from items (n, d) to their nearest centre (m, d), in place.

    One matrix product per block finds the centres that may be the nearest within its rounding, mostly one per item;
    their distances are then taken by differences, as in ``squared_distance_to``. For the product both sides are shifted
    by the mean of the centres, which keeps it accurate for features far from the origin.
    """
    dtype = np.result_type(x.dtype, centres.dtype, np.float32)
    centres = centres.astype(dtype)
    shift = centres.mean(axis=0, dtype=np.float64).astype(dtype)
    known = centres - shift
    half_norms = np.einsum("ij,ij->i", known, known) / 2
    rounding = float(np.finfo(dtype).eps) * (x.shape[1] + 4)  # of a scalar product, as a share of the squared norms

    def work(part: slice) -> None:
        block = x[part].astype(dtype, copy=False)
        shifted = block - shift
        gain = shifted @ known.T - half_norms
        best, norms = gain.max(1), np.einsum("ij,ij->i", shifted, shifted)
        doubt = rounding * (norms + 2 * half_norms.max())
        near = np.flatnonzero(norms - 2 * best - doubt < nearest[part])
        line, centre = np.nonzero(gain[near] >= (best - doubt)[near, None])
        for pairs in blocks(len(line), x.shape[1]):
            item = near[line[pairs]]
            gap = block[item] - centres[centre[pairs]]
            np.minimum.at(nearest[part], item, np.einsum("ij,ij->i", gap, gap))

    each_block(len(x), max(len(known) // 16, x.shape[1]), work)  # wider than cache: few rows starve the product
