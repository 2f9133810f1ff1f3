"""Strings made safe to show, and numbers as a person reads them."""

from __future__ import annotations

import math
import os
import re
import shlex
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import TypeGuard

MISSING = "–"
JOINERS = "\u200c\u200d"
"""Invisible, but Persian words and many emoji need them; other format characters could reorder the page."""


def clean(text: str) -> str:
    """``text`` without control characters, direction overrides and broken surrogates; spaces are kept."""
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(" " if _is_hidden(char) else char for char in whole)


def _is_hidden(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp") and char not in JOINERS


def printable(text: str, keep: str = "") -> str:
    """``text`` with control characters, direction overrides and broken surrogates written as escapes (``\\x1b``).

    A terminal would obey them: a file name must neither set its title nor move the cursor nor start a line.
    """
    return "".join(char if char in keep or not _is_unprintable(char) else _escape(char) for char in text)


def _is_unprintable(char: str) -> bool:
    return not char.isprintable() and (_is_hidden(char) or unicodedata.category(char) == "Cs")


def _escape(char: str) -> str:
    if "\udc80" <= char <= "\udcff":  # a byte of a name that is not UTF-8
        return f"\\x{ord(char) - 0xDC00:02x}"
    return ascii(char)[1:-1]


def shown(text: str, width: int = 60) -> str:
    """``text`` on one line of at most ``width`` columns (East Asian letters take two), or "(no name)"."""
    line = " ".join(clean(text).split())
    taken = 0
    for i, char in enumerate(line):
        taken += 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if taken > width - (i < len(line) - 1):
            return line[:i].rstrip() + "…"
    return line or "(no name)"


def listed(words: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def typed(text: str | Path, *, windows: bool = os.name == "nt") -> str:
    """``text`` as one word of a command that is shown to be typed: Windows knows double quotes only."""
    if not windows:
        return shlex.quote(str(text))
    return str(text) if re.fullmatch(r"[\w:\\/.-]+", str(text)) else f'"{text}"'


def is_known(value: float | None) -> TypeGuard[float]:
    """Whether there is a figure at all: neither None nor NaN."""
    return value is not None and math.isfinite(value)


def percent(value: float | None) -> str:
    """0.8123 → "81.2 %"."""
    return f"{100 * value:.1f}\u00a0%" if is_known(value) else MISSING


def rough_percent(value: float) -> str:
    """0.8312 → "83 %", for figures that are only about right."""
    return f"{100 * value:.0f}\u00a0%"


def interval(low: float, high: float) -> str:
    """0.664, 0.927 → "66–93 %"."""
    return f"{100 * low:.0f}–{100 * high:.0f}\u00a0%"


def whole(value: int | None) -> str:
    return MISSING if value is None else f"{value:,}"


def points(before: float, after: float) -> str:
    """The change of a share in percentage points, with its sign."""
    change = round(100 * (after - before), 1)
    return "no change" if change == 0 else f"{change:+.1f} points".replace("-", "−")


def decimal(value: float | None) -> str:
    return f"{value:.2f}" if is_known(value) else MISSING


def noun_in_sources(noun: str) -> str:
    """What a source holds of rows that are called ``noun``: of pictures, files."""
    return "file" if noun == "picture" else noun


def count(n: int, noun: str) -> str:
    """1 → "1 class", 1200 → "1,200 classes"."""
    ending = "" if n == 1 else "es" if noun.endswith("s") else "s"
    return f"{n:,} {noun}{ending}"
