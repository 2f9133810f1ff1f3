"""The class board: what is shown of classes and groups, and how they are changed. Sent twice, changes count once."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from fastapi import APIRouter, Query

from agcd.app.answers import Answer, merge_classes, rename_class, retire_class, write_answers
from agcd.app.project import Project
from agcd.app.snapshot import Group
from agcd.app.web import alike as alikes
from agcd.app.web import board as boards
from agcd.app.web import board_schemas, growing, schemas
from agcd.app.web.json_bodies import StrictRoute
from agcd.app.web.server_state import ServerState
from agcd.errors import DataError

Page = Annotated[int, Query(ge=0, le=1_000_000)]
KeyQuery = Annotated[schemas.Key, Query()]
_SORT = Literal["size", "name", "agreement", "conflicts", "new"]


def routes(server: ServerState) -> APIRouter:
    """Classes and groups of one project."""
    router = APIRouter(route_class=StrictRoute)
    for add in (_cards, _previews, _changes, _growing):
        add(router, server)
    return router


def _cards(router: APIRouter, server: ServerState) -> None:
    @router.get("/names")
    def names() -> list[schemas.ClassName]:
        """Every class that people named, for searching by typing."""
        with server.moment() as snapshot:
            return boards.names(server, snapshot)

    @router.get("/board")
    def board(
        page: Page = 0,
        sort: _SORT = "size",
        text: Annotated[str, Query(max_length=200)] = "",
        view: Literal["auto", "cards", "lines"] = "auto",
    ) -> board_schemas.Board:
        """A page of the class board."""
        with server.moment() as snapshot:
            return boards.board(server, snapshot, page, sort, text, view)

    @router.get("/classes/alike")
    def alike() -> list[board_schemas.Alike]:
        """Pairs of classes that may be one, the strongest first."""
        with server.moment() as snapshot:
            return alikes.alike_pairs(server, snapshot, snapshot.round)

    @router.get("/members")
    def members(
        key: KeyQuery, order: Literal["typical", "border", "labelled"] = "typical", page: Page = 0
    ) -> board_schemas.Members:
        """More members of one card."""
        with server.moment() as snapshot:
            return boards.members_page(server, snapshot, snapshot.group(key), order, page)


def _previews(router: APIRouter, server: ServerState) -> None:
    @router.get("/classes/merge-preview")
    def merge_preview(one: KeyQuery, into: KeyQuery) -> board_schemas.MergePreview:
        """Two cards side by side, and what merging them would do."""
        with server.moment() as snapshot:
            return boards.merge_preview(server, snapshot, snapshot.group(one), snapshot.group(into))

    @router.get("/classes/split-preview")
    def split_preview(key: KeyQuery) -> board_schemas.SplitPreview:
        """The two halves that 2-means finds."""
        with server.trained_moment() as (snapshot, seen):
            return boards.split_preview(server, snapshot, seen, snapshot.group(key))


def _changes(router: APIRouter, server: ServerState) -> None:
    @router.post("/classes/rename")
    def rename(body: board_schemas.Rename) -> board_schemas.Changed:
        """Call a class otherwise; its old name stays findable."""
        with server.opened() as project:
            fresh = rename_class(project, body.class_id, body.name, body.who, body.uid)
            return _changed(server, project, fresh, f"renamed to {body.name}")

    @router.post("/classes/merge")
    def merge(body: board_schemas.Merge) -> board_schemas.Changed:
        """Everything said of one class counts for another from now on."""
        with server.opened() as project:
            fresh = merge_classes(project, body.class_id, body.into, body.who, body.uid)
            registry = project.labels().registry
            what = f"{registry.get(body.class_id).name} is now {registry.get(body.into).name}"
            return _changed(server, project, fresh, what)

    @router.post("/classes/retire")
    def retire(body: board_schemas.Retire) -> board_schemas.Changed:
        """The class keeps its labels and takes no more."""
        with server.opened() as project:
            fresh = retire_class(project, body.class_id, body.who, body.uid)
            return _changed(server, project, fresh, f"{project.labels().registry.get(body.class_id).name} is retired")


def _changed(server: ServerState, project: Project, fresh: bool, what: str) -> board_schemas.Changed:
    return board_schemas.Changed(what=what, is_repeat=not fresh, state=server.state(project))


def _growing(router: APIRouter, server: ServerState) -> None:
    @router.get("/grow")
    def grow(
        key: KeyQuery,
        order: Annotated[schemas.Uid, Query()],
        page: Page = 0,
        per_page: Annotated[int | None, Query(ge=growing.LEAST_PER_PAGE, le=growing.MOST_PER_PAGE)] = None,
    ) -> board_schemas.Grow:
        """Candidates for a class by falling similarity; page 0 fixes their order under the name ``order``."""
        with server.trained_moment() as (snapshot, seen):
            return growing.grow_page(server, snapshot, seen, snapshot.group(key), order, page, per_page)

    @router.post("/accept")
    def accept(body: board_schemas.Accept) -> board_schemas.Accepted:
        """Give all similar pictures up to a cut to a class; kept apart from labels."""
        with server.opened() as project:
            if project.store.knows(body.uid):
                return board_schemas.Accepted(n_accepted=0, is_repeat=True, state=server.state(project))
            snapshot = server.snapshot(project)
            group = snapshot.group(body.key)
            rows = np.setdiff1d(growing.grown_rows(server, snapshot, body.order, body.last_row), body.except_rows)
            if not len(rows):
                raise DataError("There is nothing to accept.")
            answers = [_accepted(group, body, row) for row in rows.tolist()]
            told = write_answers(project, answers, body.who, "human", uid=body.uid, accept=True)
            n_accepted = sum(told.counts.values())
            return board_schemas.Accepted(n_accepted=n_accepted, is_repeat=False, state=server.state(project))


def _accepted(group: Group, body: board_schemas.Accept, row: int) -> Answer:
    class_id = body.class_id or (group.info.id if group.info else None)
    if class_id is None and body.name is None:
        raise DataError(f"{group.name} has no name yet: give it one.")
    return Answer(row, "" if class_id else body.name or "", class_id)
