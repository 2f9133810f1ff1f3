"""A training job and its outcome as files, so that other processes can do it: JSON, arrays and safetensors.

torchrun/  job.json  features.json (embeddings.npy)  labels.npz  start.safetensors   what is to be done
           outcome.json  outcome.safetensors, or error.json                          what came of it
           output.txt                                                                what the processes printed
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from agcd import errors
from agcd.config import TrainConfig
from agcd.errors import AgcdError, EngineError
from agcd.features.devices import CPU
from agcd.features.rows import RowFeatures, describe, reopen
from agcd.io import read_json, write_json
from agcd.training import trainer_code
from agcd.training.fitted import Fitted
from agcd.training.job import Outcome, TrainingJob
from agcd.training.process_group import ProcessGroup
from agcd.types import LabelMapping, LabelState

JOB, OUTPUT = "job.json", "output.txt"
_ARRAYS = ("y_class", "asked_round", "held_out", "passed")


def write_job(folder: Path, config: TrainConfig, job: TrainingJob) -> None:
    """Everything but ``evaluate`` and ``echo``, which stay behind; the run's folder is the one around ``folder``."""
    describe(job.features, folder)
    labels = job.labels
    told = {name: getattr(labels, name) for name in _ARRAYS}
    np.savez(folder / "labels.npz", **(told if labels.accepted is None else told | {"accepted": labels.accepted}))
    if job.start:
        # Saving gives a model its id: the caller's keeps the one it has.
        replace(job.start, facts=dict(job.start.facts)).save(folder / "start.safetensors")
    facts = {
        "classes": labels.classes,
        "n_old": labels.n_old,
        "last_event": labels.last_event,
        "n_slots": job.n_slots,
        "seed": job.seed,
        "round": job.round,
        "start": job.start.facts if job.start else None,
        "previous": job.previous.to_json() if job.previous else None,
        "train": config.model_dump(mode="json"),
        "code": trainer_code(config.trainer),
        "device": job.device.type,  # which of its kind each process takes by its number
    }
    write_json(folder / JOB, facts)


def read_device(folder: Path) -> str:
    """Where the job is to be done, as ``find_device`` takes it."""
    return str(read_json(folder / JOB)["device"])


def read_job(folder: Path, group: ProcessGroup) -> tuple[TrainConfig, TrainingJob]:
    """What ``write_job`` stored, for one process of ``group``."""
    facts, features = read_json(folder / JOB), reopen(folder)
    with np.load(folder / "labels.npz", allow_pickle=False) as arrays:
        told = {name: arrays[name] for name in arrays.files}
    labels = LabelState(tuple(facts["classes"]), facts["n_old"], **told, last_event=facts["last_event"])
    start, previous = None, None
    if facts["start"] is not None:
        start = replace(Fitted.load(folder / "start.safetensors", features), facts=facts["start"])
    if facts["previous"] is not None:
        previous = LabelMapping.from_json(facts["previous"])
    config = TrainConfig.model_validate(facts["train"])
    if trainer_code(config.trainer) != facts["code"]:  # else its model would be stored under the key of other code
        raise EngineError(
            f"The code of the trainer {config.trainer!r} was edited since the command began: start it again."
        )
    place = facts["n_slots"], facts["seed"], facts["round"], folder.parent
    return config, TrainingJob(features, labels, *place, start, previous, group=group, device=group.device)


def write_outcome(folder: Path, outcome: Outcome) -> None:
    """The model first, ``outcome.json`` last: what has the second has both."""
    facts = {"facts": outcome.fitted.facts, "first": outcome.first.to_json(), "last": outcome.last.to_json()}
    replace(outcome.fitted, facts=dict(outcome.fitted.facts)).save(folder / "outcome.safetensors")
    write_json(folder / "outcome.json", facts)


def has_outcome(folder: Path) -> bool:
    """Whether ``write_outcome`` came to its end."""
    return (folder / "outcome.json").exists()


def read_outcome(folder: Path, features: RowFeatures, device: torch.device = CPU) -> Outcome:
    """What ``write_outcome`` stored, with its model on the device."""
    stored = read_json(folder / "outcome.json")
    fitted = replace(Fitted.load(folder / "outcome.safetensors", features, device), facts=stored["facts"])
    return Outcome(fitted, LabelMapping.from_json(stored["first"]), LabelMapping.from_json(stored["last"]))


def write_error(folder: Path, error: AgcdError) -> None:
    write_json(folder / "error.json", packed_error(error))


def read_error(folder: Path) -> AgcdError | None:
    """The error that a process ended with, if it had the time to say."""
    path = folder / "error.json"
    if not path.exists():
        return None
    return unpacked_error(read_json(path))


def packed_error(error: AgcdError) -> dict[str, str]:
    return {"kind": type(error).__name__, "sentence": str(error)}


def unpacked_error(said: dict[str, str]) -> AgcdError:
    """The error that ``packed_error`` made ready to travel."""
    kind: type[AgcdError] = getattr(errors, said["kind"], EngineError)
    return kind(said["sentence"])
