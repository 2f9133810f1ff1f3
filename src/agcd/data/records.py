"""Records: rows of a table shown as a few cells, with a picture, a text or a link where the table has one.

A record says how a row looks and nothing about what it is like: embeddings that are given do that. In a data set, and
in a project, it is a JSON object.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from agcd.data.arrays import number_labels
from agcd.data.columns import OTHER, as_text, record_names
from agcd.data.images import ImageError, probe, read_file
from agcd.data.items import nothing_usable
from agcd.data.json_lists import MAX_BYTES
from agcd.data.listing import is_for_testing, label_of, listing_of, with_one_label
from agcd.data.reading import DEFAULT_OPTIONS, Choose, Reading, SourceOptions, take_first
from agcd.data.text_items import clean_text
from agcd.data.text_tables import TABLES, TextTable, lines_of_table
from agcd.errors import DataError
from agcd.io import digest_bytes, parse_strictly
from agcd.types import UNLABELLED, Dataset, Quarantined
from agcd.words import count, printable

RECORD_PATHS = "a table (.csv, .tsv, .parquet, .jsonl, .ndjson or .json)"
"""What is read, for sentences that refuse something else."""
MAX_CELLS, MAX_CELL = 40, 2000
"""Of one record are shown; a longer text is better in the column of texts."""
EMPTY = "empty: there is nothing to show"
_WHAT = {"text": "texts", "label": "classes", "split": "splits", "id": "names", "picture": "pictures", "link": "links"}
_LINK = re.compile(r"https?://[^\s<>\"']+", re.IGNORECASE)
Cells = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Record:
    """What is shown of one row."""

    cells: Cells = ()
    text: str = ""
    link: str = ""
    """An http or https address."""
    picture: str = ""
    """The path of a picture, from the folder of the table."""
    picture_key: str = ""
    """The key of that picture's content."""

    def to_json(self) -> str:
        """As one line; what is not there is left out."""
        return json.dumps({name: value for name, value in vars(self).items() if value}, ensure_ascii=False)

    @staticmethod
    def from_json(content: str) -> Record:
        """What ``to_json`` gave. The project may be a stranger's, so that nothing in it is believed."""
        try:
            found = parse_strictly(content)
            cells = tuple((str(name), str(value)) for name, value in found.get("cells", ()))
            texts = {name: str(found.get(name, "")) for name in ("text", "link", "picture", "picture_key")}
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise DataError(f"{content[:40]!r} is no record: a JSON object with cells is expected.") from None
        return Record(cells, **texts | {"link": texts["link"] if _LINK.fullmatch(texts["link"]) else ""})


def read_records(source: Path | str, options: SourceOptions = DEFAULT_OPTIONS, choose: Choose = take_first) -> Reading:
    """The rows of the table at ``source`` as records; what cannot be used is set aside with a reason."""
    source = Path(source)
    if not source.is_file() or source.suffix.lower() not in TABLES:
        raise DataError(f"{source} cannot be read as records: {RECORD_PATHS} is expected.")
    if (n_bytes := source.stat().st_size) > MAX_BYTES:
        raise DataError(f"{source} has {n_bytes:,} bytes, more than the {MAX_BYTES:,} that are read: split the file.")
    table = TABLES[source.suffix.lower()](source, partial(record_names, options=options))
    lines = lines_of_table(source, table)
    listing = listing_of(table.columns, table.names, lines, _WHAT)
    lines, doubts = with_one_label(source, listing, choose, "--label-column takes the other one")
    pictures = _Pictures(source.parent, options.allow_outside)
    refused: list[Quarantined] = []
    kept, records = [], []
    for line, (_, cells) in zip(lines, table.rows, strict=True):
        record = _record(table, cells, pictures)
        if record != Record():
            kept.append(line)
            records.append(record.to_json())
        else:
            refused.append(Quarantined(line.path, EMPTY))
    if not kept:
        raise nothing_usable(f"{source} holds no usable record", refused)
    classes, y_class = number_labels([label_of(line) or UNLABELLED for line in kept], None)
    dataset = Dataset(
        name=source.stem,
        classes=classes,
        y_class=y_class,
        is_test=np.array([is_for_testing(source, line) for line in kept], dtype=np.bool_),
        keys=record_keys(records),
        quarantine=tuple(refused),
        records=tuple(records),
        where=tuple(line.path for line in kept),
    )
    notes = [f"{source.name}: {count(len(lines), 'record')}", *listing.notes, *pictures.notes()]
    return Reading(dataset, source.parent, tuple(map(printable, notes)), tuple(doubts))


def record_keys(records: Sequence[str]) -> tuple[str, ...]:
    """The content keys of records: equal ones share one."""
    return tuple(digest_bytes(record.encode()) for record in records)


def _record(table: TextTable, cells: Mapping[str, Any], pictures: _Pictures) -> Record:
    """What is shown of one line."""
    shown = _shown_cells(table, cells)
    link, place = (as_text(cells.get(name)).strip() for name in ("link", "picture"))
    is_link, key = bool(_LINK.fullmatch(link)), pictures.key(place) if place else None
    shown += [("link", link[:MAX_CELL])] if link and not is_link else []
    shown += [("picture", place[:MAX_CELL])] if place and not key else []
    return Record(
        cells=tuple(shown),
        text=clean_text(as_text(cells.get("text")))[0],
        link=link if is_link else "",
        picture=place.replace("\\", "/") if key else "",
        picture_key=key or "",
    )


def _shown_cells(table: TextTable, cells: Mapping[str, Any]) -> list[tuple[str, str]]:
    pairs = zip(table.columns, table.names, strict=True)
    named = [(column, as_text(cells.get(name))) for column, name in pairs if name.startswith(OTHER)]
    cleaned = [(clean_text(column)[0], clean_text(value)[0][:MAX_CELL]) for column, value in named]
    return [pair for pair in cleaned if pair[1]][:MAX_CELLS]


class _Pictures:
    """The pictures that records name, below the folder of their table."""

    def __init__(self, folder: Path, allow_outside: bool) -> None:
        self.folder, self.allow_outside = folder, allow_outside
        self._real, self._problems = os.path.realpath(folder), list[str]()

    def key(self, place: str) -> str | None:
        """The key of a picture's content; None where it cannot be shown."""
        written = os.path.normpath(os.path.join(self.folder, place.replace("\\", "/")))
        is_inside = Path(os.path.realpath(written)).is_relative_to(self._real)
        if "\0" in place or not (is_inside or self.allow_outside):
            self._problems.append(f"{place}: lies outside the table's folder; --allow-outside takes it")
            return None
        try:
            content = read_file(Path(written))
            if (reason := probe(content)) is None:
                return digest_bytes(content)
        except ImageError as error:
            reason = error.reason
        self._problems.append(f"{place}: {reason}")
        return None

    def notes(self) -> list[str]:
        n = len(self._problems)
        return [f"{count(n, 'picture')} cannot be shown, the first is {self._problems[0]}"] if n else []
