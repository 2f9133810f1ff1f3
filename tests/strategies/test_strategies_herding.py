"""Herding: labels cover from the start, and a strategy is the greedy of ``agcd.herding`` on what it may see."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from agcd.arrays import unit
from agcd.errors import ConfigError
from agcd.herding import greedy_coverage, neighbour_sigma2
from agcd.strategies import select
from agcd.strategies.herding import (
    TEMPERATURES,
    calibrated_temperature,
    smallest_squared_distance,
    tempered,
)
from agcd.types import FloatArray, IntArray, PoolView


def make_view(x: FloatArray, labelled: FloatArray, n_slots: int = 4, seed: int = 0) -> PoolView:
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(n_slots, 0.4), size=len(x))
    return PoolView(10 * np.arange(len(x)), probs, x, labelled, np.zeros(len(labelled), dtype=np.int64), 1)


def ask(view: PoolView, name: str, budget: int, seed: int = 0, **options: Any) -> IntArray:
    return select(view, name, budget, np.random.default_rng(seed), options)


def groups(sizes: list[int], noise: float = 0.01, d: int = 8) -> FloatArray:
    """Groups of rows around the axes."""
    rng = np.random.default_rng(1)
    return unit(np.repeat(np.eye(d)[: len(sizes)], sizes, axis=0) + noise * rng.standard_normal((sum(sizes), d)))


def test_max_herding_asks_about_the_largest_group_without_labels_first() -> None:
    x = groups([40, 20, 10])
    group = np.repeat([0, 1, 2], [40, 20, 10])
    rows = ask(make_view(x, np.empty((0, 8))), "max_herding", 3, sigma=0.3)
    assert group[rows // 10].tolist() == [0, 1, 2]
    rows = ask(make_view(x, x[:1]), "max_herding", 2, sigma=0.3)
    assert group[rows // 10].tolist() == [1, 2], "the labelled group is covered"


def test_max_herding_is_the_greedy_of_the_library_with_equal_weights() -> None:
    x = unit(np.random.default_rng(0).standard_normal((90, 6)))
    everything = np.ones(90, dtype=bool)
    for sigma in (None, 0.7):
        sigma2 = neighbour_sigma2(x) if sigma is None else sigma**2
        due = greedy_coverage(x, everything, np.zeros(90), everything, 15, sigma2)[0]
        options: dict[str, Any] = {} if sigma is None else {"sigma": sigma}
        assert (ask(make_view(3 * x, np.empty((0, 6))), "max_herding", 15, **options) // 10).tolist() == due.tolist()


def test_a_kernel_too_fine_for_any_neighbour_picks_every_row_once() -> None:
    view = make_view(groups([10, 10]), np.empty((0, 8)))
    assert sorted(ask(view, "max_herding", 20, sigma=1e-30).tolist()) == view.rows.tolist()


@pytest.mark.parametrize("name", ["max_herding", "uncertainty_herding"])
@pytest.mark.parametrize("sigma", [0.0, -1.0, float("nan")])
def test_a_sigma_that_is_not_positive_is_refused(name: str, sigma: float) -> None:
    with pytest.raises(ConfigError, match=r"sigma is .*; it must be positive"):
        ask(make_view(groups([5, 5]), np.empty((0, 8))), name, 2, sigma=sigma)


# --- UHerding ----------------------------------------------------------------------------------------------------


def answered(view: PoolView, rounds: list[int], probs: FloatArray | None = None) -> PoolView:
    """With rounds of the labelled rows, and what the asking models thought of them."""
    return replace(view, labelled_rounds=np.array(rounds, dtype=np.int64), labelled_probs=probs)


def test_before_the_first_answer_uncertainty_herding_is_max_herding() -> None:
    x = unit(np.random.default_rng(0).standard_normal((90, 6)))
    view = answered(make_view(x[10:], x[:10]), [0] * 10, np.full((10, 4), 0.25))
    assert ask(view, "uncertainty_herding", 20).tolist() == ask(view, "max_herding", 20).tolist()


def test_uncertainty_herding_is_the_greedy_of_the_library_with_what_answers_say() -> None:
    rng = np.random.default_rng(0)
    x, probs = unit(rng.standard_normal((90, 6))), rng.dirichlet(np.full(4, 0.4), size=10)
    view = answered(make_view(x[10:], x[:10]), [0, 0, 0, 1, 1, 1, 2, 2, 2, 2], probs)
    view = replace(view, labelled_slots=rng.integers(0, 4, 10))
    square = ((x[3:10, None] - x[None, 3:10]) ** 2).sum(2)
    sigma2 = float(square[square > 1e-6].min())
    soft = view.probs ** (1 / calibrated_temperature(probs[3:], view.labelled_slots[3:]))
    top = np.sort(soft / soft.sum(1, keepdims=True), axis=1)
    covered = np.exp(-((x[10:, None] - x[None, :10]) ** 2).sum(2) / sigma2).max(1)
    due = greedy_coverage(x[10:], 1 - top[:, -1] + top[:, -2], covered, np.ones(80, dtype=bool), 15, sigma2)[0]
    assert (ask(view, "uncertainty_herding", 15) // 10).tolist() == due.tolist()


def test_sure_rows_are_left_alone_however_many_they_are() -> None:
    x = groups([40, 10])
    view = make_view(x, np.empty((0, 8)))
    probs = np.repeat([[0.97, 0.01, 0.01, 0.01], [0.4, 0.4, 0.1, 0.1]], [40, 10], axis=0)
    assert (ask(replace(view, probs=probs), "uncertainty_herding", 1, temperature=1.0)[0] // 10) >= 40
    assert (ask(replace(view, probs=probs), "uncertainty_herding", 1)[0] // 10) < 40, "nothing says it is sure"


def test_answers_that_were_wrong_soften_and_answers_that_were_right_sharpen() -> None:
    probs = np.tile([0.7, 0.1, 0.1, 0.1], (50, 1))
    wrong, right = np.arange(50) % 4, np.zeros(50, dtype=np.int64)
    assert calibrated_temperature(probs, wrong) > 5, "one in four is right, as if by chance"
    assert calibrated_temperature(probs, right) == TEMPERATURES[0]
    assert tempered(probs, calibrated_temperature(probs, wrong))[0, 0] == pytest.approx(0.26, abs=0.02)


def test_temperature_is_a_divisor_of_the_logits() -> None:
    logits = np.random.default_rng(0).standard_normal((6, 5))
    probs, soft = (np.exp(logits / t) / np.exp(logits / t).sum(1, keepdims=True) for t in (1, 3))
    np.testing.assert_allclose(tempered(probs, 3.0), soft)
    np.testing.assert_allclose(tempered(np.eye(3), 1.0), np.eye(3), atol=1e-12)


def test_the_smallest_distance_ignores_copies_and_one_row_has_none() -> None:
    x = np.array([[0.0, 0.0], [0.0, 0.0], [3.0, 4.0], [10.0, 0.0]])
    assert smallest_squared_distance(x) == pytest.approx(25)
    assert smallest_squared_distance(x[:2]) == smallest_squared_distance(x[:1]) == np.inf
    assert smallest_squared_distance(np.empty((0, 2))) == np.inf


@pytest.mark.parametrize("temperature", [0.0, -2.0])
def test_a_temperature_that_is_not_positive_is_refused(temperature: float) -> None:
    with pytest.raises(ConfigError, match=r"temperature is .*; it must be positive"):
        ask(make_view(groups([5, 5]), np.empty((0, 8))), "uncertainty_herding", 2, temperature=temperature)
