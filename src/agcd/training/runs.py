"""The course of a training run that all trainers share: epochs, mapping, evaluation, and a state that can be stored.

``TrainingRun`` is any trainer's; ``DescentRun`` adds stochastic gradient descent on batches of two views each;
``TwoPhaseRun`` adds the paper's two phases per epoch of an active round: the original one (seed labels and the
unlabelled stream) and the queried one (answers only, small batches, labels translated by the mapping).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from agcd.config import TrainConfig
from agcd.features.devices import OutOfMemory, in_memory, in_smaller_passes, sent
from agcd.features.tails import ResidualAdapter
from agcd.rng import derive_seed, generator
from agcd.training import losses
from agcd.training.answers import PropagatedLabels, drop_explained, propagate_answers, repair
from agcd.training.fitted import Fitted, model_tensors, restore_models
from agcd.training.heads import DiscoveryModel, Output, ema_update
from agcd.training.job import Outcome, TrainingJob, grown, labelled_mapping, new_model, voted_mapping
from agcd.training.loop import not_finite, run_epochs
from agcd.training.process_group import ProcessGroup, at_least_one, share
from agcd.training.sampler import Batch, balanced_batches, read_batches, sent_together, shuffled_batches
from agcd.training.schedules import learning_rate
from agcd.types import IntArray, LabelMapping

LOSSES_READ_TOGETHER = 100
"""Steps on a device after which it is looked at whether the loss is still a number; on a CPU each is."""


class TrainingRun(ABC):
    """The state of one training run, moved on by one epoch at a time."""

    def __init__(self, job: TrainingJob, config: TrainConfig, fitted: Fitted, n_epochs: int):
        self.job, self.config, self.fitted, self.n_epochs = job, config, fitted, n_epochs
        self.first: LabelMapping | None = None
        self.last: LabelMapping | None = None

    @abstractmethod
    def learn(self, epoch: int, rng: np.random.Generator) -> dict[str, Any]:
        """One epoch of training; the facts it returns are logged."""

    @abstractmethod
    def optimiser_tensors(self) -> dict[str, Tensor]:
        """What the optimiser remembers."""

    @abstractmethod
    def restore_optimiser(self, tensors: dict[str, Tensor]) -> None:
        """Take back what ``optimiser_tensors`` listed; ``tensors`` holds more than that."""

    def finish(self) -> Outcome:
        """Train to the end, from wherever the run's folder says it stands."""
        seed = derive_seed(self.job.seed, "train", self.job.round)
        run_epochs(self, self.n_epochs, self.job.run_dir, seed, self.job.echo, self.job.group)
        if self.first is None:
            self.first = self.last = self.current_mapping()
        assert self.last is not None
        return Outcome(self.fitted, self.first, self.last)

    def run_epoch(self, epoch: int) -> dict[str, Any]:
        rng = generator(self.job.seed, "train", self.job.round, "epoch", epoch)
        if self.first is None and self.job.round and self.config.first_mapping == "start":
            self.first = self.current_mapping()
        facts = self.learn(epoch, rng)
        self.last = self.current_mapping()
        self.first = self.first or self.last
        if self.job.evaluate:
            facts["evaluation"] = self.job.evaluate(self.fitted)
        return facts

    def mapping_for_answers(self) -> LabelMapping | None:
        """The mapping by which this epoch translates answers into slots; None in base training, which has none."""
        if not self.job.round:
            return None
        mapping = self.current_mapping()
        self.first = self.first or mapping
        return mapping

    def current_mapping(self) -> LabelMapping:
        """The mapping of the EMA model on everything labelled so far."""
        return labelled_mapping(self.job, self.config, self.fitted, self.last or self.job.previous)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        assert self.first is not None
        assert self.last is not None
        tensors = model_tensors(self.fitted.student, self.fitted.ema) | self.optimiser_tensors()
        return tensors, {"first": self.first.to_json(), "last": self.last.to_json()}

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        restore_models(self.fitted.student, self.fitted.ema, tensors)
        self.restore_optimiser(tensors)
        self.first, self.last = LabelMapping.from_json(facts["first"]), LabelMapping.from_json(facts["last"])


