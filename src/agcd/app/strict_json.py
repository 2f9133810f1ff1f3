"""JSON from strangers: what has more than one reading is refused."""

from __future__ import annotations

import json
from typing import Any, NoReturn


def parse_strictly(text: str) -> Any:
    """The value in ``text``; ValueError where it is no JSON, has NaN or infinity, or one key twice in an object.

    What is nested too deeply is a RecursionError.
    """
    return json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return values


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")
