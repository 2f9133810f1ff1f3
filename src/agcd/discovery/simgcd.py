"""SimGCD base training and the active rounds of the paper, over cached features.

A round repeats two phases per epoch: the original one (seed labels and the unlabelled stream, all four losses)
and the queried one (answers only, small batches, supervised losses with labels translated by the mapping).
docs/method.md lists where paper and published code disagree and what is done here.
"""

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
from agcd.discovery import losses
from agcd.discovery.fitted import Fitted, model_tensors, restore_models
from agcd.discovery.heads import DiscoveryModel, Output, ema_update
from agcd.discovery.kmeans import semi_supervised_kmeans
from agcd.discovery.loop import Log, run_epochs
from agcd.discovery.sampler import balanced_batches, shuffled_batches, two_views
from agcd.discovery.schedules import learning_rate, teacher_temperature
from agcd.features.rows import RowFeatures
from agcd.mapping import map_labels, slots_needed
from agcd.rng import derive_seed, generator
from agcd.types import IntArray, LabelMapping, LabelState

Evaluate = Callable[[Fitted], dict[str, Any]]


@dataclass(frozen=True)
class Job:
    """What one training run is about. ``evaluate`` is only logged: nothing it returns reaches the training."""

    features: RowFeatures
    labels: LabelState
    n_slots: int
    seed: int
    round: int
    run_dir: Path
    start: Fitted | None = None
    previous: LabelMapping | None = None
    evaluate: Evaluate | None = None
    echo: Log | None = None


@dataclass(frozen=True)
class Outcome:
    """A trained model with its mapping at the first and the last epoch."""

    fitted: Fitted
    first: LabelMapping
    last: LabelMapping


class SimGCD:
    """Parametric category discovery with self-distillation (Wen et al., ICCV 2023)."""

    def __init__(self, config: TrainConfig):
        self.config = config

    def fit(self, job: Job) -> Outcome:
        """Base training (``job.start`` is None) or one active round from ``job.start``."""
        base = job.start is None
        fitted = new_model(job, self.config) if base else grown(job, self.config)
        run = _Run(job, self.config, fitted, self.config.base_epochs if base else self.config.round_epochs)
        run_epochs(run, run.n_epochs, job.run_dir, derive_seed(job.seed, "train", job.round), job.echo)
        if run.first is None:
            run.first = run.last = run.current_mapping()
        assert run.last is not None
        return Outcome(fitted, run.first, run.last)


class _Run:
    """The state of one training run, moved on by one epoch at a time."""

    def __init__(self, job: Job, config: TrainConfig, fitted: Fitted, n_epochs: int):
        self.job, self.config, self.fitted, self.n_epochs = job, config, fitted, n_epochs
        self.first: LabelMapping | None = None
        self.last: LabelMapping | None = None
        self.optimiser = make_optimiser(fitted.student, config)
        self.y_class = torch.from_numpy(job.labels.y_class)

    def run_epoch(self, epoch: int) -> dict[str, Any]:
        rng = generator(self.job.seed, "train", self.job.round, "epoch", epoch)
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(self.config, epoch, self.n_epochs)
        self.fitted.student.train()
        facts: dict[str, Any] = {"loss": self._original_phase(epoch, rng)}
        if self.job.round:
            mapping = self.current_mapping()
            self.first = self.first or mapping
            facts["queried_loss"] = self._queried_phase(mapping, rng)
            facts["agreement"] = mapping.agreement
        self.last = self.current_mapping()
        self.first = self.first or self.last
        if self.job.evaluate:
            facts["evaluation"] = self.job.evaluate(self.fitted)
        return facts

    def _original_phase(self, epoch: int, rng: np.random.Generator) -> float:
        labels, config = self.job.labels, self.config
        seeds = labels.seed_rows
        stays = labels.y_class < 0
        if config.keep_queried_unlabelled:
            stays |= labels.asked_round > 0
        unlabelled = np.flatnonzero(stays & ~labels.held_out)
        in_round = self.job.round > 0
        teacher_temp = config.teacher_temp if in_round else teacher_temperature(config, epoch, self.n_epochs)
        total, n = 0.0, 0
        for rows in balanced_batches(seeds, unlabelled, config.batch_size, rng):
            # Queried rows that stay in the stream count as unlabelled there.
            seed_class = np.where(labels.asked_round[rows] == 0, labels.y_class[rows], -1)
            loss = original_loss(self._forward(rows, rng), torch.from_numpy(seed_class), teacher_temp, config)
            total, n = total + self._step(loss), n + 1
        return total / n

    def _queried_phase(self, mapping: LabelMapping, rng: np.random.Generator) -> float:
        config, rows_asked = self.config, self.job.labels.queried_rows
        total, n = 0.0, 0
        for rows in shuffled_batches(rows_asked, config.query_batch_size, rng):
            if config.map_every and n and n % config.map_every == 0:
                mapping = self.current_mapping()
            y_class = self.y_class[rows]
            slots = torch.from_numpy(mapping.slot_of_class)[y_class]
            loss = queried_loss(self._forward(rows, rng), y_class, slots, config)
            total, n = total + self._step(loss), n + 1
        return total / max(n, 1)

    def _forward(self, rows: IntArray, rng: np.random.Generator) -> Output:
        first, second = two_views(len(rows), self.job.features.n_views, rng)
        inputs = self.job.features.read(np.concatenate([rows, rows]), np.concatenate([first, second]))
        output: Output = self.fitted.student(inputs)
        return output

    def _step(self, loss: Tensor) -> float:
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        # The paper averages in rounds only: after base training both models are the same.
        ema_update(self.fitted.ema, self.fitted.student, self.config.ema_decay if self.job.round else 0.0)
        return float(loss.detach())

    def current_mapping(self) -> LabelMapping:
        """The mapping of the EMA model on everything labelled so far."""
        return labelled_mapping(self.job, self.config, self.fitted, self.last or self.job.previous)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors = model_tensors(self.fitted.student, self.fitted.ema)
        for i, parameter in enumerate(self.fitted.student.trainable()):
            tensors[f"momentum.{i}"] = self.optimiser.state[parameter]["momentum_buffer"]
        assert self.first is not None
        assert self.last is not None
        return tensors, {"first": self.first.to_json(), "last": self.last.to_json()}

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        restore_models(self.fitted.student, self.fitted.ema, tensors)
        for i, parameter in enumerate(self.fitted.student.trainable()):
            self.optimiser.state[parameter]["momentum_buffer"] = tensors[f"momentum.{i}"]
        self.first, self.last = LabelMapping.from_json(facts["first"]), LabelMapping.from_json(facts["last"])


