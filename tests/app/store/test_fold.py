"""Events fold into label states as a slow, obvious twin says, whatever was said, merged and taken back."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agcd.app.store.classes import fold_classes
from agcd.app.store.events import LabelEvent, live_events, n_confirmed
from agcd.app.store.fold import agreement, fold
from agcd.types import LabelState
from support.histories import PEOPLE, histories

N_ROWS = 4
IS_TEST = np.array([False, False, False, True])


def reduced(events: list[LabelEvent]) -> tuple[dict[int, LabelEvent], dict[str, str], dict[str, str]]:
    """The answer that counts for each row, and what each class stands for and is called, asked anew of all events."""

    @cache
    def stands(number: int) -> bool:
        event = events[number - 1]
        later = [v for v in events[number:] if v.kind == "void" and v.payload["target"] in (event.uid, event.group)]
        return event.kind == "create" or not any(stands(void.id) for void in later)

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
    for row in range(N_ROWS):
        about = [[e for e in standing if e.row == row and e.who == who] for who in PEOPLE]
        finals = sorted((own[-1] for own in about if own), key=lambda e: e.id)
        decided = [e for e in finals if e.kind in ("label", "junk")]
        if finals:
            winner[row] = (decided or finals)[-1]
    return winner, owner, name


def carried(events: list[LabelEvent]) -> set[str]:
    winner, owner, _ = reduced(events)
    return {owner[str(e.class_id)] for e in winner.values() if e.kind == "label"}


def twin(events: list[LabelEvent], base_event: int | None) -> LabelState:
    """What ``fold`` should say, slowly."""
    winner, owner, name = reduced(events)
    flagged = {str(e.class_id) for e in events if e.kind == "create" and e.payload["old"]}
    at_base = carried([e for e in events if base_event is None or e.id <= base_event])
    old = [c for c in name if c in flagged and c in at_base]
    listed = old + [c for c in name if c in carried(events) and c not in old]

    def asked(row: int) -> int:
        if row not in winner:
            return -1
        of_novel = winner[row].kind == "label" and owner[str(winner[row].class_id)] not in old
        return 1 if of_novel and winner[row].round == 0 else winner[row].round

    kind_of = [winner[row].kind if row in winner else None for row in range(N_ROWS)]
    return LabelState(
        tuple(name[c] for c in listed),
        len(old),
        np.array(
            [
                listed.index(owner[str(winner[row].class_id)]) if kind == "label" else -1
                for row, kind in enumerate(kind_of)
            ]
        ),
        np.array([asked(row) for row in range(N_ROWS)]),
        np.array([kind == "junk" or bool(IS_TEST[row]) for row, kind in enumerate(kind_of)]),
        np.array([kind in ("skip", "unsure") for kind in kind_of]),
        len(events),
    )


@settings(max_examples=600, deadline=None)
@given(histories(), st.none() | st.integers(1, 14))
def test_the_fold_equals_its_slow_twin(events: list[LabelEvent], base_event: int | None) -> None:
    folded, expected = fold(events, IS_TEST, base_event), twin(events, base_event)
    for name, value in vars(expected).items():
        np.testing.assert_array_equal(getattr(folded, name), value, err_msg=name)


@settings(max_examples=100, deadline=None)
@given(histories())
def test_taking_a_void_back_restores_what_it_undid(events: list[LabelEvent]) -> None:
    target = events[-1].uid
    undo = LabelEvent("void", "ann", "human", payload={"target": target}, uid="undo", id=len(events) + 1)
    redo = LabelEvent("void", "ann", "human", payload={"target": "undo"}, uid="redo", id=len(events) + 2)
    before, after = fold(events, IS_TEST), fold([*events, undo, redo], IS_TEST)
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
    state = fold(events, IS_TEST)
    assert state.classes == ("b", "z", "a")
    assert state.n_old == 1
    np.testing.assert_array_equal(state.y_class, [2, 1, 0, -1])


def test_a_merged_old_class_keeps_its_place_because_its_slot_is_pinned() -> None:
    merge = LabelEvent("merge", "ann", "human", class_id="a", payload={"into": "b"})
    events = numbered(create("a", old=True), create("b", old=True), label(0, "a"), label(1, "b"), merge)
    state = fold(events, IS_TEST, base_event=4)
    assert state.classes == ("a", "b")
    assert state.n_old == 2
    np.testing.assert_array_equal(state.y_class, [1, 1, -1, -1])


def test_an_old_class_that_lost_its_labels_before_base_training_is_no_class() -> None:
    undo = LabelEvent("void", "ann", "human", payload={"target": "slip"})
    events = numbered(create("slip of the pen", old=True), label(0, "slip of the pen", uid="slip"), undo)
    for base_event in (None, 3):
        assert fold(events, IS_TEST, base_event).classes == ()
    again = numbered(*events, label(1, "slip of the pen"))
    state = fold(again, IS_TEST, base_event=3)
    assert (state.classes, state.n_old) == (("slip of the pen",), 0)


def test_somebody_elses_skip_takes_no_label_away_but_ones_own_does() -> None:
    skip = LabelEvent("skip", "bob", "human", row=0)
    events = numbered(create("a"), label(0, "a"), skip)
    assert fold(events, IS_TEST).y_class[0] == 0
    own = numbered(create("a"), label(0, "a", who="bob"), skip)
    assert fold(own, IS_TEST).y_class[0] == -1
    assert fold(own, IS_TEST).passed[0]


def test_a_group_is_undone_as_one_and_classes_stay_names() -> None:
    undo = LabelEvent("void", "ann", "human", payload={"target": "batch"})
    events = numbered(create("a"), label(0, "a", group="batch"), label(1, "a", group="batch"), label(2, "a"), undo)
    np.testing.assert_array_equal(fold(events, IS_TEST).y_class, [-1, -1, 0, -1])
    assert "a" in fold_classes(live_events(events)).classes


def test_the_budget_counts_labels_of_people_that_stand() -> None:
    first = label(0, "a", uid="first")
    undo = LabelEvent("void", "ann", "human", payload={"target": "first"})
    skip = LabelEvent("skip", "ann", "human", row=2)
    seeds = label(1, "a", source="seed"), label(2, "a", source="oracle")
    events = numbered(create("a"), first, *seeds, skip, label(2, "a", source="import"))
    assert n_confirmed(live_events(events)) == 2
    assert n_confirmed(live_events(numbered(*events, undo))) == 1


@pytest.mark.parametrize(("merged", "share"), [(False, 0.5), (True, 1.0)])
def test_agreement_is_over_rows_that_several_people_labelled(merged: bool, share: float) -> None:
    merge = [LabelEvent("merge", "ann", "human", class_id="b", payload={"into": "a"})] if merged else []
    said = [label(0, "a"), label(0, "a", who="bob"), label(1, "a"), label(1, "b", who="bob"), label(2, "a")]
    live = live_events(numbered(create("a"), create("b"), *said, *merge))
    found = agreement(live, fold_classes(live))
    assert (found.n_rows, found.share) == (2, share)


def test_without_shared_rows_there_is_no_agreement_to_speak_of() -> None:
    live = live_events(numbered(create("a"), label(0, "a"), label(0, "a", source="seed", who="")))
    assert agreement(live, fold_classes(live)).share is None
