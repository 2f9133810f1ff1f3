"""The commands around a project: make it, train it, ask, and take out what it found."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from agcd.cli.options import (
    AddressOption,
    EngineOption,
    ProcessesOption,
    ProjectArgument,
    SetOption,
    TableOption,
    every_second,
    with_overrides,
    write_or_print,
)


def init(
    folder: ProjectArgument,
    images: Annotated[Path, typer.Option(help="A folder of images (class folders are labels), or a manifest.")],
    labels: Annotated[Path | None, typer.Option(help="CSV with path and label, in place of class folders.")] = None,
    classes: Annotated[int | None, typer.Option(help="Classes to look for, known and unknown together.")] = None,
    set_: SetOption = None,
) -> None:
    """Make a project from a folder of images, and print the health of the images."""
    from agcd.app.project import Project

    values = with_overrides({}, set_ or [])
    Project.create(folder, images, labels, classes, values, print).close()
    print(f"next: agcd serve {folder} (or, without a browser, agcd train {folder})")


def train(
    folder: ProjectArgument,
    engine: EngineOption = "local",
    address: AddressOption = None,
    processes: ProcessesOption = None,
    nodes: Annotated[int, typer.Option(help="Machines that train together (engine torchrun).", min=1)] = 1,
    rendezvous: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where these machines find each other.")
    ] = None,
) -> None:
    """Train the next round of a project; continues what was broken off."""
    from agcd.app.model import train as train_round
    from agcd.app.project import Project
    from agcd.engine import open_engine

    with Project.open(folder) as project:
        project.engine = open_engine(engine, address=address, processes=processes, nodes=nodes, rendezvous=rendezvous)
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


def query(
    folder: ProjectArgument,
    n: Annotated[int | None, typer.Option("-n", help="Questions; default one per class to be found.")] = None,
    out: TableOption = None,
) -> None:
    """Write the images worth asking about as CSV, with an empty column for the labels."""
    from agcd.app.answers import question_table
    from agcd.app.model import ask
    from agcd.app.project import Project

    with Project.open(folder) as project:
        write_or_print(question_table(ask(project, n), project.paths), out)


def status(folder: ProjectArgument) -> None:
    """Say what is labelled, asked and trained, and how good the names are."""
    from agcd.app.figures import figures_of
    from agcd.app.project import Project
    from agcd.app.status import status_of

    with Project.open(folder) as project:
        snapshot = project.snapshot()
        print("\n".join(status_of(project, snapshot).lines()))
        figures = figures_of(snapshot)
        if figures:
            print("\n".join([f"names    {figures.headline}", *(f"  {line}" for line in figures.sentences)]))


def predict(
    folder: ProjectArgument,
    new_images: Annotated[list[Path], typer.Argument(help="One folder, or image files.")],
    out: TableOption = None,
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
        write_or_print(predict_images(project, new_images), out)


def report(
    folder: ProjectArgument,
    out: Annotated[Path, typer.Option(help="Folder for report.html and its figures.")] = Path("agcd-report"),
) -> None:
    """Write a page about a project: rounds, classes, maps, and what a blind audit says."""
    from agcd.app.project import Project
    from agcd.app.report import write_project_report

    with Project.open(folder) as project:
        print(write_project_report(project, out))


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


def sort(
    folder: ProjectArgument,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="New or empty folder, or one sorted into before.")],
    how: Annotated[str, typer.Option(help="copy, link (hard links: no space, one disk) or symlink.")] = "copy",
    only_checked: Annotated[
        bool, typer.Option("--only-checked", help="Only pictures whose class a person said or accepted.")
    ] = False,
) -> None:
    """Sort the pictures into a folder per class; the originals stay as they are, and running again updates."""
    from agcd.app.export.folders import checked_way, sort_into_folders
    from agcd.app.project import Project

    with Project.open(folder) as project:
        done = sort_into_folders(
            project, out, checked_way(how), only_checked=only_checked, progress=every_second("pictures")
        )
    print(done.sentence())
