"""The neighbour graph, the propagation of labels over it and the widest reach, against slow, obvious twins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from agcd import propagation
from agcd.propagation import Propagation, nearest, neighbour_graph, propagate_labels, widest_reach
from agcd.types import FloatArray, IntArray

Float32 = Any


def unit(x: FloatArray) -> Float32:
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True), np.float32)


def random_rows(n: int, d: int = 6, seed: int = 0) -> Float32:
    return unit(np.random.default_rng(seed).standard_normal((n, d)))


def separated(sizes: list[int], noise: float = 0.1, seed: int = 0) -> tuple[Float32, IntArray]:
    """Unit rows around the axes, ``sizes[b]`` around axis b, with the number of the axis."""
    rng, blob = np.random.default_rng(seed), np.repeat(np.arange(len(sizes)), sizes)
    return unit(np.eye(len(sizes) + 2)[blob] + noise * rng.standard_normal((len(blob), len(sizes) + 2))), blob


def some_labels(n: int, n_classes: int, share: float, seed: int = 0) -> IntArray:
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < share, rng.integers(0, n_classes, n), -1)


# --- neighbours --------------------------------------------------------------------------------------------------


def slow_nearest(x: Float32, k: int) -> list[list[int]]:
    """Every pair of rows, one after another."""
    rows = x.astype(float).tolist()

    def ranked(i: int) -> list[int]:
        others = [j for j in range(len(rows)) if j != i]
        return sorted(others, key=lambda j: -sum(a * b for a, b in zip(rows[i], rows[j], strict=True)))

    return [ranked(i)[:k] for i in range(len(rows))]


def assert_equals_slow_twin(x: Float32, k: int) -> None:
    near, cosine = nearest(x, k)
    assert near.shape == cosine.shape == (len(x), k)
    assert [sorted(row) for row in near.tolist()] == [sorted(row) for row in slow_nearest(x, k)]
    np.testing.assert_allclose(cosine, [[x[i] @ x[j] for j in row] for i, row in enumerate(near)], atol=1e-6)


@pytest.mark.parametrize(("n", "k"), [(2, 1), (12, 1), (12, 11), (40, 5)])
def test_the_nearest_of_each_row_equal_a_search_of_all_pairs(n: int, k: int) -> None:
    assert_equals_slow_twin(random_rows(n), k)


def test_borders_of_blocks_change_no_neighbour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(propagation, "_BLOCK_NUMBERS", 41)
    assert_equals_slow_twin(random_rows(40), 5)


def test_cells_find_nearly_all_neighbours_of_blobs(monkeypatch: pytest.MonkeyPatch) -> None:
    x, _ = separated([30, 50, 20, 60, 40], noise=0.2)
    x = x[np.random.default_rng(0).permutation(len(x))]
    exact, _ = nearest(x, 6)
    monkeypatch.setattr(propagation, "EXACT_ROWS", 50)
    monkeypatch.setattr(propagation, "CELL_ROWS", 10)
    near, cosine = nearest(x, 6)
    found = np.mean([len(set(a) & set(b)) / 6 for a, b in zip(near.tolist(), exact.tolist(), strict=True)])
    assert found > 0.9
    assert all(len(set(row)) == 6 for row in near.tolist())
    np.testing.assert_allclose(cosine, np.einsum("id,ikd->ik", x, x[near]), atol=1e-6)


@pytest.mark.parametrize("nearby_cells", [1, 3])
def test_lonely_cells_leave_rows_with_few_neighbours_but_never_join_a_row_with_itself(
    nearby_cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = random_rows(60, d=30)
    for name, value in (("EXACT_ROWS", 10), ("CELL_ROWS", 2), ("NEARBY_CELLS", nearby_cells)):
        monkeypatch.setattr(propagation, name, value)
    near, cosine = nearest(x, 5)
    stands_in = near == np.arange(60)[:, None]
    assert stands_in.any(), "cells of two rows must run short of neighbours"
    assert (cosine[stands_in] == 0).all()
    weights = neighbour_graph(x, 5)
    assert weights.diagonal().max() == 0
    assert np.isfinite(weights.data).all()


def test_rows_find_their_own_cell_whose_centre_is_a_zero_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that point away from every other centre are nearest to a centre without direction."""
    rng, axis = np.random.default_rng(0), np.eye(4)[0]
    apart = np.array([i for i in range(100, 140) if i % 5][:15])
    x = unit(axis + 0.05 * rng.standard_normal((300, 4)))
    x[apart] = unit(-axis + 0.05 * rng.standard_normal((15, 4)))
    x[200] = 0
    monkeypatch.setattr(propagation, "EXACT_ROWS", 10)
    monkeypatch.setattr(propagation, "CELL_ROWS", 5)
    near, cosine = nearest(x, 5)
    assert cosine[apart].min() > 0.9
    assert np.isin(near[apart], apart).all()


