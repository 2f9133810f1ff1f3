"""Names that every file system takes: those of classes become folders, those of pictures stay files."""

from __future__ import annotations

import unicodedata
from collections.abc import Container, Iterable
from pathlib import PurePath

from agcd.words import clean

FORBIDDEN = frozenset('<>:"/\\|?*')
"""A slash anywhere; the others on Windows and on sticks."""
_RESERVED = frozenset(
    {"con", "conin$", "conout$", "prn", "aux", "nul"}
    | {f"{port}{n}" for port in ("com", "lpt") for n in "0123456789¹²³"}
)
"""Devices on Windows, whatever stands behind the first dot."""
_MAX_BYTES = 150
"""File systems take 255: room for an ending and a number."""
_MAX_ENDING = 12
"""Characters; what is longer is part of a name with a dot in it."""


def safe_name(text: str) -> str:
    """``text`` as the name of a file or folder: never empty, hidden, reserved or too long, and nothing of a path."""
    plain = unicodedata.normalize("NFC", clean(text))
    name = "".join("_" if char in FORBIDDEN else char for char in plain).strip()
    if name.startswith("."):
        name = "_" + name[1:]
    name = _cut(name).rstrip(". ")  # Windows drops these in silence
    if name.partition(".")[0].rstrip().casefold() in _RESERVED:
        name = "_" + name
    return name or "_"


def safe_file_name(path: str) -> tuple[str, str]:
    """The last part of a path, made safe: what stands before its ending, and the ending."""
    name = PurePath(path).name
    ending = PurePath(name).suffix
    if len(ending) > _MAX_ENDING:
        ending = ""
    return safe_name(name.removesuffix(ending)), safe_name(f"x{ending}")[1:]


def safe_place_name(place: str, ending: str) -> tuple[str, str]:
    """The name of a file that is made of what is at ``place``: a file keeps its own, anything else (an id, a line of a
    table) is the whole name."""
    name = PurePath(place).name if place.endswith(ending) else place
    return safe_name(name.removesuffix(ending)), ending


def folded(name: str) -> str:
    """Equal for names that a file system without upper and lower case takes for one."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def free_name(stem: str, ending: str, taken: Container[str]) -> str:
    """The name, or with a number before its ending where one that folds alike is in ``taken``: "a (2).jpg"."""
    number, found = 1, stem + ending
    while folded(found) in taken:
        number += 1
        found = f"{stem} ({number}){ending}"
    return found


def folder_names(names: Iterable[str], reserved: Iterable[str] = ()) -> list[str]:
    """A safe name for each of ``names``, all different even where upper and lower case are one."""
    taken, found = {folded(name) for name in reserved}, []
    for name in names:
        found.append(free_name(safe_name(name), "", taken))
        taken.add(folded(found[-1]))
    return found


def _cut(name: str) -> str:
    return name.encode()[:_MAX_BYTES].decode(errors="ignore")
