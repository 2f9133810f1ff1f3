"""The classes as people know them: stable ids, names, aliases, merges; folded from events."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from agcd.app.store.events import PASSES, LabelEvent
from agcd.errors import DataError
from agcd.types import IntArray
from agcd.words import JOINERS

Status = Literal["old", "novel", "retired", "merged"]
MAX_NAME = 200
NO_CLASS = -1
_DIRECTION_MARKS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""They make a name read otherwise than it is written."""
_INSIDE = f"{JOINERS}\u200e\u200f\u061c"
"""Invisible, but some scripts need them between two characters: joiners, and marks of direction."""
_UNNAMED = re.compile(r"unnamed #[0-9]+", re.IGNORECASE)


def clean_text(text: str, what: str = "class name") -> str:
    """``text`` as a name: composed Unicode, no space around it, no control characters, not too long."""
    name = unicodedata.normalize("NFC", text).strip().strip(_INSIDE).strip()
    if not name:
        raise DataError(f"A {what} is empty.")
    if len(name) > MAX_NAME:
        raise DataError(f"The {what} {name[:20]!r}… has {len(name)} characters; at most {MAX_NAME} are allowed.")
    if any(unicodedata.category(c) in ("Cc", "Cs") or c in _DIRECTION_MARKS for c in name):
        raise DataError(f"The {what} {name!a} holds control characters.")
    if any(unicodedata.category(c) == "Cf" and c not in _INSIDE for c in name):
        raise DataError(f"The {what} {name!a} holds characters that nobody can see.")
    return name


def clean_class_name(text: str) -> str:
    """``text`` as the name of a class; the words for other answers and for groups without a name are refused."""
    name = clean_text(text)
    if _UNNAMED.fullmatch(name):
        raise DataError(f"{name!r} cannot be the name of a class: groups that nobody has named are called so.")
    if name.casefold() in PASSES:
        raise DataError(f"{name!r} cannot be the name of a class: it is an answer of its own ({', '.join(PASSES)}).")
    return name


@dataclass(frozen=True)
class ClassInfo:
    """One class. ``aliases`` are the names it had, and those of the classes merged into it."""

    id: str
    name: str
    is_old: bool
    aliases: tuple[str, ...] = ()
    retired: bool = False
    merged_into: str | None = None

    @property
    def status(self) -> Status:
        if self.merged_into is not None:
            return "merged"
        return "retired" if self.retired else "old" if self.is_old else "novel"


@dataclass(frozen=True)
class Registry:
    """All classes by id, in the order they were made; the number of a class in that order is its *place*."""

    classes: dict[str, ClassInfo] = field(default_factory=dict)

    def after(self, live: Iterable[LabelEvent]) -> Registry:
        """The registry after ``live`` events, in order. An event that makes no sense (any more) changes nothing."""
        registry = Registry(dict(self.classes))
        for event in live:
            _apply(registry, event)
        return registry

    @cached_property
    def infos(self) -> tuple[ClassInfo, ...]:
        """The classes by place."""
        return tuple(self.classes.values())

    @cached_property
    def place_of(self) -> dict[str, int]:
        """The place of each class id."""
        return {class_id: place for place, class_id in enumerate(self.classes)}

    @cached_property
    def merged_place(self) -> IntArray:
        """By place, the place of the class that it stands for after merges; and one entry more, which keeps −1."""
        places = [self.place_of[self.resolve(class_id).id] for class_id in self.classes]
        return np.array([*places, NO_CLASS], np.int64)

    def resolve(self, class_id: str) -> ClassInfo:
        """The class that ``class_id`` stands for now, after merges."""
        info = self.classes[class_id]
        while info.merged_into is not None:
            info = self.classes[info.merged_into]
        return info

    def get(self, class_id: str | None) -> ClassInfo:
        """The class with an id, merged or not; an unknown one is an error."""
        if class_id is None or class_id not in self.classes:
            raise DataError(f"There is no class with id {class_id!r}.")
        return self.classes[class_id]

    def find(self, name: str) -> ClassInfo | None:
        """The class called ``name``, whatever the case; names come before aliases."""
        return self._by_name.get(name.casefold())

    @cached_property
    def _by_name(self) -> dict[str, ClassInfo]:
        standing = [info for info in self.infos if info.merged_into is None]
        named = {info.name.casefold(): info for info in reversed(standing)}  # of two, the older one
        for info in standing:
            for alias in info.aliases:
                named.setdefault(alias.casefold(), info)
        return named


def _apply(registry: Registry, event: LabelEvent) -> None:
    """Change ``registry``, which nobody else has seen yet, by one event."""
    classes, class_id = registry.classes, event.class_id
    if event.kind == "create" and class_id is not None:
        classes.setdefault(class_id, ClassInfo(class_id, event.payload["name"], bool(event.payload["old"])))
        return
    if class_id not in classes or classes[class_id].merged_into is not None:
        return
    info = classes[class_id]
    if event.kind == "rename":
        classes[info.id] = replace(info, name=event.payload["name"], aliases=(*info.aliases, info.name))
    elif event.kind == "retire":
        classes[info.id] = replace(info, retired=True)
    elif event.kind == "merge" and event.payload["into"] in classes:
        into = registry.resolve(event.payload["into"])
        if into.id != info.id:
            classes[info.id] = replace(info, merged_into=into.id)
            classes[into.id] = replace(into, aliases=(*into.aliases, info.name, *info.aliases))


def check_names(registry: Registry) -> None:
    """No two classes share a name, whatever the case."""
    seen: dict[str, str] = {}
    for info in registry.classes.values():
        if info.merged_into is None and seen.setdefault(info.name.casefold(), info.id) != info.id:
            raise DataError(f"There would be two classes called {info.name!r}; merge them or choose another name.")
