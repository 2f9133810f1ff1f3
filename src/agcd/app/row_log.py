"""``RowLog``: the rows of one project, read once and again when the project has grown."""

from __future__ import annotations

import threading
from typing import NamedTuple

from agcd.app.store.store import Store
from agcd.types import BoolArray


class Rows(NamedTuple):
    """By row: the content's key, the path as it is stored, and whether it is for testing."""

    keys: tuple[str, ...]
    paths: tuple[str, ...]
    is_test: BoolArray


class RowLog:
    """Follows the rows of one project, which are only ever added to. Several threads may ask it."""

    def __init__(self, store: Store) -> None:
        self.rows, self._lock = Rows(*store.rows()), threading.Lock()

    def follow(self, store: Store, n_rows: int) -> None:
        """Read the rows again where the events tell of more than are known."""
        if n_rows > len(self.rows.keys) and not store.connection.in_transaction:  # uncommitted ones may never be
            with self._lock:
                if n_rows > len(self.rows.keys):
                    self.rows = Rows(*store.rows())
