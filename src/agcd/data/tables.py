"""Small tables that people open in a spreadsheet: read with patience, written so that no cell runs as a formula."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from agcd.errors import DataError
from agcd.io import atomic_write
from agcd.words import listed

_SHOWN = 20
MAX_CELL = 131_072
"""Characters of a cell, where a table is not one of texts."""
_LINE_END = re.compile(r"\r\n?|\n")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def _lower_case(names: Sequence[str]) -> list[str]:
    return [name.casefold() for name in names]


def read_table(
    path: Path,
    needed: Sequence[str],
    rename: Callable[[Sequence[str]], list[str]] = _lower_case,
    *,
    max_cell: int = MAX_CELL,
    has_quotes: bool = True,
) -> Iterator[tuple[int, dict[str, str]]]:
    """The line number and the cells by column name of every line; the ``needed`` columns must be there.

    ``rename`` gives the columns other names than the file does. Without ``has_quotes`` a quote is a character like
    others.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None
    text = decoded(content, "replace")
    likely = "\t,;" if path.suffix.lower() == ".tsv" else ",;\t"
    delimiter = max(likely, key=text.partition("\n")[0].count)
    csv.field_size_limit(max(csv.field_size_limit(), max_cell))  # of the whole process: it is raised, never lowered
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if has_quotes else csv.QUOTE_NONE
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting, strict=True)
    try:
        names = _column_names(path, rename([cell.strip() for cell in next(reader, [])]), needed)
        for cells in reader:
            if len(cells) > len(names):
                raise DataError(f"{path}, line {reader.line_num}: {len(cells)} cells for {len(names)} columns.")
            if not cells:
                continue
            if max(map(len, cells)) > max_cell:
                raise csv.Error(f"field larger than field limit ({max_cell})")
            padded = [*cells, *[""] * (len(names) - len(cells))]
            yield reader.line_num, {name: plain(cell) for name, cell in zip(names, padded, strict=True)}
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: not valid CSV ({error}).") from None


def decoded(content: bytes, errors: str = "strict") -> str:
    """A text file as text: UTF-8, UTF-16 with a byte order mark, else what spreadsheets on Windows write."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", errors)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors)


def lines_of(text: str) -> list[str]:
    """The lines of a file; U+2028 and its like, at which ``splitlines`` splits, may stand inside one."""
    return _LINE_END.split(text)


def _column_names(path: Path, names: list[str], needed: Sequence[str]) -> list[str]:
    for column in needed:
        if column not in names:
            raise DataError(f"{path} has no column {column!r}; {columns_there(names)}.")
        if names.count(column) > 1:
            raise DataError(f"{path} has {names.count(column)} columns called {column!r}.")
    return names


def columns_there(names: Sequence[str]) -> str:
    """The columns that a file has, as the end of a sentence."""
    shown = [repr(name[:40]) for name in names[:_SHOWN]] + ["more"] * (len(names) > _SHOWN)
    return f"its columns are {listed(shown)}" if any(names) else "it has no columns"


def write_table(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """``columns`` as CSV, whole or not at all."""
    with atomic_write(path) as aside:
        aside.write_text(table_text(columns), encoding="utf-8", newline="")


def table_text(columns: Mapping[str, Sequence[Any]]) -> str:
    """``columns`` of equal length as CSV text; None is an empty cell."""
    return "".join(map(_line, [tuple(columns), *zip(*columns.values(), strict=True)]))


def jsonl_text(columns: Mapping[str, Sequence[Any]]) -> str:
    """``columns`` of equal length as JSON Lines: an object per row, null where a cell is None."""
    rows = zip(*columns.values(), strict=True)
    return "".join(f"{json.dumps(dict(zip(columns, row, strict=True)), allow_nan=False)}\n" for row in rows)


def _line(cells: Iterable[Any]) -> str:
    out = io.StringIO(newline="")
    csv.writer(out).writerow([escaped(cell) for cell in cells])  # it quotes a lone \r only when lines end in \r\n
    return out.getvalue().removesuffix("\r\n") + "\n"


def escaped(cell: Any) -> Any:
    """Text that a spreadsheet would run as a formula gets a leading apostrophe, as does text that looks as if it had
    got one; numbers are left alone, and truth is written as every program reads it: true, false."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return f"'{cell}" if isinstance(cell, str) and cell.lstrip("'").startswith(_FORMULA) else cell


def plain(cell: str) -> str:
    """What ``escaped`` was given."""
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(_FORMULA) else cell
