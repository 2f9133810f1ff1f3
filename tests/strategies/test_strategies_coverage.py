"""TypiClust, TCM and ProbCover against slow, obvious twins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from agcd.errors import ConfigError
from agcd.strategies import coverage, select
from agcd.types import FloatArray, IntArray, PoolView


def make_view(features: Any, labelled: Any = None, slots: Any = None, n_slots: int = 3) -> PoolView:
    """A pool with rows 100, 101, … that knows nothing but features."""
    features = np.asarray(features, dtype=float)
    known = np.empty((0, features.shape[1])) if labelled is None else np.asarray(labelled, dtype=float)
    known_slots = np.zeros(len(known), dtype=np.int64) if slots is None else np.asarray(slots, dtype=np.int64)
    probs = np.full((len(features), n_slots), 1 / n_slots)
    return PoolView(np.arange(100, 100 + len(features)), probs, features, known, known_slots, n_old=1)


def blobs(sizes: list[int], d: int = 6, seed: int = 0, spread: float = 0.15) -> FloatArray:
    """Unit vectors around the axes, ``sizes[k]`` around axis k, in this order."""
    rng = np.random.default_rng(seed)
    x = np.eye(d)[np.repeat(np.arange(len(sizes)), sizes)] + spread * rng.standard_normal((sum(sizes), d))
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def ask(view: PoolView, name: str, budget: int, seed: int = 0, **options: Any) -> list[int]:
    return [int(row) for row in select(view, name, budget, np.random.default_rng(seed), options)]


# --- TypiClust ---------------------------------------------------------------------------------------------------


def slow_typiclust(view: PoolView, budget: int, n_clusters: int, seed: int) -> list[int]:
    """One pick after another: the next cluster in turn, its most typical row that is left."""
    x, n = [*view.features, *view.labelled_features], len(view.rows)
    cluster = coverage.find_clusters(np.stack(x), n_clusters, np.random.default_rng(seed)).tolist()
    members = {c: [i for i in range(n) if cluster[i] == c] for c in set(cluster)}
    n_labels = {c: sum(k == c for k in cluster[n:]) for c in members}

    def typicality(i: int) -> float:
        gaps = sorted(float(np.linalg.norm(x[i] - x[j])) for j in members[cluster[i]] if j != i)[:20]
        return len(gaps) / sum(gaps) if gaps else 0.0

    ranked = {c: sorted(rows, key=lambda i: (-typicality(i), i)) for c, rows in members.items()}
    by_need = sorted(members, key=lambda c: (n_labels[c], -cluster.count(c), c))
    picks: list[int] = []
    for large in (True, False):
        chosen = [c for c in by_need if (cluster.count(c) >= 5) == large]
        for turn in range(n):
            picks += [ranked[c][turn] for c in chosen if turn < len(ranked[c])]
    return [int(view.rows[i]) for i in picks[:budget]]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("budget", [3, 12, 59, 70])
def test_typiclust_equals_its_slow_twin(seed: int, budget: int) -> None:
    rng = np.random.default_rng(seed)
    x, known = rng.standard_normal((70, 3)), rng.standard_normal((9, 3))
    view = make_view(x, known, np.arange(9) % 2)
    assert ask(view, "typiclust", budget, seed, max_clusters=15) == slow_typiclust(
        view, budget, min(15, 2 + budget), seed
    )


def test_typiclust_asks_about_large_clusters_without_labels_first() -> None:
    x = blobs([30, 20, 10])
    view = make_view(x, labelled=[x[0], x[1]])
    rows = ask(view, "typiclust", 2)  # three clusters: one labelled slot and two questions
    assert 130 <= rows[0] < 150 <= rows[1] < 160


def test_typiclust_takes_the_densest_spot_and_leaves_small_clusters_for_the_end() -> None:
    line = np.array([[0.0, 0], [1.0, 0], [1.9, 0], [2.0, 0], [2.1, 0], [3.0, 0], [4.0, 0]])
    view = make_view(np.concatenate([line, [[50.0, 0], [50.0, 1]]]))
    assert ask(view, "typiclust", 2) == [103, 102]
    assert set(ask(view, "typiclust", 9, max_clusters=2)[-2:]) == {107, 108}


def test_neighbour_distances_do_not_depend_on_block_borders(monkeypatch: pytest.MonkeyPatch) -> None:
    x, cluster = np.random.default_rng(0).standard_normal((50, 3)), np.arange(50) % 3
    whole = coverage.neighbour_distances(x, cluster)
    monkeypatch.setattr("agcd.arrays.BLOCK_ENTRIES", 7)
    np.testing.assert_allclose(coverage.neighbour_distances(x, cluster), whole, rtol=1e-9)


def test_a_row_alone_in_its_cluster_is_not_typical() -> None:
    assert coverage.neighbour_distances(np.eye(3), np.array([0, 0, 1])).tolist() == [2**0.5, 2**0.5, np.inf]


# --- TCM ---------------------------------------------------------------------------------------------------------


def test_tcm_is_typiclust_in_its_first_rounds_and_margin_after_them() -> None:
    view = make_view(blobs([20, 10, 10]))
    view = replace(view, probs=np.random.default_rng(0).dirichlet(np.ones(3), size=40))
    rows = {name: ask(view, name, 5) for name in ("typiclust", "margin")}
    assert rows["typiclust"] != rows["margin"]
    for round_, typical_rounds, due in [(1, 2, "typiclust"), (2, 2, "typiclust"), (3, 2, "margin"), (1, 0, "margin")]:
        assert ask(replace(view, round=round_), "tcm", 5, typical_rounds=typical_rounds) == rows[due]


def test_tcm_refuses_a_negative_number_of_rounds() -> None:
    with pytest.raises(ConfigError, match=r"typical_rounds is -1; it must be at least 0\."):
        ask(make_view(blobs([5, 5])), "tcm", 2, typical_rounds=-1)


# --- ProbCover ---------------------------------------------------------------------------------------------------


def slow_cover(x: FloatArray, known: FloatArray, delta: float, budget: int) -> list[int]:
    """Balls as sets; the gain of every ball counted anew at every step."""
    balls = [{j for j in range(len(x)) if np.linalg.norm(x[i] - x[j]) < delta} for i in range(len(x))]
    covered = {j for j in range(len(x)) for z in known if np.linalg.norm(z - x[j]) < delta}
    picks: list[int] = []
    while len(picks) < budget and any(ball - covered for ball in balls):
        picks.append(max(range(len(x)), key=lambda i: (len(balls[i] - covered), -i)))
        covered |= balls[picks[-1]]
    return picks


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("delta", [0.05, 0.3, 0.7, 3.0])
@pytest.mark.parametrize("n_labelled", [0, 4])
def test_probcover_gains_equal_brute_force(seed: int, delta: float, n_labelled: int) -> None:
    x = blobs([25, 18, 9], seed=seed)
    known = blobs([1, 1, 2], seed=seed + 50)[:n_labelled]
    picks = slow_cover(x, known, delta, 20)
    rows = ask(make_view(x, known), "probcover", 20, delta=delta)
    assert rows[: len(picks)] == [100 + i for i in picks]
    assert len(set(rows)) == 20


def slow_pure_radius(x: FloatArray, cluster: IntArray) -> float:
    """Try every distance that occurs; keep the largest at which 95 % of the open balls are pure."""
    gaps = np.linalg.norm(x[:, None] - x, axis=2)
    pure_share = {
        float(r): np.mean([len(set(cluster[gap < r].tolist())) == 1 for gap in gaps]) for r in np.unique(gaps) if r > 0
    }
    return max(r for r, share in pure_share.items() if share >= 0.95)


@pytest.mark.parametrize("n", [30, 40, 61])
def test_pure_radius_is_the_largest_that_leaves_19_of_20_balls_pure(n: int) -> None:
    rng = np.random.default_rng(n)
    x = rng.standard_normal((n, 2))
    cluster = np.where(x[:, 0] > 0.3, 2, np.where(x[:, 1] > 0, 1, 0))
    assert coverage.pure_radius(x, cluster, rng) == pytest.approx(slow_pure_radius(x, cluster), rel=1e-6)


def test_pure_radius_of_a_single_cluster_is_infinite_and_then_one_row_covers_all() -> None:
    x = blobs([20, 20])
    assert coverage.pure_radius(x, np.zeros(40, dtype=np.int64), np.random.default_rng(0)) == np.inf
    assert ask(make_view(x, n_slots=1), "probcover", 40)[0] == 100


def test_probcover_covers_what_labels_leave_uncovered_by_its_own_radius() -> None:
    x = blobs([30, 20, 10], spread=0.05)
    rows = ask(make_view(x, labelled=x[:3]), "probcover", 2)
    assert 130 <= rows[0] < 150 <= rows[1] < 160


def test_probcover_on_a_sample_asks_about_the_sample_first() -> None:
    view = make_view(blobs([40, 40, 40]))
    rows = ask(view, "probcover", 120, max_candidates=30, delta=1e-3)
    sample = 100 + np.sort(np.random.default_rng(0).choice(120, 30, replace=False))
    assert rows[:30] == sample.tolist()
    assert sorted(rows) == view.rows.tolist()


def test_probcover_in_small_blocks_picks_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    view = make_view(blobs([25, 18, 9]))
    whole = ask(view, "probcover", 20)
    monkeypatch.setattr("agcd.arrays.BLOCK_ENTRIES", 16)
    assert ask(view, "probcover", 20) == whole


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [("typiclust", "max_clusters", 0), ("probcover", "delta", 0.0), ("probcover", "max_candidates", 0)],
)
def test_impossible_options_are_one_sentence(name: str, option: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"{option} is {value}; it must be"):
        ask(make_view(np.eye(3)), name, 2, **{option: value})


def test_many_clusters_are_found_by_mini_batches() -> None:
    x = np.repeat(np.eye(60), 3, axis=0)
    cluster = coverage.find_clusters(x, 60, np.random.default_rng(0))
    assert all(len(set(cluster[3 * k : 3 * k + 3].tolist())) == 1 for k in range(60))
