"""What people say: ``LabelView``, the one reading of the label events.

Whoever asks what a row is called, who says so, how many labels there are or whether a name is taken gets the answer
here: training, page, command line, query, export and report alike. A view is never changed; ``view.after(events)``
is the next one, and equals folding all events anew (tests/app/test_labels.py). ``LabelLog``
(``label_log.py``) follows the events of a store, so that a process folds them once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agcd.app.store.classes import NO_CLASS, ClassInfo, Registry, check_names, clean_class_name
from agcd.app.store.events import ANSWERS, CLASS_KINDS, LabelEvent, voided_ids
from agcd.errors import DataError
from agcd.types import UNLABELLED, BoolArray, IntArray, LabelState


class How(IntEnum):
    """How a row came to its class, or why it has none. Every row has exactly one."""

    NOTHING = 0
    GIVEN = 1
    """A label known from the start."""
    ANSWERED = 2
    """A label that a person gave."""
    HELD = 3
    """A label of a blind audit: it measures the model, and is not learned from."""
    ACCEPTED = 4
    """Accepted by page: it has a class, but is no label."""
    SKIPPED = 5
    UNSURE = 6
    JUNK = 7
    REMOVED = 8
    """Held out: no longer part of the project, whatever was said of it."""


class Picked(IntEnum):
    """Whether a row was asked about before it got its answer."""

    NOT = 0
    """It was labelled with others, or by one's own choice."""
    CHOSEN = 1
    """The rule chose it."""
    DRAWN = 2
    """It was drawn at random."""
    UNSEEN = 3
    """It was accepted with the rest of a review, and nobody looked at it."""


LEARNED = (How.GIVEN, How.ANSWERED)
"""Labels that training learns."""
SAID = (*LEARNED, How.HELD)
"""A person says what the row is."""
SETTLED = (*SAID, How.ACCEPTED, How.JUNK, How.REMOVED)
"""Nobody needs to be asked any more."""
NOWHERE = (How.JUNK, How.REMOVED)
"""The row belongs to no class."""
_DECIDED = ("label", "junk")
"""Answers that settle what a row is."""
_PASSED = {"skip": How.SKIPPED, "unsure": How.UNSURE, "junk": How.JUNK}
_TABLE = np.dtype(
    [
        ("row", np.int64),
        ("id", np.int64),  # of the event that counts
        ("class", np.int64),  # its place in the registry as it was said, before merges; or −1
        ("round", np.int64),  # of the answer that counts; −1 where there is none
        ("how", np.int8),
        ("asked", np.int8),
        ("accepted", np.bool_),  # accepted by page at some time, labelled since or not
    ],
    align=True,
)
_Log = tuple[Any, tuple[LabelEvent, ...]] | None
"""The log before, and the events that came then."""


@dataclass(frozen=True)
class Agreement:
    """How often people agree: rows labelled by two or more, and the share of them with one label only."""

    n_rows: int
    share: float | None


