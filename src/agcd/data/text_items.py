"""Texts that a source found, made into a ``Dataset``: each cleaned, or set aside with a reason."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from agcd.data.arrays import number_labels
from agcd.data.items import nothing_usable
from agcd.io import digest_bytes
from agcd.types import UNLABELLED, Dataset, Quarantined
from agcd.words import JOINERS, clean

MAX_CHARS = 20_000
"""Of one text: some forty times of what sentence encoders read."""
EMPTY = "empty: there is nothing to read"
BINARY = "binary data, no text"
_LONGEST_WORD = 1000
"""Characters that are given up so that a text ends with a whole word; Chinese has no spaces to end at."""
_LINE_BREAK = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
_NO_BREAK = re.compile("[^\t\n]+")
_CONTROL = re.compile("[\x01-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_LAST_SPACE = re.compile(r"\s\S*$")


@dataclass(frozen=True)
class TextItem:
    """One text as a source gives it, and where that is."""

    where: str
    text: str
    label: str | None = None
    is_test: bool = False


def clean_text(text: str) -> tuple[str, bool]:
    """``text`` as it is read and shown, and whether it was shortened.

    Line breaks of every kind become ``\\n``; other control characters, direction overrides and their like become
    spaces, halves of characters become U+FFFD. The rest is in Unicode's composed form, without space at its ends, and
    cut at a word where it is longer than ``MAX_CHARS``.
    """
    start = text.lstrip()[: 4 * MAX_CHARS]  # composing makes a text shorter, but not by so much
    whole = unicodedata.normalize("NFC", _without_hidden(start)).strip()
    short = _shortened(whole)
    return short, len(short) < len(whole) or len(text.strip()) > 4 * MAX_CHARS


def reason_against(text: str, cleaned: str) -> str | None:
    """Why a text cannot be used, by what was given and what ``clean_text`` made of it."""
    sample = text[:MAX_CHARS]
    if "\0" in text or 2 * len(_CONTROL.findall(sample)) > len(sample):
        return BINARY
    return None if cleaned.strip(JOINERS) else EMPTY


def text_dataset(
    name: str, items: Iterable[TextItem], quarantine: Iterable[Quarantined] = (), *, otherwise: str
) -> tuple[Dataset, int]:
    """The usable texts as rows, in the order given, and how many were shortened; the others join ``quarantine``.

    Classes are those of usable texts, sorted by name. No usable text at all is a ``DataError`` that says
    ``otherwise``.
    """
    refused, kept, texts = list(quarantine), [], []
    n_shortened = 0
    for item in items:
        text, is_shortened = clean_text(item.text)
        if (reason := reason_against(item.text, text)) is not None:
            refused.append(Quarantined(item.where, reason))
            continue
        kept.append(item)
        texts.append(text)
        n_shortened += is_shortened
    if not kept:
        raise nothing_usable(otherwise, refused)
    classes, y_class = number_labels([UNLABELLED if item.label is None else item.label for item in kept], None)
    dataset = Dataset(
        name=name,
        classes=classes,
        y_class=y_class,
        is_test=np.array([item.is_test for item in kept], dtype=np.bool_),
        keys=text_keys(texts),
        quarantine=tuple(refused),
        texts=tuple(texts),
        where=tuple(item.where for item in kept),
    )
    return dataset, n_shortened


def text_keys(texts: Sequence[str]) -> tuple[str, ...]:
    """The content keys of clean texts: equal texts share one."""
    return tuple(digest_bytes(text.encode()) for text in texts)


def _without_hidden(text: str) -> str:
    if text.replace("\n", " ").replace("\t", " ").isprintable():  # nearly all, and a hundred times as fast
        return text
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _NO_BREAK.sub(lambda run: clean(run[0]), _LINE_BREAK.sub("\n", whole))


def _shortened(text: str) -> str:
    if len(text) <= MAX_CHARS:
        return text
    space = _LAST_SPACE.search(text, MAX_CHARS - _LONGEST_WORD, MAX_CHARS + 1)
    return text[: space.start() if space else MAX_CHARS].rstrip()
