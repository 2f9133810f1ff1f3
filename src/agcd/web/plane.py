"""The grid and the map: many pictures at once."""

from __future__ import annotations

import numpy as np

from agcd.errors import DataError
from agcd.project.atlas import NO_SLOT, Atlas
from agcd.types import IntArray
from agcd.web.board import page_of
from agcd.web.desk import Desk
from agcd.web.look import Look
from agcd.web.shapes import Grid, MapPoints

PER_PAGE = 60
MAX_POINTS = 20_000
SHOWS = ("all", "unlabelled", "labelled", "accepted", "junk", "passed", "disagree", "selection")
ORDERS = ("row", "uncertain", "confident", "class")


def grid(desk: Desk, look: Look, show: str, key: str | None, selection: str | None, order: str, page: int) -> Grid:
    """A page of pictures, filtered and in order."""
    rows, title = _chosen(desk, look, show, selection)
    if key is not None:
        group = look.group(key)
        rows = np.intersect1d(rows, np.union1d(look.members(group), np.asarray(look.labelled(group), np.int64)))
        title = f"{title} of {group.name}"
    rows = _ordered(look, rows, order)
    page, n_pages, shown = page_of(len(rows), page, PER_PAGE)
    return Grid(thumbs=look.thumbs(rows[shown]), n=len(rows), page=page, n_pages=n_pages, title=title)


def _chosen(desk: Desk, look: Look, show: str, selection: str | None) -> tuple[IntArray, str]:
    if show == "selection":
        return desk.kept(f"selection-{selection}"), "chosen on the map"
    if show == "unlabelled":
        return np.flatnonzero(~look.settled), "pictures without an answer"
    answers = look.standing.answers
    kinds = {"labelled": ("label",), "junk": ("junk",), "passed": ("skip", "unsure")}
    if show in kinds:
        rows = [row for row, event in answers.items() if event.kind in kinds[show]]
        return np.sort(np.asarray(rows, np.int64)), f"{show} pictures"
    if show == "accepted":
        return np.sort(np.asarray(list(look.standing.accepted), np.int64)), "pictures accepted by page"
    if show == "disagree":
        return disagreeing(look), "pictures that people and model call differently"
    return np.flatnonzero(~look.is_test), "all pictures"


def disagreeing(look: Look) -> IntArray:
    """Labelled rows for which the last model would say something else."""
    if look.atlas is None:
        return np.empty(0, np.int64)
    rows = []
    for class_id, labelled in look.rows_of_class.items():
        slots = look.atlas.top_slots[labelled, 0].tolist()
        rows += [
            row
            for row, slot in zip(labelled, slots, strict=True)
            if slot != NO_SLOT and look.owner_of_slot[slot] != class_id
        ]
    return np.sort(np.asarray(rows, np.int64))


def _ordered(look: Look, rows: IntArray, order: str) -> IntArray:
    if look.atlas is None or order == "row" or not len(rows):
        return rows
    if order == "class":
        slots, probs = look.atlas.top_slots[rows, 0], look.atlas.top_probs[rows, 0].astype(np.float32)
        return rows[np.lexsort((-probs, slots))]
    margin = look.atlas.margin(rows)
    return rows[np.argsort(margin if order == "uncertain" else -margin, kind="stable")]


def map_points(look: Look, atlas: Atlas, rounds: list[int]) -> MapPoints:
    """The pictures of one round as points; of very many a fair sample, the labelled ones among them.

    Slots keep their numbers from round to round, so today's names fit an earlier round too.
    """
    rows = np.sort(np.asarray(atlas.order))
    n_rows = len(rows)
    if n_rows > MAX_POINTS:
        labelled = np.array([row for listed in look.rows_of_class.values() for row in listed], np.int64)[:MAX_POINTS]
        rows = np.union1d(rows[:: 1 + n_rows // MAX_POINTS], labelled[np.isin(labelled, rows)])
    if not n_rows:
        raise DataError("There is nothing to draw.")
    thumbs = look.thumbs(rows)
    slots = atlas.top_slots[rows, 0].tolist()
    keys = sorted({look.key_of_slot[slot] for slot in slots}, key=lambda key: look.groups[key].name.casefold())
    place = {key: i for i, key in enumerate(keys)}
    number = [place[look.key_of_slot[slot]] for slot in slots]
    differing = set(disagreeing(look).tolist())
    xy = np.round(atlas.xy[rows], 4)
    return MapPoints(
        round=atlas.number,
        rounds=rounds,
        row=rows.tolist(),
        v=[thumb.v for thumb in thumbs],
        x=xy[:, 0].tolist(),
        y=xy[:, 1].tolist(),
        name=number,
        names=[look.groups[key].name for key in keys],
        is_new=[look.groups[key].is_new for key in keys],
        by=[thumb.by or "model" for thumb in thumbs],
        margin=np.round(atlas.margin(rows), 4).tolist(),
        disagrees=[row in differing for row in rows.tolist()],
        n_rows=n_rows,
    )
