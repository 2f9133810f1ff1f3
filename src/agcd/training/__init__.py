"""Training: from features and a few labels to a model of old and novel classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from agcd.config import SECTIONS, Config, Settings, TrainConfig, checked
from agcd.errors import ConfigError, did_you_mean
from agcd.features.devices import deterministic, find_device
from agcd.features.resident import near
from agcd.plugins import Registry
from agcd.training.gcd import GCD
from agcd.training.job import Outcome, TrainingJob
from agcd.training.linear import LabelSpreading, Logistic
from agcd.training.mugcd import MuGCD
from agcd.training.pim import PIM
from agcd.training.simgcd import SimGCD
from agcd.training.simgcd_nn import SimGCDNN


class Trainer(Protocol):
    """Trains from nothing (``job.start`` is None) or continues for one active round; must be resumable.

    Its class is called with the settings and may declare two things: ``reads``, the sections of ``TrainConfig`` that
    it reads (see ``sections_read``), and ``Settings``, a class for settings of its own. Where it declares the second it
    is also handed what ``train.options`` say, checked and complete.
    """

    def fit(self, job: TrainingJob) -> Outcome: ...


def fit(config: TrainConfig, job: TrainingJob) -> Outcome:
    """Train one run in this process, with the trainer that ``config`` names."""
    trainer, options = get_trainer(config.trainer), trainer_options(config)
    start = job.start if job.start is None or job.start.device == job.device else job.start.copy().to(job.device)
    job = replace(job, features=near(job.features, job.device), start=start)
    with deterministic(job.device, config.deterministic):
        return (trainer(config) if options is None else trainer(config, options)).fit(job)


TRAINERS: dict[str, Callable[..., Trainer]] = {
    "simgcd": SimGCD,
    "simgcd_nn": SimGCDNN,
    "mugcd": MuGCD,
    "pim": PIM,
    "gcd": GCD,
    "logistic": Logistic,
    "label_spreading": LabelSpreading,
}
REGISTRY: Registry[Callable[..., Trainer]] = Registry("Trainer", "agcd.trainers", TRAINERS)


def get_trainer(name: str) -> Callable[..., Trainer]:
    """The trainer of this name: built in, from an installed package, or ``package.module:Class``."""
    return REGISTRY.get(name)


def trainer_code(name: str) -> str | None:
    """A digest of the source of a trainer from outside, for keys of what it trained; None for a built-in one."""
    return REGISTRY.code(name)


def sections_read(name: str) -> frozenset[str]:
    """The sections of ``train`` that decide runs of this trainer: those its class declares as ``reads``, else all.

    A key that knows too much costs a run, one that knows too little gives a wrong one. So what a class inherits does
    not count: the one above it cannot know what it reads.
    """
    declared = getattr(get_trainer(name), "__dict__", {}).get("reads")
    if declared is None:
        return SECTIONS
    for section in sorted(set(declared) - SECTIONS):
        hint = did_you_mean(section, SECTIONS)
        raise ConfigError(f"Trainer {name!r} declares that it reads {section!r}, no section of train.{hint}")
    return frozenset(declared)


def trainer_options(config: TrainConfig) -> Settings | None:
    """Settings of the trainer's own, as its class ``Settings`` checks and completes them; None where it has none."""
    declared = getattr(get_trainer(config.trainer), "Settings", None)
    if declared is None:
        for option in config.options:
            raise ConfigError(f"Trainer {config.trainer!r} has no option {option!r}. It takes none.")
        return None
    if not (isinstance(declared, type) and issubclass(declared, Settings)):  # others may let a mistyped name pass
        raise ConfigError(f"The Settings of trainer {config.trainer!r} must be derived from agcd.config.Settings.")
    return checked(declared, config.options, "train.options")


_LATER = ("precision", "compile", "queried_unsupervised", "first_mapping")
"""Settings of ``train`` that came after version 0.1."""


def train_record(config: TrainConfig) -> dict[str, Any]:
    """What of ``config`` decides a run, as plain JSON values."""
    options = trainer_options(config)
    unread: dict[str, Any] = dict.fromkeys(("options", *config.unread(sections_read(config.trainer))), True)
    unread |= dict.fromkeys(("deterministic", *_unused(config, *_LATER)), True)
    later = {"answers": _unused(config.answers, "unnamed", "page_weight")}
    record = config.model_dump(mode="json", exclude=later | unread)
    return record if options is None else record | {"options": options.model_dump(mode="json")}


def _unused(settings: Settings, *later: str) -> set[str]:
    """Which settings that came ``later`` than version 0.1 are at their default.

    They are part of a record only where somebody uses them, so that older results stay valid.
    """
    default = type(settings)()
    return {name for name in later if getattr(settings, name) == getattr(default, name)}


def settings_record(config: Config) -> dict[str, Any]:
    """The settings that decide a run, as plain JSON values: for its folder, and for the name of a benchmark's cell.

    Which device of its kind did the work decides nothing (see ``place_record``), nor does how a number of slots, which
    is a part of the key by itself, was estimated.
    """
    later = {
        "backbone": _unused(config.backbone, "weights_sha256", "runner"),
        "query": _unused(config.query, "stability", "one_by_one"),
    }
    record = config.model_dump(mode="json", exclude={"train": True, "device": True, "max_acc": True, **later})
    return record | {"train": train_record(config.train)}


def place_record(config: Config) -> list[str]:
    """The part of a key that the kind of device has; a CPU has none, so that older results stay valid."""
    kind = find_device(config.device).type
    return [] if kind == "cpu" else [kind]