def slow_graph(x: Float32, k: int) -> FloatArray:
    """Dense, pair by pair."""
    n = len(x)
    weights = np.zeros((n, n))
    for i, row in enumerate(slow_nearest(x, min(k, n - 1))):
        for j in row:
            weight = max(float(x[i] @ x[j]), 0.0) ** 10
            weights[i, j] += weight
            weights[j, i] += weight
    degree = np.maximum(weights.sum(1), 1e-12)
    return np.asarray(weights / np.sqrt(degree[:, None] * degree))


def test_the_graph_equals_its_dense_twin_whatever_the_length_of_rows() -> None:
    x = random_rows(40)
    lengths = np.random.default_rng(1).uniform(0.1, 50, (40, 1))
    np.testing.assert_allclose(neighbour_graph(x * lengths, 5).toarray(), slow_graph(x, 5), atol=1e-5)


ODD_ROWS: dict[str, FloatArray] = {
    "some zero rows": random_rows(20) * (np.arange(20) % 4 > 0)[:, None],
    "zero rows only": np.zeros((6, 3)),
    "equal rows": np.ones((30, 4)),
    "copies": np.tile(random_rows(3), (10, 1)),
    "two rows": random_rows(2),
    "two opposite rows": np.array([[1.0, 0], [-1.0, 0]]),
    "one row": random_rows(1),
    "fewer than neighbours": random_rows(5),
    "right angles": np.eye(12),
    "short floats": random_rows(30).astype(np.float16),
}


@pytest.mark.parametrize("case", ODD_ROWS)
def test_the_graph_is_symmetric_finite_loopless_and_never_amplifies(case: str) -> None:
    x = ODD_ROWS[case]
    dense = neighbour_graph(x).toarray()
    assert dense.dtype == np.float32
    assert dense.shape == (len(x), len(x))
    assert np.isfinite(dense).all()
    assert (dense >= 0).all()
    assert (dense.diagonal() == 0).all()
    np.testing.assert_allclose(dense, dense.T, atol=1e-7)
    assert np.abs(np.linalg.eigvalsh(dense.astype(float))).max() <= 1 + 1e-5


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 40), st.integers(1, 45), st.integers(0, 10_000))
def test_the_graph_of_any_rows_is_symmetric_and_never_amplifies(n: int, k: int, seed: int) -> None:
    dense = neighbour_graph(random_rows(n, d=4, seed=seed), k).toarray().astype(float)
    np.testing.assert_allclose(dense, dense.T, atol=1e-7)
    assert np.abs(np.linalg.eigvalsh(dense)).max() <= 1 + 1e-5


# --- propagation -------------------------------------------------------------------------------------------------


def slow_labels(weights: FloatArray, y_class: IntArray, n_classes: int) -> tuple[list[int], list[float], list[float]]:
    """All classes at once, densely; winner, margin and amount row by row."""
    start = np.zeros((len(y_class), n_classes))
    for row, c in enumerate(y_class.tolist()):
        if c >= 0:
            start[row, c] = 1 / np.sum(y_class == c)
    now = start
    for _ in range(20):
        now = 0.9 * weights @ now + 0.1 * start
    totals = now.sum(1).tolist()
    unlabelled = [t for t, c in zip(totals, y_class.tolist(), strict=True) if c < 0]
    middle = float(np.median(unlabelled)) if unlabelled else 1.0
    winner, margin = [], []
    for i, total in enumerate(totals):
        ranked = [*sorted(now[i].tolist(), reverse=True), 0.0]
        winner.append(now[i].tolist().index(ranked[0]) if total > 0 else -1)
        margin.append((ranked[0] - ranked[1]) / total if total > 0 else 0.0)
    return winner, margin, [total / max(middle, 1e-30) for total in totals]


