"""Long work in a child process: started, watched and cancelled through files, so that a restarted server finds it.

cache/job/  progress.json (what runs, how far it is)  lock (held by the child while it lives)  output.txt
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from agcd.errors import ConfigError
from agcd.files import read_json, write_json

Kind = Literal["prepare", "round", "export"]
KINDS: tuple[Kind, ...] = ("prepare", "round", "export")
_KILL_SECONDS = 10.0


@dataclass(frozen=True)
class JobState:
    """What the work is, and how far."""

    state: Literal["idle", "running", "done", "failed", "cancelled"] = "idle"
    kind: Kind | None = None
    stage: str = ""
    done: int = 0
    total: int = 0
    began: float = 0.0
    """Seconds since 1970."""
    stage_began: float = 0.0
    ended: float | None = None
    error: str | None = None
    loss: list[float] = field(default_factory=list)
    pid: int = 0

    @property
    def seconds(self) -> float:
        return max(0.0, (self.ended or time.time()) - self.began) if self.began else 0.0

    @property
    def left(self) -> float | None:
        """Seconds that the stage is likely to take yet, at the speed it has had."""
        if self.state != "running" or not 0 < self.done <= self.total:
            return None
        return max(0.0, time.time() - self.stage_began) / self.done * (self.total - self.done)


class Jobs:
    """The jobs of one project; one runs at a time."""

    def __init__(self, project_folder: Path) -> None:
        self.project_folder = project_folder
        self.folder = project_folder / "cache" / "job"
        self._child: subprocess.Popen[bytes] | None = None

    def start(self, kind: Kind, n_questions: int | None = None) -> JobState:
        """Begin in a child process."""
        if self.state().state == "running":
            raise ConfigError("Something is running already: wait for it, or cancel it first.")
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "agcd.project.work", str(self.project_folder), kind, str(n_questions or 0)]
        state = JobState("running", kind, "starting", began=time.time(), stage_began=time.time())
        write_job(self.folder, state)
        with (self.folder / "output.txt").open("wb") as output:
            # Its own session: Ctrl-C in the server's terminal must not kill a round that goes well.
            self._child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        return state

    def state(self) -> JobState:
        """How far it is; a child that died without a word counts as failed."""
        before = self._alive()
        state = read_job(self.folder)
        if state.state != "running" or before or self._alive():
            return state
        state = read_job(self.folder)  # it may have ended well between the two looks
        if state.state == "running":
            reason = "It stopped unexpectedly. Nothing is lost: start it again and it goes on."
            state = replace(state, state="failed", error=reason, ended=time.time())
            write_job(self.folder, state)
        return state

    def cancel(self) -> JobState:
        """Stop it; what it has finished stays, and starting again continues."""
        state = self.state()
        if state.state != "running":
            return state
        pid = self._child.pid if self._child else state.pid
        if pid:
            _end(pid, self._alive)
        state = replace(read_job(self.folder), state="cancelled", ended=time.time())
        write_job(self.folder, state)
        return state

    def _alive(self) -> bool:
        if self._child is not None and self._child.poll() is None:
            return True
        if not (self.folder / "lock").exists():
            return False
        try:
            with FileLock(self.folder / "lock", timeout=0):
                return False
        except Timeout:
            return True


def _end(pid: int, alive: Callable[[], bool]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        until = time.monotonic() + _KILL_SECONDS
        while time.monotonic() < until:
            if not alive():
                return
            time.sleep(0.05)


def read_job(folder: Path) -> JobState:
    path = folder / "progress.json"
    return JobState(**read_json(path)) if path.exists() else JobState()


def write_job(folder: Path, state: JobState) -> None:
    write_json(folder / "progress.json", asdict(state))
