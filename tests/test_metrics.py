"""Metrics against all permutations and against numbers the paper printed."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agcd.arrays import calibration_error
from agcd.metrics import (
    accuracy,
    balanced_accuracy,
    confidence,
    mapped_accuracy,
    novelty,
)
from agcd.types import IntArray

samples = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), min_size=1, max_size=20).map(
    lambda pairs: (np.array([c for c, _ in pairs]), np.array([s for _, s in pairs]))
)


def best_by_brute_force(y_class: IntArray, y_slot: IntArray, n_old: int) -> tuple[int, int]:
    """(hits, hits on old) of the best assignment; among equals the one with most old hits."""
    n = max(y_class.max(), y_slot.max()) + 1
    outcomes = []
    for slots in permutations(range(n)):
        hit = np.array(slots)[y_class] == y_slot
        outcomes.append((int(hit.sum()), int(hit[y_class < n_old].sum())))
    return max(outcomes)


def assert_same(a: dict[str, float], b: dict[str, float]) -> None:
    assert a.keys() == b.keys()
    for key in a:
        assert a[key] == pytest.approx(b[key], nan_ok=True)


@given(samples, st.integers(0, 5))
@example((np.array([3, 0, 1, 1]), np.array([2, 2, 0, 1])), 2)  # a tie that the solver alone settles for New
def test_accuracy_is_that_of_the_best_permutation(pair: tuple[IntArray, IntArray], n_old: int) -> None:
    y_class, y_slot = pair
    hits, old_hits = best_by_brute_force(y_class, y_slot, n_old)
    is_old = y_class < n_old
    nan = float("nan")
    expected = {
        "acc_all": hits / len(y_class),
        "acc_old": old_hits / is_old.sum() if is_old.any() else nan,
        "acc_new": (hits - old_hits) / (~is_old).sum() if (~is_old).any() else nan,
    }
    assert_same(accuracy(y_class, y_slot, n_old), expected)


@given(samples, st.integers(0, 5), st.permutations(range(9)))
@example((np.array([0, 1, 3, 1]), np.array([1, 1, 2, 2])), 1, [2, 3, 0, 1, 5, 4])  # needs unused slots left out
@example((np.array([2, 1, 2, 2]), np.array([3, 2, 2, 2])), 3, [0, 3, 4, 1, 5, 2])  # needs sorted columns
def test_accuracies_do_not_change_when_slots_are_renumbered(
    pair: tuple[IntArray, IntArray], n_old: int, order: list[int]
) -> None:
    y_class, y_slot = pair
    renumbered = np.array(order)[y_slot]
    assert_same(accuracy(y_class, y_slot, n_old), accuracy(y_class, renumbered, n_old))
    assert_same(balanced_accuracy(y_class, y_slot, n_old), balanced_accuracy(y_class, renumbered, n_old))


@given(samples, st.integers(0, 5), st.randoms(use_true_random=False))
def test_accuracies_do_not_change_when_samples_are_shuffled(
    pair: tuple[IntArray, IntArray], n_old: int, random: Any
) -> None:
    y_class, y_slot = pair
    order = random.sample(range(len(y_class)), len(y_class))
    assert_same(accuracy(y_class, y_slot, n_old), accuracy(y_class[order], y_slot[order], n_old))
    assert_same(balanced_accuracy(y_class, y_slot, n_old), balanced_accuracy(y_class[order], y_slot[order], n_old))


def test_one_assignment_is_shared_by_old_and_new() -> None:
    # two assignments (v1) would give both classes slot 0 and call everything right
    result = accuracy(np.repeat([0, 1], [6, 4]), np.zeros(10, dtype=np.int64), n_old=1)
    assert result == {"acc_all": 0.6, "acc_old": 1.0, "acc_new": 0.0}


def test_a_tie_never_flatters_the_new_classes() -> None:
    # either class may have the slot; All is 0.5 both ways
    result = accuracy(np.array([0, 0, 1, 1]), np.zeros(4, dtype=np.int64), n_old=1)
    assert result == {"acc_all": 0.5, "acc_old": 1.0, "acc_new": 0.0}


def test_slots_without_a_class_and_classes_without_a_slot_are_errors() -> None:
    assert accuracy(np.array([0, 0, 0, 0]), np.array([0, 0, 1, 2]), 1)["acc_all"] == 0.5
    assert accuracy(np.array([0, 1, 2, 3]), np.array([0, 0, 0, 0]), 1)["acc_all"] == 0.25


def test_an_empty_part_is_nan_and_nothing_at_all_is_no_error() -> None:
    nothing = np.empty(0, dtype=np.int64)
    for metric in (accuracy, balanced_accuracy):
        assert all(np.isnan(list(metric(nothing, nothing, 2).values())))
        assert np.isnan(list(metric(np.array([0, 1]), np.array([1, 0]), 2).values())).tolist() == [
            False,
            False,
            True,
        ]
        assert np.isnan(list(metric(np.array([0, 1]), np.array([1, 0]), 0).values())).tolist() == [
            False,
            True,
            False,
        ]


def test_an_unlabelled_sample_is_refused() -> None:
    for call in (accuracy, balanced_accuracy):
        with pytest.raises(ValueError, match="-1"):
            call(np.array([0, -1]), np.array([0, 0]), 1)
    with pytest.raises(ValueError, match="-1"):
        mapped_accuracy(np.array([0, -1]), np.array([0, 0]), np.array([0]), 1)
    with pytest.raises(ValueError, match="−1"):
        novelty(np.array([0, -1]), 1, 1)


def test_balanced_accuracy_counts_every_class_the_same() -> None:
    y_class = np.repeat([0, 1, 3], [8, 2, 4])
    y_slot = np.concatenate([np.zeros(8), [1, 0], np.full(3, 2), [0]]).astype(np.int64)
    assert balanced_accuracy(y_class, y_slot, n_old=2) == {"bal_all": 0.75, "bal_old": 0.75, "bal_new": 0.75}
    assert accuracy(y_class, y_slot, n_old=2)["acc_all"] == pytest.approx(12 / 14)


def test_mapped_accuracy_follows_the_given_mapping_and_unknown_classes_are_errors() -> None:
    y_class, y_slot = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 2, 2, 1])
    assert mapped_accuracy(y_class, y_slot, np.array([0, 2]), 1) == {
        "mapped_all": 0.6,
        "mapped_old": 0.5,
        "mapped_new": pytest.approx(2 / 3),
    }
    assert mapped_accuracy(y_class, y_slot, np.array([0, 2, 1, 7]), 1)["mapped_all"] == 0.8


@given(samples, st.integers(0, 5))
def test_no_mapping_beats_the_hungarian_one(pair: tuple[IntArray, IntArray], n_old: int) -> None:
    best = accuracy(*pair, n_old)["acc_all"]
    for slots in ([0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [5, 3, 1, 0, 2]):
        assert mapped_accuracy(*pair, np.array(slots), n_old)["mapped_all"] <= best


# --- novelty -----------------------------------------------------------------------------------------------------


def test_novelty_of_an_even_query() -> None:
    assert novelty(np.array([0, 0, 2, 3, 4, 5]), n_old=2, n_novel=4) == {
        "nov_coverage": 1.0,
        "nov_ratio": pytest.approx(4 / 6),
        "nov_uniformity": pytest.approx(1.0),
        "nov_information": pytest.approx(4 / 6),
    }


def test_the_printed_row_of_random_on_cifar100_is_possible_under_our_uniformity_and_not_under_the_printed_one() -> None:
    # paper: Nov-C 1.00, Nov-R 0.52, Nov-U 0.97, Nov-I 0.50, for 500 uniform draws of 50 old and 50 novel classes
    drawn = [novelty(np.random.default_rng(s).integers(0, 100, 500), n_old=50, n_novel=50) for s in range(50)]
    mean = {key: np.mean([d[key] for d in drawn]) for key in drawn[0]}
    assert mean["nov_coverage"] == pytest.approx(1.0, abs=0.005)
    assert mean["nov_ratio"] == pytest.approx(0.5, abs=0.02)
    assert mean["nov_uniformity"] == pytest.approx(0.97, abs=0.01)
    share = 0.52 / 50  # even counts maximise the printed formula too, which divides by all 500
    assert -50 * share * np.log(share) / np.log(50) == pytest.approx(0.607, abs=0.001)


def test_information_is_ratio_times_uniformity_as_in_the_papers_table() -> None:
    for ratio, uniformity, information in ((0.52, 0.97, 0.50), (0.63, 0.95, 0.60), (0.66, 0.93, 0.61)):
        assert ratio * uniformity == pytest.approx(information, abs=0.01)
    result = novelty(np.array([0, 2, 2, 2, 3]), n_old=2, n_novel=3)
    assert result["nov_information"] == pytest.approx(result["nov_ratio"] * result["nov_uniformity"])
    assert result["nov_uniformity"] == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)) / np.log(3))


def test_no_novel_sample_means_zero_everywhere() -> None:
    for queried in ([], [0, 1]):
        values = novelty(np.array(queried, dtype=np.int64), n_old=2, n_novel=5)
        assert set(values.values()) == {0.0}


def test_a_single_novel_class_is_uniform_once_found_and_surplus_classes_do_not_break_the_scale() -> None:
    assert novelty(np.array([0, 1, 1]), n_old=1, n_novel=1)["nov_uniformity"] == 1.0
    surplus = novelty(np.array([1, 2, 3, 4]), n_old=1, n_novel=2)
    assert max(surplus.values()) == pytest.approx(1.0)
    assert novelty(np.array([0, 0]), n_old=1, n_novel=0)["nov_coverage"] == 0.0


# --- confidence --------------------------------------------------------------------------------------------------


def test_confidence_is_averaged_over_old_and_new_apart() -> None:
    probs = np.array([[1.0, 0.0], [0.5, 0.5], [0.75, 0.25]])
    result = confidence(probs, np.array([False, True, False]))
    assert result["msp_old"] == 0.875
    assert result["margin_old"] == 0.75
    assert result["margin_new"] == 0.0
    assert result["entropy_new"] == pytest.approx(np.log(2))
    assert np.isnan(confidence(probs, np.zeros(3, dtype=bool))["msp_new"])


def test_calibration_error_is_zero_for_honest_and_the_gap_for_boastful_models() -> None:
    probs = np.tile([0.8, 0.2], (10, 1))
    assert calibration_error(probs, np.arange(10) < 8) == pytest.approx(0.0)
    assert calibration_error(probs, np.arange(10) < 5) == pytest.approx(0.3)
    assert calibration_error(np.tile([1.0, 0.0], (4, 1)), np.zeros(4, dtype=bool)) == 1.0
    assert np.isnan(calibration_error(np.empty((0, 2)), np.empty(0, dtype=bool)))


@given(st.lists(st.tuples(st.floats(0.5, 1.0), st.booleans()), min_size=1, max_size=30), st.integers(1, 15))
def test_calibration_error_equals_a_loop_over_the_bins(items: list[tuple[float, bool]], n_bins: int) -> None:
    top, correct = np.array([p for p, _ in items]), np.array([c for _, c in items])
    total = 0.0
    for i in range(n_bins):
        inside = (np.ceil(top * n_bins) == i + 1).nonzero()[0]
        if len(inside):
            total += abs(top[inside].mean() - correct[inside].mean()) * len(inside) / len(top)
    assert calibration_error(np.stack([top, 1 - top], 1), correct, n_bins) == pytest.approx(total, abs=1e-12)
