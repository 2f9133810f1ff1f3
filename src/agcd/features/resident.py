"""Features that fit into the memory of a device live there: a batch then costs a list of places and no copy."""

from __future__ import annotations

import logging

import numpy as np
import torch
from torch import Tensor, nn

from agcd.features.devices import OutOfMemory, empty_cache, free_bytes, sent
from agcd.features.rows import EmbeddingRows, RowFeatures, StoredRows
from agcd.features.store import Allocate
from agcd.types import IntArray

log = logging.getLogger("agcd")

SHARE = 0.5
"""Of the free memory that features may take: model, gradients and a batch need the rest."""
_COPY_BYTES = 64 * 2**20
"""Features sent at a time."""


def near(features: RowFeatures, device: torch.device) -> RowFeatures:
    """The features themselves on a CPU; on a device those that fit there, and live in memory or in a store."""
    if device.type == "cpu" or not isinstance(features, EmbeddingRows | StoredRows):
        return features
    rows, views = features.held()
    n_bytes = len(rows) * features.item_bytes
    if n_bytes > SHARE * free_bytes(device):
        return features
    try:
        found = DeviceRows(features, rows, views, device)
    except OutOfMemory:  # others may use the device as well
        empty_cache(device)
        return features
    log.info("the features are on %s, %.1f MB", device, n_bytes / 1e6)
    return found


class DeviceRows:
    """The features (``rows``, ``views``) of others, all on one device; what they do not hold reads as zeros."""

    def __init__(self, features: EmbeddingRows | StoredRows, rows: IntArray, views: IntArray, device: torch.device):
        self.n_rows, self.n_views, self.dim = features.n_rows, features.n_views, features.dim
        self.fingerprint, self.bad_rows = features.fingerprint, features.bad_rows
        self._features, self._device = features, device
        self._places = np.full((self.n_rows, self.n_views), len(rows), np.int64)
        self._places[rows, views] = np.arange(len(rows))
        self._values = _copied(features, rows, views, device)

    def read(self, rows: IntArray, views: IntArray, allocate: Allocate = np.empty) -> Tensor:
        return self._values.index_select(0, sent(self._places[rows, views], self._device))

    def announce(self, rows: IntArray, views: IntArray) -> None:
        """They are where they are used."""

    def new_tail(self) -> nn.Module:
        return self._features.new_tail()


def _copied(features: EmbeddingRows | StoredRows, rows: IntArray, views: IntArray, device: torch.device) -> Tensor:
    """The features on the device, and a row of zeros behind them."""
    step = max(1, _COPY_BYTES // features.item_bytes)
    one = features.read(rows[:1], views[:1])
    values = torch.zeros((len(rows) + 1, *one.shape[1:]), dtype=one.dtype, device=device)
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        values[start : start + len(rows[part])].copy_(sent(features.read(rows[part], views[part]), device))
    return values
