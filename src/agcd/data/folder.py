"""A folder of images as a data set: one subfolder per class.

Two layouts are read: ``root/<class>/…`` and ``root/{train,val,test}/<class>/…`` (``val`` joins ``train``).
Images in a folder called ``unlabelled`` beside the classes, or beside no folder at all, have no label.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agcd.data.images import FOREIGN_SUFFIXES, IMAGE_SUFFIXES
from agcd.data.items import Item, clean_name, image_dataset
from agcd.errors import DataError
from agcd.types import Dataset, Quarantined

UNLABELLED_FOLDERS = frozenset({"unlabelled", "unlabeled", "_unlabelled", "_unlabeled"})
PARTS = frozenset({"train", "val", "test"})
_IGNORED = frozenset({"__macosx", "thumbs.db", "desktop.ini"})
_log = logging.getLogger(__name__)


def from_folder(root: Path | str) -> Dataset:
    """The images under ``root``, labelled by their folder; rows are sorted by relative path.

    Hidden files are passed over, unusable ones are listed in ``quarantine``. Links to folders are not followed,
    links to files only within ``root``.
    """
    root = Path(root)
    if not root.is_dir():
        raise DataError(f"There is no folder at {root}: a folder with one subfolder of images per class is expected.")
    found = _Found(root)
    found.walk()
    in_parts = _has_parts(root, found.files)
    _refuse_twin_names(root, {_class_folder(parts, in_parts) for parts in found.files})
    if found.n_other:
        _log.info("%s: %d files that are not images were passed over", root, found.n_other)
    expected = f"{root} holds no usable image: one subfolder of images per class is expected"
    items = [_item(root, parts, in_parts) for parts in found.files]
    return image_dataset(root.resolve().name, items, found.quarantine, otherwise=expected)


@dataclass
class _Found:
    """Image files under a root as tuples of path parts, in sorted order, and what was set aside."""

    root: Path
    files: list[tuple[str, ...]] = field(default_factory=list)
    quarantine: list[Quarantined] = field(default_factory=list)
    n_other: int = 0

    def walk(self) -> None:
        """Fill the lists; a loop over folders still to visit, since paths may be deeper than Python's stack."""
        real_root = os.path.realpath(self.root)
        todo: list[tuple[str, ...]] = [()]
        while todo:
            parts = todo.pop()
            for entry in self._entries(parts):
                here = (*parts, entry.name)
                reason = _reason_to_refuse(entry, real_root)
                if reason is not None:
                    self.set_aside(here, reason)
                elif entry.is_dir(follow_symlinks=False):
                    todo.append(here)
                elif Path(entry.name).suffix.lower() in IMAGE_SUFFIXES:
                    self.files.append(here)
                else:
                    self.n_other += 1
        self.files.sort(key="/".join)
        self.quarantine.sort(key=lambda q: q.path)

    def _entries(self, parts: tuple[str, ...]) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(self.root.joinpath(*parts)) as entries:
                yield from (e for e in entries if not e.name.startswith(".") and e.name.casefold() not in _IGNORED)
        except OSError as error:
            self.set_aside(parts, f"folder cannot be read ({error.strerror or error})")

    def set_aside(self, parts: tuple[str, ...], reason: str) -> None:
        shown = "/".join(parts).encode("utf-8", "backslashreplace").decode()
        self.quarantine.append(Quarantined(shown, reason))


def _reason_to_refuse(entry: os.DirEntry[str], real_root: str) -> str | None:
    try:
        entry.name.encode("utf-8")
    except UnicodeEncodeError:
        return "name is not valid UTF-8"
    suffix = Path(entry.name).suffix.lower()
    if entry.is_symlink():
        real = os.path.realpath(entry.path)
        if not Path(real).is_relative_to(real_root):
            return "link that leads outside the data folder"
        if not os.path.exists(real):
            return "link that leads nowhere"
        if os.path.isdir(real):
            return "link to a folder (not followed)"
    if suffix in FOREIGN_SUFFIXES and not entry.is_dir():
        return f"format {suffix} is not supported"
    return None


def _has_parts(root: Path, files: list[tuple[str, ...]]) -> bool:
    """Whether the first level is train/test; a lone ``train`` beside other folders is a class of vehicles."""
    tops = {parts[0] for parts in files if len(parts) > 1 and not _is_unlabelled(parts[0])}
    parts = {top for top in tops if top.casefold() in PARTS}
    folded = {part.casefold() for part in parts}
    if "train" in folded and "test" in folded and tops != parts:
        raise DataError(
            f"{root} has train and test folders beside {sorted(tops - parts)[0]!r}: "
            "keep class folders either inside train and test or without them."
        )
    return "train" in folded and tops == parts


def _item(root: Path, parts: tuple[str, ...], in_parts: bool) -> Item:
    folder = _class_folder(parts, in_parts)
    is_test = in_parts and len(parts) > 1 and parts[0].casefold() == "test"
    return Item(root.joinpath(*parts), "/".join(parts), clean_name(folder[-1]) if folder else None, is_test)


def _class_folder(parts: tuple[str, ...], in_parts: bool) -> tuple[str, ...]:
    """The path of the folder that names the class; () for a file beside class folders or in ``unlabelled``."""
    depth = 2 if in_parts and parts[0].casefold() in PARTS else 1
    folder = parts[:-1][:depth]
    return () if len(folder) < depth or _is_unlabelled(folder[-1]) else folder


def _is_unlabelled(name: str) -> bool:
    return name.casefold() in UNLABELLED_FOLDERS


def _refuse_twin_names(root: Path, folders: set[tuple[str, ...]]) -> None:
    """Class folders that differ only in case or Unicode form are one class on some machines and two on others."""
    seen: dict[str, tuple[str, ...]] = {}
    for folder in sorted(folders - {()}):
        twin = seen.setdefault(clean_name(folder[-1]).casefold(), folder)
        if twin[-1] != folder[-1]:
            raise DataError(
                f"Two class folders in {root} have the same name up to case or Unicode form: "
                f"{'/'.join(twin)!a} and {'/'.join(folder)!a}; rename one or join them."
            )
