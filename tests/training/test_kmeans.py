from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from agcd import metrics
from agcd.training.kmeans import distances_to, lloyd, semi_supervised_kmeans
from support.blobs import make_blobs


def test_distances_equal_a_double_loop() -> None:
    rng = np.random.default_rng(0)
    x, centres = rng.normal(size=(7, 3)), rng.normal(size=(4, 3))
    slow = [[((a - b) ** 2).sum() for b in centres] for a in x]
    np.testing.assert_allclose(distances_to(centres, x), slow, atol=1e-12)


def test_labelled_rows_stay_with_their_class_and_hidden_classes_are_found() -> None:
    blobs = make_blobs(per_class=30)
    x = blobs.features.read(np.arange(180), np.zeros(180, np.int64)).numpy()
    y_class = blobs.labels.y_class
    found = semi_supervised_kmeans(x, y_class, 6, np.random.default_rng(0))
    labelled = y_class >= 0
    assert (found.y_cluster[labelled] == y_class[labelled]).all()
    assert metrics.accuracy(blobs.truth, found.y_cluster, 3)["acc_all"] > 0.95


@pytest.mark.parametrize("n_clusters", [1, 3, 9])
def test_no_centre_is_ever_nan_even_with_more_clusters_than_distinct_points(n_clusters: int) -> None:
    x = np.repeat(np.eye(3), 3, axis=0)
    found = semi_supervised_kmeans(x, np.full(9, -1), n_clusters, np.random.default_rng(0))
    assert np.isfinite(found.centres).all()
    assert found.centres.shape == (n_clusters, 3)


def test_the_same_seed_gives_the_same_clusters() -> None:
    x = np.random.default_rng(1).normal(size=(50, 4)).astype(np.float32)
    runs = [semi_supervised_kmeans(x, np.full(50, -1), 5, np.random.default_rng(3)) for _ in range(2)]
    assert (runs[0].y_cluster == runs[1].y_cluster).all()
    assert runs[0].inertia == runs[1].inertia


def test_inertia_is_the_sum_of_squared_distances_to_the_own_centre() -> None:
    x = np.random.default_rng(2).normal(size=(40, 3))
    found = semi_supervised_kmeans(x, np.full(40, -1), 4, np.random.default_rng(0))
    slow = sum(((x[i] - found.centres[found.y_cluster[i]]) ** 2).sum() for i in range(40))
    assert found.inertia == pytest.approx(slow)


def slow_lloyd(x: Any, y_pinned: Any, centres: Any, n_iter: int) -> tuple[list[int], Any]:
    """Each row to its cluster or the nearest one, each centre to the mean of its rows; no cluster may run empty."""
    centres = [np.array(centre, float) for centre in centres]
    clusters: list[int] = []
    for _ in range(n_iter):
        clusters = []
        for row, pin in zip(x, y_pinned, strict=True):
            distances = [float(((row - centre) ** 2).sum()) for centre in centres]
            clusters.append(int(pin) if pin >= 0 else distances.index(min(distances)))
        for k in range(len(centres)):
            centres[k] = np.mean([row for row, cluster in zip(x, clusters, strict=True) if cluster == k], axis=0)
    return clusters, np.array(centres)


@pytest.mark.parametrize("seed", range(5))
def test_a_run_from_given_centres_equals_a_slow_twin_and_keeps_pins_and_numbers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.integers(4, size=60)
    x = 4 * rng.normal(size=(4, 3))[truth] + rng.normal(size=(60, 3))
    start = np.stack([x[truth == k][0] for k in range(4)])
    # Pins may contradict the distances: a third of these are put into a cluster at random.
    y_pinned = np.where(rng.random(60) < 0.3, np.where(rng.random(60) < 0.3, rng.integers(4, size=60), truth), -1)
    found = lloyd(x, y_pinned, start)
    clusters, centres = slow_lloyd(x, y_pinned, start, 50)
    assert found.y_cluster.tolist() == clusters
    np.testing.assert_allclose(found.centres, centres, atol=1e-10)
    assert (found.y_cluster[y_pinned >= 0] == y_pinned[y_pinned >= 0]).all()


def test_a_centre_far_from_every_row_gets_the_worst_served_free_row() -> None:
    x = np.array([[0.0, 0.0], [0.1, 0.0], [3.0, 0.0], [9.0, 9.0]])
    found = lloyd(x, np.array([0, -1, -1, 0]), np.array([[0.0, 0.0], [1e6, 0.0]]), max_iter=1)
    assert found.y_cluster.tolist() == [0, 0, 1, 0]
    np.testing.assert_allclose(found.centres[1], [3.0, 0.0])
