"""The number of classes that Max-ACC estimates for each seed of a study; stored, because it takes a minute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from agcd.io import digest, read_json, write_json
from agcd.lab.cells import Cell, prepare
from agcd.lab.runner import Say
from agcd.training.n_classes import estimate_n_classes, prefix_features
from agcd.types import NumberOfClasses

METHOD = "brent"
"""The paper's search. The product's default is "grid"; docs/method.md compares them."""


def estimates_of(cells: Sequence[Cell], out: Path, cache_dir: Path, say: Say) -> list[NumberOfClasses]:
    """One estimate for the start of each cell; strategies and training play no part in it."""
    return [_estimate(cell, out, cache_dir, say) for cell in cells]


def _estimate(cell: Cell, out: Path, cache_dir: Path, say: Say) -> NumberOfClasses:
    parts = {"data": cell.data, "seed": cell.seed, "split": cell.split, "backbone": cell.settings.get("backbone")}
    path = out / "estimates" / f"{digest([parts, METHOD])}.json"
    if not path.exists():
        prepared = prepare(cell, cache_dir)
        labels = prepared.labels
        rows = labels.train_rows
        x = prefix_features(prepared.features, rows)
        found = estimate_n_classes(x, labels.y_class[rows], labels.n_old, method=METHOD, seed=cell.seed)
        write_json(path, {"cell": asdict(cell), "estimate": found.to_json()})
        say(f"number of classes, {cell.data} seed {cell.seed}: {found.n} estimated")
    return NumberOfClasses.from_json(read_json(path)["estimate"])
