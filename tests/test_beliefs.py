from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from agcd.beliefs import UNNAMED_EVIDENCE, Beliefs, Flow
from agcd.evidence import NO_CLASS
from agcd.propagation import FADING, N_STEPS, neighbour_graph
from agcd.types import IntArray

N_ROWS, N_CLASSES = 60, 4


def some_rows(seed: int = 0, n: int = N_ROWS) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 5)) + 2 * rng.normal(size=(N_CLASSES, 5))[rng.integers(N_CLASSES, size=n)]


GRAPH = neighbour_graph(some_rows())
DENSE = GRAPH.toarray().astype(np.float64)


def full_flow(start: NDArray[np.float64]) -> NDArray[np.float64]:
    """All of it, step by step, as ``propagation`` has it."""
    now = start
    for _ in range(N_STEPS):
        now = FADING * (DENSE @ now) + (1 - FADING) * start
    return now


def twin(labels: dict[int, int], n_classes: int = N_CLASSES) -> tuple[IntArray, NDArray[np.float64]]:
    """Class and margin of every row, computed anew from all labels at once."""
    evidence = np.zeros((N_ROWS, n_classes))
    for c in range(n_classes):
        own = [row for row, y in labels.items() if y == c]
        if own:
            start = np.zeros(N_ROWS)
            start[own] = 1 / len(own)
            evidence[:, c] = full_flow(start)
    total = evidence.sum(1)
    unnamed = UNNAMED_EVIDENCE * (np.median(total[total > 0]) if (total > 0).any() else 1)
    falling = -np.sort(-evidence, axis=1)
    margin = np.maximum(falling[:, 0] - np.maximum(falling[:, 1], unnamed), 0) / (total + unnamed)
    return np.where(falling[:, 0] > 0, evidence.argmax(1), NO_CLASS), margin


def assert_equal_to_twin(beliefs: Beliefs, labels: dict[int, int]) -> None:
    now, (y_class, margin) = beliefs.at(), twin(labels)
    np.testing.assert_allclose(now.margin, margin, atol=1e-4)
    clear = margin > 1e-3
    assert (now.y_class == y_class)[clear].all()


actions = st.lists(
    st.one_of(
        st.tuples(st.just("label"), st.integers(0, N_ROWS - 1), st.integers(0, N_CLASSES - 1)),
        st.tuples(st.just("take back"), st.integers(0, N_ROWS - 1), st.just(0)),
        st.tuples(st.just("merge"), st.integers(0, N_CLASSES - 1), st.integers(0, N_CLASSES - 1)),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(actions, st.booleans())
def test_beliefs_that_follow_every_label_equal_those_computed_anew(
    history: list[tuple[str, int, int]], is_asked_each_time: bool
) -> None:
    beliefs, labels = Beliefs(GRAPH), dict[int, int]()
    for kind, first, second in history:
        if kind == "label" and first not in labels:
            labels[first] = second
            beliefs.add(np.array([first]), second)
        elif kind == "take back" and first in labels:
            beliefs.remove(np.array([first]), labels.pop(first))
        elif kind == "merge" and first != second:
            labels = {row: second if y == first else y for row, y in labels.items()}
            beliefs.merge(first, second)
        if is_asked_each_time:
            assert_equal_to_twin(beliefs, labels)
    assert_equal_to_twin(beliefs, labels)
    expected = np.bincount(list(labels.values()), minlength=N_CLASSES)
    assert beliefs.n_labels[:N_CLASSES].tolist() == expected[: len(beliefs.n_labels)].tolist()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, N_ROWS - 1), st.integers(NO_CLASS, N_CLASSES - 1)), max_size=12))
def test_a_copy_stays_as_it_is_and_follows_labels_of_its_own(changes: list[tuple[int, int]]) -> None:
    first = np.full(N_ROWS, NO_CLASS)
    first[[3, 20, 41]] = [0, 1, 1]
    beliefs = Beliefs(GRAPH)
    beliefs.add_all(first)
    kept, then = beliefs.copy(), beliefs.at()
    now = first.copy()
    for row, y_class in changes:
        now[row] = y_class
    beliefs.follow(first, now)
    beliefs.at()
    for one, other in zip(vars(kept.at()).values(), vars(then).values(), strict=True):
        np.testing.assert_array_equal(one, other)
    back = beliefs.copy()
    back.follow(now, first)
    np.testing.assert_allclose(back.at().margin, then.margin, atol=1e-4)
    assert_equal_to_twin(beliefs, {row: int(now[row]) for row in np.flatnonzero(now >= 0).tolist()})


def test_many_labels_at_once_are_the_same_as_one_after_another() -> None:
    rows = np.array([3, 11, 40])
    at_once, singly = Beliefs(GRAPH, N_CLASSES), Beliefs(GRAPH, N_CLASSES)
    at_once.add(rows, 2)
    for row in rows:
        singly.add(np.array([row]), 2)
    np.testing.assert_allclose(at_once.at().margin, singly.at().margin, atol=1e-5)


