"""The class board: one card per class or unnamed group, and what merging and splitting would do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agcd.app.figures import LEAST_LOST
from agcd.app.rounds import RoundView
from agcd.app.snapshot import Group, Snapshot
from agcd.app.web.board_schemas import Board, BoardCard, Half, Members, MergePreview, SplitPreview
from agcd.app.web.cards import exemplars, shown_group
from agcd.app.web.schemas import ClassName, Thumb
from agcd.app.web.server_state import ServerState
from agcd.errors import DataError
from agcd.types import FloatArray, IntArray
from agcd.words import count

N_SHOWN, N_SHOWN_IN_LINE = 6, 3
CARDS_PER_PAGE, LINES_PER_PAGE, MEMBERS_PER_PAGE = 12, 60, 24
MOST_CARDS = 40
"""With more classes and groups than this the board has a line for each, unless the person chose otherwise."""
_SPLIT_ROWS = 5000
_PREVIEW = 12


def page_of(n: int, page: int, per_page: int) -> tuple[int, int, slice]:
    """The page that there is nearest to the wanted one, how many there are, and what it shows."""
    n_pages = max(1, -(-n // per_page))
    page = min(max(page, 0), n_pages - 1)
    return page, n_pages, slice(page * per_page, (page + 1) * per_page)


def board(server: ServerState, snapshot: Snapshot, page: int, sort: str, text: str, view: str) -> Board:
    """A page of cards, or of lines; ``view`` "auto" chooses by how many there are."""
    wanted, every = text.casefold().strip(), snapshot.shown_groups()
    as_lines = view == "lines" or (view == "auto" and len(every) > MOST_CARDS)
    groups = [group for group in every if wanted in group.name.casefold()]
    groups.sort(key=lambda group: _sort_key(snapshot, group, sort))
    page, n_pages, shown = page_of(len(groups), page, LINES_PER_PAGE if as_lines else CARDS_PER_PAGE)
    return Board(
        cards=board_cards(server, snapshot, groups[shown], as_lines=as_lines),
        n_cards=len(groups),
        page=page,
        n_pages=n_pages,
        round=snapshot.round.number if snapshot.round else None,
        view="lines" if as_lines else "cards",
    )


def _sort_key(snapshot: Snapshot, group: Group, sort: str) -> tuple[object, ...]:
    retired = bool(group.info and group.info.retired)
    if sort == "name":
        return retired, group.info is None, group.name.casefold()
    if sort == "new":
        return retired, not group.is_new, -snapshot.size(group)
    if sort == "conflicts":
        return retired, -len(conflicts(snapshot, group)), -snapshot.size(group)
    if sort == "agreement":
        n_agree, n_said = answers_inside(snapshot, group)
        return retired, n_agree / n_said if n_said else 2.0, -snapshot.size(group)
    return retired, -snapshot.size(group), group.name.casefold()


def board_card(server: ServerState, snapshot: Snapshot, group: Group) -> BoardCard:
    """Everything about one class or group, with a few of its pictures."""
    return board_cards(server, snapshot, [group])[0]


def board_cards(
    server: ServerState, snapshot: Snapshot, groups: Sequence[Group], *, as_lines: bool = False
) -> list[BoardCard]:
    """The same for several; on a line fewer pictures."""
    n = N_SHOWN_IN_LINE if as_lines else N_SHOWN
    typical = server.thumb_lists(snapshot, [_typical(snapshot, group, n) for group in groups])
    at_border = server.thumb_lists(snapshot, [border(snapshot, group, n) for group in groups])
    return [_board_card(snapshot, *shown) for shown in zip(groups, typical, at_border, strict=True)]


def _typical(snapshot: Snapshot, group: Group, n: int) -> IntArray:
    """The clearest members. A class that the last model does not know yet has none; its labelled rows stand for it."""
    members = snapshot.members(group, n)
    return members if len(members) else snapshot.labelled(group)[:n]


def _board_card(snapshot: Snapshot, group: Group, typical: list[Thumb], at_border: list[Thumb]) -> BoardCard:
    n_agree, n_said = answers_inside(snapshot, group)
    return BoardCard(
        **shown_group(snapshot, group),
        is_retired=bool(group.info and group.info.retired),
        n_labels=len(snapshot.labelled(group)),
        n_accepted=snapshot.n_accepted(group),
        n_agree=n_agree,
        n_said=n_said,
        stability=snapshot.stability(group),
        conflicts=conflicts(snapshot, group),
        typical=typical,
        border=at_border,
    )


def border(snapshot: Snapshot, group: Group, n: int) -> IntArray:
    """Members that nobody has answered and that could most easily belong elsewhere."""
    members = snapshot.members(group)
    if snapshot.round is None:
        return members[:n]
    members = members[~snapshot.labels.settled[members]]
    return members[np.argsort(snapshot.margin(members), kind="stable")[:n]]


def answers_inside(snapshot: Snapshot, group: Group) -> tuple[int, int]:
    """Of the labels that people gave to its members, how many carry its name, and how many there are."""
    inside = snapshot.labels_inside(group)
    if group.info is None:
        return 0, 0
    return inside.get(snapshot.number(group), 0), sum(inside.values())


def conflicts(snapshot: Snapshot, group: Group) -> list[str]:
    """What people said that does not fit one name, one group; in sentences. A group without a name says what it
    contains."""
    if group.info is None:
        contains = snapshot.contains(group)
        return [f"Answers that looked like it: {contains}."] if contains else []
    # The first answer for a class always looked like another one: a single one contradicts nothing.
    contains = snapshot.contains(group, others=True, least=LEAST_LOST)
    found = [f"Answers that looked like it but have another name: {contains}."] if contains else []
    inside = snapshot.labels_inside(group).get(snapshot.number(group), 0)
    outside = len(snapshot.labelled(group)) - inside
    if outside and group.slots:
        found.append(
            f"{count(outside, snapshot.noun)} with this name {'lies' if outside == 1 else 'lie'} in other groups."
        )
    return found


def names(server: ServerState, snapshot: Snapshot) -> list[ClassName]:
    """Every class that can be chosen by typing, the largest first: also one that nothing carries any more."""
    standing = [info for info in snapshot.labels.registry.infos if info.merged_into is None]
    groups = [snapshot.groups.get(f"c-{info.id}", Group(info, (), not info.is_old)) for info in standing]
    # All pictures at once: one by one they would take most of the time.
    first = [exemplars(snapshot, group, n=1) for group in groups]
    thumbs = iter(server.thumbs(snapshot, [row for rows in first for row in rows]))
    found = [
        ClassName(
            class_id=info.id,
            name=info.name,
            aliases=list(info.aliases),
            is_new=group.is_new,
            is_retired=info.retired,
            n_labels=len(snapshot.labelled(group)),
            size=snapshot.size(group),
            exemplar=next(thumbs) if rows else None,
        )
        for info, group, rows in zip(standing, groups, first, strict=True)
    ]
    return sorted(found, key=lambda name: (-name.size, name.name.casefold()))


def members_page(server: ServerState, snapshot: Snapshot, group: Group, order: str, page: int) -> Members:
    """More members of one card: typical ones, border cases, or those that people labelled."""
    if order == "labelled":
        rows = snapshot.labelled(group)
    elif order == "border":
        rows = border(snapshot, group, snapshot.size(group))
    else:
        rows = snapshot.members(group)
    page, n_pages, shown = page_of(len(rows), page, MEMBERS_PER_PAGE)
    return Members(thumbs=server.thumbs(snapshot, rows[shown]), n=len(rows), page=page, n_pages=n_pages)


def merge_preview(server: ServerState, snapshot: Snapshot, one: Group, into: Group) -> MergePreview:
    """Both side by side, and what a merge would do."""
    if one.key == into.key:
        raise DataError("A class cannot be merged with itself.")
    if one.info is None and into.info is None:
        raise DataError("Both groups are unnamed: name one of them first.")
    n_one, n_into = (len(snapshot.labelled(group)) for group in (one, into))
    what = f"{count(n_one, 'label')} of {one.name} will count as {into.name}, which has {n_into:,}."
    if one.info is None or into.info is None:
        unnamed, named = (one, into) if one.info is None else (into, one)
        what = f"{unnamed.name} has no name: the {snapshot.noun}s that you tick are labelled as {named.name}."
    labelled = [server.thumbs(snapshot, snapshot.labelled(group)[:_PREVIEW]) for group in (one, into)]
    return MergePreview(
        one=board_card(server, snapshot, one),
        into=board_card(server, snapshot, into),
        labelled_one=labelled[0],
        labelled_into=labelled[1],
        what=what,
    )


def split_preview(server: ServerState, snapshot: Snapshot, seen: RoundView, group: Group) -> SplitPreview:
    """The two halves that 2-means finds in a group."""
    members = snapshot.members(group)
    rows = np.union1d(members[:: 1 + len(members) // _SPLIT_ROWS], snapshot.labelled(group))
    if len(rows) < 4:
        raise DataError(f"{group.name} has too few {snapshot.noun}s to be split.")
    in_second, distance = two_means(seen.vectors(rows))
    halves = []
    for half in (~in_second, in_second):
        inside = rows[half][np.argsort(distance[half], kind="stable")]
        labelled = np.intersect1d(inside, snapshot.labelled(group))
        typical = inside[~np.isin(inside, labelled)]
        size = round(len(inside) / len(rows) * max(len(members), len(rows)))
        halves.append(
            Half(
                size=size,
                typical=server.thumbs(snapshot, typical[:_PREVIEW]),
                labelled=server.thumbs(snapshot, labelled),
            )
        )
    halves.sort(key=lambda half: (-len(half.labelled), -half.size))
    return SplitPreview(card=board_card(server, snapshot, group), halves=halves)


def two_means(x: FloatArray, max_iter: int = 20) -> tuple[np.ndarray, FloatArray]:
    """Which rows of ``x`` (n, d) belong to the second of two clusters, and how far each is from its centre.

    It starts from the two sides of the direction in which the rows differ most, so that it always finds the same.
    """
    x = x - x.mean(0)
    along = x @ np.linalg.eigh(x.T @ x)[1][:, -1]
    second = along > np.median(along)
    distance = np.zeros(len(x), x.dtype)
    norms = (x**2).sum(1)
    for _ in range(max_iter):
        if second.all() or not second.any():
            break
        centres = np.stack([x[~second].mean(0), x[second].mean(0)])
        squares = np.maximum(norms[:, None] - 2 * x @ centres.T + (centres**2).sum(1), 0.0)
        nearest = squares.argmin(1) == 1
        distance = squares.min(1)
        if np.array_equal(nearest, second):
            break
        second = nearest
    return second, distance
