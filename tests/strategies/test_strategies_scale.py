"""What makes strategies fit for large pools must not change what they pick, and must bound their memory."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agcd.arrays import each_block, lowest, subsample
from agcd.errors import ConfigError
from agcd.strategies import badge, diversity, get_strategy, list_strategies, select, strategy_options
from agcd.strategies.novelty import equal_share, first_of_equal_share
from agcd.types import FloatArray, PoolView

every_strategy = pytest.mark.parametrize("name", sorted(list_strategies()))
METRICS = ("margin", "msp", "entropy")


def make_view(n: int = 300, n_slots: int = 8, d: int = 5, n_labelled: int = 9, seed: int = 0) -> PoolView:
    """A random pool in float32 with rows 0, 10, 20, …; half of the slots are old."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(n_slots, 0.4), size=n).astype(np.float32)
    x = rng.standard_normal((n + n_labelled, d)).astype(np.float32)
    return PoolView(10 * np.arange(n), probs, x[:n], x[n:], rng.integers(0, n_slots, n_labelled), n_slots // 2)


def ask(view: PoolView, name: str, budget: int, seed: int = 0, **options: Any) -> list[int]:
    return [int(row) for row in select(view, name, budget, np.random.default_rng(seed), options)]


# --- blocks, threads, memory -------------------------------------------------------------------------------------


@every_strategy
def test_the_number_of_threads_changes_no_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agcd.arrays.BLOCK_ENTRIES", 64)
    monkeypatch.setattr("agcd.arrays.BLOCKS_WORTH_THREADS", 2)
    answers = []
    for n_threads in (1, 4):
        monkeypatch.setattr("agcd.arrays.thread_count", lambda n=n_threads: n)
        answers.append(ask(make_view(), name, 40))
    assert answers[0] == answers[1]


def test_every_block_is_visited_once_and_a_fault_in_a_thread_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agcd.arrays.BLOCK_ENTRIES", 10)
    monkeypatch.setattr("agcd.arrays.thread_count", lambda: 3)
    visits = np.zeros(999, dtype=np.int64)

    def count(part: slice) -> None:
        visits[part] += 1

    each_block(999, 3, count)
    assert (visits == 1).all()
    with pytest.raises(TypeError):
        each_block(999, 3, len)  # type: ignore[arg-type]


@every_strategy
def test_memory_grows_with_rows_and_not_with_rows_times_slots_or_features(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = make_view(n=10_000, n_slots=160, d=160, n_labelled=20)  # 6.4 MB of each
    monkeypatch.setattr("agcd.arrays.BLOCK_ENTRIES", 1 << 12)
    monkeypatch.setattr(diversity, "FEWEST_CANDIDATES", 1 << 6)
    monkeypatch.setattr(diversity, "MOST_CANDIDATES", 1 << 8)
    monkeypatch.setattr("agcd.strategies.open_set.SCORED_AT_ONCE", 1 << 8)
    options: dict[str, Any] = (
        {"max_candidates": 200} if "max_candidates" in strategy_options(get_strategy(name)) else {}
    )
    if name in ("coreset", "badge"):
        options = {}  # exact at any size
    ask(make_view(), name, 5, **options)  # loads what is loaded late
    tracemalloc.start()
    ask(view, name, 5, **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150 * len(view.rows) + 2_000_000 < view.probs.nbytes  # what the package's docstring promises


@given(st.lists(st.integers(0, 5), max_size=20), st.integers(1, 25))
def test_lowest_equals_the_start_of_a_stable_sort(values: list[int], count: int) -> None:
    score = np.array(values, dtype=float)
    assert lowest(score, count).tolist() == sorted(range(len(values)), key=lambda i: values[i])[:count]


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), max_size=40),
    st.integers(1, 45),
    st.sampled_from([None, 0, 1, 3, 50]),
)
def test_the_first_of_an_equal_share_equal_those_of_the_whole_order(
    items: list[tuple[int, int]], budget: int, quota: int | None
) -> None:
    slot, score = np.array([s for s, _ in items], dtype=np.int64), np.array([v / 8 for _, v in items])
    whole = equal_share(score, slot, quota)[:budget]
    assert first_of_equal_share(score, slot, quota, budget).tolist() == whole.tolist()


