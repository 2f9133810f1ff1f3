"""SimGCD whose base training takes neighbours for views: a row and one near it learn each other's prediction.

Two crops of a picture, and noise on an embedding, show what does not tell classes apart, but hardly how the members of
one class differ. Neighbours do. Contrast with the nearest neighbour is NNCLR's (Dwibedi et al., ICCV 2021); that
discovery gains from it is what Contrastive Mean-Shift has shown (Choi, Kang and Cho, CVPR 2024), which draws a row
towards the mean of its neighbours. Here one is drawn for every step, and all of SimGCD's losses see it.

What was chosen here:

* Neighbours are those of the pretrained features, which no training has drawn together by mistake.
* Half of all views are neighbours' (of two views of a row, one is in the mean).
* A row with a label has only neighbours with the same label, and else itself, so that no label is taught to another
  class.
* Rounds are SimGCD's. Neighbours gain nothing there, and took a point where they were often of other classes: what
  the answers say spreads along the same neighbours (docs/trainers.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from agcd.config import TrainConfig
from agcd.features.rows import RowFeatures
from agcd.features.store import Allocate
from agcd.training.fitted import frozen_features
from agcd.training.job import Outcome, TrainingJob
from agcd.training.nearest import nearest_rows
from agcd.training.simgcd import SimGCD
from agcd.types import IntArray


class SimGCDNN:
    """SimGCD with neighbours as views in base training."""

    reads = frozenset({"answers", "simgcd_nn"})

    def __init__(self, config: TrainConfig):
        self.config = config

    def fit(self, job: TrainingJob) -> Outcome:
        """Base training (``job.start`` is None) or one active round from ``job.start``."""
        if job.start is None:
            near = neighbours(job, self.config.simgcd_nn.n_neighbours)
            job = replace(job, features=NeighbourViews(job.features, near))
        return SimGCD(self.config).fit(job)


def neighbours(job: TrainingJob, k: int) -> IntArray:
    """The rows (n_rows, k') that may stand in for each row: its nearest, or itself where it must have no other."""
    rows, y_class = job.labels.train_rows, job.labels.y_class
    x = torch.from_numpy(frozen_features(job.features, rows, job.device)).to(job.device)
    near, _ = nearest_rows(x, k)
    own = np.arange(job.features.n_rows)[:, None]
    found = np.repeat(own, near.shape[1], 1)
    found[rows] = rows[near]
    said = y_class[:, None]
    return np.where((said >= 0) & (y_class[found] != said), own, found)


class NeighbourViews:
    """Features of which half of the views of a row are views of its neighbours; the test view is the row's own.

    Parameters
    ----------
    near : (n_rows, k) rows; with no column at all every view is the row's own.
    """

    def __init__(self, features: RowFeatures, near: IntArray) -> None:
        self._features, self._near = features, near
        self._n_own = features.n_views * max(1, near.shape[1])
        self.n_rows, self.dim = features.n_rows, features.dim
        self.n_views = self._n_own + features.n_views * near.shape[1]
        self.fingerprint = features.fingerprint

    @property
    def bad_rows(self) -> Mapping[int, str]:
        return self._features.bad_rows

    def read(self, rows: IntArray, views: IntArray, allocate: Allocate = np.empty) -> Tensor:
        return self._features.read(*self._shown(rows, views), allocate)

    def announce(self, rows: IntArray, views: IntArray) -> None:
        self._features.announce(*self._shown(rows, views))

    def new_tail(self) -> nn.Module:
        return self._features.new_tail()

    def _shown(self, rows: IntArray, views: IntArray) -> tuple[IntArray, IntArray]:
        """Which row and which view of it: own ones come first, each as often as there are neighbours."""
        shown, view = rows.copy(), views % self._features.n_views
        others = np.flatnonzero(views >= self._n_own)
        view[others], column = np.divmod(views[others] - self._n_own, max(1, self._near.shape[1]))
        shown[others] = self._near[rows[others], column]
        return shown, view
