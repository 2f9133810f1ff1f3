"""Jobs: work in a child process that outlives the server, is found again, and goes on after any end."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from agcd.app import jobs as jobs_module
from agcd.app.create import CONFIG
from agcd.app.jobs import Jobs, JobState, read_job, take_up, write_job
from agcd.app.project import Project
from agcd.errors import ConfigError
from agcd.run_files import LOG
from agcd.training.loop import CHECKPOINT, read_log
from support.projects import SETTINGS, make_project

N_EPOCHS = 40
PATIENCE = 120.0


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jobs")
    train = {**SETTINGS["train"], "base_epochs": N_EPOCHS}
    make_project(folder, {**SETTINGS, "train": train}).close()
    return folder / "project"


@pytest.fixture
def folder(untouched: Path, tmp_path: Path) -> Iterator[Path]:
    copy = Path(shutil.copytree(untouched, tmp_path / "project"))
    yield copy
    Jobs(copy).cancel()


def watch(jobs: Jobs, enough: Callable[[JobState], bool], wanted: str) -> list[JobState]:
    """The states of the work, up to the first that is ``enough``."""
    seen, until = [jobs.state()], time.monotonic() + PATIENCE
    while not enough(seen[-1]):
        assert time.monotonic() < until, f"waited {PATIENCE:.0f} s for {wanted}; last seen: {seen[-1]}"
        time.sleep(0.01)
        seen.append(jobs.state())
    return seen


def finish(jobs: Jobs) -> list[JobState]:
    return watch(jobs, lambda state: state.state != "running", "the end of the work")


def wait_for_checkpoint(jobs: Jobs, folder: Path) -> None:
    checkpoint = folder / "runs" / "000" / CHECKPOINT
    seen = watch(jobs, lambda state: state.state != "running" or checkpoint.exists(), "the first epoch")
    assert seen[-1].state == "running", seen[-1]


def test_a_round_is_started_watched_and_finished(folder: Path) -> None:
    jobs = Jobs(folder)
    assert jobs.state() == JobState()
    assert jobs.cancel().state == "idle"
    assert jobs.start("round", n_questions=4).state == "running"
    seen = finish(jobs)
    stages = list(dict.fromkeys(state.stage for state in seen))
    assert stages[0] == "starting"
    assert "base training" in stages
    last = seen[-1]
    assert (last.state, last.kind, last.error) == ("done", "round", None)
    assert 0 < last.seconds < PATIENCE
    with Project.open(folder) as project:
        query = project.snapshot().asked.query
        assert project.n_finished == 1
        assert query is not None
        assert len(query.questions) == 4


def cancel(jobs: Jobs) -> None:
    assert jobs.cancel().state == "cancelled"


def kill(jobs: Jobs) -> None:
    pid = jobs.state().pid
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("stop", "state", "words"),
    [(cancel, "cancelled", None), (kill, "failed", "It stopped unexpectedly. Nothing is lost")],
)
def test_training_that_was_stopped_goes_on_where_it_was(
    folder: Path, stop: Callable[[Jobs], None], state: str, words: str | None
) -> None:
    jobs = Jobs(folder)
    jobs.start("round", n_questions=4)
    wait_for_checkpoint(jobs, folder)
    stop(jobs)
    stopped = finish(jobs)[-1]
    assert stopped.state == state
    assert (stopped.error or "").startswith(words or "")
    with Project.open(folder) as project:
        assert project.n_finished == 0
        begun = project.store.runs()
    jobs.start("round", n_questions=4)
    seen = finish(jobs)
    assert seen[-1].state == "done", seen[-1]
    assert max(len(state.loss) for state in seen) < N_EPOCHS, "the epochs before the stop were trained again"
    assert [line["epoch"] for line in read_log(folder / "runs" / "000" / LOG)] == list(range(N_EPOCHS))
    with Project.open(folder) as project:
        assert project.n_finished == 1
        assert project.store.runs() == begun


def test_a_second_start_is_refused_and_a_restarted_server_finds_and_cancels_the_first(folder: Path) -> None:
    jobs = Jobs(folder)

    def start(_: int) -> str:
        try:
            return jobs.start("round").state
        except ConfigError as error:
            return str(error)

    with ThreadPoolExecutor(4) as pool:
        refused = "Something is running already: wait for it, or cancel it first."
        assert sorted(pool.map(start, range(4))) == [*[refused] * 3, "running"]
    restarted = Jobs(folder)  # at once, long before the child can have loaded anything
    assert restarted.state().state == "running"
    with pytest.raises(ConfigError, match="Something is running already"):
        restarted.start("prepare")
    assert restarted.cancel().state == "cancelled"
    assert jobs.state().state == "cancelled"
    assert jobs.start("prepare").state == "running"  # the first has really gone
    assert restarted.cancel().state == "cancelled"


def test_a_job_is_started_found_again_and_ended_where_there_are_neither_sessions_nor_signals(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_module, "ENDINGS", (signal.SIGTERM, signal.SIGTERM))
    monkeypatch.setattr(jobs_module, "APART", {})
    for end in (cancel, kill):
        assert Jobs(folder).start("prepare").state == "running"
        restarted = Jobs(folder)
        assert restarted.state().pid > 0, "whoever has started a job has seen that it lives"
        end(restarted)
        assert finish(Jobs(folder))[-1].state == {cancel: "cancelled", kill: "failed"}[end]


def begun(folder: Path) -> tuple[Path, JobState]:
    """The files of a job that somebody is about to start."""
    place, state = folder / "project" / "cache" / "job", JobState("running", "train", began=12.5)
    place.mkdir(parents=True)
    write_job(place, state)
    return place, state


def test_a_job_is_seen_to_live_before_its_process_can_say_so(tmp_path: Path) -> None:
    place, _ = begun(tmp_path)
    jobs = Jobs(tmp_path / "project")
    with FileLock(place / "starting"):
        assert jobs.state().state == "running"
        with pytest.raises(ConfigError, match="Something is running already"):
            jobs.start("train")
    assert jobs.state().state == "failed", "whoever was about to start it is gone"


def test_a_child_begins_only_what_is_still_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_module, "_END_SECONDS", 0.05)
    place, state = begun(tmp_path)
    assert take_up(place, state.began - 1) is None, "another child's work"
    held = take_up(place, state.began)
    assert held is not None
    assert read_job(place) == replace(state, pid=os.getpid())
    assert take_up(place, state.began) is None, "somebody is at it"
    assert Jobs(tmp_path / "project").state().state == "running"
    held.release()
    assert Jobs(tmp_path / "project").state().state == "failed"
    assert take_up(place, state.began) is None, "it was given up"


def test_a_mistake_of_the_user_is_one_sentence(folder: Path) -> None:
    config = folder / CONFIG
    lines = config.read_text(encoding="utf-8").splitlines()
    moved = ['images = "/nowhere/to be/found"' if line.startswith("images =") else line for line in lines]
    config.write_text("\n".join(moved) + "\n", encoding="utf-8")
    jobs = Jobs(folder)
    jobs.start("round")
    failed = finish(jobs)[-1]
    assert failed.state == "failed"
    assert failed.error is not None
    assert failed.error.startswith("There is no folder /nowhere/to be/found")
    assert "\n" not in failed.error
