"""How much memory a program and all that it starts take together, read from /proc while they run."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


class Peak:
    """The largest sum of resident bytes that was seen of a process and its descendants."""

    def __init__(self) -> None:
        self.n_bytes = 0


@contextmanager
def watched(pid: int, every: float = 0.01) -> Iterator[Peak]:
    """Look at the tree below ``pid`` a hundred times a second; shared pages count once per process."""
    peak, ended = Peak(), threading.Event()

    def look() -> None:
        while not ended.wait(every):
            peak.n_bytes = max(peak.n_bytes, sum(map(_resident, _tree(pid))))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:  # it ended meanwhile
            continue
        for child in children:
            yield from _tree(int(child))


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0
