"""The application: every route of one project behind the gate, and errors as one sentence."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from agcd import __version__
from agcd.app.web import pictures
from agcd.app.web.auth import PERSON, Gate, GateSettings
from agcd.app.web.routes import classes, folders, gallery, jobs, questions, review
from agcd.app.web.server_state import ServerState
from agcd.app.web.templates import render
from agcd.errors import AgcdError

PAGES = {
    "start": "Start",
    "label": "Label",
    "review": "Review",
    "classes": "Classes",
    "grid": "Grid",
    "map": "Map",
    "rounds": "Progress",
}
API = "/api/v1"
"""Every route of the REST API stands under this; a change that breaks what scripts rely on makes a v2 beside it."""
_STATIC = Path(__file__).parent / "static"
log = logging.getLogger("agcd")


def make_app(server: ServerState, settings: GateSettings) -> ASGIApp:
    """The whole server of one project, as ASGI."""
    return Gate(make_api(server), settings)


def make_api(server: ServerState) -> FastAPI:
    """The routes without the gate; its OpenAPI description is at /api/v1/openapi.json."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        server.close()

    app = FastAPI(
        title="agcd",
        version=__version__,
        description="Everything the labelling page does. Send the token as `Authorization: Bearer …`.",
        openapi_url=f"{API}/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    for part in (questions, review, classes, gallery, jobs, folders):
        app.include_router(part.routes(server), prefix=API)
    app.include_router(pictures.routes(server.pictures))
    app.include_router(_pages(server))
    app.mount("/static", StaticFiles(directory=_STATIC))
    for kind, answer in _ERRORS.items():
        app.add_exception_handler(kind, answer)
    return app


def _pages(server: ServerState) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    def home() -> Response:
        with server.moment() as snapshot:
            return RedirectResponse("/label" if snapshot.round else "/start", status_code=303)

    for page, title in PAGES.items():
        router.add_api_route(f"/{page}", _page(server, page, title), response_class=HTMLResponse)
    return router


def _page(server: ServerState, page: str, title: str) -> Callable[[Request], HTMLResponse]:
    def answer(request: Request) -> HTMLResponse:
        person, name = request.scope.get(PERSON), server.project.name
        return HTMLResponse(render("shell.html.j2", page=page, title=title, pages=PAGES, project=name, person=person))

    return answer


async def _known(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 409 if isinstance(error, AgcdError) else 500)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return JSONResponse({"error": f"{where}: {first['msg']}."}, 422)


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": f"{error.detail}."}, error.status_code, headers=error.headers)


_ERRORS: dict[type[Exception], Callable[[Request, Exception], Awaitable[Response]]] = {
    AgcdError: _known,
    RequestValidationError: _invalid,
    HTTPException: _http,
}
