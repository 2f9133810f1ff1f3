"""How sure a model is of each item, and the strategies that ask about the least sure.

The scores read probabilities once, in blocks, and are float64, so that float16 and memory-mapped arrays give the
same order as any other. All sorting is stable: ties go to the lower row, because ``select`` hands over sorted rows.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from agcd.arrays import each_block, floats, lowest
from agcd.errors import ConfigError, did_you_mean
from agcd.types import FloatArray, IntArray, PoolView

Float64Array = NDArray[np.float64]


def msp_of(probs: FloatArray) -> Float64Array:
    """The largest probability of each item: (n, K) → (n,)."""
    return judge(probs, "msp")[0]


def margin_of(probs: FloatArray) -> Float64Array:
    """The largest minus the second largest probability: (n, K) → (n,); with one slot, the only one there is."""
    return judge(probs, "margin")[0]


def entropy_of(probs: FloatArray) -> Float64Array:
    """−Σ p log p in nats, with 0 log 0 = 0: (n, K) → (n,)."""
    return np.asarray(-judge(probs, "entropy")[0])


def confidence_of(probs: FloatArray, metric: str) -> Float64Array:
    """How sure the model is of each item, by ``metric`` (margin, msp or entropy): (n, K) → (n,)."""
    return judge(probs, metric)[0]


def judge(probs: FloatArray, metric: str) -> tuple[Float64Array, IntArray]:
    """How sure the model is of each item and the slot it predicts, read in one pass: (n, K) → (n,), (n,)."""
    check_metric(metric)
    sure, y_slot = np.empty(len(probs)), np.empty(len(probs), dtype=np.int64)

    def work(part: slice) -> None:
        sure[part], y_slot[part] = judge_block(np.array(floats(probs[part])), metric)

    each_block(len(probs), probs.shape[1], work)
    return sure, y_slot


def check_metric(metric: str) -> None:
    """Refuses a metric that does not exist, in one sentence."""
    if metric not in CONFIDENCE:
        raise ConfigError(f"Unknown metric {metric!r}.{did_you_mean(metric, CONFIDENCE)}")


def judge_block(p: FloatArray, metric: str) -> tuple[Float64Array, IntArray]:
    """``judge`` for one block that is not needed afterwards: its entries are overwritten."""
    y_slot = p.argmax(1)
    return CONFIDENCE[metric](p, y_slot), y_slot


def _msp(p: FloatArray, y_slot: IntArray) -> Float64Array:
    return p[np.arange(len(p)), y_slot].astype(np.float64)


def _margin(p: FloatArray, y_slot: IntArray) -> Float64Array:
    """Two searches for a largest number are several times faster than a partition of every line."""
    top = _msp(p, y_slot)
    if p.shape[1] == 1:
        return top
    p[np.arange(len(p)), y_slot] = -np.inf
    return np.asarray(top - p.max(1))


def _negative_entropy(p: FloatArray, y_slot: IntArray) -> Float64Array:
    return np.asarray(-entr(p.astype(np.float64, copy=False)).sum(1))


CONFIDENCE: MappingProxyType[str, Callable[[FloatArray, IntArray], Float64Array]] = MappingProxyType(
    {"margin": _margin, "msp": _msp, "entropy": _negative_entropy}
)
"""Metric name → score of a block that is higher the surer the model is."""


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
    return view.rows[lowest(confidence_of(view.probs, metric), budget)]
