"""A CSV or Parquet list of image files as a data set: columns ``path``, ``label``, ``split``."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agcd.data.items import Item, clean_name, image_dataset
from agcd.data.tables import read_table
from agcd.errors import DataError, did_you_mean
from agcd.types import Dataset, Quarantined

COLUMNS = ("path", "label", "split")
SPLITS = {"": False, "train": False, "test": True}
_SHOWN_COLUMNS = 20


@dataclass(frozen=True)
class _Line:
    """One line of a manifest, as text; empty means not given."""

    number: int
    path: str
    label: str
    split: str


def from_manifest(path: Path | str, *, allow_outside: bool = False) -> Dataset:
    """The images that a manifest lists, in its order.

    Relative paths start at the manifest's folder. An empty label (or −1) means unlabelled, an empty split train.
    Paths that lead out of that folder are refused unless ``allow_outside``.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"There is no manifest at {path}: a .csv or .parquet file with a column 'path' is expected.")
    read = _read_parquet if path.suffix.lower() == ".parquet" else _read_csv
    items: dict[str, Item] = {}
    strays: list[Quarantined] = []
    missing: list[str] = []
    for line in read(path):
        real = _locate(path, line, allow_outside)
        if real is None:
            strays.append(Quarantined(line.path, "link that leads outside the manifest's folder"))
        elif not os.path.exists(real):
            missing.append(line.path)
        else:
            _add(items, real, _to_item(path, line), path, line)
    if missing:
        raise DataError(f"{path} lists {len(missing)} paths that do not exist, the first is {missing[0]!r}.")
    return image_dataset(path.stem, items.values(), strays, otherwise=f"{path} lists no usable image")


def _to_item(manifest: Path, line: _Line) -> Item:
    if line.split.casefold() not in SPLITS:
        raise DataError(
            f"{manifest}, line {line.number}: split is {line.split!r}; 'train', 'test' or nothing is expected."
        )
    label = None if line.label in ("", "-1") else clean_name(line.label)
    return Item(Path(os.path.normpath(manifest.parent / line.path)), line.path, label, SPLITS[line.split.casefold()])


def _add(items: dict[str, Item], real: str, item: Item, manifest: Path, line: _Line) -> None:
    """Take ``item`` unless its file is listed already: a file listed twice is a slip, or a contradiction."""
    known = items.setdefault(real, item)
    if known is item:
        return
    said = [f"{i.label!r} for {'test' if i.is_test else 'train'}" for i in (known, item)]
    how = "" if said[0] == said[1] else f", as {said[0]} and as {said[1]}"
    raise DataError(f"{manifest}, line {line.number}: {item.shown!r} is listed twice{how}; once is expected.")


def _locate(manifest: Path, line: _Line, allow_outside: bool) -> str | None:
    """The real path of a line's file, or None where a link inside the folder leads out of it."""
    folder = os.path.abspath(manifest.parent)
    if not line.path or "\0" in line.path:
        raise DataError(f"{manifest}, line {line.number}: the path is {line.path!r}; the path of an image is expected.")
    written = os.path.normpath(os.path.join(folder, line.path))
    real = os.path.realpath(written)
    if allow_outside or Path(real).is_relative_to(os.path.realpath(folder)):
        return real
    if Path(written).is_relative_to(folder):
        return None
    raise DataError(f"{manifest}, line {line.number}: {line.path!r} lies outside the manifest's folder.")


def _read_csv(path: Path) -> Iterator[_Line]:
    for number, cells in read_table(path, ("path",)):
        yield _line(number, cells)


def _read_parquet(path: Path) -> Iterator[_Line]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            places = _places(path, names)
            table = file.read(columns=[names[i] for i in places.values()])
        for field in table.schema:
            if not _is_plain(field.type):
                raise DataError(f"{path}: column {field.name!r} is of type {field.type}; text or numbers are expected.")
        columns = [table.column(names[i]).to_pylist() for i in places.values()]
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not a readable Parquet file ({str(error).splitlines()[0]}).") from None
    for number, cells in enumerate(zip(*columns, strict=True), start=1):
        yield _line(number, dict(zip(places, cells, strict=True)))


def _is_plain(arrow_type: Any) -> bool:
    from pyarrow import types

    kind = arrow_type.value_type if types.is_dictionary(arrow_type) else arrow_type
    checks = (types.is_string, types.is_large_string, types.is_integer, types.is_floating, types.is_null)
    return any(check(kind) for check in checks)


def _places(path: Path, names: Sequence[str]) -> dict[str, int]:
    """Where the columns that we read stand among ``names``; only ``path`` must be there."""
    folded = [name.strip().casefold() for name in names]
    for column in COLUMNS:
        if folded.count(column) > 1:
            raise DataError(f"{path} has {folded.count(column)} columns called {column!r}.")
    if "path" not in folded:
        shown = [name[:40] for name in folded[:_SHOWN_COLUMNS]]
        raise DataError(f"{path} has no column 'path'.{did_you_mean('path', shown)}")
    return {column: folded.index(column) for column in COLUMNS if column in folded}


def _line(number: int, cells: dict[str, Any]) -> _Line:
    text = {column: _as_text(cells.get(column)) for column in COLUMNS}
    return _Line(number, text["path"], text["label"].strip(), text["split"].strip())


def _as_text(cell: Any) -> str:
    """A cell as text; a missing number is NaN in Parquet, and turns the whole numbers beside it into floats."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
