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


def plugins(as_json: JsonOption = False) -> None:
    """List what has a name: agcd's own, and what installed packages add, with a word on whether it can be loaded."""
    from agcd.app.kinds import KINDS
    from agcd.features.backbones import BACKBONES
    from agcd.features.text_encoders import ENCODERS
    from agcd.lab.datasets import SOURCES
    from agcd.metrics import METRICS
    from agcd.strategies import STRATEGIES
    from agcd.tracking import TRACKERS
    from agcd.training import REGISTRY

    groups, lines = [], []
    for registry in (STRATEGIES, REGISTRY, BACKBONES, SOURCES, METRICS, TRACKERS, ENCODERS, KINDS):
        installed = registry.describe_installed()
        groups.append({"name": registry.group, "own": list(registry.built_in), "installed": installed})
        lines.append(f"{registry.group}: {', '.join(registry.built_in)}")
        lines += [f"  {found.name} = {found.value} ({found.package}): {found.words}" for found in installed]
    tell(as_json, {"groups": groups}, lines)


def print_version(is_wanted: bool) -> None:
    """``agcd --version``: what ``agcd version`` prints."""
    if is_wanted:
        version()
        raise typer.Exit


def version(as_json: JsonOption = False) -> None:
    """Print the version."""
    tell(as_json, {"version": __version__}, [__version__])
