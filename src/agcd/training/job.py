"""What a training run is about, how it starts and what it leaves behind, whichever trainer does it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from agcd.config import TrainConfig
from agcd.features.devices import CPU, in_memory, sent
from agcd.features.rows import RowFeatures
from agcd.mapping import map_labels, slots_needed
from agcd.rng import derive_seed, generator
from agcd.training.fitted import Fitted
from agcd.training.heads import DiscoveryModel, HeadKind
from agcd.training.kmeans import semi_supervised_kmeans
from agcd.training.loop import Log, not_finite
from agcd.training.process_group import SINGLE_PROCESS, ProcessGroup, gather_rows
from agcd.types import IntArray, LabelMapping, LabelState

Evaluate = Callable[[Fitted], dict[str, Any]]


@dataclass(frozen=True)
class TrainingJob:
    """What one training run is about; every process of a ``group`` is given the same job.

    ``run_dir`` gets the log and a checkpoint per epoch; None trains in memory alone, and a kill costs the whole run.
    ``evaluate`` is only logged: nothing it returns reaches the training.
    """

    features: RowFeatures
    labels: LabelState
    n_slots: int
    seed: int
    round: int
    run_dir: Path | None = None
    start: Fitted | None = None
    previous: LabelMapping | None = None
    evaluate: Evaluate | None = None
    echo: Log | None = None
    group: ProcessGroup = SINGLE_PROCESS
    device: torch.device = CPU
    """Where the model is trained; features are read to it."""


@dataclass(frozen=True)
class Outcome:
    """A trained model with its mapping at the first and the last epoch."""

    fitted: Fitted
    first: LabelMapping
    last: LabelMapping


def new_model(job: TrainingJob, config: TrainConfig, kind: HeadKind = "cosine", n_init: int = 3) -> Fitted:
    """The start of base training: pretrained tail, fresh projector, prototypes random or from k-means.

    A linear head always starts from k-means (the best of ``n_init`` runs): its prototypes are centres.
    """
    shape = (config.projector_width, config.projector_dim)
    seed = derive_seed(job.seed, "init")
    model = DiscoveryModel(job.features.new_tail(), job.features.dim, job.n_slots, shape, seed, kind)
    fitted = Fitted(model, model, job.labels.n_old, config.student_temp).to(job.device)
    if config.center:
        standardise(model, embedded(job, fitted))
    if kind == "linear" or config.init == "kmeans":
        place_cluster_centres(job, fitted, n_init)
    fitted.ema = copy.deepcopy(model)
    return fitted


@torch.no_grad()
def standardise(model: DiscoveryModel, embedded: Tensor) -> None:
    """Set the model's centre and scale so that its features have zero mean and, on average, unit spread."""
    model.center.copy_(embedded.mean(0))
    deviation = (embedded - model.center).square().mean().sqrt()
    model.scale.copy_(1 / deviation.clamp_min(1e-6))  # rows that are all equal would be divided by zero


def place_cluster_centres(job: TrainingJob, fitted: Fitted, n_init: int = 3) -> None:
    """Put the student's prototypes on the centres of its features; class c < number of classes gets slot c."""
    y_class = job.labels.y_class[job.labels.train_rows]
    rng = generator(job.seed, "kmeans")
    clusters = semi_supervised_kmeans(
        in_memory(train_features(job, fitted)), y_class, fitted.n_slots, rng, n_init=n_init
    )
    centres = torch.from_numpy(clusters.centres.astype(np.float32))
    fitted.student.place_prototypes(list(range(fitted.n_slots)), centres)


def train_features(job: TrainingJob, fitted: Fitted) -> Tensor:
    """The student's unit-length features (n, d) of the test views of all training rows, without gradient."""
    return F.normalize(embedded(job, fitted), dim=1)


def embedded(job: TrainingJob, fitted: Fitted) -> Tensor:
    """The student's features (n, d) of the test views of all training rows, not normalised, without gradient."""
    found = gather_rows(job.group, job.labels.train_rows, lambda rows: fitted.embed(job.features, rows))
    if not found.isfinite().all():
        raise not_finite("the features")
    return found


def predicted_slots(job: TrainingJob, fitted: Fitted, rows: IntArray) -> IntArray:
    """The slots (n,) that the EMA model predicts for ``rows``."""

    def predicted(own_rows: IntArray) -> Tensor:
        return sent(fitted.predict(job.features, own_rows, "ema").y_slot, job.group.device)

    return in_memory(gather_rows(job.group, rows, predicted)).astype(np.int64, copy=False)


def labelled_mapping(
    job: TrainingJob, config: TrainConfig, fitted: Fitted, previous: LabelMapping | None
) -> LabelMapping:
    """The mapping that the EMA model's predictions on the labelled rows give."""
    rows = job.labels.labelled_rows
    return voted_mapping(job, config, fitted, previous, rows, job.labels.y_class[rows])


def voted_mapping(
    job: TrainingJob,
    config: TrainConfig,
    fitted: Fitted,
    previous: LabelMapping | None,
    rows: IntArray,
    y_class: IntArray,
) -> LabelMapping:
    """The mapping that the EMA model's predictions on ``rows`` of classes ``y_class`` give."""
    labels = job.labels
    return map_labels(
        y_class,
        predicted_slots(job, fitted, rows),
        len(labels.classes),
        fitted.n_slots,
        n_old=labels.n_old,
        pin_old=config.pin_old,
        previous=previous,
        model_id=fitted.model_id,
    )


def grown(job: TrainingJob, config: TrainConfig) -> Fitted:
    """A copy of ``job.start`` with a slot for every class: a class without one gets a slot at its mean feature."""
    assert job.start is not None
    fitted = job.start.copy().to(job.device)
    mapping = labelled_mapping(job, config, fitted, job.previous)
    missing = range(fitted.n_slots, slots_needed(mapping))
    if not missing:
        return fitted
    class_of_slot = {int(slot): c for c, slot in enumerate(mapping.slot_of_class)}
    for which, model in (("student", fitted.student), ("ema", fitted.ema)):
        means = []
        for slot in missing:
            rows = np.flatnonzero(job.labels.y_class == class_of_slot[slot])
            means.append(fitted.predict(job.features, rows, which).features.mean(0))  # type: ignore[arg-type]
        model.grow(torch.from_numpy(np.stack(means)))
    return fitted
