"""A real server in the background, answered by a script that plays a person."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from agcd.app.web.people import Role, add_person
from agcd.app.web.schemas import Job
from agcd.client import ApiError, Client, JobFailed, LocalPage, NoAnswer, ServeError, label_in_browser, serve
from agcd.client.client import unanswered
from agcd.errors import DataError
from support.killing import wait_for
from support.projects import truth
from support.servers import trained_project


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained_project(tmp_path_factory.mktemp("client"))


@pytest.fixture(scope="module")
def page(project: Path) -> Iterator[LocalPage]:
    with serve(project, by_hand=True, say=lambda _: None) as page:
        yield page


def answer_some(page: Client, n: int) -> None:
    for _ in range(n):
        card = page.question(live=False)
        assert card.row is not None
        page.answer(card.row, truth(card.path))


def test_questions_are_answered_and_taken_back(page: LocalPage) -> None:
    before = page.state()
    card = page.question(live=False)
    assert card.row is not None
    told = page.answer(card.row, truth(card.path))
    assert told.stored == {"label": 1}
    assert {line["row"]: line["class"] for line in page.labels()}[card.row] == truth(card.path)
    assert page.undo().state.n_answers == before.n_answers
    assert page.look(card.row).thumb.path == card.path


def test_every_way_to_pass_is_counted(page: LocalPage) -> None:
    rows = [thumb.row for thumb in page.items("unlabelled")][:5]
    before = page.state()
    assert unanswered(before) == len(list(page.items("unlabelled")))
    page.skip(rows[0])
    page.unsure(rows[1])
    page.junk(rows[2:4])
    now = page.state()
    assert (now.n_passed, now.n_junk) == (before.n_passed + 2, before.n_junk + 2)
    assert unanswered(now) == unanswered(before) - 4
    for _ in range(3):
        page.undo()
    assert page.state().n_junk == before.n_junk


def test_rows_may_come_from_numpy_and_names_must_be_names(page: LocalPage) -> None:
    rows = np.array([thumb.row for thumb in page.items("unlabelled")][:3])
    assert page.answer(rows[:2], "kiwi").stored == {"label": 2}  # type: ignore[arg-type]
    assert page.answer(rows[2], "kiwi").stored == {"label": 1}
    for _ in range(2):
        page.undo()
    with pytest.raises(DataError, match=r"^name: String should have at least 1 character\.$"):
        page.answer(int(rows[0]), "")


def test_what_is_shown_and_downloaded(page: LocalPage, tmp_path: Path) -> None:
    assert {thumb.row for thumb in page.items()} == set(range(50))
    assert page.picture(3).startswith(b"\xff\xd8")
    assert "labels.csv" in page.files()
    assert page.save("labels.csv", tmp_path).read_text().startswith("row,path")
    assert {line["row"] for line in page.predictions()} == set(range(50))
    assert page.figures() is not None or not page.state().is_live
    assert page.board().n_cards >= len([found for found in page.classes() if not found.is_retired])


def test_a_refusal_is_the_sentence_of_the_page(page: LocalPage) -> None:
    with pytest.raises(ApiError, match=r"^There is no row 1000: the project has 50, numbered from 0\.$") as refused:
        page.look(1000)
    assert refused.value.status == 404
    with Client(str(page.transport.address), token="wrong") as stranger, pytest.raises(ApiError) as wrong:
        stranger.state()
    assert wrong.value.status == 401


def test_answers_of_others_are_waited_for(page: LocalPage) -> None:
    goal, heard = page.state().n_answers + 2, []
    with Client(page.link, who="ann") as other:
        person = threading.Thread(target=answer_some, args=(other, 2))
        person.start()
        state = page.wait_for_answers(2, timeout=30, progress=lambda _, left: heard.append(left))
        person.join()
    assert state.n_answers >= goal
    assert (heard[0], heard[-1]) == (2, 0) or heard[-1] == 0


def test_waiting_ends_with_the_time_or_with_the_questions(page: LocalPage) -> None:
    with pytest.raises(TimeoutError, match=r"^The answers did not come in the time that was given\.$"):
        page.wait_for_answers(1, timeout=0)
    rows = [thumb.row for thumb in page.items("unlabelled")]
    page.junk(rows)
    assert unanswered(page.wait_for_answers(1000, timeout=0)) == 0
    page.undo()


def test_a_person_answers_under_their_own_name(project: Path, page: LocalPage) -> None:
    password = add_person(project, "eve", Role.LABEL)
    with Client(str(page.transport.address), who="eve", password=password) as eve:
        assert eve.state().n_images == 50
        row = next(iter(eve.items("unlabelled"))).row
        eve.answer(row, "kiwi")
        assert {line["row"]: line["who"] for line in eve.labels()}[row] == "eve"
        eve.undo()
        with pytest.raises(ApiError, match="this needs the role 'manage'") as refused:
            eve.start_job("train")
    assert refused.value.status == 403


def test_work_is_waited_for(page: LocalPage) -> None:
    assert page.run_job("grow", timeout=120).state == "done"


def test_work_that_fails_says_why(page: LocalPage, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = Job(state="failed", kind="train", error="The disk is full.")
    monkeypatch.setattr(page, "job", lambda: failed)
    with pytest.raises(JobFailed, match=r"^The work \(train\) failed: The disk is full\.$"):
        page.wait_for_job()


def test_work_waits_for_what_runs_already(page: LocalPage, monkeypatch: pytest.MonkeyPatch) -> None:
    running, done = Job(state="running", kind="export"), Job(state="done", kind="export")
    busy = ApiError("Something is running already: wait for it, or cancel it first.", 409)
    starts, looks = iter([busy, None]), iter([running, running, done, done])

    def start_job(*_: object) -> Job:
        if refusal := next(starts):
            raise refusal
        return running

    monkeypatch.setattr(page, "start_job", start_job)
    monkeypatch.setattr(page, "job", lambda: next(looks))
    assert page.run_job("export", timeout=60) == done


def test_a_server_ends_with_its_page(project: Path) -> None:
    said: list[str] = []
    with serve(project, by_hand=True, say=said.append) as page:
        assert said == [f"Label here: {page.link}"]
        page.state()
    page.close()  # once more does no harm
    page.transport.patience = 0.0
    with pytest.raises(NoAnswer):
        page.state()


def test_a_server_ends_with_the_process_that_started_it(project: Path) -> None:
    code = "import sys; from agcd.client import serve; page = serve(sys.argv[1], by_hand=True); page.state()"
    done = subprocess.run([sys.executable, "-c", code, project], capture_output=True, text=True, check=True)
    link = done.stdout.removeprefix("Label here: ").strip()
    with pytest.raises(NoAnswer):
        Client(link, patience=0.0).state()


def test_a_password_of_ones_own_is_used(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGCD_PASSWORD", "correct-horse-battery")
    with serve(project, by_hand=True, say=lambda _: None) as page:
        assert page.state().n_images == 50
        assert page.link.endswith("/login"), "a link never holds a password"


def test_why_a_server_does_not_start_is_told(tmp_path: Path) -> None:
    with pytest.raises(ServeError, match=r"^There is no project at .*: make one with agcd init\.$"):
        serve(tmp_path)


def test_a_person_labels_from_a_notebook(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    links: list[str] = []

    def say(line: str) -> None:
        links.append(line.rpartition(" ")[2])
        threading.Thread(target=play).start()

    def play() -> None:
        with Client(links[0], who="ann") as person:
            rows = [thumb.row for thumb in person.items("unlabelled")][:3]
            for row in rows:
                person.answer(row, "kiwi")
            done.extend(rows)

    done: list[int] = []
    labels = label_in_browser(project, 3, timeout=60, by_hand=True, open_browser=False, say=say)
    wait_for("the person", lambda: len(done) == 3, 0.01)
    assert {line["row"] for line in labels if line["class"] == "kiwi" and line["who"] == "ann"} == set(done)
    assert "0 to go" in capfd.readouterr().err


def test_a_client_needs_no_torch_and_no_web_framework(project: Path) -> None:
    code = "import json, sys, agcd.client; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"torch", "numpy", "scipy", "sklearn", "fastapi", "starlette", "uvicorn", "httpx"}
    assert not heavy & set(json.loads(done.stdout))


def test_a_browser_is_opened_only_where_there_are_windows(page: LocalPage, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def open_link(link: str) -> bool:
        opened.append(link)
        return True

    monkeypatch.setattr("webbrowser.open", open_link)
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert not page.open_in_browser()
    monkeypatch.setitem(os.environ, "DISPLAY", ":0")
    assert page.open_in_browser()
    assert opened == [page.link]


def test_waiting_looks_twice_a_second(page: LocalPage) -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        page.wait_for_answers(1, timeout=0.6)
    assert 0.5 < time.monotonic() - began < 20
