"""Who may come in: the secret of this server, a cookie for the browser, and few guesses a minute."""

from __future__ import annotations

import hmac
import math
import secrets
from collections import deque
from collections.abc import Callable, Iterable
from urllib.parse import parse_qs

from starlette.responses import HTMLResponse, Response

from agcd.app.web.request_checks import Refused
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
