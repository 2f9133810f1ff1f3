"""What a server does by itself: answers are moved into the one file, and errors are told once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agcd.app.answers import Answer, write_answers
from agcd.app.store.store import Store
from agcd.app.web.repeating import Checkpointing, Repeating
from agcd.app.web.server_state import ServerState
from agcd.errors import StorageError
from support.killing import wait_for
from support.servers import trained_project


def test_answers_are_in_the_one_file_once_nobody_answers(tmp_path: Path) -> None:
    server = ServerState(trained_project(tmp_path))
    checkpointing, path = Checkpointing(server), server.project.store.path

    def copied_events() -> int:
        shutil.copyfile(path, tmp_path / "copy.db")
        with Store(tmp_path / "copy.db") as copy:
            return len(copy.events())

    before = copied_events()
    with server.opened() as project:
        row = int(project.label_state()[0].pool_rows[0])
        write_answers(project, [Answer(row, "kite")], "ann")
    checkpointing.look()
    assert copied_events() == before, "somebody may still be answering"
    checkpointing.look()
    assert copied_events() == before + 2
    server.close()


class Failing(Repeating):
    seconds = 0.001

    def __init__(self) -> None:
        super().__init__("a test")
        self.n_looks = 0

    def look(self) -> None:
        self.n_looks += 1
        raise StorageError("The disk is full.")


def test_an_error_that_stays_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    failing = Failing()
    failing.start()
    wait_for("a few looks", lambda: failing.n_looks > 5, 0.001)
    failing.stop()
    assert caplog.text.count("a test: The disk is full.") == 1
