"""Strategies that ask about the rows the model is least sure of, and the random one.

All sorting is stable: ties go to the lower row, because ``select`` hands over sorted rows.
"""

from __future__ import annotations

import numpy as np

from agcd.arrays import confidence_of, lowest
from agcd.types import IntArray, PoolView, grows_with


@grows_with("slots")
def random(view: PoolView, budget: int, rng: np.random.Generator) -> IntArray:
    """Picks at random from the whole pool, every row as likely as any other."""
    return view.rows[rng.permutation(len(view.rows))[:budget]]


@grows_with("slots")
def entropy(view: PoolView, budget: int, rng: np.random.Generator) -> IntArray:
    """Picks the rows whose probabilities are spread over the most slots (largest entropy)."""
    return _least_sure(view, budget, "entropy")


@grows_with("slots")
def least_confidence(view: PoolView, budget: int, rng: np.random.Generator) -> IntArray:
    """Picks the rows whose best slot has the lowest probability."""
    return _least_sure(view, budget, "msp")


@grows_with("slots")
def margin(view: PoolView, budget: int, rng: np.random.Generator) -> IntArray:
    """Picks the rows whose two best slots are closest to a tie (smallest margin)."""
    return _least_sure(view, budget, "margin")


def _least_sure(view: PoolView, budget: int, metric: str) -> IntArray:
    return view.rows[lowest(confidence_of(view.probs, metric), budget)]
