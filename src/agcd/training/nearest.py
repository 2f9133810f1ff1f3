"""The nearest rows of features that may be on a device."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from agcd.arrays import blocks, unit
from agcd.features.devices import in_memory
from agcd.propagation import EXACT_ROWS, nearest
from agcd.types import FloatArray, IntArray

_PRODUCTS_AT_ONCE = 1 << 26
"""Cosines that a device holds at a time: a quarter of a gigabyte."""


def nearest_rows(x: Tensor, k: int) -> tuple[IntArray, FloatArray]:
    """The ``k`` rows with the largest cosine to each row of unit length, without itself: (n, d) → (n, k), (n, k).

    A device looks among all rows however many there are; up to ``EXACT_ROWS`` the CPU has done so before they are sent.
    """
    k = min(k, len(x) - 1)
    if x.device.type == "cpu" or len(x) <= EXACT_ROWS:
        return nearest(unit(in_memory(x)), k)
    near, cosine = [], []
    for part in blocks(len(x), len(x), _PRODUCTS_AT_ONCE):
        similar = x[part] @ x.T
        similar.diagonal(part.start).fill_(-torch.inf)
        found = similar.topk(k, dim=1)
        near.append(in_memory(found.indices))
        cosine.append(in_memory(found.values))
    return np.concatenate(near), np.concatenate(cosine)