class DescentRun(TrainingRun):
    """A run that trains the student by stochastic gradient descent; the EMA model follows it step by step.

    Nothing in a step asks a device for a number, so that whoever prepares the next batch never waits for it: losses are
    read a hundred at a time.
    """

    def __init__(self, job: TrainingJob, config: TrainConfig, fitted: Fitted, n_epochs: int):
        super().__init__(job, config, fitted, n_epochs)
        self.optimiser = make_optimiser(fitted.student, config)
        # Gradients of half precision vanish below 6e-8: they are multiplied on their way back.
        self.scaler = torch.amp.GradScaler(job.device.type, enabled=config.precision == "float16")
        self._student = torch.compile(fitted.student) if config.compile else fitted.student
        self._rows_per_pass: int | None = None
        self._unread: list[Tensor] = []

    def run_epoch(self, epoch: int) -> dict[str, Any]:
        for group in self.optimiser.param_groups:
            group["lr"] = self.learning_rate(epoch)
        # Unlike machines may part a little, for instance in k-means: every epoch starts from one state.
        models = model_tensors(self.fitted.student, self.fitted.ema)
        self.job.group.broadcast([*models.values(), *self.optimiser_tensors().values()])
        self.fitted.student.train()
        return super().run_epoch(epoch)

    def learning_rate(self, epoch: int) -> float:
        return learning_rate(self.config, epoch, self.n_epochs)

    def batches(
        self, rows: Sequence[IntArray], y_class: Sequence[IntArray], rng: np.random.Generator
    ) -> Iterator[Batch]:
        """Batches of ``rows`` with two random views of each, and the class of each row, −1 for unlabelled ones."""
        yield from read_batches(self.job.features, rows, y_class, rng, self.job.group, self.job.device)
        self._read_losses()

    def forward(self, batch: Batch) -> Output:
        """The student's output (2B, …) for both views of a batch: first views, then second."""
        group = self.job.group
        if group.size > 1:
            draw_together(self.fitted.student, group, len(batch.rows))
        with autocast(self.job.device, self.config.precision):
            output = self._in_passes(batch.inputs)
        return output if group.size == 1 else joined(output, group, len(batch.rows))

    def _in_passes(self, inputs: Tensor) -> Output:
        """The student's output; pass by pass, each computed again on the way back, where all would not fit."""
        if self._rows_per_pass is None:
            output: Output = self._student(inputs)
            return output
        passes = (
            checkpoint(self._student, part, use_reentrant=False) for part in torch.split(inputs, self._rows_per_pass)
        )
        return Output(*map(torch.cat, zip(*passes, strict=True)))

    def descend(self, batch: Batch, loss_of: Callable[[Output], Tensor], ema_decay: float) -> Tensor:
        """A step down the gradient of ``loss_of`` the student's output; in smaller passes where memory is too small."""
        while True:
            try:
                loss = loss_of(self.forward(batch))
                self._backward(loss)
                break
            except OutOfMemory:
                if self.job.group.size > 1:  # the others would wait for ever
                    raise
                n_rows = min(self._rows_per_pass or len(batch.inputs), len(batch.inputs))
                self._rows_per_pass = in_smaller_passes(self.job.device, "training", n_rows)
        self._move(ema_decay)
        return loss.detach()

    def step(self, loss: Tensor, ema_decay: float) -> Tensor:
        """Move the student down the gradient of ``loss`` and the EMA model after it; the value of the loss."""
        self._backward(loss)
        self._move(ema_decay)
        return loss.detach()

    def _backward(self, loss: Tensor) -> None:
        self._unread.append(loss.detach())
        if self.job.device.type == "cpu" or len(self._unread) >= LOSSES_READ_TOGETHER:
            self._read_losses()
        self.optimiser.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]

    def _move(self, ema_decay: float) -> None:
        # Each process has the gradient of the whole loss by its own rows, so the sum is that of one process.
        self.job.group.all_reduce(p.grad for p in self.fitted.student.trainable() if p.grad is not None)
        self.scaler.step(self.optimiser)
        self.scaler.update()
        ema_update(self.fitted.ema, self.fitted.student, ema_decay)

    def _read_losses(self) -> None:
        unread, self._unread = self._unread, []
        if not math.isfinite(mean_loss(unread)):
            raise not_finite("the loss")

    def optimiser_tensors(self) -> dict[str, Tensor]:
        momenta = [self.optimiser.state[p]["momentum_buffer"] for p in self.fitted.student.trainable()]
        return {f"momentum.{i}": momentum for i, momentum in enumerate(momenta)}

    def restore_optimiser(self, tensors: dict[str, Tensor]) -> None:
        for i, parameter in enumerate(self.fitted.student.trainable()):
            if f"momentum.{i}" in tensors:  # up to version 0.2 a parameter that no loss had reached had none
                self.optimiser.state[parameter]["momentum_buffer"].copy_(tensors[f"momentum.{i}"])

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors, facts = super().state()
        if self.scaler.is_enabled():
            facts["scaler"] = self.scaler.state_dict()
        if self._rows_per_pass is not None:  # noise is drawn pass by pass
            facts["rows_per_pass"] = self._rows_per_pass
        return tensors, facts

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        super().restore(tensors, facts)
        if self.scaler.is_enabled():
            self.scaler.load_state_dict(facts["scaler"])
        self._rows_per_pass = facts.get("rows_per_pass")


