"""ALFA-Mix against its formula, mixed and classified one row and one class mean at a time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agcd import arrays
from agcd.errors import ConfigError, DataError
from agcd.strategies import list_strategies, select
from agcd.strategies.alfa_mix import caps_to_change
from agcd.strategies.diversity import kmeans
from agcd.types import FloatArray, PoolView
from support.blobs import fast_config, make_blobs, make_session


def softmax(logits: FloatArray) -> FloatArray:
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def unit(x: FloatArray) -> FloatArray:
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def make_view(seed: int = 0, n: int = 60, n_slots: int = 5, d: int = 7, n_labelled: int = 8) -> PoolView:
    """A pool whose probabilities come from a known head; the last slots have no labels."""
    rng = np.random.default_rng(seed)
    x, weights, biases = unit(rng.standard_normal((n, d))), rng.standard_normal((n_slots, d)), rng.normal(size=n_slots)
    head: dict[str, Any] = {"slot_weights": weights, "slot_biases": 0.1 * biases, "temperature": 0.5}
    probs = softmax((x @ weights.T + head["slot_biases"]) / 0.5)
    slots = rng.integers(0, 3, n_labelled)
    return PoolView(np.arange(100, 100 + n), probs, x, unit(rng.standard_normal((n_labelled, d))), slots, 2, **head)


def ask(view: PoolView, budget: int, seed: int = 0, **options: Any) -> list[int]:
    return [int(row) for row in select(view, "alfa_mix", budget, np.random.default_rng(seed), options)]


def changes_at(view: PoolView, cap: float) -> set[int]:
    """Positions whose prediction changes when α of any class mean is mixed in, by the published formula."""
    assert view.slot_weights is not None
    assert view.slot_biases is not None
    w, b, t = view.slot_weights, view.slot_biases, view.temperature
    found = set()
    for i, h in enumerate(view.features):
        y = int((w @ h + b).argmax())
        g = w.T @ (softmax((w @ h + b) / t) - np.eye(len(w))[y]) / t
        for slot in range(len(w)):
            of_slot = view.labelled_features[view.labelled_slots == slot]
            z = (of_slot if len(of_slot) else view.labelled_features).mean(0) - h
            alpha = cap / np.sqrt(len(h)) * np.linalg.norm(z) / np.linalg.norm(g) * g / (z + 1e-8)
            mixed = (1 - alpha) * h + alpha * (h + z)
            if (w @ mixed + b).argmax() != y:
                found.add(i)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_predictions_change_exactly_above_the_cap_that_is_computed(seed: int) -> None:
    view = make_view(seed)
    needed = caps_to_change(view)
    for cap in (0.03, 0.1, 0.3, 1.0, 3.0):
        assert changes_at(view, cap) == set(np.flatnonzero(needed < cap).tolist())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("budget", [1, 5, 12])
def test_cap_grows_until_candidates_outnumber_the_questions(seed: int, budget: int) -> None:
    view, cap = make_view(seed), 0.125
    growths = next(j for j in range(1, 9) if len(changes_at(view, j * cap)) > budget or j == 8)
    candidates = sorted(changes_at(view, growths * cap))
    assert len(candidates) > budget
    # the same function brings to unit length: both members of a pair are as near to its centre, up to rounding
    among = replace(view, rows=view.rows[candidates], features=arrays.unit(view.features[candidates]))
    expected = kmeans(among, budget, np.random.default_rng(7)).tolist()
    assert ask(view, budget, seed=7, cap=cap) == expected


def test_too_few_candidates_come_first_nearest_to_a_change_and_the_rest_is_random_without_repeats() -> None:
    view = make_view()
    needed = caps_to_change(view)
    n_candidates = int((needed < 1).sum())
    assert 0 < n_candidates < 60
    first, second = ask(view, 60, seed=1), ask(view, 60, seed=2)
    assert first[:n_candidates] == second[:n_candidates] == (100 + np.argsort(needed)[:n_candidates]).tolist()
    assert first != second
    assert sorted(first) == sorted(second) == view.rows.tolist()


def test_very_sure_rows_still_have_a_direction_of_change() -> None:
    # 1 − p is zero in float64 for the first row: p − onehot would be a gradient of zero
    view = replace(make_view(), slot_weights=np.eye(7)[:5], slot_biases=np.zeros(5), temperature=1e-3)
    view = replace(view, features=np.eye(7)[np.arange(60) % 5] + 0.1 * np.eye(7)[(np.arange(60) + 1) % 5])
    assert np.isfinite(caps_to_change(view)).all()


def test_without_the_head_the_means_of_predicted_slots_stand_in() -> None:
    view = replace(make_view(), slot_weights=None, slot_biases=None)
    y_slot = view.probs.argmax(1)
    slots = np.unique(y_slot)
    means = unit(np.stack([view.features[y_slot == slot].mean(0) for slot in slots]))
    given = replace(view, probs=view.probs[:, slots], slot_weights=means)
    np.testing.assert_allclose(caps_to_change(view), caps_to_change(given))


def test_nothing_changes_with_one_slot_or_when_all_slots_are_alike() -> None:
    one = replace(make_view(), n_old=1, probs=np.ones((60, 1)), slot_weights=np.ones((1, 7)), slot_biases=None)
    alike = replace(make_view(), slot_weights=np.ones((5, 7)))
    assert np.isinf(caps_to_change(one)).all()
    assert np.isinf(caps_to_change(alike)).all()
    assert len(set(ask(one, 10))) == len(set(ask(alike, 10))) == 10


def test_caps_do_not_depend_on_block_borders(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = caps_to_change(make_view())
    monkeypatch.setattr("agcd.arrays.BLOCK_ENTRIES", 30)
    np.testing.assert_allclose(caps_to_change(make_view()), whole)


@pytest.mark.parametrize("cap", [0.0, -1.0, 1.5])
def test_impossible_caps_are_one_sentence(cap: float) -> None:
    with pytest.raises(ConfigError, match=f"cap is {cap}; it must be"):
        ask(make_view(), 3, cap=cap)


# --- what the view holds beside the pool -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shape"),
    [("slot_weights", (5, 6)), ("slot_biases", (4,)), ("labelled_rounds", (7,)), ("labelled_probs", (8, 4))],
)
def test_optional_arrays_that_do_not_fit_are_refused(name: str, shape: tuple[int, ...]) -> None:
    given: dict[str, Any] = {name: np.zeros(shape)}
    with pytest.raises(DataError, match=f"{name} has the shape"):
        ask(replace(make_view(), **given), 3)


@pytest.mark.parametrize("n_slots", [6, 4])  # with four, the answers name more classes than there are slots
def test_a_session_shows_its_head_and_how_labelled_rows_looked_when_they_were_asked(
    tmp_path: Path, n_slots: int
) -> None:
    blobs = make_blobs()
    session = make_session(blobs, tmp_path, n_slots=n_slots)
    session.train()
    query = session.ask(40)
    before = session.latest.fitted.predict(blobs.features, query.rows, "student").probs
    session.tell(query.rows, blobs.names(query.rows))
    session.train()
    session.config = fast_config(query={"strategy": "mq_net"})  # which needs all of it
    view = session.pool_view()
    assert view.slot_weights is not None
    assert view.slot_biases is not None
    assert view.labelled_probs is not None
    assert view.labelled_rounds is not None
    logits = (view.features @ view.slot_weights.T + view.slot_biases) / view.temperature
    np.testing.assert_allclose(softmax(logits), view.probs, atol=1e-5)
    asked = np.isin(session.labels.labelled_rows, query.rows)
    np.testing.assert_array_equal(view.labelled_rounds, asked.astype(np.int64))
    assert view.labelled_probs.shape == (len(asked), 6)
    np.testing.assert_array_equal(view.labelled_probs[asked, :n_slots], before[np.argsort(query.rows)])
    assert not view.labelled_probs[asked, n_slots:].any()
    for name in list_strategies():
        assert len(select(view, name, 5, np.random.default_rng(0))) == 5
