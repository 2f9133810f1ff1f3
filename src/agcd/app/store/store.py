"""One SQLite file: opened, locked, read and added to. A store serves one thread at a time."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from agcd.app.store.events import LabelEvent
from agcd.app.store.schema import migrate
from agcd.errors import DataError, StorageError
from agcd.types import BoolArray, Quarantined

_BUSY_SECONDS = 30.0
_TURNS: dict[Path, threading.RLock] = {}
"""Threads of one process take turns at writing to a file. SQLite alone would let them sleep and look again: with four
that write without a pause, one in a hundred then waited for 0.2 to 0.4 seconds."""
_EVENT_COLUMNS = "id, uid, at, kind, row, class_id, who, source, query_id, round, group_id, payload"
_COLUMNS = _EVENT_COLUMNS.removeprefix("id, ")
_INSERT = f"INSERT INTO events ({_COLUMNS}) VALUES ({', '.join('?' * 11)}) RETURNING id"


class Store:
    """The records of a project; opening brings an older file up to date."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        if not create and not path.is_file():
            raise StorageError(f"There are no records at {path}.")
        self.path = path
        self._turn = _TURNS.setdefault(path.absolute(), threading.RLock())
        with self._told():
            self.connection = sqlite3.connect(
                path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        try:
            with self._told():
                for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
                    self.connection.execute(f"PRAGMA {pragma}")
                migrate(self.connection, path)
        except BaseException:
            self.connection.close()
            raise

    def close(self) -> None:
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, and nobody else writes meanwhile; inside another transaction it is part of that one."""
        with self._turn, self._told():
            if self.connection.in_transaction:
                yield
                return
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    def add_rows(self, keys: Sequence[str], paths: Sequence[str], is_test: BoolArray) -> None:
        """Number the items 0, 1, …; done once, when a project is made."""
        rows = zip(range(len(keys)), keys, paths, is_test.tolist(), strict=True)
        with self.transaction():
            self.connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", rows)

    def rows(self) -> tuple[tuple[str, ...], tuple[str, ...], BoolArray]:
        """Content keys, paths and which rows are for testing, each by row."""
        keys: list[str] = []
        paths: list[str] = []
        is_test: list[int] = []
        with self._told():
            # Row by row: a list of a million tuples would be thrown away at once.
            for key, path, test in self.connection.execute("SELECT key, path, is_test FROM rows ORDER BY row"):
                keys.append(key)
                paths.append(path)
                is_test.append(test)
        return tuple(keys), tuple(paths), np.asarray(is_test, dtype=np.bool_)

    def add_quarantine(self, refused: Iterable[Quarantined]) -> None:
        with self.transaction():
            self.connection.executemany("INSERT INTO quarantine VALUES (?, ?)", [(q.path, q.reason) for q in refused])

    def quarantine(self) -> list[Quarantined]:
        return [Quarantined(*found) for found in self.select("SELECT path, reason FROM quarantine")]

    def append(self, events: Sequence[LabelEvent]) -> list[LabelEvent]:
        """Store ``events``, all or none, and return them as stored; one that is stored already is not stored again.

        Whether they make sense is not asked here: ``agcd.app.label_log.LabelLog.append`` does.
        """
        with self.transaction():
            return [self._append(event) for event in events]

    def events(self, after: int = 0) -> list[LabelEvent]:
        """All events in order, or only those after the one numbered ``after``."""
        return self._events("WHERE id > ? ORDER BY id", (after,))

    def knows(self, uid: str) -> bool:
        """Whether an event, or a group of them, with this uid is stored: then a request is a repeated one."""
        return bool(self.select("SELECT 1 FROM events WHERE uid = ? OR group_id = ? LIMIT 1", (uid, uid)))

    def begin_run(self, number: int) -> int:
        """The last event that run ``number`` knows of: fixed by the first call, so a resumed run learns the same."""
        with self.transaction():
            self.connection.execute("INSERT OR IGNORE INTO runs SELECT ?, coalesce(max(id), 0) FROM events", (number,))
        return self.runs()[number]

    def runs(self) -> dict[int, int]:
        """The runs that have been begun, each with the last event that it knows of."""
        return dict(self.select("SELECT number, last_event FROM runs ORDER BY number"))

    def select(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        with self._told():
            return self.connection.execute(statement, values).fetchall()

    def _append(self, event: LabelEvent) -> LabelEvent:
        values = (
            *(event.uid, event.at, event.kind, event.row, event.class_id, event.who, event.source, event.query_id),
            *(event.round, event.group, json.dumps(event.payload, sort_keys=True, ensure_ascii=False)),
        )
        # The trigger events_come_once lets a known uid pass without a trace: then no id comes back.
        made = self.connection.execute(_INSERT, values).fetchone()
        if made is not None:
            return replace(event, id=made[0])
        found = self._events("WHERE uid = ?", (event.uid,))
        if not found or not found[0].says_the_same(event):
            raise DataError(f"Event {event.uid!r} is already stored with other content.")
        return found[0]

    def _events(self, where: str, values: Sequence[Any]) -> list[LabelEvent]:
        return [_event(found) for found in self.select(f"SELECT {_EVENT_COLUMNS} FROM events {where}", values)]

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Whatever SQLite complains about, in one sentence."""
        try:
            yield
        except sqlite3.IntegrityError as error:
            raise DataError(f"{self.path} refused a record: {' '.join(str(error).split())}.") from error
        except sqlite3.Error as error:
            raise StorageError(f"{self.path} cannot be used: {error}.") from error


def _event(found: tuple[Any, ...]) -> LabelEvent:
    id_, uid, at, kind, row, class_id, who, source, query_id, round_, group, payload = found
    return LabelEvent(
        kind, who, source, row, class_id, query_id, round_, group, json.loads(payload), uid=uid, at=at, id=id_
    )
