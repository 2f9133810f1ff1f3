"""Data sets × strategies × seeds: checks everything first, runs it, writes results and tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agcd.bench.cells import NO_QUERY, Cell
from agcd.bench.runner import Say, run_bench
from agcd.bench.tables import rounds_table, summary_table, write_results
from agcd.config import make_config
from agcd.discovery import get_trainer
from agcd.errors import ConfigError, did_you_mean
from agcd.files import written_aside
from agcd.strategies import get_strategy, list_strategies


def make_cells(
    data: Sequence[str], strategies: Sequence[str], n_seeds: int, settings: dict[str, Any], split: dict[str, Any]
) -> list[Cell]:
    """All cells of a grid; a mistake in any setting is found here, before anything runs."""
    for name in strategies:
        if name != NO_QUERY:
            _check_strategy(name)
    get_trainer(make_config(settings).train.trainer)
    return [Cell(spec, name, seed, settings, split) for spec in data for name in strategies for seed in range(n_seeds)]


def _check_strategy(name: str) -> None:
    try:
        get_strategy(name)
    except ConfigError:
        if ":" in name:
            raise
        raise ConfigError(f"Unknown strategy {name!r}.{did_you_mean(name, [NO_QUERY, *list_strategies()])}") from None


def report_bench(
    cells: Sequence[Cell], out: Path, cache_dir: Path, *, jobs: int | None = None, say: Say = print
) -> str:
    """Run all cells and write ``results.parquet``, ``results.csv`` and ``results.md`` into ``out``."""
    records = run_bench(cells, out, cache_dir, jobs=jobs, say=say)
    write_results(records, out)
    text = summary_table(records) + "\n" + rounds_table(records)
    with written_aside(out / "results.md") as aside:
        aside.write_text(text, encoding="utf-8")
    return text
