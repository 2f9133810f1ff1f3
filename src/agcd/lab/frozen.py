"""The train rows of a cell as the pretrained network sees them, for what is judged without training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agcd.arrays import unit
from agcd.errors import ConfigError
from agcd.features.rows import RowFeatures
from agcd.lab.cells import Cell, load
from agcd.training.fitted import embed_rows
from agcd.types import FloatArray, IntArray


def check_frozen(cells: Sequence[Cell], cache_dir: Path) -> None:
    """Refuse images whose last blocks would be trained: their features are no vectors."""
    for cell in {cell.data: cell for cell in cells}.values():
        if cell.config.backbone.trainable_blocks and load(cell, cache_dir).dataset.paths is not None:
            raise ConfigError("Asking is judged on frozen features: add --set backbone.trainable_blocks=0.")


def frozen_features(features: RowFeatures, rows: IntArray) -> FloatArray:
    """Features of the test view of ``rows``, centred, at unit length: (n, d)."""
    x = embed_rows(features.new_tail().eval(), features, rows).numpy()
    return unit(x - x.mean(0))
