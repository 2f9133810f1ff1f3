"""Routes that change something: answers, undo, classes, the queue, pages accepted. Sent twice, they count once."""

from __future__ import annotations

import numpy as np
from fastapi import APIRouter

from agcd.errors import ConfigError, DataError
from agcd.files import digest
from agcd.project.answers import Answer, undo_last, write_answers
from agcd.project.classes import merge_classes, rename_class, retire_class
from agcd.records.classes import clean_class_name
from agcd.records.events import new_uid
from agcd.records.queries import AUDIT, Question, add_query, add_questions, latest_query
from agcd.records.store import Store
from agcd.rng import generator
from agcd.web import board as boards
from agcd.web import shapes
from agcd.web.desk import Desk
from agcd.web.look import Group
from agcd.web.state import state_of


def routes(desk: Desk) -> APIRouter:
    """All changing routes of one project."""
    router = APIRouter(prefix="/api")
    for add in (_answers, _classes, _queues, _growing):
        add(router, desk)
    return router


def _answers(router: APIRouter, desk: Desk) -> None:
    @router.post("/answers")
    def answers(body: shapes.Answers) -> shapes.Told:
        """Store one answer, or many that belong together."""
        desk.check_rows([said.row for said in body.answers])
        given = [_answer(said) for said in body.answers]
        with desk.store() as store:
            told = write_answers(store, given, body.who, "human", uid=body.uid, audit=body.is_audit)
            made = [store.registry().find(name) for name in told.new_classes]
            return shapes.Told(
                stored=told.counts,
                n_known=told.n_known,
                new_classes=[shapes.NewClass(class_id=info.id, name=info.name) for info in made if info],
                is_repeat=told.is_repeat,
                state=state_of(desk, store),
            )

    @router.post("/undo")
    def undo(body: shapes.Undo) -> shapes.Undone:
        """Take back the last thing that this person did and that still stands."""
        with desk.store() as store:
            undone = undo_last(store, body.who, body.uid)
            rows = {event.row for event in undone.events}
            return shapes.Undone(
                what=undone.what,
                row=next(iter(rows)) if len(rows) == 1 else None,
                is_repeat=not undone.events,
                state=state_of(desk, store),
            )


def _answer(said: shapes.Said) -> Answer:
    if said.kind != "label":
        return Answer(said.row, said.kind)
    if (said.class_id is None) == (said.name is None):
        raise DataError("A label names its class either by class_id or by name.")
    return Answer(said.row, clean_class_name(said.name) if said.name else "", said.class_id)


def _classes(router: APIRouter, desk: Desk) -> None:
    @router.post("/classes/rename")
    def rename(body: shapes.Rename) -> shapes.Changed:
        """Call a class otherwise; its old name stays findable."""
        with desk.store() as store:
            fresh = rename_class(store, body.class_id, body.name, body.who, body.uid)
            return _changed(desk, store, fresh, f"renamed to {body.name}")

    @router.post("/classes/merge")
    def merge(body: shapes.Merge) -> shapes.Changed:
        """Everything said of one class counts for another from now on."""
        with desk.store() as store:
            fresh = merge_classes(store, body.class_id, body.into, body.who, body.uid)
            classes = store.registry().classes
            return _changed(desk, store, fresh, f"{classes[body.class_id].name} is now {classes[body.into].name}")

    @router.post("/classes/retire")
    def retire(body: shapes.Retire) -> shapes.Changed:
        """The class keeps its labels and takes no more."""
        with desk.store() as store:
            fresh = retire_class(store, body.class_id, body.who, body.uid)
            return _changed(desk, store, fresh, f"{store.registry().classes[body.class_id].name} is retired")


def _changed(desk: Desk, store: Store, fresh: bool, what: str) -> shapes.Changed:
    return shapes.Changed(what=what, is_repeat=not fresh, state=state_of(desk, store))


def _queues(router: APIRouter, desk: Desk) -> None:
    @router.post("/queue")
    def queue(body: shapes.ToQueue) -> shapes.Queued:
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
            return shapes.Queued(n_added=add_questions(store, query.id, questions), state=state_of(desk, store))

    @router.post("/audit")
    def audit(body: shapes.StartAudit) -> shapes.Queued:
        """Draw a random sample of unanswered pictures, to be answered blind."""
        with desk.store() as store:
            look, atlas = desk.trained_look(store)
            rows = np.flatnonzero(~look.settled)
            # The uid makes the draw, so that a repeated request draws the same sample and stores it once.
            chosen = generator(0, "audit", body.uid).permutation(rows)[: body.n]
            questions = [Question(row, rank, "audit", 0.0, 0) for rank, row in enumerate(chosen.tolist())]
            add_query(store, atlas.number + 1, AUDIT, atlas.facts["model_id"] + digest(body.uid), questions)
            return shapes.Queued(n_added=len(questions), state=state_of(desk, store))

    @router.post("/selections")
    def selections(body: shapes.Selection) -> shapes.SelectionId:
        """Remember rows that were chosen on the map."""
        rows, name = desk.check_rows(body.rows), new_uid()
        desk.keep(f"selection-{name}", rows)
        return shapes.SelectionId(id=name, n=len(rows))


def _growing(router: APIRouter, desk: Desk) -> None:
    @router.post("/accept")
    def accept(body: shapes.Accept) -> shapes.Accepted:
        """Give all pictures of some pages to a class; kept apart from labels."""
        with desk.store() as store:
            if store.knows(body.uid):
                return shapes.Accepted(n_accepted=0, is_repeat=True, state=state_of(desk, store))
            look, _ = desk.trained_look(store)
            group = look.group(body.key)
            rows = np.setdiff1d(boards.grown_rows(desk, look, body.order, body.last_page), body.except_rows)
            if not len(rows):
                raise DataError("There is nothing to accept.")
            answers = [_accepted(group, body, row) for row in rows.tolist()]
            told = write_answers(store, answers, body.who, "human", uid=body.uid, accept=True)
            return shapes.Accepted(n_accepted=sum(told.counts.values()), is_repeat=False, state=state_of(desk, store))


def _accepted(group: Group, body: shapes.Accept, row: int) -> Answer:
    class_id = body.class_id or (group.info.id if group.info else None)
    if class_id is None and body.name is None:
        raise DataError(f"{group.name} has no name yet: give it one.")
    return Answer(row, "" if class_id else body.name or "", class_id)
