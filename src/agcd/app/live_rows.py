"""Which rows are followed while people answer: neighbours and clusters of all, or of a sample of a large pool."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
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


def find_live_rows(features: NDArray[np.float16], rows: IntArray, readable: IntArray) -> LiveRows:
    """Neighbours and clusters among the train rows ``rows``, or a sample of them; all other readable rows get a
    stand-in."""
    chosen = np.sort(generator(0, "live", len(rows)).permutation(rows)[:LIVE_ROWS])
    x = np.asarray(features[chosen], np.float32)
    stand_in = np.full(len(features), -1, np.int64)
    stand_in[chosen] = np.arange(len(chosen))
    others = np.setdiff1d(readable, chosen)
    stand_in[others] = _most_similar(features, others, x)
    return LiveRows(chosen, stand_in, Neighbours.of(x), _clusters(x))


def _clusters(x: NDArray[np.float32]) -> IntArray:
    """The cluster of each row of ``x`` (m, d)."""
    n_clusters = max(1, min(round(CLUSTERS_PER_ROOT * len(x) ** 0.5), len(x)))
    narrow = (
        GaussianRandomProjection(CLUSTER_WIDTH, random_state=0).fit_transform(x) if x.shape[1] > CLUSTER_WIDTH else x
    )
    return np.asarray(KMeans(n_clusters, n_init=1, random_state=0).fit_predict(narrow), np.int64)


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
