"""The class board: one card per class or unnamed group, and what merging, splitting and growing would do."""

from __future__ import annotations

from collections import Counter

import numpy as np

from agcd.app.rounds import Atlas
from agcd.app.web.cards import exemplars
from agcd.app.web.schemas import Board, BoardCard, ClassName, Grow, Half, Members, MergePreview, SplitPreview
from agcd.app.web.server_state import Desk
from agcd.app.web.snapshot import Group, Look
from agcd.errors import DataError
from agcd.types import FloatArray, IntArray

N_SHOWN = 6
CARDS_PER_PAGE, MEMBERS_PER_PAGE, GROW_PER_PAGE = 12, 24, 40
_SPLIT_ROWS = 5000
_GROW_ROWS = 20_000
_PREVIEW = 12


def page_of(n: int, page: int, per_page: int) -> tuple[int, int, slice]:
    """The page that there is nearest to the wanted one, how many there are, and what it shows."""
    n_pages = max(1, -(-n // per_page))
    page = min(max(page, 0), n_pages - 1)
    return page, n_pages, slice(page * per_page, (page + 1) * per_page)


def board(look: Look, page: int, sort: str, text: str) -> Board:
    """A page of cards."""
    wanted = text.casefold().strip()
    groups = [group for group in look.groups.values() if wanted in group.name.casefold()]
    groups.sort(key=lambda group: _sort_key(look, group, sort))
    page, n_pages, shown = page_of(len(groups), page, CARDS_PER_PAGE)
    cards = [board_card(look, group) for group in groups[shown]]
    number = look.atlas.number if look.atlas else None
    return Board(cards=cards, n_cards=len(groups), page=page, n_pages=n_pages, round=number)


def _sort_key(look: Look, group: Group, sort: str) -> tuple[object, ...]:
    retired = bool(group.info and group.info.retired)
    if sort == "name":
        return retired, group.info is None, group.name.casefold()
    if sort == "new":
        return retired, not group.is_new, -look.size(group)
    if sort == "conflicts":
        return retired, -len(conflicts(look, group)), -look.size(group)
    if sort == "purity":
        share = purity(look, group)
        return retired, 2.0 if share is None else share, -look.size(group)
    return retired, -look.size(group), group.name.casefold()


def board_card(look: Look, group: Group) -> BoardCard:
    """Everything about one class or group, with a few of its pictures."""
    members, atlas = look.members(group), look.atlas
    # A class that the last model does not know yet has no members; its labelled rows stand for it.
    typical = members[:N_SHOWN] if len(members) else look.labelled(group)[:N_SHOWN]
    return BoardCard(
        key=group.key,
        class_id=group.info.id if group.info else None,
        slot=group.slot,
        name=group.name,
        is_named=group.info is not None,
        is_new=group.is_new,
        is_retired=bool(group.info and group.info.retired),
        size=look.size(group),
        n_labels=len(look.labelled(group)),
        n_accepted=look.n_accepted[group.info.id] if group.info else 0,
        purity=purity(look, group),
        stability=atlas.facts["stability"][group.slots[0]] if atlas and group.slots else None,
        conflicts=conflicts(look, group),
        typical=look.thumbs(typical),
        border=look.thumbs(border(look, group, N_SHOWN)),
    )


def border(look: Look, group: Group, n: int) -> IntArray:
    """Members that nobody has answered and that could most easily belong elsewhere."""
    members = look.members(group)
    if look.atlas is None:
        return members
    members = members[~look.settled[members]]
    return members[np.argsort(look.atlas.margin(members), kind="stable")[:n]]


def purity(look: Look, group: Group) -> float | None:
    """Of the labels that people gave to its members, the share that carries its name."""
    votes: Counter[str] = sum((look.votes[slot] for slot in group.slots if slot in look.votes), start=Counter())
    total = sum(votes.values())
    if not total or group.info is None:
        return None
    return votes[group.info.id] / total


def conflicts(look: Look, group: Group) -> list[str]:
    """What people said that does not fit one name, one group; in sentences."""
    found, registry = [], look.standing.registry
    for slot in group.slots:
        others = {c: n for c, n in look.votes.get(slot, {}).items() if group.info is None or c != group.info.id}
        if sum(others.values()) > 0 and (group.info is not None or len(others) > 1):
            most_first = sorted((-n, registry.classes[c].name) for c, n in others.items())
            names = ", ".join(f"{name} ({-n})" for n, name in most_first)
            found.append(f"People also call members of this group: {names}.")
    if group.info is not None:
        outside = sum(votes[group.info.id] for slot, votes in look.votes.items() if slot not in group.slots)
        if outside and group.slots:
            found.append(f"{outside} picture(s) with this name lie in other groups.")
    return found


def names(look: Look) -> list[ClassName]:
    """Every class that can be chosen by typing, the largest first."""
    found = []
    for group in look.groups.values():
        if group.info is not None:
            shown = exemplars(look, group, n=1)
            found.append(
                ClassName(
                    class_id=group.info.id,
                    name=group.info.name,
                    aliases=list(group.info.aliases),
                    is_new=group.is_new,
                    is_retired=group.info.retired,
                    n_labels=len(look.labelled(group)),
                    size=look.size(group),
                    exemplar=look.thumb(shown[0]) if shown else None,
                )
            )
    return sorted(found, key=lambda name: (-name.size, name.name.casefold()))


def members_page(look: Look, group: Group, order: str, page: int) -> Members:
    """More members of one card: typical ones, border cases, or those that people labelled."""
    if order == "labelled":
        rows = look.labelled(group)
    elif order == "border":
        rows = border(look, group, look.size(group))
    else:
        rows = look.members(group)
    page, n_pages, shown = page_of(len(rows), page, MEMBERS_PER_PAGE)
    return Members(thumbs=look.thumbs(rows[shown]), n=len(rows), page=page, n_pages=n_pages)


def merge_preview(look: Look, one: Group, into: Group) -> MergePreview:
    """Both side by side, and what a merge would do."""
    if one.key == into.key:
        raise DataError("A class cannot be merged with itself.")
    if one.info is None and into.info is None:
        raise DataError("Both groups are unnamed: name one of them first.")
    count = len(look.labelled(one))
    what = f"{count} label(s) of {one.name} will count as {into.name}, which has {len(look.labelled(into))}."
    if one.info is None or into.info is None:
        unnamed, named = (one, into) if one.info is None else (into, one)
        what = f"{unnamed.name} has no name: the pictures that you tick are labelled as {named.name}."
    labelled = [look.thumbs(look.labelled(group)[:_PREVIEW]) for group in (one, into)]
    return MergePreview(
        one=board_card(look, one),
        into=board_card(look, into),
        labelled_one=labelled[0],
        labelled_into=labelled[1],
        what=what,
    )


def split_preview(look: Look, atlas: Atlas, group: Group) -> SplitPreview:
    """The two halves that 2-means finds in a group."""
    members = look.members(group)
    rows = np.union1d(members[:: 1 + len(members) // _SPLIT_ROWS], look.labelled(group))
    if len(rows) < 4:
        raise DataError(f"{group.name} has too few pictures to be split.")
    in_second, distance = two_means(atlas.vectors(rows))
    halves = []
    for half in (~in_second, in_second):
        inside = rows[half][np.argsort(distance[half], kind="stable")]
        labelled = np.intersect1d(inside, look.labelled(group))
        typical = inside[~np.isin(inside, labelled)]
        size = round(len(inside) / len(rows) * max(len(members), len(rows)))
        halves.append(Half(size=size, typical=look.thumbs(typical[:_PREVIEW]), labelled=look.thumbs(labelled)))
    halves.sort(key=lambda half: (-len(half.labelled), -half.size))
    return SplitPreview(card=board_card(look, group), halves=halves)


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


def grow_page(desk: Desk, look: Look, atlas: Atlas, group: Group, order: str, page: int) -> Grow:
    """Unanswered pictures by falling similarity; ``order`` names the list that the first page fixes."""
    if page == 0:
        desk.keep(f"grow-{order}", _grow_order(look, atlas, group))
    rows = desk.kept(f"grow-{order}")
    page, n_pages, shown = page_of(len(rows), page, GROW_PER_PAGE)
    similar = atlas.vectors(rows[shown]) @ _centre(look, atlas, group)
    return Grow(
        card=board_card(look, group),
        thumbs=look.thumbs(rows[shown]),
        page=page,
        n_pages=n_pages,
        page_size=GROW_PER_PAGE,
        similarity=(float(similar.max()), float(similar.min())) if len(similar) else None,
    )


def grown_rows(desk: Desk, look: Look, order: str, last_page: int) -> IntArray:
    """All rows of the pages up to ``last_page`` that still have no answer."""
    rows = desk.kept(f"grow-{order}")[: (last_page + 1) * GROW_PER_PAGE]
    return rows[~look.settled[rows]]


def _grow_order(look: Look, atlas: Atlas, group: Group) -> IntArray:
    """Rows for which the class is among the five likeliest; of very many only those where it is the likeliest."""
    if not group.slots:
        raise DataError(f"The last model does not know {group.name} yet: train the next round first.")
    usable = ~look.settled
    rows = np.flatnonzero(np.isin(atlas.top_slots, group.slots).any(1) & usable)
    if len(rows) > _GROW_ROWS:
        rows = look.members(group)
        rows = rows[usable[rows]][:_GROW_ROWS]
    return atlas.most_similar(_centre(look, atlas, group), rows, len(rows))[0]


def _centre(look: Look, atlas: Atlas, group: Group) -> FloatArray:
    """The mean of what people labelled, or else of the surest members."""
    rows = look.labelled(group)[:200]
    if not len(rows):
        rows = look.members(group)[:50]
    mean = atlas.vectors(rows).mean(0)
    return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-9))
