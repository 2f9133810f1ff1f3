"""Runs the comparison, once each what its tables share, and writes results, tables and picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agcd.engine import Engine
from agcd.io import atomic_write
from agcd.lab.bench import check_cells
from agcd.lab.beyond.picture import draw
from agcd.lab.beyond.plan import Plan
from agcd.lab.beyond.tables import PICTURE, all_tables
from agcd.lab.cells import Cell
from agcd.lab.paper.look import Look
from agcd.lab.results import write_results
from agcd.lab.runner import Say, run_bench, say_at_once
from agcd.report.style import png_bytes


def run_beyond(plan: Plan, out: Path, cache_dir: Path, *, engine: Engine | None = None, say: Say = say_at_once) -> str:
    """Write ``results.parquet``, ``results.csv``, ``beyond.md`` and ``beyond.png`` into ``out``; returns the tables.

    What is finished is not run again.
    """
    cells = needed_cells(plan)
    check_cells([cell for _, cell in cells])
    run_bench([cell for _, cell in cells], out, cache_dir, engine=engine, say=say)
    look = Look(out, cache_dir)
    write_results(named_records(plan, look), out)
    text = all_tables(plan, look)
    with atomic_write(out / "beyond.md") as aside:
        aside.write_text(text, encoding="utf-8")
    with atomic_write(out / PICTURE) as aside:
        aside.write_bytes(png_bytes(draw(plan.studies, look)))
    return text


def needed_cells(plan: Plan) -> list[tuple[str, Cell]]:
    """The name of its line and the cell, each cell once; lines that are the same runs have the same name."""
    return list({repr(cell): (entry.line, cell) for entry in plan.entries for cell in entry.cells}.values())


def named_records(plan: Plan, look: Look) -> list[dict[str, Any]]:
    """The records of all rounds, with the line they belong to: several lines share a strategy."""
    return [{"line": line, **record} for line, cell in needed_cells(plan) for record in look.records(cell)]
