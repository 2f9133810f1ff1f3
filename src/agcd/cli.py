"""The command line: parse, call one function, print. Heavy imports wait until a command needs them."""

from __future__ import annotations

import logging
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from agcd import __version__
from agcd.errors import AgcdError, ConfigError
from agcd.io import default_cache

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="The data sets known by name.")
app.add_typer(data_app, name="data")

CacheOption = Annotated[
    Path | None, typer.Option("--cache", help="Folder for features and unpacked data; default ~/.cache/agcd.")
]
ProjectArgument = Annotated[Path, typer.Argument(metavar="DIR", help="The project's folder.")]
ClassArgument = Annotated[str, typer.Argument(help="The name of a class.")]
WhoOption = Annotated[str, typer.Option(help="Who says so.")]
DataOption = Annotated[
    list[str], typer.Option(help="A named data set, cub=PATH, a folder, manifest or .npz; may be repeated.")
]
OutOption = Annotated[Path, typer.Option(help="Folder for runs and results; running again continues.")]
SeedsOption = Annotated[int, typer.Option(help="Number of seeds, counted from 0.", min=1)]
ProtocolOption = Annotated[str, typer.Option(help="quick, short, paper or official.")]
SplitOption = Annotated[str | None, typer.Option(help="published, seeded, or a JSON file that lists the old classes.")]
EngineOption = Annotated[str, typer.Option(help="Where the work runs: local, torchrun (training) or ray.")]
AddressOption = Annotated[str | None, typer.Option(help="A Ray cluster, as 10.0.0.5:6379; default one made here.")]
ProcessesOption = Annotated[int | None, typer.Option(help="Processes that work together; default one per core.", min=1)]
JobsOption = Annotated[int | None, typer.Option(help="Parallel processes; default one per core.", min=1)]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="A setting, as train.base_epochs=50; may be repeated.")
]


@app.callback()
def show_what_is_going_on() -> None:
    """Find the classes nobody has named yet, with a few hundred answers."""
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    logging.getLogger("agcd").setLevel(logging.INFO)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for runs, figures and report.html.")] = Path("agcd-demo"),
    seed: Annotated[int, typer.Option(help="Drives the split, the training and the questions.")] = 0,
) -> None:
    """Discover the hidden classes of the embedded photographs with a simulated annotator, and write a report."""
    from agcd.lab.demo import run_demo

    run_demo(out, seed)


@app.command()
def init(
    folder: ProjectArgument,
    images: Annotated[Path, typer.Option(help="A folder of images (class folders are labels), or a manifest.")],
    labels: Annotated[Path | None, typer.Option(help="CSV with path and label, in place of class folders.")] = None,
    classes: Annotated[int | None, typer.Option(help="Classes to look for, known and unknown together.")] = None,
    set_: SetOption = None,
) -> None:
    """Make a project from a folder of images, and print the health of the images."""
    from agcd.app.project import Project

    values = _with_overrides({}, set_ or [])
    Project.create(folder, images, labels, classes, values, print).close()
    print(f"next: agcd serve {folder} (or, without a browser, agcd train {folder})")


@app.command()
def serve(
    folder: ProjectArgument,
    port: Annotated[int, typer.Option(help="0 takes any free one.", min=0, max=65535)] = 8765,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Let other machines in; needs a password in AGCD_PASSWORD.")
    ] = False,
    name: Annotated[
        list[str] | None, typer.Option(help="A name under which others reach this machine; may be repeated.")
    ] = None,
) -> None:
    """Open the labelling page: label, name classes, train and download in the browser."""
    import os

    from agcd.app.web.serve import serve as serve_project

    password = os.environ.get("AGCD_PASSWORD")
    serve_project(folder, host=host, port=port, allow_remote=allow_remote, names=name or [], password=password)


@app.command()
def train(
    folder: ProjectArgument,
    engine: EngineOption = "local",
    address: AddressOption = None,
    processes: ProcessesOption = None,
) -> None:
    """Train the next round of a project; continues what was broken off."""
    from agcd.app.model import train as train_round
    from agcd.app.project import Project
    from agcd.engine import open_engine

    with Project.open(folder) as project:
        project.engine = open_engine(engine, address=address, processes=processes)
        done = train_round(
            project, lambda line: print(f"epoch {line['epoch'] + 1} of {line['n_epochs']}", file=sys.stderr)
        )
        estimate = None if project.config.n_slots else project.estimated_classes()
    if not done.is_new:
        print(f"round {done.round} is up to date: there are no new labels to learn from")
    else:
        print(
            f"round {done.round} is trained on {done.metrics['n_labels']} labels of {done.metrics['n_classes']} classes"
        )
    if estimate:
        print(f"looked for {estimate.words()}")
    print(f"next: agcd query {folder} -n 20 --out questions.csv")


