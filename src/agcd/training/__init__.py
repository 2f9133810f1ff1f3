"""Training: from features and a few labels to a model of old and novel classes."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Protocol

from agcd.config import TrainConfig
from agcd.errors import ConfigError, did_you_mean
from agcd.training.gcd import GCD
from agcd.training.job import Outcome, TrainingJob
from agcd.training.linear import LabelSpreading, Logistic
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
    "logistic": Logistic,
    "label_spreading": LabelSpreading,
}


def get_trainer(name: str) -> Callable[[TrainConfig], Trainer]:
    """The trainer of that name: built in, or from the entry point group ``agcd.trainers``."""
    if name in TRAINERS:
        return TRAINERS[name]
    plugins = {point.name: point for point in entry_points(group="agcd.trainers")}
    if name in plugins:
        loaded: Callable[[TrainConfig], Trainer] = plugins[name].load()
        return loaded
    raise ConfigError(f"Unknown trainer {name!r}.{did_you_mean(name, [*TRAINERS, *plugins])}")
