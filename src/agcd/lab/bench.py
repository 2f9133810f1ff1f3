"""Data sets × strategies × seeds: checks everything first, runs it, writes results and tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agcd.engine import Engine
from agcd.errors import ConfigError, did_you_mean
from agcd.io import atomic_write
from agcd.lab.cells import NO_QUERY, Cell
from agcd.lab.presets import with_preset
from agcd.lab.results import rounds_table, summary_table, write_results
from agcd.lab.runner import Say, run_bench, say_at_once
from agcd.session import strategy_settings
from agcd.strategies import list_strategies, select
from agcd.training import get_trainer
from agcd.types import PoolView


def make_cells(
    data: Sequence[str], strategies: Sequence[str], n_seeds: int, settings: dict[str, Any], split: dict[str, Any]
) -> list[Cell]:
    """All cells of a grid; a mistake in any setting is found here, before anything runs."""
    cells = [
        Cell(spec, name, seed, with_preset(spec, settings), split)
        for spec in data
        for name in strategies
        for seed in range(n_seeds)
    ]
    check_cells(cells)
    return cells


def check_cells(cells: Sequence[Cell]) -> None:
    """Find wrong names and options of strategies and trainers before anything runs."""
    for cell in {(cell.strategy, str(cell.settings)): cell for cell in cells}.values():
        get_trainer(cell.config.train.trainer)
        if cell.strategy != NO_QUERY:
            _rehearse(cell)


def _rehearse(cell: Cell) -> None:
    """Ask the strategy, with its options, about a pool made up for it: a wrong name or option shows at once."""
    if ":" not in cell.strategy and cell.strategy not in list_strategies():
        hint = did_you_mean(cell.strategy, [NO_QUERY, *list_strategies()])
        raise ConfigError(f"Unknown strategy {cell.strategy!r}.{hint}")
    rng = np.random.default_rng(0)
    probs, features = rng.dirichlet(np.ones(6), size=48), rng.normal(size=(48, 4))
    view = PoolView(np.arange(40), probs[:40], features[:40], features[40:], np.arange(8) % 6, n_old=3)
    select(view, cell.strategy, 5, rng, strategy_settings(cell.config.query))


def report_bench(
    cells: Sequence[Cell], out: Path, cache_dir: Path, *, engine: Engine | None = None, say: Say = say_at_once
) -> str:
    """Run all cells and write ``results.parquet``, ``results.csv`` and ``results.md`` into ``out``."""
    records = run_bench(cells, out, cache_dir, engine=engine, say=say)
    write_results(records, out)
    text = summary_table(records) + "\n" + rounds_table(records)
    with atomic_write(out / "results.md") as aside:
        aside.write_text(text, encoding="utf-8")
    return text
