"""Strategies that raise the generalised coverage of the pool (``agcd.herding``)."""

from __future__ import annotations

import numpy as np

from agcd.arrays import subsample, unit
from agcd.errors import ConfigError
from agcd.herding import coverage_by, greedy_coverage, neighbour_sigma2
from agcd.strategies.diversity import nearest_labelled
from agcd.types import FloatArray, IntArray, PoolView


def max_herding(
    view: PoolView,
    budget: int,
    rng: np.random.Generator,
    *,
    sigma: float | None = None,
    max_candidates: int = 10_000,
) -> IntArray:
    """Picks, one after another, the row that best covers what labels and picks have not covered.

    MaxHerding (Bae, Noh and Sutherland 2024): greedy maximisation of the mean, over all rows, of the Gaussian kernel
    exp(−distance² / sigma²) to the nearest labelled or picked row, on features of unit length.

    Ours: sigma² is the median squared distance to the 20th neighbour, where the paper has sigma = 1 for the features
    of its own networks; of a larger pool only ``max_candidates`` rows drawn at random are covered and asked about (the
    paper's code: 35,000).
    """
    view, x, known = _unit_features(view, budget, rng, sigma, max_candidates)
    sigma2 = sigma**2 if sigma is not None else neighbour_sigma2(x)
    covered = coverage_by(nearest_labelled(x, known), sigma2)
    picks, _ = greedy_coverage(x, np.ones(len(x)), covered, np.ones(len(x), dtype=bool), budget, sigma2)
    return view.rows[picks]


def _unit_features(
    view: PoolView, budget: int, rng: np.random.Generator, sigma: float | None, max_candidates: int
) -> tuple[PoolView, FloatArray, FloatArray]:
    """The candidates, and their features and those of the labelled rows at unit length."""
    if sigma is not None and not sigma > 0:
        raise ConfigError(f"sigma is {sigma}; it must be positive.")
    view = subsample(view, max_candidates, budget, rng)
    known = view.labelled_features
    return view, unit(view.features), unit(known) if len(known) else known