@dataclass(frozen=True, eq=False)
class LabelView:
    """All that holds after ``last_event``. Several threads may share it."""

    is_test: BoolArray
    """(n,) rows that take no answers; n grows when rows are added."""
    last_event: int = 0
    registry: Registry = field(default_factory=Registry)
    n_answers: int = 0
    """Labels that people gave and that stand: what the budget counts. Two people may label one row."""
    people: Counter[str] = field(default_factory=Counter)
    """Standing answers of each person."""
    _said: dict[int, tuple[LabelEvent, ...]] = field(default_factory=dict, repr=False)
    """By row, the standing answers and the times it was accepted, in order."""
    _table: NDArray[Any] = field(default_factory=lambda: np.empty(0, _TABLE), repr=False)
    """One line for each row in ``_said``, by row."""
    _shared: frozenset[int] = frozenset()
    """Rows that more than one person labelled."""
    _voided: frozenset[int] = frozenset()
    _log: _Log = field(default=None, repr=False)

    @staticmethod
    def empty(is_test: BoolArray, events: Iterable[LabelEvent] = ()) -> LabelView:
        """The view before anything was said; ``events`` may tell that some of the rows were added later."""
        first = next((event.payload["first"] for event in events if event.kind == "add"), len(is_test))
        return LabelView(is_test[:first])

    @property
    def n_rows(self) -> int:
        return len(self.is_test)

    def with_rows(self, is_test: BoolArray) -> LabelView:
        """The same words over more rows, of which nothing is said."""
        return self if len(is_test) == self.n_rows else replace(self, is_test=is_test)

    # ------------------------------------------------------------------------------------------------- following

    def after(self, events: Iterable[LabelEvent]) -> LabelView:
        """The view after ``events`` as well; those that it knows already are passed over."""
        fresh = tuple(event for event in events if event.id > self.last_event)
        if not fresh:
            return self
        change = _Change(self)
        for position, event in enumerate(fresh):
            if event.kind == "void":
                target, before = event.payload["target"], _newest_first((self._log, fresh[:position]))
                reached = [e for e in before if target in e.names]
                if any(e.kind not in (*ANSWERS, "accept", "create", "add", "remove") for e in reached):
                    # A change of classes or a void is taken back: what it did is seen only by folding without it.
                    return _folded(self.is_test, (self._log, fresh))
                change.take_back(reached)
            else:
                change.take(event)
        return change.view((self._log, fresh), fresh[-1].id)

    def events(self) -> list[LabelEvent]:
        """All events so far, in order, with those that were taken back."""
        return list(_newest_first(self._log))[::-1]

    def check(self, events: Sequence[LabelEvent]) -> None:
        """Refuse what would make no sense as the next ``events``, before it is stored for ever."""
        made = {event.class_id for event in events if event.kind == "create"}
        for event in events:
            self._check_row(event)
            if event.kind in ("create", "rename") and clean_class_name(event.payload["name"]) != event.payload["name"]:
                raise DataError(f"The class name {event.payload['name']!a} is not in its clean form.")
            if event.kind == "void" and not any(event.payload.get("target") in e.names for e in self._newest_first()):
                raise DataError(f"There is no event or group {event.payload.get('target')!r} to undo.")
            if event.kind in ("label", "accept", "rename", "merge", "retire") and event.class_id not in made:
                self.registry.get(event.class_id)
            if event.kind == "merge":
                self.registry.get(event.payload.get("into"))
                if event.payload["into"] == event.class_id:
                    raise DataError("A class cannot be merged into itself.")
        if any(event.kind in (*CLASS_KINDS, "void") for event in events):
            then = self.after(replace(e, id=self.last_event + i) for i, e in enumerate(events, start=1))
            check_names(then.registry)

    def _check_row(self, event: LabelEvent) -> None:
        if event.row is None:
            if event.kind in (*ANSWERS, "accept"):
                raise DataError(f"An answer of kind {event.kind!r} names no row.")
        elif not 0 <= event.row < self.n_rows:
            raise DataError(f"There is no row {event.row}.")
        elif self.is_test[event.row] and event.kind != "remove":
            raise DataError(f"Row {event.row} is for testing; it takes no answers.")

    def _newest_first(self) -> Iterator[LabelEvent]:
        return _newest_first(self._log)

    # ---------------------------------------------------------------------------------------- what is said of rows

    def how(self, rows: IntArray) -> NDArray[np.int8]:
        """How each of ``rows`` came to its class (``How``)."""
        return np.asarray(self._lines(rows)["how"])

    def classes_of(self, rows: IntArray) -> IntArray:
        """The place of the class that people gave to each of ``rows``, labelled or accepted, after merges; or −1."""
        return np.asarray(self.registry.merged_place[self._lines(rows)["class"]])

    def rows(self, hows: Collection[How]) -> IntArray:
        """All rows that came to their class in one of these ways, rising."""
        return np.asarray(self._table["row"][among(self._table["how"], hows)])

    def settled_rows(self) -> tuple[IntArray, IntArray]:
        """The rows that nobody needs to be asked about, without test rows, and the place of the class of each after
        merges; −1 for junk and what was removed."""
        lines = self._table[among(self._table["how"], SETTLED)]
        return lines["row"], self.registry.merged_place[lines["class"]]

    def n(self, *hows: How) -> int:
        """How many rows came to their class in one of these ways."""
        return int(self._n_by_how[list(hows)].sum())

    @cached_property
    def _n_by_how(self) -> IntArray:
        return np.bincount(self._table["how"], minlength=len(How))

    @cached_property
    def unseen(self) -> IntArray:
        """The rows that were accepted without a look, rising: they have a class, and nobody has checked it."""
        accepted = self._table["how"] == How.ACCEPTED
        return np.asarray(self._table["row"][accepted & (self._table["asked"] == Picked.UNSEEN)])

    @cached_property
    def settled(self) -> BoolArray:
        """(n,) rows that nobody needs to be asked about: test rows, and what is labelled, accepted or junk."""
        mask = self.is_test.copy()
        mask[self.rows(SETTLED)] = True
        return mask

    @cached_property
    def is_removed(self) -> BoolArray:
        """(n,) rows that are held out for good."""
        mask = np.zeros(self.n_rows, np.bool_)
        mask[self.rows((How.REMOVED,))] = True
        return mask

    @cached_property
    def present_rows(self) -> IntArray:
        """All rows but the removed ones, rising."""
        return np.flatnonzero(~self.is_removed)

    @cached_property
    def train_rows(self) -> IntArray:
        """The rows that take answers, rising: neither removed nor for testing."""
        return np.flatnonzero(~self.is_removed & ~self.is_test)

    @cached_property
    def labels(self) -> NDArray[Any]:
        """The labels that training learns, the newest first, those known from the start last: ``row``, ``class`` (its
        place as it was said), ``id``, ``how`` …"""
        return _newest_lines_first(self._learned)

    def rows_of_class(self, place: int) -> IntArray:
        """The rows of those labels that a class has after merges, in the same order."""
        return np.asarray(_newest_lines_first(self._learned[self._learned_places == place])["row"])

    @cached_property
    def _learned(self) -> NDArray[Any]:
        """The same by row, which takes no sorting."""
        return np.asarray(self._table[among(self._table["how"], LEARNED)])

    @cached_property
    def _learned_places(self) -> IntArray:
        """The place of the class of each of them after merges; a place stays for ever."""
        return np.asarray(self.registry.merged_place[self._learned["class"]])

    @cached_property
    def _accepted(self) -> NDArray[Any]:
        """What was accepted by page and not labelled since, by row."""
        return np.asarray(self._table[self._table["how"] == How.ACCEPTED])

    @cached_property
    def _accepted_places(self) -> IntArray:
        return np.asarray(self.registry.merged_place[self._accepted["class"]])

    def learned_as_said(self) -> tuple[IntArray, IntArray]:
        """The rows whose label training learns, and the place of the class that each was given to, before merges."""
        return self._learned["row"], self._learned["class"]

    def learned(self) -> tuple[IntArray, IntArray]:
        """The same rows, and the place of the class of each after merges."""
        return self._learned["row"], self._learned_places

    def how_asked(self) -> tuple[IntArray, IntArray]:
        """The rows whose label training learns, and whether each was asked about (``Picked``)."""
        return self._learned["row"], self._learned["asked"].astype(np.int64)

    @property
    def n_labels(self) -> int:
        """How many labels training learns."""
        return len(self._learned)

    def n_labels_after(self, event: int) -> int:
        """How many labels that training learns were given after an event."""
        return int((self._learned["id"] > event).sum())

    def n_accepted_after(self, event: int) -> int:
        """How many rows were accepted by page after an event and not labelled since."""
        return int((self._accepted["id"] > event).sum())

    def class_of_row(self, row: int) -> ClassInfo | None:
        """The class that people gave to ``row``, labelled or accepted."""
        place = int(self.classes_of(np.array([row]))[0])
        return self.registry.infos[place] if place != NO_CLASS else None

    def answer(self, row: int) -> LabelEvent | None:
        """The event that counts for ``row``: an answer, or that it was accepted by page."""
        said = self._said.get(row)
        return _counting(said) if said else None

    def answers(self) -> list[tuple[int, LabelEvent]]:
        """``answer`` of every row that has one, by row."""
        return [(row, _counting(self._said[row])) for row in self._table["row"].tolist()]

    def answer_of(self, row: int, who: str) -> LabelEvent | None:
        """What ``who`` said last about ``row`` and has not taken back."""
        own = (event for event in reversed(self._said.get(row, ())) if event.who == who and event.kind in ANSWERS)
        return next(own, None)

    def people_who_answered(self, row: int) -> set[str]:
        """Everybody who said something about ``row``, except those whose word was known from the start."""
        said = self._said.get(row, ())
        return {event.who for event in said if event.kind in ANSWERS and event.source != "seed"}

    def is_closed(self, row: int) -> bool:
        """Whether ``row`` was accepted by page and nobody has labelled it or thrown it out since, or was removed."""
        said = self._said.get(row, ())
        return bool(said) and _how(_counting(said)) in (How.ACCEPTED, How.REMOVED)

    def removals(self, rows: Collection[int]) -> list[LabelEvent]:
        """The events by which those of ``rows`` that are removed are held out."""
        return [event for row in rows for event in self._said.get(row, ()) if event.kind == "remove"]

    def last_action(self, who: str | None = None) -> list[LabelEvent]:
        """The last thing that a person, or ``who``, did and that still stands: one event, or all of its group."""
        standing = (event for event in self._newest_first() if self._is_action(event))
        last = next((event for event in standing if who in (None, event.who)), None)
        if last is None or last.group is None:
            return [last] if last else []
        return [event for event in self.events() if event.group == last.group and self._is_action(event)]

    def _is_action(self, event: LabelEvent) -> bool:
        by_person = event.source in ("human", "import") and event.kind not in ("void", "create")
        return by_person and event.id not in self._voided

    def _lines(self, rows: IntArray) -> NDArray[Any]:
        """The lines of the table for ``rows``; one that says nothing for those that have none."""
        place = np.searchsorted(self._table["row"], rows)
        inside = np.minimum(place, max(len(self._table) - 1, 0))
        lines = np.zeros(len(rows), _TABLE)
        lines["class"] = lines["round"] = NO_CLASS
        if len(self._table):
            known = self._table["row"][inside] == rows
            lines[known] = self._table[inside[known]]
        return lines

    # --------------------------------------------------------------------------------------- counts and classes

    @cached_property
    def n_labels_of_class(self) -> IntArray:
        """By place of a class, how many labels that training learns it has after merges."""
        return np.bincount(self._learned_places, minlength=len(self.registry.classes))

    @cached_property
    def classes_in_use(self) -> list[ClassInfo]:
        """The classes that carry a label or were accepted for a row, in the order they were made; what only an audit
        named is a name and no class."""
        used = self._table["class"][among(self._table["how"], (*LEARNED, How.ACCEPTED))]
        n_used = np.bincount(self.registry.merged_place[used], minlength=len(self.registry.classes))
        return [self.registry.infos[place] for place in np.flatnonzero(n_used).tolist()]

    @cached_property
    def agreement(self) -> Agreement:
        """Over each person's last label of a row; labels known from the start are nobody's."""
        agreed = sum(len(self._labels_of_people(row)) == 1 for row in self._shared)
        return Agreement(len(self._shared), agreed / len(self._shared) if self._shared else None)

    def _labels_of_people(self, row: int) -> set[str]:
        own = _last_of_each(event for event in self._said[row] if event.source != "seed")
        labels = [event.class_id for event in own if event.kind == "label" and event.class_id is not None]
        return {self.registry.resolve(class_id).id for class_id in labels}

    @cached_property
    def carried(self) -> frozenset[str]:
        """The ids of the classes that training would learn: some row carries their label."""
        return frozenset(self.registry.infos[place].id for place in np.flatnonzero(self.n_labels_of_class).tolist())

    # ------------------------------------------------------------------------------------------- for training

    def state(self, pinned: frozenset[str] | None = None) -> tuple[LabelState, tuple[str, ...]]:
        """The arrays that training and asking read, and the class id behind each of their class numbers.

        ``pinned`` are the classes that were carried when base training began. The old ones among them keep their place
        for ever, merged, retired or empty, because their slots are pinned to their numbers. All other classes are
        listed while a row carries them, in the order they were named.
        """
        old_ids = self.carried if pinned is None else pinned
        old = [info for info in self.registry.infos if info.is_old and info.id in old_ids]
        is_old = {info.id for info in old}
        listed = old + [info for info in self.registry.infos if info.id in self.carried and info.id not in is_old]
        number = np.full(len(self.registry.classes) + 1, UNLABELLED, np.int64)
        number[[self.registry.place_of[info.id] for info in listed]] = np.arange(len(listed))
        y_class, asked_round = (np.full(self.n_rows, UNLABELLED, np.int64) for _ in range(2))
        held_out, passed = self.is_test.copy(), np.zeros(self.n_rows, np.bool_)
        table, labels = self._table, self.labels
        asked_round[table["row"]] = table["round"]
        y_class[labels["row"]] = number[self.registry.merged_place[labels["class"]]]
        # Labels of round 0 are their own slots, which only old classes are: a seed merged into a novel one is not.
        asked_round[labels["row"]] = np.maximum(labels["round"], y_class[labels["row"]] >= len(old))
        held_out[self.rows((How.HELD, *NOWHERE))] = True
        passed[self.rows((How.SKIPPED, How.UNSURE))] = True
        passed[table["row"][table["accepted"]]] = True
        names, ids = tuple(info.name for info in listed), tuple(info.id for info in listed)
        told = LabelState(names, len(old), y_class, asked_round, held_out, passed, self.last_event)
        if self.n(How.ACCEPTED):
            accepted = np.full(self.n_rows, UNLABELLED, np.int64)
            accepted[self._accepted["row"]] = number[self._accepted_places]
            told = replace(told, accepted=accepted)
        return told, ids

    def teaches_more_than(self, then: LabelView) -> bool:
        """Whether training would learn something that it could not learn from an earlier view: another label of some
        row, or another one accepted. Who repeats a label, skips a row or renames a class teaches nothing."""
        pairs = (
            (self._learned["row"], then._learned["row"]),
            (self._learned_places, then._learned_places),
            (self._accepted["row"], then._accepted["row"]),
            (self._accepted_places, then._accepted_places),
        )
        return not all(np.array_equal(now, before) for now, before in pairs)


