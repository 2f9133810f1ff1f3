"""The files of a finished run, trusted only as they were written; needs no torch.

``done.json``, written last, holds the digest of every other file and of itself. ``checked`` compares them whenever a
file is read, so that a damaged model, mapping or prediction is an error and never another result.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agcd.errors import StorageError
from agcd.io import digest_file, read_json, read_sealed

MODEL, MAPPING, PREDICTIONS, METRICS = "model.safetensors", "mapping.json", "predictions.parquet", "metrics.json"
CONFIG, DONE, LOG = "config.json", "done.json", "log.jsonl"
RESULTS = (CONFIG, MODEL, MAPPING, PREDICTIONS, METRICS)


def digests(folder: Path) -> dict[str, str]:
    """The digest of each file, as ``done.json`` keeps it; trainers without epochs write no log."""
    names = [*RESULTS, *([LOG] if (folder / LOG).exists() else [])]
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
        return read_sealed(folder / name) if name == DONE else read_json(folder / name)
    except FileNotFoundError:
        raise damaged(folder / name, "is missing") from None
    except ValueError:
        raise damaged(folder / name, "is damaged") from None


def damaged(path: Path, how: str) -> StorageError:
    return StorageError(f"{path} {how}: move {path.parent} away, and training makes that round again as it was.")
