"""The review: pictures that nobody has looked at, the least certain first, and how many of their names are wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from heapq import nlargest

import numpy as np

from agcd.app.answers import Answer
from agcd.app.labels import How
from agcd.app.snapshot import NO_GROUP, Snapshot
from agcd.app.store.classes import ClassInfo, clean_class_name
from agcd.app.web.review_schemas import Confirm, Mode, Review, ReviewClass, ReviewLeft, ReviewPicture, Suggestion
from agcd.app.web.server_state import ServerState
from agcd.errors import DataError
from agcd.types import BoolArray, FloatArray, IntArray

PER_PAGE: dict[Mode, int] = {"single": 12, "class": 24}
MAX_PER_PAGE = 100
MAX_ACCEPTED = 20_000
"""Pictures that are accepted at once: some seconds of work. Where more are left, the surest are taken first."""
N_OTHERS = 5
_MAX_CLASSES = 500


@dataclass(frozen=True, eq=False)
class Unseen:
    """The pictures with a name that nobody has looked at, by row."""

    snapshot: Snapshot
    rows: IntArray
    place: IntArray
    """The place of the class that each is called."""
    p_right: FloatArray
    n_unnamed: int

    @staticmethod
    def of(snapshot: Snapshot) -> Unseen:
        rows = np.flatnonzero(~snapshot.labels.settled)
        place = snapshot.says(rows).group
        named = takes_labels(snapshot)[place]
        rows, place, n_unnamed = rows[named], place[named], int((~named).sum())
        return Unseen(snapshot, rows, place, snapshot.p_right(rows), n_unnamed)

    @cached_property
    def left(self) -> ReviewLeft:
        labels = self.snapshot.labels
        n_total, accepted = len(labels.train_rows) - labels.n(How.GIVEN), labels.unseen
        return ReviewLeft(
            n_total=n_total,
            n_checked=n_total - len(self.rows) - self.n_unnamed - len(accepted),
            n_unseen=len(accepted),
            unseen_wrong=_wrong(self.snapshot.p_right(accepted)),
            n_left=len(self.rows),
            n_unnamed=self.n_unnamed,
            expected_wrong=_wrong(self.p_right),
            is_checked=self.snapshot.live is None or self.snapshot.live.accuracy is not None,
        )

    def without(self, rows: IntArray) -> Unseen:
        """The same but for some rows, which are not to be shown now."""
        return self.where(~np.isin(self.rows, rows))

    def where(self, mask: BoolArray) -> Unseen:
        return Unseen(self.snapshot, self.rows[mask], self.place[mask], self.p_right[mask], self.n_unnamed)

    def least_certain(self, n: int) -> Unseen:
        """The ``n`` least certain ones, in this order; only they are sorted."""
        found = np.arange(len(self.rows))
        if n < len(found):
            found = np.sort(np.argpartition(self.p_right, n)[:n])
        found = found[np.argsort(self.p_right[found], kind="stable")]
        return Unseen(self.snapshot, self.rows[found], self.place[found], self.p_right[found], self.n_unnamed)

    def surest(self, n: int) -> Unseen:
        if n >= len(self.rows):
            return self
        mask = np.zeros(len(self.rows), np.bool_)
        mask[np.argpartition(-self.p_right, n)[:n]] = True
        return self.where(mask)

    def answers(self) -> list[Answer]:
        """Each accepted as what it is called, without a look."""
        infos = self.snapshot.labels.registry.infos
        pairs = zip(self.rows.tolist(), self.place.tolist(), strict=True)
        return [Answer(row, "", infos[place].id, by_page=True, unseen=True) for row, place in pairs]


def takes_labels(snapshot: Snapshot) -> BoolArray:
    """By number of a group, and for −1, whether it is a class that takes labels: a group without a name is none."""
    takes = np.zeros(len(snapshot.names) + 1, np.bool_)
    infos = snapshot.labels.registry.infos
    takes[: len(infos)] = [not info.retired and info.merged_into is None for info in infos]
    assert NO_GROUP == -1  # the last entry is for rows that belong nowhere
    return takes


def _wrong(p_right: FloatArray) -> float:
    return round(float((1.0 - p_right.astype(np.float64)).sum()), 1)


def review(
    server: ServerState, snapshot: Snapshot, mode: Mode, key: str | None, n: int | None, hidden: IntArray
) -> Review:
    """What to look at next; ``hidden`` are rows that this person has on the page or has just answered."""
    unseen = Unseen.of(snapshot)
    shown, classes, chosen = unseen.without(hidden), list[ReviewClass](), None
    if mode == "class":
        classes = _classes(shown)
        chosen = next((one for one in classes if one.key == key), classes[0] if classes else None)
    if chosen is not None:
        shown = shown.where(shown.place == snapshot.labels.registry.place_of[chosen.class_id])
    page = shown.least_certain(n or PER_PAGE[mode])
    return Review(
        mode=mode,
        left=unseen.left,
        pictures=_pictures(server, page),
        page_wrong=_wrong(page.p_right),
        shown=chosen,
        classes=classes[:_MAX_CLASSES],
    )


def _classes(unseen: Unseen) -> list[ReviewClass]:
    infos = unseen.snapshot.labels.registry.infos
    n_left = np.bincount(unseen.place, minlength=len(infos))
    wrong = np.bincount(unseen.place, 1.0 - unseen.p_right.astype(np.float64), minlength=len(infos))
    order = [place for place in np.argsort(-wrong, kind="stable").tolist() if n_left[place]]
    return [
        ReviewClass(
            key=f"c-{infos[place].id}",
            class_id=infos[place].id,
            name=infos[place].name,
            n_left=int(n_left[place]),
            expected_wrong=round(float(wrong[place]), 1),
        )
        for place in order
    ]


def _pictures(server: ServerState, page: Unseen) -> list[ReviewPicture]:
    thumbs = server.thumbs(page.snapshot, page.rows.tolist())
    infos = page.snapshot.labels.registry.infos
    columns = zip(thumbs, page.place.tolist(), page.p_right.astype(float).tolist(), _others(page), strict=True)
    return [
        ReviewPicture(**thumb.model_dump(), class_id=infos[place].id, p_right=round(chance, 4), others=others)
        for thumb, place, chance, others in columns
    ]


def _others(page: Unseen) -> Iterator[list[Suggestion]]:
    """What each picture may be instead: the classes that are likely for it, then the largest ones, so that a digit
    helps even where the first guess was sure."""
    snapshot = page.snapshot
    registry, takes = snapshot.labels.registry, takes_labels(snapshot)
    groups = [group for group in snapshot.groups.values() if group.info and takes[snapshot.number(group)]]
    largest = [snapshot.number(group) for group in nlargest(N_OTHERS + 1, groups, key=snapshot.size)]
    likely = snapshot.likely_classes(page.rows)
    for own, places in zip(page.place.tolist(), likely, strict=True):
        found = [place for place in dict.fromkeys([*places, *largest]) if takes[place] and place != own]
        yield [_suggestion(registry.infos[place]) for place in found[:N_OTHERS]]


def _suggestion(info: ClassInfo) -> Suggestion:
    return Suggestion(class_id=info.id, name=info.name, is_new=not info.is_old)


def answers_of(body: Confirm) -> list[Answer]:
    """What a person said of a page, each picture once."""
    said = [Answer(one.row, "", one.class_id, by_page=body.mode == "class") for one in body.right]
    for change in body.changes:
        if (change.class_id is None) == (change.name is None):
            raise DataError("A change names its class either by class_id or by name.")
        said.append(Answer(change.row, clean_class_name(change.name) if change.name else "", change.class_id))
    said += [Answer(row, "junk") for row in body.junk]
    if not said:
        raise DataError("Nothing is said of any row.")
    return said
