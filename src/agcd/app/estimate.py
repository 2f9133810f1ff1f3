"""The estimated number of classes of a project, kept beside its settings."""

from __future__ import annotations

from pathlib import Path

from agcd.io import read_json, write_json
from agcd.types import NumberOfClasses

FILE = "n_classes.json"


def read_estimate(folder: Path) -> NumberOfClasses | None:
    """What was estimated before, if it was."""
    return NumberOfClasses.from_json(read_json(folder / FILE)) if (folder / FILE).exists() else None


def write_estimate(folder: Path, estimate: NumberOfClasses) -> None:
    write_json(folder / FILE, estimate.to_json())
