"""The ways in: the token, the password of the server, and named people with passwords of their own."""

from __future__ import annotations

import asyncio
import base64
import hmac
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from starlette.responses import HTMLResponse, Response

from agcd.app.web.people import People, Person
from agcd.app.web.request_checks import Refused
from agcd.app.web.sessions import Sessions, cookie_name, cookie_values
from agcd.app.web.throttle import Throttle
from agcd.errors import DataError

MAX_WAITING = 20
"""Passwords that wait to be checked, one after the other, before further ones are sent away."""
Render = Callable[..., str]


@dataclass(frozen=True)
class Secrets:
    """What lets in. Who has the token or the password may do everything, under any name."""

    token: str = field(repr=False)
    password: str | None = field(default=None, repr=False)
    people: People | None = None

    def is_token(self, guess: bytes) -> bool:
        return hmac.compare_digest(guess, self.token.encode())

    def is_password(self, guess: bytes) -> bool:
        return self.password is not None and hmac.compare_digest(guess, self.password.encode())

    def people_now(self) -> dict[str, Person]:
        """Everybody by name; a damaged file lets nobody in."""
        try:
            return self.people.now() if self.people else {}
        except DataError as error:
            raise Refused(503, str(error)) from None


class Login:
    """Checks who comes, and remembers them by a cookie. A visitor without a name has the token or the password."""

    def __init__(self, secrets: Secrets, secure: bool, render: Render, clock: Callable[[], float]) -> None:
        self._secrets, self._secure, self._render = secrets, secure, render
        self._throttle, self._sessions = Throttle(clock), Sessions(clock)
        self._hashing = ThreadPoolExecutor(1, "agcd-password")
        self._n_waiting = 0

    # ------------------------------------------------------------------------------------------------- secrets

    def check_token(self, guess: bytes) -> None:
        """Refuse a wrong token. Nobody guesses 192 bits, so these tries are not counted: any site can make them."""
        if not self._secrets.is_token(guess):
            raise Refused(401, "That is not the token of this server: open the link that agcd serve printed last.")

    async def check(self, name: str, guess: bytes, address: str) -> Person | None:
        """The person of this name, None for the token or the password without one; wrong guesses are counted."""
        if name:
            return await self._check_person(name, guess, address)
        if not self._secrets.is_token(guess):
            self._count(address)
            if not self._secrets.is_password(guess):
                raise Refused(401, "That is not the password of this server.")
            self._throttle.was_right(address)
        return None

    async def check_basic(self, credentials: str, address: str) -> Person | None:
        """As ``check``, by what a script sends as ``Authorization: Basic``."""
        try:
            name, _, guess = base64.b64decode(credentials, validate=True).partition(b":")
            decoded = name.decode()
        except ValueError:
            raise Refused(401, "Basic is followed by name:password in base64.") from None
        return await self.check(decoded, guess, address)

    async def _check_person(self, name: str, guess: bytes, address: str) -> Person:
        people, person = self._secrets.people, None
        try:
            if people:
                person = people.is_known(name, guess) or await self._hashed(people, name, guess, address)
        except DataError as error:
            raise Refused(503, str(error)) from None
        if person is None:
            raise Refused(401, "That is not the name and password of anybody here.")
        return person

    async def _hashed(self, people: People, name: str, guess: bytes, address: str) -> Person | None:
        """The person, if the password is right: worked out beside the event loop, one after the other."""
        if self._n_waiting >= MAX_WAITING:
            raise Refused(503, "Many people log in at this moment: try again in a few seconds.", {"Retry-After": "5"})
        self._count(address)
        self._n_waiting += 1
        try:
            work = asyncio.get_running_loop().run_in_executor(self._hashing, people.check, name, guess)
            person = await work
        finally:
            self._n_waiting -= 1
        if person:
            self._throttle.was_right(address)
        return person

    def _count(self, address: str) -> None:
        if wait := self._throttle.guess(address):
            sentence = f"Too many wrong passwords: try again in {wait} seconds."
            raise Refused(429, sentence, {"Retry-After": str(wait)})

    # ------------------------------------------------------------------------------------------------ sessions

    def visitor(self, cookies: Iterable[str], host: str) -> Person | None:
        """Whose session the Cookie headers hold, with the role of this moment; refused if nobody's."""
        session = self._sessions.find(cookie_values(cookies, self._cookie(host)))
        if session is None:
            raise Refused(401, "Log in first: open the link that agcd serve printed, or give its password.")
        if session.person is None:
            return None
        person = self._secrets.people_now().get(session.person.name)
        if person is None or person.secret != session.person.secret:
            raise Refused(401, "Log in again: your password was changed, or you are no longer among the people.")
        return person

    def welcome(self, person: Person | None, cookies: Iterable[str], host: str) -> Response:
        """The cookie of a new session, on a page that leads on to the start; the browser's former session ends.

        Not a redirect: after a click on another site browsers would follow it without a strict cookie.
        """
        name = self._cookie(host)
        self._sessions.end(cookie_values(cookies, name))
        response = HTMLResponse(self._render("welcome.html.j2"))
        value = self._sessions.begin(person)
        response.set_cookie(name, value, path="/", secure=self._secure, httponly=True, samesite="strict")
        return response

    def log_out(self, cookies: Iterable[str], host: str) -> Response:
        """End this session and no other."""
        name = self._cookie(host)
        self._sessions.end(cookie_values(cookies, name))
        response = self.form(note="You are logged out.")
        response.delete_cookie(name, path="/", secure=self._secure, httponly=True, samesite="strict")
        return response

    def form(
        self, error: str = "", status: int = 200, headers: dict[str, str] | None = None, note: str = ""
    ) -> Response:
        """The page that asks for the secret; ``error`` says why it asks again.

        With no-referrer browsers send this form with the origin "null", which could be anybody's.
        """
        people = self._secrets.people
        page = self._render("login.html.j2", error=error, note=note, asks_name=bool(people and people.exist()))
        return HTMLResponse(page, status, {"Referrer-Policy": "same-origin", **(headers or {})})

    def _cookie(self, host: str) -> str:
        return cookie_name(host, self._secure)
