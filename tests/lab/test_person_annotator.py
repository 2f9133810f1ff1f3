"""The script at the page: refusals are the page's own sentences, and work in the background is waited for and timed."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agcd.errors import StorageError
from agcd.io import write_json
from agcd.lab.person import annotator as module
from agcd.lab.person.annotator import Annotator
from agcd.lab.person.rounds import JobClock


@dataclass(frozen=True)
class Played(Annotator):
    """Answers from a list in place of a server; an exception is raised."""

    replies: list[Any] = field(default_factory=list)

    def fetch(
        self, path: str, body: dict[str, Any] | None = None, *, method: str | None = None, **params: str
    ) -> bytes:
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return json.dumps(reply).encode()


def played(*replies: Any) -> Played:
    seconds = iter(range(100))
    return Played("", "", str, clock=lambda: float(next(seconds)), replies=list(replies))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.0)


BUSY = StorageError("The page refused /api/v1/job: Something is running already: wait for it.")


def test_seconds_are_counted_by_stage() -> None:
    stages = ("reading", "training", "training", "choosing")
    states = [{"state": "running", "stage": stage} for stage in stages]
    script = played({}, *states, {"state": "done", "stage": "choosing"})
    assert script.run_job("round") == {"reading": 1.0, "training": 2.0, "choosing": 2.0}


def test_a_job_that_has_not_left_is_waited_for() -> None:
    assert played(BUSY, BUSY, {}, {"state": "done", "stage": "choosing"}).run_job("round")


def test_other_refusals_and_failures_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StorageError, match="no labels"):
        played(StorageError("The page refused /api/v1/job: no labels")).run_job("round")
    with pytest.raises(StorageError, match="The round did not finish: the disk is full"):
        played({}, {"state": "failed", "stage": "", "error": "the disk is full"}).run_job("round")
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.0)
    with pytest.raises(StorageError, match="running already"):
        played(BUSY, BUSY).run_job("round")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="Linux counts a process's seconds there")
def test_the_clock_of_jobs_counts_what_their_processes_used(tmp_path: Path) -> None:
    clock = JobClock(tmp_path)
    assert clock() == 0  # nothing has begun
    write_json(tmp_path / "progress.json", {"pid": os.getpid()})
    used = os.times()
    assert clock() == pytest.approx(sum(used[:4]), abs=0.5)
    until = time.process_time() + 0.05
    while time.process_time() < until:
        pass
    before = clock()
    write_json(tmp_path / "progress.json", {"pid": 0})  # no such process: what was counted stays
    assert clock() == before > 0
