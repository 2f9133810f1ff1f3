"""Where data comes from: a name, a folder, a manifest or an embeddings file, each made into a ``Dataset``."""

from __future__ import annotations

from pathlib import Path

from agcd.data.arrays import from_arrays, from_npz
from agcd.data.folder import from_folder
from agcd.data.manifest import from_manifest
from agcd.errors import DataError, did_you_mean
from agcd.lab.named import NAMED
from agcd.lab.published import PUBLISHED, load_published, parse_spec
from agcd.types import Dataset

__all__ = ["from_arrays", "from_folder", "from_manifest", "from_npz", "load_dataset"]

_PATHS = "a folder, a .csv or .parquet manifest, or an .npz file"


def load_dataset(spec: str | Path, *, cache_dir: Path = Path("cache"), allow_outside: bool = False) -> Dataset:
    """The data set that ``spec`` means: a name of the registry, or the path of a folder, manifest or .npz file.

    ``cub=PATH`` is a published data set in its original layout at a path. A name wins over a folder of the same
    name; write ``./toy`` for the folder. ``cache_dir`` is where a named set may unpack; ``allow_outside`` lets a
    manifest list files outside its folder.
    """
    if isinstance(spec, str) and spec in NAMED:
        return NAMED[spec](cache_dir)
    if isinstance(spec, str) and (found := parse_spec(spec)) is not None:
        return load_published(*found, cache_dir)
    path = Path(spec)
    if path.is_dir():
        return from_folder(path)
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv", ".parquet"):
        return from_manifest(path, allow_outside=allow_outside)
    if suffix == ".npz":
        return from_npz(path)
    if path.exists():
        raise DataError(f"{path} cannot be read as data: {_PATHS} is expected.")
    name, is_named, _ = str(spec).partition("=")
    if is_named and "/" not in name:
        raise DataError(f"Unknown published data set {name!r}.{did_you_mean(name, PUBLISHED)}")
    if len(path.parts) > 1:
        raise DataError(f"There is nothing at {path}: {_PATHS} is expected.")
    allowed = [*NAMED, *(f"{name}=PATH" for name in PUBLISHED)]
    raise DataError(f"Unknown data set {str(spec)!r}.{did_you_mean(str(spec), allowed)} Or give a path: {_PATHS}.")
