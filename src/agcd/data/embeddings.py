"""Embeddings that somebody made of the items of a source: one vector per item, told apart by order or by ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agcd.errors import DataError
from agcd.io import BAD_ARRAY
from agcd.types import Dataset
from agcd.words import count, printable

EMBEDDING_PATHS = "an .npy, .npz or .parquet file"
_ARRAYS = ("x", "embeddings", "features", "vectors", "arr_0")
_IDS = ("ids", "id", "where", "path", "paths", "key", "keys", "filename", "file", "name")
Embeddings = NDArray[np.float32]


def with_embeddings(dataset: Dataset, path: Path, names: Sequence[str]) -> Dataset:
    """``dataset`` with the vectors in the file at ``path`` as features; ``names`` are what ids in it may be.

    Without ids the vectors stand in the order of the rows.
    """
    values, ids = read_embeddings(path)
    return replace(dataset, x=_by_id(path, values, ids, names) if ids else _in_order(path, values, dataset))


def read_embeddings(path: Path) -> tuple[Embeddings, list[str]]:
    """The vectors (n, d) in a file, and their ids where it has some."""
    if not path.is_file():
        raise DataError(f"There are no embeddings at {path}: {EMBEDDING_PATHS} is expected.")
    readers = {".npy": _from_npy, ".npz": _from_npz, ".parquet": _from_parquet}
    if path.suffix.lower() not in readers:
        raise DataError(f"{path} cannot be read as embeddings: {EMBEDDING_PATHS} is expected.")
    raw, ids = readers[path.suffix.lower()](path)
    if raw.ndim != 2 or not raw.size or raw.dtype.kind not in "fiu":
        raise DataError(f"{path} holds {raw.dtype} of shape {raw.shape}; one vector of numbers per item is expected.")
    values = np.asarray(raw, np.float32)
    bad = np.flatnonzero(~np.isfinite(values).all(1))
    if len(bad):
        raise DataError(f"{path}: vector {bad[0]} holds numbers that are not finite, as do {len(bad) - 1} more.")
    if ids and len(ids) != len(values):
        raise DataError(f"{path} has {len(ids)} ids for {len(values)} vectors.")
    return values, ids


def _from_npy(path: Path) -> tuple[NDArray[Any], list[str]]:
    try:
        return np.load(path, allow_pickle=False), []
    except BAD_ARRAY as error:
        raise DataError(f"{path} is not a readable array ({str(error).splitlines()[0]:.100}).") from None


def _from_npz(path: Path) -> tuple[NDArray[Any], list[str]]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files if name in (*_ARRAYS, *_IDS)}
            all_names = arrays.files
    except BAD_ARRAY as error:
        raise DataError(f"{path} is not a readable archive of arrays ({str(error).splitlines()[0]:.100}).") from None
    name = next((name for name in _ARRAYS if name in found), None)
    if name is None:
        there = printable(", ".join(map(repr, all_names[:20])))
        raise DataError(f"{path} has no array {_ARRAYS[0]!r}; its arrays are {there}.")
    ids = next((found[one] for one in _IDS if one in found), None)
    return found[name], [] if ids is None else [str(one) for one in ids.tolist()]


def _from_parquet(path: Path) -> tuple[NDArray[Any], list[str]]:
    """A column of lists, or columns of numbers alone; a column of ids beside them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is not a readable Parquet file ({str(error).splitlines()[0]:.100}).") from None
    ids_name = next((name for name in _IDS if name in table.column_names), None)
    ids = [] if ids_name is None else [str(one) for one in table[ids_name].to_pylist()]
    lists = [name for name in table.column_names if pa.types.is_list(table.schema.field(name).type)]
    lists += [name for name in table.column_names if pa.types.is_fixed_size_list(table.schema.field(name).type)]
    if len(lists) > 1:
        raise DataError(f"{path} has {len(lists)} columns of lists; one with the vectors is expected.")
    if lists:
        vectors = table[lists[0]].to_pylist()
        width = len(vectors[0] or ()) if vectors else 0
        if any(vector is None or len(vector) != width for vector in vectors):
            raise DataError(f"{path}: the vectors in {lists[0]!r} are not all of one length.")
        return np.array(vectors, np.float32), ids
    numbers = [name for name in table.column_names if pa.types.is_floating(table.schema.field(name).type)]
    if not numbers:
        raise DataError(f"{path} holds no vectors: a column of lists, or columns of numbers, are expected.")
    return np.stack([table[name].to_numpy() for name in numbers], 1), ids


def _in_order(path: Path, values: Embeddings, dataset: Dataset) -> Embeddings:
    if len(values) == dataset.n_rows:
        return values
    n_aside = len(dataset.quarantine)
    why = f", and {count(n_aside, 'item')} were set aside: give ids beside the vectors" if n_aside else ""
    raise DataError(f"{path} has {count(len(values), 'vector')} for {count(dataset.n_rows, 'item')}{why}.")


def _by_id(path: Path, values: Embeddings, ids: Sequence[str], names: Sequence[str]) -> Embeddings:
    place = {one: number for number, one in enumerate(ids)}
    if len(place) < len(ids):
        twice = next(one for number, one in enumerate(ids) if place[one] != number)
        raise DataError(printable(f"{path} has two vectors of {twice!r}; one is expected."))
    lacking = [name for name in names if name not in place]
    if lacking:
        raise DataError(
            printable(
                f"{path} has no vector of {lacking[0]!r}, nor of {len(lacking) - 1} more; its first id is {ids[0]!r}."
            )
        )
    return values[[place[name] for name in names]]
