"""How the records notice that they are not what was written: a digest per event, and the last number beside the file.

Every event carries a digest over itself and the digest of the event before it, so that one that was changed, removed or
put in between is noticed when it is read. What is lost at the end no digest can tell: ``project.db-last`` holds the
number of the last event that was committed. It is not flushed to the disk with every answer, so it may lag behind after
a power cut, which is harmless.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from agcd.errors import StorageError
from agcd.io import digest, digest_bytes

RESTORE = "restore a backup (agcd restore)"
"""What helps where the records themselves are damaged."""
_WIDTH = 40
"""Characters of the file: it is written in place, so a shorter number must cover a longer one."""


class LostRecords(StorageError):
    """Events that were committed are no longer there."""

    def __init__(self, path: Path, expected: int, found: int) -> None:
        super().__init__(
            f"{path} has lost its last {expected - found} records: {wal_of(path).name}, which held them, is gone or "
            f"cut. Put it back, {RESTORE}, or go on without them (agcd check {path.parent} --repair)."
        )
        self.n_lost = expected - found


def wal_of(path: Path) -> Path:
    """Where SQLite keeps what was committed and not yet moved into the file itself."""
    return path.with_name(f"{path.name}-wal")


def seal_of(before: str, values: Sequence[Any]) -> str:
    """The digest of an event's columns after the event whose digest is ``before``."""
    return digest([before, *values])[3:]


def digest_of_rows(keys: Sequence[str], paths: Sequence[str], is_test: Sequence[Any]) -> str:
    """The digest of all rows of a project."""
    flags = bytes(bool(test) for test in is_test)
    # One text of each column: a million rows take a fraction of a second so.
    texts = [digest_bytes("\0".join(column).encode("utf-8", "surrogateescape")) for column in (keys, paths)]
    return digest([*texts, digest_bytes(flags)])


def check_last_event(path: Path, expected: int, found: int) -> None:
    """Refuse records that end before the last event that was committed."""
    if found < expected:
        raise LostRecords(path, expected, found)


def read_last_event(path: Path) -> int:
    """The number of the last event that was committed to the records at ``path``, as far as is known."""
    try:
        return int(json.loads(_beside(path).read_text(encoding="utf-8"))["event"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def write_last_event(path: Path, number: int) -> None:
    """Remember the last event; where nothing can be written, the records themselves matter more."""
    text = json.dumps({"event": number}).ljust(_WIDTH) + "\n"
    with suppress(OSError):
        handle = os.open(_beside(path), os.O_WRONLY | os.O_CREAT, 0o666)
        try:
            os.write(handle, text.encode())
        finally:
            os.close(handle)


def forget_last_event(path: Path) -> None:
    """Take the records as they are: what they lack is given up."""
    _beside(path).unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}-last")