@pytest.mark.parametrize("at_once", [1, 3, 64])
@pytest.mark.parametrize("n_classes", [1, 2, 7])
def test_propagation_equals_its_dense_twin_however_classes_are_blocked(
    n_classes: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(propagation, "_CLASSES_AT_ONCE", at_once)
    weights, y_class = neighbour_graph(random_rows(60, d=4), 6), some_labels(60, n_classes, 0.3)
    evidence = propagate_labels(weights, y_class, n_classes)
    winner, margin, amount = slow_labels(weights.toarray().astype(float), y_class, n_classes)
    assert evidence.y_class.tolist() == winner
    np.testing.assert_allclose(evidence.margin, margin, atol=1e-4)
    np.testing.assert_allclose(evidence.amount, amount, rtol=1e-4)


def test_two_classes_in_one_block_or_in_two_dispute_a_row_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """The strongest and the second may come in either order and in any block."""
    monkeypatch.setattr(propagation, "_CLASSES_AT_ONCE", 3)
    weights = neighbour_graph(random_rows(50, d=4), 6)
    few = some_labels(50, 2, 0.3)
    plain = propagate_labels(weights, few, 2)
    for first, second in [(0, 1), (1, 0), (0, 5), (5, 0), (4, 3), (7, 2)]:
        renamed = propagate_labels(weights, np.where(few < 0, -1, np.where(few == 0, first, second)), 8)
        assert renamed.y_class.tolist() == np.where(plain.y_class == 0, first, second).tolist()
        np.testing.assert_allclose(renamed.margin, plain.margin, atol=1e-6)
        np.testing.assert_allclose(renamed.amount, plain.amount, rtol=1e-5)


def two_cliques(size: int = 6) -> csr_array:
    """Two cliques, and a last row between them that every other one is joined with."""
    n = 2 * size + 1
    weights = np.kron(np.eye(2), np.ones((size, size)) - np.eye(size))
    weights = np.pad(weights, (0, 1), constant_values=1)
    weights[-1, -1] = 0
    degree = weights.sum(1)
    assert len(weights) == n
    return csr_array((weights / np.sqrt(degree[:, None] * degree)).astype(np.float32))


def test_a_class_of_many_labels_sends_as_much_as_a_class_of_one() -> None:
    y_class = np.array([0] * 6 + [1] + [-1] * 6)
    evidence = propagate_labels(two_cliques(), y_class, 2)
    assert evidence.margin[-1] == pytest.approx(0, abs=1e-5)
    assert (evidence.y_class[7:12] == 1).all()


def test_evidence_stays_in_its_part_of_the_graph_and_none_arrives_elsewhere() -> None:
    x, blob = separated([15, 15, 15], noise=0.02)
    weights = csr_array(neighbour_graph(x).multiply(blob[:, None] == blob))
    evidence = propagate_labels(weights, np.where(np.isin(np.arange(45), (3, 20)), blob, -1), 2)
    assert evidence.y_class.tolist() == np.where(blob < 2, blob, -1).tolist()
    assert (evidence.margin[blob < 2] > 0.999).all()
    assert (evidence.certainty[blob == 2] == 0).all()


def test_faint_evidence_is_faint_even_when_most_rows_have_none() -> None:
    """A chain of 200 rows, joined with two on each side, and a label at its start: 20 steps end at row 40."""
    angle = np.linspace(0, np.pi * 0.9, 200)
    weights = neighbour_graph(np.stack([np.cos(angle), np.sin(angle)], 1), 4)
    evidence = propagate_labels(weights, np.where(np.arange(200) == 0, 0, -1), 1)
    assert 0 < evidence.amount[38] < 1e-6 * evidence.amount[1]
    assert evidence.certainty[1] > 0.5 > evidence.certainty[38]


def test_the_certainty_of_a_blob_hardly_depends_on_how_many_others_have_labels() -> None:
    x, blob = separated([30] * 6, noise=0.02)
    weights = csr_array(neighbour_graph(x).multiply(blob[:, None] == blob))
    certainty = [
        propagate_labels(weights, np.where((np.arange(180) % 30 == 0) & (blob < n_named), blob, -1), 6)
        .certainty[1:30]
        .mean()
        for n_named in (1, 2, 3, 4, 5, 6)
    ]
    assert max(certainty) < 1.5 * min(certainty)


@pytest.mark.parametrize("n_classes", [0, 1, 5])
def test_without_labels_nothing_is_certain(n_classes: int) -> None:
    evidence = propagate_labels(neighbour_graph(random_rows(10)), np.full(10, -1), n_classes)
    assert (evidence.y_class == -1).all()
    assert (evidence.certainty == 0).all()


def test_when_all_rows_are_labelled_the_outcome_is_finite() -> None:
    evidence = propagate_labels(neighbour_graph(random_rows(10)), np.arange(10) % 3, 3)
    assert ((evidence.certainty >= 0) & (evidence.certainty <= 1)).all()
    assert (evidence.y_class >= 0).all()


def test_faint_and_disputed_rows_are_uncertain() -> None:
    margin, amount = np.array([1.0, 1, 0.1, 0], np.float32), np.array([0.02, 200, 200, 0], np.float32)
    certainty = Propagation(np.zeros(4, np.int64), margin, amount).certainty
    np.testing.assert_allclose(certainty, [0.02 / 2.02, 200 / 202, 0.1, 0], rtol=1e-5)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 40),
    st.integers(1, 6),
    st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    st.sampled_from([0.0, 0.3]),
    st.integers(0, 10_000),
)
def test_certainty_lies_between_0_and_1_and_a_winner_is_a_class_with_labels(
    n: int, n_classes: int, share: float, zeros: float, seed: int
) -> None:
    x = random_rows(n, d=3, seed=seed) * (np.random.default_rng(seed).random((n, 1)) >= zeros)
    y_class = some_labels(n, n_classes, share, seed)
    evidence = propagate_labels(neighbour_graph(x), y_class, n_classes)
    for values in (evidence.margin, evidence.amount, evidence.certainty):
        assert np.isfinite(values).all()
        assert (values >= 0).all()
    assert max(evidence.margin.max(), evidence.certainty.max()) <= 1 + 1e-6
    assert set(evidence.y_class.tolist()) <= set(y_class.tolist()) | {-1}


