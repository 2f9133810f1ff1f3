from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment, minimize_scalar
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from agcd.errors import ConfigError
from agcd.features.rows import EmbeddingRows
from agcd.training import n_classes
from agcd.training.n_classes import cluster_accuracy, estimate_n_classes, prefix_features
from agcd.types import FloatArray, IntArray, NumberOfClasses
from support.blobs import make_blobs

METHODS = ["grid", "brent"]


def blobs_apart(
    n_classes: int, n_old: int, per_class: int = 30, n_labels: int = 8, seed: int = 0
) -> tuple[FloatArray, IntArray]:
    """Blobs that k-means cannot mistake, the first ``n_labels`` rows of each old one labelled."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(n_classes), per_class)
    x = np.eye(n_classes)[truth] * 10 + rng.normal(size=(len(truth), n_classes)) * 0.3
    labelled = (truth < n_old) & (np.arange(len(truth)) % per_class < n_labels)
    return x.astype(np.float32), np.where(labelled, truth, -1)


def fit_counter(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Every call of k-means as (clusters, seed), in a list that grows."""
    calls: list[tuple[int, int]] = []
    fit = n_classes._cluster

    def counted(x: FloatArray, n_clusters: int, seed: int) -> IntArray:
        calls.append((n_clusters, seed))
        return fit(x, n_clusters, seed)

    monkeypatch.setattr(n_classes, "_cluster", counted)
    return calls


def slow_accuracy(y_class: IntArray, y_cluster: IntArray, n_old: int, n_clusters: int) -> float:
    """Every way to give each class a cluster of its own, tried in turn."""
    rows = np.flatnonzero(y_class >= 0)
    hits = [
        sum(chosen[y_class[row]] == y_cluster[row] for row in rows)
        for chosen in itertools.permutations(range(n_clusters), n_old)
    ]
    return float(max(hits) / len(rows))


@pytest.mark.parametrize("seed", range(5))
def test_the_objective_equals_trying_every_assignment(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y_class, y_cluster = rng.integers(-1, 3, size=25), rng.integers(0, 5, size=25)
    assert cluster_accuracy(y_class, y_cluster, 3) == pytest.approx(slow_accuracy(y_class, y_cluster, 3, 5))


def test_unlabelled_rows_do_not_count_in_the_objective() -> None:
    y_class, y_cluster = np.array([0, 0, 1, -1, -1]), np.array([2, 2, 0, 2, 0])
    assert cluster_accuracy(y_class, y_cluster, 2) == 1.0
    assert cluster_accuracy(y_class, np.array([2, 2, 0, 1, 1]), 2) == 1.0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("n_true", "n_old"), [(6, 4), (12, 8), (20, 15)])
def test_the_number_of_well_separated_blobs_is_found(method: str, n_true: int, n_old: int) -> None:
    x, y_class = blobs_apart(n_true, n_old)
    found = estimate_n_classes(x, y_class, n_old, method=method)
    assert abs(found.n - n_true) <= max(1, 0.15 * n_true)
    assert found.low <= n_true <= found.high


def test_blobs_as_the_trainer_sees_them_are_counted() -> None:
    blobs = make_blobs(n_classes=8, n_old=5, per_class=40)
    x = prefix_features(blobs.features, np.arange(320))
    assert 6 <= estimate_n_classes(x, blobs.labels.y_class, 5).n <= 10


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("max_classes", [None, 4, 9, 10_000])
def test_every_number_tried_is_in_range_and_the_range_holds_the_estimate(method: str, max_classes: int | None) -> None:
    x, y_class = blobs_apart(6, 4, per_class=10, n_labels=3)
    found = estimate_n_classes(x, y_class, 4, max_classes=max_classes, method=method)
    tried = [n for n, _ in found.curve]
    assert tried == sorted(set(tried))
    assert tried[0] >= 4
    assert tried[-1] <= min(max_classes or 24, 60)
    assert found.n in tried
    assert tried[0] <= found.low <= found.n <= found.high <= tried[-1]
    assert all(0 <= share <= 1 for _, share in found.curve)


@pytest.mark.parametrize("method", METHODS)
def test_the_range_spans_what_is_within_one_standard_error_of_the_best(method: str) -> None:
    blobs = make_blobs(n_classes=10, n_old=5, seed=3)
    x = prefix_features(blobs.features, np.arange(200))
    found = estimate_n_classes(x, blobs.labels.y_class, 5, method=method)
    n = int((blobs.labels.y_class >= 0).sum())
    best = max(share for _, share in found.curve)
    smoothed = (best * n + 1) / (n + 2)
    near = [k for k, share in found.curve if share >= best - (smoothed * (1 - smoothed) / n) ** 0.5]
    assert (found.low, found.high) == (min(near), max(near))


