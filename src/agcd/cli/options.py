"""What several commands share: their options, settings given as text, facts and tables on the screen, old spellings."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from agcd.cli.terminal import data_output
from agcd.errors import ConfigError, DataError
from agcd.overrides import with_overrides as with_overrides

if TYPE_CHECKING:
    from agcd.data.text_items import TextItem

CacheOption = Annotated[
    Path | None, typer.Option("--cache", help="Folder for features and unpacked data; default ~/.cache/agcd.")
]
ProjectArgument = Annotated[Path, typer.Argument(metavar="DIR", help="The project's folder.")]
DataOption = Annotated[
    list[str], typer.Option(help="A named data set, cub=PATH, a folder, manifest or .npz; may be repeated.")
]
OutOption = Annotated[Path, typer.Option(help="Folder for runs and results; running again continues.")]
TableOption = Annotated[Path | None, typer.Option("--out", help="File to write; default the screen.")]
FormatOption = Annotated[
    Literal["csv", "jsonl"] | None, typer.Option("--format", help="Default as --out is called, or csv.")
]
ProtocolOption = Annotated[str, typer.Option(help="quick, short, paper or official.")]
SplitOption = Annotated[str | None, typer.Option(help="published, seeded, or a JSON file that lists the old classes.")]
EngineOption = Annotated[str, typer.Option(help="Where the work runs: local, torchrun (training) or ray.")]
NodesOption = Annotated[int, typer.Option(help="Machines that train together (engine torchrun).", min=1)]
RendezvousOption = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Where these machines find each other.")
]
GpusOption = Annotated[
    float | None, typer.Option(help="GPUs of each worker of a Ray cluster, or a part, as 0.5; default 1 on GPUs.")
]
AddressOption = Annotated[str | None, typer.Option(help="A Ray cluster, as 10.0.0.5:6379; default one made here.")]
ProcessesOption = Annotated[
    int | None, typer.Option(help="Processes that work together; default one per GPU or core.", min=1)
]
JobsOption = Annotated[int | None, typer.Option(help="Parallel processes; default one per GPU or core.", min=1)]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="A setting, as train.base_epochs=50; may be repeated.")
]
TrackOption = Annotated[
    str | None, typer.Option(help="Also tells tensorboard, mlflow, wandb or package.module:Class of every epoch.")
]

ClassLevelOption = Annotated[
    int | None, typer.Option(help="How deep class folders lie: 1 for FOLDER/<class>, 0 for none.", min=0)
]
FollowLinksOption = Annotated[bool, typer.Option("--follow-links", help="Follow links to folders.")]
AllowOutsideOption = Annotated[
    bool, typer.Option("--allow-outside", help="Take pictures elsewhere that links or paths lead to.")
]
EncoderOption = Annotated[
    str | None, typer.Option(help="What reads texts: its name, or a folder as sentence-transformers saves one.")
]
ColumnOption = Annotated[str | None, typer.Option(help="The column of the texts; default by its name.")]
LabelColumnOption = Annotated[str | None, typer.Option(help="The column that names the classes; default by its name.")]
PictureColumnOption = Annotated[
    str | None, typer.Option(help="The column of records with the path of a picture; default by its name.")
]
LinkColumnOption = Annotated[
    str | None, typer.Option(help="The column of records with a web address; default by its name.")
]
YesOption = Annotated[bool, typer.Option("--yes", help="Take the likeliest reading without asking.")]
STANDARD_INPUT = Path("-")
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on one line, and nothing else.")]


def tell(as_json: bool, facts: Mapping[str, Any], lines: Iterable[str]) -> None:
    """Print what a command has to say: ``facts`` as one JSON object, else ``lines`` for people.

    Keys are those of the REST API where it tells the same fact. Whatever is worth a word meanwhile goes to the error
    stream; a mistake is told by ``main``, as ``{"error": "…"}``.
    """
    if as_json:
        print(json.dumps(plain_value(facts), allow_nan=False))
        return
    for line in lines:
        print(line)


def plain_value(value: Any) -> Any:
    """``value`` as JSON has it: objects by their fields, paths as text, null for a number that is none."""
    if isinstance(value, Enum):
        return plain_value(value.value)
    if isinstance(value, Mapping):
        return {str(key): plain_value(one) for key, one in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_value(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, str | Path):
        return str(value)
    if isinstance(value, Iterable):
        return [plain_value(one) for one in value]
    if hasattr(value, "item"):  # a number of NumPy, which need not be loaded for this
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def tell_table(
    as_json: bool, things: str, table: Mapping[str, Sequence[Any]], out: Path | None, format_: str | None = None
) -> None:
    """A table of ``things`` as CSV or JSON Lines: into ``out`` with a word about its length, or onto the screen.

    As one JSON object it holds the lines themselves, unless they are in ``out``.
    """
    from agcd.data.tables import jsonl_text, table_text
    from agcd.io import atomic_write

    is_jsonl = format_ == "jsonl" or (format_ is None and out is not None and out.suffix.lower() == ".jsonl")
    text = jsonl_text if is_jsonl else table_text
    rows = zip(*table.values(), strict=True)
    facts = {f"n_{things}": len(next(iter(table.values()))), "out": out}
    if out is not None:
        with atomic_write(out) as aside:
            aside.write_text(text(table), encoding="utf-8", newline="")
        tell(as_json, facts, [f"{out}: {facts[f'n_{things}']} lines"])
    elif as_json:
        tell(True, facts | {things: [dict(zip(table, row, strict=True)) for row in rows]}, [])
    else:
        print(text(table), end="", file=data_output())


def with_paths_read(given: Sequence[Path], null: bool = False) -> list[Path]:
    """``given`` with the paths on the standard input in the place of ``-``: one a line, or each before a NUL."""
    if null and STANDARD_INPUT not in given:
        raise ConfigError("-0 is about paths that are read: name - among the images as well.")
    found: list[Path] = []
    for place in given:
        if place != STANDARD_INPUT:
            found.append(place)
            continue
        read = sys.stdin.buffer.read()
        words = read.split(b"\0") if null else read.splitlines()
        found += [Path(os.fsdecode(word)) for word in words if word.strip()]
    if not found:
        raise DataError("The standard input names no image: a path on every line is expected.")
    return found


def with_texts_read(given: Sequence[Path], null: bool = False) -> list[Path | TextItem]:
    """``given`` with the texts on the standard input in the place of ``-``: one a line, or each before a NUL."""
    from agcd.data.tables import decoded, lines_of
    from agcd.data.text_items import TextItem

    if null and STANDARD_INPUT not in given:
        raise ConfigError("-0 is about texts that are read: name - as well.")
    found: list[Path | TextItem] = []
    for place in given:
        if place != STANDARD_INPUT:
            found.append(place)
            continue
        read = decoded(sys.stdin.buffer.read(), "replace")
        texts = read.split("\0") if null else lines_of(read)
        found += [TextItem(f"line {number}", text) for number, text in enumerate(texts, start=1) if text.strip()]
    if not found:
        raise DataError("The standard input holds no text: a text on every line is expected.")
    return found


def every_second(things: str) -> Callable[[int, int], None]:
    """Tells on the error stream how much is done, once a second at most; what is done within one is not told."""
    told = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal told
        if time.monotonic() - told >= 1:
            told = time.monotonic()
            print(f"{done:,} of {total:,} {things}", file=sys.stderr)

    return tell


class JsonAnywhere(TyperGroup):
    """A group that lists something by itself, and takes ``--json`` behind its own arguments or before a command."""

    n_arguments = 0
    """Of the group itself, before the name of a command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        rest = [word for word in args if word != "--json"]
        if len(rest) < len(args):
            is_command = rest[self.n_arguments : self.n_arguments + 1]
            args = [*rest, "--json"] if is_command else ["--json", *rest]
        return super().parse_args(ctx, args)


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
