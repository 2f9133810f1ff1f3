"""A folder of images as a data set: folders name classes, and some of them splits, dates or nothing (``layouts``)."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from agcd.data.images import FOREIGN_SUFFIXES, IMAGE_SUFFIXES
from agcd.data.items import Item, clean_name, image_dataset
from agcd.data.layouts import TESTING, Layout, Parts, choices_of, find_layout, is_unlabelled, split_word
from agcd.data.reading import Choice, Choose, Reading, SourceOptions, take_first
from agcd.errors import DataError
from agcd.types import Dataset, Quarantined
from agcd.words import count, listed, printable

_IGNORED = frozenset({"__macosx", "thumbs.db", "desktop.ini"})
_CHILDREN = 4
"""Folders shown inside each folder of the tree; the rest is counted."""
_log = logging.getLogger(__name__)


def from_folder(root: Path | str) -> Dataset:
    """The images under ``root`` in the likeliest reading; only their headers are looked at."""
    return read_folder(Path(root), SourceOptions(look=False)).dataset


def read_folder(
    root: Path, options: SourceOptions, choose: Choose = take_first, found: Walked | None = None
) -> Reading:
    """The images under ``root``, labelled by their folders; rows are sorted by relative path.

    Hidden files are passed over, unusable ones are listed in ``quarantine``. Links to folders and whatever leads out
    of ``root`` are followed as ``options`` say. ``found`` is what ``walk`` gave, if it was asked before.
    """
    if not root.is_dir():
        raise DataError(f"There is no folder at {root}: a folder with one subfolder of images per class is expected.")
    found = found or walk(root, options)
    layout, doubts, tree = understand(root, found.files, options, choose)
    if found.n_other:
        _log.info("%s: %d files that are not images were passed over", root, found.n_other)
    expected = f"{root} holds no usable image: one subfolder of images per class is expected"
    items = [
        Item(root.joinpath(*parts), "/".join(parts), layout.label(parts), layout.is_test(parts))
        for parts in found.files
    ]
    name = root.resolve().name
    dataset = image_dataset(name, items, found.quarantine, otherwise=expected, look=options.look, skip=options.skip)
    return Reading(dataset, root, tree, doubts, class_level=layout.class_level)


def understand(
    root: Path, files: Sequence[Parts], options: SourceOptions, choose: Choose, noun: str = "picture"
) -> tuple[Layout, tuple[str, ...], tuple[str, ...]]:
    """The layout that is taken for ``files``, what was not sure about it, and how it is told."""
    layout, doubts = _decide(root, files, options, choose, noun)
    _refuse_twin_names(root, {layout.class_folder(parts) for parts in files})
    return layout, doubts, (*_summary(layout, files), *_tree(layout, files, noun))


def _decide(
    root: Path, files: Sequence[Parts], options: SourceOptions, choose: Choose, noun: str
) -> tuple[Layout, tuple[str, ...]]:
    """The layout that is taken, and what was not sure about it."""
    found = find_layout(files, options.class_level, noun)
    if not found.why:
        return found.layout, ()
    choices = choices_of(found, files, noun)
    doubts = tuple(_doubt(why, choices) for why in found.why)
    chosen = choose(root, doubts, choices)
    return Layout(chosen.class_level or 0, found.layout.split_level), doubts


def _doubt(why: str, choices: Sequence[Choice]) -> str:
    ways = [f"{choice.words} (--class-level {choice.class_level})" for choice in choices]
    return printable(f"{why}: {', or else '.join(ways)}.")


# ------------------------------------------------------------------------------------------------ finding files


@dataclass
class Walked:
    """Files of some suffixes under a root as tuples of path parts, in sorted order, and what was set aside."""

    root: Path
    options: SourceOptions
    suffixes: Set[str] = IMAGE_SUFFIXES
    foreign: Set[str] = FOREIGN_SUFFIXES
    """Suffixes that are worth a word."""
    files: list[Parts] = field(default_factory=list)
    lists: list[Parts] = field(default_factory=list)
    """Tables and JSON files, which may say something about the images."""
    quarantine: list[Quarantined] = field(default_factory=list)
    n_other: int = 0
    _linked: set[str] = field(default_factory=set)
    """Folders that were reached through a link, by their real paths: each is read once in this way."""

    def set_aside(self, parts: Parts, reason: str) -> None:
        shown = "/".join(parts).encode("utf-8", "backslashreplace").decode()
        self.quarantine.append(Quarantined(shown, reason))

    def visit(self) -> None:
        """Fill the lists; a loop over folders still to visit, since paths may be deeper than Python's stack."""
        todo: list[tuple[Parts, bool]] = [((), False)]
        while todo:
            parts, is_linked = todo.pop()
            for entry in self._entries(parts):
                here = (*parts, entry.name)
                if (reason := self._reason_to_refuse(entry)) is not None:
                    self.set_aside(here, reason)
                elif entry.is_dir(follow_symlinks=True):
                    linked = is_linked or entry.is_symlink()
                    if not linked or self._is_new(entry.path, here):
                        todo.append((here, linked))
                else:
                    self._take(here)
        self.files.sort(key="/".join)
        self.lists.sort()
        self.quarantine.sort(key=lambda q: q.path)

    def _take(self, here: Parts) -> None:
        suffix = Path(here[-1]).suffix.lower()
        if suffix in self.suffixes:
            self.files.append(here)
        elif suffix in (".csv", ".tsv", ".json", ".jsonl", ".parquet"):
            self.lists.append(here)
            self.n_other += 1
        else:
            self.n_other += 1

    def _is_new(self, path: str, here: Parts) -> bool:
        real = os.path.realpath(path)
        if real in self._linked:
            self.set_aside(here, "link to a folder that another link leads to")
            return False
        self._linked.add(real)
        return True

    def _entries(self, parts: Parts) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(self.root.joinpath(*parts)) as entries:
                found = [e for e in entries if not e.name.startswith(".") and e.name.casefold() not in _IGNORED]
        except OSError as error:
            self.set_aside(parts, f"folder cannot be read ({error.strerror or error})")
            return
        yield from sorted(found, key=lambda entry: entry.name)

    def _reason_to_refuse(self, entry: os.DirEntry[str]) -> str | None:
        try:
            entry.name.encode("utf-8")
        except UnicodeEncodeError:
            return "name is not valid UTF-8"
        if entry.is_symlink() and (reason := self._reason_against_link(entry)) is not None:
            return reason
        suffix = Path(entry.name).suffix.lower()
        return f"format {suffix} is not supported" if suffix in self.foreign and not entry.is_dir() else None

    def _reason_against_link(self, entry: os.DirEntry[str]) -> str | None:
        real = os.path.realpath(entry.path)
        is_folder, is_outside = os.path.isdir(real), not Path(real).is_relative_to(os.path.realpath(self.root))
        options = ["--follow-links"] * (is_folder and not self.options.follow_links)
        options += ["--allow-outside"] * (is_outside and not self.options.allow_outside)
        if options:
            what = "link that leads outside the data folder" if is_outside else "link to a folder"
            return f"{what}; {' '.join(options)} follows it"
        if not os.path.exists(real):
            return "link that leads nowhere"
        if is_folder and Path(os.path.realpath(os.path.dirname(entry.path))).is_relative_to(real):
            return "link that leads back to a folder around it"
        return None


