"""Array steps that strategies, propagation, metrics and training share.

Reading in blocks, ranking inside groups, distances, and how sure a model is of each item. The scores of sureness read
probabilities once, in blocks, and are float64, so that float16 and memory-mapped arrays give the same order as any
other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from agcd.errors import ConfigError, did_you_mean
from agcd.types import BoolArray, FloatArray, IntArray, PoolView

Float64Array = NDArray[np.float64]

BLOCK_ENTRIES = 1 << 17
"""Numbers per block: one megabyte in float64, which stays in the processor's cache between two uses."""
BLOCKS_WORTH_THREADS = 64
"""Fewer blocks are done before threads have started."""


def blocks(n: int, width: int, entries: int | None = None) -> Iterator[slice]:
    """Slices that cover ``range(n)``, each of about ``entries`` numbers when one item has ``width``.

    ``BLOCK_ENTRIES`` of them if nothing else is said.
    """
    step = max(1, (entries or BLOCK_ENTRIES) // max(1, width))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def entries_of(indptr: IntArray, rows: IntArray) -> IntArray:
    """Where the entries of some rows of a sparse matrix lie, row by row."""
    first = indptr[rows].astype(np.int64)
    n_entries = indptr[rows + 1] - first
    return np.asarray(np.repeat(first - (np.cumsum(n_entries) - n_entries), n_entries) + np.arange(n_entries.sum()))


def each_block(n: int, width: int, work: Callable[[slice], None]) -> None:
    """Calls ``work`` on every slice of ``blocks(n, width)``, several at a time when there are many.

    Each call may write only to its own slice of a result, so the number of threads changes nothing. The matrix
    products inside run on one thread each: two layers of threads would wait for each other.
    """
    parts = list(blocks(n, width))
    n_threads = thread_count()
    if n_threads == 1 or len(parts) < BLOCKS_WORTH_THREADS:
        for part in parts:
            work(part)
        return
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # comes with scikit-learn

    waiting = iter(parts)

    def take_turns() -> None:
        for part in waiting:
            work(part)

    with threadpool_limits(1, "blas"), ThreadPoolExecutor(n_threads) as threads:
        for done in [threads.submit(take_turns) for _ in range(n_threads)]:
            done.result()


def thread_count() -> int:
    """As many threads as processors, or what ``OMP_NUM_THREADS`` allows."""
    allowed, processors = os.environ.get("OMP_NUM_THREADS", ""), os.cpu_count() or 1
    return max(1, min(int(allowed), processors)) if allowed.isdigit() else processors


def subsample(view: PoolView, max_candidates: int | None, budget: int, rng: np.random.Generator) -> PoolView:
    """A view of ``max_candidates`` rows of the pool drawn at random; the view itself when it has no more (or None).

    Never fewer than the budget. What is drawn is copied into memory.
    """
    if max_candidates is None:
        return view
    if max_candidates < 1:
        raise ConfigError(f"max_candidates is {max_candidates}; it must be at least 1.")
    most = max(max_candidates, budget)
    if len(view.rows) <= most:
        return view
    kept = np.sort(rng.choice(len(view.rows), most, replace=False))
    return replace(view, rows=view.rows[kept], probs=view.probs[kept], features=view.features[kept])


def lowest(score: np.ndarray[Any, Any], count: int) -> IntArray:
    """Positions of the ``count`` lowest scores, lowest first, ties by position: (n,) → (count,).

    The same as the start of a stable sort, without sorting the rest.
    """
    if count >= len(score):
        return np.argsort(score, kind="stable")
    within = np.flatnonzero(score <= np.partition(score, count - 1)[count - 1])
    return within[np.argsort(score[within], kind="stable")[:count]]


def rank_within(group: IntArray, score: np.ndarray[Any, Any]) -> IntArray:
    """The place (0, 1, …) of each item among its own group, lowest score first, ties by position.

    Parameters
    ----------
    group : shape (n,), any integers
    score : shape (n,)
    """
    order = np.lexsort((score, group))
    place = np.arange(len(group))
    is_first = np.ones(len(group), dtype=bool)
    is_first[1:] = group[order][1:] != group[order][:-1]
    rank = np.empty(len(group), dtype=np.int64)
    rank[order] = place - np.maximum.accumulate(np.where(is_first, place, 0))
    return rank


def unit(x: FloatArray) -> FloatArray:
    """Rows brought to length one, in float32 at least; zero rows stay zero: (n, d) → (n, d)."""
    x = floats(x)
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return np.asarray(x / np.where(length > 0, length, 1), dtype=x.dtype)


def floats(x: FloatArray) -> FloatArray:
    """In the precision given, in float32 at least."""
    return np.asarray(x, dtype=np.result_type(x.dtype, np.float32))


def squared_distances(a: FloatArray, b: FloatArray) -> FloatArray:
    """Squared Euclidean distances (n, m) of all pairs of rows, by one matrix product; never negative."""
    square = np.einsum("ij,ij->i", a, a)[:, None] + np.einsum("ij,ij->i", b, b) - 2 * (a @ b.T)
    return np.asarray(np.maximum(square, 0), dtype=square.dtype)


def msp_of(probs: FloatArray) -> Float64Array:
    """The largest probability of each item: (n, K) → (n,)."""
    return confidence_and_slot(probs, "msp")[0]


def margin_of(probs: FloatArray) -> Float64Array:
    """The largest minus the second largest probability: (n, K) → (n,); with one slot, the only one there is."""
    return confidence_and_slot(probs, "margin")[0]


def entropy_of(probs: FloatArray) -> Float64Array:
    """−Σ p log p in nats, with 0 log 0 = 0: (n, K) → (n,)."""
    return np.asarray(-confidence_and_slot(probs, "entropy")[0])


def confidence_of(probs: FloatArray, metric: str) -> Float64Array:
    """How sure the model is of each item, by ``metric`` (margin, msp or entropy): (n, K) → (n,)."""
    return confidence_and_slot(probs, metric)[0]


def confidence_and_slot(probs: FloatArray, metric: str) -> tuple[Float64Array, IntArray]:
    """How sure the model is of each item and the slot it predicts, read in one pass: (n, K) → (n,), (n,)."""
    check_metric(metric)
    sure, y_slot = np.empty(len(probs)), np.empty(len(probs), dtype=np.int64)

    def work(part: slice) -> None:
        sure[part], y_slot[part] = block_confidence_and_slot(np.array(floats(probs[part])), metric)

    each_block(len(probs), probs.shape[1], work)
    return sure, y_slot


def check_metric(metric: str) -> None:
    """Refuses a metric that does not exist, in one sentence."""
    if metric not in CONFIDENCE:
        raise ConfigError(f"Unknown metric {metric!r}.{did_you_mean(metric, CONFIDENCE)}")


def block_confidence_and_slot(p: FloatArray, metric: str) -> tuple[Float64Array, IntArray]:
    """``confidence_and_slot`` for one block that is not needed afterwards: its entries are overwritten."""
    y_slot = p.argmax(1)
    return CONFIDENCE[metric](p, y_slot), y_slot


def calibration_error(probs: FloatArray, correct: BoolArray, n_bins: int = 15) -> float:
    """Expected calibration error: the gap between confidence and accuracy, averaged over equal-width bins.

    Parameters
    ----------
    probs : shape (n, n_slots)
    correct : shape (n,)
        Whether the most probable slot is right. NaN when n = 0.
    """
    if not len(probs):
        return float("nan")
    top = msp_of(probs)
    # bins are open below and closed above: a probability of exactly 1 is in the last one
    bin_of = np.clip(np.ceil(top * n_bins).astype(np.int64) - 1, 0, n_bins - 1)
    gap = np.bincount(bin_of, weights=top - np.asarray(correct), minlength=n_bins)
    return float(np.abs(gap).sum() / len(top))


def _msp(p: FloatArray, y_slot: IntArray) -> Float64Array:
    return p[np.arange(len(p)), y_slot].astype(np.float64)


def _margin(p: FloatArray, y_slot: IntArray) -> Float64Array:
    """Two searches for a largest number are several times faster than a partition of every line."""
    top = _msp(p, y_slot)
    if p.shape[1] == 1:
        return top
    p[np.arange(len(p)), y_slot] = -np.inf
    return np.asarray(top - p.max(1))


def _negative_entropy(p: FloatArray, y_slot: IntArray) -> Float64Array:
    return np.asarray(-entr(p.astype(np.float64, copy=False)).sum(1))


CONFIDENCE: MappingProxyType[str, Callable[[FloatArray, IntArray], Float64Array]] = MappingProxyType(
    {"margin": _margin, "msp": _msp, "entropy": _negative_entropy}
)
"""Metric name → score of a block that is higher the surer the model is."""
