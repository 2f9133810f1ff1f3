"""ALFA-Mix: ask where a small step in feature space changes the predicted slot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import softmax

from agcd.arrays import Float64Array, blocks, confidence_and_slot, each_block, squared_distances, unit
from agcd.errors import ConfigError
from agcd.strategies.diversity import kmeans
from agcd.types import IntArray, PoolView, grows_with


@grows_with("picks")
def alfa_mix(
    view: PoolView,
    budget: int,
    rng: np.random.Generator,
    *,
    cap: float = 0.03125,
    max_candidates: int = 100_000,
) -> IntArray:
    """Picks a spread of the rows whose prediction changes when a little of a class mean is mixed in.

    ALFA-Mix (Parvaneh et al. 2022), in its closed form: towards each class mean z* the features h are mixed by
    α = ε |z|/|g| · g/z with z = z* − h, ε = cap/√d and g the gradient of the loss of the predicted slot. Rows whose
    prediction changes for any class are candidates; while there are no more of them than questions, ``cap`` grows
    by its first value, up to 1. k-means with one cluster per question on the candidates' unit features then gives
    the rows nearest to its centres. Where candidates are too few, all are taken, nearest to a change first, and the
    rest is drawn at random, without repeats (the published code can repeat). Of more than ``max_candidates`` so many
    are drawn at random and clustered.

    A class without labels has the mean of all labelled rows; with nothing labelled we take the mean of the pool.
    When the view does not hold the classifier, the mean features of each predicted slot, at unit length, stand in.
    """
    if not 0 < cap <= 1:
        raise ConfigError(f"cap is {cap}; it must be above 0 and at most 1.")
    if max_candidates < 1:
        raise ConfigError(f"max_candidates is {max_candidates}; it must be at least 1.")
    needed = caps_to_change(view)
    growths = np.maximum(np.ceil(needed / cap), 1)
    enough = np.sort(growths)[min(budget, len(growths) - 1)]
    candidates = np.flatnonzero(growths <= min(enough, np.ceil(1 / cap)))
    if len(candidates) > budget:
        if len(candidates) > max(max_candidates, budget):
            candidates = np.sort(rng.choice(candidates, max(max_candidates, budget), replace=False))
        rows = view.rows[candidates]
        features = unit(view.features[candidates])
        return kmeans(replace(view, rows=rows, features=features), budget, rng, max_candidates=None)
    candidates = candidates[np.argsort(needed[candidates], kind="stable")]
    rest = rng.permutation(np.setdiff1d(np.arange(len(needed)), candidates))
    order: IntArray = np.concatenate([candidates, rest])
    return view.rows[order[:budget]]


def caps_to_change(view: PoolView) -> Float64Array:
    """The smallest cap at which each prediction changes for some class mean: (n,); inf where none does.

    In the closed form α ⊙ z = ε |z| g/|g|: every class mean moves h along the same ray, and only its distance |z|
    tells how far. The slots win on intervals of a ray, so a change for any mean is a change for the farthest, and
    where the ray leaves the predicted slot follows from the logits, which are linear in h. No α is ever formed, so
    the guard that the published code needs where z is near zero is not needed either.
    """
    weights, biases = _classifier(view)
    out = np.full(len(view.rows), np.inf)
    if len(weights) < 2:
        return out
    anchors = _class_means(view)

    def work(part: slice) -> None:
        h = view.features[part].astype(np.float64)
        logits = h @ weights.T + biases
        gap, rise = _race(logits, weights, view.temperature)
        lead = np.where(rise > 0, gap / np.where(rise > 0, rise, 1), np.inf).min(1)
        reach = np.sqrt(squared_distances(h, anchors).max(1) / h.shape[1])
        out[part] = np.where(reach > 0, lead / np.where(reach > 0, reach, 1), np.inf)

    each_block(len(out), len(weights) + view.features.shape[1], work)
    return out


def _race(logits: Float64Array, weights: Float64Array, temperature: float) -> tuple[Float64Array, Float64Array]:
    """How far each slot lies behind the predicted one, and how fast it catches up along the gradient: twice (n, K).

    g ∝ Wᵀ(p − onehot(y)). Dividing p − onehot(y) by 1 − p_y leaves the direction and turns it into the softmax of
    the other slots, minus onehot(y), which stays exact for rows so sure that 1 − p_y rounds to zero.
    """
    line, y_slot = np.arange(len(logits)), logits.argmax(1)
    others = logits / temperature
    others[line, y_slot] = -np.inf
    pull = softmax(others, axis=1)
    pull[line, y_slot] = -1.0
    gradient = pull @ weights
    length = np.linalg.norm(gradient, axis=1, keepdims=True)
    slope = (gradient / np.where(length > 0, length, 1)) @ weights.T
    return logits[line, y_slot][:, None] - logits, slope - slope[line, y_slot][:, None]


def _classifier(view: PoolView) -> tuple[Float64Array, Float64Array]:
    """Weights (K, d) and biases (K,) of the head, or of its stand-in over the slots that are predicted."""
    if view.slot_weights is not None:
        biases = np.zeros(len(view.slot_weights)) if view.slot_biases is None else view.slot_biases
        return view.slot_weights.astype(np.float64), biases.astype(np.float64)
    y_slot = confidence_and_slot(view.probs, "msp")[1]
    sums = np.zeros((view.probs.shape[1], view.features.shape[1]))
    for part in blocks(len(y_slot), 1):
        for slot in np.unique(y_slot[part]):
            members = part.start + np.flatnonzero(y_slot[part] == slot)
            sums[slot] += view.features[members].sum(0, dtype=np.float64)
    size = np.bincount(y_slot, minlength=len(sums))
    means = sums[size > 0] / size[size > 0, None]
    return unit(means).astype(np.float64), np.zeros(len(means))


def _class_means(view: PoolView) -> Float64Array:
    """The distinct class means (a, d): one per labelled slot, and that of all labels for the slots without."""
    known, slots = view.labelled_features, view.labelled_slots
    if not len(known):
        return np.asarray(view.features.mean(0, dtype=np.float64, keepdims=True))
    labelled = np.unique(slots)
    means = [known[slots == slot].mean(0, dtype=np.float64) for slot in labelled]
    if len(labelled) < view.probs.shape[1]:
        means.append(known.mean(0, dtype=np.float64))
    return np.stack(means)
