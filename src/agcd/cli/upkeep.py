"""Looking after a project: check it, back it up, restore it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from agcd.cli.options import JsonOption, ProjectArgument, tell
from agcd.words import count, typed


def check(
    folder: ProjectArgument,
    repair: Annotated[
        bool, typer.Option("--repair", help="Drop damaged caches and move damaged rounds away: both are made again.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Verify every file of a project, and say what is damaged and what helps; exit code 1 if anything is."""
    from agcd.app.check import check_project
    from agcd.app.check import repair as repair_project

    def say(line: str) -> None:
        print(line, file=sys.stderr)

    findings = check_project(folder, say)
    lines = [finding.line(folder) for finding in findings]
    n_repaired = 0
    if repair and findings:
        repair_project(folder, findings)
        n_repaired = sum(finding.repair is not None for finding in findings)
        lines.append(f"repaired: {n_repaired} of {count(len(findings), 'finding')}")
        findings = check_project(folder)
        lines += [f"left: {finding.line(folder)}" for finding in findings]
    damages = [finding for finding in findings if finding.is_damage]
    if not damages:
        lines.append("the project is whole")
    elif not repair and any(finding.repair for finding in damages):
        lines.append(f"next: agcd check {typed(folder)} --repair")
    left = [
        {
            "path": finding.path.relative_to(folder).as_posix(),
            "problem": finding.problem,
            "remedy": finding.remedy,
            "is_damage": finding.is_damage,
            "can_repair": finding.repair is not None,
        }
        for finding in findings
    ]
    tell(as_json, {"is_whole": not damages, "findings": left, "n_repaired": n_repaired}, lines)
    if damages:
        raise typer.Exit(1)


def backup(
    folder: ProjectArgument,
    out: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write, as project.zip.")],
    as_json: JsonOption = False,
) -> None:
    """Write the labels, settings and finished rounds of a project into one file, also while it is served."""
    from agcd.app.backup import write_backup
    from agcd.app.image_paths import UNPACKED
    from agcd.app.project import Project

    with Project.open(folder) as project:
        names = write_backup(project, out)
    size, unpacked = out.stat().st_size, folder / UNPACKED
    kept = f": keep {unpacked} as well" if unpacked.is_dir() else ""
    line = f"{out}: {count(len(names), 'file')}, {size / 1e6:.1f} MB; the images are not in it{kept}"
    tell(as_json, {"out": out, "files": names, "n_bytes": size}, [line])


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What agcd backup wrote.")],
    folder: ProjectArgument,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put the project that is there aside (stop agcd serve first).")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Make a project from a backup."""
    from agcd.app.backup import restore_backup

    lines = restore_backup(file, folder, replace=replace)
    tell(as_json, {"folder": folder, "notes": lines}, lines)
