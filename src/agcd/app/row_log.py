"""``RowLog``: the rows of one project, read once and again when the project has grown."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

from agcd.app.kinds import ItemKind
from agcd.app.store.seals import RESTORE
from agcd.app.store.store import Store
from agcd.errors import StorageError
from agcd.types import BoolArray


class Rows(NamedTuple):
    """By row: the content's key, the path as it is stored, and whether it is for testing."""

    keys: tuple[str, ...]
    paths: tuple[str, ...]
    is_test: BoolArray


class RowLog:
    """Follows the rows of one project, which are only ever added to. Several threads may ask it."""

    def __init__(self, store: Store, kind: ItemKind) -> None:
        self.rows, self.kind, self._lock = Rows(*store.rows()), kind, threading.Lock()
        self._contents: Sequence[str] | None = None

    def contents(self, store: Store) -> Sequence[str]:
        """What the rows hold, by row, as their kind understands it; "" of rows that are files."""
        if self._contents is None:
            with self._lock:
                if self._contents is None:
                    self._contents = read_contents(store, self.kind, self.rows.keys)
        return self._contents

    def follow(self, store: Store, n_rows: int) -> None:
        """Read the rows again where the events tell of more than are known."""
        if n_rows > len(self.rows.keys) and not store.connection.in_transaction:  # uncommitted ones may never be
            with self._lock:
                if n_rows > len(self.rows.keys):
                    rows = Rows(*store.rows())
                    if self._contents is not None:
                        self._contents = read_contents(store, self.kind, rows.keys)
                    self.rows = rows


def read_contents(store: Store, kind: ItemKind, keys: Sequence[str]) -> Sequence[str]:
    """What the rows hold; content that is not what was stored is an error."""
    found = store.contents() or [""] * len(keys)
    expected = kind.keys_of(found)
    if len(found) < len(keys) or (expected is not None and tuple(expected[: len(keys)]) != tuple(keys)):
        raise StorageError(f"{store.path} is damaged (the {kind.nouns} are not what was stored): {RESTORE}.")
    return found
