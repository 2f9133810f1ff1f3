"""BADGE: k-means++ on gradient embeddings that are never formed, drawn by rejection.

The plain way measures the whole pool again after every pick. Here picks are drawn from *stale* weights, those of the
last measurement, and kept with the probability true weight / stale weight. Distances to the nearest pick only fall,
so a stale weight is never too small, and a draw that is kept has exactly the distribution of the plain way. Only the
rows drawn are measured, and all of them again, in one matrix product per block, when too few draws are kept.
"""

from __future__ import annotations

import numpy as np

from agcd.arrays import Float64Array, each_block, subsample
from agcd.types import FloatArray, IntArray, PoolView, grows_with

ROUNDING = 1e-12
"""A squared distance below this share of the two squared norms is rounding error of float64: it counts as zero."""
DRAWN_AT_ONCE = 256
"""Draws per call of the generator: one by one, the call would cost more than the draw."""
DRAWS_PER_MEASUREMENT = 1 / 8
"""The pool is measured again once so many draws per row were made since the last time."""


@grows_with("picks")
def badge(view: PoolView, budget: int, rng: np.random.Generator, *, max_candidates: int | None = None) -> IntArray:
    """Picks rows whose loss gradients are large and unlike each other (k-means++ on gradient embeddings).

    The gradient embedding of an item is g = a ⊗ h with a = p − onehot(argmax p) (Ash et al. 2020). The first pick
    has the largest |g|; each further one is drawn with probability proportional to the squared distance to its
    nearest pick. Once every row coincides with a pick, the rest is drawn evenly.

    Exact at any size; with ``max_candidates`` so many rows are drawn at random first and the picks are among them.
    """
    view = subsample(view, max_candidates, budget, rng)
    probs, features, count = view.probs, view.features, min(budget, len(view.rows))
    norms = gradient_norms(probs, features)
    weights = np.full(len(norms), np.inf)
    picks = new = [int(norms.argmax())]
    while len(picks) < count:
        np.minimum(weights, gradient_distances(probs, features, norms, np.asarray(new)), out=weights)
        weights[new] = 0.0
        if not weights.any():
            unpicked = np.setdiff1d(np.arange(len(norms)), picks)
            new = rng.permutation(unpicked)[: count - len(picks)].tolist()
        else:
            new = draw_by_rejection(probs, features, norms, weights, count - len(picks), rng)
        picks = picks + new
    return view.rows[picks]


def draw_by_rejection(
    probs: FloatArray,
    features: FloatArray,
    norms: Float64Array,
    weights: Float64Array,
    wanted: int,
    rng: np.random.Generator,
) -> list[int]:
    """Up to ``wanted`` positions as k-means++ would draw them, fewer when the weights have become too stale.

    Parameters
    ----------
    probs, features, norms : shapes (n, K), (n, d), (n,), the norms being ``gradient_norms``
    weights : shape (n,), squared distances to the nearest pick so far
    """
    cumulative = np.cumsum(weights)
    picks: list[int] = []
    for _ in range(1 + int(DRAWS_PER_MEASUREMENT * len(weights)) // DRAWN_AT_ONCE):
        drawn = draw(cumulative, DRAWN_AT_ONCE, rng)
        a, h, norm = _residual(probs[drawn]), features[drawn].astype(np.float64), norms[drawn]
        true = weights[drawn]
        limit = rng.random(len(drawn)) * true
        if picks:
            kept = np.asarray(picks)
            a_kept, h_kept = _residual(probs[kept]), features[kept].astype(np.float64)
            true = np.minimum(true, _squares(norm, norms[kept], a @ a_kept.T, h @ h_kept.T).min(1))
        for i in range(len(drawn)):
            if limit[i] < true[i]:
                picks.append(int(drawn[i]))
                if len(picks) == wanted:
                    return picks
                true = np.minimum(true, _squares(norm, norm[i : i + 1], a @ a[i : i + 1].T, h @ h[i : i + 1].T)[:, 0])
                true[drawn == drawn[i]] = 0.0
    return picks


def draw(cumulative: Float64Array, count: int, rng: np.random.Generator) -> IntArray:
    """Positions with probabilities proportional to the weights summed up here; never one of weight zero."""
    total = cumulative[-1]
    position = np.searchsorted(cumulative, rng.random(count) * total, side="right")
    return np.asarray(np.minimum(position, np.searchsorted(cumulative, total)))  # the product may round up to the total


def gradient_norms(probs: FloatArray, features: FloatArray) -> Float64Array:
    """|g_i|² = |a_i|²|h_i|²: (n, K), (n, d) → (n,)."""
    out = np.empty(len(probs))

    def work(part: slice) -> None:
        a, h = _residual(probs[part]), features[part].astype(np.float64)
        out[part] = np.einsum("ij,ij->i", a, a) * np.einsum("ij,ij->i", h, h)

    each_block(len(probs), probs.shape[1] + features.shape[1], work)
    return out


def gradient_distances(probs: FloatArray, features: FloatArray, norms: Float64Array, picks: IntArray) -> Float64Array:
    """The squared distance of each g_i to the nearest g_j of the picks, without forming any g: (n,).

    |g_i − g_j|² = |g_i|² + |g_j|² − 2(a_i·a_j)(h_i·h_j)
    """
    a_picks, h_picks = _residual(probs[picks]).T, features[picks].astype(np.float64).T
    out = np.empty(len(probs))

    def work(part: slice) -> None:
        a_dot, h_dot = _residual(probs[part]) @ a_picks, features[part].astype(np.float64) @ h_picks
        out[part] = _squares(norms[part], norms[picks], a_dot, h_dot).min(1)

    each_block(len(probs), max(probs.shape[1] + features.shape[1], len(picks)), work)
    return out


def _squares(norm: Float64Array, norm_picks: Float64Array, a_dot: Float64Array, h_dot: Float64Array) -> Float64Array:
    """Squared distances (n, m) from squared norms (n,), (m,) and the two products (n, m); rounding counts as zero."""
    norms = norm[:, None] + norm_picks
    square = norms - 2 * a_dot * h_dot
    return np.where(square > ROUNDING * norms, square, 0.0)


def _residual(probs: FloatArray) -> Float64Array:
    """a = p − onehot(argmax p), in float64: for a sure row, 1 − p is small and float32 would lose it."""
    a = probs.astype(np.float64)
    a[np.arange(len(a)), a.argmax(1)] -= 1.0
    return np.asarray(a)
