"""How good the names are now, in numbers and in words: one count for the page, the command line and the report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from agcd.accuracy import AccuracyEstimate
from agcd.app.live import Bought, LiveView
from agcd.app.snapshot import Snapshot
from agcd.app.store.classes import NO_CLASS
from agcd.words import count, listed

LEAST_LOST = 2
"""Answers of one class that were taken for one other, from which it is told."""
LEAST_UNSEEN = 3
"""Pictures of a group without a name from which it is told."""
MOST_TOLD = 3
SURE = 0.8
"""A name is called sure when its chance to be right is at least this."""


@dataclass(frozen=True)
class Figures:
    """Pictures are those that had no label at the start."""

    n_pictures: int
    n_checked: int
    """Named or accepted by a person."""
    accuracy: AccuracyEstimate | None
    """The share of the pictures that carry the right name; None while it is not checked."""
    n_checks: int
    """Answers by which that is judged, and how many it takes."""
    n_checks_needed: int
    n_wrong: float
    """Wrong names that are to be expected among the pictures that nobody has checked."""
    n_unsure: int
    """Pictures whose name is not sure."""
    n_unnamed: int
    """Pictures in groups without a name."""
    unseen: tuple[str, ...]
    """Classes near which groups lie that nobody has named."""
    lost: tuple[str, ...]
    """Sentences: which class is taken for which."""
    bought: Bought | None
    noun: str = "picture"

    @property
    def headline(self) -> str:
        """The same in words."""
        if self.n_pictures and self.n_checked >= self.n_pictures:
            return f"all {count(self.n_pictures, self.noun)} checked"
        if self.accuracy is None:
            return "not checked yet"
        mean, low, high = (round(100 * value) for value in (self.accuracy.mean, self.accuracy.low, self.accuracy.high))
        return f"about {mean} % right ({low}–{high} %), from {count(self.n_checks, 'answer')}"

    @property
    def sentences(self) -> list[str]:
        """What else is worth knowing."""
        found = []
        if self.n_unnamed:
            near = f", most of them near {listed(self.unseen)}" if self.unseen else ""
            seem, kinds = ("seems", "a kind") if self.n_unnamed == 1 else ("seem", "kinds")
            found.append(f"{count(self.n_unnamed, self.noun)} {seem} to be of {kinds} that nobody has named{near}.")
        found += self.lost
        if self.bought:
            n = self.bought.n_expected
            expected = "" if n is None else f" ({n} {'was' if n == 1 else 'were'} expected)"
            found.append(
                f"Your last {self.bought.n_answers} answers gave {count(self.bought.n_changed, f'other {self.noun}')} "
                f"another name{expected}; the next {self.bought.n_answers} are likely to change about "
                f"{self.bought.n_next}."
            )
        return found


def figures_of(snapshot: Snapshot) -> Figures | None:
    """How good the names of a moment are; None where nothing can be said before the pictures are looked at."""
    live = snapshot.live
    if live is None or snapshot.round is None or snapshot.live_log is None:
        return None
    rows = snapshot.round.order[~snapshot.labels.settled[snapshot.round.order]]
    is_named = snapshot.machine_numbers(rows) < len(snapshot.labels.registry.classes)
    chance = snapshot.p_right(np.concatenate([rows[is_named], snapshot.labels.unseen]))
    return Figures(
        n_pictures=live.n_pictures,
        n_checked=live.n_said,
        accuracy=live.accuracy,
        n_checks=live.n_checks,
        n_checks_needed=live.n_checks_needed,
        n_wrong=float((1 - chance).sum()),
        n_unsure=int((chance < SURE).sum()),
        n_unnamed=int((~is_named).sum()),
        unseen=_unseen(snapshot, live),
        lost=_lost(snapshot),
        bought=snapshot.live_log.bought(live),
        noun=snapshot.noun,
    )


def _unseen(snapshot: Snapshot, live: LiveView) -> tuple[str, ...]:
    """The classes that the rows of groups without a name would be taken for, the most frequent first."""
    believed = live.belief.y_class[live.is_unclaimed]
    found, n = np.unique(believed[believed != NO_CLASS], return_counts=True)
    order = np.argsort(-n, kind="stable")[:MOST_TOLD]
    return tuple(snapshot.names[found[i]] for i in order if n[i] >= LEAST_UNSEEN)


def _lost(snapshot: Snapshot) -> tuple[str, ...]:
    """Classes whose answers were taken for another one."""
    rows, numbers = snapshot.checks
    said, names = snapshot.labels.classes_of(rows), snapshot.names
    of_class = Counter(said.tolist())
    differ = (said != numbers) & (said != NO_CLASS) & (numbers < len(snapshot.labels.registry.classes))
    pairs = Counter(zip(said[differ].tolist(), numbers[differ].tolist(), strict=True))
    return tuple(
        f"{n} of {count(of_class[a], 'answer')} for {names[a]} looked like {names[b]}."
        for (a, b), n in pairs.most_common(MOST_TOLD)
        if n >= LEAST_LOST
    )
