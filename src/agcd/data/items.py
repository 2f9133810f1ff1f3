"""Image files that a source found, made into a ``Dataset``: the one door for folders and manifests."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agcd.data.images import ImageError, probe, read_file
from agcd.data.looks import Look, as_arrays, look_at_all
from agcd.errors import DataError
from agcd.io import digest_bytes
from agcd.types import UNLABELLED, Dataset, Quarantined
from agcd.words import printable


@dataclass(frozen=True)
class Item:
    """One image file as a source lists it; ``shown`` is how its path is written in reports."""

    path: Path
    shown: str
    label: str | None
    is_test: bool = False


def clean_name(name: str) -> str:
    """A class name in Unicode's composed form, so that names that look the same are the same."""
    return unicodedata.normalize("NFC", name)


def image_dataset(
    name: str,
    items: Iterable[Item],
    quarantine: Iterable[Quarantined] = (),
    *,
    otherwise: str,
    classes: Sequence[str] | None = None,
    look: bool = False,
    skip: Callable[[Path], bool] | None = None,
) -> Dataset:
    """The usable items as rows, in the order given; the others join ``quarantine`` with their reason.

    Classes are ``classes`` if given, in that order, and else those of usable items, sorted by name. No usable item
    at all is a ``DataError`` that says ``otherwise``, unless ``skip`` leaves some out. With ``look`` every picture is
    decoded once, else only its header is read.
    """
    listed, refused = [item for item in items if skip is None or not skip(item.path)], list(quarantine)
    paths = [item.path for item in listed]
    found = look_at_all(paths) if look else map(_content_key, paths)
    kept: list[tuple[Item, str | Look]] = []
    for item, seen in zip(listed, found, strict=True):
        if isinstance(seen, ImageError):
            refused.append(Quarantined(item.shown, seen.reason))
        else:
            kept.append((item, seen))
    if not kept and skip is None:
        raise nothing_usable(otherwise, refused)
    names = tuple(sorted({item.label for item, _ in kept if item.label is not None}) if classes is None else classes)
    number = {label: i for i, label in enumerate(names)}
    y_class = [UNLABELLED if item.label is None else number[item.label] for item, _ in kept]
    looks = [seen for _, seen in kept if isinstance(seen, Look)]
    return Dataset(
        name=name,
        classes=names,
        y_class=np.array(y_class, dtype=np.int64),
        is_test=np.array([item.is_test for item, _ in kept], dtype=np.bool_),
        keys=tuple(seen.key if isinstance(seen, Look) else seen for _, seen in kept),
        paths=tuple(item.path for item, _ in kept),
        quarantine=tuple(refused),
        looks=as_arrays(looks) if look else None,
    )


def nothing_usable(otherwise: str, refused: Sequence[Quarantined]) -> DataError:
    """The error where a source holds no usable item: it says ``otherwise``, and why the first was refused."""
    why = [printable(f"{q.path}: {q.reason}") for q in refused[:1]]
    some = f"; of {len(refused)} unusable ones the first is {why[0]}" if why else ""
    return DataError(f"{otherwise}{some}.")


def _content_key(path: Path) -> str | ImageError:
    try:
        content = read_file(path)
    except ImageError as error:
        return error
    reason = probe(content)
    return digest_bytes(content) if reason is None else ImageError(reason, path)
