"""GCD: its loss, its nearest-centre head, and slots that keep their meaning from round to round."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from agcd.config import TrainConfig
from agcd.training.gcd import GCD, contrastive_loss, restarted
from agcd.training.heads import Output
from agcd.training.job import Outcome, TrainingJob
from agcd.types import LabelState
from support.blobs import Blobs, fast_config, make_blobs


def slow_contrastive_loss(projections: Tensor, y_class: list[int], config: TrainConfig) -> float:
    z = [row / row.norm() for row in projections.double()]
    n = len(y_class)

    def log_share(i: int, j: int, others: list[int], temp: float) -> float:
        return float(z[i] @ z[j]) / temp - math.log(sum(math.exp(float(z[i] @ z[k]) / temp) for k in others))

    everyone = range(2 * n)
    views = [log_share(i, (i + n) % (2 * n), [k for k in everyone if k != i], config.contrast_temp) for i in everyone]
    labelled = [i for i in everyone if y_class[i % n] >= 0]
    classes = []
    for i in labelled:
        others = [k for k in labelled if k != i]
        shares = [log_share(i, k, others, config.supcon_temp) for k in others if y_class[k % n] == y_class[i % n]]
        classes.append(sum(shares) / len(shares))
    supervised = -sum(classes) / len(classes) if classes else 0.0
    return (1 - config.sup_weight) * -sum(views) / len(views) + config.sup_weight * supervised


@pytest.mark.parametrize("y_class", [[0, -1, 1, -1, 0], [-1] * 5, [2, 2, 0, 1, 0]], ids=["some", "none", "all"])
def test_the_loss_equals_a_slow_twin(y_class: list[int]) -> None:
    projections = torch.randn(10, 7, generator=torch.Generator().manual_seed(0))
    config = TrainConfig(sup_weight=0.3, contrast_temp=0.5, supcon_temp=0.2)
    found = contrastive_loss(Output(projections, projections, projections), torch.tensor(y_class), config)
    assert float(found) == pytest.approx(slow_contrastive_loss(projections, y_class, config), rel=1e-5)


def trained(blobs: Blobs, folder: Path, base_epochs: int = 3, n_slots: int = 6) -> Outcome:
    config = fast_config(base_epochs=base_epochs, gcd={"n_init": 2}).train
    return GCD(config).fit(TrainingJob(blobs.features, blobs.labels, n_slots, 0, 0, folder))


def next_round(blobs: Blobs, labels: LabelState, base: Outcome, folder: Path) -> Outcome:
    config = fast_config(round_epochs=3, lr=0.01).train
    return GCD(config).fit(
        TrainingJob(blobs.features, labels, base.fitted.n_slots, 0, 1, folder, base.fitted, base.last)
    )


@pytest.mark.parametrize("base_epochs", [0, 3])
def test_a_row_belongs_to_its_nearest_centre_which_is_the_mean_of_its_cluster(base_epochs: int, tmp_path: Path) -> None:
    blobs = make_blobs()
    fitted = trained(blobs, tmp_path, base_epochs).fitted
    prediction = fitted.predict(blobs.features, np.arange(120))
    centres = fitted.ema.prototypes.detach().numpy()
    half = np.array([[((f - c) ** 2).sum() / 2 for c in centres] for f in prediction.features.astype(float)])
    powers = np.exp(-half / fitted.student_temp)
    np.testing.assert_allclose(prediction.probs, powers / powers.sum(1, keepdims=True), atol=1e-4)
    labelled = blobs.labels.y_class >= 0
    y_cluster = np.where(labelled, blobs.labels.y_class, half.argmin(1))
    for k, centre in enumerate(centres):
        np.testing.assert_allclose(prediction.features[y_cluster == k].mean(0), centre, atol=1e-4)


def test_slots_keep_their_meaning_from_round_to_round(tmp_path: Path) -> None:
    blobs = make_blobs()
    base = trained(blobs, tmp_path / "base")
    rows = np.array([65, 85, 105])
    done = next_round(blobs, blobs.labels.tell(rows, blobs.names(rows), 1), base, tmp_path / "round")
    before, after = (o.fitted.predict(blobs.features, np.arange(120)).y_slot for o in (base, done))
    assert (before == after).mean() > 0.9


def test_a_class_without_a_cluster_gets_one_from_its_answers(tmp_path: Path) -> None:
    blobs = make_blobs()
    base = trained(blobs, tmp_path / "base", n_slots=4)
    rows = np.array([61, 62, 81, 82, 101, 102])
    labels = blobs.labels.tell(rows, blobs.names(rows), 1)
    done = next_round(blobs, labels, base, tmp_path / "round")
    y_slot = done.fitted.predict(blobs.features, np.arange(120)).y_slot
    named = np.array([done.last.slot_of_class[labels.classes.index(f"class {c}")] for c in blobs.truth])
    assert (y_slot == named).mean() > 0.85


def test_only_centres_that_lost_all_their_rows_start_again() -> None:
    centres = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0], [9.0, 9.0]])
    x = np.array([[0.1, 0.0], [4.0, 1.0], [5.0, 0.2], [0.0, 0.4], [0.2, 0.2], [7.0, 7.0]])
    # One row of cluster 0 and one of 1 are nearest to their centre; cluster 2 has none; cluster 3 has no pinned row.
    y_pinned = np.array([0, 0, 1, 2, 2, -1])
    moved = restarted(x, y_pinned, centres)
    np.testing.assert_allclose(moved, [[0.0, 0.0], [5.0, 0.0], [0.1, 0.3], [9.0, 9.0]])
    np.testing.assert_array_equal(restarted(x, np.full(6, -1), centres), centres)
    assert centres[2].tolist() == [0.0, 5.0]


def test_student_and_average_are_one(tmp_path: Path) -> None:
    fitted = trained(make_blobs(), tmp_path).fitted
    student, ema = fitted.student.state_dict(), fitted.ema.state_dict()
    assert all(torch.equal(student[name], ema[name]) for name in student)
