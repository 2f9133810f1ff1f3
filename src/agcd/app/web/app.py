"""The application: every route of one project behind the gate, and errors as one sentence."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.routing import Match, Mount
from starlette.types import ASGIApp

from agcd import __version__
from agcd.app.answers import TooManyClasses
from agcd.app.web import pictures
from agcd.app.web.auth import PERSON, Gate, GateSettings
from agcd.app.web.openapi import described
from agcd.app.web.request_checks import API
from agcd.app.web.routes import classes, folders, gallery, jobs, questions, review
from agcd.app.web.server_state import NoSuchRow, ServerState
from agcd.app.web.templates import render
from agcd.errors import AgcdError, not_installed

PAGES = {
    "start": "Start",
    "label": "Label",
    "review": "Review",
    "classes": "Classes",
    "grid": "Grid",
    "map": "Map",
    "rounds": "Progress",
}
_STATIC = Path(__file__).parent / "static"
log = logging.getLogger("agcd")


def make_app(server: ServerState, settings: GateSettings) -> ASGIApp:
    """The whole server of one project, as ASGI."""
    return Gate(make_api(server), settings)


class _Api(FastAPI):
    """FastAPI with a complete description of itself."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = described(super().openapi())
        return self.openapi_schema


def make_api(server: ServerState) -> FastAPI:
    """The routes without the gate; its OpenAPI description is at /api/v1/openapi.json."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        server.close()

    app = _Api(
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
        person, name, kind = request.scope.get(PERSON), server.project.name, server.project.kind
        return HTMLResponse(
            render("shell.html.j2", page=page, title=title, pages=PAGES, project=name, person=person, kind=kind)
        )

    return answer


def _known(status: int) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answer(_: Request, error: Exception) -> Response:
        return JSONResponse({"error": str(error)}, status)

    return answer


async def _left_out(_: Request, error: Exception) -> Response:
    assert isinstance(error, ModuleNotFoundError)
    fault = not_installed("This", error.name)
    if fault is None:
        raise error
    return JSONResponse({"error": str(fault)}, 501)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where, what = ".".join(str(part) for part in first["loc"]), first["msg"].removeprefix("Value error, ")
    return JSONResponse({"error": f"{where[:_MAX_WHERE]}: {what}."}, 422)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(_allowed(request))
    return JSONResponse({"error": f"{error.detail}."}, error.status_code, headers=headers)


def _allowed(request: Request) -> list[str]:
    """The methods that the path of a request knows; FastAPI names those of one route only."""
    routes = [route for route in request.app.router.routes if not isinstance(route, Mount)]
    scopes = [dict(request.scope) | {"method": method} for method in _METHODS]
    found = [scope["method"] for scope in scopes if any(route.matches(scope)[0] is Match.FULL for route in routes)]
    return found or ["GET", "HEAD"]  # of static files


_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_MAX_WHERE = 100
"""Characters: the name of an unknown field may be as long as the body."""
_ERRORS: dict[type[Exception], Callable[[Request, Exception], Awaitable[Response]]] = {
    NoSuchRow: _known(404),
    TooManyClasses: _known(422),
    AgcdError: _known(409),
    ModuleNotFoundError: _left_out,
    RequestValidationError: _invalid,
    HTTPException: _http,
}