class TwoPhaseRun(DescentRun):
    """The original phase and, in active rounds, the queried phase of every epoch."""

    @classmethod
    def of(cls, job: TrainingJob, config: TrainConfig) -> Self:
        """Base training of a new model (``job.start`` is None) or one active round from ``job.start``."""
        if job.start is None:
            return cls(job, config, new_model(job, config), config.base_epochs)
        run = cls(job, config, grown(job, config), config.round_epochs)
        if config.answers.repair:
            repair(run.fitted, job, run.propagated, run.current_mapping())
        if config.answers.unnamed == "drop":
            drop_explained(run.fitted, job, run.propagated, run.current_mapping())
        return run

    @cached_property
    def propagated(self) -> PropagatedLabels:
        """What the labels say about every training row, as the round begins."""
        return propagate_answers(self.job, self.config.answers.page_weight)

    def current_mapping(self) -> LabelMapping:
        if self.job.start is None or self.config.answers.mapping == "labels":
            return super().current_mapping()
        voters = self.propagated.voters()
        rows, y_class = self.propagated.rows[voters], self.propagated.y_class[voters]
        return voted_mapping(self.job, self.config, self.fitted, self.last or self.job.previous, rows, y_class)

    @abstractmethod
    def original_loss(self, batch: Batch, output: Output, y_class: Tensor, epoch: int) -> Tensor:
        """The loss of a batch of the original phase; ``y_class`` (B,) is −1 for rows that count as unlabelled."""

    @abstractmethod
    def ema_decay(self, epoch: int, share: float) -> float:
        """How much the EMA model keeps of itself after a step, when ``share`` of the epoch's original phase is done."""

    def learn(self, epoch: int, rng: np.random.Generator) -> dict[str, Any]:
        facts: dict[str, Any] = {"loss": self._original_phase(epoch, rng)}
        if mapping := self.mapping_for_answers():
            facts["queried_loss"] = self._queried_phase(epoch, mapping, rng)
            facts["agreement"] = mapping.agreement
        return facts

    def _original_phase(self, epoch: int, rng: np.random.Generator) -> float:
        labels = self.job.labels
        stays = labels.y_class < 0
        if self.config.keep_queried_unlabelled:
            stays |= labels.asked_round > 0
        unlabelled = np.flatnonzero(stays & ~labels.held_out)
        all_rows = list(balanced_batches(labels.seed_rows, unlabelled, self.config.batch_size, rng))
        # Queried rows that stay in the stream count as unlabelled there.
        seed_class = np.where(labels.asked_round == 0, labels.y_class, -1)
        y_class, values = [seed_class[rows] for rows in all_rows], []
        to_spread = self._propagated_losses([rows[y < 0] for rows, y in zip(all_rows, y_class, strict=True)])
        for n, batch in enumerate(self.batches(all_rows, y_class, rng)):

            def loss_of(output: Output, batch: Batch = batch, n: int = n) -> Tensor:
                loss = self.original_loss(batch, output, batch.y_class, epoch)
                return loss + to_spread[n](output, batch) if to_spread else loss

            values.append(self.descend(batch, loss_of, self.ema_decay(epoch, n / len(all_rows))))
        return mean_loss(values)

    def _propagated_losses(self, unlabelled: Sequence[IntArray]) -> list[Callable[[Output, Batch], Tensor]]:
        """For every batch the loss by which its ``unlabelled`` rows learn the classes propagated to them; none where
        that is off."""
        config = self.config
        if self.job.start is None or not config.answers.spread_weight:
            return []
        y_class, certainty = self.propagated.by_row(self.job.features.n_rows)
        mapping = self.last or self.current_mapping()  # the last epoch ended with the mapping that this one begins with
        slots = np.append(mapping.slot_of_class, 0)[y_class]
        told, weights = (
            sent_together([values[rows] for rows in unlabelled], self.job.device) for values in (slots, certainty)
        )

        def loss(output: Output, batch: Batch, y_slot: Tensor, weight: Tensor) -> Tensor:
            both = torch.cat([batch.unlabelled, batch.unlabelled + len(batch.y_class)])
            value = losses.weighted_supervised(output.logits[both], y_slot, weight, config.student_temp)
            return config.answers.spread_weight * value

        return [partial(loss, y_slot=y, weight=weight) for y, weight in zip(told, weights, strict=True)]

    def _queried_phase(self, epoch: int, mapping: LabelMapping, rng: np.random.Generator) -> float:
        """The answers, and before them, with their own weight, the rows accepted by page."""
        config, labels, device = self.config, self.job.labels, self.job.device
        said = np.where(labels.y_class < 0, labels.accepted_classes, labels.y_class)
        slot_of_class, values = sent(mapping.slot_of_class, device), list[Tensor]()
        both = (labels.accepted_rows, config.answers.page_weight, False), (labels.queried_rows, 1.0, True)
        for rows, weight, is_answer in both:
            # Accepted rows stay in the unlabelled stream and have these losses there.
            unsupervised = is_answer and config.queried_unsupervised
            taught = list(shuffled_batches(rows if weight else rows[:0], config.query_batch_size, rng))
            for batch in self.batches(taught, [said[some] for some in taught], rng):
                if config.map_every and values and len(values) % config.map_every == 0:
                    slot_of_class = sent(self.current_mapping().slot_of_class, device)

                def loss_of(output: Output, batch: Batch = batch, weight: float = weight) -> Tensor:
                    y = batch.y_class
                    loss = weight * queried_loss(output, y, slot_of_class[y], config)  # noqa: B023
                    return loss + self._unsupervised_loss(batch, output, epoch) if unsupervised else loss  # noqa: B023

                values.append(self.descend(batch, loss_of, self.ema_decay(epoch, 1.0)))
        return mean_loss(values)

    def _unsupervised_loss(self, batch: Batch, output: Output, epoch: int) -> Tensor:
        """The original loss of a batch as if nobody had labelled any of it."""
        unlabelled = torch.full_like(batch.y_class, -1)
        batch = batch._replace(y_class=unlabelled, labelled=batch.unlabelled, unlabelled=batch.labelled)
        return self.original_loss(batch, output, unlabelled, epoch)


