"""A gate before an application that echoes, and the headers of those who come to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.types import Receive, Scope, Send

from agcd.app.web.addresses import allowed_hosts
from agcd.app.web.auth import Gate, GateSettings
from support.asgi_client import call

HOST = "127.0.0.1:8000"
ORIGIN = f"http://{HOST}"
SECRET = "correct-horse-battery"
BEARER = {"host": HOST, "authorization": f"Bearer {SECRET}"}
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"]
CHANGING = ["POST", "PUT", "PATCH", "DELETE", "PROPFIND"]
FORM = {"host": HOST, "content-type": "application/x-www-form-urlencoded", "accept": "text/html"}
JSON = {**BEARER, "content-type": "application/json"}


class Echo:
    """An application that gives back what it gets, and counts."""

    def __init__(self, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        self.headers = headers
        self.seen: list[tuple[str, str]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await send({"type": "lifespan.startup.complete"})
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        self.seen.append((scope["method"], scope["path"]))
        await send({"type": "http.response.start", "status": 200, "headers": list(self.headers)})
        await send({"type": "http.response.body", "body": body})


def make_gate(app: Any = None, clock: Callable[[], float] = lambda: 0.0, **settings: Any) -> Gate:
    values = {"token": SECRET, "hosts": allowed_hosts("127.0.0.1", 8000), **settings}
    return Gate(app or Echo(), GateSettings(**values), clock)


def seen(gate: Gate) -> list[tuple[str, str]]:
    assert isinstance(gate.app, Echo)
    return gate.app.seen


def logged_in(gate: Gate, host: str = HOST) -> dict[str, str]:
    """The headers of a browser that came by the login link."""
    answer = call(gate, "GET", f"/login?token={SECRET}", {"host": host})
    assert answer.status == 200
    return {"host": host, "cookie": answer.answer_headers["set-cookie"].partition(";")[0]}
