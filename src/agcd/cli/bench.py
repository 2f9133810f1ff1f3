"""``agcd bench``: strategies compared with a simulated oracle, as a grid or as our comparison with the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from agcd.cli.options import (
    AddressOption,
    CacheOption,
    CommandFirst,
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


class _BenchCommands(CommandFirst):
    """``agcd bench --data …`` of version 0.1 is ``agcd bench run --data …``."""

    default = "run"


app = typer.Typer(
    cls=_BenchCommands,
    no_args_is_help=True,
    help="Compare strategies over data sets and seeds with a simulated oracle; resumable.",
)
SeedsOption = Annotated[int, typer.Option(help="Number of seeds, counted from 0.", min=1)]
RoundsOption = Annotated[int | None, typer.Option(help="Active rounds; default 5, or the paper's.", min=1)]
OldOption = Annotated[int | None, typer.Option("--n-old", help="Old classes; default half of them.")]
RatioOption = Annotated[float, typer.Option(help="Share of the old classes' train rows that start labelled.")]
TailOption = Annotated[float | None, typer.Option(help="Ratio of the largest to the smallest class.")]
ValidationOption = Annotated[
    float | None, typer.Option(help="Measure on this share of the train rows, and not on test.")
]
SettingsOption = Annotated[Path | None, typer.Option(help="A TOML file of settings.")]


@app.command()
def run(
    data: DataOption,
    out: OutOption,
    strategies: Annotated[str, typer.Option(help="Comma-separated; 'none' is base training alone.")],
    seeds: SeedsOption = 3,
    rounds: RoundsOption = None,
    budget: Annotated[int | None, typer.Option(help="Questions per round; default one per novel class.")] = None,
    protocol: ProtocolOption = "quick",
    split: SplitOption = None,
    n_old: OldOption = None,
    label_ratio: RatioOption = 0.2,
    long_tail: TailOption = None,
    validation: ValidationOption = None,
    jobs: JobsOption = None,
    engine: EngineOption = "local",
    address: AddressOption = None,
    nodes: NodesOption = 1,
    rendezvous: RendezvousOption = None,
    gpus: GpusOption = None,
    settings: SettingsOption = None,
    set_: SetOption = None,
    cache: CacheOption = None,
    metrics: Annotated[
        str | None, typer.Option(help="More columns, comma-separated: nmi, ari, or names of your own.")
    ] = None,
    track: TrackOption = None,
) -> None:
    """Run data sets × strategies × seeds, and print the tables."""
    from agcd.engine import open_engine
    from agcd.lab.bench import make_cells, report_bench
    from agcd.tracking import open_tracking

    values = _settings(settings, protocol, set_, {"query.rounds": rounds, "query.budget": budget})
    how = _split(split, n_old, label_ratio, long_tail, validation)
    cells = make_cells(data, [name.strip() for name in strategies.split(",")], seeds, values, how)
    where = open_engine(engine, address=address, processes=jobs, nodes=nodes, rendezvous=rendezvous, gpus=gpus)
    tracking, more = open_tracking(track, out), _names(metrics)
    print(report_bench(cells, out, cache or default_cache(), engine=where, track=tracking, metrics=more))


@app.command()
def ask(
    data: DataOption,
    strategies: Annotated[str, typer.Option(help="Comma-separated.")],
    seeds: SeedsOption = 3,
    one_by_one: Annotated[bool, typer.Option(help="Decide every question after the answer to the last.")] = False,
    budget: Annotated[
        int | None, typer.Option(help="Questions in each fifth; default one per novel class.", min=1)
    ] = None,
    split: SplitOption = None,
    n_old: OldOption = None,
    label_ratio: RatioOption = 0.2,
    long_tail: TailOption = None,
    validation: ValidationOption = None,
    jobs: JobsOption = None,
    set_: SetOption = None,
    cache: CacheOption = None,
) -> None:
    """Judge what is asked without training: labels propagated over frozen features, seconds a run."""
    from agcd.engine import open_engine
    from agcd.lab.ask import report_asking
    from agcd.lab.bench import make_cells

    values = _settings(None, "quick", set_, {"query.budget": budget})
    how = _split(split, n_old, label_ratio, long_tail, validation)
    cells = make_cells(data, [name.strip() for name in strategies.split(",")], seeds, values, how)
    where = open_engine("local", processes=jobs)
    print(report_asking(cells, cache or default_cache(), one_by_one=one_by_one, engine=where))


@app.command()
def accuracy(
    data: DataOption,
    projects: Annotated[int, typer.Option(help="Simulated projects of each data set.", min=1)] = 50,
    first: Annotated[int, typer.Option(help="Seed of the first; the others count on from it.", min=0)] = 0,
    drawn_every: Annotated[
        int | None, typer.Option(help="One question in so many is drawn at random; default 4, 0: none.", min=0)
    ] = None,
    out: Annotated[Path | None, typer.Option(help="PNG of the reliability curves.")] = None,
    jobs: JobsOption = None,
    set_: SetOption = None,
    cache: CacheOption = None,
) -> None:
    """Check the accuracy figure that is made of the answers: simulated projects, without training."""
    from agcd.accuracy import DRAWN_EVERY
    from agcd.engine import open_engine
    from agcd.lab.accuracy.report import report_accuracy
    from agcd.lab.bench import make_cells

    values = _settings(None, "quick", set_, {})
    cells = make_cells(data, ["propagation_herding"], 1, values, _split(None, None, 0.2, None, None))
    where = open_engine("local", processes=jobs)
    seeds, every = range(first, first + projects), DRAWN_EVERY if drawn_every is None else drawn_every
    print(report_accuracy(cells, cache or default_cache(), seeds, every, picture=out, engine=where))


@app.command()
def beyond(
    data: DataOption,
    out: OutOption,
    seeds: SeedsOption = 5,
    other_seeds: Annotated[
        int | None, typer.Option(help="Seeds of budgets and ablation; default as --seeds.", min=1)
    ] = None,
    other_data: Annotated[
        int, typer.Option(help="Data sets, the first ones, that budgets and ablation are made on.", min=0)
    ] = 2,
    lines: Annotated[
        str | None, typer.Option(help="Lines of the main table, separated by semicolons; default all.")
    ] = None,
    rounds: RoundsOption = None,
    protocol: ProtocolOption = "quick",
    split: SplitOption = None,
    n_old: OldOption = None,
    label_ratio: RatioOption = 0.2,
    long_tail: TailOption = None,
    validation: ValidationOption = None,
    jobs: JobsOption = None,
    engine: EngineOption = "local",
    address: AddressOption = None,
    nodes: NodesOption = 1,
    rendezvous: RendezvousOption = None,
    gpus: GpusOption = None,
    settings: SettingsOption = None,
    set_: SetOption = None,
    cache: CacheOption = None,
) -> None:
    """Compare our strategy and our use of answers with the paper's: paired differences, budgets, ablation."""
    from agcd.engine import open_engine
    from agcd.lab.beyond.plan import make_plan
    from agcd.lab.beyond.run_beyond import run_beyond

    cache_dir = cache or default_cache()
    values = _settings(settings, protocol, set_, {"query.rounds": rounds})
    how = _split(split, n_old, label_ratio, long_tail, validation)
    wanted = None if lines is None else [name.strip() for name in lines.split(";")]
    plan = make_plan(data, seeds, other_seeds or seeds, other_data, values, how, cache_dir, wanted)
    where = open_engine(engine, address=address, processes=jobs, nodes=nodes, rendezvous=rendezvous, gpus=gpus)
    print(run_beyond(plan, out, cache_dir, engine=where))


