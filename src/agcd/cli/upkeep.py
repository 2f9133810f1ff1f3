"""Looking after a project: check it, back it up, restore it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from agcd.cli.options import ProjectArgument
from agcd.words import count


def check(
    folder: ProjectArgument,
    repair: Annotated[
        bool, typer.Option("--repair", help="Drop damaged caches and move damaged rounds away: both are made again.")
    ] = False,
) -> None:
    """Verify every file of a project, and say what is damaged and what helps; exit code 1 if anything is."""
    from agcd.app.check import check_project
    from agcd.app.check import repair as repair_project

    def say(line: str) -> None:
        print(line, file=sys.stderr)

    findings = check_project(folder, say)
    for finding in findings:
        print(finding.line(folder))
    if repair and findings:
        repair_project(folder, findings)
        n_repaired = sum(finding.repair is not None for finding in findings)
        print(f"repaired: {n_repaired} of {count(len(findings), 'finding')}")
        findings = check_project(folder)
        for finding in findings:
            print(f"left: {finding.line(folder)}")
    damages = [finding for finding in findings if finding.is_damage]
    if not damages:
        print("the project is whole")
        return
    if not repair and any(finding.repair for finding in damages):
        print(f"next: agcd check {folder} --repair")
    raise typer.Exit(1)


def backup(
    folder: ProjectArgument,
    out: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write, as project.zip.")],
) -> None:
    """Write the labels, settings and finished rounds of a project into one file, also while it is served."""
    from agcd.app.backup import write_backup
    from agcd.app.project import Project

    with Project.open(folder) as project:
        names = write_backup(project, out)
    print(f"{out}: {count(len(names), 'file')}, {out.stat().st_size / 1e6:.1f} MB; the images are not in it")


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What agcd backup wrote.")],
    folder: ProjectArgument,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put the project that is there aside (stop agcd serve first).")
    ] = False,
) -> None:
    """Make a project from a backup."""
    from agcd.app.backup import restore_backup

    print("\n".join(restore_backup(file, folder, replace=replace)))
