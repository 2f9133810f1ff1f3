"""The simulated person: the only one who reads the truth, pays for every look and key, and errs at a given rate."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from agcd.lab.person.costs import Costs


class Person:
    """Says what is shown to it, and counts seconds and keys.

    Classes are numbers; ``names`` are theirs. A decision goes wrong with the probability ``errors``: a wrong name is
    that of another class the person knows, a wrong tick is one too many or too few, a page is wrongly approved or
    refused.

    Parameters
    ----------
    truth : the class of a row.
    known : classes whose names the person has heard; those it says join them.
    rng : draws the errors, one number for each decision whatever the rate is, so that rates can be compared.
    clock : seconds, by which waiting is measured.
    """

    def __init__(
        self,
        truth: Callable[[int], int],
        names: Sequence[str],
        known: Iterable[int],
        costs: Costs,
        *,
        errors: float,
        rng: np.random.Generator,
        clock: Callable[[], float] = time.perf_counter,
    ):
        self.names, self.costs, self.errors = names, costs, errors
        self.seconds, self.waited, self.prepared = 0.0, 0.0, 0.0
        """All time so far; how much of it was waiting; what passed before the clock was started."""
        self.keys, self.decisions = 0, 0
        self.known = dict.fromkeys(known)
        """In the order they were heard, so that the same seed makes the same errors."""
        self.shown: set[int] = set()
        self.clock, self._truth, self._rng = clock, truth, rng

    # --------------------------------------------------------------------------------------------- what it is asked

    def name_on_card(self, row: int, suggested: Collection[int]) -> int:
        """What is this? On the page's card, where a suggested class takes one key."""
        said = self._class_of(row)
        is_known, is_suggested = said in self.known, said in suggested
        keys = self.costs.card_keys(self.names[said], is_known=is_known, is_suggested=is_suggested)
        return self._say(said, self.costs.recognise, keys)

    def name_in_tool(self, row: int) -> int:
        """What is this? In a tool that suggests nothing."""
        said = self._class_of(row)
        return self._say(said, self.costs.recognise, self._tool_keys(said))

    def name_sheet(self, rows: Sequence[int]) -> int:
        """What are most of these?"""
        said = self._or_another(Counter(self._see(row) for row in rows).most_common(1)[0][0])
        return self._say(said, self.costs.scan * len(rows), self._tool_keys(said))

    def tick(self, rows: Sequence[int], y_class: int) -> list[int]:
        """Which of these are also of this class? A key for each, and Enter."""
        ticked = [row for row in rows if (self._see(row) == y_class) != self._errs()]
        self._spend(self.costs.scan * len(rows), 1 + len(ticked))
        return ticked

    def find_wrong(self, rows: Sequence[int], y_class: int) -> list[int]:
        """Which of these are not of the class that they are shown as? A key for each, and Enter."""
        wrong = [row for row in rows if (self._see(row) != y_class) != self._errs()]
        self._spend(self.costs.scan * len(rows), 1 + len(wrong))
        return wrong

    def name_page(self, rows: Sequence[int]) -> int | None:
        """What are these, if all are the same? None where they are not, said with one key.

        The eye stops at the first picture that differs; whoever overlooks it takes the page for what the first one is.
        """
        first = self._see(rows[0])
        differs = next((i for i, row in enumerate(rows) if self._see(row) != first), None)
        looked = self.costs.scan * len(rows if differs is None else rows[: differs + 1])
        if (differs is None) == self._errs():
            self._spend(looked, 1)
            return None
        said = self._or_another(first)
        return self._say(said, looked, self._tool_keys(said))

    # ------------------------------------------------------------------------------------- what it does or endures

    def press(self, n_keys: int) -> None:
        """Decide on something that is no question, and press keys for it."""
        self._spend(0.0, n_keys)

    def click(self) -> None:
        """Decide on something, point at it and click; counted as a key."""
        self.seconds += self.costs.mouse
        self.keys += 1

    def wait(self, seconds: float) -> None:
        """The machine keeps the person waiting."""
        self.seconds += seconds
        self.waited += seconds

    def prepare(self, seconds: float) -> None:
        """Time that passes before anything can be shown, in every way alike: it is reported, and not added."""
        self.prepared += seconds

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """What runs inside keeps the person waiting."""
        began = self.clock()
        yield
        self.wait(self.clock() - began)

    # --------------------------------------------------------------------------------------------------------- inside

    def _see(self, row: int) -> int:
        self.shown.add(row)
        return self._truth(row)

    def _class_of(self, row: int) -> int:
        return self._or_another(self._see(row))

    def _errs(self) -> bool:
        self.decisions += 1
        return bool(self._rng.random() < self.errors)

    def _or_another(self, y_class: int) -> int:
        """The class, or by mistake another one that the person knows."""
        others = [c for c in self.known if c != y_class]
        return others[int(self._rng.integers(len(others)))] if self._errs() and others else y_class

    def _tool_keys(self, said: int) -> int:
        return self.costs.tool_keys(self.names[said], is_known=said in self.known, n_known=len(self.known))

    def _say(self, said: int, looked: float, n_keys: int) -> int:
        self._spend(looked, n_keys)
        self.known[said] = None
        return said

    def _spend(self, looked: float, n_keys: int) -> None:
        self.seconds += looked + self.costs.press(n_keys)
        self.keys += n_keys
