"""Where files are decoded: small ones here, large and risky ones in worker processes with limits.

A worker has a limit of memory and of time, and it may die: a hostile file can exhaust either, or crash a C library.
Then that file is given up and the rest go on. Large pictures share one budget of memory, however many workers there
are. Workers import this module, so it stays free of torch.
"""

from __future__ import annotations

import ctypes
import logging
import multiprocessing
import os
import queue
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from agcd.data.images import MAX_DECODED_BYTES, RISKY_FORMATS, ImageError, header, read_file
from agcd.errors import DataError
from agcd.words import printable

log = logging.getLogger("agcd")

SMALL_BYTES = 48 * 2**20
"""Decoded, with all copies: twelve million pixels, as most cameras take. Smaller pictures need not wait for others."""
SMALL_FILE = 16 * 2**20
MAX_SCANS = 100
"""Of a progressive JPEG: encoders write about ten, and each may cost as much as decoding the whole picture."""
_UNIT = 32 * 2**20
_AHEAD_PER_WORKER = 4
"""Images that wait for each worker, so that none is idle; also the most that a dying one puts under suspicion."""
_SECONDS_PER_IMAGE = 60
_SPARE_BYTES = 256 * 2**20
"""Of memory that a worker may take beyond what decoding is estimated to."""
_DEATHS_IN_A_ROW = 3
"""So many in a row are no longer the fault of one file."""
_M_MMAP_THRESHOLD = -3
_starting = threading.Lock()
_shared: list[Budget] = []
"""In a worker: the budget that it shares with the others."""


class Task(NamedTuple):
    """A function that decodes the file at ``path``, and what it is called with."""

    path: Path
    draft_size: int
    function: Callable[..., Any]
    args: tuple[Any, ...]

    def run(self) -> Any:
        return self.function(*self.args)


