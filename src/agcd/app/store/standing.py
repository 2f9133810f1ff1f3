"""What stands now, kept up to date event by event: a page must not fold a hundred thousand events per click."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agcd.app.store.classes import ClassInfo, Registry, fold_classes
from agcd.app.store.events import ANSWERS, CLASS_KINDS, LabelEvent, is_confirmed, live_events
from agcd.app.store.fold import DECIDED, Agreement, agreement, winning_answers
from agcd.app.store.store import Store
from agcd.types import BoolArray, IntArray

NO_CLASS = -1
_CODE = {kind: code for code, kind in enumerate(ANSWERS)}
_NOT_ANSWERS = ("void", "rename", "merge", "retire")
"""A class once made is never unmade, so ``create`` is not among them."""
_FEW_VOIDS = 3
"""What each of so many takes back is looked for among all answers; to fold all anew is quicker for more."""
_TABLE = np.dtype(
    [("row", np.int64), ("id", np.int64), ("class", np.int64), ("kind", np.int8), ("seed", "?"), ("audit", "?")],
    align=True,
)


@dataclass(frozen=True)
class Standing:
    """All that holds after ``last_event``; never changed, so that threads may share it."""

    last_event: int = 0
    registry: Registry = field(default_factory=Registry)
    answers: dict[int, LabelEvent] = field(default_factory=dict)
    """The answer that counts for each answered row."""
    accepted: dict[int, LabelEvent] = field(default_factory=dict)
    """Rows that were accepted by page and that nobody has labelled or thrown out since."""
    counts: Counter[str] = field(default_factory=Counter)
    """Standing events: ``confirmed`` labels, ``audit`` labels."""
    agreement: Agreement = field(default_factory=lambda: Agreement(0, None))
    last_change: int = 0
    """The last event that took something back or joined classes."""
    table: NDArray[Any] = field(default_factory=lambda: np.empty(0, _TABLE))
    """``answers`` as an array, because pages count and sort them: the newest first, those known from the start last.
    ``class`` is the place of the class in the registry, after merges, or −1."""

    def class_of(self, row: int) -> str | None:
        """The id of the class that a person gave to ``row``, after merges."""
        event = self.answers.get(row)
        return self.registry.resolve(event.class_id).id if event and event.class_id else None

    def accepted_class(self, row: int) -> str | None:
        event = self.accepted.get(row)
        return self.registry.resolve(event.class_id).id if event and event.class_id else None

    def rows_with(self, kinds: Collection[str]) -> IntArray:
        """The rows whose answer is of one of ``kinds``."""
        return np.asarray(self.table["row"][self._is(kinds)])

    def n_labels_after(self, event_id: int) -> int:
        """Labels that were given after an event; those of an audit are not counted."""
        return int((self._is(("label",)) & (self.table["id"] > event_id) & ~self.table["audit"]).sum())

    def only_audited(self) -> Standing:
        """The same with the answers of blind audits alone."""
        rows = self.table["row"][self.table["audit"]].tolist()
        return replace(self, answers={row: self.answers[row] for row in rows}, table=self.table[self.table["audit"]])

    @property
    def classes_in_use(self) -> list[ClassInfo]:
        """The classes that some row carries, in the order they were made."""
        carried = np.zeros(len(self.registry.classes) + 1, np.bool_)  # one more, for those without a class
        carried[self.table["class"]] = True
        return [info for info, used in zip(self.registry.classes.values(), carried.tolist(), strict=False) if used]

    @property
    def n_seeds(self) -> int:
        return int(self.table["seed"].sum())

    @property
    def n_passed(self) -> int:
        return int(self._is(("skip", "unsure")).sum())

    @property
    def n_junk(self) -> int:
        return int(self._is(("junk",)).sum())

    def _is(self, kinds: Collection[str]) -> BoolArray:
        return np.isin(self.table["kind"], [code for kind, code in _CODE.items() if kind in kinds])


class Follower:
    """Follows the events of a store; several threads may ask it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._start_over()

    def _start_over(self) -> None:
        self._said: dict[int, list[LabelEvent]] = {}
        """By row, the answers that stand and the times it was accepted, in order."""
        self._accepted: dict[int, LabelEvent] = {}
        self._class_events: list[LabelEvent] = []
        self._voids: list[LabelEvent] = []
        self._answers: dict[int, LabelEvent] = {}
        self._shared: set[int] = set()
        self._counts: Counter[str] = Counter()
        self._last_change = 0
        self._registry = Registry()
        self._table = np.empty(0, _TABLE)
        self._standing = Standing()

    def standing(self, store: Store) -> Standing:
        """What holds after the last event in ``store``."""
        with self._lock:
            fresh = store.events(after=self._standing.last_event)
            if not fresh:
                return self._standing
            last = fresh[-1].id
            voids = [event for event in fresh if event.kind == "void"]
            if voids and (len(voids) > _FEW_VOIDS or self._reach_far(voids, fresh)):
                self._start_over()
                events = store.events()
                last = events[-1].id
                self._voids = [event for event in events if event.kind == "void"]
                self._last_change = self._voids[-1].id
                fresh = live_events(events)
            self._take(fresh)
            self._standing = self._frozen(last)
            return self._standing

    def _reach_far(self, voids: Sequence[LabelEvent], fresh: Sequence[LabelEvent]) -> bool:
        """Whether something else than answers is taken back: then all is folded anew."""
        others = [e for e in (*self._class_events, *self._voids, *fresh) if e.kind in _NOT_ANSWERS]
        names = {name for event in others for name in (event.uid, event.group)}
        return any(void.payload["target"] in names for void in voids)

    def _take(self, fresh: Sequence[LabelEvent]) -> None:
        touched: set[int] = set()
        for event in fresh:
            if event.kind == "void":
                touched |= self._take_back(event)
            elif event.kind in CLASS_KINDS:
                self._class_events.append(event)
                if event.kind == "merge":
                    self._last_change = max(self._last_change, event.id)
            elif event.row is not None:
                self._said.setdefault(event.row, []).append(event)
                self._count(event, 1)
                touched.add(event.row)
        for row in touched:
            self._settle(row)
        if any(event.kind in CLASS_KINDS for event in fresh):
            self._registry = fold_classes(self._class_events)
        self._table = self._with_changed(touched)

    def _take_back(self, void: LabelEvent) -> set[int]:
        """Forget the answers that a void takes back; their rows."""
        self._voids.append(void)
        self._last_change = void.id
        gone = [event for said in self._said.values() for event in said if _is_target(event, void)]
        rows = {event.row for event in gone if event.row is not None}
        for row in rows:
            self._said[row] = [event for event in self._said[row] if not _is_target(event, void)]
        for event in gone:
            self._count(event, -1)
        return rows

    def _count(self, event: LabelEvent, by: int) -> None:
        self._counts["confirmed"] += by * is_confirmed(event)
        self._counts["audit"] += by * (event.kind == "label" and event.is_audit)

    def _settle(self, row: int) -> None:
        """Decide anew which answer counts for ``row``."""
        said = self._said[row]
        winner = winning_answers(said).get(row)
        accepted = next((event for event in reversed(said) if event.kind == "accept"), None)
        _put(self._answers, row, winner)
        _put(self._accepted, row, None if winner and winner.kind in DECIDED else accepted)
        people = {event.who for event in said if event.kind == "label" and event.source != "seed"}
        self._shared.discard(row)
        if len(people) > 1:
            self._shared.add(row)

    def _with_changed(self, rows: set[int]) -> NDArray[Any]:
        """The table of answers, with those of ``rows`` as they are now; classes by their own place, before merges."""
        place = {class_id: number for number, class_id in enumerate(self._registry.classes)}
        kept = self._table.take(np.flatnonzero(~np.isin(self._table["row"], list(rows))))
        winners = [self._answers[row] for row in rows if row in self._answers]
        changed = [
            (e.row, e.id, place.get(e.class_id or "", NO_CLASS), _CODE[e.kind], e.source == "seed", e.is_audit)
            for e in winners
        ]
        table = np.concatenate([np.array(changed, _TABLE), kept])
        return table.take(np.argsort(-table["id"] + table["seed"] * 2**62, kind="stable"))

    def _frozen(self, last_event: int) -> Standing:
        shared = [event for row in self._shared for event in self._said[row]]
        return Standing(
            last_event,
            self._registry,
            dict(self._answers),
            dict(self._accepted),
            Counter(self._counts),
            agreement(shared, self._registry),
            self._last_change,
            _merged(self._table, self._registry),
        )


def _is_target(event: LabelEvent, void: LabelEvent) -> bool:
    return void.payload["target"] in (event.uid, event.group)


def _put(events: dict[int, LabelEvent], row: int, event: LabelEvent | None) -> None:
    if event is None:
        events.pop(row, None)
    else:
        events[row] = event


def _merged(table: NDArray[Any], registry: Registry) -> NDArray[Any]:
    """``table`` with each class replaced by the one that it stands for."""
    if not any(info.merged_into for info in registry.classes.values()):
        return table
    place = {class_id: number for number, class_id in enumerate(registry.classes)}
    stands_for = [place[registry.resolve(class_id).id] for class_id in registry.classes]
    merged = table.copy()
    merged["class"] = np.array([*stands_for, NO_CLASS])[table["class"]]  # −1 picks the last entry
    return merged
