"""``agcd paper``: the paper's tables and figures on any data set."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from agcd.cli.options import (
    AddressOption,
    CacheOption,
    DataOption,
    EngineOption,
    GpusOption,
    JobsOption,
    NodesOption,
    OutOption,
    ProtocolOption,
    RendezvousOption,
    SetOption,
    SplitOption,
    TrackOption,
    with_overrides,
)
from agcd.io import default_cache


def paper(
    what: Annotated[Literal["table", "figure", "all"], typer.Argument(help="One table, one figure, or everything.")],
    data: DataOption,
    out: OutOption,
    name: Annotated[str, typer.Argument(help="Which table or figure; a wrong name lists them.")] = "",
    seeds: Annotated[int, typer.Option(help="Number of seeds, counted from 0.", min=1)] = 3,
    other_seeds: Annotated[
        int | None, typer.Option(help="Seeds of what carries no claim of its own; default as --seeds.", min=1)
    ] = None,
    protocol: ProtocolOption = "paper",
    quick: Annotated[bool, typer.Option("--quick", help="A small version: one seed, few epochs and rounds.")] = False,
    split: SplitOption = None,
    jobs: JobsOption = None,
    engine: EngineOption = "local",
    address: AddressOption = None,
    nodes: NodesOption = 1,
    rendezvous: RendezvousOption = None,
    gpus: GpusOption = None,
    set_: SetOption = None,
    cache: CacheOption = None,
    track: TrackOption = None,
) -> None:
    """Make the paper's tables and figures on any data set; what they share is run once, and it resumes."""
    from agcd.engine import open_engine
    from agcd.lab.paper.run_paper import find_wanted, run_paper
    from agcd.lab.paper.study import open_study
    from agcd.tracking import open_tracking

    wanted = find_wanted(what, name)
    cache_dir, seeds = cache or default_cache(), 1 if quick else seeds
    values = with_overrides({"protocol": protocol}, set_ or [])
    how = {} if split is None else {"classes": split}
    studies = [open_study(spec, seeds, values, how, cache_dir, quick=quick) for spec in data]
    where = open_engine(engine, address=address, processes=jobs, nodes=nodes, rendezvous=rendezvous, gpus=gpus)
    tracking = open_tracking(track, out)
    print(run_paper(studies, wanted, other_seeds or seeds, out, cache_dir, engine=where, track=tracking))
