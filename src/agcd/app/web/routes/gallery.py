"""Many pictures at once: the grid, the map, and what was chosen on it."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from agcd.app.round_files import open_round_view, round_version
from agcd.app.store.events import new_uid
from agcd.app.web import board_schemas, grid_map, schemas
from agcd.app.web.alike import likely_names
from agcd.app.web.json_bodies import StrictRoute
from agcd.app.web.routes.classes import Page
from agcd.app.web.server_state import ServerState
from agcd.errors import ConfigError


def routes(server: ServerState) -> APIRouter:
    """Grid and map of one project."""
    router = APIRouter(route_class=StrictRoute)

    @router.get("/grid")
    def grid(
        show: Literal[*grid_map.SHOWS] = "all",  # type: ignore[valid-type]
        key: Annotated[schemas.Key | None, Query()] = None,
        selection: Annotated[str | None, Query(pattern=r"^[a-f0-9]{32}$")] = None,
        text: Annotated[str, Query(max_length=200)] = "",
        folder: Annotated[str | None, Query(max_length=4096)] = None,
        who: Annotated[schemas.Who | None, Query()] = None,
        round: Annotated[int | None, Query(ge=0, le=100_000)] = None,
        sure: Literal["sure", "unsure"] | None = None,
        order: Literal[*grid_map.ORDERS] = "row",  # type: ignore[valid-type]
        page: Page = 0,
    ) -> board_schemas.Grid:
        """A page of pictures."""
        wanted = grid_map.Wanted(show, key, selection, text, folder, who, round, sure)
        with server.moment() as snapshot:
            return grid_map.grid(server, snapshot, wanted, order, page)

    @router.get("/grid/choices")
    def choices() -> board_schemas.GridChoices:
        """What the grid can be narrowed to."""
        with server.moment() as snapshot:
            return grid_map.choices(server, snapshot)

    @router.get("/rows/{row}")
    def one_row(row: schemas.Row) -> board_schemas.Look:
        """One picture: what it counts as, where its file is, and what it may be called."""
        server.check_rows([row])
        with server.moment() as snapshot:
            likely = likely_names(server, snapshot, snapshot.round, row)
            return board_schemas.Look(thumb=server.thumbs(snapshot, [row])[0], likely=likely)

    @router.get("/items/{row}")
    def item(row: schemas.Row, response: Response, v: str = "") -> schemas.Item:
        """A text or record at full length; browsers may keep it for good where ``v`` is the version of its content."""
        server.check_rows([row])
        is_lasting = v == server.pictures.version(row)
        kept = "private, max-age=31536000, immutable" if is_lasting else "private, no-cache"
        response.headers["Cache-Control"] = kept
        return server.item(row)

    @router.get("/map")
    def map_(round: Annotated[int | None, Query(ge=0, le=100_000)] = None) -> board_schemas.MapPoints:
        """The pictures of a round as points; default the last one."""
        folder = server.project.folder
        with server.trained_moment() as (snapshot, seen):
            known = [number for number in range(seen.number + 1) if round_version(folder, number)]
            if round is not None and round != seen.number:
                earlier = open_round_view(folder, round) if round in known else None
                if earlier is None:
                    raise ConfigError(f"There is no map of round {round}.")
                seen = earlier.over(snapshot.labels.n_rows)
            return grid_map.map_points(server, snapshot, seen, known)

    @router.post("/selections")
    def selections(body: board_schemas.Selection) -> board_schemas.SelectionId:
        """Remember rows that were chosen on the map."""
        rows, name = server.check_rows(body.rows), new_uid()
        server.keep(f"selection-{name}", rows)
        return board_schemas.SelectionId(id=name, n=len(rows))

    return router
