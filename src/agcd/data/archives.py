"""Zip and tar archives, unpacked whole or not at all; an archive comes from strangers and is trusted with nothing."""

from __future__ import annotations

import gzip
import logging
import lzma
import shutil
import stat
import tarfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from agcd.errors import DataError, StorageError

MAX_BYTES = 16 * 2**30
MAX_MEMBERS = 200_000
"""Well above every collection that one unpacks in a minute (FGVC-Aircraft has 10,000 images and about 3 GB), well below
what fills a disk."""
MAX_RATIO, RATIO_FROM = 200, 256 * 2**20
"""Pictures are compressed already: what grows so much, and beyond so many bytes, is no collection of them."""
SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_BLOCK = 2**20
_DAMAGED: tuple[type[Exception], ...] = (
    *(tarfile.TarError, zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, ValueError, NotImplementedError),
    *(RuntimeError, zlib.error, lzma.LZMAError, gzip.BadGzipFile),
)
_log = logging.getLogger(__name__)


def archive_name(path: Path) -> str | None:
    """What an archive is called without its suffix; None for what is no archive by its name."""
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if path.name.casefold().endswith(suffix) and len(path.name) > len(suffix):
            return path.name[: -len(suffix)]
    return None


def unpack(archive: Path, folder: Path) -> None:
    """Write all files of ``archive`` into ``folder``, which is empty; whoever calls makes it whole or absent.

    Names that lead out of the folder, links and devices are refused, and so is what is far larger than it seems.
    """
    try:
        handle = archive.open("rb")
    except OSError as error:
        raise DataError(f"{archive} cannot be read: {error.strerror or error}.") from None
    with handle:
        try:
            _Unpacking(archive, folder).run(handle)
        except DataError:
            raise
        except _DAMAGED as error:
            raise _unreadable(archive, error) from None
        except OSError as error:
            if error.errno is not None:
                raise
            raise _unreadable(archive, error) from None  # of bz2, whose errors of content have no number


def _unreadable(archive: Path, error: Exception) -> DataError:
    why = (str(error) or type(error).__name__).splitlines()[0].rstrip(":")
    return DataError(f"{archive} is not a readable archive ({why}).")


class _Unpacking:
    def __init__(self, archive: Path, folder: Path) -> None:
        self.archive, self.folder = archive, folder
        self.n_bytes = self.n_members = 0
        self.n_packed = archive.stat().st_size
        self.n_free = shutil.disk_usage(folder).free
        self.told = time.monotonic()

    def run(self, handle: IO[bytes]) -> None:
        if zipfile.is_zipfile(handle):
            handle.seek(0)
            with zipfile.ZipFile(handle) as packed:
                for name, source in self._zipped(packed):
                    with source:
                        self._write(name, source)
            return
        handle.seek(0)
        with tarfile.open(fileobj=handle) as tar:
            for name, source in self._tarred(tar):
                self._write(name, source)
            _read_to_the_end(tar)

    def _zipped(self, packed: zipfile.ZipFile) -> Iterator[tuple[str, IO[bytes]]]:
        for info in packed.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise self._neither(info.filename)
            self._count(info.file_size)
            if not info.is_dir():
                yield info.filename.replace("\\", "/"), packed.open(info)

    def _tarred(self, tar: tarfile.TarFile) -> Iterator[tuple[str, IO[bytes]]]:
        for member in tar:
            self._count(member.size)
            if not (member.isfile() or member.isdir()):
                raise self._neither(member.name)
            source = tar.extractfile(member) if member.isfile() else None
            if source is not None:
                yield member.name, source

    def _count(self, n_bytes: int) -> None:
        """Limits are checked by what is promised before anything of it is written."""
        self.n_bytes += n_bytes
        self.n_members += 1
        if self.n_bytes > MAX_BYTES or self.n_members > MAX_MEMBERS:
            raise DataError(f"{self.archive} holds more than {MAX_BYTES:,} bytes or {MAX_MEMBERS:,} files.")
        if self.n_bytes > max(RATIO_FROM, MAX_RATIO * self.n_packed):
            raise DataError(
                f"{self.archive} holds more than {MAX_RATIO} times its own size, which pictures never do: "
                "unpack it yourself if you trust it."
            )
        if self.n_bytes > self.n_free:
            raise StorageError(f"{self.archive} does not fit on the disk: free some space and run again.")
        if time.monotonic() - self.told >= 2:
            self.told = time.monotonic()
            _log.info("%s: %s files unpacked", self.archive.name, f"{self.n_members:,}")

    def _write(self, name: str, source: IO[bytes]) -> None:
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or PureWindowsPath(name).drive or "\0" in name:
            raise DataError(f"{self.archive} holds {name[:100]!r}, which would be written outside its folder.")
        target = self.folder.joinpath(*parts)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                shutil.copyfileobj(source, file, _BLOCK)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise DataError(f"{self.archive} holds {name[:100]!r} both as a file and as a folder.") from None

    def _neither(self, name: str) -> DataError:
        return DataError(f"{self.archive} holds {name[:100]!r}, which is neither a file nor a folder.")


def _read_to_the_end(tar: tarfile.TarFile) -> None:
    """Have the checksum tested: at a damaged header ``tarfile`` stops as if the archive ended there."""
    for _ in range(MAX_BYTES // _BLOCK):
        if tar.fileobj is None or not tar.fileobj.read(_BLOCK):
            return
