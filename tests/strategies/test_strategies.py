"""Strategies against slow, obvious twins."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agcd.arrays import confidence_of, entropy_of, margin_of, msp_of, rank_within
from agcd.strategies import badge, select
from agcd.strategies.novelty import equal_share
from agcd.types import FloatArray, PoolView


def make_view(probs: Any, n_old: int = 0, features: Any = None, labelled: Any = None) -> PoolView:
    """A pool with rows 100, 101, …"""
    probs = np.asarray(probs, dtype=float)
    features = np.zeros((len(probs), 2)) if features is None else np.asarray(features, dtype=float)
    known = np.empty((0, features.shape[1])) if labelled is None else np.asarray(labelled, dtype=float)
    rows = np.arange(100, 100 + len(probs))
    return PoolView(rows, probs, features, known, np.zeros(len(known), dtype=np.int64), n_old)


def random_view(seed: int, n: int = 50, n_slots: int = 6, d: int = 4, n_labelled: int = 7) -> PoolView:
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(n_slots, 0.5), size=n)
    return make_view(probs, 2, rng.standard_normal((n, d)), rng.standard_normal((n_labelled, d)))


def ask(view: PoolView, name: str, budget: int, seed: int = 0, **options: Any) -> list[int]:
    return [int(row) for row in select(view, name, budget, np.random.default_rng(seed), options)]


# --- uncertainty -------------------------------------------------------------------------------------------------


def test_scores_equal_their_definitions_and_survive_zeros() -> None:
    probs = np.array([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    np.testing.assert_allclose(msp_of(probs), [0.5, 1.0, 0.5])
    np.testing.assert_allclose(margin_of(probs), [0.2, 1.0, 0.0])
    np.testing.assert_allclose(entropy_of(probs), [1.0296530, 0.0, np.log(2)], rtol=1e-6)


def test_margin_of_a_single_slot_is_its_probability() -> None:
    np.testing.assert_array_equal(margin_of(np.array([[1.0], [0.25]])), [1.0, 0.25])


def test_scores_do_not_depend_on_block_borders(monkeypatch: pytest.MonkeyPatch) -> None:
    probs = np.random.default_rng(0).dirichlet(np.ones(7), size=40)
    whole = [confidence_of(probs, m) for m in ("margin", "msp", "entropy")]
    monkeypatch.setattr("agcd.arrays.BLOCK_ENTRIES", 20)
    for metric, score in zip(("margin", "msp", "entropy"), whole, strict=True):
        np.testing.assert_array_equal(confidence_of(probs, metric), score)


def test_uncertainty_strategies_ask_about_the_least_sure_first_and_break_ties_by_row() -> None:
    view = make_view([[0.9, 0.1, 0.0], [0.5, 0.5, 0.0], [0.4, 0.3, 0.3], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    assert ask(view, "margin", 5) == [101, 103, 102, 100, 104]
    assert ask(view, "least_confidence", 5) == [102, 101, 103, 100, 104]
    assert ask(view, "entropy", 3) == [102, 101, 103]


def test_ties_go_to_the_lower_rows_in_pools_of_any_size() -> None:
    view = make_view(np.tile([[0.5, 0.5], [0.9, 0.1]], (500, 1)))
    for name in ("margin", "entropy", "least_confidence", "informative_novel"):
        assert ask(view, name, 4) == [100, 102, 104, 106]


def test_random_takes_every_row_equally_often() -> None:
    view = make_view(np.ones((5, 1)))
    taken = np.bincount([r - 100 for seed in range(1000) for r in ask(view, "random", 2, seed)])
    assert taken.sum() == 2000
    assert abs(taken - 400).max() < 80  # five standard deviations of a binomial(1000, 0.4)


# --- diversity ---------------------------------------------------------------------------------------------------


def test_kmeans_takes_one_row_of_each_blob_nearest_its_centre_and_large_blobs_first() -> None:
    blob = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    features = np.concatenate([blob + 100, blob[:3] - 100, [[300.0, 0.0]]])
    view = make_view(np.ones((9, 1)), features=features)
    assert ask(view, "kmeans", 3, n_init=3) == [100, 105, 108]
    assert ask(view, "kmeans", 3, minibatch=True, n_init=3) == [100, 105, 108]


def test_kmeans_with_fewer_distinct_points_than_questions_covers_each_point_without_a_warning() -> None:
    view = make_view(np.ones((9, 1)), features=np.repeat(np.eye(3), 3, axis=0))
    rows = ask(view, "kmeans", 5)
    assert {(r - 100) // 3 for r in rows[:3]} == {0, 1, 2}
    assert len(set(rows)) == 5


def dense_coreset(view: PoolView, budget: int) -> list[int]:
    """Every pair's distance, recomputed at every step."""
    centres = list(view.labelled_features)
    picks: list[int] = []
    if not centres:
        picks.append(int(((view.features - view.features.mean(0)) ** 2).sum(1).argmax()))
    while len(picks) < budget:
        all_centres = [*centres, *(view.features[i] for i in picks)]
        nearest = [min(float(((x - c) ** 2).sum()) for c in all_centres) for x in view.features]
        picks.append(max((i for i in range(len(nearest)) if i not in picks), key=lambda i: (nearest[i], -i)))
    return [int(row) for row in view.rows[picks]]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_labelled", [0, 1, 7])
