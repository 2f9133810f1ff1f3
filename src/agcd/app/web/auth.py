"""The gate before the whole application: what reaches a route comes from our own page or knows a secret.

Every rule holds for every method. A browser on this machine is an attacker's tool as well as the user's: any site
may send it here, so Host (DNS rebinding), Origin and Sec-Fetch-Site (other sites) are looked at before anything else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agcd.app.web.login import Login, Render, Secrets
from agcd.app.web.people import People, Person
from agcd.app.web.request_checks import (
    LOGIN,
    LOGOUT,
    READING,
    Refused,
    body_limit,
    checked_host,
    is_hostile,
    is_sent_by_our_page,
    media_type,
    read_body,
    sole,
)
from agcd.app.web.roles import check_role, check_who
from agcd.app.web.templates import render
from agcd.errors import ConfigError

FORM = "application/x-www-form-urlencoded"
MAX_FORM = 4096
"""Bytes of a login form; a password and its percent signs fit easily."""
MAX_FIELDS = 8


def sole_field(data: bytes, name: str) -> bytes | None:
    """The value of a field of a form or a query string, None if it is not there."""
    try:
        fields = parse_qs(data.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise Refused(400, f"A login has at most {MAX_FIELDS} fields.") from None
    values = fields.get(name, [])
    if len(values) > 1:
        raise Refused(400, f"The field {name!r} was sent {len(values)} times; once is expected.")
    return values[0].encode() if values else None


CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
UNLESS_SET = {"Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
PUBLIC = frozenset({"/static/style.css", "/static/favicon.svg"})
"""What the login page itself needs."""
PERSON = "agcd.person"
"""Where a request's scope holds the person who is logged in, None for whoever has the token or the password."""


@dataclass(frozen=True)
class GateSettings:
    """What the gate must know; ``hosts`` are the allowed Host headers, in lower case and with their port."""

    token: str = field(repr=False)
    hosts: frozenset[str]
    password: str | None = field(default=None, repr=False)
    people: People | None = None
    secure: bool = False
    """Whether browsers come by https: the cookie then travels no other way."""
    max_body: int = 4 * 2**20
    body_seconds: float = 30.0
    """How long a client may take to send a body."""
    csp: Mapping[str, str] = field(default_factory=dict)
    """Content-Security-Policy of single paths, in place of the strict one."""
    render: Render = render

    def __post_init__(self) -> None:
        if not self.token or self.password == "":
            raise ConfigError("The page needs a secret: an empty one would let everybody in.")