@settings(max_examples=30, deadline=None)
@given(st.integers(5, 40), st.integers(1, 5), st.integers(0, 10_000))
def test_the_order_of_rows_does_not_matter(n: int, n_classes: int, seed: int) -> None:
    x, y_class = random_rows(n, d=4, seed=seed), some_labels(n, n_classes, 0.4, seed)
    order = np.random.default_rng(seed + 1).permutation(n)
    here = propagate_labels(neighbour_graph(x, 5), y_class, n_classes)
    there = propagate_labels(neighbour_graph(x[order], 5), y_class[order], n_classes)
    np.testing.assert_allclose(there.certainty, here.certainty[order], atol=1e-4)
    clear = here.margin[order] > 1e-3
    assert (there.y_class == here.y_class[order])[clear].all()


# --- the widest reach --------------------------------------------------------------------------------------------


def slow_reach(weights: FloatArray, uncertainty: FloatArray) -> FloatArray:
    """Every power of the faded graph, one after another."""
    return np.asarray(sum(np.linalg.matrix_power(0.9 * weights, t) @ uncertainty for t in range(11)))


def slow_picks(weights: FloatArray, uncertainty: FloatArray, allowed: list[int], count: int) -> list[int]:
    left, picks = uncertainty.astype(float), []
    for _ in range(min(count, len(allowed))):
        reach = slow_reach(weights, left)
        picks.append(max((i for i in allowed if i not in picks), key=lambda i: reach[i]))
        touched = slow_reach(weights, np.eye(len(left))[picks[-1]])
        left = left * np.maximum(1 - 2 * touched / touched[picks[-1]], 0)
    return picks


@pytest.mark.parametrize("seed", range(5))
def test_picks_equal_those_of_the_dense_twin(seed: int) -> None:
    weights = neighbour_graph(random_rows(50, d=5, seed=seed), 6)
    rng = np.random.default_rng(seed)
    uncertainty, may_pick = rng.random(50).astype(np.float32), rng.random(50) < 0.6
    dense, allowed = weights.toarray().astype(float), np.flatnonzero(may_pick).tolist()
    assert widest_reach(weights, uncertainty, may_pick, 8).tolist() == slow_picks(dense, uncertainty, allowed, 8)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 25), st.integers(0, 30), st.floats(0, 1), st.booleans(), st.integers(0, 10_000))
def test_picks_are_allowed_distinct_and_as_many_as_there_can_be(
    n: int, count: int, share: float, all_certain: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    weights, may_pick = neighbour_graph(random_rows(n, seed=seed)), rng.random(n) < share
    uncertainty = np.zeros(n, np.float32) if all_certain else rng.random(n).astype(np.float32)
    before = uncertainty.copy(), may_pick.copy()
    picks = widest_reach(weights, uncertainty, may_pick, count)
    assert picks.dtype == np.int64
    assert len(picks) == len(set(picks.tolist())) == min(count, int(may_pick.sum()))
    assert may_pick[picks].all()
    np.testing.assert_array_equal(uncertainty, before[0])
    np.testing.assert_array_equal(may_pick, before[1])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sizes", [[20] * 8, [15, 20, 30, 40, 60, 25]])
def test_every_separated_blob_gets_a_pick_before_any_gets_two(sizes: list[int], seed: int) -> None:
    x, blob = separated(sizes, noise=0.1, seed=seed)
    n = len(x)
    picks = widest_reach(neighbour_graph(x), np.ones(n, np.float32), np.ones(n, bool), len(sizes))
    assert sorted(blob[picks].tolist()) == list(range(len(sizes)))


def test_what_is_certain_attracts_no_pick() -> None:
    x, blob = separated([30, 30, 30])
    picks = widest_reach(neighbour_graph(x), (blob == 1).astype(np.float32), np.ones(90, bool), 2)
    assert (blob[picks] == 1).all()
