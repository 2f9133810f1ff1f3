"""What an item is: a picture, a text or a record. All that differs between them stands here.

A project keeps of each row a key, the place where it is from and, where the row is no file, its *content*: a string
that the kind alone understands. A new kind is a class like these with a line in ``KINDS``, or in the entry point group
``agcd.kinds`` of another package; CONTRIBUTING.md has an example.
"""

from __future__ import annotations

import functools
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from agcd.app.image_paths import stored_path
from agcd.config import BackboneConfig
from agcd.data.health import common_findings, health_report
from agcd.data.reading import Choose, Reading, SourceOptions
from agcd.data.records import Record, read_records, record_keys
from agcd.data.sources import read_source
from agcd.data.text_health import text_health
from agcd.data.text_items import text_keys
from agcd.data.texts import read_texts
from agcd.errors import ConfigError, DataError
from agcd.plugins import Registry
from agcd.types import Dataset
from agcd.words import count, printable

EXCERPT = 240
"""Characters of an excerpt, with the ellipsis."""
_BEFORE = 60
"""Characters shown before words that were searched for."""


@dataclass(frozen=True)
class Shown:
    """An item at full length: any of a text, cells of a table and a link."""

    text: str = ""
    cells: tuple[tuple[str, str], ...] = ()
    link: str = ""


@dataclass(frozen=True)
class Picture:
    """Where the picture of a row lies, as it is stored (``agcd.app.image_paths``), and the key of its content."""

    path: str
    key: str


class ItemKind(ABC):
    """One kind of items; it holds nothing, so one object serves everybody."""

    name: ClassVar[str]
    """In ``agcd.toml`` and on the page."""
    noun: ClassVar[str]
    """What the page calls one of them."""
    has_pictures: ClassVar[bool] = False
    """Whether rows may have a picture."""
    file_ending: ClassVar[str] = ".txt"
    """How a file that is made of a row is called; "" where rows are files already."""

    @property
    def nouns(self) -> str:
        return f"{self.noun}s"

    def count(self, n: int) -> str:
        """ "1 picture", "1,200 texts"."""
        return count(n, self.noun)

    @abstractmethod
    def read(self, source: Path, options: SourceOptions, choose: Choose) -> Reading:
        """The items of a source."""

    def places(self, dataset: Dataset, root: Path, folder: Path) -> list[str]:
        """Where each row is from, as a project in ``folder`` writes it down; unique."""
        return list(dataset.where or ())

    @abstractmethod
    def contents(self, dataset: Dataset) -> Sequence[str]:
        """What is kept of each row in the project; nothing where rows are files that stay where they are."""

    def health(self, dataset: Dataset, root: Path) -> list[str]:
        """What a person should know before spending an hour on these items."""
        return common_findings(dataset, self.noun, lambda row: printable((dataset.where or ())[row]))

    def check_features(self, config: BackboneConfig) -> None:
        """Refuse settings that cannot make features of such items."""
        raise ConfigError(f"{self.noun.capitalize()}s have no features of their own: give them with --embeddings.")

    @abstractmethod
    def dataset_fields(self, contents: Sequence[str], places: Sequence[str], find: Callable[[str], Path]) -> Any:
        """The fields of ``Dataset`` that hold these items; ``find`` tells where a stored path lies."""

    def keys_of(self, contents: Sequence[str]) -> Sequence[str] | None:
        """The keys that these contents must have; None where rows have no content."""
        return None

    def picture(self, place: str, key: str, content: str) -> Picture | None:
        """The picture of a row, if it has one."""
        return None

    def excerpt(self, content: str) -> str:
        """A row on one line."""
        return ""

    def shown(self, content: str) -> Shown:
        """A row at full length."""
        return Shown()

    def excerpt_around(self, content: str, words: str) -> str:
        """The excerpt, or where it ends before ``words`` come, one that shows them."""
        text = " ".join(self.shown(content).text.split())
        place = text.casefold().find(words.casefold())
        if place + len(words) < EXCERPT:
            return self.excerpt(content)
        return f"…{_one_line(text[max(0, place - _BEFORE) :])[: EXCERPT - 1]}"

    def columns(self, contents: Sequence[str]) -> dict[str, list[Any]]:
        """Columns beside the path in files for others, of rows with these contents."""
        return {}

    def as_file(self, content: str) -> str:
        """What stands in a file that is made of a row."""
        shown = self.shown(content)
        cells = [f"{name}: {value}" for name, value in shown.cells]
        return "".join(f"{part}\n" for part in (shown.text, *cells, shown.link) if part)


