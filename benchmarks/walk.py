"""Walks through one answer and one round of a project and counts what they do.

    python benchmarks/walk.py

Counted are the functions of agcd that are called, the files they stand in, statements that read the database, folds
of the event log (events taken up, by events in the log) and predictions of at least half the pool (by the averaged
model, which speaks for the round, and by the student, which is asked for questions; the epochs of training, which
look at their own model, are not counted). An
answer is a POST to the page's server; a round is what the page's button starts: training, then choosing questions.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from PIL import Image
from starlette.testclient import TestClient

import agcd
from agcd.app import labels, model
from agcd.app.answers import Answer, write_answers
from agcd.app.project import Project
from agcd.app.store.events import new_uid
from agcd.app.web.app import make_app
from agcd.app.web.auth import GateSettings
from agcd.app.web.server_state import ServerState
from agcd.training.fitted import Fitted

SETTINGS: dict[str, Any] = {
    "backbone": {"name": "toy", "image_size": 32, "views": 2},
    "train": {"base_epochs": 2, "round_epochs": 2, "batch_size": 32, "projector_width": 16, "projector_dim": 8},
}
N_CLASSES, N_PER_CLASS, N_KNOWN, N_LABELS = 5, 40, 3, 5
SECRET, HOST = "a-secret-for-this-run", "127.0.0.1:8765"
PACKAGE = str(Path(agcd.__file__).parent)


class Walk:
    """What one piece of work called, read, folded and predicted."""

    def __init__(self) -> None:
        self.functions: set[tuple[str, int]] = set()
        self.counts: Counter[str] = Counter()

    def line(self, what: str, n_events: int) -> str:
        files = {name for name, _ in self.functions}
        folds, predictions = self.counts["events"] / n_events, f"{self.counts['ema']} + {self.counts['student']}"
        numbers = (len(self.functions), len(files), self.counts["selects"], f"{folds:.1f}", predictions)
        return f"| {what} | " + " | ".join(map(str, numbers)) + " |"


@contextmanager
def walking() -> Iterator[Walk]:
    """Count everything that happens inside the block, in all threads."""
    walk = Walk()

    def seen(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            walk.functions.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))

    def taking(change: Any, event: Any) -> None:
        walk.counts["events"] += 1
        take(change, event)

    def predicting(fitted: Any, features: Any, rows: Any, which: Any = "ema", **options: Any) -> Any:
        asker = sys._getframe(1).f_code.co_filename
        if "training" not in Path(asker).parts:  # epochs look at what their own model says
            walk.counts[which] += len(rows) >= features.n_rows / 2
        return predict(fitted, features, rows, which, **options)

    def connected(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = real_connect(*arguments, **options)
        connection.set_trace_callback(read)
        return connection

    def read(statement: str) -> None:
        walk.counts["selects"] += statement.lstrip().upper().startswith("SELECT")

    real_connect = sqlite3.connect
    take, predict = labels._Change.take, Fitted.predict
    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(sqlite3, "connect", connected))
        patches.enter_context(mock.patch.object(labels._Change, "take", taking))
        patches.enter_context(mock.patch.object(Fitted, "predict", predicting))
        threading.setprofile(seen)
        sys.setprofile(seen)
        try:
            yield walk
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


def make_project(folder: Path) -> Path:
    """A project of noise in five colours, three of them known, with base training and six questions."""
    rng = np.random.default_rng(0)
    for c in range(N_CLASSES):
        for i in range(N_PER_CLASS):
            known = c < N_KNOWN and i < N_LABELS
            path = folder / "images" / (f"class {c}" if known else "unlabelled") / f"{c}-{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            colour = np.array([255 * (c >> bit & 1) for bit in range(3)])
            noise = colour + rng.integers(0, 40, (32, 32, 3))
            Image.fromarray(np.clip(noise, 0, 255).astype(np.uint8)).save(path)
    with Project.create(folder / "project", folder / "images", None, N_CLASSES, SETTINGS) as project:
        model.train(project)
        model.ask(project, 6)
        rows = project.label_state()[0].pool_rows[:40].tolist()
        write_answers(project, [Answer(row, Path(project.paths[row]).name[:1]) for row in rows])
    return folder / "project"


def one_answer(folder: Path) -> str:
    """The second answer of a served project: the first one makes the server read what is there."""
    with walking() as walk:
        server = ServerState(folder)
        app = make_app(server, GateSettings(SECRET, frozenset({HOST})))
        headers = {"Authorization": f"Bearer {SECRET}"}
        with TestClient(app, base_url=f"http://{HOST}", headers=headers) as client:
            for number in range(2):
                walk.functions.clear()
                walk.counts.clear()
                said = [{"row": 100 + number, "kind": "label", "name": "kite"}]
                body = {"uid": new_uid(), "who": "ann", "answers": said}
                assert client.post("/api/v1/answers", json=body).status_code == 200
            answered = Counter(walk.counts)
            n_events = client.get("/api/v1/state").json()["last_event"]
            walk.counts = answered
            return walk.line("one answer", n_events)


def one_round(folder: Path) -> str:
    with walking() as walk, Project.open(folder) as project:
        model.train(project)
        model.ask(project, 6)
        counted = Counter(walk.counts)
        n_events = project.labels().last_event
        walk.counts = counted
        return walk.line("one round, with its questions", n_events)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = make_project(Path(folder))
        print("| | functions | files | SELECTs | folds of the log | predictions of the pool, averaged + student |")
        print("|---|---|---|---|---|---|")
        print(one_answer(project))
        print(one_round(project))


if __name__ == "__main__":
    main()
