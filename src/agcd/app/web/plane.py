"""The grid and the map: many pictures at once."""

from __future__ import annotations

from typing import Literal

import numpy as np

from agcd.app.rounds import NO_SLOT, Atlas
from agcd.app.store.standing import NO_CLASS
from agcd.app.web.board import page_of
from agcd.app.web.schemas import Grid, MapPoints
from agcd.app.web.server_state import Desk
from agcd.app.web.snapshot import Look
from agcd.errors import DataError
from agcd.types import BoolArray, IntArray

PER_PAGE = 60
MAX_POINTS = 20_000
SHOWS = ("all", "unlabelled", "labelled", "accepted", "junk", "passed", "disagree", "selection")
ORDERS = ("row", "uncertain", "confident", "class")


def grid(desk: Desk, look: Look, show: str, key: str | None, selection: str | None, order: str, page: int) -> Grid:
    """A page of pictures, filtered and in order."""
    rows, title = _chosen(desk, look, show, selection)
    if key is not None:
        group = look.group(key)
        own = np.union1d(look.members(group), look.labelled(group))
        rows = own[_mask(look, rows)[own]]
        title = f"{title} of {group.name}"
    rows = _ordered(look, rows, order)
    page, n_pages, shown = page_of(len(rows), page, PER_PAGE)
    return Grid(thumbs=look.thumbs(rows[shown]), n=len(rows), page=page, n_pages=n_pages, title=title)


def _chosen(desk: Desk, look: Look, show: str, selection: str | None) -> tuple[IntArray, str]:
    if show == "selection":
        return desk.kept(f"selection-{selection}"), "chosen on the map"
    if show == "unlabelled":
        return np.flatnonzero(~look.settled), "pictures without an answer"
    kinds = {"labelled": ("label",), "junk": ("junk",), "passed": ("skip", "unsure")}
    if show in kinds:
        return np.sort(look.standing.rows_with(kinds[show])), f"{show} pictures"
    if show == "accepted":
        return np.sort(np.asarray(list(look.standing.accepted), np.int64)), "pictures accepted by page"
    if show == "disagree":
        return disagreeing(look), "pictures that people and model call differently"
    return np.flatnonzero(~look.is_test), "all pictures"


def disagreeing(look: Look) -> IntArray:
    """Labelled rows for which the last model would say something else."""
    if look.atlas is None:
        return np.empty(0, np.int64)
    place = {class_id: number for number, class_id in enumerate(look.standing.registry.classes)}
    owners = np.array([place.get(owner or "", NO_CLASS) for owner in look.owner_of_slot], np.int64)
    slots = look.atlas.top_slots[look.labels["row"], 0]
    differs = (slots != NO_SLOT) & (owners[slots] != look.labels["class"])
    return np.sort(look.labels["row"][differs])


def _ordered(look: Look, rows: IntArray, order: str) -> IntArray:
    """``rows``, which rise, in another order; rows of equal rank stay as they are."""
    if look.atlas is None or order == "row":
        return rows
    if order == "class":
        ranked = look.atlas.slot_by_slot
    else:
        ranked = look.atlas.least_certain if order == "uncertain" else look.atlas.most_certain
    # The atlas sorts all rows once; to pick some of a million takes a moment, to sort them a tenth of a second.
    return ranked[_mask(look, rows)[ranked]]


def _mask(look: Look, rows: IntArray | list[int]) -> BoolArray:
    mask = np.zeros(len(look.is_test), np.bool_)
    mask[rows] = True
    return mask


def map_points(look: Look, atlas: Atlas, rounds: list[int]) -> MapPoints:
    """The pictures of one round as points; of very many a fair sample, the labelled ones among them.

    Slots keep their numbers from round to round, so today's names fit an earlier round too.
    """
    rows = _points(look, atlas)
    if not len(rows):
        raise DataError("There is nothing to draw.")
    slots = atlas.top_slots[rows, 0].tolist()
    keys = sorted({look.key_of_slot[slot] for slot in slots}, key=lambda key: look.groups[key].name.casefold())
    place = {key: i for i, key in enumerate(keys)}
    number = [place[look.key_of_slot[slot]] for slot in slots]
    xy, margin = (np.round(values.astype(np.float64), 4) for values in (atlas.xy[rows], atlas.margin(rows)))
    return MapPoints(
        round=atlas.number,
        rounds=rounds,
        row=rows.tolist(),
        v=[look.pictures.version(row) for row in rows.tolist()],
        x=xy[:, 0].tolist(),
        y=xy[:, 1].tolist(),
        name=number,
        names=[look.groups[key].name for key in keys],
        is_new=[look.groups[key].is_new for key in keys],
        by=_sources(look, rows),
        margin=margin.tolist(),
        disagrees=_mask(look, disagreeing(look))[rows].tolist(),
        n_rows=len(atlas.order),
    )


def _points(look: Look, atlas: Atlas) -> IntArray:
    """The rows to draw: all, or half of them labelled ones, the newest first, and the others evenly spread."""
    rows = atlas.train_rows
    if len(rows) <= MAX_POINTS:
        return rows
    labelled = look.labels["row"][atlas.top_slots[look.labels["row"], 0] != NO_SLOT][: MAX_POINTS // 2]
    n_others = MAX_POINTS - len(labelled)
    return np.union1d(rows[:: -(-len(rows) // n_others)], labelled)


def _sources(look: Look, rows: IntArray) -> list[Literal["human", "page", "model"]]:
    """Who says what each of ``rows`` is."""
    by_human, by_page = _mask(look, look.labels["row"])[rows], _mask(look, list(look.standing.accepted))[rows]
    both = zip(by_human.tolist(), by_page.tolist(), strict=True)
    return ["human" if human else "page" if page else "model" for human, page in both]
