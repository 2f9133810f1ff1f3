"""The classes as people know them: stable ids, names, aliases, merges; folded from events."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from agcd.app.store.events import PASSES, LabelEvent
from agcd.errors import DataError

Status = Literal["old", "novel", "retired", "merged"]
MAX_NAME = 200
_DIRECTION_MARKS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""They make a name read otherwise than it is written."""


def clean_text(text: str, what: str = "class name") -> str:
    """``text`` as a name: composed Unicode, no space around it, no control characters, not too long."""
    name = unicodedata.normalize("NFC", text).strip()
    if not name:
        raise DataError(f"A {what} is empty.")
    if len(name) > MAX_NAME:
        raise DataError(f"The {what} {name[:20]!r}… has {len(name)} characters; at most {MAX_NAME} are allowed.")
    if any(unicodedata.category(c) in ("Cc", "Cs") or c in _DIRECTION_MARKS for c in name):
        raise DataError(f"The {what} {name!a} holds control characters.")
    return name


def clean_class_name(text: str) -> str:
    """``text`` as the name of a class; the words for other answers are refused."""
    name = clean_text(text)
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
    """All classes by id, in the order they were made."""

    classes: dict[str, ClassInfo] = field(default_factory=dict)

    def resolve(self, class_id: str) -> ClassInfo:
        """The class that ``class_id`` stands for now, after merges."""
        info = self.classes[class_id]
        while info.merged_into is not None:
            info = self.classes[info.merged_into]
        return info

    def find(self, name: str) -> ClassInfo | None:
        """The class called ``name``, whatever the case; names come before aliases."""
        wanted = name.casefold()
        standing = [info for info in self.classes.values() if info.merged_into is None]
        named = [info for info in standing if info.name.casefold() == wanted]
        known_as = [info for info in standing if wanted in {alias.casefold() for alias in info.aliases}]
        return next(iter(named + known_as), None)


def fold_classes(live: Iterable[LabelEvent]) -> Registry:
    """The registry after ``live`` events, in order. An event that makes no sense (any more) changes nothing."""
    classes: dict[str, ClassInfo] = {}
    registry = Registry(classes)
    for event in live:
        if event.kind == "create" and event.class_id is not None:
            info = ClassInfo(event.class_id, event.payload["name"], bool(event.payload["old"]))
            classes.setdefault(event.class_id, info)
        elif event.class_id in classes and classes[event.class_id].merged_into is None:
            _apply(registry, classes[event.class_id], event)
    return registry


def _apply(registry: Registry, info: ClassInfo, event: LabelEvent) -> None:
    classes = registry.classes
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
