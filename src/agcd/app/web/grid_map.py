"""The grid and the map: many pictures at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from agcd.app.labels import LEARNED, How
from agcd.app.rounds import NO_SLOT, RoundView
from agcd.app.snapshot import SOURCES, Snapshot
from agcd.app.web.board import page_of
from agcd.app.web.schemas import Grid, MapPoints
from agcd.app.web.server_state import ServerState
from agcd.errors import DataError
from agcd.types import BoolArray, IntArray

PER_PAGE = 60
MAX_POINTS = 20_000
SHOWS = ("all", "unlabelled", "labelled", "accepted", "junk", "passed", "disagree", "selection")
_HOWS = {"labelled": (*LEARNED, How.HELD), "junk": (How.JUNK,), "passed": (How.SKIPPED, How.UNSURE)}
ORDERS = ("row", "uncertain", "confident", "class")


def grid(
    server: ServerState, snapshot: Snapshot, show: str, key: str | None, selection: str | None, order: str, page: int
) -> Grid:
    """A page of pictures, filtered and in order."""
    rows, title = _chosen(server, snapshot, show, selection)
    if key is not None:
        group = snapshot.group(key)
        own = np.union1d(snapshot.members(group), snapshot.labelled(group))
        rows = own[_mask(snapshot, rows)[own]]
        title = f"{title} of {group.name}"
    rows = _ordered(snapshot, rows, order)
    page, n_pages, shown = page_of(len(rows), page, PER_PAGE)
    return Grid(thumbs=server.thumbs(snapshot, rows[shown]), n=len(rows), page=page, n_pages=n_pages, title=title)


def _chosen(server: ServerState, snapshot: Snapshot, show: str, selection: str | None) -> tuple[IntArray, str]:
    labels = snapshot.labels
    if show == "selection":
        return server.kept(f"selection-{selection}"), "chosen on the map"
    if show == "unlabelled":
        return np.flatnonzero(~labels.settled), "pictures without an answer"
    if show in _HOWS:
        return labels.rows(_HOWS[show]), f"{show} pictures"
    if show == "accepted":
        return labels.rows((How.ACCEPTED,)), "pictures accepted by page"
    if show == "disagree":
        return snapshot.disagreeing, "pictures that people and model call differently"
    return np.flatnonzero(~labels.is_test), "all pictures"


def _ordered(snapshot: Snapshot, rows: IntArray, order: str) -> IntArray:
    """``rows``, which rise, in another order; rows of equal rank stay as they are."""
    if snapshot.round is None or order == "row":
        return rows
    if order == "class":
        ranked = snapshot.round.slot_by_slot
    else:
        ranked = snapshot.round.least_certain if order == "uncertain" else snapshot.round.most_certain
    # The seen sorts all rows once; to pick some of a million takes a moment, to sort them a tenth of a second.
    return ranked[_mask(snapshot, rows)[ranked]]


def _mask(snapshot: Snapshot, rows: IntArray) -> BoolArray:
    mask = np.zeros(len(snapshot.labels.is_test), np.bool_)
    mask[rows] = True
    return mask


def map_points(server: ServerState, snapshot: Snapshot, seen: RoundView, rounds: list[int]) -> MapPoints:
    """The pictures of one round as points; of very many a fair sample, the labelled ones among them.

    Slots keep their numbers from round to round, so today's names fit an earlier round too.
    """
    rows = _points(snapshot, seen)
    if not len(rows):
        raise DataError("There is nothing to draw.")
    numbers, groups = np.unique(snapshot.group_of_slot[seen.top_slots[rows, 0]], return_inverse=True)
    order = sorted(range(len(numbers)), key=lambda i: snapshot.names[numbers[i]].casefold())
    place = np.argsort(order)
    xy, margin = (np.round(values.astype(np.float64), 4) for values in (seen.xy[rows], seen.margin(rows)))
    return MapPoints(
        round=seen.number,
        rounds=rounds,
        row=rows.tolist(),
        v=[server.pictures.version(row) for row in rows.tolist()],
        x=xy[:, 0].tolist(),
        y=xy[:, 1].tolist(),
        name=place[groups].tolist(),
        names=[snapshot.names[numbers[i]] for i in order],
        is_new=[snapshot.is_new[numbers[i]] for i in order],
        by=_sources(snapshot, rows),
        margin=margin.tolist(),
        disagrees=_mask(snapshot, snapshot.disagreeing)[rows].tolist(),
        n_rows=len(seen.order),
    )


def _points(snapshot: Snapshot, seen: RoundView) -> IntArray:
    """The rows to draw: all, or half of them labelled ones, the newest first, and the others evenly spread."""
    rows = seen.train_rows
    if len(rows) <= MAX_POINTS:
        return rows
    labelled = snapshot.labels.labels["row"]
    labelled = labelled[seen.top_slots[labelled, 0] != NO_SLOT][: MAX_POINTS // 2]
    n_others = MAX_POINTS - len(labelled)
    return np.union1d(rows[:: -(-len(rows) // n_others)], labelled)


def _sources(snapshot: Snapshot, rows: IntArray) -> list[Any]:
    """Who says what each of ``rows`` is; of junk the model alone has an idea."""
    return [SOURCES[by] or "model" for by in snapshot.says(rows).by.tolist()]
