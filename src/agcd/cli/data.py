"""``agcd data``: the data sets that benchmarks know."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agcd.cli.options import CacheOption, JsonAnywhere, JsonOption, tell
from agcd.io import default_cache

app = typer.Typer(cls=JsonAnywhere, help="The data sets known by name.")


@app.callback(invoke_without_command=True)
def data(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the named data sets."""
    if context.invoked_subcommand is not None:
        return
    from agcd.lab.datasets import describe_named
    from agcd.lab.published import PUBLISHED

    known = [{"name": name, "what": line, "needs_path": False} for name, line in describe_named().items()]
    for facts in PUBLISHED.values():
        line = f"{facts.title} with the paper's split, from a path: {facts.name}=PATH"
        known.append({"name": facts.name, "what": line, "needs_path": True})
    tell(as_json, {"data_sets": known}, (f"{found['name']:<14}  {found['what']}" for found in known))


@app.command()
def check(
    name: Annotated[str, typer.Argument(help="A data set of the paper, as cub.")],
    path: Annotated[Path, typer.Argument(help="Its folder or archive, as its authors publish it.")],
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say whether a data set of the paper is complete, and compare its sizes with the paper's."""
    from agcd.lab.published import check_published

    checked = check_published(name, path, cache or default_cache())
    tell(as_json, {"name": name, "ok": checked.ok, "lines": checked.lines}, checked.lines)
    if not checked.ok:
        raise typer.Exit(1)