def test_without_labels_nothing_is_believed_and_every_row_may_be_of_an_unnamed_class() -> None:
    now = Beliefs(GRAPH, N_CLASSES).at()
    assert (now.y_class == NO_CLASS).all()
    assert (now.margin == 0).all()
    assert (now.unnamed == 1).all()


def test_what_was_said_and_taken_back_leaves_nothing() -> None:
    beliefs = Beliefs(GRAPH, N_CLASSES)
    beliefs.add(np.array([7]), 1)
    beliefs.remove(np.array([7]), 1)
    assert (beliefs.at().y_class == NO_CLASS).all()


def test_some_rows_are_told_the_same_as_all_rows() -> None:
    beliefs = Beliefs(GRAPH, N_CLASSES)
    beliefs.add(np.array([7, 9]), 1)
    beliefs.add(np.array([30]), 0)
    everything, rows = beliefs.at(), np.array([50, 2, 7])
    some = beliefs.at(rows)
    assert some.y_class.tolist() == everything.y_class[rows].tolist()
    assert some.unnamed.tolist() == everything.unnamed[rows].tolist()


def test_shares_are_those_of_the_evidence_and_alike_where_there_is_none() -> None:
    beliefs = Beliefs(GRAPH, N_CLASSES)
    np.testing.assert_allclose(beliefs.shares(N_CLASSES), 1 / N_CLASSES)
    beliefs.add(np.array([5]), 0)
    beliefs.add(np.array([20, 21]), 2)
    start = np.zeros((N_ROWS, N_CLASSES))
    start[5, 0], start[[20, 21], 2] = 1, 1 / 2
    evidence = full_flow(start)
    np.testing.assert_allclose(beliefs.shares(N_CLASSES), evidence / evidence.sum(1, keepdims=True), atol=1e-3)


def test_a_row_that_keeps_few_classes_keeps_the_strongest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agcd.beliefs.TABLE_NUMBERS", 0)
    monkeypatch.setattr("agcd.beliefs.WIDTH", 3)
    beliefs, labels = Beliefs(GRAPH, N_CLASSES), {5: 0, 20: 1, 33: 2, 47: 3}
    for row, y_class in labels.items():
        beliefs.add(np.array([row]), y_class)
    expected, margin = twin(labels)
    clear = margin > 0.05
    assert clear.any()
    assert (beliefs.at().y_class == expected)[clear].all()


def test_a_table_that_becomes_too_large_keeps_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agcd.beliefs.TABLE_NUMBERS", 2 * N_ROWS)
    beliefs, labels = Beliefs(GRAPH, 2), {5: 0, 20: 1, 33: 2, 47: 3}
    for row, y_class in labels.items():
        beliefs.add(np.array([row]), y_class)
    assert_equal_to_twin(beliefs, labels)


@pytest.mark.parametrize("rows", [[4], [4, 5, 30], [7, 7]])
def test_flow_without_tolerance_is_the_full_computation(rows: list[int]) -> None:
    start = np.zeros(N_ROWS)
    np.add.at(start, rows, 1)
    reached, evidence = Flow(GRAPH, tolerance=0).of(np.array(rows))
    found = np.zeros(N_ROWS)
    found[reached] = evidence
    np.testing.assert_allclose(found, full_flow(start), rtol=1e-4, atol=1e-8)


def test_both_ways_to_take_a_step_give_the_same_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    flows = []
    for share in (0.0, 2.0):  # always with the whole graph, never with it
        monkeypatch.setattr("agcd.beliefs.DENSE_SHARE", share)
        flows.append(Flow(GRAPH).of(np.array([12])))
    (rows, evidence), (other_rows, other_evidence) = flows
    np.testing.assert_array_equal(rows, other_rows)
    np.testing.assert_allclose(evidence, other_evidence, rtol=1e-4)


@pytest.mark.parametrize("row", [0, 12, 59])
def test_what_returns_to_a_row_is_what_its_flow_leaves_there(row: int) -> None:
    flow = Flow(GRAPH)
    reached, evidence = flow.of(np.array([row]))
    assert flow.returns(row) == pytest.approx(evidence[reached == row][0], rel=1e-5)
    np.testing.assert_array_equal(flow.of(np.array([row]))[1], evidence)


def test_flow_leaves_nothing_behind_for_the_next_label() -> None:
    flow = Flow(GRAPH)
    first = flow.of(np.array([3]))
    flow.of(np.array([40, 41]))
    again = flow.of(np.array([3]))
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])


def test_in_a_large_graph_only_the_strongest_rows_are_followed_and_lose_little() -> None:
    graph = neighbour_graph(some_rows(1, 4000))
    whole, cut = np.zeros(4000), np.zeros(4000)
    for flow, found in ((Flow(graph, 0, 4000), whole), (Flow(graph, 0, 300), cut)):
        reached, evidence = flow.of(np.array([0]))
        found[reached] = evidence
    assert (cut > 0).sum() < (whole > 0).sum()
    nearest = np.argsort(-whole)[:30]
    np.testing.assert_allclose(cut[nearest], whole[nearest], rtol=0.1)
