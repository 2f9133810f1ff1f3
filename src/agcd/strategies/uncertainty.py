"""How sure a model is of each item, and the strategies that ask about the least sure.

The scores read probabilities in blocks and compute in float64, so that float16 and memory-mapped arrays give the
same order as any other. All sorting is stable: ties go to the lower row, because ``select`` hands over sorted rows.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from agcd.errors import ConfigError, did_you_mean
from agcd.strategies._arrays import blocks
from agcd.types import FloatArray, IntArray, PoolView

Float64Array = NDArray[np.float64]


def msp_of(probs: FloatArray) -> Float64Array:
    """The largest probability of each item: (n, K) → (n,)."""
    return _by_block(probs, lambda p: p.max(1))


def margin_of(probs: FloatArray) -> Float64Array:
    """The largest minus the second largest probability: (n, K) → (n,); with one slot, the only one there is."""
    return _by_block(probs, _margin)


def entropy_of(probs: FloatArray) -> Float64Array:
    """−Σ p log p in nats, with 0 log 0 = 0: (n, K) → (n,)."""
    return _by_block(probs, lambda p: entr(p).sum(1))


def _by_block(probs: FloatArray, score: Callable[[Float64Array], Any]) -> Float64Array:
    out = np.empty(len(probs))
    for part in blocks(len(probs), probs.shape[1]):
        out[part] = score(np.asarray(probs[part], dtype=np.float64))
    return out


def _margin(p: Float64Array) -> Float64Array:
    if p.shape[1] == 1:
        return p[:, 0]
    top = np.partition(p, -2, axis=1)[:, -2:]
    return np.asarray(top[:, 1] - top[:, 0])


CONFIDENCE: MappingProxyType[str, Callable[[FloatArray], Float64Array]] = MappingProxyType(
    {"margin": margin_of, "msp": msp_of, "entropy": lambda probs: -entropy_of(probs)}
)
"""Metric name → score that is higher the surer the model is."""


def confidence_of(probs: FloatArray, metric: str) -> Float64Array:
    """How sure the model is of each item, by ``metric`` (margin, msp or entropy): (n, K) → (n,)."""
    if metric not in CONFIDENCE:
        raise ConfigError(f"Unknown metric {metric!r}.{did_you_mean(metric, CONFIDENCE)}")
    return CONFIDENCE[metric](probs)


def random(view: PoolView, budget: int, rng: np.random.Generator) -> IntArray:
    """Picks at random from the whole pool, every row as likely as any other."""
    return view.rows[rng.permutation(len(view.rows))[:budget]]


def entropy(view: PoolView, budget: int, rng: np.random.Generator) -> IntArray:
    """Picks the rows whose probabilities are spread over the most slots (largest entropy)."""
    return _least_sure(view, budget, "entropy")


def least_confidence(view: PoolView, budget: int, rng: np.random.Generator) -> IntArray:
    """Picks the rows whose best slot has the lowest probability."""
    return _least_sure(view, budget, "msp")


def margin(view: PoolView, budget: int, rng: np.random.Generator) -> IntArray:
    """Picks the rows whose two best slots are closest to a tie (smallest margin)."""
    return _least_sure(view, budget, "margin")


def _least_sure(view: PoolView, budget: int, metric: str) -> IntArray:
    return view.rows[np.argsort(confidence_of(view.probs, metric), kind="stable")[:budget]]
