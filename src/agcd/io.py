"""Files that are either whole or absent: written aside, flushed, renamed. Digests carry their version."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from agcd.errors import StorageError


def default_cache() -> Path:
    """Where features are kept unless somebody says otherwise; it may be deleted at any time."""
    return Path(os.environ.get("AGCD_CACHE") or Path.home() / ".cache" / "agcd")


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A temporary path to fill; it takes the place of ``path`` at the end, or vanishes on any error."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield aside
        with aside.open("rb") as handle:
            os.fsync(handle.fileno())
        aside.replace(path)
    except OSError as error:
        raise storage_error(path, error) from error
    finally:
        with suppress(OSError):  # gone already, or its folder never was one; the error worth telling is another
            aside.unlink()


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder to fill; it takes the place of ``folder`` at the end, so a kill leaves nothing half."""
    aside = folder.with_name(f".{folder.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        aside.mkdir(parents=True)
        yield aside
        if not folder.exists():  # another process may have been faster
            aside.rename(folder)
    except OSError as error:
        raise storage_error(folder, error) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def storage_error(path: Path, error: OSError) -> StorageError:
    """What went wrong on the disk, in one sentence."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(f"The disk is full: {path} could not be written; free some space and run again.")
    return StorageError(f"{path} could not be written: {error.strerror or error}.")


def write_json(path: Path, value: Any) -> None:
    """Store ``value`` as readable JSON, whole or not at all."""
    with atomic_write(path) as aside:
        aside.write_text(json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def digest_file(path: Path) -> str:
    """``digest_bytes`` of a file, read piece by piece."""
    with path.open("rb") as file:
        return "b2-" + hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def digest(value: Any) -> str:
    """A short name for JSON-like ``value``: equal values have equal names."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return digest_bytes(text.encode())


def digest_bytes(data: bytes | memoryview) -> str:
    """A short name for content; the prefix tells which rule made it."""
    return "b2-" + hashlib.blake2b(data, digest_size=16).hexdigest()
