"""Reading features batch by batch: the disk fetches the next ones meanwhile, and memory is used again.

A batch of cached tokens is tens of megabytes: fresh pages for each cost as much time as copying the tokens. No thread
reads ahead: it would take a core from the training step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from agcd.features.rows import RowFeatures
from agcd.types import IntArray


def read_in_turn(features: RowFeatures, requests: Iterable[tuple[IntArray, IntArray]]) -> Iterator[Tensor]:
    """``features.read`` of every (rows, views), in order; while one is in use the disk fetches the next.

    What is yielded is good until the next one is asked for: its memory is then read into again.
    """
    buffer, announced = Buffer(), None
    for request in requests:
        features.announce(*request)
        if announced:
            yield features.read(*announced, buffer)
        announced = request
    if announced:
        yield features.read(*announced, buffer)


class Buffer:
    """Memory that grows to the largest array asked of it and is lent again and again."""

    def __init__(self) -> None:
        self._memory = np.empty(0, dtype=np.uint8)

    def __call__(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        n_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if n_bytes > len(self._memory):
            self._memory = np.empty(n_bytes, dtype=np.uint8)
        lent: NDArray[Any] = self._memory[:n_bytes].view(dtype).reshape(shape)
        return lent
