"""Where data comes from: a folder, a manifest or an embeddings file, each made into a ``Dataset``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from agcd.data.arrays import from_arrays, from_npz
from agcd.data.folder import from_folder
from agcd.data.manifest import from_manifest
from agcd.errors import DataError
from agcd.types import Dataset

__all__ = ["LOADERS", "PATHS", "from_arrays", "from_folder", "from_manifest", "from_npz", "load_dataset"]

PATHS = "a folder, a .csv or .parquet manifest, or an .npz file"
"""What is read, for sentences that refuse something else."""
LOADERS: dict[str, Callable[[Path], Dataset]] = {
    ".csv": from_manifest,
    ".tsv": from_manifest,
    ".parquet": from_manifest,
    ".npz": from_npz,
}
"""What reads a file, by its suffix."""


def load_dataset(path: Path | str) -> Dataset:
    """The data at ``path``."""
    path = Path(path)
    if path.is_dir():
        return from_folder(path)
    if (load := LOADERS.get(path.suffix.lower())) is not None:
        return load(path)
    if path.exists():
        raise DataError(f"{path} cannot be read as data: {PATHS} is expected.")
    raise DataError(f"There is nothing at {path}: {PATHS} is expected.")
