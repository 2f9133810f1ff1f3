"""The constants of ``agcd.signs``, learned from simulated projects.

First the weights of the signs: logistic regression on pool rows of all projects, every moment of a project counting
alike. Then how the shifts of the four kinds of rows vary from project to project: their mean and covariance by
expectation and maximisation, the pool's own rows included, as their truth is known here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from agcd.accuracy import POOL, Checked, ShiftPrior, shift_posterior
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


def learn_prior(checked: Sequence[Checked], counts: Float64Array | None = None) -> ShiftPrior:
    """How shifts vary, from projects whose checked rows include those of the pool, each counting ``counts`` (n,)."""
    prior = ShiftPrior(np.zeros(4), 0.5 * np.eye(4))
    part = np.ones(len(checked)) if counts is None else counts
    part = part / part.sum()
    for _ in range(N_ROUNDS):
        found = [shift_posterior(one, prior) for one in checked]
        modes = np.array([mode for mode, _ in found])
        within = np.tensordot(part, np.array([covariance for _, covariance in found]), 1)
        mean = part @ modes
        prior = ShiftPrior(mean, within + (modes - mean).T @ ((modes - mean) * part[:, None]))
    return prior


def checked_with_pool(moment: Moment, weights: Float64Array) -> Checked:
    """All rows of a moment, those of the pool with the truth nobody knows in life."""
    return Checked(
        np.concatenate([moment.pool.terms() @ weights, moment.labelled.terms() @ weights]),
        np.concatenate([moment.pool_right, moment.labelled_right]),
        np.concatenate([np.full(len(moment.pool_right), POOL), moment.kind]),
    )
