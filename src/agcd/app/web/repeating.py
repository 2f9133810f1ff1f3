"""Small things that a server does by itself: a thread that looks every few seconds."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod

from agcd.app.store.seals import wal_of
from agcd.app.web.server_state import ServerState
from agcd.errors import AgcdError

log = logging.getLogger("agcd")


class Repeating(ABC):
    """A thread that looks every ``seconds``; what goes wrong is logged, once until it changes."""

    seconds = 1.0

    def __init__(self, name: str) -> None:
        self._name, self._said, self._end = name, "", threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"agcd {name}", daemon=True)

    @abstractmethod
    def look(self) -> None:
        """Do what is due."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(self.seconds):
            said = ""
            try:
                self.look()
            except (AgcdError, OSError) as error:  # said where it belongs; the next look may find it mended
                said = str(error)
            if said and said != self._said:
                log.warning("%s: %s", self._name, said)
            self._said = said


class Checkpointing(Repeating):
    """Moves answers from ``project.db-wal`` into ``project.db`` when nobody has answered for a few seconds: then a copy
    of the one file is whole, and the loss of the other costs nothing."""

    seconds = 3.0

    def __init__(self, server: ServerState) -> None:
        super().__init__("records")
        self._server, self._wal = server, wal_of(server.project.store.path)
        self._seen = self._moved = (0, 0)

    def look(self) -> None:
        """Move what has lain there since the last look."""
        found = self._wal.stat() if self._wal.exists() else None
        state = (found.st_mtime_ns, found.st_size) if found else (0, 0)
        is_idle, self._seen = state == self._seen, state
        if is_idle and state[1] and state != self._moved and not self._server.project.store.is_read_only:
            with self._server.opened() as project:
                project.store.checkpoint()
            self._moved = state
