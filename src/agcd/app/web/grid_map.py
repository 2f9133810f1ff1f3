"""The grid and the map: many pictures at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from agcd.app.figures import SURE
from agcd.app.labels import LEARNED, How
from agcd.app.rounds import NO_SLOT, RoundView
from agcd.app.snapshot import SOURCES, Snapshot
from agcd.app.web.board import page_of
from agcd.app.web.board_schemas import Choice, Grid, GridChoices, MapPoints
from agcd.app.web.server_state import ServerState
from agcd.errors import DataError
from agcd.types import BoolArray, IntArray

PER_PAGE = 60
MAX_POINTS = 20_000
SHOWS = ("all", "unlabelled", "labelled", "accepted", "junk", "passed", "disagree", "selection")
_HOWS = {"labelled": (*LEARNED, How.HELD), "junk": (How.JUNK,), "passed": (How.SKIPPED, How.UNSURE)}
ORDERS = ("row", "uncertain", "confident", "class")


@dataclass(frozen=True)
class Wanted:
    """Which pictures the grid shows; what is None or empty narrows nothing."""

    show: str = "all"
    key: str | None = None
    selection: str | None = None
    text: str = ""
    folder: str | None = None
    who: str | None = None
    round: int | None = None
    sure: str | None = None


def grid(server: ServerState, snapshot: Snapshot, wanted: Wanted, order: str, page: int) -> Grid:
    """A page of pictures, filtered and in order."""
    rows, title = _chosen(server, snapshot, wanted.show, wanted.selection)
    for narrow in (_of_class, _of_files, _of_answers, _of_sureness):
        rows, words = narrow(server, snapshot, wanted, rows)
        title = f"{title} {words}".rstrip()
    rows = _ordered(snapshot, rows, order)
    page, n_pages, shown = page_of(len(rows), page, PER_PAGE)
    thumbs = server.thumbs(snapshot, rows[shown])
    if words := wanted.text.strip():
        thumbs = [thumb.model_copy(update={"text": server.excerpt_around(thumb.row, words)}) for thumb in thumbs]
    return Grid(thumbs=thumbs, n=len(rows), page=page, n_pages=n_pages, title=title)


def _of_class(_: ServerState, snapshot: Snapshot, wanted: Wanted, rows: IntArray) -> tuple[IntArray, str]:
    if wanted.key is None:
        return rows, ""
    group = snapshot.group(wanted.key)
    own = np.union1d(snapshot.members(group), snapshot.labelled(group))
    return own[_mask(snapshot, rows)[own]], f"of {group.name}"


def _of_files(server: ServerState, _: Snapshot, wanted: Wanted, rows: IntArray) -> tuple[IntArray, str]:
    words = []
    if wanted.folder is not None:
        rows = rows[server.files.below(wanted.folder)[rows]]
        words.append(f"in {wanted.folder}")
    if wanted.text.strip():
        rows = rows[server.files.containing(wanted.text.strip())[rows]]
        words.append(f"named “{wanted.text.strip()}”")
    return rows, ", ".join(words)


def _of_answers(_: ServerState, snapshot: Snapshot, wanted: Wanted, rows: IntArray) -> tuple[IntArray, str]:
    """Those whose answer, of a person or of a round, is the one that counts."""
    if wanted.who is None and wanted.round is None:
        return rows, ""
    said = [(row, event) for row, event in snapshot.labels.answers() if event.source != "seed"]
    answered = [
        row
        for row, event in said
        if wanted.who in (None, event.who) and (wanted.round is None or event.round == wanted.round)
    ]
    words = [f"by {wanted.who}"] if wanted.who else []
    words += [] if wanted.round is None else [f"for round {wanted.round}"]
    mask = _mask(snapshot, np.asarray(answered, np.int64))
    return rows[mask[rows]], f"answered {' '.join(words)}"


def _of_sureness(_: ServerState, snapshot: Snapshot, wanted: Wanted, rows: IntArray) -> tuple[IntArray, str]:
    if wanted.sure is None:
        return rows, ""
    is_sure = snapshot.p_right(rows) >= SURE
    return rows[is_sure == (wanted.sure == "sure")], f"that are {wanted.sure}"


def choices(server: ServerState, snapshot: Snapshot) -> GridChoices:
    """What the grid can be narrowed to."""
    groups = sorted(snapshot.shown_groups(), key=lambda group: (group.info is None, group.name.casefold()))
    said = [event for _, event in snapshot.labels.answers() if event.source != "seed"]
    rounds = sorted({event.round for event in said})
    return GridChoices(
        folders=[Choice(value=folder, word=folder) for folder in server.files.folders if folder],
        classes=[Choice(value=group.key, word=group.name) for group in groups],
        people=[Choice(value=who, word=who) for who in sorted({event.who for event in said})],
        rounds=[Choice(value=str(number), word=f"for training {number + 1}") for number in rounds],
    )


def _chosen(server: ServerState, snapshot: Snapshot, show: str, selection: str | None) -> tuple[IntArray, str]:
    labels = snapshot.labels
    if show == "selection":
        return server.kept(f"selection-{selection}"), "chosen on the map"
    if show == "unlabelled":
        return np.flatnonzero(~labels.settled), f"{snapshot.noun}s without an answer"
    if show in _HOWS:
        return labels.rows(_HOWS[show]), f"{show} {snapshot.noun}s"
    if show == "accepted":
        return labels.rows((How.ACCEPTED,)), f"{snapshot.noun}s accepted by page"
    if show == "disagree":
        return snapshot.disagreeing, f"{snapshot.noun}s that people and model call differently"
    return labels.train_rows, f"all {snapshot.noun}s"


def _ordered(snapshot: Snapshot, rows: IntArray, order: str) -> IntArray:
    """``rows``, which rise, in another order; rows of equal rank stay as they are."""
    if snapshot.round is None or order == "row":
        return rows
    if order == "class":
        # The view of a round sorts all rows once; to pick some of a million takes a moment.
        ranked = snapshot.round.slot_by_slot
        return ranked[_mask(snapshot, rows)[ranked]]
    sureness = snapshot.p_right(rows)
    return rows[np.argsort(sureness if order == "uncertain" else -sureness, kind="stable")]


def _mask(snapshot: Snapshot, rows: IntArray) -> BoolArray:
    mask = np.zeros(snapshot.labels.n_rows, np.bool_)
    mask[rows] = True
    return mask


def map_points(server: ServerState, snapshot: Snapshot, seen: RoundView, rounds: list[int]) -> MapPoints:
    """The pictures of one round as points; of very many a fair sample, the labelled ones among them.

    An earlier round, too, is drawn with today's names.
    """
    rows = _points(snapshot, seen)
    if not len(rows):
        raise DataError("There is nothing to draw.")
    numbers, groups = np.unique(snapshot.machine_numbers(rows), return_inverse=True)
    order = sorted(range(len(numbers)), key=lambda i: snapshot.names[numbers[i]].casefold())
    place = np.argsort(order)
    xy, margin = (np.round(values.astype(np.float64), 4) for values in (seen.xy[rows], snapshot.margin(rows)))
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
