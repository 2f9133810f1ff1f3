"""Image files that a source found, made into a ``Dataset``: the one door for folders and manifests."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agcd.data.images import ImageError, probe, read_file
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
) -> Dataset:
    """The usable items as rows, in the order given; the others join ``quarantine`` with their reason.

    Classes are ``classes`` if given, in that order, and else those of usable items, sorted by name. No usable item
    at all is a ``DataError`` that says ``otherwise``.
    """
    kept: list[Item] = []
    keys: list[str] = []
    refused = list(quarantine)
    for item in items:
        try:
            keys.append(_content_key(item.path))
            kept.append(item)
        except ImageError as error:
            refused.append(Quarantined(item.shown, error.reason))
    if not kept:
        why = [printable(f"{q.path}: {q.reason}") for q in refused[:1]]
        some = f"; of {len(refused)} unusable ones the first is {why[0]}" if why else ""
        raise DataError(f"{otherwise}{some}.")
    found = sorted({item.label for item in kept if item.label is not None})
    names = tuple(found if classes is None else classes)
    number = {label: i for i, label in enumerate(names)}
    y_class = [UNLABELLED if item.label is None else number[item.label] for item in kept]
    return Dataset(
        name=name,
        classes=names,
        y_class=np.array(y_class, dtype=np.int64),
        is_test=np.array([item.is_test for item in kept], dtype=np.bool_),
        keys=tuple(keys),
        paths=tuple(item.path for item in kept),
        quarantine=tuple(refused),
    )


def _content_key(path: Path) -> str:
    content = read_file(path)
    reason = probe(content)
    if reason is not None:
        raise ImageError(reason, path)
    return digest_bytes(content)
