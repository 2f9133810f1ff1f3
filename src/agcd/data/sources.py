"""Where data comes from: a folder, a manifest or an embeddings file, each made into a ``Dataset``."""

from __future__ import annotations

from pathlib import Path

from agcd.data.arrays import from_arrays, from_npz
from agcd.data.folder import from_folder
from agcd.data.manifest import from_manifest
from agcd.errors import DataError
from agcd.types import Dataset

__all__ = ["FILE_SUFFIXES", "PATHS", "from_arrays", "from_folder", "from_manifest", "from_npz", "load_dataset"]

PATHS = "a folder, a .csv or .parquet manifest, or an .npz file"
"""What is read, for sentences that refuse something else."""
_MANIFESTS, _EMBEDDINGS = (".csv", ".tsv", ".parquet"), ".npz"
FILE_SUFFIXES = (*_MANIFESTS, _EMBEDDINGS)


def load_dataset(path: Path | str) -> Dataset:
    """The data at ``path``."""
    path = Path(path)
    if path.is_dir():
        return from_folder(path)
    suffix = path.suffix.lower()
    if suffix in _MANIFESTS:
        return from_manifest(path)
    if suffix == _EMBEDDINGS:
        return from_npz(path)
    if path.exists():
        raise DataError(f"{path} cannot be read as data: {PATHS} is expected.")
    raise DataError(f"There is nothing at {path}: {PATHS} is expected.")
