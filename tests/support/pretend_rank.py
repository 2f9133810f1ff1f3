"""A training process on a pretended device of its own: ``torchrun … -m support.pretend_rank [RUN_DIR/torchrun]``.

As on GPUs, but for what sends: gloo in the place of NCCL, which no CPU has. What NCCL refuses is refused here as well.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils import _pytree as pytree

from agcd.engine import rank
from agcd.features.devices import LOCAL_RANK, find_device
from support.pretend_device import DEVICE, NAME, pretend_device


def as_nccl(collective: Callable[..., Any]) -> Callable[..., Any]:
    """A call of ``torch.distributed`` that takes what NCCL takes: dense tensors in the memory of the device."""

    def checked(*arguments: Any) -> Any:
        for leaf in pytree.tree_leaves(arguments):
            if isinstance(leaf, Tensor) and leaf.device.type != NAME:
                raise RuntimeError(f"No backend type associated with device type {leaf.device.type}")
            if isinstance(leaf, Tensor) and not leaf.is_contiguous():
                raise ValueError("Tensors must be contiguous")
        return collective(*arguments)

    return checked


def own_device(name: str) -> torch.device:
    """Torch's backward pass knows one pretended device: each process computes on its own under the name of that."""
    assert find_device(name) == torch.device(NAME, int(os.environ[LOCAL_RANK]))
    return DEVICE


if __name__ == "__main__":
    sends = ("all_gather", "all_reduce", "broadcast")
    collectives: dict[str, Any] = {name: as_nccl(getattr(dist, name)) for name in sends}
    with (
        patch.multiple(dist, **collectives),
        patch.multiple(rank, backend_of=lambda device: "gloo", find_device=own_device),
        pretend_device(),
    ):
        rank.main(sys.argv[1:])
