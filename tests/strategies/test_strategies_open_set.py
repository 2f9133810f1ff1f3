"""LfOSA, ConAL and MQ-Net against slow, obvious twins."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agcd.errors import ConfigError
from agcd.strategies import open_set, select
from agcd.strategies.open_set import MonotoneNet, ranking_loss, train_monotone_net
from agcd.types import FloatArray, PoolView


def unit(x: FloatArray) -> FloatArray:
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def make_view(seed: int = 0, n: int = 60, n_slots: int = 5, n_old: int = 3, n_labelled: int = 14) -> PoolView:
    """A random pool with rows 100, 101, …; labels of old and of novel slots, one slot with a single label."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(n_slots, 0.5), size=n)
    slots = np.concatenate([[n_slots - 1], rng.integers(0, n_slots - 1, n_labelled - 1)])
    x, known = unit(rng.standard_normal((n, 4))), unit(rng.standard_normal((n_labelled, 4)))
    return PoolView(np.arange(100, 100 + n), probs, x, known, slots, n_old)


def with_last_query(view: PoolView, seed: int = 0) -> PoolView:
    """The same with a history: the first labels known from the start, then two queries."""
    rng = np.random.default_rng(seed)
    rounds = np.minimum(np.arange(len(view.labelled_slots)) // 5, 2)
    probs = rng.dirichlet(np.full(view.probs.shape[1], 0.5), size=len(rounds))
    return replace(view, labelled_rounds=rounds, labelled_probs=probs)


def ask(view: PoolView, name: str, budget: int, seed: int = 0, **options: Any) -> list[int]:
    return [int(row) for row in select(view, name, budget, np.random.default_rng(seed), options)]


def cosine(a: FloatArray, b: FloatArray) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


# --- LfOSA -------------------------------------------------------------------------------------------------------


def slow_posterior(values: list[float]) -> list[float]:
    """EM for two Gaussians written out, from the best split of the sorted numbers in two."""

    def within(part: list[float]) -> float:
        return sum((v - sum(part) / len(part)) ** 2 for v in part)

    def gaussians(upper: list[float]) -> list[tuple[float, float, float]]:
        parts = []
        for weights in ([1 - u for u in upper], upper):
            total = sum(weights)
            mean = sum(w * v for w, v in zip(weights, values, strict=True)) / total
            var = sum(w * (v - mean) ** 2 for w, v in zip(weights, values, strict=True)) / total + 5e-4
            parts.append((total / len(values), mean, var))
        return parts

    def densities(parts: list[tuple[float, float, float]]) -> list[list[float]]:
        return [
            [w * math.exp(-((v - m) ** 2) / (2 * s)) / math.sqrt(2 * math.pi * s) for w, m, s in parts] for v in values
        ]

    ordered = sorted(values)
    cut = min(range(1, len(ordered)), key=lambda k: within(ordered[:k]) + within(ordered[k:]))
    parts = gaussians([float(v >= ordered[cut]) for v in values])
    previous = -math.inf
    for _ in range(10):
        both = densities(parts)
        parts = gaussians([high / (low + high) for low, high in both])
        likelihood = sum(math.log(low + high) for low, high in both) / len(values)
        if abs(likelihood - previous) < 1e-2:
            break
        previous = likelihood
    return [high / (low + high) for low, high in densities(parts)]


@pytest.mark.parametrize("seed", range(5))
def test_posterior_of_the_upper_part_equals_em_written_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.concatenate([rng.normal(2, 0.4, 30), rng.normal(5, 0.8, 20)])
    np.testing.assert_allclose(open_set.upper_posterior(values, rng), slow_posterior(values.tolist()), atol=1e-9)


def test_posterior_of_equal_values_is_equal_and_no_warning() -> None:
    found = open_set.upper_posterior(np.full(6, 3.0), np.random.default_rng(0))
    assert np.ptp(found) == 0


@pytest.mark.parametrize("seed", range(4))
def test_lfosa_never_prefers_a_row_predicted_novel_to_one_of_an_old_slot_with_a_score(seed: int) -> None:
    view = make_view(seed)
    y_slot = dict(zip(view.rows.tolist(), view.probs.argmax(1).tolist(), strict=True))
    n_old_rows = sum(slot < 3 for slot in y_slot.values())
    rows = ask(view, "lfosa", 60)
    assert all(y_slot[row] < 3 for row in rows[:n_old_rows])
    assert ask(view, "lfosa", 60, seed=1)[n_old_rows:] != rows[n_old_rows:]  # the rest in random order


def test_lfosa_asks_about_the_upper_part_of_each_old_slot_and_never_fits_a_single_row() -> None:
    # slot 0: six sure and six unsure rows; slot 1: one very sure row; slot 2 is novel
    sure, unsure, lonely, novel = [0.9, 0.05, 0.05], [0.4, 0.3, 0.3], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
    view = make_view(n=20, n_slots=3)
    view = replace(view, n_old=2, probs=np.array([unsure] * 6 + [sure] * 6 + [lonely] + [novel] * 7))
    assert set(ask(view, "lfosa", 6)) == set(range(106, 112))
    assert set(ask(view, "lfosa", 12)) == set(range(100, 112))


def test_activation_is_the_largest_logit_of_the_head_or_the_largest_log_probability() -> None:
    view = make_view()
    np.testing.assert_allclose(open_set.largest_activation(view, view.probs.max(1)), np.log(view.probs).max(1))
    rng = np.random.default_rng(0)
    weights, biases = rng.standard_normal((5, 4)), rng.standard_normal(5)
    with_head = replace(view, slot_weights=weights, slot_biases=biases, temperature=0.2)
    slow = [max((float(w @ h) + b) / 0.2 for w, b in zip(weights, biases, strict=True)) for h in view.features]
    np.testing.assert_allclose(open_set.largest_activation(with_head, view.probs.max(1)), slow)
    assert len(ask(with_head, "lfosa", 9)) == 9


# --- ConAL -------------------------------------------------------------------------------------------------------


def slow_conal(view: PoolView, budget: int) -> list[int]:
    """Every pool row against every label, then the slots in turn."""
    labels = list(zip(view.labelled_features, view.labelled_slots.tolist(), strict=True))
    best, slot_of, distinctive = [], [], []
    for h in view.features:
        first, slot = max(labels, key=lambda label: cosine(h, label[0]))
        siblings = sorted((z for z, s in labels if s == slot), key=lambda z: -cosine(h, z))
        second = siblings[1] if len(siblings) > 1 else first
        best.append(cosine(h, first))
        slot_of.append(slot)
        distinctive.append(cosine(h, first) - cosine(h, second) + cosine(first, second) + cosine(h, first))
    score = []
    for i in range(len(best)):
        s = (best[i] - min(best)) / (max(best) - min(best))
        rivals = [d for d, slot in zip(distinctive, slot_of, strict=True) if slot == slot_of[i]]
        spread = max(rivals) - min(rivals)
        scaled = (distinctive[i] - min(rivals)) / spread if spread else 0.0
        score.append(math.tanh(100 * (s - 0.9) / 2) + 1 - scaled)
    queues = {
        slot: sorted((i for i in range(len(score)) if slot_of[i] == slot), key=lambda i: -score[i])
        for slot in set(slot_of)
    }
    picks: list[int] = []
    for turn in range(len(score)):  # the least distinctive row of any slot far from labels scores exactly 0: ties
        picks += sorted((q[turn] for q in queues.values() if turn < len(q)), key=lambda i: (-score[i], i))
    return [int(view.rows[i]) for i in picks[:budget]]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("budget", [3, 20])
def test_conal_equals_its_slow_twin(seed: int, budget: int) -> None:
    assert ask(make_view(seed), "conal", budget) == slow_conal(make_view(seed), budget)


def test_conal_in_small_blocks_picks_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ask(make_view(), "conal", 20)
    monkeypatch.setattr("agcd.arrays.BLOCK_ENTRIES", 16)
    assert ask(make_view(), "conal", 20) == whole


def test_conal_gives_every_labelled_slot_its_share() -> None:
    view = make_view(n=200)
    _, slot, _ = open_set.nearest_two_labels(view.features, view.labelled_features, view.labelled_slots)
    assert np.bincount(slot, minlength=5).min() >= 2
    asked = slot[np.asarray(ask(view, "conal", 10)) - 100]
    assert np.bincount(asked).tolist() == [2] * 5


# --- MQ-Net ------------------------------------------------------------------------------------------------------


def exp_standard(values: list[float]) -> list[float]:
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((v - mean) ** 2 for v in values) / len(values))
    return [math.exp((v - mean) / spread) for v in values]


