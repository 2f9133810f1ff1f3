"""A list of image files, whatever it was written in, as a data set: lines with a path, a label and a split."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from agcd.data.columns import SECOND, as_text
from agcd.data.items import Item, clean_name, image_dataset
from agcd.data.layouts import TESTING, is_companion, split_word
from agcd.data.missing import is_missing
from agcd.data.reading import Choice, Choose, Reading, SourceOptions, take_first
from agcd.errors import DataError
from agcd.types import Quarantined
from agcd.words import count, listed, printable

MISSING = "there is no such file"
_WHAT = {"path": "files", "label": "classes", "split": "splits"}
_RENAME = "rename the other one if it is meant"
_SHOWN = 5
_SAMPLE, _FOLDERS = 50, 200
"""Lines by which the folder of the pictures is found, and folders that are tried."""


@dataclass(frozen=True)
class Line:
    """One line of a list, as text; empty means not given."""

    number: int
    path: str
    label: str = ""
    split: str = ""
    second: str = ""


@dataclass
class Listing:
    """What a list says: its lines, what it names that cannot be used, and what to tell about it."""

    lines: list[Line]
    quarantine: list[Quarantined] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    labels: tuple[str, ...] = ()
    """How the columns are called that may name the classes, where there are several."""


def line_of(number: int, cells: Mapping[str, Any]) -> Line:
    """A line from cells under the standard names of their columns."""
    path, label, split, second = (as_text(cells.get(name)) for name in ("path", "label", "split", SECOND))
    return Line(number, path, label.strip(), split.strip(), second.strip())


def label_of(line: Line) -> str | None:
    """The class that a line names, or None."""
    return None if is_missing(line.label) else clean_name(line.label)


def is_for_testing(source: Path, line: Line) -> bool:
    """Whether the split of a line is for testing; a split of another name is refused."""
    if not line.split:
        return False
    if (word := split_word(line.split)) is None:
        raise bad_line(source, line, f"split is {line.split!r}; 'train', 'val', 'test' or nothing is expected")
    return word in TESTING


def bad_line(source: Path, line: Line, sentence: str) -> DataError:
    return DataError(f"{source}, line {line.number}: {sentence}.")


def listing_of(
    columns: Sequence[str], names: Sequence[str], lines: list[Line], what: Mapping[str, str] = _WHAT
) -> Listing:
    """Lines of a table whose ``columns`` got the standard ``names``; ``what`` says what those are read for."""
    pairs = list(zip(columns, names, strict=True))
    told = [f"{column!r} for the {what[name]}" for column, name in pairs if name in what]
    labels = [column for want in ("label", SECOND) for column, name in pairs if name == want]
    notes = [f"read the {'columns' if len(told) > 1 else 'column'} {listed(told)}"]
    unread = [repr(column) for column, name in pairs if name not in (*what, SECOND)]
    if unread and not labels:
        were = "was" if len(unread) == 1 else "were"
        notes.append(f"no column of classes was found; {listed(unread[:_SHOWN])} {were} not read")
    return Listing(lines, notes=notes, labels=tuple(labels))


def read_listing(
    source: Path, listing: Listing, options: SourceOptions, choose: Choose = take_first, base: Path | None = None
) -> Reading:
    """The images of a list in its order.

    Relative paths start at ``base``, else at the list's folder, else at a folder beside it that has them. An empty
    label (or −1) means unlabelled, an empty split train. What is not there is set aside; what leads out of the folder
    is refused unless ``allow_outside``.
    """
    lines, doubts = with_one_label(source, listing, choose)
    notes = [f"{source.name}: {count(len(lines), 'picture')} listed", *listing.notes]
    folder = base or _folder_of(source, lines)
    if base is None and folder != source.parent:
        notes.append(f"paths start at {os.path.relpath(folder, source.parent)}/")
    root = folder if base or not folder.is_relative_to(source.parent) else source.parent
    places = _Places(source, folder, root, options.allow_outside)
    for line in lines:
        places.add(line)
    if places.missing and not places.items:
        raise DataError(
            f"{source} lists {len(places.missing)} paths that do not exist, the first is {places.missing[0]!r}; "
            f"paths start at {folder}."
        )
    refused = [*listing.quarantine, *places.strays, *(Quarantined(path, MISSING) for path in places.missing)]
    otherwise = f"{source} lists no usable image"
    dataset = image_dataset(
        source.stem, places.items.values(), refused, otherwise=otherwise, look=options.look, skip=options.skip
    )
    return Reading(dataset, root, tuple(map(printable, notes)), tuple(doubts))


def with_one_label(
    source: Path, listing: Listing, choose: Choose, remedy: str = _RENAME
) -> tuple[list[Line], list[str]]:
    """The lines with the one label that is meant; names stand beside their numbers often, and win.

    Two columns that say different things are a doubt: the likelier is taken, unless ``choose`` refuses it.
    """
    lines = listing.lines
    pairs = {(line.label, line.second) for line in lines if line.label and line.second}
    if len(listing.labels) < 2 or not pairs:
        return lines, []
    first, second = ({pair[i] for pair in pairs} for i in (0, 1))
    if len(pairs) > max(len(first), len(second)) or len(first) != len(second):
        one, other = listing.labels[:2]
        doubts = [
            f"The columns {one!r} and {other!r} of {source.name} say different things: {one!r} names the classes; "
            f"{remedy}."
        ]
        choose(source, doubts, [Choice(f"a list whose classes are in the column {one!r}")])
        return lines, doubts
    if all(map(_is_number, first)) and not all(map(_is_number, second)):
        listing.notes[0] = listing.notes[0].replace(f"{listing.labels[0]!r} for", f"{listing.labels[1]!r} for")
        return [replace(line, label=line.second or line.label) for line in lines], []
    return lines, []


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdigit()


def _folder_of(source: Path, lines: Sequence[Line]) -> Path:
    """The folder at which the paths of ``lines`` start: the one in which most of the first few are."""
    sample = [line.path for line in lines[:_SAMPLE] if line.path and "\0" not in line.path]
    homes = [source.parent]
    if is_companion(source.parent.name):  # annotations/ stands beside the pictures
        homes.append(source.parent.parent)
    tried = [place for home in homes for place in (home, *_folders_in(home))]
    found = {place: sum(_located(place, path) is not None for path in sample) for place in tried}
    best = max(found, key=lambda place: found[place], default=source.parent)
    return source.parent if found.get(source.parent) or not found.get(best) else best


def _folders_in(home: Path) -> list[Path]:
    try:
        with os.scandir(home) as entries:
            inside = (entry.name for entry in entries if entry.is_dir(follow_symlinks=False) and entry.name[0] != ".")
            return [home / name for name in sorted(islice(inside, _FOLDERS))]
    except OSError:
        return []


def _located(folder: Path, path: str) -> str | None:
    """Where ``path`` lies below ``folder``; with its slashes turned where it is a path of Windows."""
    for spelling in dict.fromkeys((path, path.replace("\\", "/"))):
        written = os.path.normpath(os.path.join(folder, spelling))
        if os.path.lexists(written):
            return written
    return None


@dataclass
class _Places:
    """Finds the file of every line."""

    source: Path
    folder: Path
    root: Path
    allow_outside: bool
    items: dict[str, Item] = field(default_factory=dict)
    """By the real path of the file."""
    strays: list[Quarantined] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def add(self, line: Line) -> None:
        if not line.path or "\0" in line.path:
            raise self._error(line, f"the path is {line.path!r}; the path of an image is expected")
        written = _located(self.folder, line.path)
        self._refuse_outside(line, written or os.path.normpath(os.path.join(self.folder, line.path)))
        real = os.path.realpath(written) if written else ""
        if written is None or not os.path.exists(real):
            self.missing.append(line.path)
        elif not self.allow_outside and not Path(real).is_relative_to(os.path.realpath(self.root)):
            reason = "link that leads outside the manifest's folder; --allow-outside follows it"
            self.strays.append(Quarantined(line.path, reason))
        else:
            self._take(line, real, Item(Path(written), line.path, label_of(line), is_for_testing(self.source, line)))

    def _refuse_outside(self, line: Line, written: str) -> None:
        root = os.path.abspath(self.root)
        inside = Path(os.path.abspath(written)).is_relative_to(root) or Path(written).is_relative_to(
            os.path.realpath(root)
        )
        if not self.allow_outside and not inside:
            raise self._error(line, f"{line.path!r} lies outside the manifest's folder; --allow-outside takes it")

    def _take(self, line: Line, real: str, item: Item) -> None:
        """A file that is listed twice is a slip, or a contradiction."""
        known = self.items.setdefault(real, item)
        if known is item:
            return
        said = [f"{i.label!r} for {'test' if i.is_test else 'train'}" for i in (known, item)]
        how = "" if said[0] == said[1] else f", as {said[0]} and as {said[1]}"
        raise self._error(line, f"{item.shown!r} is listed twice{how}; once is expected")

    def _error(self, line: Line, sentence: str) -> DataError:
        return bad_line(self.source, line, sentence)
