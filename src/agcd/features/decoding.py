"""Decode many files in worker processes, in order, with bounded memory; free of torch, as workers import it.

A worker may die: a hostile file can exhaust its memory limit, hang until the alarm, or crash a C library. Then
the files that were in flight are tried again one at a time, a file that kills its worker again is given up, and
the rest go on.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from agcd.errors import DataError
from agcd.features.views import Bad, ViewJob, ViewSpec, load_views

log = logging.getLogger("agcd")

Decoded = NDArray[np.uint8] | Bad
_AHEAD_PER_WORKER = 4
"""Images that wait for each worker, so that none is idle; also the most that a dying one puts under suspicion."""
_SECONDS_PER_IMAGE = 120
_MEMORY_LIMIT = 8 * 2**30
"""Far beyond what any honest image needs: beyond it a file counts as one that cannot be decoded."""
_DEATHS_IN_A_ROW = 3
"""So many in a row are no longer the fault of one file."""


def decoded(jobs: Sequence[ViewJob], spec: ViewSpec, workers: int) -> Iterator[tuple[ViewJob, Decoded]]:
    """Every job with its crops, in the order given; ``workers`` 0 decodes in this process."""
    if workers == 0:
        yield from ((job, load_views(job, spec)) for job in jobs)
        return
    done = 0
    while done < len(jobs):
        try:
            for crops in _pooled(jobs[done:], spec, workers):
                yield jobs[done], crops
                done += 1
        except BrokenProcessPool:
            suspects = jobs[done : done + workers * _AHEAD_PER_WORKER]
            log.warning("A decoding process died; trying %d files again one at a time.", len(suspects))
            yield from _one_by_one(suspects, spec)
            done += len(suspects)


def _one_by_one(jobs: Sequence[ViewJob], spec: ViewSpec) -> Iterator[tuple[ViewJob, Decoded]]:
    """Each job in a process of its own, so that a death names the file that caused it."""
    deaths = 0
    for job in jobs:
        crops: Decoded
        try:
            (crops,) = _pooled([job], spec, 1)
            deaths = 0
        except BrokenProcessPool:
            deaths += 1
            if deaths == _DEATHS_IN_A_ROW:
                raise DataError(
                    f"Decoding processes keep dying, the last one on {job.path}: is the machine short of memory?"
                ) from None
            crops = Bad("its decoder died twice", lasting=False)
        yield job, crops


def _pooled(jobs: Sequence[ViewJob], spec: ViewSpec, workers: int) -> Iterator[Decoded]:
    context = multiprocessing.get_context("spawn")  # torch's threads do not survive a fork
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_prepare_worker)
    waiting: deque[Future[Decoded]] = deque()
    try:
        for job in jobs:
            with _blank_main():
                waiting.append(pool.submit(work, job, spec))
            if len(waiting) == workers * _AHEAD_PER_WORKER:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _blank_main() -> Iterator[None]:
    """Hide the user's script while processes start: they would run it again, and need nothing of it."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _prepare_worker() -> None:
    """Leave Ctrl-C to the parent, end with the parent, and do not take all of the machine's memory."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    with suppress(ImportError, OSError, ValueError):  # other systems, or a limit that is lower already
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT, _MEMORY_LIMIT))


def end_with_parent() -> None:
    """End this worker of a pool when its parent is killed; otherwise it would work on and then wait for ever."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def work(job: ViewJob, spec: ViewSpec) -> Decoded:
    """``load_views`` inside a worker; the alarm ends a decoder that hangs."""
    alarm = getattr(signal, "alarm", lambda seconds: None)
    alarm(_SECONDS_PER_IMAGE)
    try:
        return load_views(job, spec)
    finally:
        alarm(0)
