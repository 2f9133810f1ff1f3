"""Random histories of label events."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from agcd.app.store.events import LabelEvent

PEOPLE = ("ann", "bob")
_KINDS = ["label", "label", "accept", "skip", "unsure", "junk", "void", "merge", "rename", "retire", "remove", "add"]
N_ROWS, N_TEST = 4, 1
"""Rows before any are added; the last one is for testing."""


@st.composite
def histories(draw: st.DrawFn) -> list[LabelEvent]:
    """Up to 14 events over three train rows, two people and a few classes, with groups, merges and voids of voids; rows
    are added and removed."""
    events: list[LabelEvent] = []
    made: list[str] = []
    train, n_rows = list(range(N_ROWS - N_TEST)), N_ROWS

    def add(kind: Any, source: Any = "human", **values: Any) -> None:
        number = len(events) + 1
        group = draw(st.sampled_from([None, "g1", "g2"]))
        who = draw(st.sampled_from(PEOPLE))
        events.append(LabelEvent(kind, who, source, uid=f"e{number}", id=number, group=group, **values))

    for _ in range(draw(st.integers(1, 3))):
        made.append(f"c{len(made)}")
        add("create", class_id=made[-1], payload={"name": f"name {made[-1]}", "old": draw(st.booleans())})
    for _ in range(draw(st.integers(0, 11))):
        kind = draw(st.sampled_from(_KINDS))
        class_id, other = draw(st.sampled_from(made)), draw(st.sampled_from(made))
        row, round_ = draw(st.sampled_from(train)), draw(st.integers(0, 3))
        if kind in ("label", "accept"):
            audit = {"audit": True} if kind == "label" and draw(st.integers(0, 5)) == 0 else {}
            add(kind, row=row, class_id=class_id, round=round_, payload=audit)
        elif kind in ("skip", "unsure", "junk", "remove"):
            add(kind, row=row, round=round_)
        elif kind == "add":
            n = draw(st.integers(1, 2))
            n_test = draw(st.integers(0, n))
            add(kind, "seed", payload={"first": n_rows, "n": n, "n_test": n_test})
            train += range(n_rows, n_rows + n - n_test)
            n_rows += n
        elif kind == "void":
            add(kind, payload={"target": draw(st.sampled_from([*(e.uid for e in events), "g1", "g2"]))})
        elif kind == "merge":
            add(kind, class_id=class_id, payload={"into": other})
        elif kind == "rename":
            add(kind, class_id=class_id, payload={"name": f"new name {len(events)}"})
        else:
            add(kind, class_id=class_id)
    return events
