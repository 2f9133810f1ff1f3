"""Inputs of the selection benchmark, made block by block, and how time and memory are measured."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from agcd.types import FloatArray, PoolView
from linear_head import Head, save_probs

T = TypeVar("T")
ROWS_AT_ONCE = 10_000


def make_inputs(folder: Path, n: int, n_slots: int, width: int, seed: int = 0) -> None:
    """Writes features (n, d), prototypes (K, d) and probabilities (n, K) in float32 to ``folder``.

    Unit features around K directions, each row with a distance of its own from its direction.
    """
    rng = np.random.default_rng(seed)
    prototypes = rng.standard_normal((n_slots, width), dtype=np.float32)
    prototypes /= np.linalg.norm(prototypes, axis=1, keepdims=True)
    np.save(folder / "prototypes.npy", prototypes)
    features = np.lib.format.open_memmap(folder / "features.npy", "w+", np.float32, (n, width))
    for start in range(0, n, ROWS_AT_ONCE):
        features[start : start + ROWS_AT_ONCE] = around(prototypes, min(ROWS_AT_ONCE, n - start), rng)
    features.flush()
    save_probs(folder / "probs.npy", features, Head(prototypes))


def around(prototypes: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Unit rows (n, d) around the prototypes (K, d)."""
    noise = rng.standard_normal((n, prototypes.shape[1]), dtype=np.float32) / np.float32(prototypes.shape[1] ** 0.5)
    noise *= rng.uniform(0.5, 1.5, (n, 1)).astype(np.float32)
    x = prototypes[rng.integers(0, len(prototypes), n)] + noise
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def open_view(folder: Path, n: int | None = None, n_labelled: int = 2000) -> PoolView:
    """The first ``n`` rows of the mapped pool, with labelled rows around the prototypes of the old half."""
    features, probs = np.load(folder / "features.npy", mmap_mode="r"), np.load(folder / "probs.npy", mmap_mode="r")
    prototypes = np.load(folder / "prototypes.npy")
    rng, n_old = np.random.default_rng(1), len(prototypes) // 2
    n = len(features) if n is None else n
    return PoolView(
        np.arange(n),
        probs[:n],
        features[:n],
        around(prototypes[:n_old], n_labelled, rng) if n_labelled else np.empty((0, features.shape[1]), np.float32),
        rng.integers(0, n_old, n_labelled),
        n_old,
        slot_weights=prototypes,
    )


def in_memory(n: int, n_slots: int, width: int, n_labelled: int = 0, seed: int = 0) -> PoolView:
    """A smaller pool of the same kind, without files."""
    rng = np.random.default_rng(seed)
    prototypes = around(rng.standard_normal((n_slots, width), dtype=np.float32), n_slots, rng)
    features = around(prototypes, n, rng)
    slots = rng.integers(0, n_slots // 2, n_labelled)
    known = around(prototypes, n_labelled, rng)
    return PoolView(np.arange(n), Head(prototypes).probs(features), features, known, slots, n_slots // 2)


def timed(call: Callable[[], T]) -> tuple[T, float]:
    """The result and the seconds it took."""
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


class PeakMemory:
    """The most anonymous memory, in bytes, that this process held inside ``with``, above what it held before.

    Pages of mapped files are not counted: they are the input, and the system may drop them at any time.
    """

    def __enter__(self) -> PeakMemory:
        self.before = self.most = anonymous_bytes()
        self._done = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._done.wait(0.01):
            self.most = max(self.most, anonymous_bytes())

    @property
    def peak(self) -> int:
        return self.most - self.before


def anonymous_bytes() -> int:
    """RssAnon of this process; zero where there is no /proc."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0)
