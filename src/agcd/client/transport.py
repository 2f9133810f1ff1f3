"""Requests to a labelling page: one connection that is kept open, and tried again where that is safe (docs/api.md)."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import parse_qs, urlencode, urlsplit

from agcd.errors import AgcdError, ConfigError

AGAIN = frozenset({408, 429, 502, 503, 504})
"""Answers after which the same request may succeed; 502 and 504 are a proxy's, while the server behind it starts."""
_UNTOUCHED = frozenset({408, 429, 503})
"""Those of them that the server gives before it has done anything."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
Query = Sequence[tuple[str, str | int]]


class ApiError(AgcdError):
    """The page refused a request; ``status`` says how, and the message is its own sentence."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


class NoAnswer(AgcdError, ConnectionError):
    """Nobody answers at the address."""


@dataclass(frozen=True)
class Address:
    """Where a page is, and the token of its link."""

    scheme: str
    host: str
    port: int | None
    token: str | None = field(repr=False)

    @classmethod
    def of(cls, text: str) -> Address:
        """Of an address, or of the link that ``agcd serve`` prints."""
        try:
            found = urlsplit(text)
            host, port = found.hostname, found.port
        except ValueError:
            host, port = None, None
        if not host or found.scheme not in ("http", "https") or found.path not in ("", "/", "/login"):
            raise ConfigError(f"{text!r} is not the address of a page, such as http://127.0.0.1:8765.")
        return cls(found.scheme, host, port, parse_qs(found.query).get("token", [None])[0])

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + (f":{self.port}" if self.port else "")

    def connection(self, context: ssl.SSLContext | None, timeout: float) -> HTTPConnection:
        """To this address, not opened yet."""
        if self.scheme == "https":
            return HTTPSConnection(self.host, self.port, timeout=timeout, context=context)
        return HTTPConnection(self.host, self.port, timeout=timeout)


def bearer(token: str) -> str:
    """How a request says that it knows the token."""
    return f"Bearer {token}"


def basic(name: str, password: str) -> str:
    """How a request says whose it is."""
    return f"Basic {b64encode(f'{name}:{password}'.encode()).decode()}"


class _Again(Exception):
    """A fault that may be over at the next try."""

    def __init__(self, fault: AgcdError, seconds: float = 0.0) -> None:
        self.fault, self.seconds = fault, seconds


class Transport:
    """Sends requests one at a time, whichever thread they come from.

    Lost connections and the answers in ``AGAIN`` are tried again for ``patience`` seconds with the same body, and so
    with the same ``uid``: what was stored already is not stored twice.
    """

    def __init__(
        self, address: Address, authorization: str, context: ssl.SSLContext | None, timeout: float, patience: float
    ) -> None:
        self.address, self.patience = address, patience
        self._headers = {"Authorization": authorization, "Content-Type": "application/json"}
        self._connection = address.connection(context, timeout)
        self._guard = threading.Lock()

    def send(
        self, method: str, path: str, query: Query = (), body: bytes | None = None, *, repeatable: bool = True
    ) -> bytes:
        """The body of the answer. What is not ``repeatable`` is sent again only where nobody can have acted on it."""
        target = f"{path}?{urlencode(query)}" if query else path
        until, pause = time.monotonic() + self.patience, _FIRST_PAUSE
        while True:
            try:
                with self._guard:
                    return self._once(method, target, body, repeatable)
            except _Again as again:
                seconds = max(pause, again.seconds)
                if time.monotonic() + seconds > until:
                    raise again.fault from None
            time.sleep(seconds)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def close(self) -> None:
        """Let the connection go; the next request opens one."""
        with self._guard:
            self._connection.close()

    def _once(self, method: str, target: str, body: bytes | None, repeatable: bool) -> bytes:
        if not repeatable:  # a connection that was idle may have been closed meanwhile, which only sending would show
            self._connection.close()
        self._open()
        try:
            self._connection.request(method, target, body, self._headers)
            response = self._connection.getresponse()
            answer = response.read()
        except (OSError, HTTPException) as error:
            lost = NoAnswer(f"The connection to {self.address} was lost ({_words(error)}).")
            self._connection.close()
            raise (_Again(lost) if repeatable else lost) from None
        except BaseException:  # an interrupt: what is left of this answer must not become the next one's
            self._connection.close()
            raise
        if response.status < 300:
            return answer
        fault = ApiError(_sentence(response, answer), response.status)
        if response.status in (AGAIN if repeatable else _UNTOUCHED):
            raise _Again(fault, _retry_after(response))
        raise fault

    def _open(self) -> None:
        if self._connection.sock is not None:
            return
        try:
            self._connection.connect()
        except OSError as error:
            self._connection.close()
            fault = NoAnswer(f"Nobody answers at {self.address} ({_words(error)}).")
            is_final = isinstance(error, (ssl.SSLError, socket.gaierror))
            raise (fault if is_final else _Again(fault)) from None


def _words(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _sentence(response: HTTPResponse, answer: bytes) -> str:
    """What the page says, or what is known where a proxy answered in its place."""
    try:
        return str(json.loads(answer)["error"])
    except (ValueError, KeyError, TypeError):
        return f"The answer was {response.status} {response.reason}."


def _retry_after(response: HTTPResponse) -> float:
    found = response.headers.get("Retry-After", "")
    return float(found) if found.isascii() and found.isdigit() else 0.0
