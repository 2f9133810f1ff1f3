"""Tables of texts, whatever they were written in: CSV, TSV, Parquet, JSON Lines and lists of records in JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agcd.data.columns import OTHER, SECOND, as_text
from agcd.data.json_lists import MAX_BYTES, Records, json_text, named_cells, parsed, parsed_lines
from agcd.data.listing import Line, line_of
from agcd.data.parquet import Table
from agcd.data.tables import read_table
from agcd.errors import DataError

WHAT = {"text": "texts", "label": "classes", "split": "splits", "id": "names"}
"""What the columns are read for, by their standard names."""
Rename = Callable[[Path, Sequence[str]], list[str]]
"""Gives the columns of a file their standard names."""
_BATCH = 1024
"""Rows of a Parquet file read at a time."""
_HALF = re.compile(
    r"\\\\"  # an escaped backslash: what follows it is no escape
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # both halves of a character
    r"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


@dataclass
class TextTable:
    """A table: its columns, their standard names, and the cells under those names with the number of each line."""

    columns: list[str]
    names: list[str]
    rows: list[tuple[int, dict[str, Any]]]
    notes: list[str] = field(default_factory=list)


def lines_of_table(source: Path, table: TextTable) -> list[Line]:
    """The lines without what they hold, each named by its id where ids tell all of them apart, else by its number."""
    places = [as_text(cells.get("id")).strip() for _, cells in table.rows]
    if "" in places or len(set(places)) < len(places):
        table.names = ["" if name == "id" else name for name in table.names]
        places = [f"{source.name}:{number}" for number, _ in table.rows]
    pairs = zip(places, table.rows, strict=True)
    return [line_of(number, {**cells, "path": place}) for place, (number, cells) in pairs]


def _from_csv(path: Path, rename: Rename) -> TextTable:
    columns: list[str] = []
    names: list[str] = []

    def renamed(found: Sequence[str]) -> list[str]:
        columns[:], names[:] = found, rename(path, found)
        return names

    def rows(has_quotes: bool) -> list[tuple[int, dict[str, Any]]]:
        return list(read_table(path, (), renamed, max_cell=MAX_BYTES, has_quotes=has_quotes))

    try:
        return TextTable(columns, names, rows(has_quotes=True))
    except DataError as error:
        if path.suffix.lower() != ".tsv":
            raise
        try:  # many programs write TSV without quoting
            return TextTable(columns, names, rows(has_quotes=False), ["quotes do not pair and are read as they stand"])
        except DataError:
            raise error from None


def _from_parquet(path: Path, rename: Rename) -> TextTable:
    read = {*WHAT, SECOND, "picture", "link"}

    def renamed(place: Path, columns: Sequence[str]) -> list[str]:
        names = rename(place, columns)
        read.update(name for name in names if name.startswith(OTHER))
        return names

    with Table(path, renamed, read, _BATCH) as table:
        return TextTable(table.columns, table.names, list(enumerate(table.rows(), start=1)))


def _from_json_lines(path: Path, rename: Rename) -> TextTable:
    return _from_records(path, parsed_lines(path, _json_text(path), "texts"), rename)


def _from_json(path: Path, rename: Rename) -> TextTable:
    value = parsed(_json_text(path), str(path), "texts")
    if not isinstance(value, list):
        raise DataError(f"{path} is no list of texts: a list of records with a text, or of texts, is expected.")
    return _from_records(path, list(enumerate(value, start=1)), rename)


def _from_records(path: Path, records: Records, rename: Rename) -> TextTable:
    """Records with the names of columns as keys; a text alone is a record as well."""
    whole = [(number, {"text": value} if isinstance(value, str) else value) for number, value in records]
    return TextTable(*named_cells(path, whole, lambda found: rename(path, found)))


def _json_text(path: Path) -> str:
    """The text of a JSON file; escapes of half a character, which is no text, become U+FFFD."""
    return _HALF.sub(lambda found: r"\ufffd" if found[1] else found[0], json_text(path, "texts"))


TABLES: dict[str, Callable[[Path, Rename], TextTable]] = {
    ".csv": _from_csv,
    ".tsv": _from_csv,
    ".parquet": _from_parquet,
    ".jsonl": _from_json_lines,
    ".ndjson": _from_json_lines,
    ".json": _from_json,
}
"""What reads a table of texts, by its suffix."""
