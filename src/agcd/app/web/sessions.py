"""Who is logged in: a session for each login, in memory, so that a new start of the server ends them all."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from agcd.app.web.people import Person
from agcd.io import digest_bytes

IDLE_SECONDS = 12 * 3600.0
"""A session ends when no request came for so long; an open page asks for news all the time."""
LONGEST_SECONDS = 7 * 24 * 3600.0
PER_PERSON = 20
"""Sessions of one person; the one idle for longest makes room for a new one."""


@dataclass(frozen=True)
class Session:
    """One login; ``person`` is None for whoever came with the token or the password of the server."""

    person: Person | None
    since: float
    seen: float


class Sessions:
    """By what their cookies hold, of which only a hash is kept."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._sessions: dict[bytes, Session] = {}

    def begin(self, person: Person | None) -> str:
        """The value for the cookie of a new session."""
        now = self._clock()
        self._sessions = {key: one for key, one in self._sessions.items() if _is_alive(one, now)}
        name = person and person.name
        own = [key for key, one in self._sessions.items() if (one.person and one.person.name) == name]
        n_too_many = max(0, len(own) + 1 - PER_PERSON)
        for key in sorted(own, key=lambda key: self._sessions[key].seen)[:n_too_many]:
            del self._sessions[key]
        value = secrets.token_urlsafe(32)
        self._sessions[_key(value)] = Session(person, now, now)
        return value

    def find(self, values: Iterable[str]) -> Session | None:
        """The session of the first value that has one; it counts as seen."""
        now = self._clock()
        for key in map(_key, values):
            session = self._sessions.get(key)
            if session and _is_alive(session, now):
                self._sessions[key] = replace(session, seen=now)
                return session
        return None

    def end(self, values: Iterable[str]) -> None:
        """Forget the sessions of these values."""
        for value in values:
            self._sessions.pop(_key(value), None)


def cookie_name(host: str, secure: bool = False) -> str:
    """A name of its own for each server: browsers share cookies between all ports of a machine.

    By https its beginning makes browsers refuse one of the same name from anybody but this very host.
    """
    port = host.rpartition(":")[2]
    own = port if port.isdecimal() else digest_bytes(host.encode())[3:11]
    return f"{'__Host-' * secure}agcd_session_{own}"


def cookie_values(cookies: Iterable[str], name: str) -> list[str]:
    """What the Cookie headers hold under ``name``; servers at other ports may have put a value beside ours."""
    pairs = (pair.strip().partition("=") for header in cookies for pair in header.split(";"))
    return [value for found, _, value in pairs if found == name]


def _is_alive(session: Session, now: float) -> bool:
    return now - session.seen < IDLE_SECONDS and now - session.since < LONGEST_SECONDS


def _key(value: str) -> bytes:
    return hashlib.sha256(value.encode()).digest()
