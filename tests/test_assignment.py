"""Large tables: the sparse way equals the dense one in every digit of the objective, and needs no large array."""

from __future__ import annotations

import tracemalloc
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from agcd import mapping, metrics
from agcd.assignment import heaviest_matching, sparse_contingency
from agcd.mapping import contingency, map_labels
from agcd.metrics import accuracy, balanced_accuracy
from agcd.types import IntArray, LabelMapping

Rows = tuple[IntArray, IntArray, int, int]
"""y_class and y_slot (n,), number of classes, number of slots."""
Accuracies = tuple[dict[str, float], dict[str, float]]


@st.composite
def labelled_rows(draw: st.DrawFn) -> Rows:
    """Few or many rows over a small table: ties, empty classes and slots, more of the one or of the other."""
    n_classes, n_slots = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    n = draw(st.sampled_from([0, 3, 10, 60]))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    used_classes = rng.permutation(n_classes)[: draw(st.integers(1, n_classes))]
    y_class = rng.choice(used_classes, n)
    at_random = rng.integers(0, n_slots, n)
    y_slot = np.where(rng.random(n) < draw(st.sampled_from([0.0, 0.7])), y_class % n_slots, at_random)
    return y_class, y_slot, n_classes, n_slots


def random_mapping(n_classes: int, seed: int) -> LabelMapping:
    """A previous mapping of fewer classes than there are now, some with slots beyond the head."""
    rng = np.random.default_rng(seed)
    slots = rng.permutation(12)[: rng.integers(0, n_classes + 1)]
    return LabelMapping(slots.astype(np.int64), np.ones(len(slots), dtype=bool), 1.0)


def map_both_ways(rows: Rows, n_old: int, pin_old: bool, previous: LabelMapping | None) -> list[LabelMapping]:
    found = []
    for limit in (10**9, -1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(mapping, "DENSE_CELLS", limit)
            found.append(map_labels(*rows, n_old=n_old, pin_old=pin_old, previous=previous))
    return found


def digits(found: LabelMapping, rows: Rows, n_old: int, pin_old: bool, previous: LabelMapping | None) -> list[int]:
    """Hits, kept slots and unclaimed slots of the classes that the solver places, by their definitions."""
    y_class, y_slot, n_classes, n_slots = rows
    before = previous.slot_of_class.tolist() if previous else []
    wish = [before[c] if c < len(before) else c if c < n_old else -1 for c in range(n_classes)]
    solved = [c for c in range(n_classes) if not (pin_old and c < n_old)]
    seen = [c for c in solved if (y_class == c).any()]
    claimed = {wish[c] for c in solved if c not in seen}
    placed = [(c, int(found.slot_of_class[c])) for c in seen if found.slot_of_class[c] < n_slots]
    hits = sum(int(((y_class == c) & (y_slot == s)).sum()) for c, s in placed)
    return [hits, sum(s == wish[c] for c, s in placed), sum(s not in claimed for _, s in placed)]


@given(labelled_rows(), st.integers(0, 4), st.booleans(), st.none() | st.integers(0, 10_000))
def test_sparse_mapping_equals_the_dense_one_in_all_digits(
    rows: Rows, n_old: int, pin_old: bool, seed: int | None
) -> None:
    previous = None if seed is None else random_mapping(rows[2], seed)
    dense, sparse = map_both_ways(rows, n_old, pin_old, previous)
    of_dense, of_sparse = (digits(found, rows, n_old, pin_old, previous) for found in (dense, sparse))
    assert of_sparse == of_dense
    assert sparse.agreement == dense.agreement
    assert sparse.observed.tolist() == dense.observed.tolist()
    assert len(set(sparse.slot_of_class.tolist())) == rows[2]
    assert sorted(sparse.slot_of_class >= rows[3]) == sorted(dense.slot_of_class >= rows[3])


@given(labelled_rows(), st.booleans())
def test_a_sparse_mapping_given_as_the_previous_one_stays(rows: Rows, pin_old: bool) -> None:
    _, sparse = map_both_ways(rows, 2, pin_old, None)
    _, again = map_both_ways(rows, 2, pin_old, sparse)
    np.testing.assert_array_equal(again.slot_of_class, sparse.slot_of_class)


def accuracies(y_class: IntArray, y_slot: IntArray, n_old: int, limit: int) -> Accuracies:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "DENSE_CELLS", limit)
        return accuracy(y_class, y_slot, n_old), balanced_accuracy(y_class, y_slot, n_old)


@given(labelled_rows(), st.integers(0, 5))
def test_sparse_accuracies_equal_the_dense_ones(rows: Rows, n_old: int) -> None:
    dense, _ = accuracies(*rows[:2], n_old, 10**9)
    sparse, _ = accuracies(*rows[:2], n_old, -1)
    np.testing.assert_equal(sparse, dense)  # NaN equals NaN


@given(labelled_rows(), st.integers(0, 5), st.permutations(range(14)))
def test_sparse_accuracies_do_not_change_when_slots_are_renumbered(rows: Rows, n_old: int, order: list[int]) -> None:
    y_class, y_slot = rows[:2]
    straight = accuracies(y_class, y_slot, n_old, -1)
    np.testing.assert_equal(accuracies(y_class, np.array(order)[y_slot], n_old, -1), straight)


@given(labelled_rows())
def test_sparse_contingency_counts_the_same_pairs(rows: Rows) -> None:
    np.testing.assert_array_equal(sparse_contingency(*rows).toarray(), contingency(*rows))


@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 10_000))
def test_the_heaviest_matching_is_that_of_all_permutations(n_classes: int, n_slots: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 4, (n_classes, n_slots)) * rng.integers(0, 2, (n_classes, n_slots))
    found = heaviest_matching(csr_array(weights))
    matched = np.flatnonzero(found >= 0)
    padded = np.pad(weights, ((0, 0), (0, n_classes)))
    best = max(
        padded[np.arange(n_classes), list(slots)].sum() for slots in permutations(range(padded.shape[1]), n_classes)
    )
    assert weights[matched, found[matched]].sum() == best
    assert len(set(found[matched].tolist())) == len(matched)
    assert (weights[matched, found[matched]] > 0).all()


def test_three_thousand_classes_need_no_table_of_all_cells() -> None:
    k, n = 3_000, 30_000
    rng = np.random.default_rng(0)
    y_class = rng.integers(0, k, n)
    order = rng.permutation(k)
    y_slot = np.where(rng.random(n) < 0.9, order[y_class], rng.integers(0, k, n))
    tracemalloc.start()
    found = map_labels(y_class, y_slot, k, k, n_old=0)
    result = accuracy(y_class, y_slot, k // 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * k * k / 4
    assert found.agreement == result["acc_all"] >= 0.9
    seen = found.observed
    assert (found.slot_of_class[seen] == order[seen]).mean() > 0.99
