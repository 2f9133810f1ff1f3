"""μGCD: its loss, its teacher's inertia and its two stages."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from agcd.config import MuGCDConfig, TrainConfig
from agcd.features.rows import EmbeddingRows
from agcd.features.store import Allocate
from agcd.training.fitted import Fitted
from agcd.training.job import TrainingJob, new_model
from agcd.training.mugcd import MuGCD, student_loss
from agcd.training.schedules import teacher_decay
from agcd.types import IntArray
from support.blobs import fast_config, make_blobs


def softmax(values: list[float], temp: float) -> list[float]:
    powers = [math.exp(v / temp) for v in values]
    return [p / sum(powers) for p in powers]


def slow_student_loss(logits: Tensor, teacher: Tensor, y_class: list[int], temp: float, config: TrainConfig) -> float:
    n, n_slots = len(teacher), logits.shape[1]
    student = [softmax(row, config.student_temp) for row in logits.double().tolist()]
    targets = [softmax(row, temp) for row in teacher.double().tolist()]
    distillation = -sum(targets[i % n][k] * math.log(student[i][k]) for i in range(2 * n) for k in range(n_slots)) / (
        2 * n
    )
    mean = [sum(row[k] for row in student) / (2 * n) for k in range(n_slots)]
    shortfall = math.log(n_slots) + sum(p * math.log(p) for p in mean)
    hits = [-math.log(student[i][y_class[i % n]]) for i in range(2 * n) if y_class[i % n] >= 0]
    supervised = sum(hits) / len(hits) if hits else 0.0
    weight = config.sup_weight
    return (1 - weight) * (distillation + config.entropy_weight * shortfall) + weight * supervised


@pytest.mark.parametrize("y_class", [[0, -1, 4, -1, 0, 2], [-1] * 6, [1] * 6], ids=["some", "none", "all"])
def test_the_student_loss_equals_a_slow_twin(y_class: list[int]) -> None:
    draw = torch.Generator().manual_seed(0)
    logits, teacher = (torch.rand(n, 5, generator=draw) * 2 - 1 for n in (12, 6))
    config = TrainConfig(entropy_weight=3.0, sup_weight=0.25)
    found = student_loss(logits, teacher, torch.tensor(y_class), 0.05, config)
    assert float(found) == pytest.approx(slow_student_loss(logits, teacher, y_class, 0.05, config), rel=1e-5)


def test_the_teacher_is_close_to_the_student_at_first_and_slow_at_the_end() -> None:
    config = MuGCDConfig()
    decays = [teacher_decay(config, t / 100) for t in range(101)]
    assert decays[0] == pytest.approx(0.999 - 0.3)
    assert decays[50] == pytest.approx(0.999 - 0.15)
    assert decays[100] == pytest.approx(0.999)
    assert sorted(decays) == decays
    for t, decay in enumerate(decays):
        assert decay == pytest.approx(0.999 - (1 - 0.7) * (math.cos(math.pi * t / 100) + 1) / 2)


@pytest.mark.parametrize(("start", "end"), [(0.5, 0.5), (1.0, 0.5), (0.5, 0.999)])
def test_within_its_limits_the_decay_is_never_negative_nor_one(start: float, end: float) -> None:
    config = MuGCDConfig(teacher_decay_start=start, teacher_decay_end=end)
    assert all(0 <= teacher_decay(config, t / 10) < 1 for t in range(11))


def prototypes_after_each_epoch(folder: Path, **train: Any) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
    """The prototypes at the start, and the student's and the teacher's after each of four base epochs."""
    blobs, config, seen = make_blobs(), fast_config(base_epochs=4, **train).train, []

    def look(fitted: Fitted) -> dict[str, Any]:
        seen.append((fitted.student.prototypes.detach().clone(), fitted.ema.prototypes.detach().clone()))
        return {}

    job = TrainingJob(blobs.features, blobs.labels, 6, 0, 0, folder, evaluate=look)
    MuGCD(config).fit(job)
    return new_model(job, config).student.prototypes.detach(), seen


def test_the_first_stage_leaves_the_classifier_alone_and_the_second_parts_teacher_and_student(tmp_path: Path) -> None:
    start, seen = prototypes_after_each_epoch(tmp_path, init="random")
    for student, teacher in seen[:2]:
        assert torch.equal(student, start)
        assert torch.equal(teacher, start)
    for student, teacher in seen[2:]:
        assert not torch.equal(student, start)
        assert not torch.equal(student, teacher)


def test_without_a_first_stage_the_classifier_learns_at_once(tmp_path: Path) -> None:
    start, seen = prototypes_after_each_epoch(tmp_path, mugcd={"representation_share": 0.0})
    assert not torch.equal(seen[0][0], start)


class ManyViews(EmbeddingRows):
    """Embeddings that claim to have four views, and remember which ones were read with and without gradient."""

    n_views = 4

    def watch(self) -> dict[bool, set[int]]:
        self.seen: dict[bool, set[int]] = {True: set(), False: set()}
        return self.seen

    def read(self, rows: IntArray, views: IntArray, allocate: Allocate = np.empty) -> Tensor:
        if hasattr(self, "seen"):
            self.seen[torch.is_grad_enabled()].update(views.tolist())
        return super().read(rows, views)


def test_the_student_sees_random_views_and_the_teacher_the_test_view(tmp_path: Path) -> None:
    blobs = make_blobs()
    features = ManyViews(blobs.features.read(np.arange(120), np.zeros(120, np.int64)).numpy(), dropout=0.1)
    seen = features.watch()
    MuGCD(fast_config().train).fit(TrainingJob(features, blobs.labels, 6, 0, 0, tmp_path))
    assert seen == {True: {0, 1, 2, 3}, False: {0}}
