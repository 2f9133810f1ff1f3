"""The health of texts: what a person should know of them before spending an hour on it."""

from __future__ import annotations

import functools
import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np

from agcd.data.health import common_findings, tell_pairs
from agcd.types import Dataset
from agcd.words import count, printable


def text_health(dataset: Dataset) -> list[str]:
    """One sentence per finding, counts first; texts are named by where they come from."""
    texts = dataset.texts or ()

    def place(row: int) -> str:
        return printable(dataset.where[row]) if dataset.where else f"row {row}"

    lines = common_findings(dataset, "text", place)
    if not texts:
        return lines
    pairs, n_near = near_texts(texts, dataset.keys)
    near = tell_pairs(count(n_near, "text"), pairs, place) if n_near else []
    return [*lines, *near, _lengths(texts), _scripts(texts)]


def near_texts(texts: Sequence[str], keys: Sequence[str]) -> tuple[list[tuple[int, int]], int]:
    """Each text with the first before it that has the same letters and digits up to case but is not equal; how many
    texts have such another one."""
    groups: dict[str, dict[str, list[int]]] = {}
    for row, (text, key) in enumerate(zip(texts, keys, strict=True)):
        if letters := text.casefold().translate(_LETTERS):
            groups.setdefault(letters, {}).setdefault(key, []).append(row)
    alike = [list(group.values()) for group in groups.values() if len(group) > 1]
    pairs = [(group[0][0], rows[0]) for group in alike for rows in group[1:]]
    return sorted(pairs, key=lambda pair: pair[1]), sum(len(rows) for group in alike for rows in group)


class _Letters(dict[int, int | None]):
    """For ``str.translate``: letters, digits and the marks upon letters as they are, all else dropped."""

    def __missing__(self, code: int) -> int | None:
        is_mark = unicodedata.category(chr(code)) in ("Mn", "Mc") and not 0xFE00 <= code <= 0xFE0F  # of emoji
        self[code] = code if chr(code).isalnum() or is_mark else None
        return self[code]


_LETTERS = _Letters()


def _lengths(texts: Sequence[str]) -> str:
    chars, words = [len(text) for text in texts], [len(text.split()) for text in texts]
    middle = f"{count(int(np.median(chars)), 'character')} or {count(int(np.median(words)), 'word')}"
    return f"length: {middle} in the median, at most {count(max(chars), 'character')} or {count(max(words), 'word')}"


def _scripts(texts: Sequence[str]) -> str:
    found = Counter(map(script_of, texts))
    told = [f"{name} {n:,}" for name, n in sorted(found.items(), key=lambda pair: (not pair[0], -pair[1])) if name]
    told += [f"none {found['']:,}"] if found[""] else []
    return f"scripts: {', '.join(told)}"


def script_of(text: str) -> str:
    """The script of most letters of a text, as Unicode calls it: "Latin", "Cyrillic", "CJK"; "" where it has none."""
    if text.isascii():
        return "Latin" if any(map(str.isalpha, text)) else ""
    found: Counter[str] = Counter()
    for char, n in Counter(text).items():
        if char.isalpha():
            found[_script(char)] += n
    return max(found, key=lambda name: found[name], default="")


@functools.cache
def _script(char: str) -> str:
    word = unicodedata.name(char, "other").split()[0]
    return word if word == "CJK" else word.capitalize()
