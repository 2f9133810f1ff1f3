"""Calls an ASGI application with exactly the headers, path and chunks that are given: no client tidies them up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message

Pairs = Mapping[str, str] | Iterable[tuple[str, str]]


@dataclass
class Call:
    """One request and, once it was sent, its answer; ``messages`` is empty if there was none."""

    method: str = "GET"
    target: str = "/"
    headers: Pairs = ()
    chunks: tuple[bytes, ...] = (b"",)
    hangs: bool = False
    """Whether the body never ends."""
    client: str = "127.0.0.1"
    """The address that the request comes from."""
    messages: list[Message] = field(default_factory=list)
    n_read: int = 0
    scope: dict[str, Any] = field(default_factory=dict)

    async def send(self, app: ASGIApp) -> Call:
        """Let ``app`` answer."""
        pairs = self.headers.items() if isinstance(self.headers, Mapping) else self.headers
        raw_path, _, query = self.target.partition("?")
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "method": self.method,
            "path": unquote(raw_path),
            "raw_path": raw_path.encode("latin-1"),
            "query_string": query.encode("latin-1"),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in pairs],
            "client": (self.client, 50000),
            "server": ("127.0.0.1", 8000),
        }
        await app(self.scope, self._receive, self._store)
        return self

    async def _receive(self) -> Message:
        if self.n_read == len(self.chunks):
            if self.hangs:
                await asyncio.sleep(60)
            return {"type": "http.disconnect"}
        self.n_read += 1
        is_last = self.n_read == len(self.chunks) and not self.hangs
        return {"type": "http.request", "body": self.chunks[self.n_read - 1], "more_body": not is_last}

    async def _store(self, message: Message) -> None:
        self.messages.append(dict(message))

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def answer_headers(self) -> Headers:
        return Headers(raw=[(name.lower(), value) for name, value in self.messages[0]["headers"]])

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages[1:])

    @property
    def error(self) -> str:
        """The sentence of an error that is told as JSON."""
        return str(json.loads(self.body)["error"])


def call(app: ASGIApp, method: str = "GET", target: str = "/", headers: Pairs = (), **rest: Any) -> Call:
    """The answer of ``app`` to one request, in an event loop of its own."""
    return asyncio.run(Call(method, target, headers, **rest).send(app))
