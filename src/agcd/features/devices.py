"""Where tensors live: a name becomes a device here and nowhere else.

A device of several is this process's own by LOCAL_RANK, as torchrun sets it for each of its processes and the local
engine for each of its workers, so that no two of them open the same one.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agcd.errors import ConfigError, TrainingError

log = logging.getLogger("agcd")

CPU = torch.device("cpu")
LOCAL_RANK = "LOCAL_RANK"


def find_device(name: str = "auto") -> torch.device:
    """The device of that name, made this process's own; ``auto`` is a GPU of CUDA where there is one, else the CPU."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"Unknown device {name!r}: auto, cpu, cuda, cuda:1 or mps is expected.") from None
    if device.type == "cpu":
        return CPU
    n = count_devices(device.type)
    if (device.index or 0) >= n:
        there = f"there {'is one' if n == 1 else f'are {n}'}, counted from 0" if n else "torch finds none of its kind"
        raise ConfigError(f"Device {name!r} is not here: {there}. Set device to one that is, or to cpu.")
    index = int(os.environ.get(LOCAL_RANK, 0)) % n if device.index is None else device.index
    device = torch.device(device.type, index)
    if device.type == "cuda":
        torch.cuda.set_device(device)  # else pinned memory and collectives would open the first one as well
    return device


def count_devices(kind: str) -> int:
    """How many devices of a type, as ``cuda``, torch reaches; asking opens none."""
    try:
        module = torch.get_device_module(kind)
    except RuntimeError:
        return 0
    return int(module.device_count()) if module.is_available() else 0


def free_bytes(device: torch.device) -> int:
    """How much of the device's memory nobody holds; 0 where it does not tell."""
    if device.type == "mps":
        return int(torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory())
    told = getattr(torch.get_device_module(device), "mem_get_info", None)
    return int(told(device)[0]) if told else 0


def sent(values: Tensor | NDArray[Any], device: torch.device) -> Tensor:
    """``values`` on the device. Nobody waits: a copy from pinned memory goes on while the caller does."""
    tensor = torch.from_numpy(values) if isinstance(values, np.ndarray) else values
    if tensor.device == device:
        return tensor
    if device.type == "cuda" and not tensor.is_pinned():
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def pinned(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Memory from which a GPU copies by itself; torch lends it again once that is done."""
    kind = torch.from_numpy(np.empty(0, dtype)).dtype
    return torch.empty(shape, dtype=kind, pin_memory=True).numpy()


def in_memory(tensor: Tensor) -> NDArray[Any]:
    """The numbers of a tensor, wherever it is, as an array."""
    return np.asarray(tensor.detach().cpu().numpy())


OutOfMemory = torch.OutOfMemoryError
"""What a device raises when a tensor does not fit; the CPU has no such thing."""


def empty_cache(device: torch.device) -> None:
    """Give back what torch keeps of the device's memory for later."""
    give_back = getattr(torch.get_device_module(device), "empty_cache", None)
    if give_back:
        give_back()


def in_smaller_passes(device: torch.device, what: str, n: int) -> int:
    """How many samples a pass may have after one of ``n`` was too many for the device's memory; half, and said so."""
    if n <= 1:
        raise TrainingError(f"The memory of {device} is too small for one sample of {what}: set device to cpu.")
    log.warning("The memory of %s is full: %s goes on in passes of %d.", device, what, n // 2)
    empty_cache(device)
    return n // 2


@contextmanager
def deterministic(device: torch.device, wanted: bool) -> Iterator[None]:
    """Operations with a form that gives the same bits every time take it; those without one warn."""
    if device.type == "cpu" or not wanted:  # on a CPU all that training uses is so
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # counts only before the first product
    before, warned = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warned)
