"""Links that work when a page is read in the repository, made to work on the site."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

INCLUDED = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Files beside ``docs`` that are pages of the site, with their addresses there."""
NOT_SHOWN = frozenset({"docs/STATUS.md"})
"""What lies in ``docs`` and is no page (``exclude_docs`` of mkdocs.yml)."""
_FENCE = r"^(?P<fence>`{3,}|~{3,})[^\n]*\n.*?^(?P=fence)[ \t]*$"
_INDENTED = r"(?<=\n\n)(?: {4,}[^\n]*\n)+"
_CODE = r"(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"
_LINK = r"(?P<start>!?\[)(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^()\s]+)\)"
_PARTS = re.compile(f"{_FENCE}|{_INDENTED}|{_LINK}|{_CODE}", re.MULTILINE | re.DOTALL)


def as_on_site(markdown: str, place: str, root: Path) -> tuple[str, list[str]]:
    """The text of the page at ``place`` of the repository as the site has it, and the targets that are nowhere.

    Links to pages become links between pages. What is linked and is no page is named, as code: whoever reads the site
    may not have the repository.
    """
    unknown: list[str] = []

    def replaced(part: re.Match[str]) -> str:
        target = part["target"]
        if target is None or target.startswith("#") or re.match(r"[a-z]+:", target):
            return part[0]
        path, hash_, anchor = target.partition("#")
        found = posixpath.normpath(posixpath.join(posixpath.dirname(place), path))
        if not (root / found).exists():
            unknown.append(target)
            return part[0]
        if (uri := _uri(found)) is None:
            return _named(part["text"], found)
        here = posixpath.dirname(_uri(place) or "")
        return f"{part['start']}{part['text']}]({posixpath.relpath(uri, here or '.')}{hash_}{anchor})"

    return _PARTS.sub(replaced, markdown), unknown


def _uri(found: str) -> str | None:
    """Where the site has a file of the repository, or None."""
    if found in INCLUDED:
        return INCLUDED[found]
    inside = found.startswith("docs/") and found not in NOT_SHOWN and not found.endswith(".py")
    return found.removeprefix("docs/") if inside else None


def _named(text: str, found: str) -> str:
    plain = text.strip("`")
    return f"`{found}`" if plain in found else f"{text} (`{found}`)"
