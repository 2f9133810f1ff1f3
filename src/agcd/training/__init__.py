"""Training: from features and a few labels to a model of old and novel classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from agcd.config import TrainConfig
from agcd.plugins import Registry
from agcd.training.gcd import GCD
from agcd.training.job import Outcome, TrainingJob
from agcd.training.mugcd import MuGCD
from agcd.training.pim import PIM
from agcd.training.simgcd import SimGCD


class Trainer(Protocol):
    """Trains from nothing (``job.start`` is None) or continues for one active round; must be resumable."""

    def fit(self, job: TrainingJob) -> Outcome: ...


def fit(config: TrainConfig, job: TrainingJob) -> Outcome:
    """Train one run in this process, with the trainer that ``config`` names."""
    return get_trainer(config.trainer)(config).fit(job)


TRAINERS: dict[str, Callable[[TrainConfig], Trainer]] = {
    "simgcd": SimGCD,
    "mugcd": MuGCD,
    "pim": PIM,
    "gcd": GCD,
}


_REGISTRY = Registry("Trainer", "agcd.trainers", TRAINERS)


def get_trainer(name: str) -> Callable[[TrainConfig], Trainer]:
    """The trainer of this name: built in, from an installed package, or ``package.module:Class``."""
    return _REGISTRY.get(name)
