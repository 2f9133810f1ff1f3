"""Strategies that ask about rows predicted as novel: the paper's Adaptive-Novel and its ablations.

A row is *predicted novel* when its most probable slot is not one of the ``n_old`` first. All these strategies are
one ordering (``_novel_first``) with a different score and a different number of turns that the slots take.
"""

from __future__ import annotations

import logging
from bisect import bisect_left

import numpy as np

from agcd.arrays import Float64Array, confidence_and_slot, lowest, rank_within
from agcd.errors import ConfigError, did_you_mean
from agcd.types import IntArray, PoolView, grows_with

_log = logging.getLogger("agcd")
_FILLS = ("slots", "official")


@grows_with("slots")
def novel_random(view: PoolView, budget: int, rng: np.random.Generator) -> IntArray:
    """Picks at random among the rows predicted as novel (ablation b of the paper)."""
    return _novel_first(view, budget, rng.random(len(view.rows)), confidence_and_slot(view.probs, "msp")[1], quota=0)


@grows_with("slots")
def novel_informative(view: PoolView, budget: int, rng: np.random.Generator, *, metric: str = "margin") -> IntArray:
    """Picks the least sure rows among those predicted as novel, whatever their slot (ablation c of the paper)."""
    return _novel_first(view, budget, *confidence_and_slot(view.probs, metric), quota=0)


@grows_with("slots")
def novel_margin(view: PoolView, budget: int, rng: np.random.Generator, *, fill: str = "slots") -> IntArray:
    """Picks an equal share per novel slot, smallest margin first."""
    return informative_novel(view, budget, rng, metric="margin", fill=fill)


@grows_with("slots")
def novel_entropy(view: PoolView, budget: int, rng: np.random.Generator, *, fill: str = "slots") -> IntArray:
    """Picks an equal share per novel slot, largest entropy first."""
    return informative_novel(view, budget, rng, metric="entropy", fill=fill)


@grows_with("slots")
def novel_msp(view: PoolView, budget: int, rng: np.random.Generator, *, fill: str = "slots") -> IntArray:
    """Picks an equal share per novel slot, lowest top probability first."""
    return informative_novel(view, budget, rng, metric="msp", fill=fill)


@grows_with("slots")
def confident_novel(
    view: PoolView, budget: int, rng: np.random.Generator, *, metric: str = "margin", fill: str = "slots"
) -> IntArray:
    """Picks an equal share per novel slot, most sure first: names the clusters."""
    quota = _quota(view, budget, fill)
    sure, y_slot = confidence_and_slot(view.probs, metric)
    return _novel_first(view, budget, -sure, y_slot, quota)


@grows_with("slots")
def informative_novel(
    view: PoolView, budget: int, rng: np.random.Generator, *, metric: str = "margin", fill: str = "slots"
) -> IntArray:
    """Picks an equal share per novel slot, least sure first: refines the borders."""
    quota = _quota(view, budget, fill)
    return _novel_first(view, budget, *confidence_and_slot(view.probs, metric), quota)


@grows_with("slots")
def adaptive_novel(
    view: PoolView, budget: int, rng: np.random.Generator, *, metric: str = "margin", fill: str = "slots"
) -> IntArray:
    """Picks an equal share per novel slot, most sure first until the clusters are stable, then least sure first.

    The paper's Adaptive-Novel; ``view.phase`` tells which of the two it is.
    """
    pick = confident_novel if view.phase == "confident" else informative_novel
    return pick(view, budget, rng, metric=metric, fill=fill)


def _quota(view: PoolView, budget: int, fill: str) -> int | None:
    """Up to which rank the slots take turns; None = always, so that diversity never vanishes."""
    if fill not in _FILLS:
        raise ConfigError(f"Unknown fill {fill!r}.{did_you_mean(fill, _FILLS)}")
    n_novel = view.probs.shape[1] - view.n_old
    return budget // max(1, n_novel) if fill == "official" else None


def _novel_first(view: PoolView, budget: int, score: Float64Array, y_slot: IntArray, quota: int | None) -> IntArray:
    """Rows predicted as novel, lowest score first, slots taking turns; then the other rows by the same score."""
    novel = np.flatnonzero(y_slot >= view.n_old)
    chosen = novel[first_of_equal_share(score[novel], y_slot[novel], quota, budget)]
    missing = min(budget, len(score)) - len(chosen)
    if missing > 0:
        _log.warning(
            "%d rows are predicted as novel and %d were wanted: %d predicted as old are asked about as well.",
            len(novel),
            budget,
            missing,
        )
        old = np.flatnonzero(y_slot < view.n_old)
        chosen = np.concatenate([chosen, old[lowest(score[old], missing)]])
    return view.rows[chosen]


def equal_share(score: Float64Array, y_slot: IntArray, quota: int | None) -> IntArray:
    """The order in which slots take turns: the best of each slot, then the second of each, …: (n,), (n,) → (n,).

    Within a turn the lowest score comes first. So any budget b takes floor(b/K) of each of K slots that have as
    many, and spends what is left one per slot, slots in order of their best score. With a ``quota`` only the first
    ``quota`` turns are taken, and the rest follows by score alone, blind to slots (the published code).
    """
    turn = rank_within(y_slot, score)
    if quota is not None:
        turn = np.minimum(turn, quota)
    return np.lexsort((score, turn))


def first_of_equal_share(score: Float64Array, y_slot: IntArray, quota: int | None, budget: int) -> IntArray:
    """``equal_share(score, y_slot, quota)[:budget]``, sorting only the items that can be among them.

    Those are the items of the turns that ``budget`` needs and, after a quota, the ``budget`` lowest scores.
    """
    size = np.bincount(y_slot)
    if quota is None:
        needed = bisect_left(range(budget), budget, key=lambda turns: int(np.minimum(size, turns).sum()))
    else:
        needed = quota
    near = np.zeros(len(score), dtype=bool)
    for members in np.split(np.argsort(y_slot, kind="stable"), np.cumsum(size)[:-1]) if needed else ():
        near[members[lowest(score[members], needed)]] = True
    if quota is not None:
        near[lowest(score, budget)] = True
    kept = np.flatnonzero(near)
    return kept[equal_share(score[kept], y_slot[kept], quota)[:budget]]
