"""What a moment says of rows, groups and slots is what plain loops over all events would say."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agcd.app.labels import How, LabelView
from agcd.app.rounds import NO_SLOT, RoundView, audit_of, slot_owners
from agcd.app.snapshot import SOURCES, Group, Snapshot
from agcd.app.store.events import LabelEvent, voided_ids
from support.snapshots import IS_TEST, N_ROWS, N_SLOTS, made_up_round, snapshots

SEEDS = range(12)


def standing_answers(snapshot: Snapshot) -> dict[int, LabelEvent]:
    """The answer that counts for each row, by a loop over everything that stands."""
    events = snapshot.labels.events()
    voided = voided_ids(events)
    winner: dict[int, LabelEvent] = {}
    for row in range(N_ROWS):
        about = [e for e in events if e.row == row and e.id not in voided and e.kind not in ("accept", "void")]
        last = [next(e for e in reversed(about) if e.who == who) for who in {e.who for e in about}]
        decided = [e for e in last if e.kind in ("label", "junk")]
        if last:
            winner[row] = max(decided or last, key=lambda e: e.id)
    return winner


@pytest.mark.parametrize("seed", SEEDS)
def test_a_moment_agrees_with_loops_over_all_answers(seed: int) -> None:
    slot_of = made_up_round(seed).top_slots[:, 0].tolist()
    for snapshot in snapshots(seed):
        labels, registry, answers = snapshot.labels, snapshot.labels.registry, standing_answers(snapshot)
        place = {
            row: registry.place_of[registry.resolve(str(e.class_id)).id] for row, e in answers.items() if e.class_id
        }
        learned = [(row, place[row]) for row, e in answers.items() if e.kind == "label" and not e.is_audit]
        by_class = {p: sorted(row for row, own in learned if own == p) for p in {own for _, own in learned}}
        groups = [group for group in snapshot.groups.values() if group.info]
        found = {snapshot.number(group): sorted(snapshot.labelled(group).tolist()) for group in groups}
        assert {number: rows for number, rows in found.items() if rows} == by_class
        assert snapshot.votes == Counter((p, slot_of[row]) for row, p in learned if slot_of[row] != NO_SLOT)
        kinds = Counter("held" if e.kind == "label" and e.is_audit else e.kind for e in answers.values())
        assert (labels.n(How.JUNK), labels.n(How.HELD)) == (kinds["junk"], kinds["held"])
        differing = [row for row, p in learned if slot_of[row] != NO_SLOT and snapshot.owner_of_slot[slot_of[row]] != p]
        assert snapshot.disagreeing.tolist() == sorted(differing)
        says = Counter(snapshot.says(np.flatnonzero(~IS_TEST)).group.tolist())
        for group in snapshot.groups.values():
            assert snapshot.size(group) == says[snapshot.number(group)]
        settled = {row for row, e in answers.items() if e.kind in ("label", "junk")} | {*labels.rows((How.ACCEPTED,))}
        assert {*np.flatnonzero(labels.settled)} == settled | {*np.flatnonzero(IS_TEST)}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_first_members_are_the_first_of_all(seed: int) -> None:
    for snapshot in snapshots(seed):
        everything = Group(None, tuple(range(N_SLOTS)), True)
        for group in (everything, *snapshot.groups.values()):
            members = snapshot.members(group).tolist()
            for n in (0, 1, 4, N_ROWS):
                assert snapshot.members(group, n).tolist() == members[:n]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_person_counts_before_a_page_and_a_page_before_the_model(seed: int) -> None:
    rows = np.arange(N_ROWS)
    for snapshot in snapshots(seed):
        says, how = snapshot.says(rows), snapshot.labels.how(rows)
        for row in rows.tolist():
            by, info = SOURCES[says.by[row]], snapshot.labels.class_of_row(row)
            name = snapshot.names[says.group[row]] if says.group[row] >= 0 else None
            if how[row] == How.JUNK:
                assert (by, name) == ("", None)
            elif how[row] in (How.GIVEN, How.ANSWERED, How.HELD, How.ACCEPTED):
                assert info is not None
                assert (by, name) == ("page" if how[row] == How.ACCEPTED else "human", info.name)
            else:
                slot = snapshot.slots(rows)[row]
                expected = ("", None) if slot == NO_SLOT else ("model", snapshot.slot_names[slot][0])
                assert (by, name) == expected


def test_a_moment_before_the_first_round_knows_labels_and_no_votes() -> None:
    empty = Snapshot(LabelView.empty(IS_TEST), None)
    assert (empty.groups, empty.votes, empty.labels.classes_in_use) == ({}, {}, [])
    assert empty.says(np.arange(N_ROWS)).by.tolist() == [0] * N_ROWS
    later = snapshots(3, trained=False)[-1]
    assert sum(len(later.labelled(group)) for group in later.groups.values()) == len(later.labels.labels) > 0
    assert later.votes == {}


# ------------------------------------------------------------------------------------------ the names of slots


def round_of(slots: list[int], class_ids: list[str | None]) -> RoundView:
    """A round that gives each row its slot."""
    top = np.array(slots, np.int32)[:, None]
    order = np.argsort(top[:, 0], kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(top[:, 0], minlength=len(class_ids)))])
    facts = {"n_old": 1, "n_slots": len(class_ids), "class_ids": class_ids}
    return RoundView(
        0, facts, top, np.ones(top.shape, np.float16), np.zeros((len(slots), 2), np.float32), order, starts, None
    )


def labelled(said: dict[int, str], n_rows: int, *more: LabelEvent) -> LabelView:
    """Rows with labels of the classes they name; the first class is an old one."""
    names = list(dict.fromkeys(said.values()))
    events = [
        LabelEvent("create", "ann", "human", class_id=name, payload={"name": name, "old": name == names[0]})
        for name in names
    ]
    events += [LabelEvent("label", "ann", "human", row=row, class_id=name) for row, name in said.items()]
    numbered = [LabelEvent(**{**vars(e), "id": i}) for i, e in enumerate([*events, *more], start=1)]
    return LabelView.empty(np.zeros(n_rows, bool)).after(numbered)


def names_of(view: LabelView, seen: RoundView) -> list[str]:
    return [name for name, _ in Snapshot(view, seen).slot_names]


def test_one_stray_label_names_no_group() -> None:
    """P1 of the practitioner's review: a turtle among dolphins, twelve neighbours ticked, two of them elsewhere."""
    slots = [0] * 15 + [1] * 6 + [2] * 6
    said = dict.fromkeys(range(5), "dolphin") | dict.fromkeys(range(5, 15), "hawksbill")
    view = labelled(said | {15: "hawksbill", 21: "hawksbill"}, len(slots))
    seen = round_of(slots, ["dolphin", None, None])
    assert names_of(view, seen) == ["hawksbill", "unnamed #1", "unnamed #2"]
    snapshot = Snapshot(view, seen)
    assert snapshot.contains(snapshot.slot_group(1)) == "hawksbill (1)"


