"""CSV lists of image files: columns ``path``, ``label``, ``split`` under the names that people give them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agcd.data.columns import standard_names
from agcd.data.listing import Listing, line_of, listing_of
from agcd.data.tables import read_table


def read_csv(path: Path) -> Listing:
    """The lines of a CSV file."""
    columns: list[str] = []
    names: list[str] = []

    def rename(found: Sequence[str]) -> list[str]:
        columns[:], names[:] = found, standard_names(path, found)
        return names

    lines = [line_of(number, cells) for number, cells in read_table(path, ("path",), rename)]
    return listing_of(columns, names, lines)
