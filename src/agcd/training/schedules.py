"""How the learning rate and the teacher's temperature and inertia move in the course of training."""

from __future__ import annotations

import math

from agcd.config import MuGCDConfig, TrainConfig

_LR_FLOOR = 1e-3
"""The share of the learning rate that is left at the end, as in the published code of SimGCD."""


def learning_rate(config: TrainConfig, epoch: int, n_epochs: int) -> float:
    """Cosine from ``lr`` to a thousandth of it; ``official`` steps twice per epoch, so it falls and climbs back."""
    step = 2 * epoch if config.lr_schedule == "official" else epoch
    cosine = (1 + math.cos(math.pi * step / n_epochs)) / 2
    return config.lr * (_LR_FLOOR + (1 - _LR_FLOOR) * cosine)


def teacher_temperature(config: TrainConfig, epoch: int, n_epochs: int) -> float:
    """Linear from the warm-up temperature to the final one over the warm-up epochs, then constant."""
    warmup = min(config.warmup_epochs, n_epochs)
    if epoch >= warmup or warmup < 2:
        return config.teacher_temp
    return config.warmup_teacher_temp + (config.teacher_temp - config.warmup_teacher_temp) * epoch / (warmup - 1)


def teacher_decay(config: MuGCDConfig, progress: float) -> float:
    """The share of itself that μGCD's teacher keeps at a step, from ``progress`` 0 to 1: ω of Vaze et al. 2023.

    ω(t) = ω_T − (1 − ω_base)·(cos(πt/T) + 1)/2: a teacher close to the student at first, a slow one at the end.
    """
    return config.teacher_decay_end - (1 - config.teacher_decay_start) * (math.cos(math.pi * progress) + 1) / 2
