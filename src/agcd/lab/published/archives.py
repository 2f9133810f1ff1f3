"""A tar archive unpacked once into the cache; an archive comes from strangers and is trusted with nothing."""

from __future__ import annotations

import gzip
import lzma
import tarfile
import zlib
from pathlib import Path
from typing import BinaryIO

from agcd.errors import DataError
from agcd.io import atomic_folder, digest

MAX_BYTES = 16 * 2**30
MAX_MEMBERS = 200_000
"""Well above every original (FGVC-Aircraft has 10,000 images and about 3 GB), well below what fills a disk."""
_BLOCK = 2**20
_DAMAGED = (tarfile.TarError, EOFError, ValueError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


def cache_folder(cache_dir: Path, name: str, sources: list[Path]) -> Path:
    """Where what is made from ``sources`` is kept; a source of another size or date gets another folder."""
    try:
        facts = [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in sources]
    except OSError as error:
        raise DataError(f"{sources[0].parent} cannot be read: {error.strerror or error}.") from None
    return cache_dir / "published" / f"{name}-{digest(facts).removeprefix('b2-')[:16]}"


def unpacked(archive: Path, cache_dir: Path) -> Path:
    """The folder into which ``archive`` was unpacked, now or before."""
    folder = cache_folder(cache_dir, "unpacked", [archive])
    if folder.exists():
        return folder
    try:
        handle = archive.open("rb")
    except OSError as error:
        raise DataError(f"{archive} cannot be read: {error.strerror or error}.") from None
    with handle, atomic_folder(folder) as aside:
        _unpack(handle, archive, aside)
    return folder


def _unpack(handle: BinaryIO, archive: Path, folder: Path) -> None:
    n_bytes = 0
    try:
        with tarfile.open(fileobj=handle) as tar:
            for n_members, member in enumerate(tar, start=1):
                n_bytes += member.size
                if n_bytes > MAX_BYTES or n_members > MAX_MEMBERS:
                    raise DataError(f"{archive} holds more than {MAX_BYTES:,} bytes or {MAX_MEMBERS:,} files.")
                if not (member.isfile() or member.isdir()):
                    raise DataError(f"{archive} holds {member.name!r}, which is neither a file nor a folder.")
                tar.extract(member, folder, filter="data")
            _read_to_the_end(tar)
    except DataError:
        raise
    except tarfile.FilterError as error:
        raise DataError(f"{archive} holds {error.tarinfo.name!r}, which would be written outside its folder.") from None
    except _DAMAGED as error:
        raise DataError(f"{archive} is not a readable tar archive ({error}).") from None


def _read_to_the_end(tar: tarfile.TarFile) -> None:
    """Have the checksum tested: at a damaged header ``tarfile`` stops as if the archive ended there."""
    for _ in range(MAX_BYTES // _BLOCK):
        if tar.fileobj is None or not tar.fileobj.read(_BLOCK):
            return
