"""Embeddings that were given with the items of a project: one file for every time that rows were added.

They cannot be computed again, so they stand beside the records, not in ``cache/``, and the records hold their digests.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agcd.app.store.seals import RESTORE
from agcd.app.store.store import Store
from agcd.errors import DataError, StorageError
from agcd.io import BAD_ARRAY, atomic_write, file_sha256
from agcd.types import FloatArray

FOLDER = "embeddings"
"""The folder in a project."""
_PREFIX = f"{FOLDER}/"


def add_embeddings(folder: Path, store: Store, x: FloatArray, first: int) -> None:
    """Keep the vectors of the rows from ``first`` on; part of the transaction that adds the rows."""
    if has_given_embeddings(store) and (width := width_of_embeddings(folder, store)) != x.shape[1]:
        raise DataError(f"The new embeddings have {x.shape[1]} numbers each; those of the project have {width}.")
    name = f"{_PREFIX}{first:09d}.npy"
    with atomic_write(folder / name) as aside, aside.open("wb") as handle:
        np.save(handle, np.asarray(x, np.float32), allow_pickle=False)
    store.set_digest(name, file_sha256(folder / name))


def has_given_embeddings(store: Store) -> bool:
    """Whether the items came with embeddings, which then are their features."""
    return bool(store.digests(_PREFIX))


def width_of_embeddings(folder: Path, store: Store) -> int:
    """How many numbers a vector has, where some were given; nothing but the head of a file is read."""
    return int(_read(folder, next(iter(store.digests(_PREFIX))), None).shape[1])


def read_given_embeddings(folder: Path, store: Store) -> NDArray[np.float32] | None:
    """(n, d): the vectors of all rows; None where none were given."""
    parts = [_read(folder, name, digest) for name, digest in sorted(store.digests(_PREFIX).items())]
    return np.concatenate(parts) if parts else None


def problems_of_embeddings(folder: Path, store: Store) -> list[tuple[Path, StorageError]]:
    """The files that are not what was stored, each with the error of whoever reads it."""
    found = []
    for name, digest in store.digests(_PREFIX).items():
        try:
            _read(folder, name, digest)
        except StorageError as error:
            found.append((folder / name, error))
    return found


def _read(folder: Path, name: str, digest: str | None) -> NDArray[np.float32]:
    path = folder / name
    try:
        if digest is not None and file_sha256(path) != digest:
            raise StorageError(f"{path} is damaged (its numbers are not those that were stored): {RESTORE}.")
        values: NDArray[np.float32] = np.load(path, mmap_mode="r", allow_pickle=False)
    except BAD_ARRAY as error:
        raise StorageError(f"{path} is damaged or gone ({str(error).splitlines()[0]:.100}): {RESTORE}.") from None
    return values
