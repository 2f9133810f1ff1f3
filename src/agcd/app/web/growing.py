"""Growing a class: pictures without an answer by falling similarity, and how many of them are accepted."""

from __future__ import annotations

import numpy as np

from agcd.app.labels import How
from agcd.app.rounds import RoundView
from agcd.app.snapshot import Group, Snapshot
from agcd.app.web.board import board_card, page_of
from agcd.app.web.board_schemas import Grow
from agcd.app.web.server_state import ServerState
from agcd.errors import ConfigError, DataError
from agcd.types import FloatArray, IntArray

LEAST_PER_PAGE, MOST_PER_PAGE = 12, 40
_MOST_ROWS = 20_000
_N_LABELLED, _N_MEMBERS = 200, 50


def grow_page(
    server: ServerState, snapshot: Snapshot, seen: RoundView, group: Group, order: str, page: int, per_page: int | None
) -> Grow:
    """Candidates for a class, the most similar first; ``order`` names the list that the first page fixes."""
    if page == 0:
        server.keep(_name(order), grow_order(snapshot, seen, group))
    rows, per_page = server.kept(_name(order)), per_page or page_size(snapshot, group)
    page, n_pages, shown = page_of(len(rows), page, per_page)
    similar = seen.vectors(rows[shown]) @ _centre(snapshot, seen, group)
    return Grow(
        card=board_card(server, snapshot, group),
        thumbs=server.thumbs(snapshot, rows[shown]),
        n=len(rows),
        page=page,
        n_pages=n_pages,
        page_size=per_page,
        similarity=(float(similar.max()), float(similar.min())) if len(similar) else None,
    )


def page_size(snapshot: Snapshot, group: Group) -> int:
    """About as many pictures as the class is likely to have: a page much longer holds mostly others."""
    return min(max(snapshot.size(group), LEAST_PER_PAGE), MOST_PER_PAGE)


def grown_rows(server: ServerState, snapshot: Snapshot, order: str, last_row: int) -> IntArray:
    """The rows of the list up to ``last_row`` that still have no answer."""
    rows = server.kept(_name(order))
    place = np.flatnonzero(rows == last_row)
    if not len(place):
        raise DataError(f"Row {last_row} is not in that list of similar {snapshot.noun}s.")
    rows = rows[: place[0] + 1]
    return rows[~snapshot.labels.settled[rows]]


def grow_order(snapshot: Snapshot, seen: RoundView, group: Group) -> IntArray:
    """Rows without an answer by falling similarity to the class; it may be one answer old and unknown to the model."""
    if seen.features is None:
        raise ConfigError(
            f"What the {snapshot.noun}s are like is no longer in cache/: let the model learn from your answers first."
        )
    rows = _searched(snapshot, seen, group)
    rows = rows[~snapshot.labels.settled[rows]]
    return seen.most_similar(_centre(snapshot, seen, group), rows, _MOST_ROWS)[0]


def _searched(snapshot: Snapshot, seen: RoundView, group: Group) -> IntArray:
    """Where to look: everywhere, or in a very large project among its members and near what people labelled."""
    if len(seen.order) <= _MOST_ROWS:
        return seen.train_rows
    near = [seen.near(row) for row in snapshot.labelled(group)[:3].tolist()]
    return np.unique(np.concatenate([snapshot.members(group)[:_MOST_ROWS], *near]))


def _centre(snapshot: Snapshot, seen: RoundView, group: Group) -> FloatArray:
    """The mean of what people labelled, or else of the surest members, or of what was accepted."""
    found = (snapshot.labelled(group)[:_N_LABELLED], snapshot.members(group, _N_MEMBERS), _accepted(snapshot, group))
    rows = next((rows for rows in found if len(rows)), None)
    if rows is None:
        raise DataError(f"{group.name} has no {snapshot.noun} yet that others could be compared with.")
    mean = seen.vectors(rows).mean(0)
    return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-9))


def _accepted(snapshot: Snapshot, group: Group) -> IntArray:
    rows = snapshot.labels.rows((How.ACCEPTED,))
    return np.asarray(rows[snapshot.labels.classes_of(rows) == snapshot.number(group)][:_N_LABELLED])


def _name(order: str) -> str:
    return f"grow-{order}"
