"""Lists as CommonMark reads them, written so that Python-Markdown, which wants four columns a level, agrees."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt


def four_columns(markdown: str) -> str:
    """The same text: lists begin after an empty line, and what belongs to an item stands four columns in per level."""
    lines = markdown.split("\n")
    inside: list[list[tuple[int, int]]] = [[] for _ in lines]
    """Of each line the items around it, outermost first: the line where each begins, and its content's column."""
    begins: set[int] = set()
    for token in MarkdownIt("commonmark").parse(markdown):
        first, last = token.map or (0, 0)
        if token.type in ("bullet_list_open", "ordered_list_open") and token.level == 0:
            begins.add(first)
        elif token.type == "list_item_open":
            if first and _is_loose(lines, first, token.level, inside):
                begins.add(first)
            item = (first, _content_column(lines[first]))
            for number in range(first, last):
                inside[number].append(item)
    written = []
    for number, (line, items) in enumerate(zip(lines, inside, strict=True)):
        if number in begins and number and lines[number - 1].strip():
            written.append("")
        written.append(_indented(line, number, items))
    return "\n".join(written)


def _is_loose(lines: list[str], first: int, level: int, inside: list[list[tuple[int, int]]]) -> bool:
    """Whether the item before the one that begins here has several paragraphs, of which the last would swallow it."""
    depth = level // 2
    before = inside[first - 1][depth : depth + 1]
    return bool(before) and any(not line.strip() for line in lines[before[0][0] : first])


def _content_column(line: str) -> int:
    """Where an item's own text begins, after its number or dash."""
    found = re.match(r"( *(?:[-*+]|\d+[.)]) +)+?", line)
    return found.end() if found else 0


def _indented(line: str, number: int, items: list[tuple[int, int]]) -> str:
    if not items or not line.strip():
        return line
    first, column = items[-1]
    depth = len(items)
    if number == first:
        return " " * (4 * (depth - 1)) + line.lstrip()
    own = len(line) - len(line.lstrip())
    return " " * (4 * depth + max(0, own - column)) + line.lstrip()
