"""The command line: parse, call one function, print. Heavy imports wait until a command needs them."""

from __future__ import annotations

import logging
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from agcd import __version__
from agcd.errors import AgcdError, ConfigError
from agcd.files import default_cache

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

CacheOption = Annotated[
    Path | None, typer.Option("--cache", help="Folder for features and unpacked data; default ~/.cache/agcd.")
]
ProjectArgument = Annotated[Path, typer.Argument(metavar="DIR", help="The project's folder.")]
ClassArgument = Annotated[str, typer.Argument(help="The name of a class.")]
WhoOption = Annotated[str, typer.Option(help="Who says so.")]
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
    from agcd.bench.demo import run_demo

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
    from agcd.project import Project

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

    from agcd.web.serve import serve as serve_project

    password = os.environ.get("AGCD_PASSWORD")
    serve_project(folder, host=host, port=port, allow_remote=allow_remote, names=name or [], password=password)


@app.command()
def train(folder: ProjectArgument) -> None:
    """Train the next round of a project; continues what was broken off."""
    from agcd.project import Project
    from agcd.project.estimate import read_estimate

    with Project.open(folder) as project:
        done = project.train(lambda line: print(f"epoch {line['epoch'] + 1} of {line['n_epochs']}", file=sys.stderr))
        estimate = None if project.config.n_slots else read_estimate(folder)
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
    from agcd.project import Project
    from agcd.project.answers import question_table

    with Project.open(folder) as project:
        _write_or_print(question_table(project.ask(n), project.paths), out)


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
    from agcd.project import Project
    from agcd.project.answers import read_answers
    from agcd.project.exporting import tell_label_studio

    with Project.open(folder) as project:
        if from_.suffix.lower() == ".json":
            told = tell_label_studio(project, from_, who)
        else:
            told = {who: project.tell(read_answers(from_, project.paths), who)}
        for person, outcome in told.items():
            print("\n".join(f"{person}: {line}" for line in outcome.lines()))


@app.command()
def undo(folder: ProjectArgument) -> None:
    """Take back the last answers, or the last change of classes; again for the ones before."""
    from agcd.project import Project

    with Project.open(folder) as project:
        print(f"undone: {project.undo()}")


@app.command()
def rename(folder: ProjectArgument, name: ClassArgument, new_name: str, who: WhoOption = "me") -> None:
    """Call a class otherwise."""
    from agcd.project import Project
    from agcd.project.classes import find_class, rename_class

    with Project.open(folder) as project:
        rename_class(project.store, find_class(project.store, name).id, new_name, who)
        print(f"{name} is now called {new_name}")


@app.command()
def merge(
    folder: ProjectArgument,
    name: ClassArgument,
    into: Annotated[str, typer.Argument(help="The class that stays.")],
    who: WhoOption = "me",
) -> None:
    """Count everything said of one class for another."""
    from agcd.project import Project
    from agcd.project.classes import find_class, merge_classes

    with Project.open(folder) as project:
        one, other = (find_class(project.store, each) for each in (name, into))
        merge_classes(project.store, one.id, other.id, who)
        print(f"{one.name} now counts as {other.name}")


@app.command()
def retire(folder: ProjectArgument, name: ClassArgument, who: WhoOption = "me") -> None:
    """Let a class take no more labels."""
    from agcd.project import Project
    from agcd.project.classes import find_class, retire_class

    with Project.open(folder) as project:
        retire_class(project.store, find_class(project.store, name).id, who)
        print(f"{name} is retired; agcd undo {folder} takes it back")


@app.command()
def status(folder: ProjectArgument) -> None:
    """Say what is labelled, asked and trained."""
    from agcd.project import Project

    with Project.open(folder) as project:
        print("\n".join(project.status().lines()))


@app.command()
def predict(
    folder: ProjectArgument,
    new_images: Annotated[list[Path], typer.Argument(help="One folder, or image files.")],
    out: Annotated[Path | None, typer.Option(help="CSV to write; default the screen.")] = None,
) -> None:
    """Name the classes of new images."""
    from agcd.project import Project

    with Project.open(folder) as project:
        _write_or_print(project.predict(new_images), out)


@app.command()
def report(
    folder: ProjectArgument,
    out: Annotated[Path, typer.Option(help="Folder for report.html and its figures.")] = Path("agcd-report"),
) -> None:
    """Write a page about a project: rounds, classes, maps, and what a blind audit says."""
    from agcd.project import Project
    from agcd.project.story import write_project_report

    with Project.open(folder) as project:
        print(write_project_report(project, out))


@app.command()
def export(
    folder: ProjectArgument,
    out: Annotated[Path, typer.Option(help="Folder for labels, predictions and the classifier.")],
    onnx: Annotated[bool, typer.Option("--onnx", help="Also write model.onnx, from pixels to class names.")] = False,
) -> None:
    """Write the labels (CSV, Parquet, COCO, Label Studio), the predictions for all images, and the classifier."""
    from agcd.project import Project

    with Project.open(folder) as project:
        print("\n".join(str(path) for path in project.export(out, onnx=onnx)))


@app.command()
def bench(
    data: Annotated[list[str], typer.Option(help="A named data set, folder, manifest or .npz; may be repeated.")],
    strategies: Annotated[str, typer.Option(help="Comma-separated; 'none' is base training alone.")],
    out: Annotated[Path, typer.Option(help="Folder for runs and results; running again continues.")],
    seeds: Annotated[int, typer.Option(help="Number of seeds, counted from 0.", min=1)] = 3,
    rounds: Annotated[int, typer.Option(help="Active rounds.", min=1)] = 5,
    budget: Annotated[int | None, typer.Option(help="Questions per round; default one per novel class.")] = None,
    protocol: Annotated[str, typer.Option(help="quick, paper or official.")] = "quick",
    n_old: Annotated[int | None, typer.Option(help="Old classes; default half of them.")] = None,
    label_ratio: Annotated[float, typer.Option(help="Share of the old classes' train rows that start labelled.")] = 0.2,
    long_tail: Annotated[float | None, typer.Option(help="Ratio of the largest to the smallest class.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Parallel processes; default one per core.", min=1)] = None,
    settings: Annotated[Path | None, typer.Option(help="A TOML file of settings.")] = None,
    set_: SetOption = None,
    cache: CacheOption = None,
) -> None:
    """Compare strategies over data sets and seeds with a simulated oracle; resumable."""
    from agcd.bench.grid import make_cells, report_bench
    from agcd.config import read_toml

    values = {**(read_toml(settings) if settings else {}), "protocol": protocol}
    values = _with_overrides(values, [*(set_ or []), f"query.rounds={rounds}"])
    if budget is not None:
        values = _with_overrides(values, [f"query.budget={budget}"])
    split = {"n_old": n_old, "label_ratio": label_ratio, "long_tail": long_tail}
    cells = make_cells(data, [s.strip() for s in strategies.split(",")], seeds, values, split)
    print(report_bench(cells, out, cache or default_cache(), jobs=jobs))


@app.command()
def strategies() -> None:
    """List the query strategies, each with the first line of its documentation."""
    from agcd.strategies import list_strategies

    listed = list_strategies()
    width = max(map(len, listed))
    for name, line in listed.items():
        print(f"{name:<{width}}  {line}")


@app.command()
def data() -> None:
    """List the named data sets."""
    from agcd.data.named import describe_named

    for name, line in describe_named().items():
        print(f"{name:<12}  {line}")


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