def slow_purity(features: Any, old: list[FloatArray]) -> list[float]:
    return [max(cosine(h, z) for z in old) for h in features]


@pytest.mark.parametrize("seed", range(3))
def test_first_query_of_mq_net_adds_informativeness_and_purity(seed: int) -> None:
    view = make_view(seed)
    old = [z for z, slot in zip(view.labelled_features, view.labelled_slots, strict=True) if slot < 3]
    purity = exp_standard(slow_purity(view.features, old))
    score = [1 - max(p) + q for p, q in zip(view.probs.tolist(), purity, strict=True)]
    expected = [100 + i for i in sorted(range(60), key=lambda i: -score[i])]
    assert ask(view, "mq_net", 60) == expected
    start = replace(with_last_query(view), labelled_rounds=np.zeros(14, dtype=np.int64))
    assert ask(start, "mq_net", 60) == expected


def test_the_lesson_is_the_last_query_as_the_model_that_asked_saw_it() -> None:
    view = with_last_query(make_view(2))
    assert view.labelled_probs is not None
    assert view.labelled_rounds is not None
    lesson = open_set.last_query(view)
    assert lesson is not None
    last = [i for i in range(14) if view.labelled_rounds[i] == 2]
    earlier = [view.labelled_features[i] for i in range(14) if i not in last and view.labelled_slots[i] < 3]
    probs, slots = view.labelled_probs.tolist(), view.labelled_slots.tolist()
    losses = [-math.log(probs[i][slots[i]]) if slots[i] < 3 else 0.0 for i in last]
    assert 0.0 in losses
    np.testing.assert_allclose(lesson[1], losses)
    np.testing.assert_allclose(lesson[0][:, 0], exp_standard([1 - max(probs[i]) for i in last]))
    purity = slow_purity([view.labelled_features[i] for i in last], earlier)
    np.testing.assert_allclose(lesson[0][:, 1], exp_standard(purity))


