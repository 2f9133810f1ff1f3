"""What stands now, followed event by event, is what folding all events anew says."""

from __future__ import annotations

from typing import cast

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from agcd.app.store.classes import fold_classes
from agcd.app.store.events import LabelEvent, live_events, n_confirmed
from agcd.app.store.fold import accepted_rows, agreement, fold, winning_answers
from agcd.app.store.standing import Follower
from agcd.app.store.store import Store
from support.histories import FakeStore, histories


@settings(max_examples=150, deadline=None)
@given(histories(), st.data())
def test_following_events_equals_folding_them_anew(events: list[LabelEvent], data: st.DataObject) -> None:
    store, follower = FakeStore(), Follower()
    while len(store.all) < len(events):
        store.all = events[: len(store.all) + data.draw(st.integers(1, 4))]
        standing, live = follower.standing(cast(Store, store)), live_events(store.all)
        assert standing.last_event == store.all[-1].id
        assert standing.registry == fold_classes(live)
        assert standing.answers == winning_answers(live)
        assert standing.counts["confirmed"] == n_confirmed(live)
        assert standing.agreement == agreement(live, standing.registry)


def number(*events: LabelEvent) -> list[LabelEvent]:
    return [LabelEvent(**{**vars(event), "id": i}) for i, event in enumerate(events, start=1)]


def said(kind: str, row: int, **payload: bool) -> LabelEvent:
    class_id = "c" if kind in ("label", "accept") else None
    return LabelEvent(kind, "ann", "human", row=row, class_id=class_id, payload=payload)  # type: ignore[arg-type]


MADE = LabelEvent("create", "ann", "human", class_id="c", payload={"name": "cat", "old": False})


def test_accepted_rows_are_no_labels_and_a_label_takes_their_place() -> None:
    store, follower = FakeStore(), Follower()
    store.all = number(MADE, said("accept", 0), said("accept", 1), said("accept", 2), said("skip", 2), said("label", 1))
    standing = follower.standing(cast(Store, store))
    assert sorted(standing.accepted) == [0, 2]
    assert [standing.class_of(row) for row in range(3)] == [None, "c", None]
    assert standing.accepted_class(0) == "c"
    state = fold(store.all, np.zeros(4, bool))
    assert state.y_class.tolist() == [-1, 0, -1, -1]
    assert state.pool_rows.tolist() == [3]
    assert sorted(accepted_rows(store.all)) == [0, 1, 2]


def test_answers_of_an_audit_are_neither_learned_nor_counted() -> None:
    events = number(MADE, said("label", 0, audit=True), said("label", 1), said("skip", 2, audit=True))
    state = fold(events, np.zeros(4, bool))
    assert state.labelled_rows.tolist() == [1]
    assert state.train_rows.tolist() == [1, 2, 3]
    assert n_confirmed(events) == 1
    only_audit = fold(events[:2], np.zeros(4, bool))
    assert only_audit.classes == ()
