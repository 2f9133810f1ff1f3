"""The gate before the whole application: what reaches a route comes from our own page or knows the secret.

Every rule holds for every method. A browser on this machine is an attacker's tool as well as the user's: any site
may send it here, so Host (DNS rebinding), Origin and Sec-Fetch-Site (other sites) are looked at before anything else.
"""

from __future__ import annotations

import hmac
import ipaddress
import math
import re
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agcd.app.web.request_checks import (
    LOGIN,
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
from agcd.app.web.templates import render
from agcd.errors import ConfigError
from agcd.io import digest_bytes

FORM = "application/x-www-form-urlencoded"
MAX_FORM = 4096
"""Bytes of a login form; a password and its percent signs fit easily."""
MAX_FIELDS = 8
Render = Callable[..., str]


class Throttle:
    """At most ``limit`` wrong guesses in any ``window`` seconds, whoever makes them."""

    def __init__(self, clock: Callable[[], float], limit: int = 10, window: float = 60.0) -> None:
        self._clock, self._limit, self._window = clock, limit, window
        self._failures: deque[float] = deque()

    def wait(self) -> int:
        """Whole seconds until the next guess is allowed; 0 means now."""
        now = self._clock()
        while self._failures and now - self._failures[0] >= self._window:
            self._failures.popleft()
        return 0 if len(self._failures) < self._limit else math.ceil(self._failures[0] + self._window - now)

    def fail(self) -> None:
        """Count one wrong guess."""
        self._failures.append(self._clock())


class Login:
    """One secret for everybody, and one session that lasts as long as the server runs."""

    def __init__(self, secret: str, secure: bool, render: Render, clock: Callable[[], float]) -> None:
        self._secret, self._secure, self._render = secret.encode(), secure, render
        self._session = secrets.token_urlsafe(32).encode()
        self._throttle = Throttle(clock)

    def check(self, guess: bytes) -> None:
        """Refuse a wrong secret, and for a while every secret once too many were wrong."""
        if wait := self._throttle.wait():
            sentence = f"Too many wrong passwords: try again in {wait} seconds."
            raise Refused(429, sentence, {"Retry-After": str(wait)})
        if not hmac.compare_digest(guess, self._secret):
            self._throttle.fail()
            raise Refused(401, "That is not the password of this server.")

    def knows(self, cookies: Iterable[str], host: str) -> bool:
        """Whether one of the Cookie headers holds our session.

        Any one will do: servers at other ports of this machine can set a cookie of the same name beside ours.
        """
        pairs = (pair.strip().partition("=") for header in cookies for pair in header.split(";"))
        values = [value for name, _, value in pairs if name == cookie_name(host)]
        return any(hmac.compare_digest(value.encode(), self._session) for value in values)

    def form(self, sentence: str = "", status: int = 200, headers: dict[str, str] | None = None) -> Response:
        """The page that asks for the secret; ``sentence`` says why it asks again.

        With no-referrer browsers send this form with the origin "null", which could be anybody's.
        """
        page = self._render("login.html.j2", error=sentence)
        return HTMLResponse(page, status, {"Referrer-Policy": "same-origin", **(headers or {})})

    def welcome(self, host: str) -> Response:
        """The cookie, on a page that leads on to the start.

        Not a redirect: after a click on another site browsers would follow it without a strict cookie.
        """
        response = HTMLResponse(self._render("welcome.html.j2"))
        response.set_cookie(
            cookie_name(host), self._session.decode(), path="/", secure=self._secure, httponly=True, samesite="strict"
        )
        return response


def cookie_name(host: str) -> str:
    """A name of its own for each server: browsers share cookies between all ports of a machine."""
    port = host.rpartition(":")[2]
    return f"agcd_session_{port if port.isdecimal() else digest_bytes(host.encode())[3:11]}"


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
ALLOW = "GET, HEAD, POST, PUT, PATCH, DELETE"
MIN_PASSWORD = 12
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
WILDCARDS = ("0.0.0.0", "::", "")
"""Addresses that stand for all of a machine, the loopback included."""


@dataclass(frozen=True)
class GateSettings:
    """What the gate must know; ``hosts`` are the allowed Host headers, in lower case and with their port."""

    secret: str = field(repr=False)
    hosts: frozenset[str]
    secure: bool = False
    """Whether browsers come by https: the cookie then travels no other way."""
    max_body: int = 4 * 2**20
    body_seconds: float = 30.0
    """How long a client may take to send a body."""
    csp: Mapping[str, str] = field(default_factory=dict)
    """Content-Security-Policy of single paths, in place of the strict one."""
    render: Render = render

    def __post_init__(self) -> None:
        if not self.secret:
            raise ConfigError("The page needs a secret: an empty one would let everybody in.")


class Gate:
    """ASGI middleware; it belongs outside of everything else, so that error pages pass through it too."""

    def __init__(self, app: ASGIApp, settings: GateSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self.app, self.settings = app, settings
        self._login = Login(settings.secret, settings.secure, settings.render, clock)

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
        is_ours = is_sent_by_our_page(method, path, headers, host)
        if is_hostile(path):
            raise Refused(404, "There is no such page.")
        if method == "OPTIONS":
            raise Refused(405, "OPTIONS is not answered: other sites have no business here.", {"Allow": ALLOW})
        limit = body_limit(method, path, headers, self.settings.max_body)
        if path == LOGIN:
            return self._log_in(host, await self._secret_in(method, headers, query, receive))
        if not (method in READING and path in PUBLIC):
            self._authenticate(method, headers, host, is_ours)
        return _replayed(self.app, await read_body(receive, limit, self.settings.body_seconds))

    def _authenticate(self, method: str, headers: Headers, host: str, is_ours: bool) -> None:
        """By the secret in a header, which no other site can know, or by the cookie of a browser."""
        scheme, _, word = (sole(headers, "authorization") or "").partition(" ")
        if scheme.lower() == "bearer":
            self._login.check(word.strip().encode("latin-1"))
        elif not self._login.knows(headers.getlist("cookie"), host):
            raise Refused(401, "Log in first: open the link that agcd serve printed, or give its password.")
        elif method not in READING and not is_ours:
            raise Refused(403, "A change by cookie must come from our own page and carry its Origin.")

    async def _secret_in(self, method: str, headers: Headers, query: bytes, receive: Receive) -> bytes | None:
        """The secret that a login form or a login link brings; None if the form is only asked for."""
        if method in READING:
            return sole_field(query, "token") if method == "GET" else None
        if method != "POST":
            raise Refused(405, "The login is read or posted.", {"Allow": "GET, HEAD, POST"})
        if media_type(headers) != FORM:
            raise Refused(415, f"A login is sent as {FORM}.")
        body = await read_body(receive, MAX_FORM, self.settings.body_seconds)
        return sole_field(body, "secret") or b""

    def _log_in(self, host: str, secret: bytes | None) -> Response:
        if secret is None:
            return self._login.form()
        self._login.check(secret)
        return self._login.welcome(host)

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


def allowed_hosts(host: str, port: int, names: Iterable[str] = ()) -> frozenset[str]:
    """The Host headers under which a server at ``host`` is meant; ``names`` are others that the user gives."""
    bare = host.lower().strip("[]")
    is_loopback = bare in ("127.0.0.1", "localhost", "::1", *WILDCARDS)
    own = LOOPBACK if is_loopback else frozenset({f"[{bare}]" if ":" in bare else bare})
    allowed = {f"{spelling}:{port}" for spelling in own}
    if port in (80, 443):  # browsers leave these out
        allowed.update(own)
    for name in map(str.lower, names):
        allowed.update({name} if re.search(r":[0-9]+$", name) else {name, f"{name}:{port}"})
    return frozenset(allowed)


def check_address(host: str, allow_remote: bool, secret: str | None) -> None:
    """Refuse to serve other machines unless the user asked for it and chose a password."""
    if _is_loopback(host):
        return
    if not allow_remote:
        raise ConfigError(
            f"Other machines could open the page at {host or 'all addresses'}: serve at 127.0.0.1, "
            "or allow it with --allow-remote and a password."
        )
    if not secret or len(secret) < MIN_PASSWORD:
        given = f"this one has {len(secret)}" if secret else "none was given"
        raise ConfigError(f"A page for other machines needs a password of at least {MIN_PASSWORD} characters; {given}.")


def _is_loopback(host: str) -> bool:
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
