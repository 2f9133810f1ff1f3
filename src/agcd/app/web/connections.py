"""Connections: how many there may be, how long the server waits for a client, and what happens when they run out.

uvicorn's own ``limit_concurrency`` would not do: it refuses the requests of everybody and leaves idle connections open.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import socket
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from uvicorn.protocols.http.h11_impl import H11Protocol

from agcd.app.web.clients import client_of

MOST_DESCRIPTORS = 65_536
"""No more are asked for: some libraries walk over all of them when they start a process."""
_NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
log = logging.getLogger("agcd.connections")


@dataclass(frozen=True)
class Limits:
    """How many connections there may be, and how many seconds a client has for each step."""

    in_all: int = 2000
    per_client: int = 256
    """From one address; the people behind one proxy share it."""
    header_seconds: float = 10.0
    """To send the head of a request, from the connection or from its first byte on."""
    read_seconds: float = 60.0
    """To take the next piece of an answer."""

    @staticmethod
    def for_descriptors(n: int) -> Limits:
        """At most half of the ``n`` descriptors: the other half is for pictures, databases and files."""
        return Limits(in_all=min(Limits.in_all, n // 2), per_client=min(Limits.per_client, n // 4))


MOST_ACCEPTED = 2 * Limits.per_client
"""Connections of one client with those that the protocol does not know of yet."""


def raise_descriptor_limit() -> int:
    """Allow this process as many open files as the system lets it have; how many that are."""
    if sys.platform == "win32":
        return MOST_DESCRIPTORS
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return MOST_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
    with suppress(OSError, ValueError):  # some systems promise more than they give
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def limited(limits: Limits) -> type[H11Protocol]:
    """The protocol for ``uvicorn.Config(http=…)`` that keeps ``limits``; one for each server."""
    logging.getLogger("uvicorn.error").addFilter(OnceAMinute())
    return type("LimitedProtocol", (_Limited,), {"limits": limits, "now": _Connections()})


@dataclass
class _Connections:
    """The connections that are open now."""

    n_of: Counter[str] = field(default_factory=Counter)
    """By client."""
    waiting: dict[_Limited, None] = field(default_factory=dict)
    """Those that wait for their client, the longest wait first."""


class _Limited(H11Protocol):
    """HTTP as uvicorn speaks it, with a timer whenever the client is waited for."""

    limits: ClassVar[Limits]
    now: ClassVar[_Connections]
    _timer: asyncio.TimerHandle | None = None
    _home: str | None = None
    """Whose connection this is; None while it is not counted."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        home = client_of(self.client[0] if self.client else "")
        if self.now.n_of[home] >= self.limits.per_client:
            self._refuse("Too many connections are open from your address: close some, then try again.")
        elif self.now.n_of.total() >= self.limits.in_all and not self._make_room():
            self._refuse("Too many connections are open: try again in a moment.")
        else:
            self._home = home
            self.now.n_of[home] += 1
            self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._home is not None:
            super().data_received(data)
            self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_timer(self.limits.read_seconds)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_timer()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._start_timer(self.limits.read_seconds)  # what is left to be sent may never be taken

    def _look(self) -> None:
        """Start or stop the timer: a request that is being answered has its own limits, a client that sends has not."""
        if self._home is None or self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self.now.waiting.pop(self, None)
            if not self.flow.write_paused:
                self._stop_timer()
            return
        self.now.waiting.setdefault(self)
        if self._timer is None and self.timeout_keep_alive_task is None:
            self._start_timer(self.limits.header_seconds)

    def _make_room(self) -> bool:
        """Close the connection that has waited longest for its client; False if none does."""
        longest = next(iter(self.now.waiting), None)
        if longest is None:
            return False
        longest._give_up()
        return True

    def _give_up(self) -> None:
        """Close at once, without a word: browsers open connections ahead and would show what they get there."""
        self._forget()
        self._unset_keepalive_if_required()
        self.transport.abort()

    def _refuse(self, sentence: str) -> None:
        log.warning("Connections are refused. %s", sentence)
        body = json.dumps({"error": sentence}).encode()
        head = f"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self.transport.write(f"{head}Retry-After: 5\r\nConnection: close\r\n\r\n".encode() + body)
        self.transport.close()
        self._start_timer(self.limits.header_seconds)

    def _forget(self) -> None:
        self._stop_timer()
        self.now.waiting.pop(self, None)
        if self._home is not None:
            self.now.n_of[self._home] -= 1
            if not self.now.n_of[self._home]:
                del self.now.n_of[self._home]
            self._home = None

    def _start_timer(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Listener(socket.socket):
    """A TCP socket to listen on that turns clients away when the descriptors have run out, or one client has very many.

    Without descriptors asyncio would log a traceback for each place in the queue, every second, and let the clients
    wait. The protocol above hears of a connection by https only once its keys are agreed on, which may never come.
    """

    def __init__(self, family: socket.AddressFamily) -> None:
        # The protocol is named because asyncio sends answers at once (TCP_NODELAY) only where it is: else they take
        # 40 ms.
        super().__init__(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._spare = _spare_descriptor()
        self._accepted: WeakKeyDictionary[socket.socket, str] = WeakKeyDictionary()
        """Each with its client."""

    def accept(self) -> tuple[socket.socket, Any]:
        connection, address = self._next()
        client = client_of(address[0])
        if self._n_open(client) >= MOST_ACCEPTED:
            log.warning("One client opens very many connections: more of them are closed at once.")
            connection.close()
            raise BlockingIOError  # as if nobody had come
        self._accepted[connection] = client
        return connection, address

    def _n_open(self, client: str) -> int:
        return sum(one == client and connection.fileno() >= 0 for connection, one in self._accepted.items())

    def _next(self) -> tuple[socket.socket, Any]:
        try:
            return super().accept()
        except OSError as error:
            if error.errno not in _NO_DESCRIPTORS:
                raise
        log.warning("No more files can be opened: new connections are refused until others are closed.")
        self._turn_away()
        raise BlockingIOError

    def close(self) -> None:
        super().close()
        self._free_spare()

    def _turn_away(self) -> None:
        """Accept with the descriptor that is kept for this, and close at once."""
        self._free_spare()
        try:
            super().accept()[0].close()
        except OSError:
            time.sleep(0.02)  # another thread was quicker: without a pause this would be tried again and again
        self._spare = _spare_descriptor()

    def _free_spare(self) -> None:
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None


def _spare_descriptor() -> int | None:
    try:
        return os.open(os.devnull, os.O_RDONLY)
    except OSError:
        return None


class OnceAMinute(logging.Filter):
    """Lets a warning through once a minute: whoever sends nonsense must not fill the log with it."""

    def __init__(self, seconds: float = 60.0) -> None:
        super().__init__()
        self._seconds = seconds
        self._last: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno != logging.WARNING:
            return True
        now = time.monotonic()
        if now - self._last.get(record.msg, -self._seconds) < self._seconds:
            return False
        self._last[record.msg] = now
        return True


log.addFilter(OnceAMinute())
