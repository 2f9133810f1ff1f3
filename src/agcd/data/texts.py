"""Texts from tables, from files of lines and from folders of ``.txt``, each source made into a ``Dataset``."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from agcd.data.arrays import as_labels, number_labels
from agcd.data.columns import as_text, is_text_name, other_texts, text_names
from agcd.data.folder import understand, walk
from agcd.data.images import ImageError, read_file
from agcd.data.json_lists import MAX_BYTES
from agcd.data.listing import is_for_testing, label_of, listing_of, with_one_label
from agcd.data.reading import DEFAULT_OPTIONS, Choose, Reading, SourceOptions, take_first
from agcd.data.tables import decoded, lines_of
from agcd.data.text_items import MAX_CHARS, TextItem, clean_text, reason_against, text_dataset, text_keys
from agcd.data.text_tables import TABLES, WHAT, TextTable, lines_of_table
from agcd.errors import DataError
from agcd.types import Dataset, Quarantined
from agcd.words import count, listed, printable

TEXT_PATHS = (
    "a table (.csv, .tsv, .parquet, .jsonl, .ndjson or .json), a .txt file with one text a line, or a folder of .txt "
    "files"
)
"""What is read, for sentences that refuse something else."""
_UNDECODABLE = "neither UTF-8, UTF-16 with a byte order mark nor Windows-1252; save it as UTF-8"
_SUFFIXES = frozenset({".txt"})
_log = logging.getLogger(__name__)


def read_texts(source: Path | str, options: SourceOptions = DEFAULT_OPTIONS, choose: Choose = take_first) -> Reading:
    """The texts at ``source`` and what it was understood to be; what cannot be used is set aside with a reason.

    Where several readings are possible ``choose`` decides. Texts that are equal stay rows of their own with one key.
    """
    source = Path(source)
    if source.is_dir():
        return _read_folder(source, options, choose)
    if not source.is_file():
        raise DataError(f"There is nothing to read at {source}: {TEXT_PATHS} is expected.")
    suffix = source.suffix.lower()
    if suffix != ".txt" and suffix not in TABLES:
        raise DataError(f"{source} cannot be read as texts: {TEXT_PATHS} is expected.")
    if (n_bytes := source.stat().st_size) > MAX_BYTES:
        raise DataError(f"{source} has {n_bytes:,} bytes, more than the {MAX_BYTES:,} that are read: split the file.")
    if suffix == ".txt":
        return _read_lines(source)
    rename = partial(text_names, column=options.column, label_column=options.label_column)
    return _read_table(source, TABLES[suffix](source, rename), options, choose)


def from_texts(
    texts: Sequence[str],
    y: ArrayLike | Sequence[Any] | None = None,
    *,
    texts_test: Sequence[str] | None = None,
    y_test: ArrayLike | Sequence[Any] | None = None,
    classes: Sequence[str] | None = None,
    name: str = "texts",
) -> Dataset:
    """Texts in memory with labels ``y``, and likewise for testing, as a data set of n + n_test rows.

    Labels are as in ``from_arrays``. Every text is a row, so that rows stay those of the caller: one that cannot be
    used is a ``DataError``.
    """
    rows = _usable(texts, "texts")
    labels = as_labels(y, len(rows), "y")
    n_train = len(rows)
    if texts_test is not None:
        rows += _usable(texts_test, "texts_test")
        labels += as_labels(y_test, len(rows) - n_train, "y_test")
    elif y_test is not None:
        raise DataError("y_test is given without texts_test.")
    names, y_class = number_labels(labels, classes)
    return Dataset(
        name=name,
        classes=names,
        y_class=y_class,
        is_test=np.arange(len(rows)) >= n_train,
        keys=text_keys(rows),
        texts=tuple(rows),
        where=tuple(f"row {row}" for row in range(len(rows))),
    )


def _usable(texts: Sequence[str], what: str) -> list[str]:
    """All texts, clean; the first that cannot be used is named."""
    if isinstance(texts, str | bytes):
        raise DataError(f"{what} is one text, {printable(repr(texts[:40]))}; a list of texts is expected.")
    rows: list[str] = []
    n_shortened = 0
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataError(f"{what} holds {str(text)[:40]!r} in row {row}; a text is expected: leave the row out.")
        cleaned, is_shortened = clean_text(text)
        if (reason := reason_against(text, cleaned)) is not None:
            raise DataError(f"{what} cannot be used, row {row} is {reason}: leave the row out.")
        rows.append(cleaned)
        n_shortened += is_shortened
    if not rows:
        raise DataError(f"{what} is empty: one text at least is expected.")
    for note in _shortened_note(n_shortened):
        _log.warning("%s: %s", what, note)
    return rows


def _shortened_note(n: int) -> list[str]:
    return [f"{count(n, 'text')} {'was' if n == 1 else 'were'} shortened to {MAX_CHARS:,} characters"] if n else []


# ------------------------------------------------------------------------------------------------------- tables


def _read_table(source: Path, table: TextTable, options: SourceOptions, choose: Choose) -> Reading:
    lines = lines_of_table(source, table)
    listing = listing_of(table.columns, table.names, lines, WHAT)
    lines, doubts = with_one_label(source, listing, choose, "--label-column takes the other one")
    items = [
        TextItem(line.path, as_text(cells.get("text")), label_of(line), is_for_testing(source, line))
        for line, (_, cells) in zip(lines, table.rows, strict=True)
    ]
    notes = [*listing.notes, *_notes_on_columns(table, options), *table.notes]
    return _reading(source, items, notes, doubts)


def _notes_on_columns(table: TextTable, options: SourceOptions) -> list[str]:
    """A word where the column of the texts was not told by its name alone."""
    if options.column is not None:
        return []
    taken = table.columns[table.names.index("text")]
    if not is_text_name(taken):
        return [f"{taken!r} is the only column that can hold the texts"]
    others = [repr(column) for column in other_texts(table.columns, table.names)]
    return [f"texts may be in {listed(others)} as well: --column takes another one"] if others else []


def _reading(source: Path, items: Sequence[TextItem], notes: Sequence[str], doubts: Sequence[str] = ()) -> Reading:
    dataset, n_shortened = text_dataset(source.stem, items, otherwise=f"{source} holds no usable text")
    tree = [f"{source.name}: {count(len(items), 'text')}", *notes, *_shortened_note(n_shortened)]
    return Reading(dataset, source.parent, tuple(map(printable, tree)), tuple(doubts))


# --------------------------------------------------------------------------------------------------- plain text


def _read_lines(source: Path) -> Reading:
    """A file with one text a line; nothing says their classes."""
    content = _content(source)
    if isinstance(content, Quarantined):
        raise DataError(f"{source} holds no usable text: {content.reason}.")
    lines = lines_of(content.removesuffix("\n"))
    items = [TextItem(f"{source.name}:{n}", line) for n, line in enumerate(lines, start=1) if line.strip()]
    n_blank = len(lines) - len(items)
    blank = [f"{count(n_blank, 'empty line')} passed over"] if n_blank else []
    return _reading(source, items, ["one text a line, without labels", *blank])


def _read_folder(root: Path, options: SourceOptions, choose: Choose) -> Reading:
    """The ``.txt`` files under ``root`` as one text each, labelled by their folders; rows are sorted by path."""
    found = walk(root, options, _SUFFIXES, frozenset())
    if not found.files and found.lists:
        raise DataError(
            f"{root} holds no .txt file but {'/'.join(found.lists[0])!r}: give that file in place of the folder."
        )
    layout, doubts, tree = understand(root, found.files, options, choose, "text")
    items, refused = [], list(found.quarantine)
    for parts in found.files:
        where = "/".join(parts)
        content = _content(root.joinpath(*parts), where)
        if isinstance(content, Quarantined):
            refused.append(content)
        else:
            items.append(TextItem(where, content, layout.label(parts), layout.is_test(parts)))
    expected = f"{root} holds no usable text: .txt files are expected, in one subfolder per class where they have one"
    dataset, n_shortened = text_dataset(root.resolve().name, items, refused, otherwise=expected)
    notes = [f"{count(found.n_other, 'file')} without .txt passed over"] if found.n_other else []
    tree = (*tree, *notes, *_shortened_note(n_shortened))
    return Reading(dataset, root, tree, doubts, class_level=layout.class_level)


def _content(path: Path, where: str = "") -> str | Quarantined:
    """The text of a file, or why it has none."""
    try:
        return decoded(read_file(path, max_bytes=MAX_BYTES))
    except ImageError as error:
        return Quarantined(where, error.reason)
    except UnicodeDecodeError:
        return Quarantined(where, _UNDECODABLE)
