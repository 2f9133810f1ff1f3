"""``agcd data``: the data sets that benchmarks know."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agcd.cli.options import CacheOption
from agcd.io import default_cache

app = typer.Typer(help="The data sets known by name.")


@app.callback(invoke_without_command=True)
def data(context: typer.Context) -> None:
    """List the named data sets."""
    if context.invoked_subcommand is not None:
        return
    from agcd.lab.datasets import describe_named
    from agcd.lab.published import PUBLISHED

    for name, line in describe_named().items():
        print(f"{name:<14}  {line}")
    for facts in PUBLISHED.values():
        print(f"{facts.name:<14}  {facts.title} with the paper's split, from a path: {facts.name}=PATH")


@app.command()
def check(
    name: Annotated[str, typer.Argument(help="A data set of the paper, as cub.")],
    path: Annotated[Path, typer.Argument(help="Its folder or archive, as its authors publish it.")],
    cache: CacheOption = None,
) -> None:
    """Say whether a data set of the paper is complete, and compare its sizes with the paper's."""
    from agcd.lab.published import check_published

    checked = check_published(name, path, cache or default_cache())
    print("\n".join(checked.lines))
    if not checked.ok:
        raise typer.Exit(1)
