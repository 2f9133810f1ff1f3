"""Long work in a child process: started, watched and cancelled through files, so that a restarted server finds it.

cache/job/  progress.json (what runs, how far it is)  output.txt
            lock (held by the child while it lives)  starting (held by who starts it, until the child holds its own)

A lock ends with the process that holds it, on every system and however it ends, and one of the two is held from before
the child is started until it is gone: whoever looks meanwhile sees that it lives. The child takes its lock before it
loads anything; one that was given up before that (whoever started it was killed) ends without a word.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from agcd.errors import ConfigError
from agcd.io import digest_file, read_json, read_sealed, write_json, write_sealed
from agcd.processes import APART, ENDINGS

Kind = Literal["prepare", "round", "export", "start", "train", "grow"]
KINDS: tuple[Kind, ...] = ("prepare", "round", "export", "start", "train", "grow")
_LOCK, _STARTING = "lock", "starting"
_END_SECONDS = 30.0
EXPORTED = "digests.json"


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


class _Busy(ConfigError):
    """One job of a project runs at a time."""

    def __init__(self) -> None:
        super().__init__("Something is running already: wait for it, or cancel it first.")


class Jobs:
    """The jobs of one project; one runs at a time. Several threads may ask."""

    def __init__(self, project_folder: Path) -> None:
        self.project_folder = project_folder
        self.folder = project_folder / "cache" / "job"
        self._guard = threading.RLock()

    def start(self, kind: Kind, n_questions: int | None = None) -> JobState:
        """Begin in a child process."""
        with self._guard:
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                if self.state().state == "running":
                    raise _Busy
                with FileLock(self.folder / _STARTING, timeout=_END_SECONDS):
                    if read_job(self.folder).state == "running":  # another process was faster
                        raise _Busy
                    with FileLock(self.folder / _LOCK, timeout=_END_SECONDS):
                        pass  # one that has ended may need a moment to leave
                    return self._begin(kind, n_questions)
            except Timeout:
                raise _Busy from None

    def state(self) -> JobState:
        """How far it is; a child that died without a word counts as failed."""
        with self._guard:
            state = read_job(self.folder)
            if state.state != "running" or self._alive():
                return state
            state = read_job(self.folder)  # it may have ended well between the two looks
            if state.state == "running":
                reason = "It stopped unexpectedly. Nothing is lost: start it again and it goes on."
                state = replace(state, state="failed", error=reason, ended=time.time())
                write_job(self.folder, state)
            return state

    def cancel(self) -> JobState:
        """Stop it; what it has finished stays, and starting again continues."""
        with self._guard:
            if self.state().state == "running":
                self._end()
            state = read_job(self.folder)
            if state.state == "running":  # otherwise it came to its own end just now
                state = replace(state, state="cancelled", ended=time.time())
                write_job(self.folder, state)
            return state

    def _begin(self, kind: Kind, n_questions: int | None) -> JobState:
        state = JobState("running", kind, "starting", began=time.time(), stage_began=time.time())
        command = [sys.executable, "-m", "agcd.app.work", str(self.project_folder), kind, str(n_questions or 0)]
        command.append(repr(state.began))
        write_job(self.folder, state)
        with (self.folder / "output.txt").open("wb") as output:
            # Apart: Ctrl-C in the server's terminal must not kill a round that goes well.
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, **APART)
        # Without somebody who waits for its end it would stay in the list of processes.
        threading.Thread(target=child.wait, daemon=True).start()
        until = time.monotonic() + _END_SECONDS
        while not read_job(self.folder).pid and child.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        return state

    def _end(self) -> None:
        for number in ENDINGS:
            until = time.monotonic() + _END_SECONDS
            while self._alive() and time.monotonic() < until:
                pid = read_job(self.folder).pid
                if pid:  # the child writes it as soon as it holds its lock
                    with suppress(OSError):  # it has just gone
                        os.kill(pid, number)
                time.sleep(0.05)

    def _alive(self) -> bool:
        return any(_is_held(self.folder / name) for name in (_STARTING, _LOCK))


def _is_held(path: Path) -> bool:
    try:
        with FileLock(path, timeout=0):
            return False
    except Timeout:
        return True


def take_up(folder: Path, began: float) -> FileLock | None:
    """What a child does first: take the lock, which is to be kept until it ends, and say its number.

    None where nobody waits for the work that ``began`` then: it was given up before it could begin.
    """
    lock = FileLock(folder / _LOCK, timeout=_END_SECONDS)
    try:
        lock.acquire(poll_interval=0.01)  # not at once: whoever looks whether it is held holds it for a moment
    except Timeout:
        return None
    state = read_job(folder)
    if (state.state, state.began) != ("running", began):
        return None
    write_job(folder, replace(state, pid=os.getpid()))
    return lock


def export_folder(project_folder: Path, n_finished: int) -> Path:
    """Where the job "export" puts the files of the last finished round."""
    return project_folder / "cache" / "export" / f"{max(0, n_finished - 1):03d}"


def seal_export(folder: Path) -> None:
    """Note the digests of the files that were just exported, so that a damaged one is not handed out."""
    digests = {path.name: digest_file(path) for path in sorted(folder.iterdir()) if path.is_file()}
    write_sealed(folder / EXPORTED, {name: value for name, value in digests.items() if name != EXPORTED})


def problem_of_export(folder: Path, name: str) -> str | None:
    """What is wrong with an exported file, if anything; exports of version 0.2 hold no digests."""
    try:
        expected = read_sealed(folder / EXPORTED).get(name)
    except FileNotFoundError:
        return None
    except ValueError:
        return f"{EXPORTED} is damaged"
    return None if digest_file(folder / name) == expected else f"{name} is damaged"


def read_job(folder: Path) -> JobState:
    """What the work said of itself last; a file that has gone or is damaged says nothing."""
    try:
        return JobState(**read_json(folder / "progress.json"))
    except (OSError, ValueError, TypeError):
        return JobState()


def write_job(folder: Path, state: JobState) -> None:
    write_json(folder / "progress.json", asdict(state))
