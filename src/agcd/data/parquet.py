"""Parquet lists of image files, and Parquet files that hold the pictures themselves, as Hugging Face writes them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence, Set
from pathlib import Path
from typing import Any

from agcd.data.archives import MAX_BYTES, MAX_MEMBERS
from agcd.data.columns import OTHER, SECOND, standard_names
from agcd.data.images import ImageError, header
from agcd.data.listing import Line, Listing, line_of, listing_of
from agcd.errors import DataError
from agcd.types import Quarantined

_BATCH = 32
"""Rows read at a time: photographs of cameras take some megabytes each."""
_READ = frozenset({"path", "label", "split", SECOND})
"""The columns of a list of images that are read, by their standard names."""
_SUFFIXES = {"JPEG": ".jpg", "JPEG2000": ".jp2"}


def read_parquet(path: Path) -> Listing:
    """The lines of a Parquet file that names the pictures."""
    with Table(path) as table:
        lines = [line_of(number, cells) for number, cells in enumerate(table.rows(), start=1)]
        return listing_of(table.columns, table.names, lines)


def holds_pictures(path: Path) -> bool:
    """Whether the pictures are in the file and not beside it."""
    with Table(path) as table:
        return table.holds_pictures


def unpack_pictures(path: Path, folder: Path, start: int = 0, split: str = "") -> Listing:
    """Write the pictures of a Parquet file into ``folder``, numbered after ``start``; the lines name them.

    ``split`` is that of rows that tell none.
    """
    lines: list[Line] = []
    empty: list[Quarantined] = []
    n_bytes = 0
    with Table(path) as table:
        for number, cells in enumerate(table.rows(), start=start + 1):
            content, name = _picture(cells["path"])
            if not content:
                empty.append(Quarantined(f"{path.name}, row {number - start}", "the row holds no picture"))
                continue
            n_bytes += len(content)
            if n_bytes > MAX_BYTES or number > MAX_MEMBERS:
                raise DataError(f"{path} holds more than {MAX_BYTES:,} bytes or {MAX_MEMBERS:,} pictures.")
            file = f"{number:06d}{_ending(name, content)}"
            (folder / file).write_bytes(content)
            lines.append(line_of(number, {**cells, "path": file, "split": cells.get("split") or split}))
        listing = listing_of(table.columns, table.names, lines)
    listing.quarantine += empty
    return listing


def _picture(cell: Any) -> tuple[bytes, str]:
    """The content of a picture and what it was called: a struct of both, or the content alone."""
    if isinstance(cell, dict):
        content, name = cell.get("bytes"), cell.get("path")
        return (content if isinstance(content, bytes) else b""), (name if isinstance(name, str) else "")
    return (cell if isinstance(cell, bytes) else b""), ""


def _ending(name: str, content: bytes) -> str:
    """What follows the number in the name of an unpacked file: its old name made harmless, else its suffix."""
    stem, suffix = os.path.splitext(re.split(r"[/\\]", name)[-1])
    stem = re.sub(r"[^\w.-]+", "_", stem)[:60].strip(".")
    if not re.fullmatch(r"\.\w{1,5}", suffix):
        suffix = _suffix(content)
    return f"-{stem}{suffix}" if stem else suffix


def _suffix(content: bytes) -> str:
    try:
        kind = header(content).format
    except ImageError:
        return ".bin"
    return _SUFFIXES.get(kind, f".{kind.lower()}")


class Table:
    """An open Parquet file with the columns that we read; what pyarrow cannot read is a ``DataError``.

    ``rename`` gives the columns their standard names, ``read`` has those that are read, ``batch`` rows at a time.
    """

    def __init__(
        self,
        path: Path,
        rename: Callable[[Path, Sequence[str]], list[str]] = standard_names,
        read: Set[str] = _READ,
        batch: int = _BATCH,
    ) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._rename, self._read, self._batch = rename, read, batch
        self.path, self._errors = path, (pa.ArrowException, OSError, UnicodeDecodeError)
        try:
            self._file = pq.ParquetFile(path)
            self.columns = list(self._file.schema_arrow.names)
            self._types = list(self._file.schema_arrow.types)
            self._facts = self._file.schema_arrow.metadata or {}
        except self._errors as error:
            raise self._unreadable(error) from None

    def __enter__(self) -> Table:
        try:
            names = zip(self._rename(self.path, self.columns), self._types, strict=True)
            self.names = ["" if _is_optional(name) and not _is_shown(kind) else name for name, kind in names]
            self._check()
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def holds_pictures(self) -> bool:
        return _holds_bytes(self._types[self.names.index("path")])

    def rows(self) -> Iterator[dict[str, Any]]:
        """The cells that we read, row by row; numbers of classes become their names where the file tells them."""
        read = [(column, name) for column, name in zip(self.columns, self.names, strict=True) if name in self._read]
        class_names = self._class_names()
        try:
            for batch in self._file.iter_batches(self._batch, columns=[column for column, _ in read]):
                values = [batch.column(column).to_pylist() for column, _ in read]
                for cells in zip(*values, strict=True):
                    row = {name: cell for (_, name), cell in zip(read, cells, strict=True)}
                    row["label"] = _named(row.get("label"), class_names)
                    yield row
        except self._errors as error:
            raise self._unreadable(error) from None

    def _check(self) -> None:
        for column, name, kind in zip(self.columns, self.names, self._types, strict=True):
            is_fit = _is_optional(name) or _is_plain(kind) or (name == "path" and _holds_bytes(kind))
            if name in self._read and not is_fit:
                raise DataError(f"{self.path}: column {column!r} is of type {kind}; text or numbers are expected.")

    def _class_names(self) -> Sequence[str]:
        """The names of the classes as Hugging Face stores them beside the columns."""
        if "label" not in self.names:
            return ()
        column = self.columns[self.names.index("label")]
        try:
            names = json.loads(self._facts[b"huggingface"])["info"]["features"][column]["names"]
        except (KeyError, TypeError, ValueError, RecursionError):
            return ()
        return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else ()

    def _unreadable(self, error: Exception) -> DataError:
        return DataError(f"{self.path} is not a readable Parquet file ({str(error).splitlines()[0]}).")


def _named(label: Any, names: Sequence[str]) -> Any:
    return names[label] if isinstance(label, int) and 0 <= label < len(names) else label


def _holds_bytes(kind: Any) -> bool:
    """Whether a column holds pictures: their bytes, or a struct with a field ``bytes``."""
    from pyarrow import types

    if types.is_struct(kind):
        return any(field.name == "bytes" for field in kind)
    return bool(types.is_binary(kind) or types.is_large_binary(kind))


def _is_optional(name: str) -> bool:
    """Whether a column may be left out where it holds neither text nor numbers."""
    return name == "id" or name.startswith(OTHER)


def _is_shown(kind: Any) -> bool:
    from pyarrow import types

    checks = (types.is_boolean, types.is_temporal, types.is_decimal)
    return _is_plain(kind) or any(check(kind) for check in checks)


def _is_plain(kind: Any) -> bool:
    from pyarrow import types

    inner = kind.value_type if types.is_dictionary(kind) else kind
    checks = (types.is_string, types.is_large_string, types.is_integer, types.is_floating, types.is_null)
    return any(check(inner) for check in checks)
