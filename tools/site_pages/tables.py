"""Tables of Markdown whose cells may hold anything."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_ROLE = re.compile(r"``(.+?)``", re.DOTALL)
_PAGE = re.compile(r"\bdocs/(\w+)\.md\b")


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table, an empty one after it; none where it would be empty."""
    rows = [f"| {' | '.join(map(cell, line))} |" for line in lines]
    return [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *rows, ""] if rows else []


def cell(text: str) -> str:
    """Words on one line, in which nothing ends the cell."""
    return re.sub(r"[ \n]+", " ", text).strip().replace("|", "\\|")


def prose(docstring: str | None) -> str:
    """A docstring as Markdown of a page in ``docs/reference``: what it calls code is code, and pages are links."""
    return _PAGE.sub(r"[\1](../\1.md)", _ROLE.sub(r"`\1`", docstring or "")).strip()


def code(value: object) -> str:
    """Something as code, in a cell too."""
    return f"`{value}`"
