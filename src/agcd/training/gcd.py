"""GCD: contrastive training, then semi-supervised k-means (Vaze et al., Generalized Category Discovery, CVPR 2022).

The loss is (1 − ``sup_weight``)·InfoNCE over all rows + ``sup_weight``·SupCon over labelled ones, on the output of the
projector (the published code contrasts in the 65,536 dimensions of a layer left over from DINO). Then the unit-length
features are clustered with labelled rows held in the cluster of their class; a row belongs to its nearest centre.

What was chosen here:

* Probabilities, which strategies need and the paper has none of, are softmax(−½|f − c|² / ``student_temp``). For
  centres of unit length that is the softmax of cosines that SimGCD uses.
* Every epoch ends with a run of k-means from the centres of the epoch before, so that its log means something. Base
  training ends with ``gcd.n_init`` fresh starts beside it, of which the one with the lowest inertia counts.
* In active rounds answers are labelled rows like the others. Labelled rows are held in the slot that the mapping gives
  their class, and centres go on from where they were, so slots keep their meaning from round to round. A slot to
  which none of its labelled rows is nearest was given to a class that had no cluster: it starts again at their mean.
* There is no average of weights: pins already keep the mapping steady. Student and EMA model are the same.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agcd.config import TrainConfig
from agcd.features.devices import in_memory
from agcd.rng import generator
from agcd.training import losses
from agcd.training.fitted import Fitted
from agcd.training.heads import Output
from agcd.training.job import Outcome, TrainingJob, grown, new_model, train_features
from agcd.training.kmeans import Clustering, cluster_means, distances_to, lloyd, semi_supervised_kmeans
from agcd.training.runs import DescentRun, mean_loss
from agcd.training.sampler import balanced_batches
from agcd.types import FloatArray, IntArray, LabelMapping


class GCD:
    """Contrastive training and semi-supervised k-means (Vaze et al., CVPR 2022)."""

    reads = frozenset({"gcd"})

    def __init__(self, config: TrainConfig):
        self.config = config

    def fit(self, job: TrainingJob) -> Outcome:
        """Base training (``job.start`` is None) or one active round from ``job.start``."""
        config = self.config
        if job.start is None:
            fitted = new_model(job, config, "linear", config.gcd.n_init if config.base_epochs == 0 else 1)
        else:
            fitted = grown(job, config)
        set_biases(fitted)
        return _Run(job, config, fitted, config.round_epochs if job.round else config.base_epochs).finish()


class _Run(DescentRun):
    def learn(self, epoch: int, rng: np.random.Generator) -> dict[str, Any]:
        facts: dict[str, Any] = {"loss": self._contrast(rng)}
        if mapping := self.mapping_for_answers():
            facts["agreement"] = mapping.agreement
        clusters = self._cluster(mapping, is_last=epoch == self.n_epochs - 1)
        centres = torch.from_numpy(clusters.centres.astype(np.float32))
        self.fitted.student.place_prototypes(list(range(len(centres))), centres)
        set_biases(self.fitted)
        return facts | {"inertia": clusters.inertia}

    def _contrast(self, rng: np.random.Generator) -> float:
        labels = self.job.labels
        unlabelled = np.flatnonzero((labels.y_class < 0) & ~labels.held_out)
        all_rows = list(balanced_batches(labels.labelled_rows, unlabelled, self.config.batch_size, rng))
        values = []
        for batch in self.batches(all_rows, [labels.y_class[rows] for rows in all_rows], rng):
            loss = partial(contrastive_loss, y_class=batch.y_class, config=self.config, labelled=batch.labelled)
            values.append(self.descend(batch, loss, ema_decay=0.0))  # the EMA model stays the student
        return mean_loss(values)

    def _cluster(self, mapping: LabelMapping | None, *, is_last: bool) -> Clustering:
        """k-means with labelled rows held in the slot of their class, which without a mapping is its own number."""
        job, labels = self.job, self.job.labels
        x = in_memory(train_features(job, self.fitted))
        y_slot = labels.y_class[labels.train_rows]
        if mapping:
            y_slot[y_slot >= 0] = mapping.slot_of_class[y_slot[y_slot >= 0]]
        warm = lloyd(x, y_slot, restarted(x, y_slot, in_memory(self.fitted.student.prototypes)))
        if job.round or not is_last:
            return warm
        rng = generator(job.seed, "kmeans", "last")
        fresh = semi_supervised_kmeans(x, y_slot, self.fitted.n_slots, rng, n_init=self.config.gcd.n_init)
        return min(warm, fresh, key=lambda clusters: clusters.inertia)


@torch.no_grad()
def set_biases(fitted: Fitted) -> None:
    """Make the prototypes c of the student centres: f·c − ½|c|² is largest for the nearest. The EMA model follows."""
    student = fitted.student
    student.biases.copy_(-student.prototypes.square().sum(1) / 2)
    fitted.ema.load_state_dict(student.state_dict())


def restarted(x: FloatArray, y_pinned: IntArray, centres: FloatArray) -> FloatArray:
    """The centres (K, d), those to which none of their pinned rows is nearest moved to the mean of these rows.

    Parameters
    ----------
    x : (n, d) features.
    y_pinned : (n,) the cluster in which a row must stay, −1 where it is free.
    """
    pinned = y_pinned >= 0
    x, y = x[pinned], y_pinned[pinned]
    hit = y[distances_to(centres, x).argmin(1) == y]
    lost = np.setdiff1d(y, hit)
    moved = centres.copy()
    moved[lost] = cluster_means(x, y, len(centres))[lost]
    return moved


def contrastive_loss(output: Output, y_class: Tensor, config: TrainConfig, labelled: Tensor | None = None) -> Tensor:
    """The loss of a batch on its projections (2B, p); ``y_class`` (B,) is −1 for unlabelled rows, and ``labelled`` is
    where it is not."""
    both, y = losses.labelled_of(y_class, labelled)
    unsupervised = losses.info_nce(output.projections, config.contrast_temp)
    supervised = losses.sup_con(output.projections[both], y, config.supcon_temp)
    return (1 - config.sup_weight) * unsupervised + config.sup_weight * supervised
