from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.special import expit

from agcd.accuracy import CHOSEN, DRAWN, GIVEN, POOL, Checked, Shift, ShiftPrior, pool_shift, shift_posterior, wilson
from agcd.arrays import Float64Array
from agcd.signs import PRIOR

NARROW = ShiftPrior(np.array([0.2, 0.3, -0.2, 0.1]), 0.3 * np.eye(4) + 0.4)

logit_lists = st.lists(st.floats(-8, 8), min_size=0, max_size=60)


def checked_rows(seed: int, n: int = 60, shift: float = 0.0) -> Checked:
    rng = np.random.default_rng(seed)
    logit = rng.normal(1, 2, size=n)
    kind = rng.choice([GIVEN, CHOSEN, DRAWN], size=n)
    return Checked(logit, rng.random(n) < expit(logit + shift), kind)


def log_posterior(shift: Float64Array, checked: Checked, prior: ShiftPrior) -> float:
    """The slow twin: written down as it is defined."""
    away = shift - prior.mean
    total = -0.5 * float(away @ np.linalg.inv(prior.spread) @ away)
    for logit, is_right, kind in zip(checked.logit, checked.is_right, checked.kind, strict=True):
        p = float(expit(logit + shift[kind]))
        total += np.log(p if is_right else 1 - p)
    return total


@pytest.mark.parametrize("seed", range(3))
def test_the_mode_is_the_highest_point_and_the_covariance_its_curvature(seed: int) -> None:
    checked = checked_rows(seed)
    mode, covariance = shift_posterior(checked, NARROW)
    step, top = 1e-3, log_posterior(mode, checked, NARROW)
    eye = step * np.eye(4)
    for i in range(4):
        assert log_posterior(mode + eye[i], checked, NARROW) < top > log_posterior(mode - eye[i], checked, NARROW)
    curvature = [
        [log_posterior(mode + a + b, checked, NARROW) - log_posterior(mode + a - b, checked, NARROW)
         - log_posterior(mode - a + b, checked, NARROW) + log_posterior(mode - a - b, checked, NARROW) for b in eye]
        for a in eye
    ]  # fmt: skip
    np.testing.assert_allclose(-np.array(curvature) / (4 * step**2), np.linalg.inv(covariance), rtol=1e-3, atol=1e-3)


def test_without_tested_rows_the_prior_is_all_that_is_known() -> None:
    nothing = Checked(np.zeros(0), np.zeros(0, bool), np.zeros(0, np.int64))
    shift = pool_shift(nothing, NARROW)
    assert shift.mean == pytest.approx(NARROW.mean[POOL])
    assert shift.deviation == pytest.approx(np.sqrt(NARROW.spread[POOL, POOL]))


@settings(deadline=None)
@given(logit_lists, st.floats(-5, 5), st.floats(0, 3))
def test_the_interval_lies_between_0_and_1_and_holds_the_mean(
    logit: list[float], mean: float, deviation: float
) -> None:
    estimate = Shift(mean, deviation).accuracy(np.array(logit))
    assert 0 <= estimate.low <= estimate.mean <= estimate.high <= 1


@settings(deadline=None)
@given(st.integers(0, 1000), st.integers(0, 1000))
def test_the_order_of_rows_plays_no_part(seed: int, other: int) -> None:
    checked = checked_rows(seed, 30)
    order = np.random.default_rng(other).permutation(30)
    mixed = Checked(checked.logit[order], checked.is_right[order], checked.kind[order])
    assert pool_shift(checked, PRIOR).mean == pytest.approx(pool_shift(mixed, PRIOR).mean, abs=1e-6)
    logit = checked.logit
    assert Shift(0, 1).accuracy(logit) == Shift(0, 1).accuracy(logit[order])


@settings(deadline=None)
@given(st.integers(0, 1000), st.integers(0, 29))
def test_an_answer_that_turns_out_right_never_lowers_the_figure(seed: int, i: int) -> None:
    checked = checked_rows(seed, 30)
    pool = np.linspace(-1, 4, 50)
    figures = []
    for is_right in (False, True):
        right = checked.is_right.copy()
        right[i] = is_right
        figures.append(pool_shift(Checked(checked.logit, right, checked.kind), PRIOR).accuracy(pool).mean)
    assert figures[0] <= figures[1] + 1e-6


@pytest.mark.parametrize(("is_right", "low", "high"), [(True, 0.9, 1.0), (False, 0.0, 0.5)])
def test_all_right_gives_a_high_figure_and_all_wrong_a_low_one(is_right: bool, low: float, high: float) -> None:
    checked = Checked(np.ones(100), np.full(100, is_right), np.repeat([CHOSEN, DRAWN], 50))
    assert low <= pool_shift(checked, PRIOR).accuracy(np.ones(500)).mean <= high


def test_more_answers_make_the_interval_narrower() -> None:
    pool = np.linspace(-1, 4, 200)
    widths = []
    for n in (10, 100, 1000):
        estimate = pool_shift(checked_rows(0, n), PRIOR).accuracy(pool)
        widths.append(estimate.high - estimate.low)
    assert widths[0] > widths[1] > widths[2]


def test_intervals_hold_the_truth_as_often_as_they_say_where_the_model_is_true() -> None:
    """400 projects drawn from the model itself: 90 % ± 4.5 (three standard errors)."""
    rng, inside = np.random.default_rng(0), []
    for _ in range(400):
        shift = rng.multivariate_normal(NARROW.mean, NARROW.spread)
        pool, logit = rng.normal(1, 2, size=2000), rng.normal(0, 2, size=150)
        kind = np.repeat([GIVEN, CHOSEN, DRAWN], [50, 75, 25])
        checked = Checked(logit, rng.random(150) < expit(logit + shift[kind]), kind)
        accuracy = (rng.random(2000) < expit(pool + shift[POOL])).mean()
        estimate = pool_shift(checked, NARROW).accuracy(pool)
        inside.append(estimate.low <= accuracy <= estimate.high)
    assert 0.855 < np.mean(inside) < 0.945


def test_probabilities_of_an_uncertain_shift_are_drawn_to_the_middle() -> None:
    logit = np.array([-2.0, 0.0, 2.0])
    sure, unsure = Shift(0, 0).p_right(logit), Shift(0, 2).p_right(logit)
    np.testing.assert_allclose(sure, expit(logit))
    assert unsure[0] > sure[0]
    assert unsure[1] == pytest.approx(0.5)
    assert unsure[2] < sure[2]


def test_a_pool_without_rows_says_nothing() -> None:
    estimate = Shift(0, 1).accuracy(np.zeros(0))
    assert (estimate.low, estimate.high) == (0, 1)


def test_the_interval_of_a_share_is_wilsons() -> None:
    assert wilson(8, 10, 1.6449) == pytest.approx((0.541, 0.931), abs=2e-3)
