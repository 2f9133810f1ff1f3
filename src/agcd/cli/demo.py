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
    data: Annotated[
        str | None, typer.Option(help="Your own data in their place, every class labelled, as agcd bench run takes it.")
    ] = None,
    classes: Annotated[str, typer.Option(help="Only these of its classes, with commas between them.")] = "",
    seed: Annotated[int, typer.Option(help="Drives the split, the training and the questions.")] = 0,
) -> None:
    """Discover hidden classes with a simulated annotator, in embedded photographs or texts or your own data."""
    from rich.console import Console

    from agcd.cli.by_hand import make_project
    from agcd.errors import ConfigError
    from agcd.lab.demo import TEXTS, run_demo

    if texts and data:
        raise ConfigError("--texts is about the questions that come with agcd: give it or --data.")
    console = Console(width=110)
    chosen = [name for part in classes.split(",") if (name := part.strip())]
    done = run_demo(out, seed, TEXTS if texts else data, classes=chosen, console=console)
    has_items = done.dataset.paths is not None or done.dataset.texts is not None
    if has_items and data is None and not chosen:
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
