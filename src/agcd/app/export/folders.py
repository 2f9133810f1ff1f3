"""The items of a project in one folder per class: copies of pictures or links to them, beside the originals, which are
never touched, and a file of its own for every text or record.

``sorted.csv`` in the folder lists what was put there, and only what it lists is ever moved or removed. It is written
before the first file (with all that is about to be made) and after the last, so that a sort that was broken off is
finished by running it again.
"""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Literal, Protocol, get_args

import numpy as np
from filelock import FileLock, Timeout

from agcd.app.create import read_source_path
from agcd.app.export.safe_names import (
    FORBIDDEN,
    folded,
    folder_names,
    free_name,
    safe_file_name,
    safe_name,
    safe_place_name,
)
from agcd.app.image_paths import picture_path
from agcd.app.kinds import IMAGE, ItemKind, kind_named
from agcd.app.labels import How
from agcd.app.project import Project
from agcd.app.snapshot import NO_GROUP, SOURCES, Snapshot
from agcd.data.tables import read_table, write_table
from agcd.errors import ConfigError, DataError, did_you_mean
from agcd.io import storage_error
from agcd.words import count

Way = Literal["copy", "link", "symlink"]
"""How a picture comes into its folder: a copy, a hard link (one file under two names) or a symbolic link; of what is no
file a copy is made."""
Progress = Callable[[int, int], None]
"""Called with how many items are done, and how many there are."""
WAYS: tuple[Way, ...] = get_args(Way)
MANIFEST, UNNAMED, JUNK = "sorted.csv", "_unnamed", "_junk"
_HIDDEN = ".sorted."
"""How the names of our own passing files begin."""
_PART, _LOCK = f"{_HIDDEN}part", f"{_HIDDEN}lock"
_COLUMNS = ("file", "path", "class", "by", "certainty", "how")
_CLASS_BY = (SOURCES.index("human"), SOURCES.index("page"))
_EVERY = 20
"""Items between two words about the progress."""


@dataclass(frozen=True)
class Sorted:
    """What a sort made of the items."""

    out: Path
    n_classes: int = 0
    n_named: int = 0
    n_unnamed: int = 0
    n_junk: int = 0
    n_missing: int = 0
    """Items whose file is no longer where it was scanned."""
    n_copied: int = 0
    """Copied although links were wanted: the folder lies on another disk, or on one without links."""
    noun: str = "picture"
    """What an item is called."""

    def sentence(self) -> str:
        """All of it, and where it lies."""
        return self._told(f": {self.out}")

    def counted(self) -> str:
        """All of it but the place."""
        return self._told("")

    def _told(self, where: str) -> str:
        parts = [f"{count(self.n_named, self.noun)} in {count(self.n_classes, 'class')}"]
        parts += [f"{n:,} {words}" for n, words in ((self.n_unnamed, "without a name"), (self.n_junk, "junk")) if n]
        told = f"{', '.join(parts)}{where}."
        if self.n_copied:
            were = "was" if self.n_copied == 1 else "were"
            told += f" {count(self.n_copied, self.noun)} {were} copied, because no link can be made there."
        if self.n_missing:
            told += f" {count(self.n_missing, self.noun)} could not be found or read."
        return told


@dataclass(frozen=True)
class _Entry:
    """One line of the manifest: a file below the folder, where it comes from, and why it lies there.

    ``how`` is empty as long as the file may not be there, or may be one of another kind.
    """

    file: str
    path: str
    class_name: str = ""
    by: str = ""
    certainty: float | None = None
    how: str = ""


@dataclass(frozen=True)
class _Wanted:
    """An item and the folder that it belongs into."""

    path: str
    folder: str
    class_name: str
    by: str
    certainty: float


def sort_into_folders(
    project: Project,
    out: Path,
    how: Way = "copy",
    *,
    only_checked: bool = False,
    progress: Progress = lambda done, total: None,
) -> Sorted:
    """Put every usable item into ``out/<its class>/``, and bring what lies there from before up to date.

    Parameters
    ----------
    only_checked : only items of which a person said or accepted what they are
    """
    out = Path(os.path.abspath(out))
    _check_way(how, project.kind)
    _check_places(project, out)
    wanted = _wanted(project, _present_moment(project), only_checked)
    with _alone_in(out, project.kind):
        return replace(_Sorting(_originals(project), out, how).run(wanted, progress), noun=project.kind.noun)


