"""What people say, without the page: answers from a file, changes of classes, and taking either back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agcd.cli.options import ProjectArgument

ClassArgument = Annotated[str, typer.Argument(help="The name of a class.")]
WhoOption = Annotated[str, typer.Option(help="Who says so.")]


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


def undo(folder: ProjectArgument) -> None:
    """Take back the last answers, or the last change of classes; again for the ones before."""
    from agcd.app.answers import undo as undo_last
    from agcd.app.project import Project

    with Project.open(folder) as project:
        print(f"undone: {undo_last(project).what}")


def rename(folder: ProjectArgument, name: ClassArgument, new_name: str, who: WhoOption = "me") -> None:
    """Call a class otherwise."""
    from agcd.app.answers import find_class, rename_class
    from agcd.app.project import Project

    with Project.open(folder) as project:
        rename_class(project, find_class(project, name).id, new_name, who)
        print(f"{name} is now called {new_name}")


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


def retire(folder: ProjectArgument, name: ClassArgument, who: WhoOption = "me") -> None:
    """Let a class take no more labels."""
    from agcd.app.answers import find_class, retire_class
    from agcd.app.project import Project

    with Project.open(folder) as project:
        retire_class(project, find_class(project, name).id, who)
        print(f"{name} is retired; agcd undo {folder} takes it back")
