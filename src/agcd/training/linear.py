"""What a data scientist tries first: scikit-learn's classifiers on frozen features, as trainers.

``logistic`` is a multinomial logistic regression on the labelled rows. ``label_spreading`` spreads the labels over the
nearest neighbours of all training rows first (Zhou et al. 2003) and fits the same regression to every row that they
have reached, weighted by how sure the spreading is of it, so that test rows can be classified as well.

Neither discovers anything: a class without a labelled row is never predicted, and its slot is unused. An old class
has its own slot; a novel one takes a free slot when it is first named and keeps it. Without any label at all the slots
are the clusters of k-means. Features are those of the pretrained backbone at unit length; the regression sees them
scaled to the length that standardised features have, where scikit-learn's default penalty is a sensible one, and gives
every class the same weight, as labels of the start outnumber answers by far. There is no average of weights: student
and EMA model are the same. A run has two epochs, the second under the mapping that the first one gave.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agcd.config import TrainConfig
from agcd.features.devices import in_memory, sent
from agcd.training.fitted import Fitted
from agcd.training.gcd import set_biases
from agcd.training.job import Outcome, TrainingJob, grown, new_model, train_features
from agcd.training.runs import TrainingRun
from agcd.types import FloatArray, IntArray

Float64 = NDArray[np.float64]

_N_EPOCHS = 2
_MAX_ITER = 300
"""Of L-BFGS; with a few hundred classes it stops before."""
_UNUSED = -1e4
"""The logit of a slot without a class: no probability at all."""
_NO_PROJECTOR = {"projector_width": 1, "projector_dim": 1}


class Logistic:
    """Logistic regression on the frozen features of the labelled rows."""

    reads = frozenset[str]()

    def __init__(self, config: TrainConfig):
        self.config = config

    def fit(self, job: TrainingJob) -> Outcome:
        """Base training (``job.start`` is None) or one active round from ``job.start``."""
        return _Run(job, self.config, _start(job, self.config)).finish()


class LabelSpreading:
    """Labels spread over the nearest neighbours, then logistic regression on what they have reached."""

    reads = frozenset[str]()

    def __init__(self, config: TrainConfig):
        self.config = config

    def fit(self, job: TrainingJob) -> Outcome:
        """Base training (``job.start`` is None) or one active round from ``job.start``."""
        return _SpreadingRun(job, self.config, _start(job, self.config)).finish()


def _start(job: TrainingJob, config: TrainConfig) -> Fitted:
    if job.start is not None:
        return grown(job, config)
    fitted = new_model(job, config.model_copy(update=_NO_PROJECTOR), "linear", n_init=1)
    set_biases(fitted)
    return fitted


class _Run(TrainingRun):
    def __init__(self, job: TrainingJob, config: TrainConfig, fitted: Fitted):
        super().__init__(job, config, fitted, _N_EPOCHS)
        self.x = in_memory(train_features(job, fitted)).astype(np.float64)

    def learn(self, epoch: int, rng: np.random.Generator) -> dict[str, Any]:
        facts: dict[str, Any] = {"loss": 0.0}
        y_slot = self.job.labels.y_class[self.job.labels.train_rows]
        if mapping := self.mapping_for_answers():
            facts["agreement"] = mapping.agreement
            y_slot = np.append(mapping.slot_of_class, -1)[y_slot]  # −1, unlabelled, stays
        if (y_slot >= 0).any():
            slots, weights, biases = fit_logistic(self.x, *self.targets(y_slot))
            self._place(slots, weights, biases)
            labelled = y_slot >= 0
            facts["loss"] = _cross_entropy(
                self.x[labelled] @ weights.T + biases, np.searchsorted(slots, y_slot[labelled])
            )
        return facts

    def targets(self, y_slot: IntArray) -> tuple[IntArray, Float64]:
        """The slot (n,) that each row is to learn, −1 for none, and its weight (n,)."""
        return y_slot, np.ones(len(y_slot))

    @torch.no_grad()
    def _place(self, slots: IntArray, weights: Float64, biases: Float64) -> None:
        """Give the student this classifier; predictions divide by the temperature, so it is multiplied here."""
        student, temperature = self.fitted.student, self.fitted.student_temp
        student.place_prototypes(slots.tolist(), torch.from_numpy(temperature * weights).float())
        student.biases.fill_(temperature * _UNUSED)
        places, values = (sent(x, student.device) for x in (slots, (temperature * biases).astype(np.float32)))
        student.biases.index_copy_(0, places, values)
        self.fitted.ema.load_state_dict(student.state_dict())

    def optimiser_tensors(self) -> dict[str, Tensor]:
        return {}

    def restore_optimiser(self, tensors: dict[str, Tensor]) -> None:
        """Every epoch fits anew, so there is nothing to remember."""


class _SpreadingRun(_Run):
    def targets(self, y_slot: IntArray) -> tuple[IntArray, Float64]:
        return spread_labels(self.x, y_slot)


def spread_labels(x: FloatArray, y_slot: IntArray) -> tuple[IntArray, Float64]:
    """scikit-learn's label spreading over the nearest neighbours, with its defaults: (n, d), (n,) → (n,), (n,).

    Returns the slot of every row, −1 where no label has arrived, and the share of what arrived that speaks for it;
    labelled rows keep theirs, with weight 1.
    """
    from sklearn import semi_supervised  # here, because it takes a second to load
    from sklearn.exceptions import ConvergenceWarning

    labelled = y_slot >= 0
    model = semi_supervised.LabelSpreading(kernel="knn", n_neighbors=min(7, len(x)), max_iter=100)
    with warnings.catch_warnings():  # rows that no label can reach are divided by zero there, and have no class here
        warnings.simplefilter("ignore", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(x, y_slot)
    sure = np.nan_to_num(model.label_distributions_).max(1)
    spread = np.where(sure > 0, model.transduction_, -1)
    return np.where(labelled, y_slot, spread), np.where(labelled, 1.0, sure)


def fit_logistic(x: FloatArray, y_slot: IntArray, sample_weight: Float64) -> tuple[IntArray, Float64, Float64]:
    """Multinomial logistic regression on the rows of unit length that have a slot.

    Returns the slots that occur (C,), in order, and weights (C, d) and biases (C,) whose softmax is the prediction.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    known = y_slot >= 0
    slots = np.unique(y_slot[known])
    if len(slots) == 1:
        return slots, np.zeros((1, x.shape[1])), np.zeros(1)
    length = np.sqrt(x.shape[1])  # of a row of standardised features
    model = LogisticRegression(class_weight="balanced", max_iter=_MAX_ITER)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(length * x[known], y_slot[known], sample_weight[known])
    weights, biases = length * model.coef_, model.intercept_
    if len(slots) == 2:  # scikit-learn has one line for two classes: the logit of the second
        weights, biases = np.concatenate([-weights, weights]) / 2, np.concatenate([-biases, biases]) / 2
    return slots, weights, biases


def _cross_entropy(logits: Float64, y: IntArray) -> float:
    """The mean cross-entropy of logits (n, C) with the right columns (n,)."""
    top = logits.max(1, keepdims=True)
    log_sum = top[:, 0] + np.log(np.exp(logits - top).sum(1))
    return float((log_sum - logits[np.arange(len(y)), y]).mean())
