"""A real server and its training child, killed at chosen moments, and the person who labels on through all of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

from agcd.app.jobs import JobState, read_job
from agcd.app.round_files import round_version
from agcd.app.store.events import new_uid

PATIENCE = 120.0
"""Seconds; nothing that is waited for takes a tenth of it, even on a busy machine."""
WHO = "ann"
MAX_CLASSES = 8
"""No more names than that: those given before the first training must all find a slot."""


def moments(wanted: str, pause: float = 0.02, stop: threading.Event | None = None) -> Iterator[None]:
    """Moments at which to look again, until patience or the test ends."""
    until = time.monotonic() + PATIENCE
    while not (stop and stop.is_set()):
        assert time.monotonic() < until, f"waited {PATIENCE:.0f} s for {wanted}"
        yield
        time.sleep(pause)


def wait_for(wanted: str, is_there: Callable[[], bool], pause: float = 0.02) -> None:
    for _ in moments(wanted, pause):
        if is_there():
            return


class Server:
    """``agcd serve`` as a process of its own; started again whenever it was killed."""

    def __init__(self, project: Path, folder: Path) -> None:
        self.project, self._said = project, folder / "serve.txt"
        own = {"AGCD_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
        self._env = {name: value for name, value in os.environ.items() if name != "AGCD_PASSWORD"} | own
        self._process: subprocess.Popen[bytes] | None = None
        self.starting, self.ready = threading.Event(), threading.Event()

    def start(self) -> httpx2.Client:
        """A client of the server, which is started as often as it takes."""
        for _ in moments("a server that lives long enough to say its link"):
            self._spawn()
            link = self._link()
            if link:
                place, _, token = link.partition("/login?token=")
                self.starting.clear()
                self.ready.set()
                headers = {"Authorization": f"Bearer {token}"}
                return httpx2.Client(base_url=place, headers=headers, timeout=PATIENCE)
        raise AssertionError("unreachable")

    def _spawn(self) -> None:
        for _ in moments("the end of a server that does not answer"):
            if self._process is None or self._process.poll() is not None:
                break
        command = [sys.executable, "-m", "agcd.cli", "serve", str(self.project), "--port", "0", "--by-hand"]
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(command, stdout=said, stderr=said, env=self._env)
        self.starting.set()

    def _link(self) -> str | None:
        """What the server says; None if it is killed before it can."""
        assert self._process is not None
        for _ in moments("the server's link"):
            for line in self.said.splitlines(keepends=True):
                if line.startswith("Label here: ") and line.endswith("\n"):
                    return line.removeprefix("Label here: ").strip()
            if self._process.poll() is not None:
                assert self._process.returncode == -signal.SIGKILL, f"the server ended by itself:\n{self.said}"
                return None
        return None

    @property
    def said(self) -> str:
        return self._said.read_text(encoding="utf-8", errors="replace")

    def kill(self) -> bool:
        """Whether there was a living server to kill."""
        process = self._process
        if process is None or process.poll() is not None:
            return False
        self.ready.clear()
        process.kill()
        return process.wait() == -signal.SIGKILL


class Child:
    """The training process, which only its files tell of: it belongs to a server that may be dead."""

    def __init__(self, project: Path) -> None:
        self.project, self.killed = project, {0}  # 0 stands for a child that has not said who it is

    @property
    def job(self) -> JobState:
        return read_job(self.project / "cache" / "job")

    @property
    def number(self) -> int:
        """The first round that is not finished."""
        return sum(1 for _ in self.project.glob("runs/*/done.json"))

    def is_loading(self) -> bool:
        return self.job.stage == "starting"

    def is_training(self) -> bool:
        return "training" in self.job.stage

    def is_drawing(self) -> bool:
        return self.number > 0 and not round_version(self.project, self.number - 1)

    def is_asking(self) -> bool:
        return self.job.stage == "choosing questions"

    def processes(self) -> list[str]:
        """All children that live, known to the server or not; none where the system does not list them as files."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):  # it has just ended
                found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        return [line for line in found if "agcd.app.work" in line and str(self.project) in line]

    def kill(self) -> bool:
        """Whether there was a living child to kill; one that was killed before is never aimed at again."""
        job = self.job
        if job.state != "running" or job.pid in self.killed:
            return False
        self.killed.add(job.pid)
        try:
            os.kill(job.pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        return self.job.state != "done"


@dataclass(frozen=True)
class Deed:
    """A request that changes something; sent again as it is until it is confirmed."""

    path: str
    body: dict[str, Any]
    target: str = ""
    """What an undo takes back."""

    @property
    def uid(self) -> str:
        return str(self.body["uid"])

    @property
    def n_labels(self) -> int:
        return sum(said["kind"] == "label" for said in self.body.get("answers", ()))

    def events(self, class_ids: dict[str, str]) -> list[tuple[Any, ...]]:
        """What it leaves in the records; ``class_ids`` are those of new names."""
        if self.path == "/api/v1/undo":
            return [("void", None, None, self.uid, {"target": self.target})]
        if self.path != "/api/v1/answers":
            kind, key = self.path.rpartition("/")[2], "into" if "into" in self.body else "name"
            return [(kind, None, self.body["class_id"], self.uid, {key: self.body[key]})]
        said = self.body["answers"]
        new = dict.fromkeys(one["name"] for one in said if "name" in one)
        made = [("create", None, class_ids.get(name), None, {"name": name}) for name in new]
        ids = [one.get("class_id") or class_ids.get(one.get("name", "")) for one in said]
        return [*made, *((one["kind"], one["row"], id_, self.uid, {}) for one, id_ in zip(said, ids, strict=True))]


class Person:
    """Labels as the page does, and remembers what was confirmed: the model that the records are held against."""

    def __init__(self, project: Path, rows: Sequence[int], rng: np.random.Generator) -> None:
        self._written, self._rows, self._rng = project / "project.db-wal", rows, rng
        self.confirmed: list[Deed] = []
        self.pending: Deed | None = None
        """Sent and not confirmed: it may be stored or not."""
        self.standing: list[Deed] = []
        """Confirmed and not taken back."""
        self.sending = threading.Event()
        self._last_written = self._n_tries = self._n_names = 0

    @property
    def n_answers(self) -> int:
        return sum(deed.n_labels for deed in self.standing)

    def pause(self) -> float:
        """Seconds of thinking."""
        return float(self._rng.exponential(0.05))

    def act(self, http: httpx2.Client) -> None:
        """Do one thing, or again the one that was broken off."""
        if self.pending is None:
            self.pending, self._n_tries = self._choose(http), 0
        self._n_tries += 1
        self._last_written = self._when_written()
        self.sending.set()
        try:
            response = http.post(self.pending.path, json=self.pending.body)
        finally:
            self.sending.clear()
        told = checked(response)
        assert not told["is_repeat"] or self._n_tries > 1, f"{self.pending} was sent once: {told}"
        self._confirm(self.pending)
        assert told["state"]["n_answers"] == self.n_answers, f"after {self.confirmed[-1]}: {told}"

    def is_stored(self) -> bool:
        """Whether something was written since the request was sent, and the answer has not come."""
        return self._when_written() > self._last_written and self.sending.is_set()

    def _when_written(self) -> int:
        try:
            return self._written.stat().st_mtime_ns
        except FileNotFoundError:  # whoever closes the database last takes the file away
            return 0

    def _confirm(self, deed: Deed) -> None:
        self.confirmed.append(deed)
        self.pending = None
        if deed.target:
            assert self.standing.pop().uid == deed.target
        else:
            self.standing.append(deed)

    def _choose(self, http: httpx2.Client) -> Deed:
        answered = {said["row"]: said["kind"] for deed in self.standing for said in deed.body.get("answers", ())}
        # Taking back more where much is answered keeps images to ask about, however long the test runs.
        p_undo = 0.9 if len(answered) > 0.5 * len(self._rows) else 0.1
        draw = self._rng.random()
        if self.standing and draw < p_undo:
            return self._deed("/api/v1/undo", target=self.standing[-1].uid)
        classes = sorted(name["class_id"] for name in checked(http.get("/api/v1/names")))
        if draw > 0.95 and len(classes) > 3:
            one, into = self._rng.permutation(classes)[:2].tolist()
            return self._deed("/api/v1/classes/merge", class_id=one, into=into)
        if draw > 0.9:
            return self._deed("/api/v1/classes/rename", class_id=str(self._rng.choice(classes)), name=self._new_name())
        rows = [row for row in self._rows if row not in answered]
        return self._answer(http, classes, rows, is_bulk=draw > 0.75)

    def _answer(self, http: httpx2.Client, classes: list[str], rows: list[int], *, is_bulk: bool) -> Deed:
        question = {"who": WHO, "holder": "one-browser", "live": "true"}
        asked = checked(http.get("/api/v1/question", params=question))["row"]
        assert asked is None or asked in rows, f"row {asked} was answered and is asked again"
        many = self._rng.permutation(rows)[: int(self._rng.integers(2, 5))].tolist()
        chosen = many if is_bulk or asked is None else [asked]
        if self._rng.random() < 0.2:
            kind = str(self._rng.choice(["skip", "unsure", "junk"]))
            return self._deed("/api/v1/answers", answers=[{"row": row, "kind": kind} for row in chosen])
        is_new = len(classes) < MAX_CLASSES and self._rng.random() < 0.5
        said = {"name": self._new_name()} if is_new else {"class_id": str(self._rng.choice(classes))}
        return self._deed("/api/v1/answers", answers=[{"row": row, "kind": "label", **said} for row in chosen])

    def _deed(self, path: str, target: str = "", **values: Any) -> Deed:
        return Deed(path, {"uid": new_uid(), "who": WHO, **values}, target)

    def _new_name(self) -> str:
        self._n_names += 1
        return f"kind {self._n_names}"


def checked(response: httpx2.Response) -> Any:
    assert response.status_code == 200, f"{response.request.method} {response.url.path}: {response.text}"
    return response.json()


@dataclass(frozen=True)
class Killer:
    """Kills one victim at each of its moments, once it has lived on for a random while."""

    plan: Sequence[tuple[str, float]]
    """Names of moments, and how long to wait after each on average."""
    is_there: dict[str, Callable[[], bool]]
    kill: Callable[[], bool]
    rng: np.random.Generator
    pause: float
    """Seconds between two looks."""
    stop: threading.Event
    kills: Counter[str]

    def run(self) -> None:
        for name, mean in self.plan:
            for _ in moments(f"the moment {name!r}", self.pause, self.stop):
                if self.is_there[name]():
                    time.sleep(self.rng.exponential(mean))
                    if self.kill():
                        self.kills[name] += 1
                        break