@app.command()
def query(
    folder: ProjectArgument,
    n: Annotated[int | None, typer.Option("-n", help="Questions; default one per class to be found.")] = None,
    out: Annotated[Path | None, typer.Option(help="CSV to write; default the screen.")] = None,
) -> None:
    """Write the images worth asking about as CSV, with an empty column for the labels."""
    from agcd.app.answers import question_table
    from agcd.app.model import ask
    from agcd.app.project import Project

    with Project.open(folder) as project:
        _write_or_print(question_table(ask(project, n), project.paths), out)


@app.command()
def label(
    folder: ProjectArgument,
    from_: Annotated[
        Path,
        typer.Option("--from", help="CSV with row or path and label (or skip, unsure, junk); or Label Studio JSON."),
    ],
    who: WhoOption = "me",
) -> None:
    """Store the answers in a CSV or in a JSON export of Label Studio; new names become classes."""
    from agcd.app.answers import read_answers, write_answers
    from agcd.app.export.files import tell_label_studio
    from agcd.app.project import Project

    with Project.open(folder) as project:
        if from_.suffix.lower() == ".json":
            told = tell_label_studio(project, from_, who)
        else:
            told = {who: write_answers(project, read_answers(from_, project.paths), who)}
        for person, outcome in told.items():
            print("\n".join(f"{person}: {line}" for line in outcome.lines()))


@app.command()
def undo(folder: ProjectArgument) -> None:
    """Take back the last answers, or the last change of classes; again for the ones before."""
    from agcd.app.answers import undo as undo_last
    from agcd.app.project import Project

    with Project.open(folder) as project:
        print(f"undone: {undo_last(project).what}")


@app.command()
def rename(folder: ProjectArgument, name: ClassArgument, new_name: str, who: WhoOption = "me") -> None:
    """Call a class otherwise."""
    from agcd.app.answers import find_class, rename_class
    from agcd.app.project import Project

    with Project.open(folder) as project:
        rename_class(project, find_class(project, name).id, new_name, who)
        print(f"{name} is now called {new_name}")


@app.command()
def merge(
    folder: ProjectArgument,
    name: ClassArgument,
    into: Annotated[str, typer.Argument(help="The class that stays.")],
    who: WhoOption = "me",
) -> None:
    """Count everything said of one class for another."""
    from agcd.app.answers import find_class, merge_classes
    from agcd.app.project import Project

    with Project.open(folder) as project:
        one, other = (find_class(project, each) for each in (name, into))
        merge_classes(project, one.id, other.id, who)
        print(f"{one.name} now counts as {other.name}")


@app.command()
def retire(folder: ProjectArgument, name: ClassArgument, who: WhoOption = "me") -> None:
    """Let a class take no more labels."""
    from agcd.app.answers import find_class, retire_class
    from agcd.app.project import Project

    with Project.open(folder) as project:
        retire_class(project, find_class(project, name).id, who)
        print(f"{name} is retired; agcd undo {folder} takes it back")


@app.command()
def status(folder: ProjectArgument) -> None:
    """Say what is labelled, asked and trained."""
    from agcd.app.project import Project
    from agcd.app.status import status_of

    with Project.open(folder) as project:
        print("\n".join(status_of(project).lines()))


@app.command()
def predict(
    folder: ProjectArgument,
    new_images: Annotated[list[Path], typer.Argument(help="One folder, or image files.")],
    out: Annotated[Path | None, typer.Option(help="CSV to write; default the screen.")] = None,
    engine: EngineOption = "local",
    address: AddressOption = None,
    processes: ProcessesOption = None,
) -> None:
    """Name the classes of new images."""
    from agcd.app.model import predict as predict_images
    from agcd.app.project import Project
    from agcd.engine import open_engine

    with Project.open(folder) as project:
        project.engine = open_engine(engine, address=address, processes=processes)
        _write_or_print(predict_images(project, new_images), out)


@app.command()
def report(
    folder: ProjectArgument,
    out: Annotated[Path, typer.Option(help="Folder for report.html and its figures.")] = Path("agcd-report"),
) -> None:
    """Write a page about a project: rounds, classes, maps, and what a blind audit says."""
    from agcd.app.project import Project
    from agcd.app.report import write_project_report

    with Project.open(folder) as project:
        print(write_project_report(project, out))


