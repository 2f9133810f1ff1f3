"""PIM: a linear classifier of frozen features by mutual information (Chiaroni et al., ICCV 2023).

Logits are ``pim.scale``·W f without bias. The loss is over all rows at once: λ times the mean entropy of the unlabelled
rows' predictions, minus the entropy of the mean prediction, plus the cross-entropy of the labelled rows. W starts at
the centres of semi-supervised k-means and is trained by Adam.

λ is the value of ``pim.entropy_weights`` under which training without the cross-entropy, from the same start, clusters
the labelled rows best; the smallest of equals. The published search tries twenty values over 1000 steps each (the
``paper`` protocol here); by default five are tried over 200. Without labelled rows λ is the largest value.

What was chosen here: features are those of the pretrained backbone, as they come, while the authors train them with
the losses of GCD first. In active rounds λ is kept, and answers join the cross-entropy with the slots that the mapping
gives them, refreshed every epoch. A round starts at the means of the clusters at hand, labelled rows counted in their
slots: from W itself it would learn the few answers by heart and move little else (docs/LOG.md). An epoch is a block of
steps (or one λ tried). There is no average of weights: full-batch descent has no noise to take out, so student and EMA
model are the same.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from agcd.config import TrainConfig
from agcd.features.devices import in_memory, sent
from agcd.metrics import accuracy
from agcd.training.fitted import Fitted
from agcd.training.job import Outcome, TrainingJob, grown, new_model, train_features
from agcd.training.kmeans import cluster_means
from agcd.training.runs import TrainingRun
from agcd.types import IntArray, LabelMapping

_BLOCK = 100
"""Steps per epoch: what a kill may cost."""
_NO_PROJECTOR = {"projector_width": 1, "projector_dim": 1}
"""There is no contrastive loss, so the smallest projector will do."""


class PIM:
    """Parametric information maximisation on frozen features (Chiaroni et al., ICCV 2023)."""

    reads = frozenset({"pim"})

    def __init__(self, config: TrainConfig):
        self.config = config

    def fit(self, job: TrainingJob) -> Outcome:
        """Base training (``job.start`` is None) or one active round from ``job.start``."""
        config = self.config
        if job.start is None:
            fitted = new_model(job, config.model_copy(update=_NO_PROJECTOR), "linear", config.pim.n_init)
            fitted.student_temp = 1 / config.pim.scale
        else:
            fitted = grown(job, config)
        run = _Run(job, config, fitted)
        if job.round:
            run.start_at_means()
        return run.finish()


class _Run(TrainingRun):
    """First one epoch per weight tried (in base training, if there is a choice), then blocks of steps."""

    def __init__(self, job: TrainingJob, config: TrainConfig, fitted: Fitted):
        labels, pim = job.labels, config.pim
        self.n_steps = pim.round_steps if job.round else pim.steps
        has_choice = len(labels.labelled_rows) > 0 and len(pim.entropy_weights) > 1
        self.n_tried = len(pim.entropy_weights) if has_choice and self.n_steps and not job.round else 0
        super().__init__(job, config, fitted, self.n_tried + math.ceil(self.n_steps / _BLOCK))
        self.vectors = train_features(job, fitted)
        self.y_class = labels.y_class[labels.train_rows]
        self.is_answer = np.isin(labels.train_rows, labels.queried_rows)
        self.optimiser = self._new_optimiser(fitted.student.prototypes)
        self.scores: list[float] = []
        """Accuracy on the labelled rows under each weight tried so far."""

    def start_at_means(self) -> None:
        """Put W on the means of the clusters at hand, labelled rows counted in their slots; empty slots stay."""
        student, weights = self.fitted.student, self.fitted.student.prototypes.detach()
        told = self._slots(self.current_mapping())
        y_slot = np.where(told >= 0, told, in_memory(self._logits(weights).argmax(1)))
        means = torch.from_numpy(cluster_means(in_memory(self.vectors), y_slot, student.n_slots)).float()
        is_used = np.flatnonzero(np.bincount(y_slot, minlength=student.n_slots)).tolist()
        student.place_prototypes(is_used, means[is_used])
        self.fitted.ema.load_state_dict(student.state_dict())

    @property
    def entropy_weight(self) -> float:
        """λ: chosen in an earlier run, by the scores of this one, or the largest."""
        if "entropy_weight" in self.fitted.facts:
            return float(self.fitted.facts["entropy_weight"])
        weights = self.config.pim.entropy_weights
        return weights[int(np.argmax(self.scores))] if self.scores else max(weights)

    def finish(self) -> Outcome:
        outcome = super().finish()
        outcome.fitted.facts["entropy_weight"] = self.entropy_weight
        return outcome

    def learn(self, epoch: int, rng: np.random.Generator) -> dict[str, Any]:
        if epoch < self.n_tried:
            return self._try_weight(self.config.pim.entropy_weights[epoch])
        facts: dict[str, Any] = {"entropy_weight": self.entropy_weight}
        if mapping := self.mapping_for_answers():
            facts["agreement"] = mapping.agreement
        n_steps = min(_BLOCK, self.n_steps - _BLOCK * (epoch - self.n_tried))
        facts["loss"] = self._descend(self.optimiser, n_steps, self._slots(mapping), self.entropy_weight)
        self.fitted.ema.load_state_dict(self.fitted.student.state_dict())
        return facts

    def _try_weight(self, weight: float) -> dict[str, Any]:
        prototypes = nn.Parameter(self.fitted.student.prototypes.detach().clone())
        nobody = np.full_like(self.y_class, -1)
        labelled = self.y_class >= 0
        loss = self._descend(self._new_optimiser(prototypes), self.config.pim.search_steps, nobody, weight)
        y_slot = in_memory(self._logits(prototypes).argmax(1))
        score = accuracy(self.y_class[labelled], y_slot[labelled], self.job.labels.n_old)["acc_all"]
        self.scores.append(score)
        return {"entropy_weight": weight, "loss": loss, "labelled_accuracy": score}

    def _slots(self, mapping: LabelMapping | None) -> IntArray:
        """The slot (n,) of each training row, −1 for unlabelled ones: a seed class is its own, answers are mapped."""
        y_slot = self.y_class.copy()
        if mapping is not None:
            y_slot[self.is_answer] = mapping.slot_of_class[self.y_class[self.is_answer]]
        return y_slot

    def _descend(self, optimiser: torch.optim.Adam, n_steps: int, y_slot: IntArray, weight: float) -> float:
        (prototypes,) = optimiser.param_groups[0]["params"]
        device = self.job.device
        slots, labelled, rest = (sent(x, device) for x in (y_slot, *map(np.flatnonzero, (y_slot >= 0, y_slot < 0))))
        for _ in range(n_steps):
            optimiser.zero_grad(set_to_none=True)
            loss = information_loss(self._logits(prototypes), slots[labelled], labelled, rest, weight)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        return float(loss.detach())

    def _logits(self, prototypes: Tensor) -> Tensor:
        return F.linear(self.vectors, prototypes) / self.fitted.student_temp

    def _new_optimiser(self, prototypes: nn.Parameter) -> torch.optim.Adam:
        pim = self.config.pim
        return torch.optim.Adam([prototypes], lr=pim.lr, weight_decay=pim.weight_decay)

    def optimiser_tensors(self) -> dict[str, Tensor]:
        remembered = self.optimiser.state[self.fitted.student.prototypes]
        return {f"adam.{name}": tensor for name, tensor in remembered.items()}

    def restore_optimiser(self, tensors: dict[str, Tensor]) -> None:
        start = "adam."
        remembered = {name.removeprefix(start): t for name, t in tensors.items() if name.startswith(start)}
        # Adam counts its steps on the CPU.
        moved = {name: t if name == "step" else t.to(self.job.device) for name, t in remembered.items()}
        self.optimiser.state[self.fitted.student.prototypes].update(moved)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors, facts = super().state()
        return tensors, facts | {"scores": self.scores}

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        super().restore(tensors, facts)
        self.scores = list(facts["scores"])


def information_loss(
    logits: Tensor, y_slot: Tensor, labelled: Tensor, unlabelled: Tensor, entropy_weight: float
) -> Tensor:
    """λ·H(Y|X) over unlabelled rows − H(Y) over all rows + cross-entropy over labelled rows.

    Parameters
    ----------
    logits : (n, K) of all rows.
    y_slot : (m,) the slots of the labelled rows.
    labelled, unlabelled : (m,), (n − m,) where these are.
    """
    log_probs = F.log_softmax(logits, dim=1)
    probs = log_probs.exp()
    entropies = -(probs * log_probs).sum(1)
    loss: Tensor = -torch.special.entr(probs.mean(0)).sum()
    if len(unlabelled):
        loss = loss + entropy_weight * entropies[unlabelled].mean()
    if len(labelled):
        loss = loss + F.nll_loss(log_probs[labelled], y_slot)
    return loss
