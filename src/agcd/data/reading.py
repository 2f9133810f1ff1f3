"""What every reader of a source takes and gives: how it is to be read, and what it was understood to be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agcd.errors import DataError
from agcd.types import Dataset
from agcd.words import printable


@dataclass(frozen=True)
class SourceOptions:
    """How a source is to be read."""

    class_level: int | None = None
    """How deep below the root class folders lie, 1 for ``root/<class>``; 0: folders name none; None: found out."""
    follow_links: bool = False
    allow_outside: bool = False
    unpack_to: Path | None = None
    """Where archives and pictures inside Parquet files are unpacked; None: such a source is refused."""
    look: bool = True
    """Whether every picture is decoded once, which finds damaged ones; else only headers are read."""
    skip: Callable[[Path], bool] | None = None
    """Which pictures are known already and left out, unread; then a source may hold none at all."""
    column: str | None = None
    """Which column of a table holds the texts; None: found by its name."""
    label_column: str | None = None
    """Which column names the classes; None: found by its name."""
    picture_column: str | None = None
    """Which column of records names a picture; None: found by its name."""
    link_column: str | None = None
    """Which column of records holds a link; None: found by its name."""


DEFAULT_OPTIONS = SourceOptions()


@dataclass(frozen=True)
class Choice:
    """One way to read a folder: in words, and as the option that asks for it."""

    words: str
    class_level: int | None = None


@dataclass(frozen=True)
class Reading:
    """What a source was understood to be."""

    dataset: Dataset
    root: Path
    """The folder that paths are shown relative to."""
    tree: tuple[str, ...]
    """A small tree in words, for people."""
    doubts: tuple[str, ...]
    """What was not sure, each one sentence with the remedy; empty: sure."""
    unpacked: Path | None = None
    """The folder that was made for what came out of an archive: whoever gives the reading up removes it."""
    class_level: int | None = None
    """How deep class folders were taken to lie, where folders name the classes."""


Choose = Callable[[Path, Sequence[str], Sequence[Choice]], Choice]
"""Decides between readings: the source, the doubts and the choices, the likeliest first, in; one of them out."""


def take_first(source: Path, doubts: Sequence[str], choices: Sequence[Choice]) -> Choice:
    """The likeliest reading; whoever asks tells the doubts."""
    return choices[0]


def refuse_doubt(source: Path, doubts: Sequence[str], choices: Sequence[Choice]) -> Choice:
    """For where nobody can be asked: an unsure reading is an error that names the options."""
    options = "add --class-level N, or --yes for the first" if len(choices) > 1 else "add --yes to go on"
    raise DataError(printable(f"{source} can be read in several ways: {doubts[0].removesuffix('.')}; {options}."))
