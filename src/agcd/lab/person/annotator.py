"""A script that talks to the labelling page's server over HTTP, and the server in a process of its own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from agcd.client import ApiError, Client, serve
from agcd.client.transport import Address
from agcd.errors import StorageError

_JOB = "/api/v1/job"
_POLL_SECONDS = 0.2
"""Between two looks at a running round, which takes seconds to minutes."""
_PATIENCE_SECONDS = 300.0
_RUNNING = "Something is running already"
"""What the page says while the process of an earlier job has not left."""


@contextmanager
def served(folder: Path, *, by_hand: bool = True) -> Iterator[tuple[str, str]]:
    """Address and secret of ``agcd serve`` in a process of its own, which ends with the block.

    ``by_hand``: it starts no work by itself, as a script that trains in explicit rounds needs it.
    """
    with serve(folder, by_hand=by_hand, say=lambda _: None) as page:
        address = Address.of(page.link)
        if address.token is None:
            raise StorageError(f"agcd serve {folder} printed no link with a token.")
        yield str(address), address.token


@dataclass(frozen=True)
class Annotator:
    """Answers every question of a served project by the truth."""

    address: str
    secret: str
    truth: Callable[[int], str]
    """The class of a row."""
    who: str = "script"
    clock: Callable[[], float] = time.perf_counter
    """Seconds, by which work in the background is measured."""

    def label_round(self) -> int:
        """Answer until nothing is left to ask; how many answers that took."""
        n_answers = 0
        while (row := self.question()["row"]) is not None:
            self.label([row], self.truth(row))
            n_answers += 1
        return n_answers

    def train_round(self) -> None:
        """Start the next round and wait until it is done."""
        self.run_job("round")

    def question(self, *, live: bool = False) -> Any:
        """The next card, of the last explicit round or a live one; its row is None when nothing is left to ask."""
        return self.call("/api/v1/question", who=self.who, holder="a-script-holds-it", live=str(live).lower())

    def label(self, rows: Sequence[int], name: str) -> None:
        """Store one answer for rows that are the same."""
        said = [{"row": row, "kind": "label", "name": name} for row in rows]
        self.call("/api/v1/answers", {"uid": uuid4().hex, "who": self.who, "answers": said})

    def run_job(self, kind: str) -> dict[str, float]:
        """Start work in the background and wait until it is done; the seconds of each of its stages."""
        seconds: dict[str, float] = {}
        began = self.clock()
        self._start_job(kind)
        while True:
            job = self.call(_JOB)
            now = self.clock()
            seconds[job["stage"]] = seconds.get(job["stage"], 0.0) + now - began
            began = now
            if job["state"] != "running":
                break
            time.sleep(_POLL_SECONDS)
        if job["state"] != "done":
            raise StorageError(f"The {kind} did not finish: {job['error']}")
        return seconds

    def _start_job(self, kind: str) -> None:
        """Start it, as soon as the process of the last one has left: on a busy machine that takes a while."""
        until = time.perf_counter() + _PATIENCE_SECONDS
        while True:
            try:
                self.call(_JOB, {"kind": kind})
                return
            except StorageError as error:
                if _RUNNING not in str(error) or time.perf_counter() > until:
                    raise
            time.sleep(_POLL_SECONDS)

    def call(self, path: str, body: dict[str, Any] | None = None, *, method: str | None = None, **params: str) -> Any:
        """GET, or POST where there is a body; the answer as JSON."""
        return json.loads(self.fetch(path, body, method=method, **params))

    def fetch(
        self, path: str, body: dict[str, Any] | None = None, *, method: str | None = None, **params: str
    ) -> bytes:
        """GET, or POST where there is a body; the answer as it came."""
        data = None if body is None else json.dumps(body).encode()
        how = method or ("GET" if body is None else "POST")
        try:
            with Client(self.address, token=self.secret) as page:
                return page.transport.send(how, path, list(params.items()), data, repeatable=path != _JOB)
        except ApiError as error:
            raise StorageError(f"The page refused {path}: {error}") from None