def mean_loss(values: Sequence[Tensor]) -> float:
    """The mean of the losses of an epoch's steps, read from the device at once; 0 of none."""
    return sum(in_memory(torch.stack(list(values))).tolist()) / len(values) if values else 0.0


def autocast(device: torch.device, precision: str) -> AbstractContextManager[object]:
    """Matrix products in ``precision``, where that is less than float32."""
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, dtype=getattr(torch, precision))


def draw_together(model: DiscoveryModel, group: ProcessGroup, n: int) -> None:
    """Let every adapter's noise for the next batch of ``n`` rows be this process's part of one draw for all."""
    own = at_least_one(share(group, n))

    def draw(x: Tensor) -> Tensor:
        return torch.randn(2, n, *x.shape[1:], device=x.device)[:, own].flatten(0, 1)

    for module in model.modules():
        if isinstance(module, ResidualAdapter):
            module.draw = draw


def joined(output: Output, group: ProcessGroup, n: int) -> Output:
    """The output (2n, …) of a batch of ``n`` rows from that of this process's rows and of the others'."""
    own = share(group, n)
    by_view = torch.cat(output, 1)
    by_row = torch.stack(torch.tensor_split(by_view, 2), 1)[: own.stop - own.start]
    whole = group.gather(by_row, n).transpose(0, 1).flatten(0, 1)
    return Output(*torch.split(whole, [part.shape[1] for part in output], dim=1))


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
    optimiser = torch.optim.SGD(groups, lr=config.lr, momentum=config.momentum, fused=True)
    # The fused step wants a momentum for all parameters or for none, and no loss of GCD or μGCD reaches all of them.
    # What it makes by itself holds anything if the first gradients overflow, as they do where float16 begins.
    for parameter in model.trainable():
        optimiser.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
    return optimiser
