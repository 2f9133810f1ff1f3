"""Features on a plane, for the map: t-SNE of some rows, the others beside their neighbours, the round before kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from agcd.rng import generator
from agcd.types import FloatArray, IntArray

Plane = NDArray[np.float32]
N_ANCHORS = 1500
"""t-SNE takes seconds for so many rows; the others are placed between the anchors nearest to them."""
_NEAREST = 5
"""Anchors that a row is placed between: enough to lie inside its group, too few to be drawn out of it."""
_SHARPNESS = 20.0
"""How much heavier a nearer anchor counts: e times for every 0.05 of cosine."""
_BLOCK = 20_000
"""Rows placed at a time: 120 MB of similarities to all anchors."""
_FEWEST_KNOWN = 4
"""Positions that a map can be turned to fit."""
_SPREAD = 15.0
"""About how far t-SNE spreads its points: a map that starts so wide stays much as it was (tried on six blobs of 30
rows: middles of groups moved by 8 % of their spread, against 12 to 45 % from scikit-learn's usual narrow start)."""


def lay_out(features: FloatArray, rows: IntArray, before: Plane | None = None) -> Plane:
    """Positions (n, 2) of ``rows``; all other rows are NaN.

    Parameters
    ----------
    features : (n, d) unit-length features of all rows
    before : (n, 2) positions of the round before: the new map starts from them and is turned to fit them, so that
        groups stay where people remember them
    """
    xy: Plane = np.full((len(features), 2), np.nan, np.float32)
    if len(rows) < 4:
        xy[rows] = np.arange(2 * len(rows), dtype=np.float32).reshape(-1, 2)
        return xy
    chosen = generator(0, "layout", len(rows)).permutation(len(rows))[:N_ANCHORS]
    anchors = np.sort(rows[chosen])
    placed = _placed(np.asarray(features[anchors], np.float32), _start(features, anchors, before))
    xy[rows] = _between(features, rows, anchors, placed)
    xy[anchors] = placed
    return xy


def place_beside(features: FloatArray, rows: IntArray, xy: Plane) -> Plane:
    """Positions (len(rows), 2) of new ``rows`` between those most like them that have one in ``xy`` (n, 2); NaN where
    none has."""
    known = np.flatnonzero(np.isfinite(xy).all(1))
    if not len(known):
        return np.full((len(rows), 2), np.nan, np.float32)
    anchors = np.sort(generator(0, "beside", len(known)).permutation(known)[:N_ANCHORS])
    return _between(features, rows, anchors, xy[anchors])


def _start(features: FloatArray, anchors: IntArray, before: Plane | None) -> Plane | None:
    """Where ``anchors`` were before; new ones begin beside the others, and None has no map to begin from."""
    if before is None or np.isfinite(before[anchors]).all(1).sum() < _FEWEST_KNOWN:
        return None
    start, is_new = np.array(before[anchors]), ~np.isfinite(before[anchors]).all(1)
    start[is_new] = place_beside(features, anchors[is_new], before)
    return start


def _placed(x: FloatArray, before: Plane | None) -> Plane:
    """Positions with a spread of one, turned to fit ``before`` where there is one."""
    if before is None:
        placed = tsne(x)
    else:
        start = before / max(float(before.std()), 1e-9) * _SPREAD
        placed = tsne(x, init=start, early_exaggeration=4.0)  # the usual 12 would tear the start apart
    placed = np.asarray(placed / max(float(placed.std()), 1e-9), np.float32)
    return placed if before is None else turned_to_fit(placed, before)


def tsne(x: FloatArray, *, init: str | Plane = "pca", early_exaggeration: float = 12.0) -> Plane:
    """Features (n, d) → positions (n, 2) that keep neighbours together (van der Maaten and Hinton 2008)."""
    from sklearn.manifold import TSNE  # here, because it takes a second to load

    # 30 neighbours are scikit-learn's default; there must be three times as many rows.
    perplexity = min(30.0, (len(x) - 1) / 3)
    options: dict[str, Any] = {"init": init, "early_exaggeration": early_exaggeration}
    return np.asarray(TSNE(perplexity=perplexity, random_state=0, **options).fit_transform(x))


def turned_to_fit(xy: Plane, target: Plane) -> Plane:
    """``xy`` moved, turned, mirrored and scaled to lie as near to ``target`` as it can (Procrustes)."""
    from scipy.linalg import orthogonal_procrustes

    a, b = xy - xy.mean(0), target - target.mean(0)
    rotation, scale = orthogonal_procrustes(a, b)
    return np.asarray(a @ rotation * (scale / max(float((a**2).sum()), 1e-9)) + target.mean(0), np.float32)


def _between(features: FloatArray, rows: IntArray, anchors: IntArray, placed: Plane) -> Plane:
    """The mean position of the nearest anchors, the nearer the heavier."""
    known = np.asarray(features[anchors], np.float32)
    k = min(_NEAREST, len(anchors))
    out = np.empty((len(rows), 2), np.float32)
    for first in range(0, len(rows), _BLOCK):
        block = rows[first : first + _BLOCK]
        similarity = np.asarray(features[block], np.float32) @ known.T
        nearest = np.argpartition(similarity, -k, axis=1)[:, -k:]
        near = np.take_along_axis(similarity, nearest, 1)
        weight = np.exp(_SHARPNESS * (near - near.max(1, keepdims=True)))
        out[first : first + _BLOCK] = (placed[nearest] * weight[:, :, None]).sum(1) / weight.sum(1)[:, None]
    return out
