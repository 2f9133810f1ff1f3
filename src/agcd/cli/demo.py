"""``agcd demo``."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="Folder for runs, figures and report.html.")] = Path("agcd-demo"),
    texts: Annotated[
        bool, typer.Option("--texts", help="With questions of a bank's customers in place of photographs.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Drives the split, the training and the questions.")] = 0,
) -> None:
    """Discover the hidden classes of embedded photographs or texts with a simulated annotator, and write a report."""
    from rich.console import Console

    from agcd.cli.by_hand import make_project
    from agcd.lab.demo import TEXTS, run_demo

    console = Console(width=110)
    done = run_demo(out, seed, TEXTS if texts else None, console=console)
    if done.dataset.paths is not None or done.dataset.texts is not None:
        folder = out / done.dataset.name
        make_project(done.cell, folder, out, out / "cache").close()
        what = "photographs" if done.dataset.texts is None else "texts"
        console.print(f"Now label the same {what} by hand, from the same start:")
        console.print(f"  [bold]{agcd_command()} serve {folder}[/bold]")


def agcd_command() -> str:
    """How ``agcd`` is called from here: by its name where that works, else by its place."""
    place = Path(sys.executable).parent / "agcd"
    if shutil.which("agcd"):
        return "agcd"
    return os.path.relpath(place) if place.drive == Path.cwd().drive else str(place)
