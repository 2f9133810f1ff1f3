"""From events to the arrays that training and asking read, and to what annotators agree on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agcd.app.store.classes import Registry, fold_classes
from agcd.app.store.events import ANSWERS, LabelEvent, live_events
from agcd.types import UNLABELLED, BoolArray, LabelState

DECIDED = ("label", "junk")
"""Answers that settle what a row is."""


def fold(events: Sequence[LabelEvent], is_test: BoolArray, base_event: int | None = None) -> LabelState:
    """All that was said up to the last of ``events``, over the rows that ``is_test`` (n,) numbers."""
    return fold_with_ids(events, is_test, base_event)[0]


def fold_with_ids(
    events: Sequence[LabelEvent], is_test: BoolArray, base_event: int | None = None
) -> tuple[LabelState, tuple[str, ...]]:
    """The label state, and the class id behind each of its class numbers.

    ``base_event`` is the last event that base training knew, if it has begun. The old classes that carried a label
    then keep their place for ever, merged, retired or empty, because their slots are pinned to their numbers. All other
    classes are listed while a row carries them, in the order they were named. Rows of a blind audit are held out: what
    measures the model must not teach it. Rows accepted by page stay unlabelled, but are not asked about.
    """
    live = live_events(events)
    registry, answers = fold_classes(live), winning_answers(live)
    class_of_row = _class_of_row(registry, answers)
    used = set(class_of_row.values())
    pinned = used if base_event is None else _carried_at(base_event, events)
    old = [info for info in registry.classes.values() if info.is_old and info.id in pinned]
    rest = [info for info in registry.classes.values() if info.id in used and not (info.is_old and info.id in pinned)]
    listed = old + rest
    number = {info.id: c for c, info in enumerate(listed)}
    y_class, asked_round = (np.full(len(is_test), UNLABELLED, dtype=np.int64) for _ in range(2))
    held_out, passed = is_test.copy(), np.zeros(len(is_test), dtype=np.bool_)
    passed[list(accepted_rows(live))] = True
    for row, event in answers.items():
        asked_round[row] = event.round
        if event.is_audit and event.kind == "label":
            held_out[row] = True
        elif event.kind == "label":
            y_class[row] = number[class_of_row[row]]
            # Labels of round 0 are their own slots, which only old classes are: a seed merged into a novel one is not.
            asked_round[row] = max(event.round, int(y_class[row] >= len(old)))
        elif event.kind == "junk":
            held_out[row] = True
        else:
            passed[row] = True
    names, ids = tuple(info.name for info in listed), tuple(info.id for info in listed)
    last_event = max((event.id for event in events), default=0)
    return LabelState(names, len(old), y_class, asked_round, held_out, passed, last_event), ids


def _carried_at(base_event: int, events: Sequence[LabelEvent]) -> set[str]:
    """The classes that some row carried when ``base_event`` was the last event."""
    live = live_events([event for event in events if event.id <= base_event])
    return set(_class_of_row(fold_classes(live), winning_answers(live)).values())


def _class_of_row(registry: Registry, answers: Mapping[int, LabelEvent]) -> dict[int, str]:
    """The classes that training may learn: those of an audit are not among them."""
    return {
        row: registry.resolve(event.class_id).id
        for row, event in answers.items()
        if event.class_id is not None and not event.is_audit
    }


def accepted_rows(live: Iterable[LabelEvent]) -> dict[int, LabelEvent]:
    """The last time that each row was accepted by page."""
    return {event.row: event for event in live if event.kind == "accept" and event.row is not None}


def winning_answers(live: Iterable[LabelEvent]) -> dict[int, LabelEvent]:
    """The answer that counts for each row.

    Of each person the last one; among people the last label or junk, because somebody else's "skip" must not take a
    label away.
    """
    winner: dict[int, LabelEvent] = {}
    for event in _last_of_each(live):
        assert event.row is not None
        known = winner.get(event.row)
        if known is None or _weight(event) > _weight(known):
            winner[event.row] = event
    return winner


def _weight(event: LabelEvent) -> tuple[bool, int]:
    return event.kind in DECIDED, event.id


def _last_of_each(live: Iterable[LabelEvent]) -> list[LabelEvent]:
    """The last answer of every person about every row."""
    last = {(event.row, event.who): event for event in live if event.kind in ANSWERS}
    return list(last.values())


@dataclass(frozen=True)
class Agreement:
    """How often people agree: rows labelled by two or more, and the share of them with one label only."""

    n_rows: int
    share: float | None


def agreement(live: Iterable[LabelEvent], registry: Registry) -> Agreement:
    """Over each person's last label of a row; labels known from the start are nobody's."""
    said: defaultdict[int | None, list[str]] = defaultdict(list)
    for event in _last_of_each(live):
        if event.kind == "label" and event.source != "seed" and event.class_id is not None:
            said[event.row].append(registry.resolve(event.class_id).id)
    shared = [labels for labels in said.values() if len(labels) > 1]
    agreed = sum(len(set(labels)) == 1 for labels in shared)
    return Agreement(len(shared), agreed / len(shared) if shared else None)