def checked_way(how: str, kind: ItemKind | None = None) -> Way:
    """A way that somebody typed."""
    for way in WAYS:
        if how == way:
            return way
    nouns = (kind or kind_named(IMAGE)).nouns
    raise ConfigError(f"{nouns.capitalize()} cannot be sorted by {how!r}.{did_you_mean(how, WAYS)}")


def _check_way(how: Way, kind: ItemKind) -> None:
    if kind.file_ending and how != "copy":
        raise ConfigError(
            f"{kind.nouns.capitalize()} are no files that a link could lead to: sort them with --how copy."
        )


def _present_moment(project: Project) -> Snapshot:
    """The present names; what cache/ has lost is read from the last run, so that none loses its class."""
    return project.trained_snapshot() if project.n_finished else project.snapshot()


def _check_places(project: Project, out: Path) -> None:
    """Originals stay safe: neither folder lies in the other, and foreign files are not mixed with ours."""
    are_files, nouns = not project.kind.file_ending, project.kind.nouns
    source = project.images if are_files else read_source_path(project.folder)
    if are_files and not source.is_dir():
        raise DataError(f"There is no folder {source}: set 'images' in agcd.toml to its new place.")
    originals, place = source.resolve(), out.resolve()
    is_folder = are_files or source.is_dir()  # a table beside which our files lie takes no harm
    if is_folder and (place.is_relative_to(originals) or originals.is_relative_to(place)):
        raise DataError(f"{out} and the {nouns} in {source} lie in one another: choose another folder.")
    if out.exists() and not out.is_dir():
        raise DataError(f"{out} is a file: choose a folder.")
    is_empty = not out.exists() or all(found.name.startswith(_HIDDEN) for found in out.iterdir())
    if not is_empty and not (out / MANIFEST).is_file():
        raise DataError(f"{out} holds files that were not sorted into it: choose an empty or a new folder.")


