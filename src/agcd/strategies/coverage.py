"""Strategies that ask about typical rows, so that few labels speak for many: TypiClust, ProbCover, TCM.

The first two were made for the first questions of all, when no model can be trusted yet; they read features only.
None holds an array of pool × pool numbers: TypiClust compares the members of one cluster, ProbCover keeps one *bit*
per pair of at most ``max_candidates`` rows (50 MB for the default of 20,000). A larger pool is thinned at random to
``max_candidates`` first, so the memory is that of so many rows, whatever the pool.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
from numpy.typing import NDArray

from agcd.arrays import Float64Array, blocks, floats, rank_within, squared_distances, subsample, unit
from agcd.errors import ConfigError
from agcd.strategies.diversity import nearest_labelled
from agcd.strategies.uncertainty import margin
from agcd.types import BoolArray, FloatArray, IntArray, PoolView, grows_with

Bits = NDArray[np.uint8]

SMALLEST_CLUSTER = 5
N_NEIGHBOURS = 20
"""Of TypiClust, as published."""
EXACT_CLUSTERS = 50
"""Up to so many clusters are found by plain k-means, more by mini-batches, as in the code of TypiClust."""
PURE_SHARE = 0.95
"""Of ProbCover: the share of balls that must hold one class alone, as published."""
N_PURITY_BALLS = 1000
"""Balls by which a radius is measured, drawn at random: enough for a share to within a percent or so."""


@grows_with("picks")
def typiclust(
    view: PoolView,
    budget: int,
    rng: np.random.Generator,
    *,
    max_clusters: int = 500,
    max_candidates: int = 100_000,
) -> IntArray:
    """Picks the most typical row of each cluster that has no label yet, large clusters first.

    TypiClust (Hacohen et al. 2022): k-means of labelled rows and pool together into as many clusters as there are
    labels and questions, at most ``max_clusters``; clusters with the fewest labels first, then the largest; from
    each the row with the smallest mean distance to its 20 nearest neighbours in the cluster. Clusters of fewer than
    5 come last, when all others are used up.

    Ours: a labelled *slot* counts once in the number of clusters, because here the labels of the start are many per
    class and would always exhaust ``max_clusters``; when the questions outnumber the clusters, the next typical
    rows follow without measuring the clusters again; of a larger pool only ``max_candidates`` rows drawn at random
    are clustered and asked about.
    """
    if max_clusters < 1:
        raise ConfigError(f"max_clusters is {max_clusters}; it must be at least 1.")
    view = subsample(view, max_candidates, budget, rng)
    x, known = floats(view.features), view.labelled_features
    both = np.concatenate([x, known.astype(x.dtype)]) if len(known) else x
    n_clusters = min(len(np.unique(view.labelled_slots)) + budget, max_clusters)
    cluster = find_clusters(both, n_clusters, rng)
    size, n_labels = np.bincount(cluster), np.bincount(cluster[len(x) :], minlength=cluster.max() + 1)
    of_row = cluster[: len(x)]
    distance = neighbour_distances(x, of_row)
    turn = rank_within(of_row, distance)
    keys = (of_row, -size[of_row], n_labels[of_row], turn, size[of_row] < SMALLEST_CLUSTER)
    return view.rows[np.lexsort(keys)[:budget]]


@grows_with("picks")
def tcm(
    view: PoolView,
    budget: int,
    rng: np.random.Generator,
    *,
    typical_rounds: int = 2,
    max_clusters: int = 500,
    max_candidates: int = 100_000,
) -> IntArray:
    """Picks as TypiClust does in the first rounds and by the smallest margin in all later ones.

    TCM (Doucet et al. 2024): typical rows as long as answers are too few for a model's doubts to be worth anything,
    then its doubts. With pretrained features, the paper finds, the change may come early. Ours: it comes after
    ``typical_rounds`` rounds, whatever their size. ``max_clusters`` and ``max_candidates`` are those of TypiClust.
    """
    if typical_rounds < 0:
        raise ConfigError(f"typical_rounds is {typical_rounds}; it must be at least 0.")
    if view.round > typical_rounds:
        return margin(view, budget, rng)
    return typiclust(view, budget, rng, max_clusters=max_clusters, max_candidates=max_candidates)


def neighbour_distances(x: FloatArray, cluster: IntArray) -> Float64Array:
    """Mean distance of each item to its 20 nearest others of the same cluster: (n, d), (n,) → (n,); inf if alone."""
    out = np.full(len(x), np.inf)
    for members in np.split(np.argsort(cluster, kind="stable"), np.cumsum(np.bincount(cluster))[:-1]):
        k = min(N_NEIGHBOURS, len(members) - 1)
        if k < 1:
            continue
        inside = x[members]
        for part in blocks(len(members), max(len(members) // 16, 1)):
            square = squared_distances(inside[part], inside)
            square[np.arange(len(square)), np.arange(part.start, part.stop)] = np.inf
            nearest = np.partition(square, k - 1, axis=1)[:, :k]
            out[members[part]] = np.sqrt(nearest).mean(1)
    return out


@grows_with("picks")
def probcover(
    view: PoolView,
    budget: int,
    rng: np.random.Generator,
    *,
    delta: float | None = None,
    max_candidates: int = 20_000,
) -> IntArray:
    """Picks, one after another, the row with the most uncovered rows within distance delta.

    ProbCover (Yehuda et al. 2022) on features of unit length. What lies closer than ``delta`` to a labelled row is
    covered from the start. By default delta is the largest radius at which 95 % of the balls hold one cluster only,
    of a k-means into as many clusters as there are slots (their purity rule, here on up to 1,000 balls).

    Ours: of a larger pool only ``max_candidates`` rows drawn at random are covered and asked about; once everything
    is covered, the remaining questions are drawn at random. Ties go to the lower row.
    """
    if delta is not None and not delta > 0:
        raise ConfigError(f"delta is {delta}; it must be positive.")
    if max_candidates < 1:
        raise ConfigError(f"max_candidates is {max_candidates}; it must be at least 1.")
    n = len(view.rows)
    candidates = np.sort(rng.choice(n, max_candidates, replace=False)) if n > max_candidates else np.arange(n)
    x = unit(view.features[candidates])
    if delta is None:
        delta = pure_radius(x, find_clusters(x, view.probs.shape[1], rng), rng)
    known = unit(view.labelled_features) if len(view.labelled_features) else view.labelled_features
    uncovered = nearest_labelled(x, known) >= delta**2 if len(known) else np.ones(len(x), dtype=bool)
    picks = candidates[cover_greedily(ball_bits(x, delta), uncovered, budget)]
    rest = rng.permutation(np.setdiff1d(np.arange(n), picks))
    order: IntArray = np.concatenate([picks, rest])
    return view.rows[order[:budget]]


def pure_radius(x: FloatArray, cluster: IntArray, rng: np.random.Generator) -> float:
    """The largest radius at which 95 % of open balls around sampled items hold one cluster: (n, d), (n,) → number.

    A ball is pure exactly up to the distance of the nearest item of another cluster, so the answer is the 5 %
    quantile of those distances and needs no search. With one cluster it is infinite.
    """
    centres = rng.choice(len(x), min(len(x), N_PURITY_BALLS), replace=False)
    nearest = np.empty(len(centres))
    for part in blocks(len(centres), max(len(x) // 16, 1)):
        square = squared_distances(x[centres[part]], x)
        square[cluster[centres[part], None] == cluster] = np.inf
        nearest[part] = np.sqrt(square.min(1))
    n_impure = math.floor((1 - PURE_SHARE) * len(nearest) + 1e-9)  # the product may round down to just below a number
    return float(np.sort(nearest)[n_impure])


def ball_bits(x: FloatArray, delta: float) -> Bits:
    """Bit (i, j) tells whether items i and j are closer than delta: (n, d) → (n, ⌈n/8⌉)."""
    bits = np.empty((len(x), -(-len(x) // 8)), dtype=np.uint8)
    for part in blocks(len(x), max(len(x) // 16, 1)):
        bits[part] = np.packbits(squared_distances(x[part], x) < delta**2, axis=1)
    return bits


def cover_greedily(bits: Bits, uncovered: BoolArray, budget: int) -> IntArray:
    """Positions whose balls cover the most of what is uncovered, one after another, until nothing or budget is left.

    The ball of j is column j of ``bits``. Each item leaves the counts of all balls once, when it is first covered,
    so all picks together cost no more than counting once.
    """
    uncovered = uncovered.copy()
    gain = _column_counts(bits, np.flatnonzero(uncovered))
    picks: list[int] = []
    while len(picks) < budget and gain.max() > 0:
        pick = int(gain.argmax())
        in_ball = (bits[:, pick // 8] >> (7 - pick % 8)) & 1 == 1
        covered = np.flatnonzero(in_ball & uncovered)
        uncovered[covered] = False
        gain -= _column_counts(bits, covered)
        picks.append(pick)
    return np.asarray(picks, dtype=np.int64)


def _column_counts(bits: Bits, items: IntArray) -> IntArray:
    """How many of ``items`` lie in each ball: (n,)."""
    count = np.zeros(len(bits), dtype=np.int64)
    for part in blocks(len(items), max(len(bits) // 16, 1)):
        count += np.unpackbits(bits[items[part]], axis=1, count=len(bits)).sum(0, dtype=np.int64)
    return count


def find_clusters(x: FloatArray, n_clusters: int, rng: np.random.Generator) -> IntArray:
    """The k-means cluster of each item: (n, d) → (n,); fewer clusters than wanted where items are equal."""
    from sklearn.cluster import KMeans, MiniBatchKMeans  # here, because it takes a second to load
    from sklearn.exceptions import ConvergenceWarning

    n_clusters, seed = min(n_clusters, len(x)), int(rng.integers(2**31))
    if n_clusters <= EXACT_CLUSTERS:
        model = KMeans(n_clusters, n_init=1, random_state=seed)
    else:
        model = MiniBatchKMeans(n_clusters, n_init=1, batch_size=5000, random_state=seed)
    with warnings.catch_warnings():  # fewer distinct points than clusters is no fault here
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(model.fit_predict(x), dtype=np.int64)