class ImageKind(ItemKind):
    """Image files, which stay where they are."""

    name, noun, has_pictures, file_ending = "image", "picture", True, ""

    def read(self, source: Path, options: SourceOptions, choose: Choose) -> Reading:
        if source.suffix.lower() in (".npz", ".npy"):
            raise DataError(
                f"{source} holds embeddings: a project needs images, texts (--texts) or records (--records), and takes "
                "embeddings beside them (--embeddings)."
            )
        return read_source(source, options, choose)

    def places(self, dataset: Dataset, root: Path, folder: Path) -> list[str]:
        return [stored_path(path, root, folder) for path in dataset.paths or ()]

    def contents(self, dataset: Dataset) -> Sequence[str]:
        return ()

    def health(self, dataset: Dataset, root: Path) -> list[str]:
        return health_report(dataset, root)

    def check_features(self, config: BackboneConfig) -> None:
        from agcd.features.backbones import load_backbone

        load_backbone(config, "cpu")

    def dataset_fields(self, contents: Sequence[str], places: Sequence[str], find: Callable[[str], Path]) -> Any:
        return {"paths": tuple(map(find, places))}

    def picture(self, place: str, key: str, content: str) -> Picture | None:
        return Picture(place, key)


class TextKind(ItemKind):
    """Sentences, tickets, abstracts: a text is kept in the project."""

    name, noun = "text", "text"

    def read(self, source: Path, options: SourceOptions, choose: Choose) -> Reading:
        return read_texts(source, options, choose)

    def contents(self, dataset: Dataset) -> Sequence[str]:
        return dataset.texts or ()

    def health(self, dataset: Dataset, root: Path) -> list[str]:
        return text_health(dataset)

    def check_features(self, config: BackboneConfig) -> None:
        from agcd.features.text_encoders import load_encoder

        load_encoder(config, "cpu")

    def dataset_fields(self, contents: Sequence[str], places: Sequence[str], find: Callable[[str], Path]) -> Any:
        return {"texts": tuple(contents), "where": tuple(places)}

    def keys_of(self, contents: Sequence[str]) -> Sequence[str]:
        return text_keys(contents)

    def excerpt(self, content: str) -> str:
        return _one_line(content)

    def shown(self, content: str) -> Shown:
        return Shown(text=content)

    def columns(self, contents: Sequence[str]) -> dict[str, list[Any]]:
        return {"text": list(contents)}


class RecordKind(ItemKind):
    """Rows of a table, with a picture, a text or a link where they have one."""

    name, noun, has_pictures, file_ending = "record", "record", True, ".json"

    def read(self, source: Path, options: SourceOptions, choose: Choose) -> Reading:
        return read_records(source, options, choose)

    def contents(self, dataset: Dataset) -> Sequence[str]:
        return dataset.records or ()

    def dataset_fields(self, contents: Sequence[str], places: Sequence[str], find: Callable[[str], Path]) -> Any:
        return {"records": tuple(contents), "where": tuple(places)}

    def keys_of(self, contents: Sequence[str]) -> Sequence[str]:
        return record_keys(contents)

    def picture(self, place: str, key: str, content: str) -> Picture | None:
        record = _record(content)
        return Picture(record.picture, record.picture_key) if record.picture else None

    def excerpt(self, content: str) -> str:
        record = _record(content)
        cells = [f"{name}: {value}" for name, value in record.cells]
        return _one_line(" · ".join(filter(None, (record.text, *cells))))

    def shown(self, content: str) -> Shown:
        record = _record(content)
        return Shown(record.text, record.cells, record.link)

    def columns(self, contents: Sequence[str]) -> dict[str, list[Any]]:
        records = [_record(content) for content in contents]
        texts = [record.text for record in records]
        cells = [json.dumps(dict(record.cells), ensure_ascii=False) for record in records]
        return ({"text": texts} if any(texts) else {}) | {"cells": cells}

    def as_file(self, content: str) -> str:
        record = _record(content)
        held = {"cells": dict(record.cells), "text": record.text, "link": record.link, "picture": record.picture}
        there = {name: value for name, value in held.items() if value}
        return json.dumps(there, ensure_ascii=False, indent=2) + "\n"


Make = Callable[[], ItemKind]
_BUILT_IN: dict[str, Make] = {kind.name: kind for kind in (ImageKind, TextKind, RecordKind)}
KINDS: Registry[Make] = Registry("Kind of items", "agcd.kinds", _BUILT_IN)
IMAGE = ImageKind.name


def kind_named(name: str) -> ItemKind:
    """The kind of items with this name."""
    return KINDS.get(name)()


@functools.lru_cache(maxsize=4096)
def _record(content: str) -> Record:
    return Record.from_json(content)


def _one_line(text: str) -> str:
    line = " ".join(text[: 4 * EXCERPT].split())
    return line if len(line) <= EXCERPT else f"{line[: EXCERPT - 1].rstrip()}…"