@contextmanager
def _alone_in(out: Path, kind: ItemKind) -> Iterator[None]:
    """Two at once would take each other's files for foreign ones."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with FileLock(out / _LOCK, timeout=0):
            yield
    except Timeout:
        doing = f"{kind.nouns.capitalize()} are being sorted into {out} already"
        raise DataError(f"{doing}: wait until that is done.") from None
    except OSError as error:
        raise storage_error(out, error) from error


def _wanted(project: Project, snapshot: Snapshot, only_checked: bool) -> list[_Wanted]:
    """Every item with its folder, by row."""
    rows = snapshot.labels.present_rows
    says, certainty = snapshot.says(rows), snapshot.p_right(rows)
    is_junk = snapshot.labels.how(rows) == How.JUNK
    is_checked = np.isin(says.by, _CLASS_BY) & ~np.isin(rows, snapshot.labels.unseen)
    keep = is_checked | is_junk if only_checked else np.ones(len(rows), np.bool_)
    folders, names = _folders(snapshot), [*snapshot.names, ""]
    found = []
    for place in np.flatnonzero(keep).tolist():
        group, path = int(says.group[place]), project.paths[rows[place]]
        folder = JUNK if is_junk[place] else UNNAMED if group == NO_GROUP else folders[group]
        by = "human" if is_junk[place] else SOURCES[says.by[place]]
        found.append(_Wanted(path, folder, names[group], by, round(float(certainty[place]), 4)))
    return found


def _folders(snapshot: Snapshot) -> list[str]:
    """The folder of each group, by number: one per class, and inside of ``_unnamed`` one per group without a name."""
    n_classes = len(snapshot.labels.registry.infos)
    classes = folder_names(snapshot.names[:n_classes], (UNNAMED, JUNK, MANIFEST))
    return [*classes, *(f"{UNNAMED}/{safe_name(name)}" for name in snapshot.names[n_classes:])]


class _Originals(Protocol):
    """What is sorted, by the path of each item."""

    def name(self, path: str) -> tuple[str, str]:
        """The name of its file: what stands before the ending, and the ending."""
        ...

    def is_there(self, path: str) -> bool: ...

    def copy(self, path: str, part: Path) -> None: ...

    def link(self, path: str, part: Path, how: Way) -> bool:
        """Whether a link could be made."""
        ...


class _Files:
    """Pictures, which are files already."""

    def __init__(self, find: Callable[[str], Path]) -> None:
        self.find = find

    def name(self, path: str) -> tuple[str, str]:
        return safe_file_name(path)

    def is_there(self, path: str) -> bool:
        source = self.find(path)
        return source.is_file() and os.access(source, os.R_OK)

    def copy(self, path: str, part: Path) -> None:
        shutil.copy2(self.find(path), part)

    def link(self, path: str, part: Path, how: Way) -> bool:
        return _linked(self.find(path), part, how)


class _Contents:
    """Texts and records, whose files are made of what the project holds."""

    def __init__(self, kind: ItemKind, content_of: Mapping[str, str]) -> None:
        self.kind, self.content_of = kind, content_of

    def name(self, path: str) -> tuple[str, str]:
        return safe_place_name(path, self.kind.file_ending)

    def is_there(self, path: str) -> bool:
        return path in self.content_of

    def copy(self, path: str, part: Path) -> None:
        part.write_text(self.kind.as_file(self.content_of[path]), encoding="utf-8", errors="replace", newline="\n")

    def link(self, path: str, part: Path, how: Way) -> bool:
        return False


def _originals(project: Project) -> _Originals:
    if project.kind.file_ending:
        return _Contents(project.kind, dict(zip(project.paths, project.contents(), strict=False)))
    return _Files(partial(picture_path, images=project.images, folder=project.folder))


class _Sorting:
    """One sort into one folder."""

    def __init__(self, originals: _Originals, out: Path, how: Way) -> None:
        self.originals, self.out, self.how = originals, out, how
        self._sound: set[Path] = set()
        """Folders that were seen to lie in ``out``."""

    def run(self, wanted: Sequence[_Wanted], progress: Progress) -> Sorted:
        """Bring the folder from what the manifest lists to what is wanted."""
        (self.out / _PART).unlink(missing_ok=True)
        before = _read_manifest(self.out)
        planned = self._plan(wanted, before)
        places = {entry.file for entry in planned}
        stale = [entry for entries in before.values() for entry in entries if entry.file not in places]
        # A file that is about to become one of another kind may already be that when we are broken off.
        sure = [entry if entry.how == self.how else replace(entry, how="") for entry in planned]
        _write_manifest(self.out, [*sure, *stale])
        stale_of: defaultdict[str, list[_Entry]] = defaultdict(list)
        for entry in stale:
            stale_of[entry.path].append(entry)
        done: list[_Entry] = []
        for number, entry in enumerate(planned):
            if number % _EVERY == 0:
                progress(number, len(planned))
            done.append(self._put(entry, stale_of.pop(entry.path, [])))
        for rest in stale_of.values():
            self._remove(rest)
        made = [entry for entry in done if entry.how]
        _write_manifest(self.out, made)
        progress(len(planned), len(planned))
        return self._counted(made, len(done) - len(made))

    def _plan(self, wanted: Sequence[_Wanted], before: Mapping[str, Sequence[_Entry]]) -> list[_Entry]:
        """A place for every item: where it lies already, or one that neither we nor anybody else has taken."""
        listed = {folded(entry.file) for entries in before.values() for entry in entries}
        names = _TakenNames(self.out, listed, self.originals.name)
        planned = []
        for one in wanted:
            kept = _kept(one, before.get(one.path, ()))
            file = kept.file if kept else names.take(one, before.get(one.path, ()))
            how = kept.how if kept and self._is_there(kept) else ""
            planned.append(_Entry(file, one.path, one.class_name, one.by, one.certainty, how))
        return planned

    def _is_there(self, entry: _Entry) -> bool:
        return os.path.lexists(self.out / entry.file)

    def _put(self, entry: _Entry, stale: Sequence[_Entry]) -> _Entry:
        """Have an item where it belongs, and nowhere else; ``how`` says how it got there, and is empty if it could
        not."""
        if entry.how == self.how:
            self._remove(stale)
            return entry
        place, has_source = self.out / entry.file, self.originals.is_there(entry.path)
        # Without the original, whatever was made of it is worth keeping.
        fitting = [old for old in stale if self._is_there(old) and (old.how == self.how or not has_source)]
        if entry.how or not fitting:
            self._remove(stale)
            return replace(entry, how=self._make(entry, place) if has_source else entry.how)
        self._move(fitting[0], place)
        self._remove([old for old in stale if folded(old.file) != folded(entry.file)])
        return replace(entry, how=fitting[0].how)

    def _move(self, old: _Entry, place: Path) -> None:
        self._make_folder(place.parent)
        self._check_folder((self.out / old.file).parent)
        os.replace(self.out / old.file, place)
        _remove_empty((self.out / old.file).parent, self.out)

    def _make(self, entry: _Entry, place: Path) -> str:
        """Make one file, aside first: it is whole, or not there. Returns how it was made; ``entry`` says how one that
        is there was."""
        part, how = self.out / _PART, self.how
        self._make_folder(place.parent)
        try:
            if how == "copy" or not self.originals.link(entry.path, part, how):
                if entry.how == "copy":
                    return entry.how  # made when no link could be made either
                how = "copy"
                self.originals.copy(entry.path, part)
            os.replace(part, place)
        finally:
            part.unlink(missing_ok=True)  # also after a rename: between two names of one file it does nothing
        return how

    def _make_folder(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._check_folder(folder)

    def _check_folder(self, folder: Path) -> None:
        """A link in the place of a class folder could lead back to the originals."""
        if folder in self._sound:
            return
        if folder.resolve() != self.out.resolve() / folder.relative_to(self.out):
            raise DataError(f"{folder} is a link to another place: remove the link, and sort again.")
        self._sound.add(folder)

    def _remove(self, entries: Sequence[_Entry]) -> None:
        for entry in entries:
            file = self.out / entry.file
            if os.path.lexists(file):
                self._check_folder(file.parent)
                file.unlink()
                _remove_empty(file.parent, self.out)

    def _counted(self, made: Sequence[_Entry], n_missing: int) -> Sorted:
        tops = [entry.file.partition("/")[0] for entry in made]
        named = [top for top in tops if top not in (UNNAMED, JUNK)]
        n_copied = sum(entry.how != self.how for entry in made)
        return Sorted(self.out, len(set(named)), len(named), tops.count(UNNAMED), tops.count(JUNK), n_missing, n_copied)


class _TakenNames:
    """The names in each folder that a new file may not have."""

    def __init__(self, out: Path, listed: set[str], name: Callable[[str], tuple[str, str]]) -> None:
        self.out, self.name, self._names = out, name, defaultdict[str, set[str]](set)
        for file in listed:
            folder, _, own = file.rpartition("/")
            self._names[folder].add(own)
        self._looked_at: set[str] = set()

    def take(self, one: _Wanted, own: Sequence[_Entry]) -> str:
        """A free place for an item, which is then taken; where its ``own`` file lies does not stand in its way."""
        key = folded(one.folder)
        if one.folder not in self._looked_at:
            self._looked_at.add(one.folder)
            place = self.out / one.folder
            self._names[key].update(folded(found) for found in (os.listdir(place) if place.is_dir() else ()))
        ours = {folded(entry.file).removeprefix(f"{key}/") for entry in own}
        found = free_name(*self.name(one.path), self._names[key] - ours if ours else self._names[key])
        self._names[key].add(folded(found))
        return f"{one.folder}/{found}"


def _kept(one: _Wanted, entries: Sequence[_Entry]) -> _Entry | None:
    """Where an item lies in the right folder already."""
    return next((entry for entry in entries if entry.file.rpartition("/")[0] == one.folder), None)


def _linked(source: Path, part: Path, how: Way) -> bool:
    """Whether a link could be made: a hard one not to another disk, either not on every file system, and a symbolic
    one on Windows only by those who may."""
    try:
        if how == "symlink":
            os.symlink(os.path.abspath(source), part)
        else:
            os.link(os.path.realpath(source), part)
    except OSError:
        return False
    return True


def _remove_empty(folder: Path, out: Path) -> None:
    """A folder that we have emptied goes, and those above it; what somebody else put there keeps them."""
    while folder != out and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def _read_manifest(out: Path) -> dict[str, list[_Entry]]:
    """What was put into the folder before, by the path of the item."""
    found: defaultdict[str, list[_Entry]] = defaultdict(list)
    if (out / MANIFEST).is_file():
        for number, cells in read_table(out / MANIFEST, ("file", "path", "how")):
            parts = PurePosixPath(cells["file"]).parts
            # No name of ours holds what Windows takes for a drive or for a step into another folder.
            if len(parts) < 2 or parts[0] == "/" or ".." in parts or FORBIDDEN & set("".join(parts)):
                raise DataError(f"{out / MANIFEST}, line {number}: {cells['file']!r} is no file in a class folder.")
            found[cells["path"]].append(_Entry(cells["file"], cells["path"], how=cells["how"]))
    return found


def _write_manifest(out: Path, entries: Sequence[_Entry]) -> None:
    rows = [(e.file, e.path, e.class_name, e.by, e.certainty, e.how) for e in entries]
    write_table(out / MANIFEST, {name: [row[i] for row in rows] for i, name in enumerate(_COLUMNS)})