class Gate:
    """ASGI middleware; it belongs outside of everything else, so that error pages pass through it too."""

    def __init__(self, app: ASGIApp, settings: GateSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self.app, self.settings = app, settings
        secrets = Secrets(settings.token, settings.password, settings.people)
        self._login = Login(secrets, settings.secure, settings.render, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, self._with_headers(scope["path"], send))
        else:  # the page needs no websocket, and browsers let every site open one
            await send({"type": "websocket.close", "code": 1008, "reason": "Websockets are not served."})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._checked(scope, receive)
        except Refused as refused:
            response = self._refusal(scope, refused)
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def _checked(self, scope: Scope, receive: Receive) -> ASGIApp:
        """Whatever may answer this request; ``Refused`` if nothing may."""
        query = _taken_query(scope)
        method, path, headers = scope["method"], scope["path"], Headers(scope=scope)
        host = checked_host(headers, self.settings.hosts)
        is_ours = is_sent_by_our_page(method, path, headers, host, self.settings.secure)
        if is_hostile(path):
            raise Refused(404, "There is no such page.")
        limit = body_limit(method, path, headers, self.settings.max_body)
        address = scope["client"][0] if scope.get("client") else ""
        if path == LOGIN:
            return await self._log_in(method, headers, host, query, receive, address)
        if path == LOGOUT:
            return await self._log_out(method, headers, host, is_ours, receive)
        if method in READING and path in PUBLIC:
            return _replayed(self.app, await read_body(receive, limit, self.settings.body_seconds))
        person = await self._authenticate(method, headers, host, is_ours, address)
        if person:
            check_role(person, method, path)
        body = await read_body(receive, limit, self.settings.body_seconds)
        if person:
            check_who(person, method, path, scope.get("query_string", b""), body)
        scope[PERSON] = person
        return _replayed(self.app, body)

    async def _authenticate(
        self, method: str, headers: Headers, host: str, is_ours: bool, address: str
    ) -> Person | None:
        """By a secret in a header, which no other site can know, or by the cookie of a browser."""
        scheme, _, word = (sole(headers, "authorization") or "").partition(" ")
        if scheme.lower() == "bearer":
            return await self._login.check("", word.strip().encode("latin-1"), address)
        if scheme.lower() == "basic":
            return await self._login.check_basic(word.strip(), address)
        person = self._login.visitor(headers.getlist("cookie"), host)
        if method not in READING and not is_ours:
            raise Refused(403, "A change by cookie must come from our own page and carry its Origin.")
        return person

    async def _log_in(
        self, method: str, headers: Headers, host: str, query: bytes, receive: Receive, address: str
    ) -> Response:
        """By a link, which only ever holds the token, or by the form, which is shown where neither is sent."""
        person: Person | None = None
        if method in READING:
            token = sole_field(query, "token") if method == "GET" else None
            if token is None:
                return self._login.form()
            self._login.check_token(token)
        elif method != "POST":
            raise Refused(405, "The login is read or posted.", {"Allow": "GET, HEAD, POST"})
        elif media_type(headers) != FORM:
            raise Refused(415, f"A login is sent as {FORM}.")
        else:
            body = await read_body(receive, MAX_FORM, self.settings.body_seconds)
            name, secret = (sole_field(body, each) or b"" for each in ("name", "secret"))
            person = await self._login.check(name.decode().strip(), secret, address)
        return self._login.welcome(person, headers.getlist("cookie"), host)

    async def _log_out(self, method: str, headers: Headers, host: str, is_ours: bool, receive: Receive) -> Response:
        if method != "POST":
            raise Refused(405, "A logout is posted.", {"Allow": "POST"})
        if not is_ours:
            raise Refused(403, "A logout must come from our own page and carry its Origin.")
        await read_body(receive, MAX_FORM, self.settings.body_seconds)
        return self._login.log_out(headers.getlist("cookie"), host)

    def _refusal(self, scope: Scope, refused: Refused) -> Response:
        """The login page where logging in helps a person, JSON for everything else."""
        headers = {**refused.headers, **({"WWW-Authenticate": "Bearer"} if refused.status == 401 else {})}
        wants_page = "text/html" in Headers(scope=scope).get("accept", "")
        if refused.status in (401, 429) and wants_page:
            return self._login.form(refused.sentence, refused.status, headers)
        return JSONResponse({"error": refused.sentence}, refused.status, headers)

    def _with_headers(self, path: str, send: Send) -> Send:
        csp = self.settings.csp.get(path, CSP)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=[(name.lower(), value) for name, value in message.get("headers", [])])
                for name in {name for name in headers if name.startswith("access-control-")}:
                    del headers[name]
                headers.update({"Content-Security-Policy": csp, **ALWAYS})
                for name, value in UNLESS_SET.items():
                    headers.setdefault(name, value)
                message = {**message, "headers": headers.raw}
            await send(message)

        return guarded


def _replayed(app: ASGIApp, body: bytes) -> ASGIApp:
    """``app``, given a body that was read already; later messages (a disconnect) come from the server."""
    first = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def replayed(scope: Scope, receive: Receive, send: Send) -> None:
        async def receive_again() -> Message:
            return next(first, None) or await receive()

        await app(scope, receive_again, send)

    return replayed


def _taken_query(scope: Scope) -> bytes:
    """The query string of a login link, taken out of the scope because servers log what is left there."""
    if scope["path"] != LOGIN:
        return b""
    query, scope["query_string"] = scope.get("query_string", b""), b""
    return bytes(query)
