"""What the page keeps sorted and counted for a million rows is what plain loops over all answers would say."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from agcd.app.rounds import NO_SLOT, Atlas, top_of
from agcd.app.store.classes import Registry
from agcd.app.store.events import LabelEvent, live_events
from agcd.app.store.fold import accepted_rows, winning_answers
from agcd.app.store.standing import Follower, Standing
from agcd.app.store.store import Store
from agcd.app.web import plane
from agcd.app.web.board import two_means
from agcd.app.web.images import Pictures
from agcd.app.web.server_state import Desk
from agcd.app.web.snapshot import Look
from agcd.rng import generator
from agcd.types import BoolArray, FloatArray
from support.histories import FakeStore

N_ROWS, N_SLOTS = 60, 8
IS_TEST = np.arange(N_ROWS) % 10 == 9
SEEDS = range(12)


def history(seed: int, n: int = 150) -> list[LabelEvent]:
    """Labels known from the start, then answers, audits, pages accepted, merges, and all of these taken back."""
    rng = generator(seed, "history")
    classes = [f"c{c}" for c in range(5)]
    events = [LabelEvent("create", "", "seed", class_id=c, payload={"name": c, "old": c < "c3"}) for c in classes]
    events += [LabelEvent("label", "", "seed", row=row, class_id="c0", group="seeds") for row in range(8)]
    kinds = ["label"] * 8 + ["skip", "unsure", "junk", "accept", "accept", "void", "void", "merge"]
    while len(events) < n:
        kind: Any = kinds[rng.integers(len(kinds))]
        who, group = f"p{rng.integers(3)}", f"g{rng.integers(40)}"
        row = int(rng.choice(np.flatnonzero(~IS_TEST)))
        one, other = rng.permutation(classes).tolist()[:2]
        if kind == "void":
            last = events[-1 - int(rng.integers(min(20, len(events))))]
            event = LabelEvent(kind, who, "human", payload={"target": last.group or last.uid})
        elif kind == "merge":
            event = LabelEvent(kind, who, "human", class_id=one, payload={"into": other})
        else:
            class_id = one if kind in ("label", "accept") else None
            payload, source = ({"audit": True} if rng.random() < 0.1 else {}), "seed" if rng.random() < 0.1 else "human"
            event = LabelEvent(kind, who, source, row, class_id, group=group, payload=payload)  # type: ignore[arg-type]
        events.append(event)
    return [replace(event, id=number) for number, event in enumerate(events, start=1)]


def small_atlas(seed: int) -> Atlas:
    rng = generator(seed, "scale")
    top_slots, top_probs = top_of(rng.dirichlet(np.full(N_SLOTS, 0.3), N_ROWS))
    top_probs = np.round(top_probs, 1).astype(np.float16)  # equal ones, so that ties matter
    top_slots[[3, 30]] = NO_SLOT
    rows = np.flatnonzero(~IS_TEST & (top_slots[:, 0] != NO_SLOT))
    order = rows[np.argsort(top_slots[rows, 0], kind="stable")]
    starts = np.concatenate([[0], np.cumsum(np.bincount(top_slots[rows, 0], minlength=N_SLOTS))])
    facts = {"n_old": 3, "n_slots": N_SLOTS, "class_ids": ["c0", "c1", "c2", *[None] * (N_SLOTS - 3)]}
    xy = rng.normal(size=(N_ROWS, 2)).astype(np.float32)
    return Atlas(0, facts, top_slots, top_probs, xy, order, starts, None)


def followed(events: list[LabelEvent], seed: int) -> list[tuple[list[LabelEvent], Standing]]:
    """The events so far and what stands, each time after a few more of them."""
    rng, store, follower, found = generator(seed, "steps"), FakeStore(), Follower(), []
    while len(store.all) < len(events):
        store.all = events[: len(store.all) + int(rng.integers(1, 12))]
        found.append((store.all, follower.standing(cast(Store, store))))
    return found


def look_at(standing: Standing, atlas: Atlas | None, tmp_path: Path) -> Look:
    keys = [f"b2-{row:032x}" for row in range(N_ROWS)]
    return Look(standing, atlas, IS_TEST, Pictures([], keys, tmp_path, tmp_path))


@pytest.mark.parametrize("seed", SEEDS)
def test_counts_and_tables_agree_with_the_answers_that_stand(seed: int) -> None:
    for events, standing in followed(history(seed), seed):
        live = live_events(events)
        answers = winning_answers(live)
        assert standing.answers == answers
        decided = {row for row, event in answers.items() if event.kind in ("label", "junk")}
        assert standing.accepted == {row: e for row, e in accepted_rows(live).items() if row not in decided}
        ids = list(standing.registry.classes)
        in_order = sorted(answers.values(), key=lambda e: (e.source == "seed", -e.id))
        assert standing.table["row"].tolist() == [event.row for event in in_order]
        assert [ids[c] if c >= 0 else None for c in standing.table["class"].tolist()] == [
            standing.registry.resolve(event.class_id).id if event.class_id else None for event in in_order
        ]
        kinds = Counter(event.kind for event in answers.values())
        assert (standing.n_passed, standing.n_junk) == (kinds["skip"] + kinds["unsure"], kinds["junk"])
        assert standing.n_seeds == sum(event.source == "seed" for event in answers.values())
        labels = [event for event in answers.values() if event.kind == "label" and not event.is_audit]
        assert standing.n_labels_after(40) == sum(event.id > 40 for event in labels)
        assert {info.id for info in standing.classes_in_use} == {standing.class_of(row) for row in answers} - {None}
        changes = [event.id for event in events if event.kind == "void"] + [e.id for e in live if e.kind == "merge"]
        assert standing.last_change == max(changes, default=0)
        assert standing.counts["audit"] == sum(event.kind == "label" and event.is_audit for event in live)
        assert set(standing.only_audited().answers) == {row for row, event in answers.items() if event.is_audit}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_look_agrees_with_loops_over_all_answers(seed: int, tmp_path: Path) -> None:
    atlas = small_atlas(seed)
    slot_of = atlas.top_slots[:, 0].tolist()
    for _, standing in followed(history(seed), seed):
        look, resolve = look_at(standing, atlas, tmp_path), standing.registry.resolve
        said = sorted(standing.answers.items(), key=lambda item: (item[1].source == "seed", -item[1].id))
        labels = [(row, resolve(event.class_id).id) for row, event in said if event.class_id]
        by_class = {c: [row for row, own in labels if own == c] for c in {own for _, own in labels}}
        assert {c: rows.tolist() for c, rows in look.rows_of_class.items()} == by_class
        votes = Counter((slot_of[row], c) for row, c in labels if slot_of[row] != NO_SLOT)
        assert {(slot, c): n for slot, own in look.votes.items() for c, n in own.items()} == votes
        assert look.n_accepted == Counter(standing.accepted_class(row) for row in standing.accepted)
        settled = [r for r, e in said if e.kind in ("label", "junk")] + [*standing.accepted, *np.flatnonzero(IS_TEST)]
        assert np.flatnonzero(look.settled).tolist() == sorted(set(settled))
        known = [(row, c) for row, c in labels if slot_of[row] != NO_SLOT]
        differing = sorted(row for row, c in known if look.owner_of_slot[slot_of[row]] != c)
        assert plane.disagreeing(look).tolist() == differing


@pytest.mark.parametrize("order", plane.ORDERS)
@pytest.mark.parametrize("show", ["all", "unlabelled", "labelled", "accepted", "passed"])
def test_a_grid_is_ordered_as_if_its_own_rows_were_sorted(show: str, order: str, tmp_path: Path) -> None:
    atlas = small_atlas(1)
    look = look_at(followed(history(1), 1)[-1][1], atlas, tmp_path)
    rows = plane._chosen(cast(Desk, None), look, show, None)[0]
    probs = atlas.top_probs[rows].astype(np.float32)
    margin = probs[:, 0] - probs[:, 1]
    plain = {
        "row": np.arange(len(rows)),
        "uncertain": np.argsort(margin, kind="stable"),
        "confident": np.argsort(-margin, kind="stable"),
        "class": np.lexsort((-probs[:, 0], atlas.top_slots[rows, 0])),
    }
    assert plane._ordered(look, rows, order).tolist() == rows[plain[order]].tolist()


def test_a_large_map_shows_the_newest_labels_and_a_sample_of_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plane, "MAX_POINTS", 20)
    atlas = small_atlas(2)
    look = look_at(followed(history(2), 2)[-1][1], atlas, tmp_path)
    shown = plane.map_points(look, atlas, [0])
    assert len(shown.row) <= 20
    assert len(set(shown.row)) == len(shown.row)
    assert set(shown.row) <= set(atlas.order.tolist())
    newest = [row for row in look.labels["row"].tolist() if atlas.top_slots[row, 0] != NO_SLOT][:10]
    assert set(newest) <= set(shown.row)
    assert shown.n_rows == len(atlas.order)
    thumbs = look.thumbs(shown.row)
    assert shown.by == [thumb.by for thumb in thumbs]
    assert shown.v == [thumb.v for thumb in thumbs]


def plain_two_means(x: FloatArray) -> BoolArray:
    centred = x - x.mean(0)
    along = centred @ np.linalg.svd(centred, full_matrices=False)[2][0]
    second: BoolArray = along > np.median(along)
    for _ in range(20):
        centres = np.stack([x[~second].mean(0), x[second].mean(0)])
        second = np.asarray(((x[:, None] - centres) ** 2).sum(2).argmin(1) == 1)
    return second


@pytest.mark.parametrize("seed", range(5))
def test_two_means_finds_the_halves_that_a_plain_one_finds(seed: int) -> None:
    rng = generator(seed, "halves")
    x = rng.normal(size=(200, 30)).astype(np.float32) + 2 * rng.integers(0, 2, (200, 1)).astype(np.float32)
    found, distance = two_means(x)
    plain = plain_two_means(x.astype(np.float64))
    assert np.array_equal(found, plain) or np.array_equal(found, ~plain)
    centres = np.stack([x[~found].mean(0), x[found].mean(0)])
    np.testing.assert_allclose(distance, ((x - centres[found.astype(int)]) ** 2).sum(1), rtol=1e-4)


def test_threads_that_write_without_a_pause_all_get_their_turn(tmp_path: Path) -> None:
    path = tmp_path / "project.db"
    with Store(path, create=True) as store:
        store.add_rows(["k"] * 200, [str(row) for row in range(200)], np.zeros(200, bool))

    def write(first: int) -> None:
        with Store(path) as own:
            for row in range(first, 200, 4):
                own.append([LabelEvent("skip", "ann", "human", row=row)])

    threads = [threading.Thread(target=write, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Store(path) as store:
        assert sorted(cast(int, event.row) for event in store.events()) == list(range(200))


def test_a_look_before_the_first_round_knows_labels_and_no_votes(tmp_path: Path) -> None:
    empty = look_at(Standing(registry=Registry()), None, tmp_path)
    assert (empty.rows_of_class, dict(empty.votes), empty.standing.classes_in_use) == ({}, {}, [])
    look = look_at(followed(history(3), 3)[-1][1], None, tmp_path)
    assert sum(map(len, look.rows_of_class.values())) == len(look.labels) > 0
    assert dict(look.votes) == {}
