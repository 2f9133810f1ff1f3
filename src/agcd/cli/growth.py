"""Items that come to a project and leave it: ``agcd add`` and ``agcd remove``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agcd.cli.options import (
    AllowOutsideOption,
    ClassLevelOption,
    FollowLinksOption,
    JsonOption,
    ProjectArgument,
    YesOption,
    tell,
)
from agcd.cli.project import choosing


def add(
    folder: ProjectArgument,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PATH]...", help="Files, folders, lists, archives; default where the project's are."),
    ] = None,
    unlabelled: Annotated[
        bool, typer.Option("--unlabelled", help="Take no labels from the names of folders or from lists.")
    ] = False,
    embeddings: Annotated[
        Path | None, typer.Option(help="Vectors of the new items, for a project that was made with some.")
    ] = None,
    class_level: ClassLevelOption = None,
    follow_links: FollowLinksOption = False,
    allow_outside: AllowOutsideOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Take new items into a project: labels and rounds stay, and only the new ones are computed."""
    from agcd.app.growth import add_items
    from agcd.app.project import Project
    from agcd.data.reading import SourceOptions

    options = SourceOptions(0 if unlabelled else class_level, follow_links, allow_outside)
    choose = choosing(yes)
    with Project.open(folder) as project:
        added = add_items(project, paths or [], options, unlabelled=unlabelled, choose=choose, embeddings=embeddings)
    following = [f"next: agcd serve {folder} (or, without a browser, agcd train {folder})"] if added.n_new else []
    tell(as_json, added.facts(), [*added.lines(), *following])


def remove(
    folder: ProjectArgument,
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH]...", help="Files, folders with all below them, or where texts are from."),
    ] = None,
    missing: Annotated[bool, typer.Option("--missing", help="All whose file has gone.")] = False,
    who: Annotated[str, typer.Option(help="Who says so.")] = "me",
    as_json: JsonOption = False,
) -> None:
    """Hold items out of a project: no longer asked, learned, shown or exported; files stay."""
    from agcd.app.growth import remove_items
    from agcd.app.project import Project
    from agcd.errors import ConfigError

    if not paths and not missing:
        raise ConfigError("Nothing is named: give files or folders, or --missing.")
    with Project.open(folder) as project:
        removed = remove_items(project, paths or [], missing=missing, who=who)
    tell(as_json, removed.facts(), removed.lines())