def test_grid_takes_the_middle_of_the_range_and_brent_the_best() -> None:
    blobs = make_blobs(n_classes=10, n_old=5, seed=3)
    x = prefix_features(blobs.features, np.arange(200))
    grid, brent = (estimate_n_classes(x, blobs.labels.y_class, 5, method=method) for method in METHODS)
    assert grid.n == pytest.approx((grid.low * grid.high) ** 0.5, abs=1)
    assert dict(brent.curve)[brent.n] == max(share for _, share in brent.curve)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_estimate_whatever_the_threads(method: str) -> None:
    x, y_class = blobs_apart(8, 4, n_labels=3)
    threads = torch.get_num_threads()
    runs = [estimate_n_classes(x, y_class, 4, method=method, seed=5) for _ in range(2)]
    assert runs[0] == runs[1]
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("method", METHODS)
def test_no_number_is_ever_fitted_twice(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = fit_counter(monkeypatch)
    x, y_class = blobs_apart(9, 5)
    found = estimate_n_classes(x, y_class, 5, method=method)
    assert len(set(calls)) == len(calls) == n_classes.RUNS * len(found.curve)
    assert sorted({n for n, _ in calls}) == [n for n, _ in found.curve]
    assert len(calls) == n_classes.RUNS * len(found.curve)


def test_how_classes_are_numbered_plays_no_part() -> None:
    x, y_class = blobs_apart(8, 5, n_labels=4)
    renumbered = np.where(y_class >= 0, np.array([3, 0, 4, 1, 2])[y_class], -1)
    assert estimate_n_classes(x, renumbered, 5) == estimate_n_classes(x, y_class, 5)


def test_the_order_of_rows_hardly_matters() -> None:
    x, y_class = blobs_apart(10, 8)
    order = np.random.default_rng(1).permutation(len(x))
    shuffled, straight = estimate_n_classes(x[order], y_class[order], 8), estimate_n_classes(x, y_class, 8)
    assert abs(shuffled.n - straight.n) <= 1


def test_one_known_class_gives_at_least_two() -> None:
    x, y_class = blobs_apart(4, 1)
    found = estimate_n_classes(x, y_class, 1)
    assert 2 <= found.low <= found.n <= found.high <= 21


@pytest.mark.parametrize("n_labels", [1, 2, 3])
def test_few_labels_give_a_wide_range_that_holds_the_truth(n_labels: int) -> None:
    x, y_class = blobs_apart(8, 4, n_labels=n_labels)
    found = estimate_n_classes(x, y_class, 4)
    assert found.low <= 8 <= found.high
    assert found.low < found.high


def test_named_novel_classes_count_as_known() -> None:
    x, y_class = blobs_apart(8, 6)
    assert min(n for n, _ in estimate_n_classes(x, y_class, 4).curve) == 6


def test_a_sample_of_many_unlabelled_rows_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(n_classes, "MAX_UNLABELLED", 100)
    sizes: list[tuple[int, ...]] = []
    fit = n_classes._cluster

    def measured(x: FloatArray, n_clusters: int, seed: int) -> IntArray:
        sizes.append(x.shape)
        return fit(x, n_clusters, seed)

    monkeypatch.setattr(n_classes, "_cluster", measured)
    x, y_class = blobs_apart(6, 4, per_class=50)
    found = estimate_n_classes(x, y_class, 4)
    assert set(sizes) == {(4 * 8 + 100, 6)}
    assert abs(found.n - 6) <= 1


def test_wide_features_are_reduced_and_still_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(n_classes, "DIMS", 12)
    x, y_class = blobs_apart(10, 8)
    wide = np.concatenate([x, np.random.default_rng(0).normal(size=(len(x), 50)) * 0.1], axis=1)
    assert n_classes._reduced(wide, 0).shape == (300, 12)
    assert abs(estimate_n_classes(wide, y_class, 8).n - 10) <= 1


@pytest.mark.parametrize("limit", [5, 100_000])
def test_fewer_rows_than_classes_to_try_are_no_fault(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(n_classes, "MAX_UNLABELLED", limit)
    x, y_class = blobs_apart(3, 2, per_class=4, n_labels=1)
    found = estimate_n_classes(x, y_class, 2, max_classes=50)
    assert found.curve[-1][0] == min(12, 2 + limit)


def test_equal_rows_are_no_fault() -> None:
    y_class = np.array([0, 1] + [-1] * 18)
    found = estimate_n_classes(np.ones((20, 3), np.float32), y_class, 2)
    assert 2 <= found.n <= 10


@pytest.mark.parametrize("method", METHODS)
def test_progress_rises_to_its_total(method: str) -> None:
    said: list[tuple[int, int]] = []
    x, y_class = blobs_apart(6, 4, per_class=10)
    estimate_n_classes(x, y_class, 4, method=method, say=lambda done, total: said.append((done, total)))
    done = [step for step, _ in said]
    assert done == sorted(done)
    assert len({total for _, total in said}) == 1
    assert said[-1][0] == said[-1][1]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"n_old": 0}, "Without labels"),
        ({"y_class": np.full(60, -1)}, "Without labels"),
        ({"max_classes": 3}, "max_classes is 3; with 4 known classes it must be at least 4"),
        ({"method": "brnt"}, "Did you mean 'brent'"),
        ({"x": np.ones((1, 2)), "y_class": np.zeros(1, np.int64), "n_old": 1}, "at least 2 rows"),
    ],
)
def test_a_mistake_is_one_sentence(changed: dict[str, Any], says: str) -> None:
    x, y_class = blobs_apart(6, 4, per_class=10)
    values: dict[str, Any] = {"x": x, "y_class": y_class, "n_old": 4}
    with pytest.raises(ConfigError, match=says) as error:
        estimate_n_classes(**values | changed)
    assert "\n" not in str(error.value)


