"""A server on a toy project, and a client that talks to it as a script with the token would."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from starlette.testclient import TestClient

from agcd.app.project import Project
from agcd.app.store.events import new_uid
from agcd.app.web.app import make_app
from agcd.app.web.auth import GateSettings
from agcd.app.web.server_state import ServerState
from support.projects import make_project, truth

SECRET = "a-secret-for-tests"


@cache
def _trained() -> Path:
    """A project with one round trained and six questions open; made once per process."""
    from agcd.app.model import ask, train  # they load torch, which a serving process must not

    folder = Path(mkdtemp(prefix="agcd-web-"))
    with make_project(folder) as project:
        train(project)
        ask(project, 6)
    return folder / "project"


def trained_project(folder: Path) -> Path:
    """A copy of a trained project below ``folder``."""
    return Path(shutil.copytree(_trained(), folder / "project"))


class Client:
    """Calls the API; a refused request is an AssertionError unless a status is expected."""

    def __init__(self, http: TestClient, project: Path) -> None:
        self.http, self.project = http, project

    def get(self, path: str, status: int = 200, **params: Any) -> Any:
        return self._checked(self.http.get(path, params=params), status)

    def post(self, path: str, body: dict[str, Any], status: int = 200) -> Any:
        return self._checked(self.http.post(path, json=body), status)

    def delete(self, path: str, status: int = 200) -> Any:
        return self._checked(self.http.delete(path), status)

    def _checked(self, response: Any, status: int) -> Any:
        assert response.status_code == status, response.text
        return response.json()

    def question(self, who: str = "ann", holder: str | None = None, **params: Any) -> Any:
        return self.get("/api/v1/question", who=who, holder=holder or f"holder-of-{who}", **params)

    def say(self, row: int, name: str | None = None, *, kind: str = "label", who: str = "ann", **more: Any) -> Any:
        said = {"row": row, "kind": kind} | ({"name": name} if name else {})
        return self.post("/api/v1/answers", {"uid": new_uid(), "who": who, "answers": [said], **more})

    def do(self, path: str, status: int = 200, who: str = "ann", **values: Any) -> Any:
        """A change with a uid of its own."""
        return self.post(path, {"uid": new_uid(), "who": who, **values}, status)

    def truth(self, row: int) -> str:
        with Project.open(self.project) as project:
            return truth(project.paths[row])


@contextmanager
def serving(project: Path) -> Iterator[Client]:
    """A client of the whole application, gate included."""
    app = make_app(ServerState(project), GateSettings(SECRET, frozenset({"127.0.0.1:8765"})))
    headers = {"Authorization": f"Bearer {SECRET}"}
    with TestClient(app, base_url="http://127.0.0.1:8765", headers=headers) as http:
        yield Client(http, project)
