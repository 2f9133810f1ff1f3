"""Runs many cells in parallel, where the engine says; whatever is finished is never run again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from agcd.config import ROUND_SETTINGS
from agcd.data.scan import describe_health
from agcd.engine import Engine, open_engine
from agcd.features import open_features
from agcd.lab.cells import Cell, load, records_path, run_base, run_cell

Say = Callable[[str], None]


def say_at_once(line: str) -> None:
    """Print now, also into a file or a pipe, where somebody may be watching a long run."""
    print(line, flush=True)


def run_bench(
    cells: Sequence[Cell], out: Path, cache_dir: Path, *, engine: Engine | None = None, say: Say = say_at_once
) -> Any:
    """Records of all cells, in the order of ``cells``: features first, then bases, then rounds.

    Base models come before rounds so that no two processes wait for the same one.
    """
    engine = engine or open_engine()
    distinct = {(cell.data, str(cell.settings.get("backbone"))): cell for cell in cells}.values()
    datasets = [load(cell, cache_dir).dataset for cell in distinct]
    for dataset in datasets:
        for line in describe_health(dataset):
            say(line)
    for cell, dataset in zip(distinct, datasets, strict=True):
        open_features(dataset, cell.config.backbone, cache_dir, fill=engine.fill)
    # Finished cells are not counted: they take no time, and the estimate of what is left would be far too low.
    todo = [cell for cell in cells if not records_path(cell, out).exists()]
    bases = list({_base_of(cell): cell for cell in todo}.values())
    place = out.absolute(), cache_dir.absolute()  # workers may stand elsewhere
    names = [f"base: {cell.data} seed {cell.seed}" for cell in bases]
    _all_done(engine.run(run_base, [(cell, *place) for cell in bases]), names, say)
    names = [f"rounds: {cell.data} {cell.strategy} seed {cell.seed}" for cell in todo]
    _all_done(engine.run(run_cell, [(cell, *place) for cell in todo]), names, say)
    return [record for cell in cells for record in run_cell(cell, out, cache_dir)]


def _base_of(cell: Cell) -> str:
    """Equal for cells that start from the same base model: what is asked and learned later plays no part in it."""
    settings = {name: value for name, value in cell.settings.items() if name != "query"}
    train = {name: value for name, value in settings.pop("train", {}).items() if name not in ROUND_SETTINGS}
    settings |= {"train": train} if train else {}
    return repr((cell.data, cell.seed, settings, cell.split))


def _all_done(finished: Iterable[tuple[int, Any]], names: Sequence[str], say: Say) -> None:
    """Wait for all, with a line and an estimate for each."""
    started = time.monotonic()
    for n, (i, _) in enumerate(finished, 1):
        left = (time.monotonic() - started) / n * (len(names) - n)
        say(f"{n}/{len(names)} {names[i]}, about {left / 60:.0f} min left")
