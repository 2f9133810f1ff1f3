"""Semi-supervised k-means: labelled rows stay in the cluster of their class (Vaze et al., GCD, CVPR 2022).

All distances are matrix products, k-means++ keeps a running minimum, and an empty cluster moves to the row
that is worst served, so that no centre is ever NaN.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from agcd.arrays import squared_distances
from agcd.types import FloatArray, IntArray

Float64 = NDArray[np.float64]


@dataclass(frozen=True)
class Clustering:
    centres: FloatArray
    """(K, d); rows that were labelled k are in cluster k."""
    y_cluster: IntArray
    inertia: float


def distances_to(centres: FloatArray, x: FloatArray) -> FloatArray:
    """Squared distances (n, K) of rows to centres, in the precision of the rows."""
    return squared_distances(x, centres.astype(x.dtype, copy=False))


def semi_supervised_kmeans(
    x: FloatArray,
    y_class: IntArray,
    n_clusters: int,
    rng: np.random.Generator,
    *,
    n_init: int = 3,
    max_iter: int = 50,
) -> Clustering:
    """The best of ``n_init`` runs by inertia.

    Parameters
    ----------
    x : (n, d) features.
    y_class : (n,) class of labelled rows in 0..C−1 with C ≤ n_clusters, −1 elsewhere.
    """
    runs = [lloyd(x, y_class, _start(x, y_class, n_clusters, rng), max_iter=max_iter) for _ in range(n_init)]
    return min(runs, key=lambda run: run.inertia)


def lloyd(x: FloatArray, y_pinned: IntArray, centres: FloatArray, *, max_iter: int = 50) -> Clustering:
    """One run from the given ``centres`` (K, d), whose numbers the clusters keep.

    Parameters
    ----------
    x : (n, d) features.
    y_pinned : (n,) the cluster in which a row must stay, −1 where it is free.
    """
    n_clusters, pinned = len(centres), y_pinned >= 0
    y_cluster = np.full(len(x), -1, dtype=np.int64)
    for _ in range(max_iter):
        distances = distances_to(centres, x)
        nearest = np.where(pinned, y_pinned, distances.argmin(1))
        if np.array_equal(nearest, y_cluster):
            break
        y_cluster = _fill_empty(nearest, distances, pinned, n_clusters)
        centres = cluster_means(x, y_cluster, n_clusters)
    own = distances_to(centres, x)[np.arange(len(x)), y_cluster]
    return Clustering(centres, y_cluster, float(own.sum()))


def _start(x: FloatArray, y_class: IntArray, n_clusters: int, rng: np.random.Generator) -> Float64:
    """Class means for labelled classes, then k-means++ over the unlabelled rows."""
    pinned = y_class >= 0
    n_known = int(y_class.max(initial=-1)) + 1
    free = np.flatnonzero(~pinned) if not pinned.all() else np.arange(len(x))
    centres = [cluster_means(x[pinned], y_class[pinned], n_known)] if n_known else []
    if not centres:
        centres = [np.asarray(x[rng.choice(free)], np.float64)[None]]
    closest = distances_to(centres[0], x[free]).min(1)
    while sum(map(len, centres)) < n_clusters:
        total = closest.sum(dtype=np.float64)
        chosen = rng.choice(len(free), p=closest.astype(np.float64) / total) if total > 0 else rng.integers(len(free))
        new = np.asarray(x[free[chosen]], np.float64)[None]
        centres.append(new)
        closest = np.minimum(closest, distances_to(new, x[free])[:, 0])
    return np.concatenate(centres)


def cluster_means(x: FloatArray, y: IntArray, n: int) -> Float64:
    """The means (n, d) of the rows of ``x`` with the same ``y``; zero where there are none."""
    members = csr_array((np.ones(len(y)), (y, np.arange(len(y)))), shape=(n, len(y)))
    sums: Float64 = members @ np.asarray(x, np.float64)
    return sums / np.maximum(np.bincount(y, minlength=n), 1)[:, None]


def _fill_empty(nearest: IntArray, distances: FloatArray, pinned: NDArray[np.bool_], n_clusters: int) -> IntArray:
    """Give each empty cluster the free row that is farthest from its centre and not alone in its cluster."""
    y = nearest.copy()
    counts = np.bincount(y, minlength=n_clusters)
    own = np.where(pinned, -1.0, distances[np.arange(len(y)), y])
    for cluster in np.flatnonzero(counts == 0):
        movable = np.where(counts[y] > 1, own, -1.0)
        row = int(movable.argmax())
        if movable[row] < 0:
            break
        counts[y[row]] -= 1
        counts[cluster] += 1
        y[row], own[row] = cluster, -1.0
    return y