# --- max_candidates ----------------------------------------------------------------------------------------------


def test_thinning_keeps_order_and_draws_only_when_there_is_more() -> None:
    view, rng = make_view(n=50), np.random.default_rng(0)
    before = rng.bit_generator.state
    assert subsample(view, 50, 5, rng) is view
    assert subsample(view, None, 5, rng) is view
    assert rng.bit_generator.state == before
    sample = subsample(view, 20, 30, rng)  # never below the budget
    assert len(sample.rows) == 30
    assert (np.diff(sample.rows) > 0).all()
    np.testing.assert_array_equal(sample.features, view.features[sample.rows // 10])
    np.testing.assert_array_equal(sample.probs, view.probs[sample.rows // 10])


@pytest.mark.parametrize(
    "name", ["kmeans", "coreset", "badge", "typiclust", "tcm", "alfa_mix", "max_herding", "uncertainty_herding"]
)
def test_max_candidates_leaves_small_pools_alone_and_limits_large_ones(name: str) -> None:
    view = make_view(n=80)
    assert ask(view, name, 10, max_candidates=80) == ask(view, name, 10)
    assert len(set(ask(view, name, 10, max_candidates=15))) == 10
    assert sorted(ask(view, name, 80, max_candidates=15)) == view.rows.tolist()
    with pytest.raises(ConfigError, match="max_candidates is 0; it must be"):
        ask(view, name, 10, max_candidates=0)


# --- CoreSet -----------------------------------------------------------------------------------------------------


def slow_farthest_first(x: FloatArray, labelled: FloatArray, count: int) -> list[int]:
    """The whole pool measured by differences against every pick."""
    picks: list[int] = []
    nearest = np.full(len(x), np.inf)
    for centre in labelled:
        nearest = np.minimum(nearest, diversity.squared_distance_to(x, centre))
    if not len(labelled):
        nearest = diversity.squared_distance_to(x, x.mean(0, dtype=np.float64))
    while len(picks) < count:
        left = [i for i in range(len(x)) if i not in picks]
        picks.append(max(left, key=lambda i: (nearest[i], -i)))
        distance = diversity.squared_distance_to(x, x[picks[-1]])
        nearest = distance if len(picks) == 1 and not len(labelled) else np.minimum(nearest, distance)
    return picks


def farthest_first_with(x: FloatArray, labelled: FloatArray, count: int, n_candidates: int) -> list[int]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diversity, "FEWEST_CANDIDATES", 1)
        patch.setattr(diversity, "MOST_CANDIDATES", n_candidates)
        return [int(i) for i in diversity.farthest_first(x, labelled, count)]


@given(
    points=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 1)), min_size=1, max_size=40),
    n_labelled=st.integers(0, 3),
    count=st.integers(1, 40),
    n_candidates=st.integers(1, 12),
)
@settings(deadline=None)
def test_candidates_never_change_a_pick_even_among_copies_and_ties(
    points: list[tuple[int, int, int]], n_labelled: int, count: int, n_candidates: int
) -> None:
    x = np.array(points, dtype=np.float32)
    labelled, pool = x[:n_labelled], x[min(n_labelled, len(x) - 1) :]
    count = min(count, len(pool))
    assert farthest_first_with(pool, labelled, count, n_candidates) == slow_farthest_first(pool, labelled, count)


@given(seed=st.integers(0, 10_000), dtype=st.sampled_from([np.float16, np.float32, np.float64]))
@settings(max_examples=40, deadline=None)
def test_candidates_never_change_a_pick_of_crowded_or_distant_features(seed: int, dtype: Any) -> None:
    rng = np.random.default_rng(seed)
    crowd = rng.standard_normal((6, 16))[rng.integers(0, 6, 120)]
    x = (crowd + rng.choice([1e-3, 0.3]) * rng.standard_normal((120, 16)) + rng.choice([0, 20])).astype(dtype)
    assert farthest_first_with(x, x[:2], 60, 25) == slow_farthest_first(x, x[:2], 60)


