"""The estimated number of classes of a project, kept beside its settings."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from agcd.io import read_json, write_json

FILE = "n_classes.json"


@dataclass(frozen=True)
class NumberOfClasses:
    """How many classes there seem to be, and which numbers explain the labels about as well."""

    n: int
    low: int
    high: int
    curve: tuple[tuple[int, float], ...]
    """Numbers that were tried, and the accuracy on labelled rows at each."""

    def words(self) -> str:
        return f"about {self.n} classes ({self.low} to {self.high} explain the labels about as well)"


def read_estimate(folder: Path) -> NumberOfClasses | None:
    """What was estimated before, if it was."""
    if not (folder / FILE).exists():
        return None
    stored = read_json(folder / FILE)
    curve = tuple((int(n), float(share)) for n, share in stored["curve"])
    return NumberOfClasses(stored["n"], stored["low"], stored["high"], curve)


def write_estimate(folder: Path, estimate: NumberOfClasses) -> None:
    write_json(folder / FILE, asdict(estimate))