@app.command()
def export(
    folder: ProjectArgument,
    out: Annotated[Path, typer.Option(help="Folder for labels, predictions and the classifier.")],
    onnx: Annotated[bool, typer.Option("--onnx", help="Also write model.onnx, from pixels to class names.")] = False,
) -> None:
    """Write the labels (CSV, Parquet, COCO, Label Studio), the predictions for all images, and the classifier."""
    from agcd.app.export.files import export_all
    from agcd.app.project import Project

    with Project.open(folder) as project:
        print("\n".join(str(path) for path in export_all(project, out, onnx=onnx)))


@app.command()
def bench(
    data: DataOption,
    out: OutOption,
    what: Annotated[str, typer.Argument(help="'beyond' makes our comparison with the paper; nothing: a grid.")] = "",
    strategies: Annotated[
        str | None, typer.Option(help="Of the grid; comma-separated; 'none' is base training alone.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Number of seeds, counted from 0; default 3, for beyond 5.", min=1)
    ] = None,
    other_seeds: Annotated[
        int | None, typer.Option(help="Seeds of beyond's budgets and ablation; default as --seeds.", min=1)
    ] = None,
    other_data: Annotated[
        int, typer.Option(help="Data sets, the first ones, that beyond's budgets and ablation are made on.", min=0)
    ] = 2,
    rounds: Annotated[int | None, typer.Option(help="Active rounds; default 5, or the paper's.", min=1)] = None,
    budget: Annotated[int | None, typer.Option(help="Questions per round; default one per novel class.")] = None,
    protocol: ProtocolOption = "quick",
    split: SplitOption = None,
    n_old: Annotated[int | None, typer.Option(help="Old classes; default half of them.")] = None,
    label_ratio: Annotated[float, typer.Option(help="Share of the old classes' train rows that start labelled.")] = 0.2,
    long_tail: Annotated[float | None, typer.Option(help="Ratio of the largest to the smallest class.")] = None,
    validation: Annotated[
        float | None, typer.Option(help="Measure on this share of the train rows, and not on test.")
    ] = None,
    jobs: JobsOption = None,
    engine: EngineOption = "local",
    address: AddressOption = None,
    settings: Annotated[Path | None, typer.Option(help="A TOML file of settings.")] = None,
    set_: SetOption = None,
    cache: CacheOption = None,
) -> None:
    """Compare strategies over data sets and seeds with a simulated oracle; resumable."""
    from agcd.config import read_toml
    from agcd.engine import open_engine
    from agcd.lab.bench import make_cells, report_bench
    from agcd.lab.beyond.plan import make_plan, wants_beyond
    from agcd.lab.beyond.run import run_beyond

    beyond, cache_dir = wants_beyond(what, strategies, other_seeds), cache or default_cache()
    values = {**(read_toml(settings) if settings else {}), "protocol": protocol}
    given = {"query.rounds": rounds, "query.budget": budget}
    overrides = [f"{name}={value}" for name, value in given.items() if value is not None]
    values = _with_overrides(values, [*(set_ or []), *overrides])
    how = {"classes": split, "n_old": n_old, "label_ratio": label_ratio, "long_tail": long_tail}
    how |= {} if validation is None else {"validation": validation}
    if beyond:
        plan = make_plan(data, seeds or 5, other_seeds or seeds or 5, other_data, values, how, cache_dir)
        where = open_engine(engine, address=address, processes=jobs)
        print(run_beyond(plan, out, cache_dir, engine=where))
    else:
        cells = make_cells(data, [s.strip() for s in (strategies or "").split(",")], seeds or 3, values, how)
        where = open_engine(engine, address=address, processes=jobs)
        print(report_bench(cells, out, cache_dir, engine=where))