def _newest_lines_first(learned: NDArray[Any]) -> NDArray[Any]:
    """Lines of the table, the newest first, those known from the start last."""
    return np.asarray(learned[np.lexsort((-learned["id"], learned["how"] == How.GIVEN))])


def among(how: NDArray[np.int8], hows: Collection[How]) -> BoolArray:
    """Whether each is one of these ways; ``np.isin`` takes many times as long for the few pictures of a page."""
    mask = np.zeros(len(How), np.bool_)
    mask[list(hows)] = True
    return mask[how]


class _Change:
    """The next view in the making: a copy of what may change, and which rows did."""

    def __init__(self, before: LabelView) -> None:
        self.before = before
        self.said, self.people = dict(before._said), Counter(before.people)
        self.voided, self.shared = set(before._voided), set(before._shared)
        self.n_answers, self.class_events = before.n_answers, list[LabelEvent]()
        self.touched: set[int] = set()
        self.is_test = before.is_test

    def take(self, event: LabelEvent) -> None:
        if event.kind in CLASS_KINDS:
            self.class_events.append(event)
        elif event.kind == "add":
            n, n_test = event.payload["n"], event.payload["n_test"]
            self.is_test = np.concatenate([self.is_test, np.arange(n) >= n - n_test])
        elif event.row is not None:
            self.said[event.row] = (*self.said.get(event.row, ()), event)
            self._count(event, 1)

    def take_back(self, reached: Iterable[LabelEvent]) -> None:
        for event in reached:
            if event.row is not None and event.id not in self.voided:
                self.voided.add(event.id)
                self.said[event.row] = tuple(other for other in self.said[event.row] if other.id != event.id)
                self._count(event, -1)

    def _count(self, event: LabelEvent, by: int) -> None:
        assert event.row is not None
        self.touched.add(event.row)
        self.n_answers += by * event.is_confirmed
        if event.kind in ANSWERS and event.source != "seed":
            self.people[event.who] += by

    def view(self, log: _Log, last_event: int) -> LabelView:
        registry = self.before.registry.after(self.class_events) if self.class_events else self.before.registry
        for row in self.touched:
            labelled = {e.who for e in _last_of_each(self.said[row]) if e.kind == "label" and e.source != "seed"}
            (self.shared.add if len(labelled) > 1 else self.shared.discard)(row)
            if not self.said[row]:
                del self.said[row]
        return LabelView(
            self.is_test,
            last_event,
            registry,
            self.n_answers,
            +self.people,  # without those who took everything back
            self.said,
            self._table(registry),
            frozenset(self.shared),
            frozenset(self.voided),
            log,
        )

    def _table(self, registry: Registry) -> NDArray[Any]:
        """The table with the lines of the touched rows as they are now; the others are copied as they stand."""
        rows = sorted(self.touched)
        lines = [_line(row, self.said[row], registry) for row in rows if row in self.said]
        changed, table = np.array(lines, _TABLE), self.before._table
        place = np.searchsorted(table["row"], rows)
        inside = place < len(table)
        known = place[inside][table["row"][place[inside]] == np.array(rows)[inside]]
        kept = np.delete(table, known) if len(known) else table
        return np.insert(kept, np.searchsorted(kept["row"], changed["row"]), changed)


