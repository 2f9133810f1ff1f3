"""Runs many cells in parallel processes; whatever is finished is never run again."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from agcd.bench.cells import Cell, load, records_path, run_base, run_cell
from agcd.data.scan import describe_health
from agcd.discovery.loop import use_one_thread
from agcd.features import open_features

Say = Callable[[str], None]


def say_at_once(line: str) -> None:
    """Print now, also into a file or a pipe, where somebody may be watching a long run."""
    print(line, flush=True)


def run_bench(
    cells: Sequence[Cell], out: Path, cache_dir: Path, *, jobs: int | None = None, say: Say = say_at_once
) -> Any:
    """Records of all cells, in the order of ``cells``: features first, then bases, then rounds.

    Base models come before rounds so that no two processes wait for the same one.
    """
    distinct = {(cell.data, str(cell.settings.get("backbone"))): cell for cell in cells}.values()
    datasets = [load(cell, cache_dir).dataset for cell in distinct]
    for dataset in datasets:
        for line in describe_health(dataset):
            say(line)
    for cell, dataset in zip(distinct, datasets, strict=True):
        open_features(dataset, cell.config.backbone, cache_dir)
    # Finished cells are not counted: they take no time, and the estimate of what is left would be far too low.
    todo = [cell for cell in cells if not records_path(cell, out).exists()]
    jobs = min(jobs or os.cpu_count() or 1, max(1, len(todo)))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=use_one_thread) as pool:
        bases = {_base_of(cell): cell for cell in todo}.values()
        _all_done({pool.submit(run_base, c, out, cache_dir): f"{c.data} seed {c.seed}" for c in bases}, "base", say)
        futures = {pool.submit(run_cell, c, out, cache_dir): f"{c.data} {c.strategy} seed {c.seed}" for c in todo}
        _all_done(futures, "rounds", say)
    return [record for cell in cells for record in run_cell(cell, out, cache_dir)]


def _base_of(cell: Cell) -> str:
    """Equal for cells that start from the same base model: what is asked plays no part in it."""
    settings = {name: value for name, value in cell.settings.items() if name != "query"}
    return repr((cell.data, cell.seed, settings, cell.split))


def _all_done(names: dict[Future[Any], str], what: str, say: Say) -> None:
    """Wait for all, with a line and an estimate for each; the first failure stops what has not begun."""
    started = time.monotonic()
    try:
        for n, future in enumerate(as_completed(names), 1):
            future.result()
            left = (time.monotonic() - started) / n * (len(names) - n)
            say(f"{what} {n}/{len(names)}: {names[future]}, about {left / 60:.0f} min left")
    except BaseException:
        for future in names:
            future.cancel()
        raise
