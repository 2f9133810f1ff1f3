"""The files of a finished run, trusted only as they were written; needs no torch.

``done.json``, written last, holds the digest of every other file. ``checked`` compares it whenever one is read, so that
a damaged model, mapping or prediction is an error and never another result.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agcd.errors import StorageError
from agcd.io import digest_file, read_json

MODEL, MAPPING, PREDICTIONS, METRICS = "model.safetensors", "mapping.json", "predictions.parquet", "metrics.json"
CONFIG, DONE = "config.json", "done.json"
RESULTS = (CONFIG, MODEL, MAPPING, PREDICTIONS, METRICS)


def digests(folder: Path, names: Iterable[str] = RESULTS) -> dict[str, str]:
    """The digest of each file, as ``done.json`` keeps it."""
    return {name: digest_file(folder / name) for name in names}


def checked(folder: Path, name: str) -> Path:
    """The path of a file of a finished run that is what was written; runs of version 0.2 kept no digests."""
    path = folder / name
    if not path.is_file():
        raise damaged(path, "is missing")
    expected = read_run_json(folder, DONE).get("digests", {}).get(name)
    if expected is not None and digest_file(path) != expected:
        raise damaged(path, "is damaged")
    return path


def read_checked(folder: Path, name: str) -> Any:
    """What a JSON file of a finished run holds."""
    checked(folder, name)
    return read_run_json(folder, name)


def read_run_json(folder: Path, name: str) -> Any:
    """What a JSON file of a run holds, in progress or finished."""
    try:
        return read_json(folder / name)
    except FileNotFoundError:
        raise damaged(folder / name, "is missing") from None
    except ValueError:
        raise damaged(folder / name, "is damaged") from None


def damaged(path: Path, how: str) -> StorageError:
    return StorageError(f"{path} {how}: move {path.parent} away, and training makes that round again as it was.")
