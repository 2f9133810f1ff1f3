"""What people say, without the page: answers from a file, changes of classes, and taking either back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agcd.cli.options import JsonOption, ProjectArgument, tell
from agcd.words import typed

ClassArgument = Annotated[str, typer.Argument(help="The name of a class.")]
WhoOption = Annotated[str, typer.Option(help="Who says so.")]


def label(
    folder: ProjectArgument,
    from_: Annotated[
        Path,
        typer.Option("--from", help="CSV with row or path and label (or skip, unsure, junk); or Label Studio JSON."),
    ],
    who: WhoOption = "me",
    as_json: JsonOption = False,
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
    facts = [
        {
            "who": person,
            "stored": outcome.counts,
            "n_known": outcome.n_known,
            "new_classes": [{"class_id": made.id, "name": made.name} for made in outcome.new_classes],
        }
        for person, outcome in told.items()
    ]
    lines = [f"{person}: {line}" for person, outcome in told.items() for line in outcome.lines()]
    tell(as_json, {"told": facts}, lines or ["nothing new"])


def undo(folder: ProjectArgument, as_json: JsonOption = False) -> None:
    """Take back the last answers, or the last change of classes; again for the ones before."""
    from agcd.app.answers import undo as undo_last
    from agcd.app.project import Project

    with Project.open(folder) as project:
        undone = undo_last(project)
    rows = [event.row for event in undone.events if event.row is not None]
    facts = {"what": undone.what, "row": rows[0] if len(undone.events) == 1 and rows else None}
    tell(as_json, facts, [f"undone: {undone.what}"])


def rename(
    folder: ProjectArgument,
    name: ClassArgument,
    new_name: str,
    who: WhoOption = "me",
    as_json: JsonOption = False,
) -> None:
    """Call a class otherwise."""
    from agcd.app.answers import find_class, rename_class
    from agcd.app.project import Project

    with Project.open(folder) as project:
        found = find_class(project, name)
        rename_class(project, found.id, new_name, who)
        now = project.labels().registry.get(found.id).name
    facts = {"class_id": found.id, "name": now, "before": found.name}
    tell(as_json, facts, [f"{name} is now called {new_name}"])


def merge(
    folder: ProjectArgument,
    name: ClassArgument,
    into: Annotated[str, typer.Argument(help="The class that stays.")],
    who: WhoOption = "me",
    as_json: JsonOption = False,
) -> None:
    """Count everything said of one class for another."""
    from agcd.app.answers import find_class, merge_classes
    from agcd.app.project import Project

    with Project.open(folder) as project:
        one, other = (find_class(project, each) for each in (name, into))
        merge_classes(project, one.id, other.id, who)
    facts = {"class_id": one.id, "name": one.name, "into": other.id, "into_name": other.name}
    tell(as_json, facts, [f"{one.name} now counts as {other.name}"])


def retire(folder: ProjectArgument, name: ClassArgument, who: WhoOption = "me", as_json: JsonOption = False) -> None:
    """Let a class take no more labels."""
    from agcd.app.answers import find_class, retire_class
    from agcd.app.project import Project

    with Project.open(folder) as project:
        found = find_class(project, name)
        retire_class(project, found.id, who)
    facts = {"class_id": found.id, "name": found.name}
    tell(as_json, facts, [f"{name} is retired; agcd undo {typed(folder)} takes it back"])
