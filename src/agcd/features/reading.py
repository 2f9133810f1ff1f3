"""Reading features batch by batch: the disk fetches the next ones meanwhile, and memory is used again.

A batch of cached tokens is tens of megabytes: fresh pages for each cost as much time as copying the tokens. No thread
reads ahead: on a CPU it would take a core from the training step. A GPU computes by itself, so there the next batch is
read and on its way while one is in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agcd.features.devices import CPU, pinned, sent
from agcd.features.rows import RowFeatures
from agcd.types import IntArray

Request = tuple[IntArray, IntArray]
"""Rows and their views."""


def read_in_turn(features: RowFeatures, requests: Iterable[Request], device: torch.device = CPU) -> Iterator[Tensor]:
    """``features.read`` of every (rows, views), in order, on the device; while one is in use the next comes nearer.

    What is yielded is good until the next one is asked for: on a CPU its memory is then read into again.
    """
    if device.type == "cpu":
        buffer = Buffer()
        return (features.read(*request, buffer) for request in _announced(features, requests))
    return _ahead(features, requests, device)


def _announced(features: RowFeatures, requests: Iterable[Request]) -> Iterator[Request]:
    """Every request, announced before the one in front of it is read."""
    announced = None
    for request in requests:
        features.announce(*request)
        if announced:
            yield announced
        announced = request
    if announced:
        yield announced


def _ahead(features: RowFeatures, requests: Iterable[Request], device: torch.device) -> Iterator[Tensor]:
    """Each batch is sent before the one in front of it is used, on a stream of its own where the device has some."""
    sender, coming = Sender(device), None
    for request in _announced(features, requests):
        following = sender.send(features.read(*request, sender.allocate))
        if coming is not None:
            yield sender.arrived(coming)
        coming = following
    if coming is not None:
        yield sender.arrived(coming)


class Sender:
    """Copies to a device beside what it computes."""

    def __init__(self, device: torch.device) -> None:
        self.device, self._module = device, torch.get_device_module(device)
        self._stream = self._module.Stream(device) if hasattr(self._module, "Stream") else None
        self.allocate = pinned if device.type == "cuda" else np.empty

    def send(self, values: Tensor) -> Tensor:
        """``values`` on the device, to be used once they have ``arrived``."""
        if self._stream is None or values.device == self.device:
            return sent(values, self.device)
        with self._module.stream(self._stream):
            return sent(values, self.device)

    def arrived(self, values: Tensor) -> Tensor:
        """``values`` for what the device computes from now on, which waits for them; the caller does not."""
        if self._stream is not None:
            current = self._module.current_stream(self.device)
            current.wait_stream(self._stream)
            values.record_stream(current)  # else their memory might be lent again while they are read
        return values


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
