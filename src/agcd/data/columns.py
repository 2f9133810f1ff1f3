"""The columns of lists as people name them: one table of names for lists of images, and one for texts."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from agcd.data.reading import SourceOptions
from agcd.data.tables import columns_there
from agcd.errors import DataError

NAMES: dict[str, tuple[str, ...]] = {
    "path": (
        *("path", "filepath", "file_path", "image_path", "img_path", "file_name", "filename", "file"),
        *("image_file", "image_name", "image", "img", "picture", "photo"),
    ),
    "label": (
        *("label", "class", "category", "target", "class_name", "label_name", "category_name", "classname"),
        *("labels", "species"),
    ),
    "split": ("split", "set", "subset", "partition"),
}
"""What a column may be called, the likeliest first; upper case, spaces and hyphens do not matter."""
TEXT_NAMES: dict[str, tuple[str, ...]] = {
    "text": (
        *("text", "texts", "sentence", "utterance", "content", "body", "message", "question", "query", "document"),
        *("review", "comment", "tweet", "post", "ticket", "abstract", "description", "headline", "title", "subject"),
        *("review_text", "review_body", "comment_text", "full_text", "raw_text", "clean_text", "prompt", "input"),
    ),
    "label": (*NAMES["label"], "intent", "topic", "tag", "label_text"),
    "split": NAMES["split"],
    "id": ("id", "uid", "key"),
}
"""The same for texts, which are rows themselves and no files."""
OTHER = "="
"""What the standard name of a column begins with that is read for what it shows alone."""
_PICTURES = NAMES["path"]
_LINKS = ("link", "url", "href", "web_page")
_NAMELESS = frozenset({"", "unnamed:_0"})
"""How pandas writes the numbers of its rows."""
SECOND = "second label"
"""A further column that may name the classes: often the number of the class, or a wider one."""


def standard_names(source: object, columns: Sequence[str], needed: Sequence[str] = ("path",)) -> list[str]:
    """``columns`` with those that we read called ``path``, ``label`` and ``split``, and all others as they are."""
    folded = [_folded(name) for name in columns]
    names = list(folded)
    for standard, spellings in NAMES.items():
        present = [spelling for spelling in spellings if spelling in folded]
        for spelling in present[:1]:
            names[_place(source, folded, spelling)] = standard
        if standard == "label" and len(present) > 1:
            names[folded.index(present[1])] = SECOND
    for standard in needed:
        if standard not in names:
            spelled = ", ".join(NAMES[standard][1:])
            raise DataError(f"{source} has no column {standard!r} (or {spelled}); {columns_there(folded)}.")
    return names


def text_names(
    source: object, columns: Sequence[str], column: str | None = None, label_column: str | None = None
) -> list[str]:
    """``columns`` with those that we read called ``text``, ``label``, ``split`` and ``id``, and all others "".

    ``column`` and ``label_column`` are those that somebody asked for. Where no name tells the texts, they are in the
    only column that can hold them.
    """
    folded = [_folded(name) for name in columns]
    names = [""] * len(folded)
    for standard, option, wanted in (("text", "--column", column), ("label", "--label-column", label_column)):
        if wanted is not None:
            place = _asked_place(source, folded, option, wanted)
            if names[place]:
                raise DataError(f"--column and --label-column both name {wanted!r} of {source}; two are expected.")
            names[place] = standard
    for standard, spellings in TEXT_NAMES.items():
        present = [word for word in spellings if word in folded and not names[folded.index(word)]]
        if standard in names or not present:
            continue
        names[_place(source, folded, present[0])] = standard
        if standard == "label" and len(present) > 1:
            names[folded.index(present[1])] = SECOND
    if "text" not in names:
        names[_only_place(source, folded, names)] = "text"
    return names


def record_names(source: object, columns: Sequence[str], options: SourceOptions) -> list[str]:
    """``columns`` with those of a meaning called ``text``, ``label``, ``split``, ``id``, ``picture`` and ``link``, as
    ``options`` or their names say; all others get a name of their own that begins with ``OTHER``."""
    folded = [_folded(name) for name in columns]
    if not any(folded):
        raise DataError(f"{source} names no columns; their names are expected in the first line.")
    names = [f"{OTHER}{place}" if name not in _NAMELESS else "" for place, name in enumerate(folded)]
    roles = {
        "text": ("--column", options.column, TEXT_NAMES["text"][:1]),
        "label": ("--label-column", options.label_column, TEXT_NAMES["label"]),
        "picture": ("--picture-column", options.picture_column, _PICTURES),
        "link": ("--link-column", options.link_column, _LINKS),
        "split": ("", None, TEXT_NAMES["split"]),
        "id": ("", None, TEXT_NAMES["id"]),
    }
    for standard, (option, wanted, spellings) in roles.items():
        present = [word for word in spellings if word in folded and names[folded.index(word)].startswith(OTHER)]
        if wanted is not None:
            names[_asked_place(source, folded, option, wanted)] = standard
        elif present:
            names[_place(source, folded, present[0])] = standard
        if standard == "label" and wanted is None and len(present) > 1:
            names[folded.index(present[1])] = SECOND  # it may name the class as well: who answers must not see it
    return names


def other_texts(columns: Sequence[str], names: Sequence[str]) -> list[str]:
    """The columns that may hold texts by their names, but were not taken."""
    pairs = zip(columns, names, strict=True)
    return [column for column, name in pairs if not name and _folded(column) in TEXT_NAMES["text"]]


def is_text_name(column: str) -> bool:
    return _folded(column) in TEXT_NAMES["text"]


def _place(source: object, folded: Sequence[str], name: str) -> int:
    """Where the one column with this name is."""
    if (n := folded.count(name)) > 1:
        raise DataError(f"{source} has {n} columns called {name!r}; one is expected.")
    return folded.index(name)


def _asked_place(source: object, folded: Sequence[str], option: str, wanted: str) -> int:
    if _folded(wanted) not in folded:
        raise DataError(f"{source} has no column {wanted!r}; {columns_there(folded)}: give one of them with {option}.")
    return _place(source, folded, _folded(wanted))


def _only_place(source: object, folded: Sequence[str], names: Sequence[str]) -> int:
    """The one column that is left for the texts, or the only one at all."""
    if not any(folded):
        raise DataError(f"{source} names no columns; one called 'text' is expected.")
    rest = [place for place, name in enumerate(names) if not name and folded[place] not in _NAMELESS]
    if len(folded) == 1:
        return 0
    if len(rest) == 1:
        return rest[0]
    spelled = ", ".join(TEXT_NAMES["text"][:6])
    raise DataError(
        f"{source} has no column of texts ({spelled} …); {columns_there(folded)}: give one of them with --column, or "
        "name the columns in the first line."
    )


def _folded(name: str) -> str:
    return re.sub(r"[\s-]+", "_", str(name).strip().casefold())


def as_text(cell: Any) -> str:
    """A cell as text; a missing number is NaN in Parquet, and turns the whole numbers beside it into floats."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
