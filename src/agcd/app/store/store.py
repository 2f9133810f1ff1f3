"""One SQLite file: opened, locked, read and added to. A store serves one thread at a time."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from agcd.app.store.connecting import Connected, connect
from agcd.app.store.events import LabelEvent
from agcd.app.store.schema import migrate
from agcd.app.store.seals import (
    RESTORE,
    check_last_event,
    digest_of_rows,
    read_last_event,
    seal_of,
    write_last_event,
)
from agcd.errors import DataError, StorageError
from agcd.io import digest
from agcd.types import BoolArray, Quarantined

_ROWS = "rows"
"""The name of the digest over all rows."""
_TURNS: dict[Path, threading.RLock] = {}
"""Threads of one process take turns at writing to a file. SQLite alone would let them sleep and look again: with four
that write without a pause, one in a hundred then waited for 0.2 to 0.4 seconds."""
_EVENT_COLUMNS = "id, uid, at, kind, row, class_id, who, source, query_id, round, group_id, payload, seal"
_COLUMNS = _EVENT_COLUMNS.removeprefix("id, ")
_INSERT = f"INSERT INTO events ({_COLUMNS}) VALUES ({', '.join('?' * 12)}) RETURNING id"


class Store:
    """The records of a project; opening brings an older file up to date. ``create`` makes a new one.

    Where nothing may be written, an older file and answers that were not yet moved into it (``project.db-wal``) are
    read from a copy.
    """

    def __init__(self, path: Path, *, create: bool = False) -> None:
        if not create and not path.is_file():
            raise StorageError(f"There are no records at {path}.")
        self.path, self._is_new = path, create
        self._turn = _TURNS.setdefault(path.absolute(), threading.RLock())
        expected = 0 if create else read_last_event(path)
        with self._told():
            self._connected: Connected = connect(path, create=create)
        self.connection = self._connected.connection
        self._last_event = 0
        """The last event of the transaction that is open, to be remembered once it is committed."""
        try:
            with self._told():
                migrate(self.connection, path)
                if not create:
                    self._check_end(expected)
        except BaseException:
            self.close()
            raise

    @property
    def is_read_only(self) -> bool:
        return self._connected.is_read_only

    def close(self) -> None:
        self._connected.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, and nobody else writes meanwhile; inside another transaction it is part of that one."""
        if self.is_read_only:
            raise StorageError(f"{self.path} can only be read here: copy the project to a place where you may write.")
        with self._turn, self._told():
            if self.connection.in_transaction:
                yield
                return
            self._last_event = 0
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise
            if self._last_event and not self._is_new:
                write_last_event(self.path, self._last_event)

    def checkpoint(self) -> None:
        """Move what was answered from ``project.db-wal`` into the file itself, as far as nobody is reading it."""
        with self._told():
            self.connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def copy_to(self, path: Path) -> None:
        """Write the records of this moment into a new file, while others read and write."""
        with self._told(), closing(sqlite3.connect(path)) as copy:
            self.connection.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")

    def _check_end(self, expected: int) -> None:
        """Whether all events are there that were committed; where nobody has counted yet, counting begins."""
        found = self._number_of_last()
        check_last_event(self.path, expected, found)
        if not expected and not self.is_read_only:
            write_last_event(self.path, found)

    def add_rows(
        self, keys: Sequence[str], paths: Sequence[str], is_test: BoolArray, contents: Sequence[str] = ()
    ) -> None:
        """Number the items 0, 1, …, or those of a project that grows from its last number on; files have no content."""
        with self.transaction():
            known_keys, known_paths, known_test = self.rows()
            fresh = zip(keys, paths, is_test.tolist(), strict=True)
            rows = ((row, *values) for row, values in enumerate(fresh, start=len(known_keys)))
            self.connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", rows)
            held = enumerate(contents, start=len(known_keys))
            self.connection.executemany("INSERT INTO contents VALUES (?, ?)", held)
            flags = np.concatenate([known_test, is_test])
            value = digest_of_rows([*known_keys, *keys], [*known_paths, *paths], flags.tolist())
            self.set_digest(_ROWS, value)

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
        stored = self.digests(_ROWS).get(_ROWS)
        if stored != digest_of_rows(keys, paths, is_test) and (keys or stored):
            raise StorageError(f"{self.path} is damaged (the list of pictures is not what was stored): {RESTORE}.")
        return tuple(keys), tuple(paths), np.asarray(is_test, dtype=np.bool_)

    def contents(self) -> list[str]:
        """What the rows hold, by row; nothing where they are files. Their keys tell whether it is what was stored."""
        return [content for (content,) in self.select("SELECT content FROM contents ORDER BY row")]

    def digests(self, prefix: str) -> dict[str, str]:
        """The digests whose names begin with ``prefix``."""
        found = self.select("SELECT name, value FROM digests WHERE substr(name, 1, ?) = ?", (len(prefix), prefix))
        return dict(found)

    def set_digest(self, name: str, value: str) -> None:
        self.connection.execute("INSERT OR REPLACE INTO digests VALUES (?, ?)", (name, value))

    def add_quarantine(self, refused: Iterable[Quarantined]) -> None:
        """Note files that cannot be used; of one that was noted before the last reason counts."""
        with self.transaction():
            found = [(q.path, q.reason) for q in refused]
            self.connection.executemany("DELETE FROM quarantine WHERE path = ?", [(path,) for path, _ in found])
            self.connection.executemany("INSERT INTO quarantine VALUES (?, ?)", found)

    def release(self, paths: Iterable[str]) -> None:
        """Files that were set aside and can be used now."""
        with self.transaction():
            self.connection.executemany("DELETE FROM quarantine WHERE path = ?", [(path,) for path in paths])

    @property
    def n_quarantined(self) -> int:
        return int(self.select("SELECT count(*) FROM quarantine")[0][0])

    def quarantine(self) -> list[Quarantined]:
        return [Quarantined(*found) for found in self.select("SELECT path, reason FROM quarantine")]

    def append(self, events: Sequence[LabelEvent]) -> list[LabelEvent]:
        """Store ``events``, all or none, and return them as stored; one that is stored already is not stored again.

        Whether they make sense is not asked here: ``agcd.app.label_log.LabelLog.append`` does.
        """
        with self.transaction():
            return [self._append(event) for event in events]

    def events(self, after: int = 0) -> list[LabelEvent]:
        """All events in order, or only those after the one numbered ``after``; each is what was stored."""
        # The one before comes along for its digest.
        where = "WHERE id >= coalesce((SELECT max(id) FROM events WHERE id <= ?), 0) ORDER BY id"
        found = self.select(f"SELECT {_EVENT_COLUMNS} FROM events {where}", (after,))
        before = found.pop(0)[-1] or "" if found and found[0][0] <= after else ""
        events = []
        for id_, *values, seal in found:
            if seal is not None and seal != seal_of(before, values):
                raise self._damaged(id_)
            events.append(self._event(id_, values))
            before = seal or ""
        return events

    def knows(self, uid: str) -> bool:
        """Whether an event, or a group of them, with this uid is stored: then a request is a repeated one."""
        return bool(self.select("SELECT 1 FROM events WHERE uid = ? OR group_id = ? LIMIT 1", (uid, uid)))

    def begin_run(self, number: int) -> int:
        """The last event that run ``number`` knows of: fixed by the first call, so a resumed run learns the same."""
        with self.transaction():
            known = self.runs()
            if number not in known:
                last = self._number_of_last()
                self.connection.execute("INSERT INTO runs VALUES (?, ?, ?)", (number, last, digest([number, last])))
        return self.runs()[number]

    def runs(self) -> dict[int, int]:
        """The runs that have been begun, each with the last event that it knows of."""
        found = self.select("SELECT number, last_event, seal FROM runs ORDER BY number")
        for number, last, seal in found:
            if seal not in (None, digest([number, last])):
                raise StorageError(f"{self.path} is damaged (round {number} is not what was stored): {RESTORE}.")
        return {number: last for number, last, _ in found}

    def select(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        with self._told():
            return self.connection.execute(statement, values).fetchall()

    def _append(self, event: LabelEvent) -> LabelEvent:
        values = [
            *(event.uid, event.at, event.kind, event.row, event.class_id, event.who, event.source, event.query_id),
            *(event.round, event.group, json.dumps(event.payload, sort_keys=True, ensure_ascii=False)),
        ]
        # The trigger events_come_once lets a known uid pass without a trace: then no id comes back.
        made = self.connection.execute(_INSERT, [*values, seal_of(self._last_seal(), values)]).fetchone()
        if made is not None:
            self._last_event = made[0]
            return replace(event, id=made[0])
        found = self.select(f"SELECT {_EVENT_COLUMNS} FROM events WHERE uid = ?", (event.uid,))
        stored = [self._event(id_, known) for id_, *known, _ in found]
        if not stored or not stored[0].says_the_same(event):
            raise DataError(f"Event {event.uid!r} is already stored with other content.")
        return stored[0]

    def _number_of_last(self) -> int:
        """The number of the last event; 0 where there is none."""
        return int(self.select("SELECT coalesce(max(id), 0) FROM events")[0][0])

    def _last_seal(self) -> str:
        found = self.select("SELECT seal FROM events ORDER BY id DESC LIMIT 1")
        return found[0][0] or "" if found else ""

    def _event(self, id_: int, values: Sequence[Any]) -> LabelEvent:
        uid, at, kind, row, class_id, who, source, query_id, round_, group, payload = values
        try:
            said = json.loads(payload)
        except (ValueError, TypeError, RecursionError):
            raise self._damaged(id_) from None
        return LabelEvent(kind, who, source, row, class_id, query_id, round_, group, said, uid=uid, at=at, id=id_)

    def _damaged(self, id_: int) -> StorageError:
        return StorageError(f"{self.path} is damaged (record {id_} is not what was stored): {RESTORE}.")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Whatever SQLite complains about, in one sentence."""
        try:
            yield
        except sqlite3.IntegrityError as error:
            raise DataError(f"{self.path} refused a record: {' '.join(str(error).split())}.") from error
        except sqlite3.Error as error:
            raise StorageError(f"{self.path} cannot be used: {error}.") from error
