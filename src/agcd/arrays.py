"""Array steps that strategies, graph and discovery share: reading in blocks, ranking inside groups, distances."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from agcd.errors import ConfigError
from agcd.types import FloatArray, IntArray, PoolView

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


def thin(view: PoolView, max_candidates: int | None, budget: int, rng: np.random.Generator) -> PoolView:
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


def pair_squares(a: FloatArray, b: FloatArray) -> FloatArray:
    """Squared distances (n, m) of all pairs of rows; never negative."""
    square = np.einsum("ij,ij->i", a, a)[:, None] + np.einsum("ij,ij->i", b, b) - 2 * (a @ b.T)
    return np.asarray(np.maximum(square, 0), dtype=square.dtype)
