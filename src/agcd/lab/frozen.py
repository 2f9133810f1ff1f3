"""The train rows of a cell as the pretrained network sees them, for what is judged without training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from agcd.data.splits import truth_in_split_order
from agcd.errors import ConfigError
from agcd.features import open_features
from agcd.lab.cells import Cell, Loaded, load
from agcd.training.fitted import frozen_features
from agcd.types import FloatArray, IntArray


def check_frozen(cells: Sequence[Cell], cache_dir: Path) -> None:
    """Refuse images whose last blocks would be trained: their features are no vectors."""
    for cell in {cell.data: cell for cell in cells}.values():
        if cell.config.backbone.trainable_blocks and load(cell, cache_dir).dataset.paths is not None:
            raise ConfigError("Asking is judged on frozen features: add --set backbone.trainable_blocks=0.")


def frozen_train_rows(cell: Cell, loaded: Loaded, cache_dir: Path) -> tuple[IntArray, FloatArray, IntArray]:
    """The readable train rows of a cell, their features and their classes: (n,), (n, d), (n,)."""
    features = open_features(loaded.dataset, cell.config.backbone, cache_dir, device=cell.config.device)
    rows = np.setdiff1d(loaded.labels.train_rows, list(features.bad_rows))
    return rows, frozen_features(features, rows), truth_in_split_order(loaded.dataset, loaded.split)[rows]
