"""The query card: one picture, the classes it may be, its neighbours, and why it was chosen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agcd.app.rounds import NO_SLOT, Atlas
from agcd.app.store.queries import Question, StoredQuery, claim, latest_query, n_unanswered, open_rows
from agcd.app.store.store import Store
from agcd.app.web.schemas import Candidate, Card, Thumb
from agcd.app.web.server_state import Desk
from agcd.app.web.snapshot import Group, Look
from agcd.types import IntArray

N_CANDIDATES, N_EXEMPLARS, N_NEIGHBOURS, N_AHEAD = 5, 6, 6, 10
_HUMAN_EXEMPLARS = 4
"""The rest of the row is for the model's own idea of the class."""
_WAVERS = 0.3


@dataclass(frozen=True)
class Asker:
    """Who asks, from which browser; answers to ``answered`` are on their way, so these are not handed out again."""

    who: str
    holder: str
    answered: tuple[int, ...] = ()


def next_card(desk: Desk, store: Store, asker: Asker, *, blind: bool, audit: bool) -> Card:
    """Lease the next question to this browser and tell all that helps to answer it."""
    query = latest_query(store, audit=audit)
    if query is None:
        return Card(row=None, is_audit=audit)
    row = claim(store, query.id, asker.who, holder=asker.holder, except_rows=asker.answered)
    if row is None:
        return Card(row=None, is_audit=audit, held_by_others=n_unanswered(store, query.id), of=len(query.questions))
    look = desk.look(store)
    hidden = blind or audit or look.atlas is None
    card = _bare_card(desk, store, query, row, asker).model_copy(update={"is_blind": hidden, "is_audit": audit})
    if hidden or look.atlas is None:
        return card
    question = next(question for question in query.questions if question.row == row)
    return card.model_copy(update=_suggestions(look, look.atlas, question))


def _bare_card(desk: Desk, store: Store, query: StoredQuery, row: int, asker: Asker) -> Card:
    taken = (*asker.answered, row)
    ahead = open_rows(store, query.id, asker.who, holder=asker.holder, except_rows=taken, limit=N_AHEAD)
    n_open = n_unanswered(store, query.id)
    return Card(
        row=row,
        v=desk.pictures.version(row),
        query_id=query.id,
        number=min(len(query.questions), len(query.questions) - n_open + 1 + len(asker.answered)),
        of=len(query.questions),
        upcoming=[Thumb(row=other, v=desk.pictures.version(other)) for other in ahead],
    )


def _suggestions(look: Look, atlas: Atlas, question: Question) -> dict[str, object]:
    row, group = question.row, look.group_of_slot(question.slot)
    labelled, unlabelled = neighbours(look, atlas, row, N_NEIGHBOURS)
    found = candidates(look, atlas, row)
    return {
        "why": why(found, group, question),
        "group": group.name,
        "candidates": found,
        "labelled_neighbours": look.thumbs(labelled),
        "neighbours": look.thumbs(unlabelled),
    }


def candidates(look: Look, atlas: Atlas, row: int) -> list[Candidate]:
    """The most probable classes; slots that were merged into one class count together, retired classes do not."""
    shares: dict[str, float] = {}
    for slot, share in zip(atlas.top_slots[row].tolist(), atlas.top_probs[row].astype(float).tolist(), strict=True):
        if slot != NO_SLOT:
            group = look.group_of_slot(slot)
            if not (group.info and group.info.retired):
                shares[group.key] = shares.get(group.key, 0.0) + share
    best = sorted(shares.items(), key=lambda item: -item[1])[:N_CANDIDATES]
    return [_candidate(look, look.groups[key], share, row) for key, share in best]


def _candidate(look: Look, group: Group, probability: float, row: int) -> Candidate:
    return Candidate(
        key=group.key,
        class_id=group.info.id if group.info else None,
        slot=group.slot,
        name=group.name,
        is_named=group.info is not None,
        is_new=group.is_new,
        size=look.size(group),
        probability=min(1.0, probability),
        exemplars=look.thumbs(exemplars(look, group, row)),
    )


def exemplars(look: Look, group: Group, row: int = -1, n: int = N_EXEMPLARS) -> list[int]:
    """Pictures that show what the class is: labelled by people first, then those the model is surest of."""
    labelled = [other for other in look.labelled(group)[: 2 * n].tolist() if other != row]
    human, more = labelled[:_HUMAN_EXEMPLARS], labelled[_HUMAN_EXEMPLARS:]
    sure = [other for other in look.members(group)[: 4 * n].tolist() if other != row and other not in human]
    return (human + sure + more)[:n]


def neighbours(look: Look, atlas: Atlas, row: int, n: int) -> tuple[IntArray, IntArray]:
    """The rows most like ``row``: those with a label, and those without an answer."""
    centre = atlas.vectors(np.array([row]))[0]
    labelled = look.labels["row"][look.labels["row"] != row]
    near = atlas.near(row)
    open_ = near[~look.settled[near] & (near != row)]
    return atlas.most_similar(centre, labelled, n)[0], atlas.most_similar(centre, open_, n)[0]


def why(found: list[Candidate], group: Group, question: Question) -> str:
    """Why this picture was chosen, in words."""
    if len(found) > 1 and question.score < _WAVERS:
        first, second = found[:2]
        return (
            f"The model wavers between {first.name} ({100 * first.probability:.0f} %) and "
            f"{second.name} ({100 * second.probability:.0f} %): your answer moves the border."
        )
    if group.info is None:
        return f"A typical member of {group.name}, a group that has no name yet: your answer names it."
    return f"Checks {group.name}: the model is fairly sure here, and nobody has confirmed it nearby."