def original_loss(output: Output, y_class: Tensor, teacher_temp: float, config: TrainConfig) -> Tensor:
    """The SimGCD loss of a batch; ``y_class`` (B,) is −1 for unlabelled rows. Seed classes are their own slots."""
    labelled = y_class >= 0
    both, y = labelled.repeat(2), y_class[labelled]
    unsupervised = (
        losses.self_distillation(output.logits, config.student_temp, teacher_temp)
        + config.entropy_weight * losses.entropy_shortfall(output.logits, config.student_temp)
        + losses.info_nce(output.projections, config.contrast_temp)
    )
    supervised = losses.supervised(output.logits[both], y, config.student_temp) + losses.sup_con(
        output.projections[both], y, config.supcon_temp
    )
    return (1 - config.sup_weight) * unsupervised + config.sup_weight * supervised


def queried_loss(output: Output, y_class: Tensor, slots: Tensor, config: TrainConfig) -> Tensor:
    """The supervised losses of a batch of answers: classification by mapped slot, contrast by class."""
    return config.sup_weight * (
        losses.supervised(output.logits, slots, config.student_temp)
        + losses.sup_con(output.projections, y_class, config.supcon_temp)
    )


def make_optimiser(model: DiscoveryModel, config: TrainConfig) -> torch.optim.SGD:
    """SGD with momentum; weight decay on matrices only."""
    matrices = [p for p in model.trainable() if p.dim() > 1]
    vectors = [p for p in model.trainable() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": config.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.SGD(groups, lr=config.lr, momentum=config.momentum, fused=True)


def new_model(job: Job, config: TrainConfig) -> Fitted:
    """The start of base training: pretrained tail, fresh projector, prototypes random or from k-means."""
    shape = (config.projector_width, config.projector_dim)
    seed = derive_seed(job.seed, "init")
    model = DiscoveryModel(job.features.new_tail(), job.features.dim, job.n_slots, shape, seed)
    fitted = Fitted(model, model, job.labels.n_old, config.student_temp)
    if config.center:
        standardise(model, fitted.embed(job.features, job.labels.train_rows))
    if config.init == "kmeans":
        vectors = F.normalize(fitted.embed(job.features, job.labels.train_rows), dim=1).numpy()
        y_class = job.labels.y_class[job.labels.train_rows]
        clusters = semi_supervised_kmeans(vectors, y_class, job.n_slots, generator(job.seed, "kmeans"))
        directions = torch.from_numpy(clusters.centres.astype(np.float32))
        model.place_prototypes(list(range(job.n_slots)), directions)
    fitted.ema = copy.deepcopy(model)
    return fitted


@torch.no_grad()
def standardise(model: DiscoveryModel, embedded: Tensor) -> None:
    """Set the model's centre and scale so that its features have zero mean and, on average, unit spread."""
    model.center.copy_(embedded.mean(0))
    spread = (embedded - model.center).square().mean().sqrt()
    model.scale.copy_(1 / spread.clamp_min(1e-6))


def labelled_mapping(job: Job, config: TrainConfig, fitted: Fitted, previous: LabelMapping | None) -> LabelMapping:
    """The mapping that the EMA model's predictions on the labelled rows give."""
    labels = job.labels
    rows = labels.labelled_rows
    prediction = fitted.predict(job.features, rows, "ema")
    return map_labels(
        labels.y_class[rows],
        prediction.y_slot,
        len(labels.classes),
        fitted.n_slots,
        n_old=labels.n_old,
        pin_old=config.pin_old,
        previous=previous,
        model_id=fitted.model_id,
    )


def grown(job: Job, config: TrainConfig) -> Fitted:
    """A copy of ``job.start`` with a slot for every class: a class without one gets a slot at its mean feature."""
    assert job.start is not None
    fitted = job.start.copy()
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
