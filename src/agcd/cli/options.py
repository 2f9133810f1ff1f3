"""What several commands share: their options, settings given as text, tables on the screen, and old spellings."""

from __future__ import annotations

import sys
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from agcd.cli.terminal import data_output
from agcd.errors import ConfigError

CacheOption = Annotated[
    Path | None, typer.Option("--cache", help="Folder for features and unpacked data; default ~/.cache/agcd.")
]
ProjectArgument = Annotated[Path, typer.Argument(metavar="DIR", help="The project's folder.")]
DataOption = Annotated[
    list[str], typer.Option(help="A named data set, cub=PATH, a folder, manifest or .npz; may be repeated.")
]
OutOption = Annotated[Path, typer.Option(help="Folder for runs and results; running again continues.")]
TableOption = Annotated[Path | None, typer.Option("--out", help="CSV to write; default the screen.")]
ProtocolOption = Annotated[str, typer.Option(help="quick, short, paper or official.")]
SplitOption = Annotated[str | None, typer.Option(help="published, seeded, or a JSON file that lists the old classes.")]
EngineOption = Annotated[str, typer.Option(help="Where the work runs: local, torchrun (training) or ray.")]
AddressOption = Annotated[str | None, typer.Option(help="A Ray cluster, as 10.0.0.5:6379; default one made here.")]
ProcessesOption = Annotated[int | None, typer.Option(help="Processes that work together; default one per core.", min=1)]
JobsOption = Annotated[int | None, typer.Option(help="Parallel processes; default one per core.", min=1)]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="A setting, as train.base_epochs=50; may be repeated.")
]


def with_overrides(values: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """``values`` with each ``section.key=value`` put in; the value is read as TOML, else taken as a string."""
    for text in overrides:
        where, equals, raw = text.partition("=")
        *sections, key = where.strip().split(".")
        if not equals or not key:
            raise ConfigError(f"--set {text!r} is not of the form section.key=value.")
        try:
            value = tomllib.loads(f"value = {raw}")["value"]
        except (tomllib.TOMLDecodeError, RecursionError):
            value = raw
        inner = values
        for section in sections:
            inner[section] = dict(inner.get(section, {}))
            inner = inner[section]
        inner[key] = value
    return values


def write_or_print(table: Mapping[str, Sequence[Any]], out: Path | None) -> None:
    """A table as CSV: into ``out`` with a word about its length, or onto the screen."""
    from agcd.data.tables import table_text, write_table

    if out is None:
        print(table_text(table), end="", file=data_output())
    else:
        write_table(out, table)
        print(f"{out}: {len(next(iter(table.values())))} lines")


def every_second(things: str) -> Callable[[int, int], None]:
    """Tells on the error stream how much is done, once a second at most; what is done within one is not told."""
    told = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal told
        if time.monotonic() - told >= 1:
            told = time.monotonic()
            print(f"{done:,} of {total:,} {things}", file=sys.stderr)

    return tell


class CommandFirst(TyperGroup):
    """A group that also takes the spellings of version 0.1, in which options could stand before the command.

    Where no command is named at all, ``default`` is meant. A line on the error stream says what to write instead.
    """

    default: str | None = None
    flags = frozenset({"--help"})
    """Options without a value: what follows any other option is its value, and never a command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = next((i for i in self._bare(args) if args[i] in self.commands), None)
        if args and named is None and self.default and not self._bare(args) and args != ["--help"]:
            args = self._respelled(ctx, self.default, args)
        elif named:
            args = self._respelled(ctx, args[named], [*args[:named], *args[named + 1 :]])
        return super().parse_args(ctx, args)

    def _bare(self, args: Sequence[str]) -> list[int]:
        """The places of arguments that are neither an option nor the value of one."""
        places, is_value = [], False
        for i, text in enumerate(args):
            is_option = text.startswith("-") and not is_value
            if not is_option and not is_value:
                places.append(i)
            is_value = is_option and "=" not in text and text not in self.flags
        return places

    def _respelled(self, ctx: Any, command: str, rest: Sequence[str]) -> list[str]:
        spelling = f"{ctx.command_path} {command} …"
        print(f"note: this is now written {spelling}; the old spelling still works", file=sys.stderr)
        return [command, *rest]