def test_coreset_equals_its_dense_twin(seed: int, n_labelled: int) -> None:
    view = random_view(seed, n_labelled=n_labelled)
    assert ask(view, "coreset", 20) == dense_coreset(view, 20)


def test_coreset_never_prefers_a_near_copy_of_a_labelled_row() -> None:
    # the reference's expansion gives tiny negative squares here, takes the root, and picks the NaN
    rng = np.random.default_rng(0)
    labelled = rng.standard_normal((20, 64)).astype(np.float32) + np.float32(50)
    far = rng.standard_normal((30, 64)).astype(np.float32) + np.float32(50)
    view = make_view(np.ones((50, 1)), features=np.concatenate([labelled + 1e-4, far]), labelled=labelled)
    view = replace(view, features=view.features.astype(np.float32))
    assert min(ask(view, "coreset", 30)) >= 120


def test_coreset_in_small_blocks_picks_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ask(random_view(3), "coreset", 20)
    monkeypatch.setattr("agcd.arrays.BLOCK_ENTRIES", 16)
    assert ask(random_view(3), "coreset", 20) == whole


def dense_gradients(view: PoolView) -> FloatArray:
    a = view.probs - np.eye(view.probs.shape[1])[view.probs.argmax(1)]
    return np.asarray((a[:, :, None] * view.features[:, None, :]).reshape(len(a), -1))


def test_factored_gradient_distances_equal_explicit_ones_even_for_very_sure_rows() -> None:
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(6, 1e-3), size=40).astype(np.float32)
    view = make_view(probs, features=rng.standard_normal((40, 4)))
    g = dense_gradients(view)
    norms = badge.gradient_norms(view.probs, view.features)
    np.testing.assert_allclose(norms, (g**2).sum(1), rtol=1e-9, atol=1e-30)
    for j in range(40):
        got = badge.gradient_distances(view.probs, view.features, norms, np.array([j]))
        np.testing.assert_allclose(got, ((g - g[j]) ** 2).sum(1), rtol=1e-6, atol=1e-12)
        assert got[j] == 0


def test_copies_are_at_distance_zero_exactly() -> None:
    rng = np.random.default_rng(0)
    probs, features = rng.dirichlet(np.ones(30), size=5), rng.standard_normal((5, 200))
    probs, features = np.tile(probs, (40, 1)), np.tile(features, (40, 1))
    norms = badge.gradient_norms(probs, features)
    for j in range(5):
        zeros = np.flatnonzero(badge.gradient_distances(probs, features, norms, np.array([j])) == 0)
        assert zeros.tolist() == list(range(j, 200, 5))


def test_badge_takes_every_distinct_gradient_before_it_takes_a_copy() -> None:
    rng = np.random.default_rng(0)
    probs, features = rng.dirichlet(np.ones(4), size=3), rng.standard_normal((3, 5))
    view = make_view(np.tile(probs, (10, 1)), features=np.tile(features, (10, 1)))
    for seed in range(20):
        rows = ask(view, "badge", 8, seed)
        assert {(r - 100) % 3 for r in rows[:3]} == {0, 1, 2}


def test_badge_fills_at_random_when_all_gradients_are_zero() -> None:
    view = make_view(np.eye(3)[np.arange(30) % 3], features=np.ones((30, 2)))
    assert {tuple(sorted(ask(view, "badge", 6, seed))) for seed in range(5)} != {tuple(range(100, 106))}


def test_a_draw_never_lands_on_weight_zero() -> None:
    class Top:
        def random(self, count: int) -> FloatArray:
            return np.ones(count)  # beyond what a generator gives: stands for a product that rounds up to the total

    assert badge.draw(np.array([0.0, 1.0, 1.0]), 2, Top()).tolist() == [1, 1]  # type: ignore[arg-type]
    weights = np.array([0.0, 1.0, 0.0, 2.0, 0.0])
    assert set(badge.draw(np.cumsum(weights), 100, np.random.default_rng(0)).tolist()) == {1, 3}


# --- novelty -----------------------------------------------------------------------------------------------------