def _folded(is_test: BoolArray, log: _Log) -> LabelView:
    """The view after all events of ``log``, from the first one on."""
    events = list(_newest_first(log))[::-1]
    voided, change = voided_ids(events), _Change(LabelView.empty(is_test, events))
    for event in events:
        if event.kind != "void" and event.id not in voided:
            change.take(event)
    change.voided = voided
    return change.view(log, events[-1].id)


def _newest_first(log: _Log) -> Iterator[LabelEvent]:
    while log is not None:
        log, events = log
        yield from reversed(events)


def _line(row: int, said: Sequence[LabelEvent], registry: Registry) -> tuple[int, int, int, int, int, int, bool]:
    """The line of the table for a row."""
    winner, counts = _winner(said), _counting(said)
    place = registry.place_of.get(counts.class_id or "", NO_CLASS)
    asked_round = UNLABELLED if winner is None else winner.round
    accepted = any(event.kind == "accept" for event in said)
    return row, counts.id, place, asked_round, _how(counts), _asked(counts), accepted


def _asked(event: LabelEvent) -> Picked:
    if event.payload.get("unseen"):
        return Picked.UNSEEN
    if event.query_id is None:
        return Picked.NOT
    return Picked.DRAWN if event.is_audit or event.payload.get("drawn") else Picked.CHOSEN


