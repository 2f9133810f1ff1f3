"""The columns of lists of images as people name them: one table of names for every kind of list."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

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
SECOND = "second label"
"""A further column that may name the classes: often the number of the class, or a wider one."""


def standard_names(source: object, columns: Sequence[str], needed: Sequence[str] = ("path",)) -> list[str]:
    """``columns`` with those that we read called ``path``, ``label`` and ``split``, and all others as they are."""
    folded = [_folded(name) for name in columns]
    names = list(folded)
    for standard, spellings in NAMES.items():
        present = [spelling for spelling in spellings if spelling in folded]
        for spelling in present[:1]:
            if (n := folded.count(spelling)) > 1:
                raise DataError(f"{source} has {n} columns called {spelling!r}; one is expected.")
            names[folded.index(spelling)] = standard
        if standard == "label" and len(present) > 1:
            names[folded.index(present[1])] = SECOND
    for standard in needed:
        if standard not in names:
            spelled = ", ".join(NAMES[standard][1:])
            raise DataError(f"{source} has no column {standard!r} (or {spelled}); {columns_there(folded)}.")
    return names


def _folded(name: str) -> str:
    return re.sub(r"[\s-]+", "_", str(name).strip().casefold())


def as_text(cell: Any) -> str:
    """A cell as text; a missing number is NaN in Parquet, and turns the whole numbers beside it into floats."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
