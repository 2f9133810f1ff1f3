"""SimGCD base training and the active rounds of the paper, over cached features.

docs/method.md lists where paper and published code disagree and what is done here.
"""

from __future__ import annotations

from torch import Tensor

from agcd.config import TrainConfig
from agcd.training import losses
from agcd.training.heads import Output
from agcd.training.job import Outcome, TrainingJob
from agcd.training.runs import TwoPhaseRun
from agcd.training.sampler import Batch
from agcd.training.schedules import teacher_temperature


class SimGCD:
    """Parametric category discovery with self-distillation (Wen et al., ICCV 2023)."""

    reads = frozenset({"answers"})

    def __init__(self, config: TrainConfig):
        self.config = config

    def fit(self, job: TrainingJob) -> Outcome:
        """Base training (``job.start`` is None) or one active round from ``job.start``."""
        return _Run.of(job, self.config).finish()


class _Run(TwoPhaseRun):
    def original_loss(self, batch: Batch, output: Output, y_class: Tensor, epoch: int) -> Tensor:
        config = self.config
        teacher_temp = config.teacher_temp if self.job.round else teacher_temperature(config, epoch, self.n_epochs)
        return original_loss(output, y_class, teacher_temp, config, batch.labelled)

    def ema_decay(self, epoch: int, share: float) -> float:
        # The paper averages in rounds only: after base training both models are the same.
        return self.config.ema_decay if self.job.round else 0.0


def original_loss(
    output: Output, y_class: Tensor, teacher_temp: float, config: TrainConfig, labelled: Tensor | None = None
) -> Tensor:
    """The SimGCD loss of a batch. Seed classes are their own slots.

    Parameters
    ----------
    y_class : (B,), −1 for unlabelled rows.
    labelled : where it is not; None has the device asked.
    """
    both, y = losses.labelled_of(y_class, labelled)
    unsupervised = (
        losses.self_distillation(output.logits, config.student_temp, teacher_temp)
        + config.entropy_weight * losses.entropy_shortfall(output.logits, config.student_temp)
        + losses.info_nce(output.projections, config.contrast_temp)
    )
    supervised = losses.supervised(output.logits[both], y, config.student_temp) + losses.sup_con(
        output.projections[both], y, config.supcon_temp
    )
    return (1 - config.sup_weight) * unsupervised + config.sup_weight * supervised
