"""Classifiers of scikit-learn as trainers: their predictions, and what becomes of slots without a class."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from agcd import metrics
from agcd.arrays import unit
from agcd.training.linear import fit_logistic, spread_labels
from agcd.types import FloatArray
from support.blobs import fast_config, make_blobs, make_session

NAMES = ("logistic", "label_spreading")


def softmax(logits: FloatArray) -> FloatArray:
    raised = np.exp(logits - logits.max(1, keepdims=True))
    return np.asarray(raised / raised.sum(1, keepdims=True))


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_softmax_of_what_is_fitted_is_what_scikit_learn_predicts(n_classes: int) -> None:
    rng = np.random.default_rng(0)
    x, y_slot = unit(rng.standard_normal((80, 6))), 3 * rng.integers(0, n_classes, 80)
    y_slot[::7] = -1
    share = rng.random(80)
    slots, weights, biases = fit_logistic(x, y_slot, share)
    known = y_slot >= 0
    model = LogisticRegression(class_weight="balanced", max_iter=300)
    model.fit(np.sqrt(6) * x[known], y_slot[known], share[known])
    assert slots.tolist() == model.classes_.tolist() == [3 * c for c in range(n_classes)]
    np.testing.assert_allclose(softmax(x @ weights.T + biases), model.predict_proba(np.sqrt(6) * x), atol=1e-9)


def test_one_class_alone_is_predicted_everywhere() -> None:
    slots, weights, biases = fit_logistic(np.eye(3), np.array([2, -1, 2]), np.ones(3))
    assert slots.tolist() == [2]
    assert not weights.any()
    assert not biases.any()


def test_labels_reach_their_own_group_only_and_stay_where_they_were_given() -> None:
    rng = np.random.default_rng(0)
    x = np.repeat(10 * np.eye(3), 20, axis=0) + 0.1 * rng.standard_normal((60, 3))
    y_slot = np.full(60, -1)
    y_slot[[0, 1, 20]] = [4, 4, 1]
    spread, sure = spread_labels(x, y_slot)
    assert spread.tolist() == [4] * 20 + [1] * 20 + [-1] * 20
    assert (sure[:40] > 0.99).all()
    assert not sure[40:].any(), "no label reaches the third group"
    assert sure[[0, 1, 20]].tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", NAMES)
def test_only_classes_with_a_label_are_predicted_and_slots_are_kept_from_round_to_round(
    name: str, tmp_path: Path
) -> None:
    blobs = make_blobs()
    session = make_session(blobs, tmp_path, fast_config(trainer=name), n_slots=8)
    base = session.train()
    assert set(base.fitted.predict(blobs.features, np.arange(120)).y_slot) == {0, 1, 2}
    slots = []
    for rows in (np.array([65, 85]), np.array([105, 66])):
        session.tell(rows, blobs.names(rows))
        done = session.train()
        found = done.fitted.predict(blobs.features, np.arange(120))
        assert set(found.y_slot) == set(done.last.slot_of_class)
        assert not np.delete(found.probs, done.last.slot_of_class, axis=1).any()
        slots.append(done.last.slot_of_class.tolist())
    assert slots[1][:5] == slots[0]
    assert metrics.accuracy(blobs.truth, found.y_slot, 3)["acc_all"] > 0.8


@pytest.mark.parametrize("name", NAMES)
def test_without_labels_slots_are_clusters(name: str, tmp_path: Path) -> None:
    blobs = make_blobs(n_old=0, ratio=0.0)
    found = (
        make_session(blobs, tmp_path, fast_config(trainer=name)).train().fitted.predict(blobs.features, np.arange(120))
    )
    assert len(set(found.y_slot)) == 6
