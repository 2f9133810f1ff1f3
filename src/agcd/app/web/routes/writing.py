"""Routes that change something: answers, undo, classes, the queue, pages accepted. Sent twice, they count once."""

from __future__ import annotations

import numpy as np
from fastapi import APIRouter

from agcd.app.answers import Answer, undo_last, write_answers
from agcd.app.classes import merge_classes, rename_class, retire_class
from agcd.app.store.classes import clean_class_name
from agcd.app.store.events import new_uid
from agcd.app.store.queries import AUDIT, Question, add_query, add_questions, latest_query
from agcd.app.store.store import Store
from agcd.app.web import board as boards
from agcd.app.web import schemas
from agcd.app.web.server_state import Desk
from agcd.app.web.snapshot import Group
from agcd.app.web.state import state_of
from agcd.errors import ConfigError, DataError
from agcd.io import digest
from agcd.rng import generator


def routes(desk: Desk) -> APIRouter:
    """All changing routes of one project."""
    router = APIRouter(prefix="/api")
    for add in (_answers, _classes, _queues, _growing):
        add(router, desk)
    return router


def _answers(router: APIRouter, desk: Desk) -> None:
    @router.post("/answers")
    def answers(body: schemas.Answers) -> schemas.Told:
        """Store one answer, or many that belong together."""
        desk.check_rows([said.row for said in body.answers])
        given = [_answer(said) for said in body.answers]
        with desk.store() as store:
            told = write_answers(store, given, body.who, "human", uid=body.uid, audit=body.is_audit)
            made = [store.registry().find(name) for name in told.new_classes]
            return schemas.Told(
                stored=told.counts,
                n_known=told.n_known,
                new_classes=[schemas.NewClass(class_id=info.id, name=info.name) for info in made if info],
                is_repeat=told.is_repeat,
                state=state_of(desk, store),
            )

    @router.post("/undo")
    def undo(body: schemas.Undo) -> schemas.Undone:
        """Take back the last thing that this person did and that still stands."""
        with desk.store() as store:
            undone = undo_last(store, body.who, body.uid)
            rows = {event.row for event in undone.events}
            return schemas.Undone(
                what=undone.what,
                row=next(iter(rows)) if len(rows) == 1 else None,
                is_repeat=not undone.events,
                state=state_of(desk, store),
            )


def _answer(said: schemas.Said) -> Answer:
    if said.kind != "label":
        return Answer(said.row, said.kind)
    if (said.class_id is None) == (said.name is None):
        raise DataError("A label names its class either by class_id or by name.")
    return Answer(said.row, clean_class_name(said.name) if said.name else "", said.class_id)


def _classes(router: APIRouter, desk: Desk) -> None:
    @router.post("/classes/rename")
    def rename(body: schemas.Rename) -> schemas.Changed:
        """Call a class otherwise; its old name stays findable."""
        with desk.store() as store:
            fresh = rename_class(store, body.class_id, body.name, body.who, body.uid)
            return _changed(desk, store, fresh, f"renamed to {body.name}")

    @router.post("/classes/merge")
    def merge(body: schemas.Merge) -> schemas.Changed:
        """Everything said of one class counts for another from now on."""
        with desk.store() as store:
            fresh = merge_classes(store, body.class_id, body.into, body.who, body.uid)
            classes = store.registry().classes
            return _changed(desk, store, fresh, f"{classes[body.class_id].name} is now {classes[body.into].name}")

    @router.post("/classes/retire")
    def retire(body: schemas.Retire) -> schemas.Changed:
        """The class keeps its labels and takes no more."""
        with desk.store() as store:
            fresh = retire_class(store, body.class_id, body.who, body.uid)
            return _changed(desk, store, fresh, f"{store.registry().classes[body.class_id].name} is retired")


def _changed(desk: Desk, store: Store, fresh: bool, what: str) -> schemas.Changed:
    return schemas.Changed(what=what, is_repeat=not fresh, state=state_of(desk, store))


def _queues(router: APIRouter, desk: Desk) -> None:
    @router.post("/queue")
    def queue(body: schemas.ToQueue) -> schemas.Queued:
        """Ask about the border cases of a card, or about given pictures."""
        with desk.store() as store:
            look, atlas = desk.trained_look(store)
            query = latest_query(store)
            if query is None:
                raise ConfigError("There are no questions to add to: train a round first.")
            rows = desk.check_rows(body.rows)
            if body.key is not None:
                rows = np.asarray(boards.border(look, look.group(body.key), body.n), np.int64)
            rows = rows[~look.settled[rows]]
            margins, slots = atlas.margin(rows).tolist(), atlas.top_slots[rows, 0].tolist()
            asked = enumerate(zip(rows.tolist(), margins, slots, strict=True))
            questions = [Question(row, rank, "chosen by hand", gap, slot) for rank, (row, gap, slot) in asked]
            return schemas.Queued(n_added=add_questions(store, query.id, questions), state=state_of(desk, store))

    @router.post("/audit")
    def audit(body: schemas.StartAudit) -> schemas.Queued:
        """Draw a random sample of unanswered pictures, to be answered blind."""
        with desk.store() as store:
            look, atlas = desk.trained_look(store)
            rows = np.flatnonzero(~look.settled)
            # The uid makes the draw, so that a repeated request draws the same sample and stores it once.
            chosen = generator(0, "audit", body.uid).permutation(rows)[: body.n]
            questions = [Question(row, rank, "audit", 0.0, 0) for rank, row in enumerate(chosen.tolist())]
            add_query(store, atlas.number + 1, AUDIT, atlas.facts["model_id"] + digest(body.uid), questions)
            return schemas.Queued(n_added=len(questions), state=state_of(desk, store))

    @router.post("/selections")
    def selections(body: schemas.Selection) -> schemas.SelectionId:
        """Remember rows that were chosen on the map."""
        rows, name = desk.check_rows(body.rows), new_uid()
        desk.keep(f"selection-{name}", rows)
        return schemas.SelectionId(id=name, n=len(rows))


def _growing(router: APIRouter, desk: Desk) -> None:
    @router.post("/accept")
    def accept(body: schemas.Accept) -> schemas.Accepted:
        """Give all pictures of some pages to a class; kept apart from labels."""
        with desk.store() as store:
            if store.knows(body.uid):
                return schemas.Accepted(n_accepted=0, is_repeat=True, state=state_of(desk, store))
            look, _ = desk.trained_look(store)
            group = look.group(body.key)
            rows = np.setdiff1d(boards.grown_rows(desk, look, body.order, body.last_page), body.except_rows)
            if not len(rows):
                raise DataError("There is nothing to accept.")
            answers = [_accepted(group, body, row) for row in rows.tolist()]
            told = write_answers(store, answers, body.who, "human", uid=body.uid, accept=True)
            return schemas.Accepted(n_accepted=sum(told.counts.values()), is_repeat=False, state=state_of(desk, store))


def _accepted(group: Group, body: schemas.Accept, row: int) -> Answer:
    class_id = body.class_id or (group.info.id if group.info else None)
    if class_id is None and body.name is None:
        raise DataError(f"{group.name} has no name yet: give it one.")
    return Answer(row, "" if class_id else body.name or "", class_id)
