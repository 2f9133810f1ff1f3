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
    device: str = "auto",
    progress: Callable[[int, int], None] | None = None,
    workers: int | None = None,
    fill: Fill | None = None,
) -> RowFeatures:
    """The features of every row, computed where they are missing.

    Parameters
    ----------
    dataset : images (``paths``), texts or embeddings (``x``)
    cache_dir : where stores live; embeddings and ``cache = "off"`` write nothing
    device : where they are computed (``Config.device``)
    progress : called with (items done, items in total); None shows a bar of images on a terminal
    workers : decoding processes; 0 decodes in this one, None chooses
    fill : computes what a store lacks, elsewhere perhaps (see ``agcd.engine``); None computes here
    """
    from agcd.features import rows

    if dataset.x is not None:
        return rows.EmbeddingRows(dataset.x, config.dropout)
    if dataset.texts is not None:
        from agcd.features.text_encoders import embedded, load_encoder

        encoder, stored_in = load_encoder(config, device), None if config.cache == "off" else cache_dir
        x = embedded(dataset, encoder, stored_in, progress)
        return rows.EmbeddingRows(x, config.dropout, encoder.fingerprint)
    if dataset.paths is None:
        raise DataError(f"Data set {dataset.name!r} holds neither images, texts nor embeddings.")
    from agcd.features.backbones import load_backbone

    backbone = load_backbone(config, device)
    if config.cache == "off":
        return rows.OnlineRows(dataset, backbone)
    return rows.open_stored(dataset, backbone, config.views, cache_dir, progress=progress, workers=workers, fill=fill)


def features_code(config: BackboneConfig) -> str | None:
    """A digest of the source of a backbone or an encoder from outside, for keys; None for agcd's own."""
    from agcd.features.backbones import BACKBONES
    from agcd.features.text_encoders import ENCODERS

    name, registries = config.name, (BACKBONES, ENCODERS)
    if any(name in registry.built_in for registry in registries):
        return None
    found = next((registry for registry in registries if ":" in name or name in registry.installed()), None)
    return None if found is None else found.code(name)
