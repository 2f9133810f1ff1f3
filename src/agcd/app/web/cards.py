"""The query card: one picture, the classes it may be, its neighbours, and why it was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from agcd.app.labels import LEARNED, among
from agcd.app.live_questions import LiveQuestion, claim_live
from agcd.app.project import Project
from agcd.app.questions import claim, n_open, open_rows
from agcd.app.rounds import NO_SLOT, RoundView
from agcd.app.snapshot import Group, Snapshot
from agcd.app.store.queries import Question, StoredQuery, leases
from agcd.app.web.schemas import Candidate, Card, Thumb
from agcd.app.web.server_state import ServerState
from agcd.types import IntArray
from agcd.words import count

N_CANDIDATES, N_EXEMPLARS, N_NEIGHBOURS, N_AHEAD = 5, 6, 6, 10
_HUMAN_EXEMPLARS = 4
"""The rest of the row is for the model's own idea of the class."""
WAVERS = 0.3
"""A gap between the two likeliest classes below which the model is said to waver."""


@dataclass(frozen=True)
class Asker:
    """Who asks, from which browser; answers to ``answered`` are on their way, so these are not handed out again."""

    who: str
    holder: str
    answered: tuple[int, ...] = ()


def next_card(server: ServerState, project: Project, asker: Asker, *, blind: bool, audit: bool) -> Card:
    """Lease the next question to this browser and tell all that helps to answer it."""
    snapshot = server.snapshot(project)
    query = snapshot.asked.audit if audit else snapshot.asked.query
    if query is None:
        return Card(row=None, is_audit=audit)
    row = claim(project.store, project.log, query, asker.who, holder=asker.holder, except_rows=asker.answered)
    if row is None:
        waiting = n_open(snapshot.labels, query)
        return Card(row=None, is_audit=audit, held_by_others=waiting, of=len(query.questions))
    hidden = blind or audit or snapshot.round is None
    path = "" if hidden else project.paths[row]  # it may tell the class
    shown = {"is_blind": hidden, "is_audit": audit, "path": path}
    card = _bare_card(server, project, query, row, asker).model_copy(update=shown)
    if hidden or snapshot.round is None:
        return card
    question = next(question for question in query.questions if question.row == row)
    return card.model_copy(update=_suggestions(server, snapshot, snapshot.round, question))


def next_live_card(server: ServerState, project: Project, asker: Asker, *, blind: bool) -> Card:
    """The same for a live question: every answer so far counts, and questions never run out before the pictures do."""
    project.labels()  # what is committed is taken in before others have to wait
    with project.store.transaction():
        # Nobody answers between the moment that is shown and the question, so answers are followed in their order.
        snapshot = server.snapshot(project)
        seen, question = snapshot.round, None
        if snapshot.live is not None and seen is not None:
            question = claim_live(
                project.store,
                project.log,
                project.live,
                seen,
                asker.who,
                holder=asker.holder,
                except_rows=asker.answered,
            )
    if seen is None or question is None:
        return Card(row=None, is_live=True)
    row = question.row
    card = Card(
        **server.seen(row),
        path="" if blind else project.paths[row],  # it may tell the class
        query_id=question.query_id,
        number=question.number + 1,
        is_live=True,
        is_drawn=question.is_drawn,
        is_blind=blind,
    )
    return card if blind else card.model_copy(update=_live_suggestions(server, snapshot, seen, question))


def _live_suggestions(
    server: ServerState, snapshot: Snapshot, seen: RoundView, question: LiveQuestion
) -> dict[str, object]:
    found = candidates(server, snapshot, seen, question.row)
    seems_new = _group_of(snapshot, question.row).info is None
    shown = {"why": live_why(snapshot, found, question), "candidates": found, "seems_new": seems_new}
    return shown | _neighbour_thumbs(server, snapshot, seen, question.row)


def _neighbour_thumbs(server: ServerState, snapshot: Snapshot, seen: RoundView, row: int) -> dict[str, object]:
    labelled, unlabelled = server.thumb_lists(snapshot, neighbours(snapshot, seen, row, N_NEIGHBOURS), judged=False)
    return {"labelled_neighbours": labelled, "neighbours": unlabelled}


def live_why(snapshot: Snapshot, found: list[Candidate], question: LiveQuestion) -> str:
    """Why this picture was chosen, in words."""
    group = _group_of(snapshot, question.row)
    if question.is_drawn:
        return "Drawn at random: your answer also tells how good the names are."
    if group.info is None:
        return f"One of {count(snapshot.size(group), snapshot.noun)} that seem to be of a kind nobody has named."
    if len(found) > 1 and found[0].probability - found[1].probability < WAVERS:
        return f"It could be {found[0].name} or {found[1].name}: your answer moves the border."
    return f"It looks like {group.name}, and nobody has confirmed that nearby."


def _bare_card(server: ServerState, project: Project, query: StoredQuery, row: int, asker: Asker) -> Card:
    labels, taken = project.labels(), (*asker.answered, row)
    held = leases(project.store, query.id, asker.holder)
    ahead = islice(open_rows(labels, query, held, asker.who, except_rows=taken), N_AHEAD)
    n_done = len(query.questions) - n_open(labels, query)
    return Card(
        **server.seen(row),
        query_id=query.id,
        number=min(len(query.questions), n_done + 1 + len(asker.answered)),
        of=len(query.questions),
        upcoming=[Thumb(**server.seen(other)) for other in ahead],
    )


def _suggestions(server: ServerState, snapshot: Snapshot, seen: RoundView, question: Question) -> dict[str, object]:
    group, found = _group_of(snapshot, question.row), candidates(server, snapshot, seen, question.row)
    shown = {"why": why(found, group, question), "group": group.name, "candidates": found}
    return shown | _neighbour_thumbs(server, snapshot, seen, question.row)


