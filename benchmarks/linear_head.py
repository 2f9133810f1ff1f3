"""For benchmarks: probabilities from features and a linear head, block by block, for a moment or into a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agcd.arrays import Float64Array, block_confidence_and_slot, check_metric, each_block, floats
from agcd.types import FloatArray, IntArray


@dataclass(frozen=True)
class Head:
    """A linear classifier: softmax((features @ weights.T + biases) / temperature)."""

    weights: FloatArray
    """(K, d)"""
    biases: FloatArray | None = None
    """(K,)"""
    temperature: float = 0.1

    def probs(self, features: FloatArray) -> FloatArray:
        """(n, d) → (n, K), in the precision of the features, float32 at least."""
        x = floats(features)
        out = x @ (self.weights / self.temperature).astype(x.dtype, copy=False).T
        if self.biases is not None:
            out += (self.biases / self.temperature).astype(x.dtype, copy=False)
        out -= out.max(1, keepdims=True)
        np.exp(out, out=out)
        out /= out.sum(1, keepdims=True)
        return np.asarray(out)


def judge_features(features: FloatArray, head: Head, metric: str = "margin") -> tuple[Float64Array, IntArray]:
    """How sure the head is of each item, and the slot it predicts, in one pass: (n, d) → (n,), (n,)."""
    check_metric(metric)
    sure, y_slot = np.empty(len(features)), np.empty(len(features), dtype=np.int64)

    def work(part: slice) -> None:
        sure[part], y_slot[part] = block_confidence_and_slot(head.probs(features[part]), metric)

    each_block(len(features), max(features.shape[1], len(head.weights)), work)
    return sure, y_slot


def save_probs(path: Path, features: FloatArray, head: Head) -> FloatArray:
    """Writes the probabilities (n, K) of all items to a ``.npy`` file in float32 and maps it for reading."""
    shape = (len(features), len(head.weights))
    file = np.lib.format.open_memmap(path, "w+", np.float32, shape)

    def work(part: slice) -> None:
        file[part] = head.probs(features[part])

    each_block(len(features), max(features.shape[1], len(head.weights)), work)
    file.flush()
    return np.asarray(np.load(path, mmap_mode="r"))
