"""Generalised coverage: the lazy greedy against a slow twin that measures every row for every pick."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agcd import herding
from agcd.arrays import unit
from agcd.herding import coverage_by, greedy_coverage, neighbour_sigma2
from agcd.types import BoolArray, FloatArray


def make_points(n: int, d: int = 4, seed: int = 0) -> FloatArray:
    return unit(np.random.default_rng(seed).standard_normal((n, d)))


def slow_kernel(x: FloatArray, sigma2: float) -> FloatArray:
    gap = x[:, None].astype(np.float64) - x[None]
    return np.asarray(np.exp(-(gap**2).sum(2) / sigma2))


def slow_greedy(
    x: FloatArray, weights: FloatArray, covered: FloatArray, may_pick: BoolArray, count: int, sigma2: float
) -> tuple[list[int], FloatArray]:
    """Tries every row that may be picked, in double precision, and keeps the one with the largest sum."""
    kernel, picks = slow_kernel(x, sigma2), list[int]()
    while len(picks) < min(count, may_pick.sum()):
        left = [i for i in np.flatnonzero(may_pick) if i not in picks]
        picks.append(int(max(left, key=lambda i: (weights * np.maximum(covered, kernel[i])).sum())))
        covered = np.maximum(covered, kernel[picks[-1]])
    return picks, covered


@pytest.mark.parametrize("most_kept", [0, 10_000])
@given(
    n=st.integers(1, 90),
    n_labelled=st.integers(0, 5),
    count=st.integers(1, 95),
    sigma2=st.sampled_from([0.05, 0.5, 2.0]),
    seed=st.integers(0, 10_000),
)
@settings(deadline=None, max_examples=60)
def test_lazy_greedy_picks_what_measuring_every_row_picks(
    most_kept: int, n: int, n_labelled: int, count: int, sigma2: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x, weights, may_pick = make_points(n, seed=seed), rng.random(n), rng.random(n) < 0.7
    known = make_points(n_labelled, seed=seed + 1)
    nearest = ((x[:, None] - known[None]) ** 2).sum(2).min(1, initial=np.inf)
    covered = coverage_by(nearest, sigma2)
    due, due_covered = slow_greedy(x, weights, covered, may_pick, count, sigma2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(herding, "MOST_KEPT", most_kept)
        patch.setattr(herding, "RENEWED_AT_ONCE", 5)
        picks, after = greedy_coverage(x, weights, covered, may_pick, count, sigma2)
    assert_same_picks(picks.tolist(), due, slow_kernel(x, sigma2), weights, covered)
    if picks.tolist() == due:
        np.testing.assert_allclose(after, due_covered, atol=1e-5)


def assert_same_picks(
    picks: list[int], due: list[int], kernel: FloatArray, weights: FloatArray, covered: FloatArray
) -> None:
    """Equal up to the first pick at which both gain the same within single precision: after a tie all may differ."""
    assert len(picks) == len(set(picks)) == len(due)
    for ours, theirs in zip(picks, due, strict=True):
        gain_ours, gain_theirs = (weights @ np.maximum(kernel[i] - covered, 0) for i in (ours, theirs))
        if ours != theirs:
            assert gain_ours == pytest.approx(gain_theirs, abs=1e-5 * weights.sum())
            return
        covered = np.maximum(covered, kernel[ours])


def test_on_separate_points_the_twin_is_equalled_pick_by_pick() -> None:
    for seed in range(5):
        x, rng = make_points(400, d=16, seed=seed), np.random.default_rng(seed)
        weights, everything = rng.random(400), np.ones(400, dtype=bool)
        picks, covered = greedy_coverage(x, weights, np.zeros(400), everything, 30, 0.5)
        due, due_covered = slow_greedy(x, weights, np.zeros(400), everything, 30, 0.5)
        assert picks.tolist() == due
        np.testing.assert_allclose(covered, due_covered, atol=1e-5)


def test_picking_in_two_parts_is_picking_at_once() -> None:
    x, everything = make_points(200), np.ones(200, dtype=bool)
    at_once, covered = greedy_coverage(x, everything, np.zeros(200), everything, 12, 0.3)
    first, so_far = greedy_coverage(x, everything, np.zeros(200), everything, 5, 0.3)
    may_pick = ~np.isin(np.arange(200), first)
    second, after = greedy_coverage(x, everything, so_far, may_pick, 7, 0.3)
    assert [*first, *second] == at_once.tolist()
    np.testing.assert_array_equal(after, covered)


def test_rows_without_weight_attract_no_pick_and_arguments_stay_unchanged() -> None:
    x = np.repeat(np.eye(3, dtype=np.float32), [10, 5, 3], axis=0)
    weights, covered, may_pick = np.repeat([0.0, 1.0, 1.0], [10, 5, 3]), np.zeros(18), np.ones(18, dtype=bool)
    for array in (x, weights, covered, may_pick):
        array.flags.writeable = False
    picks, after = greedy_coverage(x, weights, covered, may_pick, 2, 0.1)
    assert picks.tolist() == [10, 15], "the larger group with weight first, its first row"
    np.testing.assert_allclose(after, np.repeat([0.0, 1.0, 1.0], [10, 5, 3]), atol=1e-6)


def test_what_may_not_be_picked_is_covered_all_the_same() -> None:
    x = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    may_pick = np.array([False, False, True, True])
    assert greedy_coverage(x, np.ones(4), np.zeros(4), may_pick, 9, 0.5)[0].tolist() == [2, 3]


def test_labels_far_away_cover_nothing() -> None:
    np.testing.assert_allclose(coverage_by(np.array([0.0, 0.5, np.inf]), 0.5), [1, np.exp(-1), 0])


def test_default_sigma_is_the_median_distance_to_the_twentieth_neighbour(monkeypatch: pytest.MonkeyPatch) -> None:
    x = make_points(120)
    square = np.sort(((x[:, None] - x[None]) ** 2).sum(2), axis=1)
    assert neighbour_sigma2(x) == pytest.approx(np.median(square[:, 20]))
    assert neighbour_sigma2(x[:2]) == pytest.approx(square_distance(x[0], x[1]))
    monkeypatch.setattr(herding, "N_MEASURED", 50)
    assert neighbour_sigma2(x) == pytest.approx(np.median(square[:, 20]), rel=0.2)


def square_distance(a: FloatArray, b: FloatArray) -> float:
    return float(((a - b) ** 2).sum())


def test_default_sigma_is_positive_for_copies_and_for_one_row() -> None:
    assert neighbour_sigma2(np.ones((50, 3))) == herding.SMALLEST_SIGMA2
    assert neighbour_sigma2(np.ones((1, 3))) == 1
