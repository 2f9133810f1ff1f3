"""Routes that only read: state, questions, classes, grid, map, rounds."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query

from agcd.app.rounds import has_atlas, open_atlas
from agcd.app.web import board as boards
from agcd.app.web import history, plane
from agcd.app.web.cards import Asker, neighbours, next_card
from agcd.app.web.schemas import (
    Board,
    Card,
    ClassName,
    Grid,
    Grow,
    Key,
    MapPoints,
    Members,
    MergePreview,
    Rounds,
    Row,
    SplitPreview,
    State,
    Thumb,
    Uid,
    Who,
)
from agcd.app.web.server_state import Desk
from agcd.app.web.state import state_of
from agcd.errors import ConfigError

Page = Annotated[int, Query(ge=0, le=1_000_000)]
KeyQuery = Annotated[Key, Query()]
_SORT = Literal["size", "name", "purity", "conflicts", "new"]


def routes(desk: Desk) -> APIRouter:
    """All reading routes of one project."""
    router = APIRouter(prefix="/api")
    for add in (_state_and_questions, _classes, _many_pictures):
        add(router, desk)
    return router


def _state_and_questions(router: APIRouter, desk: Desk) -> None:
    @router.get("/state")
    def state() -> State:
        """Where the project stands."""
        with desk.store() as store:
            return state_of(desk, store)

    @router.get("/question")
    def question(
        who: Annotated[Who, Query()],
        holder: Annotated[str, Query(pattern=r"^[A-Za-z0-9_-]{8,64}$")],
        blind: bool = False,
        audit: bool = False,
        answered: Annotated[list[Row] | None, Query(max_length=200)] = None,
    ) -> Card:
        """The next question, leased to this browser for five minutes.

        ``answered``: rows whose answers are still on their way, not to be handed out again.
        """
        asker = Asker(who, holder, tuple(answered or ()))
        with desk.store() as store:
            return next_card(desk, store, asker, blind=blind, audit=audit)

    @router.get("/rows/{row}/neighbours")
    def row_neighbours(row: int, n: Annotated[int, Query(ge=1, le=60)] = 12) -> list[Thumb]:
        """The pictures most like one that have no answer yet."""
        desk.check_rows([row])
        with desk.store() as store:
            look, atlas = desk.trained_look(store)
            return look.thumbs(neighbours(look, atlas, row, n)[1])


def _classes(router: APIRouter, desk: Desk) -> None:
    @router.get("/names")
    def names() -> list[ClassName]:
        """Every class that people named, for searching by typing."""
        with desk.store() as store:
            return boards.names(desk.look(store))

    @router.get("/board")
    def board(page: Page = 0, sort: _SORT = "size", text: Annotated[str, Query(max_length=200)] = "") -> Board:
        """A page of the class board."""
        with desk.store() as store:
            return boards.board(desk.look(store), page, sort, text)

    @router.get("/members")
    def members(key: KeyQuery, order: Literal["typical", "border", "labelled"] = "typical", page: Page = 0) -> Members:
        """More members of one card."""
        with desk.store() as store:
            look = desk.look(store)
            return boards.members_page(look, look.group(key), order, page)

    @router.get("/classes/merge-preview")
    def merge_preview(one: KeyQuery, into: KeyQuery) -> MergePreview:
        """Two cards side by side, and what merging them would do."""
        with desk.store() as store:
            look = desk.look(store)
            return boards.merge_preview(look, look.group(one), look.group(into))

    @router.get("/classes/split-preview")
    def split_preview(key: KeyQuery) -> SplitPreview:
        """The two halves that 2-means finds."""
        with desk.store() as store:
            look, atlas = desk.trained_look(store)
            return boards.split_preview(look, atlas, look.group(key))

    @router.get("/grow")
    def grow(key: KeyQuery, order: Annotated[Uid, Query()], page: Page = 0) -> Grow:
        """Candidates for a class by falling similarity; page 0 fixes their order under the name ``order``."""
        with desk.store() as store:
            look, atlas = desk.trained_look(store)
            return boards.grow_page(desk, look, atlas, look.group(key), order, page)


def _many_pictures(router: APIRouter, desk: Desk) -> None:
    @router.get("/grid")
    def grid(
        show: Literal[*plane.SHOWS] = "all",  # type: ignore[valid-type]
        key: Annotated[Key | None, Query()] = None,
        selection: Annotated[str | None, Query(pattern=r"^[a-f0-9]{32}$")] = None,
        order: Literal[*plane.ORDERS] = "row",  # type: ignore[valid-type]
        page: Page = 0,
    ) -> Grid:
        """A page of pictures."""
        with desk.store() as store:
            return plane.grid(desk, desk.look(store), show, key, selection, order, page)

    @router.get("/map")
    def map_(round: Annotated[int | None, Query(ge=0, le=100_000)] = None) -> MapPoints:
        """The pictures of a round as points; default the last one."""
        with desk.store() as store:
            look, atlas = desk.trained_look(store)
            known = [number for number in range(atlas.number + 1) if has_atlas(desk.folder, number)]
            if round is not None and round != atlas.number:
                earlier = open_atlas(desk.folder, round) if round in known else None
                if earlier is None:
                    raise ConfigError(f"There is no map of round {round}.")
                atlas = earlier
            return plane.map_points(look, atlas, known)

    @router.get("/rounds")
    def rounds() -> Rounds:
        """Every round so far, and what the next answers may buy."""
        with desk.store() as store:
            return history.rounds_page(desk, store)
