"""Features for benchmarks: random tokens in a real store on disk, in front of a real tail with random weights."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

# isort: split
import torch
from torch import Tensor, nn

from agcd.features.cuts import cut
from agcd.features.store import Allocate, FeatureStore
from agcd.types import IntArray

_SHARD = 128


class StoredTokens:
    """``RowFeatures`` over ``n_rows`` × ``n_views`` random crops of a ViT whose last block is trained."""

    def __init__(self, folder: Path, vit: Any, n_rows: int, n_views: int = 1) -> None:
        self.n_rows, self.n_views, self.dim = n_rows, n_views, int(vit.embed_dim)
        self.fingerprint = f"random-{n_rows}-{n_views}-{self.dim}"
        self.bad_rows: Mapping[int, str] = {}
        self._tail = cut(vit, 1).tail
        shape = (vit.patch_embed.num_patches + 2, self.dim)
        self.store = FeatureStore(folder, {"model": "random"}, shape)
        items = [(f"image-{row}", view) for row in range(n_rows) for view in range(n_views)]
        # random numbers take longer than the disk: a few thousand tokens are dealt out in ever new orders
        draw = np.random.default_rng(0)
        deck = draw.standard_normal((16 * shape[0], self.dim), dtype=np.float32).astype(np.float16)
        for start in range(0, len(items), _SHARD):
            part = items[start : start + _SHARD]
            self.store.add(part, deck[draw.integers(len(deck), size=(len(part), shape[0]))])
        self._places = self.store.locate(items).reshape(n_rows, n_views, 2)

    def read(self, rows: IntArray, views: IntArray, allocate: Allocate = np.empty) -> Tensor:
        return torch.from_numpy(self.store.gather(self._places[rows, views], allocate, torch.get_num_threads()))

    def announce(self, rows: IntArray, views: IntArray) -> None:
        self.store.announce(self._places[rows, views])

    def new_tail(self) -> nn.Module:
        return deepcopy(self._tail)
