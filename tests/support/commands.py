"""The commands of agcd, as a user writes them."""

from __future__ import annotations

from collections.abc import Iterator

import typer


def command_names(group: typer.Typer, prefix: str) -> Iterator[str]:
    """Every command, those of groups included, and groups that do something by themselves."""
    if group.registered_callback and group.registered_callback.invoke_without_command is True:
        yield prefix
    for command in group.registered_commands:
        assert command.callback is not None
        yield f"{prefix} {command.name or command.callback.__name__}"
    for inner in group.registered_groups:
        assert inner.typer_instance is not None
        yield from command_names(inner.typer_instance, f"{prefix} {inner.name}")
