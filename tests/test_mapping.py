"""The label mapping against all permutations, its rules for ties and growth, and what counts as stable."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from agcd.assignment import DENSE_CELLS
from agcd.mapping import (
    consistency,
    contingency,
    describe_change,
    diff,
    free_assignment,
    is_stable,
    literal_diff,
    map_labels,
    mismatches,
    next_phase,
    slot_of_name,
    slots_needed,
)
from agcd.types import IntArray, LabelMapping, Phase

sizes = st.tuples(st.integers(1, 5), st.integers(1, 6))


@st.composite
def tables(draw: st.DrawFn) -> IntArray:
    """Small counts (classes × slots): many ties, some empty classes."""
    n_classes, n_slots = draw(sizes)
    cells = draw(st.lists(st.integers(0, 3), min_size=n_classes * n_slots, max_size=n_classes * n_slots))
    return np.array(cells, dtype=np.int64).reshape(n_classes, n_slots)


def rows_of(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Labelled rows that have this contingency table."""
    pairs = np.repeat(np.indices(counts.shape).reshape(2, -1), counts.ravel(), axis=1)
    return pairs[0], pairs[1]


def map_table(
    counts: IntArray, n_old: int = 0, pin_old: bool = True, previous: LabelMapping | None = None
) -> LabelMapping:
    return map_labels(*rows_of(counts), *counts.shape, n_old=n_old, pin_old=pin_old, previous=previous)


def mapping(*slots: int, unobserved: tuple[int, ...] = ()) -> LabelMapping:
    observed = ~np.isin(np.arange(len(slots)), unobserved)
    return LabelMapping(np.array(slots, dtype=np.int64), observed, 1.0)


def hits(counts: IntArray, slots: tuple[int, ...]) -> int:
    return sum(int(counts[c, s]) for c, s in enumerate(slots) if s < counts.shape[1])


def all_assignments(counts: IntArray, n_pinned: int) -> list[tuple[int, ...]]:
    n_classes, n_slots = counts.shape
    pinned = tuple(range(n_pinned))
    return [a for a in permutations(range(max(n_classes, n_slots)), n_classes) if a[:n_pinned] == pinned]


@given(tables())
def test_contingency_counts_every_pair(counts: IntArray) -> None:
    np.testing.assert_array_equal(contingency(*rows_of(counts), *counts.shape), counts)


@given(tables(), st.integers(0, 3), st.booleans())
def test_mapping_has_the_most_hits_of_all_assignments(counts: IntArray, n_old: int, pin_old: bool) -> None:
    found = map_table(counts, n_old, pin_old)
    slots = tuple(found.slot_of_class.tolist())
    n_pinned = min(n_old, len(counts)) if pin_old else 0
    candidates = all_assignments(counts, n_pinned)
    assert slots in candidates
    assert hits(counts, slots) == max(hits(counts, a) for a in candidates)
    assert found.agreement == pytest.approx(hits(counts, slots) / counts.sum() if counts.sum() else 0)
    assert found.observed.tolist() == (counts.sum(1) > 0).tolist()


@given(tables(), st.permutations(range(6)))
def test_ties_keep_as_many_previous_slots_as_possible(counts: IntArray, before: list[int]) -> None:
    previous = mapping(*before[: len(counts)])
    found = tuple(map_table(counts, previous=previous).slot_of_class.tolist())
    seen = np.flatnonzero(counts.sum(1) > 0)

    def kept(slots: tuple[int, ...]) -> int:
        return sum(slots[c] == before[c] and before[c] < counts.shape[1] for c in seen)

    candidates = all_assignments(counts, 0)
    best = max(hits(counts, a) for a in candidates)
    assert kept(found) == max(kept(a) for a in candidates if hits(counts, a) == best)


@given(tables(), st.integers(0, 3), st.booleans())
def test_slots_are_never_shared_and_the_head_grows_no_more_than_needed(
    counts: IntArray, n_old: int, pin_old: bool
) -> None:
    found = map_table(counts, n_old, pin_old)
    assert len(set(found.slot_of_class.tolist())) == len(counts)
    assert found.slot_of_class.min() >= 0
    assert slots_needed(found) <= max(counts.shape)
    again = map_table(counts, n_old, pin_old, previous=found)
    np.testing.assert_array_equal(again.slot_of_class, found.slot_of_class)


