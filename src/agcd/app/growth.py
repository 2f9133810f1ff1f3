"""Projects that grow: items are added, others are held out. Rows keep their numbers, labels and rounds stay.

New rows come after all others, in one transaction with the event that tells of them, so whoever follows the events
knows of every row that a label may name. Nothing is computed here: whoever trains or serves looks at new rows.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from agcd.app.create import read_source_options, read_source_path
from agcd.app.embeddings import add_embeddings
from agcd.app.image_paths import stored_path
from agcd.app.kinds import IMAGE
from agcd.app.labels import How, LabelView
from agcd.app.project import Project
from agcd.app.store.classes import clean_class_name, clean_text
from agcd.app.store.events import LabelEvent, new_uid
from agcd.data.embeddings import with_embeddings
from agcd.data.images import IMAGE_SUFFIXES
from agcd.data.items import Item, image_dataset
from agcd.data.reading import DEFAULT_OPTIONS, Choose, Reading, SourceOptions, refuse_doubt
from agcd.data.sources import read_source
from agcd.errors import DataError
from agcd.types import Dataset, IntArray, Quarantined
from agcd.words import count, noun_in_sources, printable

CHANGED = "it is not what was removed: give it another name"
_SHOWN = 5
"""Files of a kind that are told by name."""


@dataclass(frozen=True)
class Added:
    """What became of the items that were found."""

    n_new: int = 0
    """Rows that were added."""
    n_labelled: int = 0
    """How many of them their folder or list names."""
    n_test: int = 0
    new_classes: tuple[str, ...] = ()
    n_known: int = 0
    """Files that are rows already; they were not read again."""
    n_back: int = 0
    """Rows that were removed and are back."""
    n_named: int = 0
    """Rows without an answer, of which a copy was found that is named."""
    copies: tuple[tuple[str, str], ...] = ()
    """Files with the content of a row, which were not added, and the path of that row."""
    set_aside: tuple[Quarantined, ...] = ()
    tree: tuple[str, ...] = field(default=(), repr=False)
    """What was understood of the source, in words."""
    noun: str = "picture"

    def facts(self) -> dict[str, Any]:
        """All but the words."""
        return {name: value for name, value in vars(self).items() if name != "noun"}

    def lines(self) -> list[str]:
        """The same in words."""
        lines = [f"{count(self.n_new, self.noun)} added"]
        details = [(self.n_labelled, "labelled by their folder or list"), (self.n_test, "for testing")]
        lines[0] += "".join(f", {n} {words}" for n, words in details if n)
        if self.new_classes:
            lines.append(f"new classes: {', '.join(map(printable, self.new_classes))}")
        if self.n_known:
            lines.append(f"{self.n_known} were here already")
        if self.n_back:
            lines.append(f"{count(self.n_back, self.noun)} that had been removed brought back, with all that was said")
        if self.copies:
            copies = count(len(self.copies), noun_in_sources(self.noun))
            lines.append(f"{copies} not added, with the same content as a {self.noun} here")
            lines += _first(f"  {path} is {other}" for path, other in self.copies)
        if self.n_named:
            lines.append(f"  {self.n_named} of these {self.noun}s had no answer and got the name of the copy")
        if self.set_aside:
            lines.append(f"{count(len(self.set_aside), noun_in_sources(self.noun))} set aside")
            lines += _first(f"  {one.path}: {one.reason}" for one in self.set_aside)
        return lines


@dataclass(frozen=True)
class Removed:
    """Rows that are held out now."""

    n: int
    n_before: int
    """Rows that had been removed already."""
    noun: str = "picture"

    def facts(self) -> dict[str, Any]:
        """All but the words."""
        return {"n": self.n, "n_before": self.n_before}

    def lines(self) -> list[str]:
        """The same in words."""
        stay = "the files stay, and " if self.noun == "picture" else ""
        lines = [f"{count(self.n, self.noun)} removed; {stay}agcd undo brings them back"]
        return lines + ([f"{self.n_before} had been removed before"] if self.n_before else [])


def add_items(
    project: Project,
    sources: Sequence[Path] = (),
    options: SourceOptions = DEFAULT_OPTIONS,
    *,
    unlabelled: bool = False,
    choose: Choose = refuse_doubt,
    embeddings: Path | None = None,
) -> Added:
    """Take the items of ``sources`` that are not rows yet, by default those that are new where the project's are.

    What lies in the project's own folder of images is read as it was when the project was made; other folders, lists
    and archives by themselves, by ``options``; where one may be read in several ways, ``choose`` decides.
    ``unlabelled``: folders and lists give no labels. A picture that was removed comes back only where it is named.
    ``embeddings`` are those of all items of the one source, for a project that was made with some.
    """
    found = Added(noun=project.kind.noun)
    places = sources or (read_source_path(project.folder),)
    has_some = project.has_given_embeddings
    if has_some != (embeddings is not None) or (has_some and len(places) > 1):
        raise DataError(
            "This project was made with embeddings: give those of one source with --embeddings."
            if has_some
            else "This project was made without embeddings: its own features are computed, and none can be given."
        )
    for source in places:
        known = _Known(project, brings_back=bool(sources))
        new = _read(project, source, options, choose, known, embeddings)
        try:
            found = _joined(found, _take(project, new, known, unlabelled=unlabelled))
        except BaseException:
            if new.reading.unpacked is not None:
                shutil.rmtree(new.reading.unpacked, ignore_errors=True)
            raise
    return found


def remove_items(
    project: Project, paths: Sequence[str] = (), *, missing: bool = False, who: str = "me", uid: str | None = None
) -> Removed:
    """Hold rows out: files, or folders with all below them; with ``missing`` all whose file has gone.

    They are neither asked about, learned, shown nor exported any more; what was said of them is kept.
    """
    who, store = clean_text(who, "name of a person"), project.store
    with store.transaction():
        if uid is not None and store.knows(uid):
            return Removed(0, 0, project.kind.noun)
        view = project.labels()
        rows = np.unique(np.concatenate([_rows_of(project, path) for path in paths] + [np.empty(0, np.int64)]))
        if missing and project.kind.name == IMAGE:
            gone = [row for row in view.present_rows.tolist() if not project.picture_path(row).is_file()]
            rows = np.union1d(rows, np.array(gone, np.int64))
        fresh, group = rows[~view.is_removed[rows]], uid or new_uid()
        events = [LabelEvent("remove", who, "human", row, group=group) for row in fresh.tolist()]
        project.log.append(store, events)
    return Removed(len(fresh), len(rows) - len(fresh), project.kind.noun)


class _Known:
    """The rows of a project, by path and by content."""

    def __init__(self, project: Project, *, brings_back: bool) -> None:
        self.view, self.brings_back = project.labels(), brings_back
        self.paths, self.row_of = project.paths, {path: row for row, path in enumerate(project.paths)}
        self.row_of_key = {project.keys[row]: row for row in reversed(self.view.present_rows.tolist())}

    def is_here(self, stored: str) -> bool:
        """Whether a file is a row already and need not be read."""
        row = self.row_of.get(stored)
        return row is not None and not (self.brings_back and self.view.is_removed[row])


@dataclass(frozen=True)
class _Skip:
    """Leaves out what is a row already, and what lies elsewhere than ``below``; counts the former."""

    project: Project
    known: _Known
    below: Path | None
    here: list[str] = field(default_factory=list)

    def __call__(self, path: Path) -> bool:
        place = Path(os.path.abspath(path))
        if self.below is not None and not place.is_relative_to(self.below):
            return True
        stored = stored_path(place, self.project.images, self.project.folder)
        if self.known.is_here(stored):
            self.here.append(stored)
            return True
        return False


@dataclass(frozen=True)
class _Found:
    """What a source holds beside the rows that are here already."""

    reading: Reading
    n_here: int


def _read(
    project: Project, source: Path, options: SourceOptions, choose: Choose, known: _Known, embeddings: Path | None
) -> _Found:
    """Look at what is new in a source."""
    if project.kind.name != IMAGE:
        return _read_contents(project, source, options, choose, known, embeddings)
    place, own = Path(os.path.abspath(source)), read_source_path(project.folder)
    stored, images = read_source_options(project.folder), Path(os.path.abspath(project.images))
    is_inside = own.is_dir() and place.is_relative_to(images)
    skip = _Skip(project, known, place if is_inside else None)
    if not place.exists():
        raise DataError(f"There is nothing at {source}: a picture, a folder, a list or an archive is expected.")
    if is_inside or place == Path(os.path.abspath(own)):
        level = stored.class_level if options.class_level is None else options.class_level
        options = replace(stored, class_level=level, skip=skip)
        reading = read_source(images if is_inside else place, options, choose)
    elif place.is_file() and place.suffix.lower() in IMAGE_SUFFIXES:
        items = [Item(place, place.as_posix(), None)]
        dataset = image_dataset(place.name, items, otherwise=f"{source} is no usable image", look=True, skip=skip)
        reading = Reading(dataset, place.parent, (), ())
    else:
        reading = read_source(place, replace(options, unpack_to=stored.unpack_to, skip=skip), choose)
    return _Found(reading, len(skip.here))


def _read_contents(
    project: Project, source: Path, options: SourceOptions, choose: Choose, known: _Known, embeddings: Path | None
) -> _Found:
    """The same of texts and records: a row is known by its content, for lines of a table move."""
    stored = read_source_options(project.folder)
    level = stored.class_level if options.class_level is None else options.class_level
    options = replace(stored, class_level=level, allow_outside=stored.allow_outside or options.allow_outside)
    reading = project.kind.read(Path(os.path.abspath(source)), options, choose)
    dataset = reading.dataset
    where = list(dataset.where or ())
    if embeddings is not None:
        dataset = with_embeddings(dataset, embeddings, where)
    fresh, taken = [], set(known.row_of)
    for item, (place, key) in enumerate(zip(where, dataset.keys, strict=True)):
        row = known.row_of.get(place)
        is_same = row is not None and project.keys[row] == key
        if (is_same and known.is_here(place)) or (key in known.row_of_key and dataset.y_class[item] < 0):
            continue
        if not is_same and place in taken:
            where[item] = next(name for n in itertools.count(2) if (name := f"{place} ({n})") not in taken)
        taken.add(where[item])
        fresh.append(item)
    kept = replace(dataset, where=tuple(where)).only(np.array(fresh, np.int64))
    return _Found(replace(reading, dataset=kept), dataset.n_rows - kept.n_rows)


def _take(project: Project, found: _Found, known: _Known, *, unlabelled: bool) -> Added:
    """Make rows of what was found."""
    dataset, store = found.reading.dataset, project.store
    stored, contents = project.kind.places(dataset, project.images, project.folder), project.kind.contents(dataset)
    with store.transaction():
        view = project.labels()  # people may have answered since the source was read
        if view.n_rows != len(known.paths):
            raise DataError("Items were added by somebody else at the same moment: add these again.")
        new = _New(dataset, stored, known, view, project.keys)
        rows = np.concatenate([new.fresh[~dataset.is_test[new.fresh]], new.fresh[dataset.is_test[new.fresh]]])
        events = _Events(view, dataset, {} if unlabelled else _names(dataset), len(store.runs()))
        added, said = events.added(len(known.paths), rows), events.said(len(known.paths), rows, new.twin_of)
        said += [LabelEvent("void", "me", "human", payload={"target": event.uid}) for event in new.removals]
        if len(rows):
            held = [contents[i] for i in rows] if contents else ()
            store.add_rows([dataset.keys[i] for i in rows], [stored[i] for i in rows], dataset.is_test[rows], held)
            if dataset.x is not None:
                add_embeddings(project.folder, store, dataset.x[rows], len(known.paths))
            store.append(added)
        project.log.append(store, said)
        store.release(stored)
        store.add_quarantine(dataset.quarantine)
    set_aside = (*dataset.quarantine, *(Quarantined(stored[item], CHANGED) for item in new.changed))
    project.labels()  # follows the new rows
    labels = [event.row or 0 for event in said if event.kind == "label"]
    n_named = sum(row < len(known.paths) for row in labels)
    return Added(
        n_new=len(rows),
        n_labelled=len(labels) - n_named,
        n_test=int(dataset.is_test[rows].sum()),
        new_classes=tuple(event.payload["name"] for event in said if event.kind == "create"),
        n_known=found.n_here,
        n_back=len(new.removals),
        n_named=n_named,
        copies=tuple((stored[i], new.told_as[i]) for i in sorted(new.told_as)),
        set_aside=set_aside,
        tree=found.reading.tree,
        noun=project.kind.noun,
    )


class _New:
    """Which items of a source become rows, which are copies of one, and which bring one back."""

    def __init__(
        self, dataset: Dataset, stored: Sequence[str], known: _Known, view: LabelView, keys: Sequence[str]
    ) -> None:
        fresh: list[int] = []
        back: list[int] = []
        self.changed: list[int] = []
        """Items at the path of a removed row, with another content."""
        first_of: dict[str, int] = {}
        self.twin_of: dict[int, int] = {}
        """By item, the row with the same content."""
        self.told_as: dict[int, str] = {}
        """By item, the path of the row, or of the item, with the same content."""
        for item, key in enumerate(dataset.keys):
            row = known.row_of.get(stored[item])
            if row is not None:
                if keys[row] == key:
                    back.append(row)
                else:
                    self.changed.append(item)
            elif key in known.row_of_key:
                self.twin_of[item] = known.row_of_key[key]
                self.told_as[item] = known.paths[known.row_of_key[key]]
            elif key in first_of:
                self.told_as[item] = stored[first_of[key]]
            else:
                first_of[key] = item
                fresh.append(item)
        self.fresh: IntArray = np.array(fresh, np.int64)
        self.removals = view.removals(back)


def _names(dataset: Dataset) -> dict[int, str]:
    """The class of every item for training that has one, by item."""
    labelled = np.flatnonzero((dataset.y_class >= 0) & ~dataset.is_test)
    return {item: clean_class_name(dataset.classes[dataset.y_class[item]]) for item in labelled.tolist()}


@dataclass(frozen=True)
class _Events:
    """What is told of new rows: labels known from the start, as when the project was made."""

    view: LabelView
    dataset: Dataset
    names: dict[int, str]
    n_begun: int
    """Rounds that have begun: before the first training every class is known from the start, later ones are found."""

    def added(self, first: int, rows: IntArray) -> list[LabelEvent]:
        payload = {"first": first, "n": len(rows), "n_test": int(self.dataset.is_test[rows].sum())}
        return [LabelEvent("add", "", "seed", payload=payload)]

    def said(self, first: int, rows: IntArray, twin_of: dict[int, int]) -> list[LabelEvent]:
        """The classes that came with the items, and the labels of new rows and of those that a copy names."""
        row_of = {item: first + place for place, item in enumerate(rows.tolist())}
        row_of |= {item: row for item, row in twin_of.items() if _is_open(self.view, row)}
        ids: dict[str, str] = {}
        created, labels, group = [], [], new_uid()
        for item, row in row_of.items():
            if item not in self.names:
                continue
            name, known = self.names[item], self.view.registry.find(self.names[item])
            if known is not None and known.retired:
                continue  # it takes no more labels
            if known is None and name.casefold() not in ids:
                ids[name.casefold()] = new_uid()
                payload = {"name": name, "old": self.n_begun == 0}
                created.append(LabelEvent("create", "", "seed", class_id=ids[name.casefold()], payload=payload))
            class_id = ids[name.casefold()] if known is None else known.id
            labels.append(LabelEvent("label", "", "seed", row, class_id, round=self.n_begun, group=group))
        return created + labels


def _is_open(view: LabelView, row: int) -> bool:
    return not view.is_test[row] and bool(view.how(np.array([row]))[0] == How.NOTHING)


def _rows_of(project: Project, path: str) -> IntArray:
    """The rows of a file, or of a folder with all below it; as the project writes it, or where it lies."""
    for wanted in (path.rstrip("/"), stored_path(Path(path), project.images, project.folder)):
        found = [
            row
            for row, own in enumerate(project.paths)
            if own == wanted or own.startswith((f"{wanted}/", f"{wanted}:"))
        ]
        if found:
            return np.array(found, np.int64)
    raise DataError(
        f"{path!r} is no {project.kind.noun} of this project and no folder of any: agcd export lists their paths."
    )


def _joined(one: Added, other: Added) -> Added:
    """Both, added up."""
    names = [each.name for each in fields(Added) if each.name != "noun"]
    values = {name: getattr(one, name) + getattr(other, name) for name in names}  # numbers and tuples alike
    return Added(**values, noun=other.noun)


def _first(lines: Iterable[str]) -> list[str]:
    found = [printable(line) for line in lines]
    return found[:_SHOWN] + ([f"  and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else [])
