"""How many of the rows without a label are believed right, judged by the answers themselves.

Every row has a *logit*: what is seen of it (how clear the belief is, whether a label is near; ``agcd.signs``) says in
general about the chance that its believed class is right. In one project beliefs are better or worse than in general,
by a *shift* δ of all logits: P(right) = σ(logit + δ). Labelled rows tell the shift, each by whether the belief without
its own label was right. But they are not rows of the pool: those given at the start are of known classes, those chosen
by a rule lie where little is known, and only those drawn at random are like the pool. So each kind of row has a shift
of its own, and what a shift of one kind says about that of the pool is known from simulated projects:

    (δ_pool, δ_given, δ_chosen, δ_drawn) ~ Normal(mean, spread)       right_i ~ Bernoulli(σ(logit_i + δ_kind(i)))

The normal approximation of the posterior of δ_pool gives the accuracy of the pool, its interval, and a calibrated
probability for each row. Nothing here knows where logits come from, so a trained model can be judged in the same way by
what it predicted before each answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from agcd.arrays import Float64Array
from agcd.types import BoolArray, FloatArray, IntArray

POOL, GIVEN, CHOSEN, DRAWN = range(4)
"""Kinds of rows: without a label; labelled at the start; asked by a rule; asked because they were drawn at random."""
TAKEN = 4
"""Rows that got their label without being asked about, many at once: they say nothing about the others."""
DRAWN_EVERY = 4
"""One question in so many is drawn at random."""
QUANTILE_90 = 1.6449
"""The normal quantile of a two-sided 90 % interval."""
QUANTILE_95 = 1.959964
MISFIT = 0.007
"""Deviation of the accuracy that no shift explains: logits are but a rule of thumb. It matters only near 100 %,
where intervals would be narrower than the rule is true; chosen with each data set in turn left out (docs/LOG.md)."""
_STEPS, _LONGEST_STEP, _SMALLEST_STEP = 100, 1.0, 1e-8
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_ROWS_AT_MOST = 20_000
"""Rows of a pool over which probabilities are averaged: of more, so many at even distances."""


@dataclass(frozen=True)
class AccuracyEstimate:
    """The share of rows whose believed class is right, with a 90 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Checked:
    """Labelled rows and whether the belief without their label was right."""

    logit: Float64Array
    """(m,): what is seen of each row, without its label, says about the chance of being right."""
    is_right: BoolArray
    """(m,)"""
    kind: IntArray
    """(m,): GIVEN, CHOSEN or DRAWN."""


@dataclass(frozen=True)
class ShiftPrior:
    """How the shifts of the four kinds of rows vary from project to project."""

    mean: Float64Array
    """(4,)"""
    spread: Float64Array
    """(4, 4): their covariance."""


@dataclass(frozen=True)
class Shift:
    """What is known about how much better the beliefs of one project are than beliefs in general."""

    mean: float
    deviation: float

    def p_right(self, logit: FloatArray) -> Float64Array:
        """The calibrated probability that each row is believed right: (n,) → (n,)."""
        logit = np.asarray(logit, np.float64)
        at_nodes = (expit(logit + self.mean + self.deviation * node) for node in _NODES)
        total = sum(weight * p for weight, p in zip(_NODE_WEIGHTS, at_nodes, strict=True))
        return np.asarray(total / _NODE_WEIGHTS.sum(), np.float64)

    def accuracy(self, logit: FloatArray) -> AccuracyEstimate:
        """The accuracy of the rows with these logits (n,); that of no rows is unknown, between 0 and 1."""
        if not len(logit):
            return AccuracyEstimate(0.5, 0.0, 1.0)
        logit = np.sort(np.asarray(logit, np.float64))
        logit = logit[np.linspace(0, len(logit) - 1, min(len(logit), _ROWS_AT_MOST)).astype(np.int64)]
        reach = QUANTILE_90 * self.deviation
        low, high = (float(expit(logit + self.mean + step).mean()) for step in (-reach, reach))
        mean = float(np.clip(self.p_right(logit).mean(), low, high))
        misfit = QUANTILE_90 * MISFIT
        low, high = mean - math.hypot(mean - low, misfit), mean + math.hypot(high - mean, misfit)
        return AccuracyEstimate(mean, max(0.0, low), min(1.0, high))


def pool_shift(checked: Checked, prior: ShiftPrior) -> Shift:
    """What the checked rows say about the shift of the pool; without any, what the prior says."""
    mean, covariance = shift_posterior(checked, prior)
    return Shift(float(mean[POOL]), float(np.sqrt(covariance[POOL, POOL])))


def shift_posterior(checked: Checked, prior: ShiftPrior) -> tuple[Float64Array, Float64Array]:
    """Mode and inverse curvature of the posterior of all four shifts: (4,), (4, 4).

    The posterior is log-concave: Newton's steps, none longer than 1, reach its only mode. Rows of kind POOL may be
    among the checked ones where their truth is known, as in a simulation.
    """
    logit = np.asarray(checked.logit, np.float64)
    precision = np.linalg.inv(prior.spread)
    shift = prior.mean.astype(np.float64)
    for _ in range(_STEPS):
        p = expit(logit + shift[checked.kind])
        surprise = np.bincount(checked.kind, checked.is_right - p, minlength=4)
        curvature = precision + np.diag(np.bincount(checked.kind, p * (1 - p), minlength=4))
        step = np.linalg.solve(curvature, surprise - precision @ (shift - prior.mean))
        step /= max(1.0, np.abs(step).max() / _LONGEST_STEP)
        shift = shift + step
        if np.abs(step).max() < _SMALLEST_STEP:
            break
    return shift, np.linalg.inv(curvature)


def wilson(right: int, n: int, quantile: float = QUANTILE_95) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927), which also holds for few samples and shares near 0 or 1."""
    share, square = right / n, quantile**2
    middle = (share + square / (2 * n)) / (1 + square / n)
    half = quantile / (1 + square / n) * math.sqrt(share * (1 - share) / n + square / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)