def test_an_estimate_survives_json() -> None:
    found = NumberOfClasses(7, 5, 9, ((5, 0.75), (7, 0.8), (9, 0.7625)))
    assert NumberOfClasses.from_json(found.to_json()) == found


def test_prefix_features_are_the_pretrained_ones_at_unit_length() -> None:
    x = np.random.default_rng(0).normal(size=(30, 5))
    rows = np.array([7, 3, 29])
    found = prefix_features(EmbeddingRows(x, dropout=0.5), rows)
    expected = x[rows] / np.linalg.norm(x[rows], axis=1, keepdims=True)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5)


# --- as published --------------------------------------------------------------------------------------------------


def published_twin(x: FloatArray, y_class: IntArray, n_old: int) -> tuple[int, dict[int, float]]:
    """The published estimate in as few words as it has: k-means of scikit-learn, an assignment, SciPy's search."""
    curve: dict[int, float] = {}

    def minus_accuracy(n: float) -> float:
        y_cluster = KMeans(int(n), n_init=10, random_state=0).fit(x).labels_[y_class >= 0]
        hits = np.zeros((int(n), n_old))
        np.add.at(hits, (y_cluster, y_class[y_class >= 0]), 1)
        curve[int(n)] = float(hits[linear_sum_assignment(-hits)].sum() / len(y_cluster))
        return -curve[int(n)]

    with threadpool_limits(1):
        found = minimize_scalar(minus_accuracy, bounds=(n_old, min(1000, len(x))), method="bounded")
    return int(found.x), curve


@pytest.mark.parametrize(("n_true", "n_old", "dims"), [(6, 4, 6), (12, 5, 40)])
def test_the_published_estimate_is_that_of_a_slow_twin(n_true: int, n_old: int, dims: int) -> None:
    rng = np.random.default_rng(n_true)
    truth = np.repeat(np.arange(n_true), 12)
    x = (rng.normal(size=(n_true, dims))[truth] + 0.8 * rng.normal(size=(len(truth), dims))).astype(np.float32)
    y_class = np.where((truth < n_old) & (np.arange(len(truth)) % 12 < 4), truth, -1)
    n, curve = published_twin(x, y_class, n_old)
    for seed in (0, 3):
        found = estimate_n_classes(x, y_class, n_old, method="published", seed=seed)
        assert found.n == n
        assert dict(found.curve) == pytest.approx(curve)


def test_the_published_estimate_sees_all_rows_and_features_and_may_try_as_many_classes_as_there_are_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(n_classes, "MAX_UNLABELLED", 5)
    monkeypatch.setattr(n_classes, "DIMS", 2)
    shapes, tried = set(), []

    def fit(x: FloatArray, n_clusters: int, seed: int, n_init: int) -> IntArray:
        shapes.add(x.shape)
        tried.append((n_clusters, seed, n_init))
        return np.arange(len(x)) % n_clusters

    monkeypatch.setattr(n_classes, "_cluster", fit)
    x, y_class = blobs_apart(10, 6, per_class=30)
    found = estimate_n_classes(x, y_class, 6, method="published")
    assert shapes == {(300, 10)}
    assert {(seed, n_init) for _, seed, n_init in tried} == {(0, 10)}
    assert len({n for n, _, _ in tried}) == len(tried) == len(found.curve)
    first = 6 + 0.5 * (3 - 5**0.5) * (300 - 6)
    assert tried[0][0] == int(first), "the first point of the golden section up to all rows"


def test_a_project_under_the_papers_protocol_estimates_as_published() -> None:
    blobs = make_blobs(n_classes=5, n_old=3, per_class=15)
    x = prefix_features(blobs.features, np.arange(75))
    said: list[tuple[int, int]] = []
    found = n_classes.look_for_classes(
        blobs.features, blobs.labels, seed=4, max_acc="published", say=lambda done, total: said.append((done, total))
    )
    assert found == estimate_n_classes(x, blobs.labels.y_class, 3, method="published")
    assert said[-1][0] == said[-1][1]
    assert found != n_classes.look_for_classes(blobs.features, blobs.labels, seed=4)
