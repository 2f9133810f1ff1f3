"""Kill −9 again and again while labelling and training: no label is lost, none is doubled, the round goes on."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest

from agcd.app.jobs import Jobs
from agcd.app.project import Project
from agcd.app.store.events import LabelEvent
from agcd.app.store.store import Store
from agcd.run_files import LOG
from agcd.training.loop import read_log
from support.killing import MAX_CLASSES, Child, Killer, Person, Server, checked, moments, wait_for
from support.projects import SETTINGS, make_project

N_EPOCHS = 4
SERVER_MOMENTS = {"serving": 0.2, "starting": 0.4, "sending": 0.001, "stored": 0.0005, "beginning a round": 0.02}
"""When the server is killed, and how many seconds later on average."""
CHILD_MOMENTS = {"loading": 0.5, "training": 0.05, "drawing": 0.01, "asking": 0.03}
Kills = dict[str, int]
"""How many at each moment."""
FEW: Kills = {"serving": 1, "starting": 2, "sending": 3, "stored": 3, "beginning a round": 2}
FEW |= dict.fromkeys(CHILD_MOMENTS, 1)
MANY: Kills = {"serving": 7, "starting": 8, "sending": 8, "stored": 9, "beginning a round": 6}
MANY |= {"loading": 2, "training": 4, "drawing": 2, "asking": 2}
STOPPED = "It stopped unexpectedly. Nothing is lost: start it again and it goes on."


@dataclass
class Scene:
    """A project, the processes that work on it, and the person in front."""

    project: Path
    server: Server
    child: Child
    person: Person
    http: httpx2.Client
    beginning: threading.Event = field(default_factory=threading.Event)
    """Set while a round is being asked for."""

    def restart(self) -> None:
        self.http.close()
        self.http = self.server.start()

    def get(self, path: str) -> Any:
        return checked(self.http.get(path))

    def begin_round(self) -> None:
        """As the page does: once the one before has ended."""
        job = self.get("/api/v1/job")
        assert job["error"] in (None, STOPPED), job
        assert not (job["error"] and self.child.processes()), f"a child that lives was given up: {job}"
        if job["state"] != "running":
            self.beginning.set()
            try:
                checked(self.http.post("/api/v1/job", json={"kind": "round", "n_questions": 5}))
            finally:
                self.beginning.clear()

    def live_on(self) -> None:
        """Label and train; a server that was killed is started again."""
        try:
            self.begin_round()
            self.person.act(self.http)
        except httpx2.TransportError:
            self.restart()


@pytest.fixture
def scene(tmp_path: Path, seed: int) -> Iterator[Scene]:
    train = {**SETTINGS["train"], "base_epochs": N_EPOCHS, "round_epochs": N_EPOCHS}
    with make_project(tmp_path, {**SETTINGS, "train": train}, n_classes=MAX_CLASSES) as project:
        folder = project.folder
        rows = [row for row, path in enumerate(project.paths) if path.startswith("unlabelled")]
    server, person = Server(folder, tmp_path), Person(folder, rows, np.random.default_rng([seed, 0]))
    try:
        scene = Scene(folder, server, Child(folder), person, server.start())
        yield scene
        scene.http.close()
    finally:
        server.kill()
        Jobs(folder).cancel()


def _essence(event: LabelEvent) -> tuple[Any, ...]:
    """What a request decides about an event; the server gives a new class its id and its age, and says of an answer
    whether its question was drawn."""
    if event.kind == "create":
        return event.kind, None, event.class_id, None, {"name": event.payload["name"]}
    payload = {name: value for name, value in event.payload.items() if name != "drawn"}
    return event.kind, event.row, event.class_id, event.group or event.uid, payload


def check_records(scene: Scene) -> None:
    """The records hold exactly what was confirmed, in that order, and perhaps the request that is in flight."""
    with Store(scene.project / "project.db") as store:
        assert store.select("PRAGMA integrity_check") == [("ok",)]
        events = [event for event in store.events() if event.source != "seed"]
    class_ids = {event.payload["name"]: event.class_id or "" for event in events if event.kind == "create"}
    assert {(event.who, event.source) for event in events} <= {("ann", "human")}
    stored = [_essence(event) for event in events]
    person = scene.person
    expected = [event for deed in person.confirmed for event in deed.events(class_ids)]
    in_flight = person.pending.events(class_ids) if person.pending else []
    assert stored[: len(expected)] == expected
    assert stored[len(expected) :] in ([], in_flight)


def planned(delays: dict[str, float], wanted: Kills, rng: np.random.Generator) -> list[tuple[str, float]]:
    """The first moment first, because a server that runs has to be killed before it can be starting; then any."""
    first, *rest = [(name, mean) for name, mean in delays.items() for _ in range(wanted[name])]
    return [first, *(rest[i] for i in rng.permutation(len(rest)))]


def kill_at_random(scene: Scene, seed: int, wanted: Kills) -> Counter[str]:
    """Kill server and child, each at its own moments, while the person works; how often each moment was hit."""
    stop, kills = threading.Event(), Counter(dict.fromkeys(wanted, 0))
    server, child, person = scene.server, scene.child, scene.person
    of_server = {"serving": server.ready.is_set, "starting": server.starting.is_set}
    of_server |= {"sending": person.sending.is_set, "stored": person.is_stored}
    of_server |= {"beginning a round": scene.beginning.is_set}
    of_child = {"loading": child.is_loading, "training": child.is_training}
    of_child |= {"drawing": child.is_drawing, "asking": child.is_asking}
    server_rng, child_rng = (np.random.default_rng([seed, i]) for i in (1, 2))
    killers = [
        Killer(planned(SERVER_MOMENTS, wanted, server_rng), of_server, server.kill, server_rng, 0.001, stop, kills),
        Killer(planned(CHILD_MOMENTS, wanted, child_rng), of_child, child.kill, child_rng, 0.005, stop, kills),
    ]
    with ThreadPoolExecutor(2) as pool:
        at_work = [pool.submit(killer.run) for killer in killers]
        try:
            n_checked = 0
            while not all(killer.done() for killer in at_work):
                scene.live_on()
                if kills.total() >= n_checked + 10:
                    n_checked = kills.total()
                    check_records(scene)
                time.sleep(person.pause())
        finally:
            stop.set()
        for killer in at_work:
            killer.result()
    return kills


def kill_both_in_training(scene: Scene) -> None:
    """The last two kills: a round is broken off for certain."""
    for _ in moments("a round that is broken off"):
        scene.live_on()
        if scene.child.is_training() and scene.child.kill() and is_broken_off(scene):
            break
    assert scene.server.kill()
    # One that waits for a busy disk dies later, and a server that finds it alive would not begin anew.
    wait_for("the end of the child", lambda: not scene.child.processes())
    scene.restart()


def is_broken_off(scene: Scene) -> bool:
    """Not so if the child had just finished the round when it was killed."""
    with Project.open(scene.project) as project:
        return project.snapshot().in_training


def finish_round(scene: Scene) -> None:
    """Begin, and wait for the end; nobody kills any more."""
    scene.begin_round()
    for _ in moments("the end of the round", 0.05):
        job = scene.get("/api/v1/job")
        if job["state"] != "running":
            assert (job["state"], job["error"]) == ("done", None)
            return


@pytest.mark.parametrize(
    ("seed", "wanted"),
    [(0, FEW), *(pytest.param(seed, MANY, marks=pytest.mark.slow) for seed in range(1, 17))],
    ids=["few", *(f"many {seed}" for seed in range(1, 17))],
)
def test_kills_lose_nothing_double_nothing_and_the_round_goes_on(scene: Scene, seed: int, wanted: Kills) -> None:
    kills = kill_at_random(scene, seed, wanted)
    kill_both_in_training(scene)
    assert kills == wanted
    check_records(scene)
    with Project.open(scene.project) as project:
        number, begun = project.n_finished, project.store.runs()
    assert number in begun
    scene.person.act(scene.http)
    finish_round(scene)
    check_records(scene)
    state = scene.get("/api/v1/state")
    assert state["n_answers"] == scene.person.n_answers
    assert state["n_finished"] == number + 1
    assert (
        scene.http.get("/api/v1/question", params={"who": "ann", "holder": "one-browser", "live": "true"}).json()["row"]
        is not None
    )
    with Project.open(scene.project) as project:
        assert project.store.runs() == begun, "the round that was broken off is the one that was finished"
    for run in range(number + 1):
        assert [line["epoch"] for line in read_log(scene.project / "runs" / f"{run:03d}" / LOG)] == [*range(N_EPOCHS)]
