"""Small Gaussian blobs with a label state: enough to train on in a second."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agcd.config import Config, make_config
from agcd.features.rows import EmbeddingRows
from agcd.run_store import NumberedRuns
from agcd.session import Session
from agcd.types import IntArray, LabelState

FAST: dict[str, Any] = {
    "base_epochs": 3,
    "round_epochs": 2,
    "batch_size": 32,
    "projector_width": 16,
    "projector_dim": 8,
}


@dataclass(frozen=True)
class Blobs:
    features: EmbeddingRows
    labels: LabelState
    truth: IntArray

    def names(self, rows: IntArray) -> list[str]:
        return [f"class {c}" for c in self.truth[rows]]


def make_blobs(n_classes: int = 6, n_old: int = 3, per_class: int = 20, seed: int = 0, ratio: float = 0.3) -> Blobs:
    """Well separated classes; a share of the old ones' rows is labelled, at least one per old class."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_classes, 8)) * 3
    truth = np.repeat(np.arange(n_classes), per_class)
    x = centres[truth] + rng.normal(size=(len(truth), 8))
    labelled = (truth < n_old) & (rng.random(len(truth)) < ratio)
    labelled[np.arange(n_old) * per_class] = ratio > 0
    y_class = np.where(labelled, truth, -1)
    nothing = np.zeros(len(truth), bool)
    classes = tuple(f"class {c}" for c in range(n_old))
    state = LabelState(classes, n_old, y_class, np.where(labelled, 0, -1), nothing, nothing)
    return Blobs(EmbeddingRows(x, dropout=0.1), state, truth)


def fast_config(seed: int = 0, query: dict[str, Any] | None = None, **train: Any) -> Config:
    return make_config({"seed": seed, "train": {**FAST, **train}, "query": query or {}})


def make_session(blobs: Blobs, folder: Path, config: Config | None = None, n_slots: int = 6) -> Session:
    return Session(blobs.features, blobs.labels, config or fast_config(), n_slots, NumberedRuns(folder))


def work_through(folder: Path) -> str:
    """Three rounds of a session, from wherever it was broken off; the id of the last model."""
    blobs = make_blobs()
    session = make_session(blobs, folder, fast_config(base_epochs=6, round_epochs=6))
    for _ in range(3):
        session.train()
        query = session.ask()
        session.tell(query.rows, blobs.names(query.rows))
    return session.latest.fitted.model_id
