"""What stands now, kept up to date event by event: a page must not fold a hundred thousand events per click."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field

from agcd.records.classes import Registry, fold_classes
from agcd.records.events import ANSWERS, CLASS_KINDS, PASSES, LabelEvent, is_confirmed, live_events
from agcd.records.fold import DECIDED, Agreement, agreement, winning_answers
from agcd.records.store import Store


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

    def class_of(self, row: int) -> str | None:
        """The id of the class that a person gave to ``row``, after merges."""
        event = self.answers.get(row)
        return self.registry.resolve(event.class_id).id if event and event.class_id else None

    def accepted_class(self, row: int) -> str | None:
        event = self.accepted.get(row)
        return self.registry.resolve(event.class_id).id if event and event.class_id else None

    @property
    def n_passed(self) -> int:
        return sum(event.kind in PASSES and event.kind != "junk" for event in self.answers.values())

    @property
    def n_junk(self) -> int:
        return sum(event.kind == "junk" for event in self.answers.values())


class Follower:
    """Follows the events of a store; several threads may ask it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._start_over()

    def _start_over(self) -> None:
        self._said: dict[int, dict[str, LabelEvent]] = {}
        self._accepted: dict[int, LabelEvent] = {}
        self._class_events: list[LabelEvent] = []
        self._answers: dict[int, LabelEvent] = {}
        self._shared: set[int] = set()
        self._counts: Counter[str] = Counter()
        self._last_change = 0
        self._standing = Standing()

    def standing(self, store: Store) -> Standing:
        """What holds after the last event in ``store``."""
        with self._lock:
            fresh = store.events(after=self._standing.last_event)
            if not fresh:
                return self._standing
            if any(event.kind == "void" for event in fresh):
                # What was taken back may lie anywhere: begin again. Undo is rare, and 100,000 events take a second.
                self._start_over()
                events = store.events()
                fresh, last = live_events(events), events[-1].id
                self._last_change = max(event.id for event in events if event.kind == "void")
            else:
                last = fresh[-1].id
            for event in fresh:
                self._take(event)
            self._standing = self._frozen(last)
            return self._standing

    def _take(self, event: LabelEvent) -> None:
        if event.kind in CLASS_KINDS:
            self._class_events.append(event)
            if event.kind == "merge":
                self._last_change = max(self._last_change, event.id)
        elif event.kind == "accept" and event.row is not None:
            self._accepted[event.row] = event
        elif event.kind in ANSWERS and event.row is not None:
            said = self._said.setdefault(event.row, {})
            said[event.who] = event
            self._answers[event.row] = winning_answers(said.values())[event.row]
            if sum(e.source != "seed" for e in said.values()) > 1:
                self._shared.add(event.row)
            self._counts["confirmed"] += is_confirmed(event)
            self._counts["audit"] += event.kind == "label" and event.is_audit

    def _is_decided(self, row: int) -> bool:
        return row in self._answers and self._answers[row].kind in DECIDED

    def _frozen(self, last_event: int) -> Standing:
        registry = fold_classes(self._class_events)
        shared = [event for row in self._shared for event in self._said[row].values()]
        return Standing(
            last_event,
            registry,
            dict(self._answers),
            {row: event for row, event in self._accepted.items() if not self._is_decided(row)},
            Counter(self._counts),
            agreement(shared, registry),
            self._last_change,
        )
