"""The evidence of every class at every row: two ways to keep it, and which classes have the most of it.

``Columns`` keeps all of it, an array for each class. Arrays are replaced and never changed, so a copy costs hardly
anything and stays as it is; and an answer to one class changes one of them, so that the ranking of the classes at each
row is brought up to date and not computed anew. ``Strongest`` keeps a few classes of each row, for large pools.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from agcd.types import IntArray

Floats = NDArray[np.float32]
NO_CLASS = -1


@dataclass(frozen=True)
class Ranked:
    """The classes with the most weighed evidence at some rows."""

    winner: IntArray
    """(n,): the class with the most; −1 where none has arrived."""
    best: Floats
    """(n,): how much it has."""
    second: Floats
    """(n,): how much the next one has."""
    total: NDArray[np.float64]
    """(n,): how much all have."""

    def at(self, rows: IntArray) -> Ranked:
        """The same for some of these rows."""
        return Ranked(self.winner[rows], self.best[rows], self.second[rows], self.total[rows])


def ranked(classes: NDArray[np.int32], weighed: Floats) -> Ranked:
    """The ranking of lines of evidence: (n, width), (n, width)."""
    if not weighed.shape[1]:
        return nothing(len(weighed))
    lines, place = np.arange(len(weighed)), weighed.argmax(1)
    best = weighed[lines, place]
    others = weighed.copy()
    others[lines, place] = 0
    winner = np.where(best > 0, classes[lines, place], NO_CLASS).astype(np.int64)
    return Ranked(winner, best, others.max(1), weighed.sum(1, dtype=np.float64))


def nothing(n: int) -> Ranked:
    """The ranking of ``n`` rows where no evidence has arrived."""
    zero = np.zeros(n, np.float32)
    return Ranked(np.full(n, NO_CLASS, np.int64), zero, zero, np.zeros(n))


class Evidence(Protocol):
    """Evidence of classes at n rows. ``weights`` (C,) say how much that of each class counts."""

    def add(self, rows: IntArray, y_class: int, evidence: Floats) -> None:
        """Add evidence of a class at some rows; it may be negative."""

    def of_class(self, y_class: int) -> tuple[IntArray, Floats]:
        """The rows with evidence of a class, and how much."""

    def forget(self, y_class: int) -> None:
        """Nothing is left of a class."""

    def lines(self, rows: IntArray) -> tuple[NDArray[np.int32], Floats]:
        """(m, width), (m, width): classes at each of ``rows``, and the evidence of each."""

    def ranked(self, weights: Floats, rows: IntArray | None = None) -> Ranked:
        """The ranking at ``rows``; at all of them if None."""

    def copy(self) -> Self:
        """The same, not changed by what is added here from now on."""


class Columns:
    """All evidence, class by class."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._evidence: dict[int, Floats] = {}
        self._weighed: dict[int, Floats] = {}
        """As it was ranked last."""
        self._ranked = nothing(n)
        self._changed: set[int] = set()
        """Classes whose evidence is another since then."""
        self._has_less = False
        """Whether some was taken away since then: a difference of sums would leave rounding where nothing is left."""

    def copy(self) -> Self:
        other = type(self)(self.n)
        other._evidence, other._weighed, other._changed = dict(self._evidence), dict(self._weighed), set(self._changed)
        other._ranked, other._has_less = self._ranked, self._has_less
        return other

    def add(self, rows: IntArray, y_class: int, evidence: Floats) -> None:
        before = self._evidence.get(y_class)
        column = np.zeros(self.n, np.float32) if before is None else before.copy()
        column[rows] += evidence
        self._evidence[y_class] = np.maximum(column, 0, out=column)
        self._changed.add(y_class)
        self._has_less |= bool(len(evidence) and evidence.min() < 0)

    def of_class(self, y_class: int) -> tuple[IntArray, Floats]:
        column = self._evidence.get(y_class, np.zeros(self.n, np.float32))
        rows = np.flatnonzero(column)
        return rows, column[rows]

    def forget(self, y_class: int) -> None:
        self._evidence.pop(y_class, None)
        self._changed.add(y_class)
        self._has_less = True

    def lines(self, rows: IntArray) -> tuple[NDArray[np.int32], Floats]:
        classes, evidence = _side_by_side(self._evidence, rows)
        return np.where(evidence > 0, classes, np.int32(NO_CLASS)), evidence

    def ranked(self, weights: Floats, rows: IntArray | None = None) -> Ranked:
        for c in sorted(self._changed):
            self._rank(c, self._evidence[c] * weights[c] if c in self._evidence else None)
        if self._has_less:
            total = np.zeros(self.n)
            for column in self._weighed.values():
                total += column
            self._ranked = replace(self._ranked, total=total)
        self._changed, self._has_less = set(), False
        return self._ranked if rows is None else self._ranked.at(rows)

    def _rank(self, c: int, column: Floats | None) -> None:
        """Take the weighed evidence (n,) of a class into the ranking; None is nothing."""
        last, zero = self._ranked, np.zeros(self.n, np.float32)
        before, now = self._weighed.pop(c, zero), zero if column is None else column
        if column is not None:
            self._weighed[c] = column
        is_own = last.winner == c
        is_first = (now > last.best) | ((now == last.best) & (now > 0) & (c < last.winner))
        winner, best = np.where(is_first, c, last.winner), np.where(is_own | is_first, now, last.best)
        second = np.where(is_own, last.second, np.where(is_first, last.best, np.maximum(last.second, now)))
        # Where it was among the first two and has lost, the next class may be any.
        rows = np.flatnonzero((now < before) & (before >= last.second))
        if len(rows):
            classes, weighed = _side_by_side(dict(sorted(self._weighed.items())), rows)
            own = ranked(np.broadcast_to(classes, weighed.shape), weighed)
            winner[rows], best[rows], second[rows] = own.winner, own.best, own.second
        self._ranked = Ranked(winner, best, second, last.total + (now - before.astype(np.float64)))


