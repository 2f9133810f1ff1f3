"""Label events: what was said, by whom, in the order it was said. Nothing is ever changed; undo is one more event."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

Kind = Literal[
    "label", "skip", "unsure", "junk", "accept", "void", "create", "rename", "merge", "retire", "add", "remove"
]
Source = Literal["seed", "oracle", "human", "import"]

ANSWERS: tuple[Kind, ...] = ("label", "skip", "unsure", "junk")
PASSES: tuple[Kind, ...] = ("skip", "unsure", "junk")
"""Answers that name no class."""
CLASS_KINDS: tuple[Kind, ...] = ("create", "rename", "merge", "retire")
CONFIRMED: tuple[Source, ...] = ("human", "import")
"""Sources whose labels spend the budget."""


def new_uid() -> str:
    return uuid.uuid4().hex


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True)
class LabelEvent:
    """One thing that somebody said.

    ``uid`` is made by whoever says it, so that saying it twice counts once. ``round`` is the first round that may
    train on an answer (0: known from the start). Events of one ``group`` are undone together. ``payload`` holds
    what only some kinds need: create ``name`` and ``old``; rename ``name``; merge ``into``; void ``target``, the
    uid or the group that is taken back; an answer of a blind audit ``audit``. ``accept`` (a whole page of pictures
    was found to be right, or ``unseen`` the rest of a review) is kept apart from labels. ``add``: ``n`` more
    rows came, from number ``first`` on, of which the last ``n_test`` are for testing. ``remove`` holds a row out.
    """

    kind: Kind
    who: str
    source: Source
    row: int | None = None
    class_id: str | None = None
    query_id: str | None = None
    round: int = 0
    group: str | None = None
    payload: dict[str, Any] = field(default_factory=dict)
    uid: str = field(default_factory=new_uid)
    at: str = field(default_factory=_now)
    id: int = 0
    """Its place in the order of events; given by the database."""

    @property
    def is_audit(self) -> bool:
        """Said to measure the model: not learned from, and no part of the budget."""
        return bool(self.payload.get("audit"))

    @property
    def is_confirmed(self) -> bool:
        """A label that spends the budget: given by a person, and learned from."""
        return self.kind == "label" and self.source in CONFIRMED and not self.is_audit

    @property
    def names(self) -> set[str]:
        """What a void may call it by."""
        return {self.uid} if self.group is None else {self.uid, self.group}

    def says_the_same(self, other: LabelEvent) -> bool:
        """Whether a repeated request means the same; when it arrived, and in which batch, does not matter."""
        mine, theirs = (
            (e.kind, e.who, e.source, e.row, e.class_id, e.query_id, e.round, e.payload) for e in (self, other)
        )
        return mine == theirs


def voided_ids(events: Iterable[LabelEvent]) -> set[int]:
    """The ids of events that have been taken back.

    A void only reaches events before it, so one pass from the last to the first settles which voids are themselves
    void. A class once made is never unmade: without labels it is only a name. Neither are rows that were added.
    """
    named: dict[str, list[LabelEvent]] = defaultdict(list)
    voids = []
    for event in events:
        for name in event.names:
            named[name].append(event)
        if event.kind == "void":
            voids.append(event)
    voided: set[int] = set()
    for void in sorted(voids, key=lambda e: e.id, reverse=True):
        if void.id not in voided:
            targets = named[void.payload["target"]]
            voided |= {e.id for e in targets if e.id < void.id and e.kind not in ("create", "add")}
    return voided
