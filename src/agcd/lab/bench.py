"""Data sets × strategies × seeds: all is checked first, then run in parallel, and written as tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from agcd.config import ROUND_SETTINGS
from agcd.data.health import describe_health
from agcd.engine import Engine, open_engine
from agcd.engine.here import HereEngine
from agcd.errors import ConfigError, did_you_mean
from agcd.features import open_features
from agcd.features.devices import find_device
from agcd.io import atomic_write
from agcd.lab.cells import NO_QUERY, Cell, load, records_path, run_base, run_cell
from agcd.lab.given import name_without_digest
from agcd.lab.measured import check_metrics, is_measured, measure_cell, with_columns
from agcd.lab.published import with_preset
from agcd.lab.results import Record, rounds_table, summary_table, write_results
from agcd.metrics import METRICS
from agcd.session import strategy_settings
from agcd.strategies import STRATEGIES, select
from agcd.tracking import Tracking
from agcd.training import REGISTRY, trainer_options
from agcd.types import PoolView

Progress = Callable[[str], None]
"""Takes a line about how far the work has come."""


def print_now(line: str) -> None:
    """Print without delay, also into a file or a pipe, where somebody may be watching a long run."""
    print(line, flush=True)


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
        trainer_options(cell.config.train)
        if cell.strategy != NO_QUERY:
            _dry_run(cell)


def _dry_run(cell: Cell) -> None:
    """Ask the strategy, with its options, about a pool made up for it: a wrong name or option shows at once."""
    if ":" not in cell.strategy and cell.strategy not in STRATEGIES.names():
        hint = did_you_mean(cell.strategy, [NO_QUERY, *STRATEGIES.names()])
        raise ConfigError(f"Unknown strategy {cell.strategy!r}.{hint}")
    rng = np.random.default_rng(0)
    # 40 rows to choose 5 from and 8 labelled ones, 6 slots of which 3 are old: small, and no part of it is empty.
    probs, features = rng.dirichlet(np.ones(6), size=48), rng.normal(size=(48, 4))
    view = PoolView(np.arange(40), probs[:40], features[:40], features[40:], np.arange(8) % 6, n_old=3)
    select(view, cell.strategy, 5, rng, strategy_settings(cell.config.query))


def report_bench(
    cells: Sequence[Cell],
    out: Path,
    cache_dir: Path,
    *,
    engine: Engine | None = None,
    progress: Progress = print_now,
    track: Tracking | None = None,
    metrics: Sequence[str] = (),
) -> str:
    """Run all cells and write ``results.parquet``, ``results.csv`` and ``results.md`` into ``out``."""
    records = run_bench(cells, out, cache_dir, engine=engine, progress=progress, track=track, metrics=metrics)
    return write_report(records, out, check_metrics(metrics))


def write_report(records: Sequence[Record], out: Path, more: Sequence[str] = ()) -> str:
    """Write the records of a benchmark and the tables made of them, with the columns ``more`` of metrics; returns the
    tables."""
    write_results(records, out)
    text = summary_table(records, more) + "\n" + rounds_table(records)
    with atomic_write(out / "results.md") as aside:
        aside.write_text(text, encoding="utf-8")
    return text


def run_bench(
    cells: Sequence[Cell],
    out: Path,
    cache_dir: Path,
    *,
    engine: Engine | None = None,
    progress: Progress = print_now,
    track: Tracking | None = None,
    metrics: Sequence[str] = (),
) -> list[Record]:
    """Records of all cells, in the order of ``cells``; what is finished is not run again.

    Features come first. Base models are begun before rounds, by the same processes; who needs a base that another one
    is training waits for it. ``track`` is told of what is trained; ``metrics`` are measured as well, each with columns
    of its own.
    """
    check_metrics(metrics)
    engine = engine or open_engine()
    compute_features(cells, cache_dir, engine, progress)
    # Finished cells are not counted: they take no time, and the estimate of what is left would be far too low.
    todo = [cell for cell in cells if not records_path(cell, out).exists()]
    # Whatever asks later plays no part in a base, also if only this process has it.
    bases = list({_base_of(cell): replace(cell, strategy=NO_QUERY) for cell in todo}.values())
    place = out.absolute(), cache_dir.absolute()  # workers may stand elsewhere
    work = [*(Work(run_base, cell) for cell in bases), *(Work(run_cell, cell) for cell in todo)]
    names, epochs = [one.title for one in work], [one.n_epochs for one in work]
    wait_for_all(_dealt(engine, work, *place, track=track), names, progress, epochs)
    records = [list(map(_with_trainer(cell), run_cell(cell, out, cache_dir))) for cell in cells]
    if metrics:
        is_here = any(map(METRICS.is_lent, metrics))
        new = [cell for cell in cells if not is_measured(cell, out, metrics)]
        measure = [Work(measure_cell, cell) for cell in new]
        for _ in _dealt(HereEngine() if is_here else engine, measure, *place, names=metrics):
            pass
        measured = (measure_cell(cell, out, cache_dir, metrics) for cell in cells)
        records = [list(map(with_columns, *both)) for both in zip(records, measured, strict=True)]
    return [record for own in records for record in own]


def _with_trainer(cell: Cell) -> Callable[[Record], Record]:
    title = trainer_title(cell)
    return lambda record: {"data": cell.data, "trainer": title, **record}


def trainer_title(cell: Cell) -> str:
    """What a table calls the trainer of a cell: its name, and the options that were given to it."""
    train = cell.config.train
    options = ", ".join(f"{name}={value}" for name, value in train.options.items())
    return f"{train.trainer} ({options})" if options else train.trainer


@dataclass(frozen=True)
class Work:
    """Something to be done for a cell, in a process that may be another one."""

    function: Callable[..., Any]
    cell: Cell

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.function(self.cell, *args, **options)

    @property
    def is_base(self) -> bool:
        return self.function is run_base

    @property
    def title(self) -> str:
        """In a line about how far the work has come."""
        cell = self.cell
        about = f"{name_without_digest(cell.data)} {trainer_title(cell)}"
        return (
            f"base: {about} seed {cell.seed}" if self.is_base else f"rounds: {about} {cell.strategy} seed {cell.seed}"
        )

    @property
    def n_epochs(self) -> int:
        """How long it will take beside others, roughly: what opens a run counts as one epoch."""
        config = self.cell.config
        if self.is_base:
            return 1 + config.train.base_epochs
        return 1 if self.cell.strategy == NO_QUERY else config.query.rounds * (1 + config.train.round_epochs)


def _dealt(engine: Engine, work: Sequence[Work], *place: Path, **options: Any) -> Iterator[tuple[int, Any]]:
    """All ``work`` as the engine deals it out, and here what no other process could do."""
    for runner, is_lent in ((engine, False), (HereEngine(), True)):
        own = [i for i, one in enumerate(work) if _is_lent(one.cell) == is_lent]
        if own:
            device = find_device(work[own[0]].cell.config.device).type
            tasks = [(work[i], place, options | _fit_of(work[i], runner)) for i in own]
            for n, result in runner.run(_do, tasks, device):
                yield own[n], result


def _do(work: Work, place: Sequence[Path], options: dict[str, Any]) -> Any:
    return work(*place, **options)


def _fit_of(work: Work, engine: Engine) -> dict[str, Any]:
    """Who trains, where the work is training."""
    return {"fit": engine.fit_in_task} if work.function in (run_base, run_cell) else {}


def _is_lent(cell: Cell) -> bool:
    return STRATEGIES.is_lent(cell.strategy) or REGISTRY.is_lent(cell.config.train.trainer)


def compute_features(cells: Sequence[Cell], cache_dir: Path, engine: Engine, progress: Progress) -> None:
    """The features of every data set and backbone once, after a word about the health of each."""
    distinct = {(cell.data, str(cell.settings.get("backbone"))): cell for cell in cells}.values()
    datasets = [load(cell, cache_dir).dataset for cell in distinct]
    for dataset in datasets:
        for line in describe_health(dataset):
            progress(line)
    for cell, dataset in zip(distinct, datasets, strict=True):
        open_features(dataset, cell.config.backbone, cache_dir, device=cell.config.device, fill=engine.fill)


def _base_of(cell: Cell) -> str:
    """Equal for cells that start from the same base model: what is asked and learned later plays no part in it."""
    settings = {name: value for name, value in cell.settings.items() if name != "query"}
    train = {name: value for name, value in settings.pop("train", {}).items() if name not in ROUND_SETTINGS}
    settings |= {"train": train} if train else {}
    return repr((cell.data, cell.seed, settings, cell.split))


def results_of(
    engine: Engine, work: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], names: Sequence[str], progress: Progress
) -> list[Any]:
    """What ``work`` gives for every task, in their order, however they were dealt out."""
    found: dict[int, Any] = {}
    wait_for_all(((i, found.setdefault(i, result)) for i, result in engine.run(work, tasks)), names, progress)
    return [found[i] for i in range(len(tasks))]


def wait_for_all(
    finished: Iterable[tuple[int, Any]], names: Sequence[str], progress: Progress, sizes: Sequence[int] | None = None
) -> None:
    """Wait until every task is done, with a line and an estimate of the time left for each; all are of the same size
    unless ``sizes`` are given."""
    sizes = sizes or [1] * len(names)
    started, done = time.monotonic(), 0
    for n, (i, _) in enumerate(finished, 1):
        done += sizes[i]
        left = (time.monotonic() - started) / done * (sum(sizes) - done)
        progress(f"{n}/{len(names)} {names[i]}, about {left / 60:.0f} min left")
