"""A labelling page as a Python object: what scripts and notebooks say to it in one line each."""

from __future__ import annotations

import json
import operator
import ssl
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, cast

from agcd.app.web import schemas
from agcd.client.operations import Operations, made
from agcd.client.transport import Address, ApiError, Transport, basic, bearer
from agcd.errors import AgcdError, ConfigError
from agcd.io import atomic_write

_POLL_SECONDS = 0.5
_BUSY = 409
Progress = Callable[[schemas.State, int], None]
"""Is told the state of the page and how many answers are still waited for."""


class JobFailed(AgcdError):
    """Work in the background ended without being done."""


class Client(Operations):
    """A page that ``agcd serve`` shows, here or on another machine.

    ``address`` is that of the page, or the whole link that was printed, which holds the token. A person of the project
    logs in with ``who`` and ``password``; without a password the token is needed, and ``who`` is the name under which
    answers are stored. ``context`` says which certificates are trusted (``ssl.create_default_context(cafile=…)``).
    """

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        who: str = "python",
        password: str | None = None,
        context: ssl.SSLContext | None = None,
        timeout: float = 60.0,
        patience: float = 10.0,
    ) -> None:
        found = Address.of(address)
        token = token or found.token
        if not (token or password):
            raise ConfigError(f"{found} wants a token (it stands in the link that was printed), or who and password.")
        authorization = basic(who, password) if password else bearer(str(token))
        super().__init__(Transport(found, authorization, context, timeout, patience), who)
        self.link = f"{found}/login" + (f"?token={token}" if token and not password else "")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.transport.address)!r}, who={self.who!r})"

    def close(self) -> None:
        """Let the connection go."""
        self.transport.close()

    def answer(self, rows: int | Sequence[int], name: str, *, is_audit: bool = False) -> schemas.Told:
        """Say what one row is, or several that are the same; a new name makes a class."""
        return self._say(rows, "label", name, is_audit)

    def skip(self, rows: int | Sequence[int]) -> schemas.Told:
        """Do not say anything of rows, and do not be asked about them for now."""
        return self._say(rows, "skip")

    def unsure(self, rows: int | Sequence[int]) -> schemas.Told:
        """Say that one cannot tell."""
        return self._say(rows, "unsure")

    def junk(self, rows: int | Sequence[int]) -> schemas.Told:
        """Say that rows belong to no class and should be left out."""
        return self._say(rows, "junk")

    def _say(
        self,
        rows: int | Sequence[int],
        kind: Literal["label", "skip", "unsure", "junk"],
        name: str | None = None,
        is_audit: bool = False,
    ) -> schemas.Told:
        said = [made(schemas.Said, row=row, kind=kind, name=name) for row in _each(rows)]
        return self.send_answers(said, is_audit=is_audit)

    def items(self, show: str = "all", **narrowed: Any) -> Iterator[schemas.Thumb]:
        """Every item, page by page; the arguments are those of ``grid``."""
        page = 0
        while True:
            found = self.grid(page, show=show, **narrowed)
            yield from found.thumbs
            page += 1
            if page >= found.n_pages:
                return

    def labels(self) -> list[dict[str, Any]]:
        """The answer that counts for each answered row: what was said, by whom, when (``labels.jsonl``)."""
        return [json.loads(line) for line in self.download("labels.jsonl").splitlines()]

    def predictions(self) -> list[dict[str, Any]]:
        """Every usable row with its class, and who or what says so (``predictions.jsonl``)."""
        return [json.loads(line) for line in self.download("predictions.jsonl").splitlines()]

    def save(self, name: str, path: str | Path) -> Path:
        """Download one of ``files()`` to a path, or into a folder."""
        target = Path(path) / name if Path(path).is_dir() else Path(path)
        content = self.download(name)
        with atomic_write(target) as aside:
            aside.write_bytes(content)
        return target

    def wait_until_live(self, timeout: float | None = None) -> schemas.State:
        """Until every item was looked at once, so that live questions can be asked."""
        return self._wait(lambda state: state.is_live, timeout, "The items were not looked at", self._check_job)

    def wait_for_answers(
        self, n: int | None = None, timeout: float | None = None, *, progress: Progress | None = None
    ) -> schemas.State:
        """Until people gave ``n`` more answers from now on, or nothing is left to ask; without ``n`` until the latter.

        TimeoutError after ``timeout`` seconds; what was answered is stored in any case.
        """
        goal = None if n is None else self.state().n_answers + n

        def is_done(state: schemas.State) -> bool:
            left = unanswered(state) if goal is None else min(goal - state.n_answers, unanswered(state))
            if progress:
                progress(state, max(left, 0))
            return left <= 0

        return self._wait(is_done, timeout, "The answers did not come")

    def run_job(self, kind: str, n_questions: int | None = None, *, timeout: float | None = None) -> schemas.Job:
        """Start work in the background, after what runs already, and wait until it is done."""
        until = _until(timeout)
        while True:
            try:
                self.start_job(kind, n_questions)
                break
            except ApiError as error:  # the process of the last one may take a while to leave
                if error.status != _BUSY or self.job().state != "running":
                    raise
            self.wait_for_job(_left(until))
        return self.wait_for_job(_left(until))

    def wait_for_job(self, timeout: float | None = None) -> schemas.Job:
        """Until nothing runs in the background; JobFailed if it was not done."""
        until = _until(timeout)
        while (job := self.job()).state == "running":
            _rest(until, f"The work ({job.stage or job.kind}) was not done")
        if job.state in ("failed", "cancelled"):
            raise JobFailed(f"The work ({job.kind}) {job.state}: {job.error or 'somebody ended it'}")
        return job

    def _wait(
        self,
        is_done: Callable[[schemas.State], bool],
        timeout: float | None,
        complaint: str,
        check: Callable[[], None] = lambda: None,
    ) -> schemas.State:
        until = _until(timeout)
        while not is_done(state := self.state()):
            check()
            _rest(until, complaint)
        return state

    def _check_job(self) -> None:
        job = self.job()
        if job.state == "failed":
            raise JobFailed(f"The work ({job.kind}) failed: {job.error}")


def _each(rows: int | Sequence[int]) -> list[int]:
    """Rows as plain numbers, which is what JSON takes; numpy's come too."""
    try:
        return [operator.index(rows)]  # type: ignore[arg-type]
    except TypeError:
        return [operator.index(row) for row in cast(Sequence[int], rows)]


def unanswered(state: schemas.State) -> int:
    """Rows of which nobody has said anything: what live questions may still be about."""
    said = state.n_seeds + state.n_labelled + state.n_accepted + state.n_audit + state.n_passed + state.n_junk
    return state.n_images - state.n_test - said


def print_progress(state: schemas.State, left: int) -> None:
    """One line that is written over: how many answers there are and how many are waited for."""
    print(f"\r{state.n_answers} answers, {state.n_classes} classes; {left} to go ", end="", file=sys.stderr, flush=True)


def _until(timeout: float | None) -> float:
    return float("inf") if timeout is None else time.monotonic() + timeout


def _left(until: float) -> float | None:
    return None if until == float("inf") else max(0.0, until - time.monotonic())


def _rest(until: float, complaint: str) -> None:
    if time.monotonic() >= until:
        raise TimeoutError(f"{complaint} in the time that was given.")
    time.sleep(_POLL_SECONDS)