@app.command()
def estimate(
    data: Annotated[str | None, typer.Argument(help="A project, or data as for agcd bench.")] = None,
    images: Annotated[int | None, typer.Option(help="Number of images, in place of data.", min=2)] = None,
    classes: Annotated[int | None, typer.Option(help="Classes to look for, known and unknown together.", min=2)] = None,
    labels: Annotated[int | None, typer.Option(help="Labels at the start; default those of the data.", min=0)] = None,
    set_: SetOption = None,
    measure: Annotated[bool, typer.Option("--measure", help="Measure this machine again.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print bytes and seconds as JSON.")] = False,
    cache: CacheOption = None,
) -> None:
    """Say what a project will take: disk, memory, and time for features, training, a round and a query."""
    import json

    from agcd.app.sizing import sized, with_labels
    from agcd.engine import costs
    from agcd.engine.machine import this_machine

    cache_dir = cache or default_cache()
    config, size, dim = with_labels(sized(data, images, classes, _with_overrides({}, set_ or []), cache_dir), labels)
    machine = this_machine(config, cache_dir, dim=dim, renew=measure)
    as_set, others = costs.estimate(size, config, machine), costs.what_if(size, config, machine)
    if as_json:
        print(json.dumps(costs.to_json(as_set) | {"what_if": {words: costs.to_json(c) for words, c in others}}))
    else:
        print(costs.table([("as set", as_set), *others]))


@app.command()
def paper(
    what: Annotated[Literal["table", "figure", "all"], typer.Argument(help="One table, one figure, or everything.")],
    data: DataOption,
    out: OutOption,
    name: Annotated[str, typer.Argument(help="Which table or figure; a wrong name lists them.")] = "",
    seeds: SeedsOption = 3,
    other_seeds: Annotated[
        int | None, typer.Option(help="Seeds of what carries no claim of its own; default as --seeds.", min=1)
    ] = None,
    protocol: ProtocolOption = "short",
    quick: Annotated[bool, typer.Option("--quick", help="A small version: one seed, few epochs and rounds.")] = False,
    split: SplitOption = None,
    jobs: JobsOption = None,
    engine: EngineOption = "local",
    address: AddressOption = None,
    set_: SetOption = None,
    cache: CacheOption = None,
) -> None:
    """Make the paper's tables and figures on any data set; what they share is run once, and it resumes."""
    from agcd.engine import open_engine
    from agcd.lab.paper.run import find_wanted, run_paper
    from agcd.lab.paper.study import open_study

    wanted = find_wanted(what, name)
    cache_dir, seeds = cache or default_cache(), 1 if quick else seeds
    values = _with_overrides({"protocol": protocol}, set_ or [])
    how = {} if split is None else {"classes": split}
    studies = [open_study(spec, seeds, values, how, cache_dir, quick=quick) for spec in data]
    where = open_engine(engine, address=address, processes=jobs)
    print(run_paper(studies, wanted, other_seeds or seeds, out, cache_dir, engine=where))


@app.command()
def strategies() -> None:
    """List the query strategies, each with the first line of its documentation."""
    from agcd.strategies import list_strategies

    listed = list_strategies()
    width = max(map(len, listed))
    for name, line in listed.items():
        print(f"{name:<{width}}  {line}")


@data_app.callback(invoke_without_command=True)
def data(context: typer.Context) -> None:
    """List the named data sets."""
    if context.invoked_subcommand is not None:
        return
    from agcd.lab.named import describe_named
    from agcd.lab.published import PUBLISHED

    for name, line in describe_named().items():
        print(f"{name:<14}  {line}")
    for facts in PUBLISHED.values():
        print(f"{facts.name:<14}  {facts.title} with the paper's split, from a path: {facts.name}=PATH")


@data_app.command("check")
def check_data(
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


@app.command()
def version() -> None:
    """Print the version."""
    print(__version__)


def _write_or_print(table: Mapping[str, Sequence[Any]], out: Path | None) -> None:
    from agcd.data.tables import table_text, write_table

    if out is None:
        print(table_text(table), end="")
    else:
        write_table(out, table)
        print(f"{out}: {len(next(iter(table.values())))} lines")


def _with_overrides(values: dict[str, Any], overrides: list[str]) -> dict[str, Any]:
    """``values`` with each ``section.key=value`` put in; the value is read as TOML, else taken as a string."""
    for text in overrides:
        where, equals, raw = text.partition("=")
        *sections, key = where.strip().split(".")
        if not equals or not key:
            raise ConfigError(f"--set {text!r} is not of the form section.key=value.")
        try:
            value = tomllib.loads(f"value = {raw}")["value"]
        except tomllib.TOMLDecodeError:
            value = raw
        inner = values
        for section in sections:
            inner[section] = dict(inner.get(section, {}))
            inner = inner[section]
        inner[key] = value
    return values


def main() -> None:
    """Run a command; a user's mistake is one sentence and exit code 2, our mistake is a traceback."""
    try:
        app()
    except AgcdError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("stopped; run the same command again to continue", file=sys.stderr)
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
