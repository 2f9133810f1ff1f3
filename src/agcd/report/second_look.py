"""What deserves a second look, as the page shows it: confused classes side by side, and doubtful rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agcd.report.story import Confusion, Doubt, Story
from agcd.report.strips import Thumbnails
from agcd.words import count, rough_percent, shown

EXCERPT = 180
"""Columns of a text that are shown; it is cut where it is longer."""


@dataclass(frozen=True)
class Look:
    """One row with its words; ``uri`` is its image and ``text`` an excerpt of its text, or both are empty."""

    uri: str
    file: str
    lines: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True)
class PairCard:
    """Two classes side by side, and the rows that people and the model call differently."""

    one: str
    other: str
    sentence: str
    sides: tuple[tuple[str, tuple[Look, ...]], ...]
    disputed: tuple[Look, ...]
    n_more: int


def pair_cards(story: Story, thumbnails: Thumbnails | None) -> list[PairCard]:
    """The confused classes of a story."""
    return [_pair_card(story, pair, thumbnails) for pair in story.confusions]


def _pair_card(story: Story, pair: Confusion, thumbnails: Thumbnails | None) -> PairCard:
    one, other = shown(pair.one, 40), shown(pair.other, 40)
    sides = ((one, pair.one_rows.tolist()), (other, pair.other_rows.tolist()))
    disputed = tuple(
        _look(story, each.row, thumbnails, (f"people: {shown(each.said, 40)}", f"model: {shown(each.predicted, 40)}"))
        for each in pair.disputed
    )
    return PairCard(
        one,
        other,
        f"People and the model differ on {count(pair.n, story.noun)}.",
        tuple((name, _looks(story, rows, thumbnails)) for name, rows in sides),
        disputed,
        pair.n - len(disputed),
    )


def _looks(story: Story, rows: Sequence[int], thumbnails: Thumbnails | None) -> tuple[Look, ...]:
    return tuple(_look(story, row, thumbnails) for row in rows)


def doubt_looks(story: Story, thumbnails: Thumbnails | None) -> list[Look]:
    """The doubtful rows of a story, each with its name and the chance that it is right."""
    return [_look(story, doubt.row, thumbnails, _doubt_lines(doubt)) for doubt in story.doubts]


def _doubt_lines(doubt: Doubt) -> tuple[str, str]:
    return shown(doubt.name, 40), f"{rough_percent(doubt.certainty)} sure"


def _look(story: Story, row: int, thumbnails: Thumbnails | None, lines: tuple[str, ...] = ()) -> Look:
    text = excerpt(story.excerpt(row)) if story.excerpt else ""
    return Look(thumbnails.uri(row) if thumbnails else "", shown(story.file(row), 300), lines, text)


def excerpt(text: str) -> str:
    """The beginning of a text on one line, as much as a few lines of a page hold."""
    return shown(text, EXCERPT)
