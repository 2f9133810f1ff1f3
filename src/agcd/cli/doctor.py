"""``agcd doctor``."""

from __future__ import annotations

from pathlib import Path

import typer

from agcd.cli.options import JsonOption, tell

_MARKS = {"ok": " ", "slow": "~", "missing": "!"}


def doctor(as_json: JsonOption = False) -> None:
    """Say what is installed, which weights are whole and what will be slow; exit code 1 if something is missing."""
    from agcd.engine.doctor import diagnose

    found = diagnose(Path.cwd())
    is_well = all(finding.state != "missing" for finding in found)
    lines = [f"{_MARKS[finding.state]} {finding.what:<10} {finding.words}" for finding in found]
    marks = "~ will be slow, ! is missing" if any(f.state != "ok" for f in found) else "all is well"
    tell(as_json, {"ok": is_well, "findings": found}, [*lines, marks])
    if not is_well:
        raise typer.Exit(1)
