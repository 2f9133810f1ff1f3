"""Few wrong guesses a minute from one address; others are not held up by them."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable

from agcd.app.web.clients import client_of

MAX_ADDRESSES = 10_000
"""Addresses remembered; beyond that the one that guessed longest ago is forgotten."""


class Throttle:
    """At most ``limit`` wrong guesses in any ``window`` seconds for each address."""

    def __init__(self, clock: Callable[[], float], limit: int = 10, window: float = 60.0) -> None:
        self._clock, self._limit, self._window = clock, limit, window
        self._guesses: OrderedDict[str, deque[float]] = OrderedDict()

    def guess(self, address: str) -> int:
        """Count a guess and give 0, or whole seconds until one is allowed.

        It counts before it is looked at, so that a thousand at once are not all looked at.
        """
        address, now = client_of(address), self._clock()
        guesses = self._guesses.setdefault(address, deque())
        while guesses and now - guesses[0] >= self._window:
            guesses.popleft()
        if len(guesses) >= self._limit:
            return math.ceil(guesses[0] + self._window - now)
        guesses.append(now)
        self._guesses.move_to_end(address)
        if len(self._guesses) > MAX_ADDRESSES:
            self._guesses.popitem(last=False)
        return 0

    def was_right(self, address: str) -> None:
        """Take back the last guess of an address: right ones do not count."""
        if guesses := self._guesses.get(client_of(address)):
            guesses.pop()
