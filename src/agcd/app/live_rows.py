"""Which rows are followed while people answer: neighbours and clusters of all, or of a sample of a large pool."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin
from sklearn.random_projection import GaussianRandomProjection

from agcd.app.rounds import LiveRows
from agcd.arrays import blocks
from agcd.asking import Neighbours
from agcd.rng import generator
from agcd.types import IntArray

LIVE_ROWS = 10_000
"""Rows among which answers are followed at most: an answer costs the same in any larger pool."""
CLUSTERS_PER_ROOT = 2.0
"""Clusters for every root of the number of live rows: 43 for 464 pictures. More than there are classes, so that one
nobody has named is a group of its own (docs/LOG.md)."""
CLUSTER_WIDTH = 64
"""Dimensions that features are projected to before they are clustered: the first question waits for it (1 s in place of
15 for 5,000 pictures), and distances among so few clusters hardly change (Johnson and Lindenstrauss 1984)."""
COARSE_ROWS = 500
"""Live rows by which the stand-in of another row is looked for first."""


def find_live_rows(
    features: NDArray[np.float16], rows: IntArray, readable: IntArray, before: LiveRows | None = None
) -> LiveRows:
    """Neighbours and clusters among the train rows ``rows``, or a sample of them; all other readable rows get a
    stand-in.

    ``before``: the same before rows were added. What was followed stays so, in the cluster it was in, and what stood
    for a row still does; as large a share of the new rows is followed as of the old ones.
    """
    n_known = len(before.stand_in) if before else 0
    known = before.rows if before else rows[:0]
    fresh = rows[rows >= n_known]
    n_old = len(rows) - len(fresh)
    share = len(known) / n_old if n_old else min(1.0, LIVE_ROWS / max(1, len(rows)))
    n_fresh = max(min(len(fresh), 1), round(share * len(fresh)))
    chosen = np.concatenate([known, np.sort(generator(0, "live", len(rows)).permutation(fresh)[:n_fresh])])
    x = np.asarray(features[chosen], np.float32)
    stand_in = np.full(len(features), -1, np.int64)
    stand_in[chosen] = np.arange(len(chosen))
    if before is not None:
        stand_in[:n_known] = before.stand_in
    others = np.setdiff1d(readable[readable >= n_known], chosen)
    stand_in[others] = _most_similar(features, others, x)
    return LiveRows(chosen, stand_in, Neighbours.of(x), _clusters(x, before.cluster if before else None))


def _clusters(x: NDArray[np.float32], known: IntArray | None = None) -> IntArray:
    """The cluster of each row of ``x`` (m, d); ``known`` are those of the first rows, which they keep.

    The rows after them are clustered by themselves, so that a class that came with them is a group of its own; one
    that lies nearer to the middle of an old cluster joins that.
    """
    narrow = (
        GaussianRandomProjection(CLUSTER_WIDTH, random_state=0).fit_transform(x) if x.shape[1] > CLUSTER_WIDTH else x
    )
    if known is None or not len(known):
        return _k_means(narrow, _n_clusters(len(x)))[0]
    old, fresh = np.unique(known), narrow[len(known) :]
    if not len(fresh):
        return known
    _, middles = _k_means(fresh, min(len(fresh), max(1, _n_clusters(len(x)) - len(old))))
    centres = np.concatenate([*(narrow[: len(known)][known == c].mean(0)[None] for c in old.tolist()), middles])
    names = np.concatenate([old, old[-1] + 1 + np.arange(len(middles))])
    return np.concatenate([known, names[pairwise_distances_argmin(fresh, centres)]])


def _n_clusters(n_rows: int) -> int:
    return max(1, min(int(CLUSTERS_PER_ROOT * n_rows**0.5 + 0.5), n_rows))


def _k_means(x: NDArray[np.float32], n_clusters: int) -> tuple[IntArray, NDArray[np.float32]]:
    found = KMeans(n_clusters, n_init=1, random_state=0).fit(x)
    return np.asarray(found.labels_, np.int64), found.cluster_centers_


def _most_similar(features: NDArray[np.float16], rows: IntArray, x: NDArray[np.float32]) -> IntArray:
    """The place in ``x`` (m, d) of the vector most like that of each of ``rows``: among those near the most similar of
    a few, so that a million rows take minutes."""
    coarse = x[:: max(1, len(x) // COARSE_ROWS)]
    near = np.argsort(-(coarse @ x.T), axis=1, kind="stable")[:, : max(1, 4 * len(x) // len(coarse))]
    found = np.empty(len(rows), np.int64)
    for part in blocks(len(rows), len(coarse), 1 << 24):
        own = np.asarray(features[rows[part]], np.float32)
        cell = (own @ coarse.T).argmax(1)
        for c in np.unique(cell).tolist():
            mine = np.flatnonzero(cell == c)
            found[part.start + mine] = near[c][(own[mine] @ x[near[c]].T).argmax(1)]
    return found
