"""Metrics that somebody adds to a benchmark: measured on the stored models of a finished cell, and kept beside it.

A metric decides no run and no cell. So an edited one measures anew and trains nothing, and one that comes later finds
the models of before.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agcd.errors import ConfigError
from agcd.io import digest, read_json, write_json
from agcd.lab.cells import Cell, cell_dir, open_session, prepare, rounds_of
from agcd.lab.evaluator import rounded
from agcd.metrics import METRICS, columns_of
from agcd.session import code_part
from agcd.types import Prediction


def check_metrics(names: Sequence[str]) -> list[str]:
    """The columns of these metrics, by a prediction made up for it: a mistake shows before hours of work."""
    rng = np.random.default_rng(0)
    made_up = Prediction(np.arange(60), rng.dirichlet(np.ones(6), size=60), rng.normal(size=(60, 4)), "made up")
    return list(_joined([columns_of(name, made_up, np.arange(60) % 6, 3) for name in names]))


def is_measured(cell: Cell, out: Path, names: Sequence[str]) -> bool:
    """Whether nothing is left to measure of a finished cell."""
    return all(_path(cell, out, name).exists() for name in names)


def measure_cell(cell: Cell, out: Path, cache_dir: Path, names: Sequence[str]) -> list[dict[str, Any]]:
    """The columns of all metrics, one record per round of a finished cell; what was measured before is only read."""
    paths = {name: _path(cell, out, name) for name in names}
    todo = [name for name, path in paths.items() if not path.exists()]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in todo}
    prepared = prepare(cell, cache_dir) if todo else None
    if prepared is not None:
        evaluator = prepared.evaluator
        for done, _ in rounds_of(cell, prepared, open_session(cell, prepared, out)):
            prediction = done.fitted.predict(prepared.features, evaluator.rows, "ema")
            for name in todo:
                columns = columns_of(name, prediction, evaluator.truth[evaluator.rows], evaluator.n_old)
                found[name].append(rounded(columns))
    for name in todo:
        write_json(paths[name], found[name])
    by_metric = [found.get(name) or read_json(path) for name, path in paths.items()]
    return [_joined(columns) for columns in zip(*by_metric, strict=True)]


def with_columns(record: dict[str, Any], columns: dict[str, Any]) -> dict[str, Any]:
    """A record of a round with more columns, of which none may be called as one that it has."""
    return _joined([record, columns])


def _joined(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for part in parts:
        for column in part:
            if column in whole:
                raise ConfigError(f"A metric gives the column {column!r}, which there is already: call it otherwise.")
        whole |= part
    return whole


def _path(cell: Cell, out: Path, name: str) -> Path:
    return cell_dir(cell, out) / "metrics" / f"{digest([name, *code_part(METRICS.code(name))])}.json"
