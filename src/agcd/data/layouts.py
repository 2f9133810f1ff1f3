"""What the folders of a collection mean: which level names the classes, which the split, and which nothing.

Only names and depths are looked at. Levels count from 1 just below the root; level 0 means that no folder does.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agcd.data.items import clean_name
from agcd.data.reading import Choice
from agcd.errors import DataError
from agcd.words import count, listed

Parts = tuple[str, ...]
"""The path of a file below the root, name by name."""

TRAINING = frozenset({"train", "training", "val", "valid", "validation", "dev"})
TESTING = frozenset({"test", "testing"})
_FILLERS = frozenset({"", "set", "data", "dataset", "images", "image", "imgs", "img", "pictures", "files", "seg"})
"""What may stand beside the word in the name of a split, as in ``training_set`` and ``train2017``."""
_UNLABELLED = frozenset({"unlabelled", "unlabeled"})
_CONTAINERS = frozenset(
    {"all", "archive", "data", "dataset", "datasets", "files", "image", "images", "img", "imgs", "input", "jpeg"}
    | {"jpegs", "jpg", "jpgs", "labelled", "labeled", "media", "original", "originals", "photo", "photos", "pic"}
    | {"pics", "picture", "pictures", "png", "pngs", "raw", "upload", "uploads"}
)
_COMPANIONS = frozenset(
    {"annotation", "annotations", "gt", "label", "labels", "mask", "masks", "preview", "previews", "segmentation"}
    | {"segmentations", "thumb", "thumbnail", "thumbnails", "thumbs"}
)
"""Folders that stand beside pictures and hold what belongs to them."""
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_PERIOD = re.compile(
    r"(19|20)\d\d([-_. ]?(\d{1,2}|" + _MONTHS + r")){0,2}"  # 2023, 2023-05, 2023_05_11, 20230511
    r"|\d{1,2}[-_. ]\d{1,2}[-_. ](\d\d){1,2}"  # 11.5.2023
    r"|(batch|session|day|week|month|run|part|chunk|shard|roll|card|disk|survey|visit|trip)[-_ ]?\d+"
    r"|\d{3}[a-z_]{5}"  # 100CANON, as cameras name them
    r"|(photos|pictures|images)[ _]from[ _](19|20)\d\d"  # as online albums export them
)
_NUMBER = re.compile(r"\d{1,3}")
_SHOWN = 3
_REMEMBERED = 4096
"""Names of folders: each stands in the paths of many files."""


@dataclass(frozen=True)
class Layout:
    """Which folder of a path names the class and which the split."""

    class_level: int
    split_level: int = 0

    def class_folder(self, parts: Parts) -> Parts:
        """The folder that names the class; () where none does."""
        folders = parts[:-1]
        if self.class_level == 0 or len(folders) < self.class_level or any(map(is_unlabelled, folders)):
            return ()
        return folders[: self.class_level]

    def label(self, parts: Parts) -> str | None:
        folder = self.class_folder(parts)
        return clean_name(folder[-1]) if folder else None

    def is_test(self, parts: Parts) -> bool:
        return 0 < self.split_level < len(parts) and split_word(parts[self.split_level - 1]) in TESTING


@dataclass(frozen=True)
class Found:
    """The likeliest layout, the other levels that may be meant, and why that is not sure."""

    layout: Layout
    others: tuple[int, ...] = ()
    why: tuple[str, ...] = ()


@functools.lru_cache(_REMEMBERED)
def is_unlabelled(name: str) -> bool:
    return re.sub(r"[\W_]+", "", name).casefold() in _UNLABELLED


def is_companion(name: str) -> bool:
    """Whether a folder stands beside the pictures and holds what belongs to them, as ``annotations`` does."""
    return name.casefold() in _COMPANIONS


@functools.lru_cache(_REMEMBERED)
def split_word(name: str) -> str | None:
    """The word for a split in the name of a folder or in a cell, or None: ``Test``, ``training_set``, ``train2017``."""
    words = [word for word in re.split(r"[\W_\d]+", name.casefold()) if word not in _FILLERS]
    return words[0] if len(words) == 1 and words[0] in TRAINING | TESTING else None


def find_layout(files: Iterable[Parts], class_level: int | None = None, noun: str = "picture") -> Found:
    """What the folders of ``files`` mean; a level that is given is taken. ``noun`` says what a file is."""
    every = {parts[:-1] for parts in files}
    named = {folders for folders in every if not any(map(is_unlabelled, folders))}
    search = _Search(named, has_rest=len(named) < len(every), noun=noun)
    return search.find() if class_level is None else search.given(class_level)


def choices_of(found: Found, files: Sequence[Parts], noun: str = "picture") -> list[Choice]:
    """The readings in words, the likeliest first."""
    return [
        Choice(_words(Layout(level, found.layout.split_level), files, noun), level)
        for level in (found.layout.class_level, *found.others)
    ]


def _words(layout: Layout, files: Iterable[Parts], noun: str) -> str:
    names = sorted({label for label in map(layout.label, files) if label is not None})
    if not names:
        return f"{noun}s without labels"
    shown = [*names[:_SHOWN], f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else names
    return f"{len(names)} {'class' if len(names) == 1 else 'classes'}, {listed(shown)}"


@dataclass
class _Search:
    """Goes down level by level until folders look like classes."""

    folders: set[Parts]
    has_rest: bool
    """Whether some pictures lie in folders called unlabelled."""
    noun: str = "picture"
    level: int = 0
    split_level: int = 0
    has_periods: bool = False
    others: list[int] = field(default_factory=list)
    why: list[str] = field(default_factory=list)

    def find(self) -> Found:
        while self._goes_on():
            self.level += 1
        return self._found(self._ends())

    def given(self, class_level: int) -> Found:
        deepest = max(map(len, self.folders), default=0)
        if class_level > deepest:
            raise DataError(
                f"--class-level is {class_level}, but {self.noun}s lie at most {count(deepest, 'folder')} deep: "
                "a smaller number is expected, 0 where folders name no classes."
            )
        for level in range(deepest):
            if level != class_level - 1 and _are_splits({f[level] for f in self.folders if len(f) > level}):
                return Found(Layout(class_level, level + 1))
        return Found(Layout(class_level))

    def _found(self, class_level: int) -> Found:
        others = [level for level in self.others if level != class_level]
        return Found(Layout(class_level, self.split_level), tuple(dict.fromkeys(others)), tuple(self.why))

    @property
    def names(self) -> set[str]:
        """Of the folders at this level."""
        return {f[self.level] for f in self.folders if len(f) > self.level}

    @property
    def inner(self) -> set[str]:
        """Of the folders inside them."""
        return {f[self.level + 1] for f in self.folders if len(f) > self.level + 1}

    @property
    def full(self) -> set[str]:
        """Of those at this level that hold pictures themselves."""
        return {f[self.level] for f in self.folders if len(f) == self.level + 1}

    def _goes_on(self) -> bool:
        """Whether the classes lie deeper than this level."""
        names, inner = self.names, self.inner
        _refuse_mixture(names)
        if _are_splits(names):
            self.split_level = self.split_level or self.level + 1
            return True
        if self.full or not inner:
            return False
        if _are_periods(names, nested=True):
            self.has_periods = True
            return True
        says_little = _are_splits(inner) or _are_periods(inner, nested=True) or inner <= _folded(inner, _CONTAINERS)
        if len(names) == 1:
            return self._is_wrapper(says_little)
        if says_little and not self._is_deeper(2):
            return False
        if names > _folded(names, _CONTAINERS):
            self._doubt(f"{_some(names, 'hold')} no {self.noun}s, only folders", self.level + 1)
        return True

    def _is_wrapper(self, says_little: bool) -> bool:
        """Whether the only folder at this level is a mere wrapper around class folders."""
        (name,) = self.names
        if not (self.has_rest or self._has_loose()) or name.casefold() in _CONTAINERS:
            return True
        if says_little:
            return False
        self._doubt(f"{name}/ is the only folder with a name, and holds no {self.noun}s, only folders", self.level + 1)
        return True

    def _ends(self) -> int:
        """The level of the classes, where the search has come to its end."""
        names, here = self.names, self.level + 1
        if not names:
            return 0
        if _are_periods(names, nested=self.has_periods) or names <= _folded(names, _CONTAINERS | _COMPANIONS):
            if len(names) > 1 or self.has_rest or names <= _folded(names, _COMPANIONS):
                self._doubt(f"{_some(names)} would be odd as classes", here)
            return 0
        if _are_splits(self.inner) and not self.split_level:
            self.split_level = here + 1
        if len(names) == 1 and not (self.has_rest or self._has_loose()):
            self._doubt(f"all {self.noun}s lie in one folder, {_some(names)}", 0)
        if companions := _folded(names, _COMPANIONS):
            self._doubt(f"{_some(companions)} would be a class like the others", 0)
        nests = {f[self.level] for f in self.folders if len(f) > here and not _says_little(f[here])} - self.full
        if nests and self.full:
            self._doubt(f"{_some(nests, 'hold')} only folders, while others hold {self.noun}s", here + 1)
        return here

    def _has_loose(self) -> bool:
        """Whether pictures lie beside the folders of this level; those beside splits belong to none."""
        return any(len(f) == self.level for f in self.folders)

    def _is_deeper(self, more: int) -> bool:
        return any(len(f) > self.level + more for f in self.folders)

    def _doubt(self, why: str, other: int) -> None:
        self.why.append(why)
        self.others.append(other)


def _are_splits(names: set[str]) -> bool:
    """Whether all are names of splits, one of them for training."""
    words = {split_word(name) for name in names}
    return None not in words and bool(words & TRAINING)


def _are_periods(names: set[str], nested: bool) -> bool:
    """Whether all are dates or batches; numbers are so only above or below others."""
    return bool(names) and all(_is_period(name) or (nested and _NUMBER.fullmatch(name)) for name in names)


def _is_period(name: str) -> bool:
    return _PERIOD.fullmatch(name.casefold()) is not None


def _says_little(name: str) -> bool:
    return bool(_is_period(name) or _NUMBER.fullmatch(name) or split_word(name) or name.casefold() in _CONTAINERS)


def _folded(names: set[str], words: frozenset[str]) -> set[str]:
    return {name for name in names if name.casefold() in words}


def _some(names: set[str], verb: str = "") -> str:
    """The first few names, with a verb that fits their number."""
    shown = [f"{name}/" for name in sorted(names)[:_SHOWN]]
    words = listed([*shown, f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else shown)
    return f"{words} {verb}{'s' * (len(names) == 1)}" if verb else words


def _refuse_mixture(names: set[str]) -> None:
    """A lone ``train`` beside other folders is a class of vehicles; with ``test`` it is none."""
    words = {name: split_word(name) for name in names}
    others = sorted(name for name, word in words.items() if word is None)
    if others and set(words.values()) & TESTING and set(words.values()) & {"train", "training"}:
        raise DataError(
            f"There are train and test folders beside {others[0]!r}: keep class folders either inside train and test "
            "or without them, or take them all for classes with --class-level."
        )
