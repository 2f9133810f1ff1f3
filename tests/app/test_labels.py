"""The view of what people say: as a slow, obvious twin says, and followed event by event as folded anew."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agcd.app.labels import How, LabelView
from agcd.app.store.events import LabelEvent
from agcd.types import LabelState
from support.histories import PEOPLE, histories

IS_TEST = np.array([False, False, False, True])


def is_test_after(events: list[LabelEvent]) -> list[bool]:
    flags: list[bool] = IS_TEST.tolist()
    for event in events:
        if event.kind == "add":
            n, n_test = event.payload["n"], event.payload["n_test"]
            flags += [False] * (n - n_test) + [True] * n_test
    return flags


def seen(events: list[LabelEvent]) -> LabelView:
    return LabelView.empty(IS_TEST).after(events)


def fold(events: list[LabelEvent], base_event: int | None = None) -> LabelState:
    """The label state after ``events``; ``base_event`` is the last one that base training knew."""
    known = [event for event in events if base_event is None or event.id <= base_event]
    return seen(events).state(None if base_event is None else seen(known).carried)[0]


def reduced(
    events: list[LabelEvent],
) -> tuple[dict[int, LabelEvent], dict[str, str], dict[str, str], dict[int, str], set[int]]:
    """The answer that counts for each row, what each class stands for and is called, what each row was accepted as by
    page, and which are removed, asked anew of all events."""

    @cache
    def stands(number: int) -> bool:
        event = events[number - 1]
        later = [v for v in events[number:] if v.kind == "void" and v.payload["target"] in (event.uid, event.group)]
        return event.kind in ("create", "add") or not any(stands(void.id) for void in later)

    standing = [event for event in events if stands(event.id)]
    created = [event for event in standing if event.kind == "create"]
    owner = {str(event.class_id): str(event.class_id) for event in created}
    name = {str(event.class_id): event.payload["name"] for event in created}
    for event in standing:
        class_id = str(event.class_id)
        if event.kind == "rename" and owner[class_id] == class_id:
            name[class_id] = event.payload["name"]
        if event.kind == "merge" and owner[class_id] == class_id and owner[event.payload["into"]] != class_id:
            into = owner[event.payload["into"]]
            owner = {c: into if o == class_id else o for c, o in owner.items()}
    winner: dict[int, LabelEvent] = {}
    answers = [e for e in standing if e.kind not in ("accept", "remove")]
    for row in range(len(is_test_after(events))):
        about = [[e for e in answers if e.row == row and e.who == who] for who in PEOPLE]
        finals = sorted((own[-1] for own in about if own), key=lambda e: e.id)
        decided = [e for e in finals if e.kind in ("label", "junk")]
        if finals:
            winner[row] = (decided or finals)[-1]
    accepted = {int(e.row): str(e.class_id) for e in standing if e.kind == "accept" and e.row is not None}
    removed = {int(e.row) for e in standing if e.kind == "remove" and e.row is not None}
    return winner, owner, name, accepted, removed


def carried(events: list[LabelEvent]) -> set[str]:
    winner, owner, _, _, removed = reduced(events)
    return {owner[str(e.class_id)] for row, e in winner.items() if learned(e) and row not in removed}


def learned(event: LabelEvent) -> bool:
    return event.kind == "label" and not event.is_audit


def twin(events: list[LabelEvent], base_event: int | None) -> LabelState:
    """What ``fold`` should say, slowly."""
    (winner, owner, name, accepted, removed), is_test = reduced(events), is_test_after(events)
    flagged = {str(e.class_id) for e in events if e.kind == "create" and e.payload["old"]}
    at_base = carried([e for e in events if base_event is None or e.id <= base_event])
    old = [c for c in name if c in flagged and c in at_base]
    listed = old + [c for c in name if c in carried(events) and c not in old]

    def asked(row: int) -> int:
        if row not in winner:
            return -1
        of_novel = row not in removed and learned(winner[row]) and owner[str(winner[row].class_id)] not in old
        return 1 if of_novel and winner[row].round == 0 else winner[row].round

    rows = range(len(is_test))
    counts = [winner.get(row) for row in rows]
    kind_of = [None if e is None else "held" if e.kind == "label" and e.is_audit else e.kind for e in counts]
    kind_of = ["removed" if row in removed else kind for row, kind in enumerate(kind_of)]
    undecided = [row for row in accepted if kind_of[row] not in ("label", "held", "junk", "removed")]
    by_page = {row: owner[accepted[row]] for row in undecided}
    return LabelState(
        tuple(name[c] for c in listed),
        len(old),
        np.array(
            [
                listed.index(owner[str(winner[row].class_id)]) if kind == "label" else -1
                for row, kind in enumerate(kind_of)
            ]
        ),
        np.array([asked(row) for row in rows]),
        np.array([kind in ("junk", "held", "removed") or is_test[row] for row, kind in enumerate(kind_of)]),
        np.array([row in accepted or kind in ("skip", "unsure") for row, kind in enumerate(kind_of)]),
        len(events),
        np.array([listed.index(by_page[row]) if by_page.get(row) in listed else -1 for row in rows])
        if by_page
        else None,
    )


@settings(max_examples=600, deadline=None)
@given(histories(), st.none() | st.integers(1, 14))
def test_the_fold_equals_its_slow_twin(events: list[LabelEvent], base_event: int | None) -> None:
    folded, expected = fold(events, base_event), twin(events, base_event)
    for name, value in vars(expected).items():
        np.testing.assert_array_equal(getattr(folded, name), value, err_msg=name)


@settings(max_examples=100, deadline=None)
@given(histories())
def test_taking_a_void_back_restores_what_it_undid(events: list[LabelEvent]) -> None:
    target = events[-1].uid
    undo = LabelEvent("void", "ann", "human", payload={"target": target}, uid="undo", id=len(events) + 1)
    redo = LabelEvent("void", "ann", "human", payload={"target": "undo"}, uid="redo", id=len(events) + 2)
    before, after = fold(events), fold([*events, undo, redo])
    assert before.classes == after.classes
    for name in ("y_class", "asked_round", "held_out", "passed"):
        np.testing.assert_array_equal(getattr(before, name), getattr(after, name))


def numbered(*events: LabelEvent) -> list[LabelEvent]:
    return [LabelEvent(**{**vars(event), "id": i}) for i, event in enumerate(events, start=1)]


def create(class_id: str, *, old: bool = False) -> LabelEvent:
    return LabelEvent("create", "ann", "human", class_id=class_id, payload={"name": class_id, "old": old})


def label(row: int, class_id: str, who: str = "ann", **values: Any) -> LabelEvent:
    return LabelEvent("label", who, values.pop("source", "human"), row=row, class_id=class_id, **values)


def test_old_classes_come_first_and_novel_ones_in_the_order_of_naming() -> None:
    events = numbered(
        create("z"), create("b", old=True), create("a"), create("unused"), label(0, "a"), label(1, "z"), label(2, "b")
    )
    state = fold(events)
    assert state.classes == ("b", "z", "a")
    assert state.n_old == 1
    np.testing.assert_array_equal(state.y_class, [2, 1, 0, -1])


def test_a_merged_old_class_keeps_its_place_because_its_slot_is_pinned() -> None:
    merge = LabelEvent("merge", "ann", "human", class_id="a", payload={"into": "b"})
    events = numbered(create("a", old=True), create("b", old=True), label(0, "a"), label(1, "b"), merge)
    state = fold(events, base_event=4)
    assert state.classes == ("a", "b")
    assert state.n_old == 2
    np.testing.assert_array_equal(state.y_class, [1, 1, -1, -1])


def test_an_old_class_that_lost_its_labels_before_base_training_is_no_class() -> None:
    undo = LabelEvent("void", "ann", "human", payload={"target": "slip"})
    events = numbered(create("slip of the pen", old=True), label(0, "slip of the pen", uid="slip"), undo)
    for base_event in (None, 3):
        assert fold(events, base_event).classes == ()
    again = numbered(*events, label(1, "slip of the pen"))
    state = fold(again, base_event=3)
    assert (state.classes, state.n_old) == (("slip of the pen",), 0)


def test_somebody_elses_skip_takes_no_label_away_but_ones_own_does() -> None:
    skip = LabelEvent("skip", "bob", "human", row=0)
    events = numbered(create("a"), label(0, "a"), skip)
    assert fold(events).y_class[0] == 0
    own = numbered(create("a"), label(0, "a", who="bob"), skip)
    assert fold(own).y_class[0] == -1
    assert fold(own).passed[0]


def test_a_group_is_undone_as_one_and_classes_stay_names() -> None:
    undo = LabelEvent("void", "ann", "human", payload={"target": "batch"})
    events = numbered(create("a"), label(0, "a", group="batch"), label(1, "a", group="batch"), label(2, "a"), undo)
    np.testing.assert_array_equal(fold(events).y_class, [-1, -1, 0, -1])
    assert "a" in seen(events).registry.classes


def test_the_budget_counts_labels_of_people_that_stand() -> None:
    first = label(0, "a", uid="first")
    undo = LabelEvent("void", "ann", "human", payload={"target": "first"})
    skip = LabelEvent("skip", "ann", "human", row=2)
    seeds = label(1, "a", source="seed"), label(2, "a", source="oracle")
    events = numbered(create("a"), first, *seeds, skip, label(2, "a", source="import"))
    assert seen(events).n_answers == 2
    assert seen(numbered(*events, undo)).n_answers == 1


@pytest.mark.parametrize(("merged", "share"), [(False, 0.5), (True, 1.0)])
def test_agreement_is_over_rows_that_several_people_labelled(merged: bool, share: float) -> None:
    merge = [LabelEvent("merge", "ann", "human", class_id="b", payload={"into": "a"})] if merged else []
    said = [label(0, "a"), label(0, "a", who="bob"), label(1, "a"), label(1, "b", who="bob"), label(2, "a")]
    found = seen(numbered(create("a"), create("b"), *said, *merge)).agreement
    assert (found.n_rows, found.share) == (2, share)


def test_without_shared_rows_there_is_no_agreement_to_speak_of() -> None:
    view = seen(numbered(create("a"), label(0, "a"), label(0, "a", source="seed", who="")))
    assert view.agreement.share is None


def facts(view: LabelView) -> dict[str, Any]:
    """Everything that a view says, as plain values."""
    rows = np.arange(view.n_rows)
    state, ids = view.state()
    return {
        "is_test": view.is_test.tolist(),
        "present": view.present_rows.tolist(),
        "last_event": view.last_event,
        "registry": view.registry,
        "how": view.how(rows).tolist(),
        "classes": view.classes_of(rows).tolist(),
        "answers": [view.answer(row) for row in rows.tolist()],
        "labels": [tuple(line) for line in view.labels.tolist()],
        "counts": (view.n_answers, view.people, view.agreement, view.classes_in_use, view.carried),
        "last actions": [view.last_action(who) for who in (None, *PEOPLE)],
        "of people": [[view.answer_of(row, who) for who in PEOPLE] for row in rows.tolist()],
        "answered": [view.people_who_answered(row) for row in rows.tolist()],
        "state": {name: np.asarray(value).tolist() for name, value in vars(state).items()},
        "ids": ids,
        "events": view.events(),
    }


@settings(max_examples=400, deadline=None)
@given(histories(), st.data())
def test_following_events_equals_folding_them_anew(events: list[LabelEvent], data: st.DataObject) -> None:
    view, n_seen = LabelView.empty(IS_TEST), 0
    while n_seen < len(events):
        n_seen = min(len(events), n_seen + data.draw(st.integers(1, 4)))
        before, view = facts(view), view.after(events[:n_seen])  # those that it knows are passed over
        assert facts(view) == facts(seen(events[:n_seen]))
        assert facts(seen(events[: before["last_event"]])) == before, "the view before has not changed"


@settings(max_examples=200, deadline=None)
@given(histories())
def test_every_row_is_counted_exactly_once(events: list[LabelEvent]) -> None:
    view = seen(events)
    assert view.n(*How) - view.n(How.NOTHING) == sum(len(view.rows((how,))) for how in How if how != How.NOTHING)
    for how in How:
        rows = np.flatnonzero(view.how(np.arange(view.n_rows)) == how)
        assert view.n(how) == len(rows) or how == How.NOTHING
        if how != How.NOTHING:
            assert view.rows((how,)).tolist() == rows.tolist()


def said(kind: Any, row: int, **payload: bool) -> LabelEvent:
    class_id = "c" if kind in ("label", "accept") else None
    return LabelEvent(kind, "ann", "human", row=row, class_id=class_id, payload=payload)


def test_accepted_rows_are_no_labels_and_a_label_takes_their_place() -> None:
    events = (create("c"), said("accept", 0), said("accept", 1), said("accept", 2), said("skip", 2), said("label", 1))
    view = LabelView.empty(np.zeros(4, bool)).after(numbered(*events))
    assert view.rows((How.ACCEPTED,)).tolist() == [0, 2]
    assert view.how(np.arange(4)).tolist() == [How.ACCEPTED, How.ANSWERED, How.ACCEPTED, How.NOTHING]
    assert view.classes_of(np.arange(4)).tolist() == [0, 0, 0, -1]
    state, _ = view.state()
    assert state.y_class.tolist() == [-1, 0, -1, -1]
    assert state.pool_rows.tolist() == [3]


def test_answers_of_an_audit_are_neither_learned_nor_counted_and_make_no_class() -> None:
    events = numbered(create("c"), said("label", 0, audit=True), said("label", 1), said("skip", 2, audit=True))
    view = LabelView.empty(np.zeros(4, bool)).after(events)
    state, _ = view.state()
    assert state.labelled_rows.tolist() == [1]
    assert state.train_rows.tolist() == [1, 2, 3]
    assert (view.n_answers, view.n(How.HELD), view.n(How.JUNK)) == (1, 1, 0)
    only_audit = LabelView.empty(np.zeros(4, bool)).after(events[:2])
    assert only_audit.state()[0].classes == ()
    assert only_audit.classes_in_use == []
    named = only_audit.class_of_row(0)
    assert named is not None, "a person said what it is"
    assert named.name == "c"


@pytest.mark.parametrize(
    ("more", "teaches"),
    [
        ([label(0, "a", who="bob")], False),
        ([LabelEvent("skip", "bob", "human", row=1)], False),
        ([LabelEvent("rename", "bob", "human", class_id="a", payload={"name": "z"})], False),
        ([LabelEvent("accept", "bob", "human", row=0, class_id="b")], False),
        ([LabelEvent("accept", "bob", "human", row=1, class_id="b")], True),
        ([label(1, "a")], True),
        ([label(0, "b")], True),
        ([LabelEvent("merge", "bob", "human", class_id="a", payload={"into": "b"})], True),
        ([LabelEvent("void", "ann", "human", payload={"target": "first"})], True),
    ],
)
def test_only_another_label_or_accepted_row_teaches_something(more: list[LabelEvent], teaches: bool) -> None:
    begun = [create("a"), create("b"), label(0, "a", uid="first")]
    then, now = seen(numbered(*begun)), seen(numbered(*begun, *more))
    assert now.teaches_more_than(then) is teaches
