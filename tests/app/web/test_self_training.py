"""Training that starts by itself: what a moment calls for, and a whole project that nobody has to start anything in."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from agcd.app.answers import Answer, write_answers
from agcd.app.project import Project
from agcd.app.web import training
from agcd.app.web.server_state import ServerState
from agcd.app.web.training import FEWEST_NEW, SelfTraining, due
from support.browsers import Server
from support.projects import make_project, truth
from support.servers import trained_project

PATIENCE_SECONDS = 120


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with Project.open(trained_project(tmp_path)) as project:
        yield project


def open_rows(project: Project) -> list[int]:
    return np.flatnonzero(~project.labels().settled).tolist()


def say(project: Project, rows: list[int], *, accept: bool = False) -> None:
    answers = [Answer(row, truth(project.paths[row])) for row in rows]
    write_answers(project, answers, "ann", "human", accept=accept)


def test_a_new_project_calls_for_its_start(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        assert due(project.snapshot()) == "start"


def test_training_is_due_after_enough_labels_and_not_before(project: Project) -> None:
    rows = open_rows(project)
    assert due(project.snapshot()) is None
    say(project, rows[: FEWEST_NEW - 1])
    assert due(project.snapshot()) is None
    say(project, rows[FEWEST_NEW - 1 : FEWEST_NEW])
    assert due(project.snapshot()) == "train"


def test_accepted_pictures_count_as_labels_do(project: Project) -> None:
    rows = open_rows(project)
    say(project, rows[: FEWEST_NEW - 1], accept=True)
    assert due(project.snapshot()) is None
    say(project, rows[FEWEST_NEW - 1 : FEWEST_NEW])
    snapshot = project.snapshot()
    assert (snapshot.n_new_labels, snapshot.n_new_accepted) == (1, FEWEST_NEW - 1)
    assert due(snapshot) == "train"


def test_the_more_is_known_the_rarer_training_becomes(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "FEWEST_NEW", 1)
    n_known = project.labels().n_labels
    rows = open_rows(project)
    say(project, rows[: n_known // 4 - 1])
    assert due(project.snapshot()) is None
    say(project, rows[n_known // 4 - 1 : n_known // 4])
    assert due(project.snapshot()) == "train"


def test_what_failed_is_tried_again_only_after_somebody_said_something(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, started = ServerState(project.folder), list[str]()
    monkeypatch.setattr(server.jobs, "start", started.append)
    itself = SelfTraining(server)
    rows = open_rows(project)
    say(project, rows[:FEWEST_NEW])
    for _ in range(3):
        itself.look()
    assert started == ["train"]
    say(project, rows[FEWEST_NEW : FEWEST_NEW + 1])
    itself.look()
    assert started == ["train", "train"]
    server.close()


def wait_until(found: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not found():
        assert time.monotonic() < until, what
        time.sleep(0.1)


def test_a_project_without_labels_asks_before_it_trains_and_learns_by_itself(tmp_path: Path) -> None:
    with make_project(tmp_path) as made:
        images = made.images
    folder = tmp_path / "flat"
    (folder / "images").mkdir(parents=True)
    for path in sorted(images.rglob("*.*")):
        path.replace(folder / "images" / f"{path.parent.name}-{path.name}".replace("unlabelled-", ""))
    settings = {"backbone": {"name": "toy", "image_size": 32, "views": 2}, "train": {"base_epochs": 2}}
    Project.create(folder / "project", folder / "images", settings=settings).close()
    server = Server(folder / "project", by_hand=False)
    try:
        wait_until(lambda: bool(server.get("state")["is_live"]), "the first question")
        for _ in range(FEWEST_NEW + 5):
            card = server.get("question", who="script", holder="a-test-holds-it", live="true")
            server.do("answers", answers=[{"row": card["row"], "kind": "label", "name": truth(card["path"])}])
        wait_until(lambda: (server.get("state")["view"] or 0) >= 1, "a round that has learned from the answers")
        assert server.get("state")["n_answers"] == FEWEST_NEW + 5
    finally:
        server.stop()