def _counting(said: Sequence[LabelEvent]) -> LabelEvent:
    """The event that counts for a row: that it was removed, else a label or junk before a page that was accepted, and
    that before a skip."""
    removed = next((event for event in said if event.kind == "remove"), None)
    if removed is not None:
        return removed
    winner = _winner(said)
    accepted = next((event for event in reversed(said) if event.kind == "accept"), None)
    counts = winner if accepted is None or (winner and winner.kind in _DECIDED) else accepted
    assert counts is not None
    return counts


def _how(event: LabelEvent) -> How:
    if event.kind in ("accept", "remove"):
        return How.ACCEPTED if event.kind == "accept" else How.REMOVED
    if event.kind != "label":
        return _PASSED[event.kind]
    return How.HELD if event.is_audit else How.GIVEN if event.source == "seed" else How.ANSWERED


def _winner(said: Iterable[LabelEvent]) -> LabelEvent | None:
    """The answer that counts for a row.

    Of each person the last one; among people the last label or junk, because somebody else's "skip" must not take a
    label away.
    """
    return max(_last_of_each(said), key=lambda event: (event.kind in _DECIDED, event.id), default=None)


def _last_of_each(said: Iterable[LabelEvent]) -> list[LabelEvent]:
    """The last answer of every person about a row."""
    return list({event.who: event for event in said if event.kind in ANSWERS}.values())