def naive_quota(score: list[float], slot: list[int], n_slots: int, budget: int, fill: str) -> list[int]:
    """The rule of METHOD 0 and 1.5 in plain loops; items of a slot in score order, ties by position."""
    queues = {
        s: sorted((i for i in range(len(slot)) if slot[i] == s), key=lambda i: (score[i], i)) for s in range(n_slots)
    }
    chosen: list[int] = []
    for queue in queues.values():
        for _ in range(min(budget // n_slots, len(queue))):
            chosen.append(queue.pop(0))
    if fill == "official":
        rest = sorted((i for queue in queues.values() for i in queue), key=lambda i: (score[i], i))
        return chosen + rest[: budget - len(chosen)]
    while len(chosen) < budget and any(queues.values()):
        for queue in sorted(filter(None, queues.values()), key=lambda q: (score[q[0]], q[0])):
            if len(chosen) < budget:
                chosen.append(queue.pop(0))
    return chosen


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), max_size=25), st.integers(1, 30))
def test_equal_share_equals_the_rule_in_plain_loops(items: list[tuple[int, int]], budget: int) -> None:
    slot, score = [s for s, _ in items], [v / 8 for _, v in items]
    for fill, quota in (("slots", None), ("official", budget // 5)):
        order = equal_share(np.array(score), np.array(slot, dtype=np.int64), quota)
        assert sorted(order[:budget].tolist()) == sorted(naive_quota(score, slot, 5, budget, fill))


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 3)), max_size=12))
def test_rank_within_counts_the_better_items_of_the_group(items: list[tuple[int, int]]) -> None:
    rank = rank_within(np.array([g for g, _ in items], dtype=np.int64), np.array([s for _, s in items], dtype=float))
    for i, (group, score) in enumerate(items):
        assert rank[i] == sum(g == group and (s, j) < (score, i) for j, (g, s) in enumerate(items))


def two_slots() -> PoolView:
    """One old slot and two novel: five rows of slot 1 from unsure to sure, then two of slot 2, then two old."""
    sure = [0.50, 0.55, 0.60, 0.65, 0.70]
    probs = [[0.1, p, 0.9 - p] for p in sure] + [[0.1, 0.2, 0.7], [0.02, 0.02, 0.96], [0.6, 0.4, 0], [0.9, 0.1, 0]]
    return make_view(probs, n_old=1)


def test_confident_takes_the_surest_of_each_slot_and_informative_the_least_sure() -> None:
    assert ask(two_slots(), "confident_novel", 4) == [106, 104, 105, 103]
    assert ask(two_slots(), "informative_novel", 4) == [100, 105, 101, 106]


def test_adaptive_novel_follows_the_phase() -> None:
    for phase, twin in (("confident", "confident_novel"), ("informative", "informative_novel")):
        view = replace(two_slots(), phase=phase)  # type: ignore[arg-type]
        for metric in ("margin", "msp", "entropy"):
            for fill in ("slots", "official"):
                options: dict[str, Any] = {"metric": metric, "fill": fill}
                assert ask(view, "adaptive_novel", 4, **options) == ask(view, twin, 4, **options)


def test_named_metrics_are_the_informative_strategy_with_that_metric() -> None:
    view = random_view(0)
    for metric in ("margin", "msp", "entropy"):
        assert ask(view, f"novel_{metric}", 9) == ask(view, "informative_novel", 9, metric=metric)


def test_without_the_share_per_slot_the_least_sure_novel_rows_come_first_whatever_their_slot() -> None:
    assert ask(two_slots(), "novel_informative", 4) == [100, 101, 102, 103]


def test_when_the_budget_is_below_the_slots_each_pick_has_its_own_slot_unless_fill_is_official() -> None:
    view = make_view([[0.51, 0.49, 0], [0.52, 0.48, 0], [0.1, 0.9, 0], [0.1, 0.1, 0.8]])
    assert ask(view, "novel_margin", 2) == [100, 103]
    assert ask(view, "novel_margin", 2, fill="official") == [100, 101]


def test_novel_random_stays_among_the_novel_while_they_last() -> None:
    seen = {row for seed in range(30) for row in ask(two_slots(), "novel_random", 2, seed)}
    assert seen == set(range(100, 107))


def test_too_few_novel_rows_are_filled_from_the_old_by_the_same_score_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, logger="agcd"):
        assert ask(two_slots(), "informative_novel", 8)[-1] == 107
        assert ask(two_slots(), "confident_novel", 8)[-1] == 108
    assert "7 rows are predicted as novel and 8 were wanted" in caplog.text
    caplog.clear()
    ask(two_slots(), "informative_novel", 7)
    assert not caplog.records
