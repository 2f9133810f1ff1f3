"""The constants of ``agcd.signs``, learned from simulated projects.

First the weights of the signs: logistic regression on pool rows of all projects, every moment of a project counting
alike. Then how the shifts of the four kinds of rows vary from project to project: their mean and covariance by
expectation and maximisation, the pool's own rows included, as their truth is known here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from agcd.accuracy import POOL, ShiftPrior, Tested, shift_posterior
from agcd.arrays import Float64Array
from agcd.lab.accuracy.simulate import Moment

RIDGE = 1e-5
"""Per row: enough to make the weights unique, too little to move them."""
N_NEWTON, N_ROUNDS = 30, 20
ROWS_PER_MOMENT = 300
"""More rows of one moment tell the weights little: projects differ, rows of one project hardly."""


def learn_weights(moments: Sequence[Moment]) -> Float64Array:
    """(13,): the weights of the signs' terms that fit pool rows best."""
    every = [np.linspace(0, len(m.pool_right) - 1, ROWS_PER_MOMENT).astype(np.int64) for m in moments]
    terms = np.concatenate([m.pool.terms()[rows] for m, rows in zip(moments, every, strict=True)])
    right = np.concatenate([m.pool_right[rows] for m, rows in zip(moments, every, strict=True)])
    penalty = RIDGE * len(terms) * np.diag([0.0, *np.ones(terms.shape[1] - 1)])
    weights = np.zeros(terms.shape[1])
    for _ in range(N_NEWTON):
        p = expit(terms @ weights)
        curvature = (terms * (p * (1 - p))[:, None]).T @ terms + penalty
        weights += np.linalg.solve(curvature, terms.T @ (right - p) - penalty @ weights)
    return weights


def learn_prior(tested: Sequence[Tested]) -> ShiftPrior:
    """How shifts vary, from projects whose tested rows include those of the pool."""
    prior = ShiftPrior(np.zeros(4), 0.5 * np.eye(4))
    for _ in range(N_ROUNDS):
        found = [shift_posterior(one, prior) for one in tested]
        modes = np.array([mode for mode, _ in found])
        within = np.mean([covariance for _, covariance in found], axis=0)
        prior = ShiftPrior(modes.mean(0), within + np.cov(modes.T, bias=True))
    return prior


def tested_with_pool(moment: Moment, weights: Float64Array) -> Tested:
    """All rows of a moment, those of the pool with the truth nobody knows in life."""
    return Tested(
        np.concatenate([moment.pool.terms() @ weights, moment.labelled.terms() @ weights]),
        np.concatenate([moment.pool_right, moment.labelled_right]),
        np.concatenate([np.full(len(moment.pool_right), POOL), moment.kind]),
    )
