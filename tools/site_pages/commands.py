"""The reference of the command line, from the functions behind it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo

from agcd.cli import app
from site_pages.tables import code, prose, table


@dataclass(frozen=True)
class Command:
    """A command by its whole name, and the function that it calls."""

    name: str
    function: Callable[..., Any]


def page() -> str:
    """Every command with its arguments and options."""
    lines: list[str] = []
    for command in sorted(commands(app, "agcd"), key=lambda found: found.name):
        rows = [*parameters(command.function)]
        lines += [f"## {code(command.name)}", "", prose(inspect.getdoc(command.function)), ""]
        lines += table(("argument or option", "takes", "default", "what it does"), rows)
    return "\n".join(lines)


def commands(group: typer.Typer, prefix: str) -> Iterator[Command]:
    """Every command, those of groups included; groups that take options themselves, too."""
    if group.registered_callback is not None and group.registered_callback.callback is not None:
        yield Command(prefix, group.registered_callback.callback)
    for command in group.registered_commands:
        if command.callback is not None and not command.hidden:
            yield Command(f"{prefix} {command.name or command.callback.__name__.replace('_', '-')}", command.callback)
    for inner in group.registered_groups:
        if inner.typer_instance is not None:
            yield from commands(inner.typer_instance, f"{prefix} {inner.name}")


def parameters(function: Callable[..., Any]) -> Iterator[tuple[str, str, str, str]]:
    """The lines of a command's table: arguments first, as they are written."""
    hints = get_type_hints(function, include_extras=True)
    found = []
    for parameter in inspect.signature(function).parameters.values():
        annotation = hints[parameter.name]
        if get_origin(annotation) is not Annotated:  # what typer itself hands over
            continue
        inner, *more = get_args(annotation)
        info = next(one for one in more if isinstance(one, OptionInfo | ArgumentInfo))
        if not info.hidden:
            found.append((parameter, inner, info))
    for parameter, inner, info in sorted(found, key=lambda one: isinstance(one[2], OptionInfo)):
        yield written(parameter.name, inner, info), takes(inner, info), default(parameter), prose(info.help)


def written(name: str, annotation: Any, info: OptionInfo | ArgumentInfo) -> str:
    """The spellings of an option, or what stands for an argument."""
    if isinstance(info, ArgumentInfo):
        return code(info.metavar or name.upper())
    return ", ".join(map(code, spellings(name, annotation, info)))


def spellings(name: str, annotation: Any, info: OptionInfo) -> list[str]:
    """Every way to write an option."""
    # Inside Annotated the first spelling stands where a default would, and is moved when the command is made.
    first = [info.default] if isinstance(info.default, str) and info.default.startswith("-") else []
    if declared := [one for part in (*first, *(info.param_decls or ())) for one in part.split("/")]:
        return declared
    long = f"--{name.replace('_', '-')}"
    return [long, f"--no-{long[2:]}"] if annotation is bool else [long]


def takes(annotation: Any, info: OptionInfo | ArgumentInfo) -> str:
    """What follows an option, or what an argument is, with its limits."""
    inner = [one for one in get_args(annotation) if one is not NoneType]
    if get_origin(annotation) in (Union, UnionType):
        return takes(inner[0], info)
    if get_origin(annotation) is list:
        return f"{takes(inner[0], info)}; may be repeated"
    if get_origin(annotation) is Literal:
        return " or ".join(map(code, inner))
    if annotation is bool:
        return "–"
    names = {Path: "path", int: "whole number", float: "number", str: "text"}
    limits = [f"{sign}\u00a0{limit:g}" for sign, limit in (("≥", info.min), ("≤", info.max)) if limit is not None]
    said = code(info.metavar) if info.metavar and isinstance(info, OptionInfo) else names.get(annotation, "text")
    return ", ".join([said, *limits])


def default(parameter: inspect.Parameter) -> str:
    """What holds where nothing is said."""
    if parameter.default is inspect.Parameter.empty:
        return "required"
    if parameter.default in (None, False, ""):
        return "–"
    return code(str(parameter.default).lower() if parameter.default is True else parameter.default)
