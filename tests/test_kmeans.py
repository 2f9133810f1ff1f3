from __future__ import annotations

import numpy as np
import pytest

from agcd import metrics
from agcd.discovery.kmeans import semi_supervised_kmeans, squared_distances
from blobs import make_blobs


def test_squared_distances_equal_a_double_loop() -> None:
    rng = np.random.default_rng(0)
    x, centres = rng.normal(size=(7, 3)), rng.normal(size=(4, 3))
    slow = [[((a - b) ** 2).sum() for b in centres] for a in x]
    np.testing.assert_allclose(squared_distances(x, centres), slow, atol=1e-12)


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
