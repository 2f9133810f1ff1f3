"""Features: frozen prefixes computed once, and the trainable tails behind them.

Decoding workers import parts of this package, so torch is loaded only by what needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from agcd.config import BackboneConfig
from agcd.errors import DataError
from agcd.types import Dataset

if TYPE_CHECKING:
    from agcd.features.rows import Fill, RowFeatures


def open_features(
    dataset: Dataset,
    config: BackboneConfig,
    cache_dir: Path,
    *,
    progress: Callable[[int, int], None] | None = None,
    workers: int | None = None,
    fill: Fill | None = None,
) -> RowFeatures:
    """The features of every row, computed where they are missing.

    Parameters
    ----------
    dataset : images (``paths``) or embeddings (``x``)
    cache_dir : where stores live; embeddings and ``cache = "off"`` write nothing
    progress : called with (images done, images in total); None shows a bar on a terminal
    workers : decoding processes; 0 decodes in this one, None chooses
    fill : computes what a store lacks, elsewhere perhaps (see ``agcd.engine``); None computes here
    """
    from agcd.features import rows

    if dataset.x is not None:
        return rows.EmbeddingRows(dataset.x, config.dropout)
    if dataset.paths is None:
        raise DataError(f"Data set {dataset.name!r} holds neither images nor embeddings.")
    from agcd.features.backbones import load_backbone

    backbone = load_backbone(config)
    if config.cache == "off":
        return rows.OnlineRows(dataset, backbone)
    return rows.open_stored(dataset, backbone, config.views, cache_dir, progress=progress, workers=workers, fill=fill)