@app.command()
def person(
    data: DataOption,
    out: OutOption,
    classes: Annotated[int, typer.Option(help="Classes drawn from the data with the seed; 0 takes all.", min=0)] = 20,
    known: Annotated[int, typer.Option(help="Of them known at the start.", min=1)] = 8,
    labels: Annotated[int, typer.Option(help="Labels of each known class.", min=1)] = 5,
    pictures: Annotated[
        int | None, typer.Option(help="Pictures or texts taken of the drawn classes; default all.", min=10)
    ] = None,
    seeds: SeedsOption = 3,
    errors: Annotated[str, typer.Option(help="Shares of decisions that go wrong, comma-separated.")] = "0",
    ways: Annotated[str | None, typer.Option(help="Comma-separated; default all of docs/person.md.")] = None,
    minutes: Annotated[float, typer.Option(help="Minutes of the person, waiting included.", min=0.1)] = 20,
    recognise: Annotated[
        float | None, typer.Option(help="Seconds to see what one picture is, or to read a text.", min=0)
    ] = None,
    scan: Annotated[float | None, typer.Option(help="Seconds to look at one picture or text of a page.", min=0)] = None,
    waiting: Annotated[
        str, typer.Option(help="Measured by the wall's clock, or in seconds of a core: wall, core.")
    ] = "wall",
    set_: SetOption = None,
    cache: CacheOption = None,
) -> None:
    """Right names against minutes and keys of a simulated person, for our ways of labelling and others'."""
    from agcd.lab.person.pool import Start
    from agcd.lab.person.run_person import Study, read_errors, report_person
    from agcd.lab.person.ways import WAYS

    study = Study(
        tuple(data),
        tuple(name.strip() for name in ways.split(",")) if ways else tuple(WAYS),
        Start(classes or None, known, labels, pictures),
        seeds,
        read_errors(errors),
        minutes,
        looks={name: value for name, value in (("recognise", recognise), ("scan", scan)) if value is not None},
        waiting=waiting,
        settings=with_overrides({}, set_ or []),
        overrides=tuple(set_ or ()),
    )
    print(report_person(study, out, cache or default_cache()))


def _names(given: str | None) -> list[str]:
    return [name.strip() for name in given.split(",")] if given else []


def _settings(
    file: Path | None, protocol: str, overrides: list[str] | None, given: dict[str, int | None]
) -> dict[str, Any]:
    """Settings as they overrule each other: the file, the protocol, ``--set``, then options of their own."""
    from agcd.config import read_toml

    values = {**(read_toml(file) if file else {}), "protocol": protocol}
    own = [f"{name}={value}" for name, value in given.items() if value is not None]
    return with_overrides(values, [*(overrides or []), *own])


def _split(
    classes: str | None, n_old: int | None, label_ratio: float, long_tail: float | None, validation: float | None
) -> dict[str, Any]:
    from agcd.lab.starts import split_settings

    return split_settings(classes, n_old, label_ratio, long_tail, validation)
