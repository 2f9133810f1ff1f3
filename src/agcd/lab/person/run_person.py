"""``agcd bench person``: every way, seed and rate of errors, as a table, a file of results and a picture."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from agcd.config import make_config
from agcd.errors import ConfigError, did_you_mean
from agcd.io import atomic_write, digest, read_json, write_json
from agcd.lab.bench import Progress, print_now
from agcd.lab.datasets import load_data
from agcd.lab.person.costs import Costs, reading_costs
from agcd.lab.person.curves import Curve, Run, record
from agcd.lab.person.picture import draw_runs
from agcd.lab.person.pool import Drawn, Start, draw_pool
from agcd.lab.person.simulated import Person
from agcd.lab.person.tables import person_tables, result_lines
from agcd.lab.person.ways import WAYS, Place, check_ways
from agcd.lab.results import name_of, write_results
from agcd.plotting import png_bytes
from agcd.rng import generator
from agcd.types import Dataset

CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "core": time.process_time}


@dataclass(frozen=True)
class Study:
    """What is measured."""

    data: tuple[str, ...]
    ways: tuple[str, ...] = tuple(WAYS)
    start: Start = field(default_factory=lambda: Start(20, 8, 5))
    n_seeds: int = 3
    errors: tuple[float, ...] = (0.0,)
    minutes: float = 20
    costs: Costs = field(default_factory=Costs)
    """Of pictures; what looking at texts takes is reckoned from their words."""
    looks: dict[str, float] = field(default_factory=dict)
    """Seconds of ``recognise`` and ``scan`` that somebody asked for, whatever is looked at."""
    waiting: str = "wall"
    """Whether waiting is what the clock on the wall says, or the seconds of a core that the work took."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Of the project that the page serves; its backbone, nothing of it trained, gives the others their features."""
    overrides: tuple[str, ...] = ()
    """The same settings as ``agcd init --set`` takes them."""

    def costs_of(self, dataset: Dataset) -> Costs:
        costs = self.costs if dataset.texts is None else reading_costs(self.costs, dataset.texts)
        recognise, scan = (self.looks.get(name, getattr(costs, name)) for name in ("recognise", "scan"))
        return replace(costs, recognise=recognise, scan=scan)


def report_person(study: Study, out: Path, cache_dir: Path, progress: Progress = print_now) -> str:
    """Run what ``out`` lacks; write ``results.csv``, ``results.md`` and ``person.png`` there; the tables."""
    runs = list(run_person(study, out, cache_dir, progress))
    write_results([line for run in runs for line in result_lines(run, study.minutes)], out)
    text = person_tables(runs, study.minutes)
    with atomic_write(out / "results.md") as aside:
        aside.write_text(text, encoding="utf-8")
    without = [run for run in runs if run.errors == min(study.errors)]
    with atomic_write(out / "person.png") as aside:
        aside.write_bytes(png_bytes(draw_runs(without, study.minutes)))
    return text


def run_person(study: Study, out: Path, cache_dir: Path, progress: Progress = print_now) -> Iterator[Run]:
    """All runs, one after the other, so that none makes another wait; what is stored in ``out`` is not run again."""
    _check(study)
    for data in study.data:
        dataset = load_data(data, cache_dir)
        noun = "picture" if dataset.texts is None else "text"
        has_items = dataset.paths is not None or dataset.texts is not None
        shown = [name for name in study.ways if has_items or not WAYS[name].needs_items]
        for name in study.ways:
            if name not in shown:
                progress(f"{data} holds nothing to show: left out {WAYS[name].words!r}")
        for seed in range(study.n_seeds):
            desk = _Desk(study, data, dataset, seed, out, cache_dir)
            for name in shown:
                for errors in study.errors:
                    yield Run(data, name, seed, errors, desk.curve(name, errors, progress), noun)


@dataclass
class _Desk:
    """One collection, drawn with one seed, at which one way after the other is tried."""

    study: Study
    data: str
    dataset: Dataset
    seed: int
    out: Path
    cache_dir: Path

    @cached_property
    def drawn(self) -> Drawn:
        backbone = make_config(self.study.settings).backbone
        frozen = backbone.model_copy(update={"trainable_blocks": 0, "views": 1})
        return draw_pool(self.dataset, self.study.start, self.seed, frozen, self.cache_dir)

    def curve(self, name: str, errors: float, progress: Progress) -> Curve:
        """What became of one way, from the disk if it was tried before."""
        study, what = self.study, [self.data, name, self.seed, errors]
        costs = study.costs_of(self.dataset)
        decides = [asdict(study.start), study.minutes, asdict(costs), study.waiting, study.settings]
        key = digest([*what, *decides])
        path = self.out / "curves" / f"{key}.json"
        if not path.exists():
            person = make_person(self.drawn, costs, errors, self.seed, CLOCKS[study.waiting])
            place = Place(self.out / "projects" / key, study.overrides)
            names = WAYS[name].run(self.drawn.pool, person, place)
            curve = record(names, self.drawn, person, study.minutes)
            write_json(path, curve.to_json())
            last = curve.moments[-1]
            progress(
                f"{name_of(self.data)} seed {self.seed}, {name}, {100 * errors:g} % errors: "
                f"{100 * last.right:.1f} % right after {last.seconds / 60:.1f} min"
            )
        return Curve.from_json(read_json(path))


def make_person(
    drawn: Drawn, costs: Costs, errors: float, seed: int, clock: Callable[[], float] = time.perf_counter
) -> Person:
    """A person who knows the truth of a collection, and at first the names of its known classes."""
    truth = drawn.truth.tolist()
    known = range(len(drawn.pool.known))
    rng = generator(seed, "person", "errors")
    return Person(truth.__getitem__, drawn.names, known, costs, errors=errors, rng=rng, clock=clock)


def _check(study: Study) -> None:
    if study.waiting not in CLOCKS:
        raise ConfigError(f"--waiting is {study.waiting!r}.{did_you_mean(study.waiting, CLOCKS)}")
    check_ways(study.ways)
    make_config(study.settings)
    for share in study.errors:
        if not 0 <= share < 1:
            raise ConfigError(f"--errors has {share:g}: shares from 0 to 1 are expected, as 0,0.02.")


def read_errors(text: str) -> tuple[float, ...]:
    """Rates of errors, as the command line gives them."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(f"--errors is {text!r}: numbers with commas between them are expected, as 0,0.02.") from None
