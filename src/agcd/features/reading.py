"""Reading features while the ones before are in use, into memory that is used again.

A batch of cached tokens is tens of megabytes: fresh pages for each cost as much time as copying the tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from agcd.features.rows import RowFeatures
from agcd.types import IntArray


def read_ahead(features: RowFeatures, requests: Iterable[tuple[IntArray, IntArray]]) -> Iterator[Tensor]:
    """``features.read`` of every (rows, views), in order; while one is in use the next is read.

    What is yielded is good until the next one is asked for: its memory is then read into again.
    """
    waiting: Future[Tensor] | None = None
    buffers = cycle((Buffer(), Buffer()))
    with ThreadPoolExecutor(1, thread_name_prefix="agcd-read") as reader:
        for rows, views in requests:
            reading = reader.submit(features.read, rows, views, next(buffers))
            if waiting:
                yield waiting.result()
            waiting = reading
        if waiting:
            yield waiting.result()


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
