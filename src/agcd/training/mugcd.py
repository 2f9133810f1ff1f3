"""μGCD: SimGCD's classifier taught by a mean teacher (Vaze et al., No Representation Rules Them All, NeurIPS 2023).

No code was published. What follows the paper as it is remembered: a representation trained by the GCD losses first;
then a student that sees random views learns from the labels and from the sharpened prediction of a teacher that sees
the test view and is an average of the student; the average slows down over training; the teacher is the result.

What was chosen here:

* ``mugcd.representation_share`` of the base epochs trains the representation. Both stages have a learning rate that
  falls from ``lr`` and a fresh momentum; with ``init = "kmeans"`` the prototypes are placed on the new representation.
* After it there are no contrastive losses: representation and classifier are learned one after the other.
* In active rounds the teacher keeps ``ema_decay`` of itself, as the paper on active discovery does for SimGCD. At the
  decay that base training ends with, a round is over before the teacher has heard the answers.
* The queried phase of a round is SimGCD's.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from agcd.config import TrainConfig
from agcd.features.devices import sent
from agcd.training import losses
from agcd.training.fitted import Fitted, read_test_view
from agcd.training.gcd import contrastive_loss
from agcd.training.heads import Output
from agcd.training.job import Outcome, TrainingJob, place_cluster_centres
from agcd.training.process_group import gather_rows
from agcd.training.runs import TwoPhaseRun, make_optimiser
from agcd.training.sampler import Batch
from agcd.training.schedules import learning_rate, teacher_decay, teacher_temperature
from agcd.types import IntArray


class MuGCD:
    """Parametric category discovery with a mean teacher (Vaze et al., NeurIPS 2023)."""

    reads = frozenset({"answers", "mugcd"})

    def __init__(self, config: TrainConfig):
        self.config = config

    def fit(self, job: TrainingJob) -> Outcome:
        """Base training (``job.start`` is None) or one active round from ``job.start``."""
        return _Run.of(job, self.config).finish()


class _Run(TwoPhaseRun):
    def __init__(self, job: TrainingJob, config: TrainConfig, fitted: Fitted, n_epochs: int):
        super().__init__(job, config, fitted, n_epochs)
        self.n_first = 0 if job.round else int(config.mugcd.representation_share * n_epochs)
        """Epochs of the first stage."""

    def run_epoch(self, epoch: int) -> dict[str, Any]:
        if self.n_first and epoch == self.n_first:
            self._begin_second_stage()
        return super().run_epoch(epoch)

    def _begin_second_stage(self) -> None:
        if self.config.init == "kmeans":
            place_cluster_centres(self.job, self.fitted)
            self.fitted.ema.load_state_dict(self.fitted.student.state_dict())
        self.optimiser = make_optimiser(self.fitted.student, self.config)

    def learning_rate(self, epoch: int) -> float:
        if epoch < self.n_first:
            return learning_rate(self.config, epoch, self.n_first)
        return learning_rate(self.config, epoch - self.n_first, self.n_epochs - self.n_first)

    def original_loss(self, batch: Batch, output: Output, y_class: Tensor, epoch: int) -> Tensor:
        if epoch < self.n_first:
            return contrastive_loss(output, y_class, self.config, batch.labelled)
        teacher_logits, teacher_temp = self._teach(batch.rows), self._teacher_temp(epoch)
        return student_loss(output.logits, teacher_logits, y_class, teacher_temp, self.config, batch.labelled)

    def _teach(self, rows: IntArray) -> Tensor:
        """The teacher's logits (B, K) for the test views of ``rows``."""
        teacher, features = self.fitted.ema.eval(), self.job.features
        with torch.no_grad():
            return gather_rows(
                self.job.group, rows, lambda own: teacher(sent(read_test_view(features, own), self.job.device)).logits
            )

    def _teacher_temp(self, epoch: int) -> float:
        if self.job.round:
            return self.config.teacher_temp
        return teacher_temperature(self.config, epoch - self.n_first, self.n_epochs - self.n_first)

    def ema_decay(self, epoch: int, share: float) -> float:
        if self.job.round:
            return self.config.ema_decay
        if epoch < self.n_first:
            return 0.0
        return teacher_decay(self.config.mugcd, (epoch - self.n_first + share) / (self.n_epochs - self.n_first))


def student_loss(
    logits: Tensor,
    teacher_logits: Tensor,
    y_class: Tensor,
    teacher_temp: float,
    config: TrainConfig,
    labelled: Tensor | None = None,
) -> Tensor:
    """The loss of the second stage. Seed classes are their own slots.

    Parameters
    ----------
    logits : (2B, K) cosines of the student, view 1 then view 2.
    teacher_logits : (B, K) cosines of the teacher for the same rows, without gradient.
    y_class : (B,), −1 for unlabelled rows.
    labelled : where it is not; None has the device asked.
    """
    both, y = losses.labelled_of(y_class, labelled)
    teacher = F.softmax(teacher_logits / teacher_temp, dim=1).repeat(2, 1)
    distillation = -(teacher * F.log_softmax(logits / config.student_temp, dim=1)).sum(1).mean()
    unsupervised = distillation + config.entropy_weight * losses.entropy_shortfall(logits, config.student_temp)
    supervised = losses.supervised(logits[both], y, config.student_temp)
    return (1 - config.sup_weight) * unsupervised + config.sup_weight * supervised