def test_a_last_query_without_any_old_answer_teaches_nothing() -> None:
    view = with_last_query(make_view())
    assert view.labelled_rounds is not None
    slots = np.where(view.labelled_rounds == 2, 4, view.labelled_slots)
    novel_only = replace(view, labelled_slots=slots)
    assert open_set.last_query(novel_only) is None
    forgetful = replace(novel_only, labelled_rounds=None, labelled_probs=None)
    assert ask(novel_only, "mq_net", 20) == ask(forgetful, "mq_net", 20)


def test_later_queries_take_the_largest_score_of_the_trained_net() -> None:
    view = with_last_query(make_view())
    lesson = open_set.last_query(view)
    assert lesson is not None
    net = train_monotone_net(*lesson, np.random.default_rng(3), steps=50)
    old = [z for z, slot in zip(view.labelled_features, view.labelled_slots, strict=True) if slot < 3]
    x = zip(
        exp_standard([1 - max(p) for p in view.probs.tolist()]),
        exp_standard(slow_purity(view.features, old)),
        strict=True,
    )
    score = net.score(np.array(list(x)))
    assert ask(view, "mq_net", 60, seed=3, steps=50) == (100 + np.argsort(-score)).tolist()


def random_net(rng: np.random.Generator) -> MonotoneNet:
    return MonotoneNet(rng.standard_normal((2, 6)), rng.standard_normal(6), rng.standard_normal(6))


def test_score_equals_its_formula() -> None:
    rng = np.random.default_rng(0)
    net, x = random_net(rng), rng.random((5, 2))
    for point, score in zip(x, net.score(x), strict=True):
        slow = 0.0
        for j in range(6):
            inside = sum(max(0.0, net.w1[k, j]) * point[k] for k in range(2)) + net.b1[j]
            slow += max(0.0, net.w2[j]) / (1 + math.exp(-inside))
        assert score == pytest.approx(slow)


@given(st.integers(0, 10_000), st.floats(0, 50), st.floats(0, 50), st.floats(0, 50), st.floats(0, 50))
@settings(max_examples=60, deadline=None)
def test_the_net_never_falls_when_an_input_rises(seed: int, x: float, y: float, dx: float, dy: float) -> None:
    low, high = random_net(np.random.default_rng(seed)).score(np.array([[x, y], [x + dx, y + dy]]))
    assert high >= low - 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_gradient_of_the_ranking_loss_equals_finite_differences(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net, first, second = random_net(rng), rng.random((9, 2)), rng.random((9, 2))
    sign = np.array([1.0, -1, 0, 1, -1, 0, 1, -1, 1])
    loss, gradient = ranking_loss(net, first, second, sign)
    gaps = [1 - s * (a - b) for s, a, b in zip(sign, net.score(first), net.score(second), strict=True) if s]
    assert loss == pytest.approx(sum(max(0.0, gap) for gap in gaps) / 9)
    for name in ("w1", "b1", "w2"):
        for place in np.ndindex(getattr(net, name).shape):
            losses = []
            for step in (1e-6, -1e-6):
                moved = getattr(net, name).copy()
                moved[place] += step
                losses.append(ranking_loss(replace(net, **{name: moved}), first, second, sign)[0])
            assert getattr(gradient, name)[place] == pytest.approx((losses[0] - losses[1]) / 2e-6, abs=1e-6)


@pytest.mark.parametrize("rewarded", [0, 1])
def test_training_finds_which_of_the_two_inputs_is_rewarded(rewarded: int) -> None:
    rng = np.random.default_rng(0)
    x = np.exp(np.clip(rng.standard_normal((80, 2)), -2, 2))
    trained = train_monotone_net(x, x[:, rewarded], np.random.default_rng(1))
    early = train_monotone_net(x, x[:, rewarded], np.random.default_rng(1), steps=1)
    rank = [np.argsort(np.argsort(values)) for values in (trained.score(x), early.score(x), *x.T)]
    agreement = np.asarray(np.corrcoef(rank))
    assert agreement[0, 2 + rewarded] > agreement[1, 2 + rewarded] + 0.1
    assert agreement[0, 2 + rewarded] > agreement[0, 3 - rewarded]
    high_in_rewarded, high_in_other = trained.score(np.array([[3.0, 0.5], [0.5, 3.0]]))[:: 1 - 2 * rewarded]
    assert high_in_rewarded > high_in_other


def test_impossible_steps_are_one_sentence() -> None:
    with pytest.raises(ConfigError, match="steps is 0; it must be"):
        ask(make_view(), "mq_net", 3, steps=0)
