"""Pictures that come to a project and leave it: ``agcd add`` and ``agcd remove``."""

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
        typer.Argument(
            metavar="[PATH]...", help="Folders, pictures, lists, archives; default where the project's are."
        ),
    ] = None,
    unlabelled: Annotated[
        bool, typer.Option("--unlabelled", help="Take no labels from the names of folders or from lists.")
    ] = False,
    class_level: ClassLevelOption = None,
    follow_links: FollowLinksOption = False,
    allow_outside: AllowOutsideOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Take new pictures into a project: labels and rounds stay, and only the new ones are computed."""
    from agcd.app.growth import add_pictures
    from agcd.app.project import Project
    from agcd.data.reading import SourceOptions

    options = SourceOptions(0 if unlabelled else class_level, follow_links, allow_outside)
    with Project.open(folder) as project:
        added = add_pictures(project, paths or [], options, unlabelled=unlabelled, choose=choosing(yes))
    following = [f"next: agcd serve {folder} (or, without a browser, agcd train {folder})"] if added.n_new else []
    tell(as_json, vars(added), [*added.lines(), *following])


def remove(
    folder: ProjectArgument,
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="[PATH]...", help="Pictures, or folders with all below them.")
    ] = None,
    missing: Annotated[bool, typer.Option("--missing", help="All pictures whose file has gone.")] = False,
    who: Annotated[str, typer.Option(help="Who says so.")] = "me",
    as_json: JsonOption = False,
) -> None:
    """Hold pictures out of a project: no longer asked, learned, shown or exported; the files stay."""
    from agcd.app.growth import remove_pictures
    from agcd.app.project import Project
    from agcd.errors import ConfigError

    if not paths and not missing:
        raise ConfigError("Nothing is named: give pictures or folders, or --missing.")
    with Project.open(folder) as project:
        removed = remove_pictures(project, paths or [], missing=missing, who=who)
    tell(as_json, vars(removed), removed.lines())
