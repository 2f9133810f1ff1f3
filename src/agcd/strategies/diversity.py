"""Strategies that spread their picks over the feature space: k-means, CoreSet, BADGE.

None of them forms an array of pool × pool or of pool × (slots · features): distances to one pick at a time are
computed in blocks, so beyond the pool itself the memory is a few numbers per row.
"""

from __future__ import annotations

import warnings

import numpy as np

from agcd.errors import ConfigError
from agcd.strategies._arrays import blocks, rank_within
from agcd.strategies.uncertainty import Float64Array
from agcd.types import FloatArray, IntArray, PoolView

ROUNDING = 1e-12
"""A squared distance below this share of the two squared norms is rounding error of float64: it counts as zero."""


def kmeans(
    view: PoolView, budget: int, rng: np.random.Generator, *, n_init: int = 1, minibatch: bool = False
) -> IntArray:
    """Picks the row nearest to each centre of a k-means clustering with as many clusters as questions.

    Large clusters come first. Where fewer clusters than questions are left (equal features), the next nearest
    members follow. ``n_init`` restarts are made (the paper's code left it to the library, whose default has
    changed from 10 to 1); ``minibatch`` trades some quality for speed on large pools.
    """
    from sklearn.cluster import KMeans, MiniBatchKMeans  # here, because it takes a second to load
    from sklearn.exceptions import ConvergenceWarning

    if n_init < 1:
        raise ConfigError(f"n_init is {n_init}; it must be at least 1.")
    x = np.asarray(view.features, dtype=np.result_type(view.features.dtype, np.float32))
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


def coreset(view: PoolView, budget: int, rng: np.random.Generator) -> IntArray:
    """Picks, one after another, the row farthest from everything labelled or picked so far.

    Greedy farthest-first (Sener & Savarese 2018, without their integer programme). With nothing labelled the first
    pick is the row farthest from the mean of the pool.
    """
    x, n = view.features, len(view.rows)
    picks: list[int] = []
    nearest = nearest_labelled(x, view.labelled_features)
    if not len(view.labelled_features):
        picks.append(int(squared_distances(x, x.mean(axis=0, dtype=np.float64)).argmax()))
        nearest = squared_distances(x, x[picks[0]])
    while len(picks) < min(budget, n):
        nearest[picks] = -1.0  # below every distance, so never again, even when all that is left is at zero
        picks.append(int(nearest.argmax()))
        np.minimum(nearest, squared_distances(x, x[picks[-1]]), out=nearest)
    return view.rows[picks]


def squared_distances(x: FloatArray, centre: FloatArray) -> Float64Array:
    """|x_i − centre|²: (n, d), (d,) → (n,).

    By differences and not by |x|² + |c|² − 2x·c, whose rounding hides how near a near-duplicate is (the reference
    takes the root of such a negative number and then picks the NaN).
    """
    point = centre.astype(np.result_type(x.dtype, np.float32))
    out = np.empty(len(x))
    for part in blocks(len(x), x.shape[1]):
        gap = x[part].astype(point.dtype, copy=False) - point
        out[part] = np.einsum("ij,ij->i", gap, gap)
    return out


def nearest_labelled(x: FloatArray, labelled: FloatArray) -> Float64Array:
    """The squared distance of each item to its nearest labelled one: (n, d), (m, d) → (n,); inf when m = 0.

    One matrix product per block finds the nearest; its distance is then taken by differences. Both sides are
    shifted by the labelled mean, which keeps the product accurate for features far from the origin.
    """
    out = np.full(len(x), np.inf)
    if not len(labelled):
        return out
    dtype = np.result_type(x.dtype, labelled.dtype, np.float32)
    shift = labelled.mean(axis=0, dtype=np.float64).astype(dtype)
    known = labelled.astype(dtype) - shift
    half_norms = np.einsum("ij,ij->i", known, known) / 2
    for part in blocks(len(x), max(len(known) // 16, x.shape[1])):  # wider than cache: few rows starve the product
        block = x[part].astype(dtype, copy=False) - shift
        gap = block - known[(half_norms - block @ known.T).argmin(1)]
        out[part] = np.einsum("ij,ij->i", gap, gap)
    return out


def badge(view: PoolView, budget: int, rng: np.random.Generator) -> IntArray:
    """Picks rows whose loss gradients are large and unlike each other (k-means++ on gradient embeddings).

    The gradient embedding of an item is g = a ⊗ h with a = p − onehot(argmax p) (Ash et al. 2020). The first pick
    has the largest |g|; each further one is drawn with probability proportional to the squared distance to its
    nearest pick. Once every row coincides with a pick, the rest is drawn evenly.
    """
    count = min(budget, len(view.rows))
    norms = gradient_norms(view.probs, view.features)
    picks = [int(norms.argmax())]
    nearest = np.full(len(norms), np.inf)
    while len(picks) < count:
        np.minimum(nearest, gradient_distances(view.probs, view.features, norms, picks[-1]), out=nearest)
        nearest[picks[-1]] = 0.0
        if not nearest.any():
            unpicked = np.setdiff1d(np.arange(len(norms)), picks)
            picks += rng.permutation(unpicked)[: count - len(picks)].tolist()
        else:
            picks.append(draw(nearest, rng))
    return view.rows[picks]


def gradient_norms(probs: FloatArray, features: FloatArray) -> Float64Array:
    """|g_i|² = |a_i|²|h_i|²: (n, K), (n, d) → (n,)."""
    out = np.empty(len(probs))
    for part in blocks(len(probs), probs.shape[1] + features.shape[1]):
        a, h = _residual(probs, part), features[part].astype(np.float64)
        out[part] = np.einsum("ij,ij->i", a, a) * np.einsum("ij,ij->i", h, h)
    return out


def gradient_distances(probs: FloatArray, features: FloatArray, norms: Float64Array, j: int) -> Float64Array:
    """|g_i − g_j|² = |g_i|² + |g_j|² − 2(a_i·a_j)(h_i·h_j) for all i, without forming any g: (n,)."""
    a_j = _residual(probs, slice(j, j + 1))[0]
    h_j = features[j].astype(np.float64)
    out = np.empty(len(probs))
    for part in blocks(len(probs), probs.shape[1] + features.shape[1]):
        norm = norms[part] + norms[j]
        square = norm - 2 * (_residual(probs, part) @ a_j) * (features[part].astype(np.float64) @ h_j)
        out[part] = np.where(square > ROUNDING * norm, square, 0.0)
    return out


def _residual(probs: FloatArray, part: slice) -> Float64Array:
    """a = p − onehot(argmax p), in float64: for a sure row, 1 − p is small and float32 would lose it."""
    a = probs[part].astype(np.float64)
    a[np.arange(len(a)), a.argmax(1)] -= 1.0
    return a


def draw(weights: Float64Array, rng: np.random.Generator) -> int:
    """One position, with probability proportional to its weight; never one of weight zero."""
    cumulative = np.cumsum(weights)
    position = np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right")
    return int(min(position, np.flatnonzero(weights)[-1]))  # the product may round up to the total
