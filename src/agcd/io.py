"""Files that are either whole or absent: written aside, flushed, renamed. Digests carry their version."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tokenize import TokenError
from typing import Any, NoReturn, TypeVar

from agcd.errors import StorageError
from agcd.processes import is_running

BAD_ARRAY = (OSError, EOFError, ValueError, TypeError, KeyError, SyntaxError, OverflowError, MemoryError, TokenError)
"""What ``np.load`` raises on a damaged file: it reads the header as a Python expression."""
T = TypeVar("T")
_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""Escapes, in JSON, of characters that are written in two halves."""
_SEAL = "digest"
_WINDOWS = os.name == "nt"
_PATIENCE_SECONDS = 2.0
_ASIDE = re.compile(r"\.([0-9]+)\.[0-9a-f]{8}\.tmp$")
_UMASK = os.umask(0o077)
os.umask(_UMASK)  # the only way to read it, and only safe before there are threads


def default_cache() -> Path:
    """Where features are kept unless somebody says otherwise; it may be deleted at any time."""
    return Path(os.environ.get("AGCD_CACHE") or Path.home() / ".cache" / "agcd")


def aside_of(path: Path) -> Path:
    """A temporary name beside ``path`` that tells which process writes there."""
    return path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}.tmp")


def leftovers(folder: Path, older_than: float = 3600.0) -> list[Path]:
    """What killed processes of this machine were writing into ``folder``.

    A file younger than ``older_than`` seconds may be that of another machine on a shared disk: it does not count.
    """
    named = [(path, _ASIDE.search(path.name)) for path in folder.glob(".*.tmp")]
    dead = [path for path, match in named if match and not is_running(int(match[1]))]
    return [path for path in dead if time.time() - path.lstat().st_mtime >= older_than]


def remove_leftovers(folder: Path, older_than: float = 3600.0) -> None:
    """Remove ``leftovers``."""
    for path in leftovers(folder, older_than):
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


@contextmanager
def atomic_write(path: Path, *, private: bool = False) -> Iterator[Path]:
    """A temporary path to fill; it takes the place of ``path`` at the end, or vanishes on any error.

    Others may read it as far as the umask lets them, whoever wrote it (some libraries make their files private);
    ``private`` keeps it to its owner.
    """
    aside = aside_of(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if private:
            aside.touch(0o600)
        yield aside
        with aside.open("r+b") as handle:  # Windows flushes only what may be written
            os.fsync(handle.fileno())
        aside.chmod(0o600 if private else 0o666 & ~_UMASK)
        patiently(lambda: aside.replace(path))
    except OSError as error:
        raise storage_error(path, error) from error
    finally:
        with suppress(OSError):  # gone already, or its folder never was one; the error worth telling is another
            aside.unlink()


def patiently(act: Callable[[], T]) -> T:
    """``act``, again for a moment where Windows refuses because another process has the file open just now."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return act()
        except PermissionError:
            if not _WINDOWS or time.monotonic() >= until:
                raise
            time.sleep(0.01)


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder to fill; it takes the place of ``folder`` at the end, so a kill leaves nothing half."""
    aside = aside_of(folder)
    try:
        aside.mkdir(parents=True)
        yield aside
        if not folder.exists():  # another process may have been faster
            aside.rename(folder)
    except OSError as error:
        raise storage_error(folder, error) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def fault_of_disk(error: OSError) -> StorageError | None:
    """The sentence for a disk that is full, failing or not ours to write; None where the program is at fault."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM):
        return None
    return storage_error(Path(error.filename or "a file"), error)


def storage_error(path: Path, error: OSError) -> StorageError:
    """What went wrong on the disk, in one sentence."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(f"The disk is full: {path} could not be written; free some space and run again.")
    return StorageError(f"{path} could not be written: {error.strerror or error}.")


def write_json(path: Path, value: Any, *, private: bool = False) -> None:
    """Store ``value`` as readable JSON, whole or not at all."""
    with atomic_write(path, private=private) as aside:
        aside.write_text(json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    return json.loads(patiently(lambda: path.read_text(encoding="utf-8")))


def parse_strictly(text: str) -> Any:
    """The value in JSON from strangers; ValueError where it is none, has NaN or infinity, or a key twice in an object.

    What is nested too deeply is a RecursionError.
    """
    value = json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
    if _ESCAPED_HALF.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("a text holds half a character (a lone surrogate)") from None
    return value


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return values


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def write_sealed(path: Path, value: dict[str, Any], *, private: bool = False) -> None:
    """``write_json`` with the digest of the value inside, for files that nobody edits by hand."""
    write_json(path, {**value, _SEAL: digest(value)}, private=private)


def read_sealed(path: Path) -> dict[str, Any]:
    """What ``write_sealed`` stored; ValueError where it has changed since. Files of version 0.2 have no seal."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    seal = value.pop(_SEAL, None)
    if seal is not None and seal != digest(value):
        raise ValueError("its content is not what was stored")
    return value


def digest_file(path: Path) -> str:
    """``digest_bytes`` of a file, read piece by piece."""
    with path.open("rb") as file:
        return "b2-" + hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def file_sha256(path: Path) -> str:
    """The digest by which others publish their files, read piece by piece."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest(value: Any) -> str:
    """A short name for JSON-like ``value``: equal values have equal names."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return digest_bytes(text.encode())


def digest_bytes(data: bytes | memoryview) -> str:
    """A short name for content; the prefix tells which rule made it."""
    return "b2-" + hashlib.blake2b(data, digest_size=16).hexdigest()
