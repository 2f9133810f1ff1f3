"""Connections to the records: for writing where that is allowed, else for reading alone."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from agcd.app.store.schema import is_current, is_records
from agcd.app.store.seals import wal_of
from agcd.errors import StorageError

_BUSY_SECONDS = 30.0


@dataclass(frozen=True)
class Connected:
    """An open connection, and the copy that it reads where the records themselves cannot be opened."""

    connection: sqlite3.Connection
    is_read_only: bool = False
    copy: tempfile.TemporaryDirectory[str] | None = None

    def close(self) -> None:
        self.connection.close()
        if self.copy is not None:
            self.copy.cleanup()


def connect(path: Path, *, create: bool) -> Connected:
    """A connection to the records at ``path``. An empty database, or that of another program, is left alone."""
    if not create and not may_write(path):
        return _connect_to_read(path)
    connection = _open(str(path))
    try:
        if not create:
            _check(connection, path)
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return Connected(connection)


def may_write(path: Path) -> bool:
    """Whether the records can be added to: SQLite also writes beside the file."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _connect_to_read(path: Path) -> Connected:
    """The file itself, if everything is in it and in the form of this version; else a copy, which can be changed."""
    wal = wal_of(path)
    if wal.exists() and wal.stat().st_size:
        return _connect_to_copy(path)
    connection = _open(f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1", uri=True)
    try:
        _check(connection, path)
        if is_current(connection):
            return Connected(connection, is_read_only=True)
    except BaseException:
        connection.close()
        raise
    connection.close()
    return _connect_to_copy(path)


def _connect_to_copy(path: Path) -> Connected:
    copy = tempfile.TemporaryDirectory(prefix="agcd-records-")
    try:
        for part in (path, wal_of(path)):
            if part.exists():
                shutil.copyfile(part, Path(copy.name) / part.name)
        connection = _open(str(Path(copy.name) / path.name))
        _check(connection, path)
    except BaseException:
        copy.cleanup()
        raise
    return Connected(connection, is_read_only=True, copy=copy)


def _open(path: str, *, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=uri)


def _check(connection: sqlite3.Connection, path: Path) -> None:
    if not is_records(connection):
        raise StorageError(
            f"{path} is an empty database, or that of another program: restore a backup of the project (agcd restore)."
        )
