"""Runs the comparison, once each what its tables share, and writes results, tables and a picture of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.figure
import numpy as np
from matplotlib.axes import Axes

from agcd import plotting
from agcd.engine import Engine
from agcd.io import atomic_write
from agcd.lab.bench import Progress, check_cells, print_now, run_bench
from agcd.lab.beyond.comparison import PICTURE, all_tables
from agcd.lab.beyond.plan import OURS, Plan
from agcd.lab.cells import NO_QUERY, Cell
from agcd.lab.finished import FinishedCells
from agcd.lab.paper.figure_plans import by_round
from agcd.lab.paper.study import Entry, Study
from agcd.lab.results import write_results
from agcd.words import shown


def run_beyond(
    plan: Plan, out: Path, cache_dir: Path, *, engine: Engine | None = None, progress: Progress = print_now
) -> str:
    """Write ``results.parquet``, ``results.csv``, ``beyond.md`` and ``beyond.png`` into ``out``; returns the tables.

    What is finished is not run again.
    """
    cells = needed_cells(plan)
    check_cells([cell for _, cell in cells])
    run_bench([cell for _, cell in cells], out, cache_dir, engine=engine, progress=progress)
    finished = FinishedCells(out, cache_dir)
    write_results(named_records(plan, finished), out)
    text = all_tables(plan, finished)
    with atomic_write(out / "beyond.md") as aside:
        aside.write_text(text, encoding="utf-8")
    with atomic_write(out / PICTURE) as aside:
        aside.write_bytes(plotting.png_bytes(draw_comparison(plan, finished)))
    return text


def needed_cells(plan: Plan) -> list[tuple[str, Cell]]:
    """The name of its line and the cell, each cell once; lines that are the same runs have the same name."""
    return list({repr(cell): (entry.line, cell) for entry in plan.entries for cell in entry.cells}.values())


def named_records(plan: Plan, finished: FinishedCells) -> list[dict[str, Any]]:
    """The records of all rounds, with the line they belong to: several lines share a strategy."""
    return [{"line": line, **record} for line, cell in needed_cells(plan) for record in finished.records(cell)]


@plotting.house_style()
def draw_comparison(plan: Plan, finished: FinishedCells) -> matplotlib.figure.Figure:
    """A curve for each line that asks, within a band of one deviation over seeds; all begin at the base model."""
    figure, grid = plotting.panels(len(plan.studies), 5.4, 4.0)
    looks = plotting.strokes([entry.line for entry in _asking(plan, plan.studies[0])], OURS)
    for axes, study in zip(grid, plan.studies, strict=True):
        entries = _asking(plan, study)
        for entry in entries:
            plotting.draw_band(axes, by_round(entry, "acc_all", finished), looks[entry.line])
        plotting.frame_shares(axes, "answers", "accuracy, all classes")
        _count_answers(axes, entries[0], finished)
        axes.set_title(shown(study.title, 30), loc="left")
    plotting.legend_below(figure, [stroke.key() for stroke in looks.values()])
    return figure


def _asking(plan: Plan, study: Study) -> list[Entry]:
    return [entry for entry in plan.main_entries(study) if entry.line != NO_QUERY]


def _count_answers(axes: Axes, entry: Entry, finished: FinishedCells) -> None:
    """Name each round by the answers given until then, which are the same for all lines."""
    n_answers = by_round(entry, "n_queried", finished).mean
    axes.set_xticks(np.arange(len(n_answers)), [f"{n:g}" for n in n_answers])