@given(tables(), st.integers(0, 99))
def test_renumbering_the_slots_renumbers_the_mapping(counts: IntArray, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(counts.shape[1])
    straight, turned = map_table(counts), map_table(counts[:, order])
    assert straight.agreement == pytest.approx(turned.agreement)
    best = [a for a in all_assignments(counts, 0) if hits(counts, a) == hits(counts, tuple(straight.slot_of_class))]
    if len(best) == 1 and len(counts) <= counts.shape[1]:  # no ties
        np.testing.assert_array_equal(order[turned.slot_of_class], straight.slot_of_class)


def test_old_classes_are_pinned_even_against_the_counts_unless_asked_otherwise() -> None:
    counts = np.array([[0, 9, 0], [9, 0, 0], [0, 1, 2]])
    assert map_table(counts, n_old=2).slot_of_class.tolist() == [0, 1, 2]
    assert map_table(counts, n_old=2, pin_old=False).slot_of_class.tolist() == [1, 0, 2]


def test_unpinned_old_classes_keep_their_own_slot_in_a_tie() -> None:
    counts = np.array([[4, 4, 4], [4, 4, 4], [4, 4, 4]])
    assert map_table(counts, n_old=3, pin_old=False).slot_of_class.tolist() == [0, 1, 2]


def test_more_classes_than_slots_makes_the_head_grow() -> None:
    counts = np.array([[5, 0], [0, 3], [0, 4], [2, 0]])
    found = map_table(counts)
    assert found.slot_of_class.tolist() == [0, 2, 1, 3]
    assert slots_needed(found) == 4


def test_more_old_classes_than_slots_makes_the_head_grow() -> None:
    found = map_table(np.array([[5], [0], [1]]), n_old=2)
    assert found.slot_of_class.tolist() == [0, 1, 2]


def test_a_class_without_labelled_rows_keeps_its_slot_if_free_else_takes_the_lowest_free() -> None:
    counts = np.array([[0, 0, 0, 7], [0, 0, 0, 0], [0, 0, 0, 0]])
    found = map_table(counts, previous=mapping(0, 3, 2))
    assert found.slot_of_class.tolist() == [3, 0, 2]
    assert found.observed.tolist() == [True, False, False]


def test_a_class_without_hits_does_not_take_the_slot_of_one_without_labels() -> None:
    # class 1 loses slot 3 to class 0 and may go anywhere but to where class 2 waits
    counts = np.array([[0, 0, 0, 7], [0, 0, 0, 2], [0, 0, 0, 0]])
    for waiting in (0, 1, 2):
        found = map_table(counts, previous=mapping((waiting + 1) % 3, 3, waiting))
        assert found.slot_of_class[[0, 2]].tolist() == [3, waiting]


def test_a_previous_slot_beyond_the_head_is_forgotten_so_that_it_grows_without_gaps() -> None:
    counts = np.array([[5, 0], [0, 5], [1, 1]])
    assert map_table(counts, previous=mapping(0, 1, 7)).slot_of_class.tolist() == [0, 1, 2]


def test_classes_named_since_the_previous_mapping_are_added() -> None:
    counts = np.array([[4, 0, 0], [0, 4, 4], [0, 4, 4]])
    assert map_table(counts, previous=mapping(0, 2)).slot_of_class.tolist() == [0, 2, 1]
    assert map_table(counts, previous=mapping(0, 1)).slot_of_class.tolist() == [0, 1, 2]


def test_nothing_labelled_gives_a_mapping_all_the_same() -> None:
    found = map_table(np.zeros((3, 5), dtype=np.int64), n_old=2)
    assert found.slot_of_class.tolist() == [0, 1, 2]
    assert found.agreement == 0.0
    nothing = map_table(np.zeros((0, 5), dtype=np.int64))
    assert slots_needed(nothing) == 0


@pytest.mark.parametrize("bad", [-1, 3])
def test_labels_out_of_range_are_refused(bad: int) -> None:
    with pytest.raises(ValueError, match=f"{bad}"):
        contingency(np.array([0, bad]), np.array([0, 0]), 3, 3)
    with pytest.raises(ValueError, match=f"{bad}"):
        contingency(np.array([0, 0]), np.array([0, bad]), 3, 3)
    with pytest.raises(ValueError, match="2 classes were given for 1"):
        contingency(np.array([0, 0]), np.array([0]), 3, 3)


def test_large_counts_are_still_exact() -> None:
    n = 1_000_000
    y_class = np.repeat([0, 0, 1, 1], [n, n + 1, n, n])
    y_slot = np.repeat([0, 1, 0, 1], [n, n + 1, n, n])
    found = map_labels(y_class, y_slot, 2, 2, n_old=0, previous=mapping(0, 1))
    assert found.slot_of_class.tolist() == [1, 0]  # one row more outweighs every tie


# --- stability ---------------------------------------------------------------------------------------------------


def test_diff_is_the_share_of_moved_classes_out_of_all_slots() -> None:
    first, last = mapping(0, 1, 2, 3), mapping(0, 1, 3, 2)
    assert mismatches(first, last) == 2
    assert diff(first, last, n_slots=10) == pytest.approx(0.2)
    assert diff(first, last, n_slots=2) == pytest.approx(0.5)


def test_a_class_named_in_between_has_moved_only_if_it_has_labelled_rows() -> None:
    first = mapping(0, 1)
    assert mismatches(first, mapping(0, 1, 2)) == 1
    assert mismatches(first, mapping(0, 1, 2, unobserved=(2,))) == 0
    assert mismatches(first, mapping(0, 1, 2, unobserved=(0, 1, 2))) == 0
    assert mismatches(mapping(0, 1, 2), first) == 0


@given(st.integers(1, 5).flatmap(lambda k: st.lists(st.integers(0, 3), min_size=k * k, max_size=k * k)))
def test_the_free_assignment_is_a_permutation_with_the_most_hits_also_where_tables_are_sparse(cells: list[int]) -> None:
    k = math.isqrt(len(cells))
    counts = np.array(cells, dtype=np.int64).reshape(k, k)
    best = max(hits(counts, slots) for slots in permutations(range(k)))
    for limit in (DENSE_CELLS, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("agcd.mapping.DENSE_CELLS", limit)
            slots = tuple(free_assignment(*rows_of(counts), k).tolist())
        assert sorted(slots) == list(range(k))
        assert hits(counts, slots) == best


def test_the_free_assignment_is_that_of_the_published_code() -> None:
    counts = np.random.default_rng(0).integers(0, 2, size=(8, 8))
    counts[3:] = 0  # nobody has labelled five of the classes
    by_slot = counts.T
    slots, classes = linear_sum_assignment(by_slot.max() - by_slot)
    assert free_assignment(*rows_of(counts), 8).tolist() == slots[np.argsort(classes)].tolist()


def test_the_literal_diff_counts_classes_that_nobody_named_and_ours_does_not() -> None:
    y_class, before, after = np.array([0, 1]), np.array([0, 1]), np.array([0, 2])
    first, last = (map_labels(y_class, y_slot, 2, 4, n_old=1) for y_slot in (before, after))
    assert diff(first, last, 4) == 1 / 4
    assert literal_diff(y_class, before, after, 4) == 2 / 4, "the class that slot 2 stood for had to move as well"
    assert literal_diff(y_class, after, after, 4) == 0


def test_the_literal_diff_counts_old_classes_that_we_pin() -> None:
    y_class, before, after = np.array([0, 1, 2]), np.array([0, 1, 2]), np.array([1, 0, 2])
    first, last = (map_labels(y_class, y_slot, 3, 3, n_old=2) for y_slot in (before, after))
    assert diff(first, last, 3) == 0
    assert literal_diff(y_class, before, after, 3) == pytest.approx(2 / 3)


def test_stable_is_strict_and_is_not_fooled_by_rounding() -> None:
    assert 1 - 0.9 < 0.1  # the trap
    assert not is_stable(1 - 0.9)
    assert not is_stable(0.1)
    assert not is_stable(10 / 100)
    assert is_stable(9 / 100)
    assert is_stable(0.0)
    assert is_stable(0.2, threshold=0.25)


STABLE = (mapping(0, 1, 2, 3), mapping(0, 1, 2, 3))
SHAKEN = (mapping(0, 1, 2, 3), mapping(1, 0, 2, 3))


@pytest.mark.parametrize(
    ("history", "round", "expected"),
    [
        ([], 1, "confident"),
        ([SHAKEN], 2, "confident"),
        ([STABLE], 2, "informative"),
        ([SHAKEN, STABLE], 3, "informative"),
        ([STABLE, SHAKEN], 3, "informative"),  # once informative, always
        ([SHAKEN, STABLE], 2, "confident"),  # a round knows nothing of its own end
    ],
)
def test_informative_from_the_round_after_the_first_stable_one(
    history: list[tuple[LabelMapping, LabelMapping]], round: int, expected: Phase
) -> None:
    diffs = [diff(first, last, 4) for first, last in history]
    assert next_phase(diffs, threshold=0.1, round=round, n_rounds=5) == expected


def test_a_single_round_is_informative_and_a_switch_by_hand_overrules_all() -> None:
    assert next_phase([], round=1, n_rounds=1) == "informative"
    assert next_phase([], switch_round=2, round=1, n_rounds=1) == "confident"
    assert [next_phase([0.0] * 2, switch_round=3, round=r, n_rounds=3) for r in (1, 2, 3)] == [
        "confident",
        "confident",
        "informative",
    ]


def test_consistency_is_the_share_of_equal_entries() -> None:
    assert consistency(mapping(0, 1, 2, 3), mapping(0, 1, 3, 2)) == 0.5
    assert consistency(mapping(0, 1), mapping(0, 2, 1)) == 0.5
    assert np.isnan(consistency(mapping(), mapping(0)))


def test_changes_are_told_in_sentences() -> None:
    names = ["apple", "pear", "plum"]
    assert describe_change(slot_of_name(mapping(0, 9), names), slot_of_name(mapping(0, 12, 3), names)) == [
        "class 'pear' moved from slot 9 to slot 12",
        "class 'plum' is new and has slot 3",
    ]
    same = slot_of_name(mapping(0, 1), names)
    assert describe_change(same, same) == []
    assert describe_change(same, {}, noun="group")[0] == f"class {names[0]!r} has no group any more"