def _group_of(snapshot: Snapshot, row: int) -> Group:
    """The group that answers or the model give to a row."""
    return snapshot.group_by_number(int(snapshot.machine_numbers(np.array([row]))[0]))


def candidates(server: ServerState, snapshot: Snapshot, seen: RoundView, row: int) -> list[Candidate]:
    """The classes for which most speaks, and the model's groups where it is the model that says so."""
    if snapshot.live is not None:
        infos = snapshot.labels.registry.infos
        found = snapshot.live.suggested(np.array([row]))[0]
        standing = [(place, share) for place, share in found if not infos[place].retired]
        return _candidates(server, snapshot, [(snapshot.group_by_number(n), share) for n, share in standing], row)
    return _model_candidates(server, snapshot, seen, row)


def _model_candidates(server: ServerState, snapshot: Snapshot, seen: RoundView, row: int) -> list[Candidate]:
    """The most probable classes and groups; slots that were merged into one class count together. Left out are retired
    classes, and slots without a name that nothing lies in."""
    shares: dict[str, float] = {}
    for slot, share in zip(seen.top_slots[row].tolist(), seen.top_probs[row].astype(float).tolist(), strict=True):
        group = snapshot.slot_group(slot) if slot != NO_SLOT else None
        if group and (not group.info.retired if group.info else snapshot.size(group)):
            shares[group.key] = shares.get(group.key, 0.0) + share
    best = sorted(shares.items(), key=lambda item: -item[1])[:N_CANDIDATES]
    return _candidates(server, snapshot, [(snapshot.groups[key], share) for key, share in best], row)


def _candidates(
    server: ServerState, snapshot: Snapshot, shares: Sequence[tuple[Group, float]], row: int
) -> list[Candidate]:
    shown = server.thumb_lists(snapshot, [exemplars(snapshot, group, row) for group, _ in shares], judged=False)
    return [
        Candidate(**shown_group(snapshot, group), probability=min(1.0, share), exemplars=thumbs)
        for (group, share), thumbs in zip(shares, shown, strict=True)
    ]


def shown_group(snapshot: Snapshot, group: Group) -> dict[str, Any]:
    """What every page shows of a class or group: the fields of ``ShownGroup``."""
    return {
        "key": group.key,
        "class_id": group.info.id if group.info else None,
        "slot": group.slot,
        "name": group.name,
        "is_named": group.info is not None,
        "is_new": group.is_new,
        "size": snapshot.size(group),
    }


def exemplars(snapshot: Snapshot, group: Group, row: int = -1, n: int = N_EXEMPLARS) -> list[int]:
    """Pictures that show what the class is: labelled by people first, then those the model is surest of."""
    labelled = [other for other in snapshot.labelled(group)[: 2 * n].tolist() if other != row]
    human, more = labelled[:_HUMAN_EXEMPLARS], labelled[_HUMAN_EXEMPLARS:]
    sure = [other for other in snapshot.members(group, 4 * n).tolist() if other != row and other not in human]
    return (human + sure + more)[:n]


def neighbours(snapshot: Snapshot, seen: RoundView, row: int, n: int) -> tuple[IntArray, IntArray]:
    """The rows most like ``row``: those with a label, and those without an answer."""
    labelled, open_ = _live_neighbours(snapshot, seen, row)
    centre = seen.vectors(np.array([row]))[0]
    if len(labelled) < n:
        labelled = seen.most_similar(centre, _labels_near(snapshot, seen, row, n), n)[0]
    if len(open_) < n:
        near = seen.near(row)
        open_ = seen.most_similar(centre, near[~snapshot.labels.settled[near] & (near != row)], n)[0]
    return labelled[:n], open_[:n]


def _live_neighbours(snapshot: Snapshot, seen: RoundView, row: int) -> tuple[IntArray, IntArray]:
    """The same among the hundred rows nearest by the pretrained features, which are known already."""
    live = seen.live
    if live is None or live.stand_in[row] < 0 or live.rows[live.stand_in[row]] != row:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    rows = live.rows[live.neighbours.near[live.stand_in[row]]]
    is_labelled = among(snapshot.labels.how(rows), LEARNED)
    return rows[is_labelled], rows[~snapshot.labels.settled[rows]]


def _labels_near(snapshot: Snapshot, seen: RoundView, row: int, n: int) -> IntArray:
    """Labelled rows among which to look: those that the hundred live rows nearest to ``row`` stand for, or all of them
    where these are too few."""
    live, everything = seen.live, snapshot.labels.learned()[0]
    rows: IntArray = everything[everything != row]
    if live is None or live.stand_in[row] < 0:
        return rows
    is_near = np.zeros(len(live.rows) + 1, np.bool_)  # the last entry is for rows that cannot be read
    is_near[live.neighbours.near[live.stand_in[row]]] = True
    is_near[live.stand_in[row]] = True
    near: IntArray = rows[is_near[live.stand_in[rows]]]
    return near if len(near) >= n else rows


def why(found: list[Candidate], group: Group, question: Question) -> str:
    """Why this picture was chosen, in words."""
    if len(found) > 1 and question.score < WAVERS:
        first, second = found[:2]
        return (
            f"The model wavers between {first.name} ({100 * first.probability:.0f} %) and "
            f"{second.name} ({100 * second.probability:.0f} %): your answer moves the border."
        )
    if group.info is None:
        return f"A typical member of {group.name}, a group that has no name yet: your answer names it."
    return f"Checks {group.name}: the model is fairly sure here, and nobody has confirmed it nearby."
