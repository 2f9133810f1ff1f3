"""One SQLite file: opened, locked, read and added to. A store serves one thread at a time."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np

from agcd.app.store.classes import Registry, check_names, clean_class_name, fold_classes
from agcd.app.store.events import ANSWERS, CLASS_KINDS, LabelEvent, dead_ids
from agcd.app.store.schema import migrate
from agcd.errors import DataError, StorageError
from agcd.types import BoolArray, Quarantined

_BUSY_SECONDS = 30.0
_TURNS: dict[Path, threading.RLock] = {}
"""Threads of one process take turns at writing to a file. SQLite alone would let them sleep and look again: with four
that write without a pause, one in a hundred then waited for 0.2 to 0.4 seconds."""
_EVENT_COLUMNS = "id, uid, at, kind, row, class_id, who, source, query_id, round, group_id, payload"
_ANSWERS, _CLASS_KINDS = (", ".join(f"'{kind}'" for kind in kinds) for kinds in (ANSWERS, CLASS_KINDS))
_STANDS = "id NOT IN (SELECT event_id FROM dead)"
_LAST = f"AND {_STANDS} ORDER BY id DESC LIMIT 1"


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
        """Store ``events``, all or none, and return them as stored; one that is stored already is not stored again."""
        with self.transaction():
            stored = [self._append(event) for event in events]
            if any(event.kind == "void" for event in events):
                self._note_the_dead()
            if any(event.kind in (*CLASS_KINDS, "void") for event in events):
                check_names(self.registry())
            return stored

    def events(self, upto: int | None = None, after: int = 0) -> list[LabelEvent]:
        """All events in order, or those up to the one numbered ``upto``, or only those after another."""
        limit = 2**62 if upto is None else upto
        return self._events("WHERE id <= ? AND id > ? ORDER BY id", (limit, after))

    def knows(self, uid: str) -> bool:
        """Whether an event, or a group of them, with this uid is stored: then a request is a repeated one."""
        return bool(self.select("SELECT 1 FROM events WHERE uid = ? OR group_id = ? LIMIT 1", (uid, uid)))

    def last_answer(self, row: int, who: str) -> LabelEvent | None:
        """What ``who`` said last about ``row`` and has not taken back."""
        return next(iter(self._events(f"WHERE row = ? AND who = ? AND kind IN ({_ANSWERS}) {_LAST}", (row, who))), None)

    def last_action(self, who: str | None = None) -> list[LabelEvent]:
        """The last thing that a person, or ``who``, did and that still stands: one event, or all of its group."""
        people = "source IN ('human', 'import') AND kind NOT IN ('void', 'create')"
        last = self._events(f"WHERE {people} AND ?1 IN (who, '') {_LAST}", (who or "",))
        if last and last[0].group is not None:
            return self._events(f"WHERE group_id = ? AND {people} AND {_STANDS} ORDER BY id", (last[0].group,))
        return last

    def registry(self) -> Registry:
        """The classes as they are now."""
        return fold_classes(self._events(f"WHERE kind IN ({_CLASS_KINDS}) AND {_STANDS} ORDER BY id", ()))

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
        self._check(event)
        values = (
            *(event.uid, event.at, event.kind, event.row, event.class_id, event.who, event.source, event.query_id),
            *(event.round, event.group, json.dumps(event.payload, sort_keys=True, ensure_ascii=False)),
        )
        columns = _EVENT_COLUMNS.removeprefix("id, ")
        self.connection.execute(f"INSERT INTO events ({columns}) VALUES ({', '.join('?' * len(values))})", values)
        found = self._events("WHERE uid = ?", (event.uid,))
        if not found or not found[0].says_the_same(event):
            raise DataError(f"Event {event.uid!r} is already stored with other content.")
        return found[0]

    def _check(self, event: LabelEvent) -> None:
        """Refuse what would make no sense, before it is stored for ever."""
        if event.row is not None:
            self._check_row(event.row)
        elif event.kind in (*ANSWERS, "accept"):
            raise DataError(f"An answer of kind {event.kind!r} names no row.")
        if event.kind in ("create", "rename") and clean_class_name(event.payload["name"]) != event.payload["name"]:
            raise DataError(f"The class name {event.payload['name']!a} is not in its clean form.")
        if event.kind == "void":
            target = event.payload.get("target")
            if not self.knows(str(target)):
                raise DataError(f"There is no event or group {target!r} to undo.")
        if event.kind in ("label", "accept", "rename", "merge", "retire"):
            self._check_class(event.class_id)
        if event.kind == "merge":
            self._check_class(event.payload.get("into"))
            if event.payload["into"] == event.class_id:
                raise DataError("A class cannot be merged into itself.")

    def _check_row(self, row: int) -> None:
        known = self.select("SELECT is_test FROM rows WHERE row = ?", (row,))
        if not known:
            raise DataError(f"There is no row {row}.")
        if known[0][0]:
            raise DataError(f"Row {row} is for testing; it takes no answers.")

    def _check_class(self, class_id: str | None) -> None:
        if not self.select("SELECT 1 FROM events WHERE kind = 'create' AND class_id = ?", (class_id,)):
            raise DataError(f"There is no class with id {class_id!r}.")

    def _note_the_dead(self) -> None:
        """Write down which events are taken back; a view of the void events, for the statement that leases."""
        targets = "SELECT json_extract(payload, '$.target') FROM events WHERE kind = 'void'"
        concerned = self._events(
            f"WHERE kind = 'void' OR uid IN ({targets}) OR group_id IN ({targets}) ORDER BY id", ()
        )
        self.connection.execute("DELETE FROM dead")
        self.connection.executemany("INSERT INTO dead VALUES (?)", [(event_id,) for event_id in dead_ids(concerned)])

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