def test_a_disputed_group_stays_without_a_name_and_says_what_it_contains() -> None:
    slots = [0] * 4 + [1] * 4
    view = labelled({0: "cat", 1: "cat", 4: "dog", 5: "dog", 6: "fox", 7: "fox"}, len(slots))
    seen = round_of(slots, ["cat", None])
    assert names_of(view, seen) == ["cat", "unnamed #1"]
    snapshot = Snapshot(view, seen)
    assert snapshot.contains(snapshot.slot_group(1)) == "dog (2), fox (2)"
    assert snapshot.contains(snapshot.slot_group(1), least=3) == ""


def test_where_two_are_level_the_mapping_of_the_round_decides() -> None:
    slots = [0, 0, 1, 1]
    view = labelled({0: "cat", 2: "cat", 1: "dog", 3: "dog"}, 4)
    assert names_of(view, round_of(slots, ["cat", "dog"])) == ["cat", "dog"]
    assert names_of(view, round_of(slots, [None, None])) == ["unnamed #0", "unnamed #1"]


def test_a_merged_class_brings_its_group_along() -> None:
    slots = [0] * 3 + [1] * 3
    merge = LabelEvent("merge", "ann", "human", class_id="puma", payload={"into": "cougar"})
    view = labelled({0: "cougar", 1: "cougar", 3: "puma"}, 6, merge)
    seen = round_of(slots, ["cougar", "puma"])
    assert names_of(view, seen) == ["cougar", "cougar"]
    group = Snapshot(view, seen).group("c-cougar")
    assert group.slots == (0, 1)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=30))
def test_a_slot_is_named_after_a_class_only_if_each_holds_most_of_the_other(pairs: list[tuple[int, int]]) -> None:
    view = labelled({row: f"c{c}" for row, (c, _) in enumerate(pairs)}, max(1, len(pairs)))
    seen = round_of([slot for _, slot in pairs] or [0], [None] * 5)
    counts = Counter((view.registry.place_of[f"c{c}"], slot) for c, slot in pairs)
    for slot, owner in enumerate(slot_owners(view, seen).tolist()):
        in_slot = {c: n for (c, s), n in counts.items() if s == slot}
        if owner >= 0:
            in_class = {s: n for (c, s), n in counts.items() if c == owner}
            assert all(n < in_slot[owner] for c, n in in_slot.items() if c != owner)
            assert all(n < in_class[slot] for s, n in in_class.items() if s != slot)
        for c, n in in_slot.items():
            rivals = [m for (other, s), m in counts.items() if (other == c) != (s == slot)]
            assert owner == c or any(m >= n for m in rivals)


def test_an_audit_scores_a_round_by_the_names_that_it_gave() -> None:
    slots = [0] * 4 + [1] * 4
    held = [
        LabelEvent("label", "eve", "human", row=row, class_id=name, payload={"audit": True})
        for row, name in ((2, "cat"), (3, "dog"), (6, "dog"), (7, "dog"))
    ]
    view = labelled({0: "cat", 4: "dog"}, 8, *held)
    seen = round_of(slots, ["cat", None])
    found = audit_of(view, seen)
    assert found is not None
    assert (found.n, found.n_right) == (4, 1), "when the round ended, nobody had named the second group"
    assert found.low < found.share < found.high
    assert audit_of(labelled({0: "cat"}, 8), seen) is None
