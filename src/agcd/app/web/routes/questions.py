"""Where the project stands, the next question, answers, undo, and what is asked besides."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query

from agcd.app.answers import Answer, release_audit, undo, write_answers
from agcd.app.figures import figures_of
from agcd.app.store.classes import clean_class_name
from agcd.app.store.queries import AUDIT, Question, add_query, add_questions, live_query
from agcd.app.web import board, board_schemas, schemas
from agcd.app.web.cards import Asker, neighbours, next_card, next_live_card
from agcd.app.web.json_bodies import StrictRoute
from agcd.app.web.rounds_page import rounds_page
from agcd.app.web.server_state import ServerState
from agcd.errors import DataError
from agcd.io import digest
from agcd.rng import generator


def routes(server: ServerState) -> APIRouter:
    """Questions and answers of one project."""
    router = APIRouter(route_class=StrictRoute)
    for add in (_questions, _answers, _more_questions):
        add(router, server)
    return router


def _questions(router: APIRouter, server: ServerState) -> None:
    @router.get("/state")
    def state() -> schemas.State:
        """Where the project stands."""
        with server.opened() as project:
            return server.state(project)

    @router.get("/question")
    def question(
        who: Annotated[schemas.Who, Query()],
        holder: Annotated[str, Query(pattern=r"^[A-Za-z0-9_-]{8,64}$")],
        blind: bool = False,
        audit: bool = False,
        live: bool = False,
        answered: Annotated[list[schemas.Row] | None, Query(max_length=200)] = None,
    ) -> schemas.Card:
        """The next question, leased to this browser for five minutes.

        ``live``: decided now, after all answers so far; otherwise one of the last explicit round. ``answered``: rows
        whose answers are still on their way, not to be handed out again.
        """
        asker = Asker(who, holder, tuple(answered or ()))
        with server.opened() as project:
            if live and not audit:
                return next_live_card(server, project, asker, blind=blind)
            return next_card(server, project, asker, blind=blind, audit=audit)

    @router.get("/figures")
    def figures() -> schemas.Figures | None:
        """How good the names are now; null until the pictures are looked at."""
        with server.moment() as snapshot:
            found = figures_of(snapshot)
            if found is None:
                return None
            return schemas.Figures.model_validate(
                {name: getattr(found, name) for name in schemas.Figures.model_fields if name != "last_event"}
                | {"last_event": snapshot.labels.last_event}
            )

    @router.get("/rows/{row}/neighbours")
    def row_neighbours(row: schemas.Row, n: Annotated[int, Query(ge=1, le=60)] = 12) -> list[schemas.Thumb]:
        """The pictures most like one that have no answer yet."""
        server.check_rows([row])
        with server.trained_moment() as (snapshot, seen):
            return server.thumbs(snapshot, neighbours(snapshot, seen, row, n)[1])

    @router.get("/rounds")
    def rounds() -> schemas.Rounds:
        """Every round so far, and what the next answers may buy."""
        with server.opened() as project:
            return rounds_page(server, project)


def _answers(router: APIRouter, server: ServerState) -> None:
    @router.post("/answers")
    def answers(body: schemas.Answers) -> schemas.Told:
        """Store one answer, or many that belong together."""
        server.check_rows([said.row for said in body.answers])
        given = [_answer(said) for said in body.answers]
        with server.opened() as project:
            told = write_answers(
                project,
                given,
                body.who,
                "human",
                uid=body.uid,
                audit=body.is_audit,
                most_new=schemas.MAX_NEW_CLASSES,
            )
            return schemas.Told(
                stored=told.counts,
                n_known=told.n_known,
                new_classes=[schemas.NewClass(class_id=info.id, name=info.name) for info in told.new_classes],
                is_repeat=told.is_repeat,
                state=server.state(project),
            )

    @router.post("/undo")
    def undo_last(body: schemas.Undo) -> schemas.Undone:
        """Take back the last thing that this person did and that still stands."""
        with server.opened() as project:
            undone = undo(project, body.who, body.uid)
            rows = {event.row for event in undone.events}
            return schemas.Undone(
                what=undone.what,
                row=next(iter(rows)) if len(rows) == 1 else None,
                is_repeat=not undone.events,
                state=server.state(project),
            )


def _answer(said: schemas.Said) -> Answer:
    if said.kind != "label":
        return Answer(said.row, said.kind)
    if (said.class_id is None) == (said.name is None):
        raise DataError("A label names its class either by class_id or by name.")
    return Answer(said.row, clean_class_name(said.name) if said.name else "", said.class_id)


def _more_questions(router: APIRouter, server: ServerState) -> None:
    @router.post("/queue")
    def queue(body: board_schemas.ToQueue) -> board_schemas.Queued:
        """Ask about the border cases of a card, or about given pictures."""
        with server.opened() as project:
            snapshot, seen = server.trained_snapshot(project)
            rows = server.check_rows(body.rows)
            if body.key is not None:
                rows = np.asarray(board.border(snapshot, snapshot.group(body.key), body.n), np.int64)
            rows = rows[~snapshot.labels.settled[rows]]
            margins, slots = snapshot.margin(rows).tolist(), seen.top_slots[rows, 0].tolist()
            asked = enumerate(zip(rows.tolist(), margins, slots, strict=True))
            questions = [Question(row, rank, "chosen by hand", gap, slot) for rank, (row, gap, slot) in asked]
            query_id = live_query(project.store, len(snapshot.runs), seen.facts["model_id"])
            n_added = add_questions(project.store, query_id, questions)
            return board_schemas.Queued(n_added=n_added, state=server.state(project))

    @router.post("/audit")
    def audit(body: schemas.StartAudit) -> board_schemas.Queued:
        """Draw a random sample of unanswered pictures, to be answered blind."""
        with server.opened() as project:
            snapshot, seen = server.trained_snapshot(project)
            rows = np.flatnonzero(~snapshot.labels.settled)
            # The uid makes the draw, so that a repeated request draws the same sample and stores it once.
            chosen = generator(0, "audit", body.uid).permutation(rows)[: body.n]
            questions = [Question(row, rank, "audit", 0.0, 0) for rank, row in enumerate(chosen.tolist())]
            add_query(project.store, seen.number + 1, AUDIT, seen.facts["model_id"] + digest(body.uid), questions)
            return board_schemas.Queued(n_added=len(questions), state=server.state(project))

    @router.post("/audit/release")
    def release(body: schemas.Release) -> board_schemas.Queued:
        """Let training learn from the answers of the audits so far."""
        with server.opened() as project:
            n_released = release_audit(project, body.who, body.uid)
            return board_schemas.Queued(n_added=n_released, state=server.state(project))
