"""The rounds of a cell as they are done, while other processes run it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agcd.io import read_json
from agcd.lab.cells import SO_FAR, Cell, records_path
from agcd.lab.results import Record

_LOOK_SECONDS = 0.5


@contextmanager
def watched(cell: Cell, out: Path, tell: Callable[[Record], None]) -> Iterator[None]:
    """Within it ``tell`` hears of every round of a cell, from a thread of its own, soon after it is done."""
    path, is_over = records_path(cell, out).with_name(SO_FAR), threading.Event()

    def watch() -> None:
        n_told, is_last = 0, False
        while not is_last:
            is_last = is_over.wait(_LOOK_SECONDS)  # before the look, so that the last round is seen
            for record in read_json(path)[n_told:] if path.exists() else []:
                tell(record)
                n_told += 1

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
