"""Long random histories, a made-up round, and snapshots of both."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from agcd.app.labels import LabelView
from agcd.app.rounds import NO_SLOT, RoundView, top_of
from agcd.app.snapshot import Snapshot
from agcd.app.store.events import LabelEvent
from agcd.rng import generator

N_ROWS, N_SLOTS = 60, 8
IS_TEST = np.arange(N_ROWS) % 10 == 9


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


def made_up_round(seed: int) -> RoundView:
    rng = generator(seed, "scale")
    top_slots, top_probs = top_of(rng.dirichlet(np.full(N_SLOTS, 0.3), N_ROWS))
    top_probs = np.round(top_probs, 1).astype(np.float16)  # equal ones, so that ties matter
    top_slots[[3, 30]] = NO_SLOT
    rows = np.flatnonzero(~IS_TEST & (top_slots[:, 0] != NO_SLOT))
    order = rows[np.lexsort((-top_probs[rows, 0], top_slots[rows, 0]))]
    starts = np.concatenate([[0], np.cumsum(np.bincount(top_slots[rows, 0], minlength=N_SLOTS))])
    facts = {"n_old": 3, "n_slots": N_SLOTS, "class_ids": ["c0", "c1", "c2", *[None] * (N_SLOTS - 3)]}
    xy = rng.normal(size=(N_ROWS, 2)).astype(np.float32)
    return RoundView(0, facts, top_slots, top_probs, xy, order, starts, None)


def snapshots(seed: int, *, trained: bool = True) -> list[Snapshot]:
    """The moments of one history, each a few events after the one before."""
    rng, events, found = generator(seed, "steps"), history(seed), []
    view, seen, n = LabelView.empty(IS_TEST), made_up_round(seed) if trained else None, 0
    while n < len(events):
        n += int(rng.integers(1, 12))
        view = view.after(events[:n])
        found.append(Snapshot(view, seen))
    return found