def test_measuring_against_many_centres_equals_measuring_against_each() -> None:
    rng = np.random.default_rng(0)
    x, centres = rng.standard_normal((200, 9)) + 5, rng.standard_normal((30, 9)) + 5
    nearest = diversity.nearest_labelled(x, centres[:10])
    diversity.lower(nearest, x, centres[10:])
    each = np.min([diversity.squared_distance_to(x, centre) for centre in centres], axis=0)
    np.testing.assert_array_equal(nearest, each)


# --- BADGE -------------------------------------------------------------------------------------------------------


def dense_squares(view: PoolView) -> FloatArray:
    """Squared distances (n, n) of explicit gradient embeddings."""
    a = view.probs - np.eye(view.probs.shape[1])[view.probs.argmax(1)]
    g = (a[:, :, None] * view.features[:, None, :]).reshape(len(a), -1).astype(np.float64)
    return np.asarray(((g[:, None] - g) ** 2).sum(2))


def dense_badge(square: FloatArray, first: int, budget: int, rng: np.random.Generator) -> list[int]:
    """k-means++ with all weights computed anew for every pick."""
    picks = [first]
    while len(picks) < budget:
        nearest = square[:, picks].min(1)
        picks.append(int(rng.choice(len(nearest), p=nearest / nearest.sum())))
    return picks


@pytest.mark.parametrize(("at_once", "per_measurement"), [(256, 1 / 8), (2, 1 / 8), (3, 1000)])
def test_rejection_draws_badge_with_the_probabilities_of_its_definition(
    at_once: int, per_measurement: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(badge, "DRAWN_AT_ONCE", at_once)
    monkeypatch.setattr(badge, "DRAWS_PER_MEASUREMENT", per_measurement)
    view = make_view(n=6, n_slots=3, d=2, seed=1)
    view = replace(view, features=view.features * np.array([[4], [1], [1], [2], [1], [1]], dtype=np.float32))
    square, rng, n_runs = dense_squares(view), np.random.default_rng(0), 2000
    rows = [badge.badge(view, 4, rng) // 10 for _ in range(n_runs)]
    first = int(rows[0][0])
    seen = Counter(tuple(row[1:].tolist()) for row in rows)
    statistic, n_kinds = 0.0, 0
    for kind in permutations([i for i in range(6) if i != first], 3):
        chance, picks = 1.0, [first]
        for pick in kind:
            nearest = square[:, picks].min(1)
            chance, picks = chance * nearest[pick] / nearest.sum(), [*picks, pick]
        statistic += (seen[kind] - n_runs * chance) ** 2 / (n_runs * chance)
        n_kinds += 1
    assert statistic < n_kinds + 5 * (2 * n_kinds) ** 0.5


def test_badge_spreads_as_well_as_its_dense_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(badge, "DRAWN_AT_ONCE", 16)
    view = make_view(n=150, d=4)
    square = dense_squares(view)
    ours = [[row // 10 for row in ask(view, "badge", 20, seed)] for seed in range(60)]
    dense = [dense_badge(square, ours[0][0], 20, np.random.default_rng(seed)) for seed in range(60)]
    potential = [np.mean([square[:, picks].min(1).sum() for picks in runs]) for runs in (ours, dense)]
    assert potential[0] == pytest.approx(potential[1], rel=0.05)


def test_distances_to_several_picks_are_those_to_the_nearest_of_them() -> None:
    view = make_view(n=60)
    norms, picks = badge.gradient_norms(view.probs, view.features), np.array([3, 9, 30])
    found = badge.gradient_distances(view.probs, view.features, norms, picks)
    np.testing.assert_allclose(found, dense_squares(view)[:, picks].min(1), rtol=1e-5, atol=1e-6)


# --- from features and a head ------------------------------------------------------------------------------------