def _side_by_side(columns: dict[int, Floats], rows: IntArray) -> tuple[NDArray[np.int32], Floats]:
    """The classes (C,), and their columns at ``rows`` (m, C)."""
    out = np.empty((len(columns), len(rows)), np.float32)
    for line, column in zip(out, columns.values(), strict=True):
        line[:] = column[rows]
    return np.array(list(columns), np.int32), out.T


class Strongest:
    """Of each row the evidence of its strongest classes: as many as there is room for."""

    def __init__(self, n: int, width: int) -> None:
        self._class = np.full((n, width), NO_CLASS, np.int32)
        self._evidence = np.zeros((n, width), np.float32)
        """Row i has ``_evidence[i, j]`` of class ``_class[i, j]``."""

    @classmethod
    def of(cls, other: Columns, width: int) -> Self:
        """The same evidence kept so, with at least ``width`` places for each row."""
        classes, evidence = other.lines(np.arange(other.n))
        made = cls(other.n, max(width, classes.shape[1]))
        made._class[:, : classes.shape[1]], made._evidence[:, : classes.shape[1]] = classes, evidence
        return made

    def copy(self) -> Self:
        other = type(self)(0, 0)
        other._class, other._evidence = self._class.copy(), self._evidence.copy()
        return other

    def add(self, rows: IntArray, y_class: int, evidence: Floats) -> None:
        """Where a row's places are taken, the smallest gives way to a larger."""
        classes, kept = self._class[rows], self._evidence[rows]
        lines, own = np.arange(len(rows)), classes == y_class
        known = own.any(1)
        place = np.where(known, own.argmax(1), np.where(classes == NO_CLASS, -1, kept).argmin(1))
        now = np.where(known, kept[lines, place], 0) + evidence
        changes = known | (now > kept[lines, place])
        rows, place, now = rows[changes], place[changes], np.maximum(now[changes], 0)
        self._class[rows, place] = np.where(now > 0, y_class, NO_CLASS)
        self._evidence[rows, place] = now

    def of_class(self, y_class: int) -> tuple[IntArray, Floats]:
        place = self._class == y_class
        rows = np.flatnonzero(place.any(1))
        return rows, self._evidence[rows][place[rows]]

    def forget(self, y_class: int) -> None:
        gone = self._class == y_class
        self._class[gone], self._evidence[gone] = NO_CLASS, 0

    def lines(self, rows: IntArray) -> tuple[NDArray[np.int32], Floats]:
        return self._class[rows], self._evidence[rows]

    def ranked(self, weights: Floats, rows: IntArray | None = None) -> Ranked:
        classes, evidence = (self._class, self._evidence) if rows is None else self.lines(rows)
        return ranked(classes, evidence * weights[classes])