def walk(
    root: Path,
    options: SourceOptions,
    suffixes: Set[str] = IMAGE_SUFFIXES,
    foreign: Set[str] = FOREIGN_SUFFIXES,
) -> Walked:
    """All that lies under ``root``."""
    found = Walked(root, options, suffixes, foreign)
    found.visit()
    return found


def _refuse_twin_names(root: Path, folders: set[Parts]) -> None:
    """Class folders that differ only in case or Unicode form are one class on some machines and two on others."""
    seen: dict[str, Parts] = {}
    for folder in sorted(folders - {()}):
        twin = seen.setdefault(clean_name(folder[-1]).casefold(), folder)
        if twin[-1] != folder[-1]:
            raise DataError(
                f"Two class folders in {root} have the same name up to case or Unicode form: "
                f"{'/'.join(twin)!a} and {'/'.join(folder)!a}; rename one or join them."
            )


# ------------------------------------------------------------------------------------------------ telling it


def _summary(layout: Layout, files: Sequence[Parts]) -> list[str]:
    """How the folders were read, in one line."""
    words = []
    if layout.split_level:
        tops = sorted({parts[layout.split_level - 1] for parts in files if len(parts) > layout.split_level})
        splits = [f"{top}/" for top in tops if split_word(top)]
        words.append(f"read {listed(splits)} as {'splits' if len(splits) > 1 else 'a split'}")
    if layout.class_level > 1:
        words.append(f"class folders lie {layout.class_level} deep")
    elif layout.class_level == 0:
        words.append("no folder names a class")
    return ["; ".join(words)] if words else []


def _tree(layout: Layout, files: Sequence[Parts], noun: str) -> list[str]:
    """The folders down to the classes with what each is taken for, a few of every kind."""
    depth = max(layout.class_level, layout.split_level, 1)
    n_files = Counter(parts[:-1][:end] for parts in files for end in range(min(depth, len(parts) - 1) + 1))
    n_loose = Counter(parts[:-1] for parts in files if len(parts) <= depth)
    inside: dict[Parts, list[Parts]] = {}
    for folder in sorted(n_files):
        if folder:
            inside.setdefault(folder[:-1], []).append(folder)
    lines: list[str] = []

    def tell(folder: Parts) -> None:
        indent = "  " * len(folder)
        children = inside.get(folder, [])
        shown = [child for child in children if not is_unlabelled(child[-1])][:_CHILDREN]
        shown += [child for child in children if is_unlabelled(child[-1])]
        if children and n_loose[folder]:
            lines.append(f"{indent}{count(n_loose[folder], noun)} beside the folders: no label")
        for child in shown:
            lines.append(printable(f"{indent}{child[-1]}/  {count(n_files[child], noun)}{_role(layout, child)}"))
            tell(child)
        if len(children) > len(shown):
            lines.append(f"{indent}and {count(len(children) - len(shown), 'more folder')}")

    tell(())
    return lines


def _role(layout: Layout, folder: Parts) -> str:
    """What a folder of the tree is taken for."""
    if is_unlabelled(folder[-1]):
        return ": no label"
    if len(folder) == layout.split_level and (word := split_word(folder[-1])):
        return ", for testing" if word in TESTING else ", for training"
    if len(folder) == layout.class_level:
        return ": a class" if layout.class_folder((*folder, "")) else ""
    return "" if layout.class_level else ": no label"