class Budget:
    """Memory for large pictures, shared by threads or by the processes of a pool; who asks waits for room."""

    def __init__(self, kind: Any = threading, n_bytes: int = MAX_DECODED_BYTES) -> None:
        self._n_units = n_bytes // _UNIT
        self._units, self._turn = kind.Semaphore(self._n_units), kind.Lock()

    @contextmanager
    def held(self, n_bytes: int) -> Iterator[None]:
        n = min(self._n_units, -(-n_bytes // _UNIT))
        with self._turn:  # two that each hold a half of what they need would wait for ever
            for _ in range(n):
                self._units.acquire()
        try:
            yield
        finally:
            for _ in range(n):
                self._units.release()


class Decoder:
    """Runs tasks for any number of threads: small pictures in the thread, others in limited processes.

    The processes start when they are needed and end with this one.
    """

    def __init__(self, processes: int = 2) -> None:
        self._budget = Budget()
        self._idle: queue.SimpleQueue[_Process] = queue.SimpleQueue()
        for _ in range(processes):
            self._idle.put(_Process())

    def __call__(self, path: Path, draft_size: int, function: Callable[..., Any], *args: Any) -> Any:
        """``function(*args)``, which decodes the file at ``path`` at ``draft_size``; an ``ImageError`` if it cannot."""
        task = Task(path, draft_size, function, args)
        n_bytes = bytes_apart(task)
        if n_bytes == 0:
            return task.run()
        with self._budget.held(n_bytes):
            process = self._idle.get()
            try:
                return process.run(task)
            finally:
                self._idle.put(process)

    def close(self) -> None:
        """End the processes; the next large picture starts them again."""
        for _ in range(self._idle.qsize()):
            process = self._idle.get()
            process.close()
            self._idle.put(process)


class _Process:
    """One limited process that does one task at a time, so that a death names the file that caused it."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    def run(self, task: Task) -> Any:
        try:
            self._pool = self._pool or _pool(1)
            with _blank_main():
                future = self._pool.submit(_run_limited, task)
            result = future.result()
        except BrokenProcessPool:
            self.close()
            raise ImageError("its decoder died", task.path) from None
        if isinstance(result, ImageError):
            raise result
        return result

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        self._pool = None


def bytes_apart(task: Task) -> int:
    """What decoding takes in a process apart; 0 for small harmless pictures, and for what is refused anyway."""
    try:
        if (n_file := os.stat(task.path).st_size) > SMALL_FILE:
            return _large_bytes(task) + n_file
        facts = header(task.path, draft_size=task.draft_size)
        is_risky = facts.codec == "libtiff" or facts.format in RISKY_FORMATS
        is_risky = is_risky or (facts.is_progressive and _n_scans(task.path) > MAX_SCANS)
    except (OSError, ValueError, ImageError):
        return 0
    if facts.decoded_bytes > MAX_DECODED_BYTES:
        return 0
    return facts.decoded_bytes if is_risky or facts.decoded_bytes > SMALL_BYTES else 0


def _n_scans(path: Path) -> int:
    return read_file(path).count(b"\xff\xda")


def _large_bytes(task: Task) -> int:
    try:
        return header(task.path, draft_size=task.draft_size).decoded_bytes
    except ImageError:
        return 0


# ------------------------------------------------------------------------------------------------- many, in order


def in_order(tasks: Sequence[Task], workers: int, dead: Any) -> Iterator[Any]:
    """What every task gives, in the order given, from ``workers`` processes; ``dead`` for a file that kills them."""
    done = 0
    while done < len(tasks):
        try:
            for result in _pooled(tasks[done:], workers):
                yield result
                done += 1
        except BrokenProcessPool:
            suspects = tasks[done : done + workers * _AHEAD_PER_WORKER]
            log.warning("A decoding process died; trying %d files again one at a time.", len(suspects))
            yield from _one_by_one(suspects, dead)
            done += len(suspects)


def _one_by_one(tasks: Sequence[Task], dead: Any) -> Iterator[Any]:
    """Each task in a process of its own, so that a death names the file that caused it."""
    deaths = 0
    for task in tasks:
        try:
            (result,) = _pooled([task], 1)
            deaths = 0
        except BrokenProcessPool:
            deaths += 1
            if deaths == _DEATHS_IN_A_ROW:
                path = printable(str(task.path))
                raise DataError(
                    f"Decoding processes keep dying, the last one on {path}: is the machine short of memory?"
                ) from None
            result = dead
        yield result


def _pooled(tasks: Sequence[Task], workers: int) -> Iterator[Any]:
    pool = _pool(workers)
    waiting: deque[Future[Any]] = deque()
    try:
        for task in tasks:
            with _blank_main():
                waiting.append(pool.submit(_run_limited, task))
            if len(waiting) == workers * _AHEAD_PER_WORKER:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


# ------------------------------------------------------------------------------------------------ the processes


def _pool(workers: int) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")  # torch's threads do not survive a fork
    return ProcessPoolExecutor(workers, context, initializer=_prepare_worker, initargs=(Budget(context),))


@contextmanager
def _blank_main() -> Iterator[None]:
    """Hide the user's script while processes start: they would run it again, and need nothing of it."""
    with _starting:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main


def _prepare_worker(budget: Budget) -> None:
    """Leave Ctrl-C to the parent, end with the parent, and do not take all of the machine's memory."""
    _shared.append(budget)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    _return_memory()
    with suppress(ImportError, OSError, ValueError):  # other systems, or a limit that is lower already
        import resource

        limit = _address_space() + MAX_DECODED_BYTES + _SPARE_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _return_memory() -> None:
    """Let glibc give large blocks back as soon as they are free; by default it soon keeps blocks of Pillow's size."""
    with suppress(AttributeError, OSError, TypeError):  # other systems
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 2**20)


def _address_space() -> int:
    """What this process has reserved already: libraries reserve far more than they use, the more cores the more."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def end_with_parent() -> None:
    """End this worker of a pool when its parent is killed; otherwise it would work on and then wait for ever."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _run_limited(task: Task) -> Any:
    """Inside a worker: wait until there is room for a large picture; the alarm ends a decoder that hangs."""
    n_bytes = _large_bytes(task)
    if n_bytes <= SMALL_BYTES:
        return _run_in_time(task)
    with _shared[0].held(n_bytes):
        return _run_in_time(task)


def _run_in_time(task: Task) -> Any:
    alarm = getattr(signal, "alarm", lambda seconds: None)
    alarm(_SECONDS_PER_IMAGE)
    try:
        return task.run()
    except ImageError as error:
        # Not raised: until the next error the pool keeps what is, and the traceback would keep the pixels.
        return ImageError(error.reason, error.path)
    finally:
        alarm(0)
