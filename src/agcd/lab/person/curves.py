"""Right names against time: what one way did with one person, recorded action by action."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from agcd.lab.person.pool import Drawn
from agcd.lab.person.simulated import Person
from agcd.types import IntArray


@dataclass(frozen=True)
class Moment:
    """After an action: what it has cost until now, and the share of rows that carry the right name."""

    seconds: float
    keys: int
    waited: float
    right: float
    right_known: float | None
    """Of the rows of classes that were known at the start, and of all others; None where there are none."""
    right_new: float | None


@dataclass(frozen=True)
class Curve:
    """The moments of one way, by rising time; each holds until the next."""

    moments: tuple[Moment, ...]
    prepared: float = 0.0
    """Seconds before the clock started, in which features were computed; 0 where they were there."""
    n_hidden: int = 0
    """Rows over which shares are measured."""

    def at(self, minutes: float) -> Moment:
        """The last moment that is not later."""
        times = [moment.seconds for moment in self.moments]
        return self.moments[max(0, bisect_right(times, 60 * minutes) - 1)]

    def minutes_until(self, share: float) -> float | None:
        """When so many names were right for the first time; None if they never were."""
        moment = self._first(share)
        return None if moment is None else moment.seconds / 60

    def keys_until(self, share: float) -> int | None:
        """The keys that it took; None if so many names were never right."""
        moment = self._first(share)
        return None if moment is None else moment.keys

    def _first(self, share: float) -> Moment | None:
        return next((moment for moment in self.moments if moment.right >= share), None)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(value: dict[str, Any]) -> Curve:
        moments = tuple(Moment(**moment) for moment in value["moments"])
        return Curve(moments, value["prepared"], value["n_hidden"])


@dataclass(frozen=True)
class Run:
    """One way with one person."""

    data: str
    way: str
    seed: int
    errors: float
    curve: Curve
    noun: str = "picture"
    """What one row is called."""


def record(names: Generator[IntArray, None, None], drawn: Drawn, person: Person, minutes: float) -> Curve:
    """Follow a way until it ends or the time is up. Before its first action no row has a name."""
    moments = [_moment(np.full(len(drawn.truth), -1), drawn, person)]
    with closing(names):  # which ends the server of a way that has one
        for y_class in names:
            if person.seconds > 60 * minutes:
                break
            moments.append(_moment(y_class, drawn, person))
    return Curve(tuple(moments), person.prepared, int(drawn.is_hidden.sum()))


def _moment(y_class: IntArray, drawn: Drawn, person: Person) -> Moment:
    is_right, is_new = y_class == drawn.truth, drawn.truth >= len(drawn.pool.known)

    def share(new: bool) -> float | None:
        among = drawn.is_hidden & (is_new == new)
        return float(is_right[among].mean()) if among.any() else None

    right = float(is_right[drawn.is_hidden].mean())
    return Moment(person.seconds, person.keys, person.waited, right, share(False), share(True))
