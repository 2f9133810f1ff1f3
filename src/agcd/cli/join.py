"""``agcd join``."""

from __future__ import annotations

from typing import Annotated

import typer

from agcd.cli.options import ProcessesOption


def join(
    rendezvous: Annotated[str, typer.Argument(metavar="HOST:PORT", help="As given to --rendezvous on the first one.")],
    nodes: Annotated[int, typer.Option(help="Machines that train together, as on the first one.", min=2)] = 2,
    processes: ProcessesOption = None,
) -> None:
    """Train on this machine what a command with --nodes trains on another one, until Ctrl-C."""
    from agcd.engine.agents import join as join_runs

    join_runs(rendezvous, nodes, processes)
