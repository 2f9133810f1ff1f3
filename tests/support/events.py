"""Small records for tests, and short ways to say things in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from agcd.app.label_log import LabelLog
from agcd.app.store.events import LabelEvent
from agcd.app.store.store import Store


def open_store(path: Path, n_rows: int = 6) -> Store:
    """Records with ``n_rows`` rows, the last one for testing, and one class."""
    store = Store(path, create=True)
    keys, paths = ([f"{what} {row}" for row in range(n_rows)] for what in ("key", "path"))
    store.add_rows(keys, paths, np.arange(n_rows) == n_rows - 1)
    store.append([create("cat")])
    return store


def open_log(n_rows: int = 6) -> LabelLog:
    """A log for the rows of ``open_store``."""
    return LabelLog(np.arange(n_rows) == n_rows - 1)


def create(name: str, class_id: str | None = None) -> LabelEvent:
    payload = {"name": name, "old": False}
    return LabelEvent("create", "ann", "human", class_id=class_id or f"id of {name}", payload=payload)


def label(row: int, name: str = "cat", **values: Any) -> LabelEvent:
    return LabelEvent("label", values.pop("who", "ann"), "human", row=row, class_id=f"id of {name}", **values)


def void(target: str) -> LabelEvent:
    return LabelEvent("void", "ann", "human", payload={"target": target})


def merge(name: str, into: str) -> LabelEvent:
    return LabelEvent("merge", "ann", "human", class_id=f"id of {name}", payload={"into": f"id of {into}"})


def rename(name: str, new: str) -> LabelEvent:
    return LabelEvent("rename", "ann", "human", class_id=f"id of {name}", payload={"name": new})
