"""Pictures that come while the page is served: taken when they lie still, looked at before training goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from agcd.app.answers import Answer, write_answers
from agcd.app.growth import Added, add_items, remove_items
from agcd.app.jobs import JobState, Kind
from agcd.app.model import look_at_new_rows
from agcd.app.project import Project
from agcd.app.web.server_state import ServerState
from agcd.app.web.training import FEWEST_NEW, SelfTraining, due
from agcd.app.web.watching import FolderWatch
from support.growing import copy_of, put
from support.projects import truth
from support.servers import serving


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerState]:
    server = ServerState(copy_of(tmp_path))
    yield server
    server.close()


def looked(watch: FolderWatch) -> int:
    """How many pictures there are after one more look."""
    watch._next = 0.0
    watch.look()
    with watch.server.moment() as snapshot:
        return snapshot.labels.n_rows


def test_a_picture_is_taken_once_it_lies_still_and_only_once(server: ServerState) -> None:
    watch, n = FolderWatch(server), server.project.n_rows
    assert looked(watch) == n
    path = server.project.images / put(server.project, 1, 1)[0]
    whole = path.read_bytes()
    path.write_bytes(whole[:40])  # still being copied
    assert looked(watch) == n
    path.write_bytes(whole)
    assert looked(watch) == n, "it has changed since the last look"
    assert looked(watch) == n + 5
    assert looked(watch) == looked(watch) == n + 5
    assert server.project.n_set_aside == 0


def test_a_damaged_picture_is_not_tried_again_before_it_changes(
    server: ServerState, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = server.project.images / "unlabelled" / "torn.png"
    path.write_bytes(b"no picture")
    tries: list[Added] = []

    def add(project: Project) -> Added:
        tries.append(add_items(project))
        return tries[-1]

    monkeypatch.setattr("agcd.app.web.watching.add_items", add)
    watch = FolderWatch(server)
    for _ in range(4):
        looked(watch)
    assert (len(tries), server.project.n_set_aside) == (1, 1)


def test_what_was_removed_stays_so(server: ServerState) -> None:
    with server.opened() as project:
        remove_items(project, [project.paths[0]])
    watch, n = FolderWatch(server), server.project.n_rows
    assert looked(watch) == looked(watch) == n


def test_a_page_that_is_open_shows_and_asks_about_pictures_that_came(tmp_path: Path) -> None:
    folder = copy_of(tmp_path)
    with serving(folder) as client, Project.open(folder) as other:
        n = client.get("/api/v1/state")["n_images"]
        put(other, 2, 2)
        add_items(other)
        state = client.get("/api/v1/state")
        assert (state["n_images"], state["n_unseen"]) == (n + 10, 10)
        assert state["health"][-1] == "10 pictures added since"
        assert len(client.get("/api/v1/grid", per_page=100)["thumbs"]) == n + 10
        assert client.http.get(f"/image/{n}").status_code == 200
        look_at_new_rows(other)
        assert client.get("/api/v1/state")["n_unseen"] == 0
        asked = set()
        for _ in range(n):
            row = client.question(live=True)["row"]
            if row is None:
                break
            asked.add(row)
            client.say(row, kind="skip")
        assert asked & set(range(n, n + 10))


def test_looking_at_new_pictures_comes_before_training_and_interrupts_it(
    server: ServerState, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    state = JobState()

    def start(kind: Kind) -> JobState:
        nonlocal state
        said.append(kind)
        state = JobState("running", kind)
        return state

    def cancel() -> JobState:
        nonlocal state
        said.append("cancel")
        state = JobState("cancelled", state.kind)
        return state

    monkeypatch.setattr(server.jobs, "state", lambda: state)
    monkeypatch.setattr(server.jobs, "start", start)
    monkeypatch.setattr(server.jobs, "cancel", cancel)
    by_itself = SelfTraining(server)
    with server.opened() as project:
        rows = np.flatnonzero(~project.labels().settled)[:FEWEST_NEW].tolist()
        write_answers(project, [Answer(row, truth(project.paths[row])) for row in rows], "ann", "human")
    by_itself.look()
    by_itself.look()
    assert said == ["train"]
    with server.opened() as project:
        put(project, 1, 3)
        add_items(project)
        assert due(project.snapshot()) == "grow"
    by_itself.look()
    by_itself.look()
    assert said == ["train", "cancel", "grow"], "and what looks at pictures is never interrupted"
    with server.opened() as project:
        look_at_new_rows(project)
    state = JobState("done", "grow")
    by_itself.look()
    assert said[-1] == "train"
