"""Strategies that raise the generalised coverage of the pool (``agcd.herding``): MaxHerding and UHerding."""

from __future__ import annotations

import numpy as np

from agcd.arrays import blocks, calibration_error, floats, margin_of, squared_distances, subsample, unit
from agcd.errors import ConfigError
from agcd.herding import SMALLEST_SIGMA2, coverage_by, greedy_coverage, neighbour_sigma2
from agcd.strategies.diversity import nearest_labelled
from agcd.types import BoolArray, FloatArray, IntArray, PoolView, grows_with, needs

TEMPERATURES = np.geomspace(0.1, 100, 61)
"""Of UHerding: from far surer than the model says to hardly any difference between rows."""


@grows_with("pairs")
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
    return _herd(view, x, known, np.ones(len(x)), budget, sigma2)


@grows_with("pairs")
@needs("labelled_probs")
def uncertainty_herding(
    view: PoolView,
    budget: int,
    rng: np.random.Generator,
    *,
    sigma: float | None = None,
    temperature: float | None = None,
    max_candidates: int = 10_000,
) -> IntArray:
    """Picks, one after another, the row that best covers the unsure rows that labels and picks have not covered.

    UHerding (Bae, Oliveira and Sutherland 2025): MaxHerding in which every row counts as much as the model is unsure of
    it, 1 − margin of its calibrated probabilities. It goes from coverage to uncertainty by itself: the probabilities
    are softened by the temperature with the smallest expected calibration error on labels the model has not learned
    from, and sigma is the smallest distance between two labelled rows, which shrinks as answers come in.

    Ours: those labels are the answers, as the models that asked saw them (the paper trains another model on 70 % of the
    labels and measures on the rest), and before the first answer all rows count alike. Sigma looks at answers only, as
    labels of the start are many and lie close from the start; with fewer than two it is that of ``max_herding``. Of a
    larger pool only ``max_candidates`` rows drawn at random are covered and asked about.
    """
    if temperature is not None and not temperature > 0:
        raise ConfigError(f"temperature is {temperature}; it must be positive.")
    view, x, known = _unit_features(view, budget, rng, sigma, max_candidates)
    asked = _asked(view)
    sigma2 = smallest_squared_distance(known[asked]) if sigma is None else sigma**2
    if sigma2 == np.inf:
        sigma2 = neighbour_sigma2(x)
    if temperature is None and view.labelled_probs is not None and asked.any():
        temperature = calibrated_temperature(view.labelled_probs[asked], view.labelled_slots[asked])
    unsure = np.ones(len(x)) if temperature is None else 1 - margin_of(tempered(view.probs, temperature))
    return _herd(view, x, known, unsure if unsure.any() else np.ones(len(x)), budget, sigma2)


def _asked(view: PoolView) -> BoolArray:
    """Which labelled rows are answers (m,); all of them when nobody knows."""
    if view.labelled_rounds is None:
        return np.ones(len(view.labelled_slots), dtype=bool)
    return view.labelled_rounds > 0


def smallest_squared_distance(x: FloatArray) -> float:
    """The smallest squared distance between two rows that are not copies: (n, d) → number; inf if there are none."""
    smallest = np.inf
    for part in blocks(len(x), max(len(x) // 16, 1)):
        square = squared_distances(x[part], x)
        smallest = min(smallest, float(square.min(initial=np.inf, where=square >= SMALLEST_SIGMA2)))
    return smallest


def calibrated_temperature(probs: FloatArray, y_slot: IntArray) -> float:
    """The temperature at which probabilities (m, K) of rows with known slots (m,) are calibrated best."""
    right = probs.argmax(1) == y_slot
    errors = [calibration_error(tempered(probs, t), right) for t in TEMPERATURES]
    return float(TEMPERATURES[int(np.argmin(errors))])


def tempered(probs: FloatArray, temperature: float) -> FloatArray:
    """Probabilities softened (temperature > 1) or sharpened, as if all logits were divided by it: (n, K) → (n, K)."""
    p = floats(probs)
    logits = np.log(np.maximum(p, np.finfo(p.dtype).tiny)) / p.dtype.type(temperature)
    raised = np.exp(logits - logits.max(1, keepdims=True))
    return np.asarray(raised / raised.sum(1, keepdims=True))


def _herd(
    view: PoolView, x: FloatArray, known: FloatArray, weights: FloatArray, budget: int, sigma2: float
) -> IntArray:
    """The rows that cover most, labelled ones covering from the start."""
    sigma2 = max(sigma2, SMALLEST_SIGMA2)
    covered = coverage_by(nearest_labelled(x, known), sigma2)
    picks, _ = greedy_coverage(x, weights, covered, np.ones(len(x), dtype=bool), budget, sigma2)
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
