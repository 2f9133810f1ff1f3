"""Review to the end: what to look at next, what was said of it, and accepting all that is left."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from agcd.app.answers import write_answers
from agcd.app.web import schemas
from agcd.app.web.json_bodies import StrictRoute
from agcd.app.web.review import MAX_ACCEPTED, MAX_PER_PAGE, Unseen, answers_of, review
from agcd.app.web.review_schemas import AcceptRest, Confirm, Confirmed, Mode, RestAccepted, Review
from agcd.app.web.server_state import ServerState
from agcd.errors import DataError
from agcd.words import count

_MAX_HIDDEN = 400
Hidden = Annotated[list[schemas.Row] | None, Query(alias="except", max_length=_MAX_HIDDEN)]


def routes(server: ServerState) -> APIRouter:
    """The review of one project."""
    router = APIRouter(route_class=StrictRoute)
    for add in (_reading, _confirming, _accepting):
        add(router, server)
    return router


def _reading(router: APIRouter, server: ServerState) -> None:
    @router.get("/review")
    def next_page(
        mode: Mode = "single",
        key: Annotated[schemas.Key | None, Query()] = None,
        n: Annotated[int | None, Query(ge=1, le=MAX_PER_PAGE)] = None,
        hidden: Hidden = None,
    ) -> Review:
        """The pictures to look at next, the least certain first; ``except``: rows that are shown or answered already.

        Without ``key``, or where nothing is left of that class, a page is of the class with most wrong names.
        """
        rows = server.check_rows(hidden or [])
        with server.moment() as snapshot:
            return review(server, snapshot, mode, key, n, rows)


def _confirming(router: APIRouter, server: ServerState) -> None:
    @router.post("/review/confirm")
    def confirm(body: Confirm) -> Confirmed:
        """Store what a person says of the pictures that were shown."""
        answers = answers_of(body)
        server.check_rows([answer.row for answer in answers])
        with server.opened() as project:
            told = write_answers(project, answers, body.who, "human", uid=body.uid, most_new=schemas.MAX_NEW_CLASSES)
            return Confirmed(
                stored=told.counts,
                n_known=told.n_known,
                new_classes=[schemas.NewClass(class_id=info.id, name=info.name) for info in told.new_classes],
                is_repeat=told.is_repeat,
                left=Unseen.of(server.snapshot(project)).left,
                state=server.state(project),
            )


def _accepting(router: APIRouter, server: ServerState) -> None:
    @router.post("/review/accept")
    def accept(body: AcceptRest) -> RestAccepted:
        """Accept every picture that is left as what it is called now."""
        with server.opened() as project:
            rest = Unseen.of(server.snapshot(project))
            is_repeat, n_accepted, wrong = project.store.knows(body.uid), 0, 0.0
            if not is_repeat:
                _check_rest(rest, body.n)
                accepted = rest.surest(MAX_ACCEPTED)
                told = write_answers(project, accepted.answers(), body.who, "human", uid=body.uid)
                n_accepted, wrong, is_repeat = sum(told.counts.values()), accepted.left.expected_wrong, told.is_repeat
            return RestAccepted(
                n_accepted=n_accepted,
                expected_wrong=wrong,
                is_repeat=is_repeat,
                left=Unseen.of(server.snapshot(project)).left,
                state=server.state(project),
            )


def _check_rest(rest: Unseen, agreed: int) -> None:
    n_left = len(rest.rows)
    if not n_left:
        raise DataError("There is nothing left to accept.")
    if n_left > agreed:
        raise DataError(
            f"{count(n_left, rest.snapshot.noun)} {'is' if n_left == 1 else 'are'} left by now, not {agreed}."
        )
