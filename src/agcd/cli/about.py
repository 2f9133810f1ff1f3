"""Commands about agcd itself."""

from __future__ import annotations

import typer

from agcd import __version__
from agcd.cli.options import JsonOption, tell


def strategies(as_json: JsonOption = False) -> None:
    """List the query strategies, each with the first line of its documentation."""
    from agcd.strategies import list_strategies

    listed = list_strategies()
    width = max(map(len, listed))
    facts = {"strategies": [{"name": name, "what": line} for name, line in listed.items()]}
    tell(as_json, facts, (f"{name:<{width}}  {line}" for name, line in listed.items()))


def print_version(is_wanted: bool) -> None:
    """``agcd --version``: what ``agcd version`` prints."""
    if is_wanted:
        version()
        raise typer.Exit


def version(as_json: JsonOption = False) -> None:
    """Print the version."""
    tell(as_json, {"version": __version__}, [__version__])
