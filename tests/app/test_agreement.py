"""One truth: whatever people do, page, command line, exported files, report, estimator and training say the same.

A state machine does random things through HTTP and through the command line, and after each step compares everything
that is said about every row and every count. Rounds are made up here, because a hundred thousand of them could not be
trained; ``test_rounds_that_are_trained_agree_too`` trains real ones.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import anyio.to_thread
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from starlette.testclient import TestClient
from typer.main import get_command

from agcd.app import round_files
from agcd.app.model import look_at_new_rows
from agcd.app.project import Project
from agcd.app.report import project_story
from agcd.app.round_files import ids_by_slot, write_round_view
from agcd.app.rounds import top_of
from agcd.app.sizing import sized
from agcd.app.status import Status, status_of
from agcd.app.store.events import new_uid
from agcd.app.web.app import make_app
from agcd.app.web.auth import GateSettings
from agcd.app.web.server_state import ServerState
from agcd.cli import app
from agcd.data.sources import load_dataset
from agcd.errors import AgcdError
from agcd.features import rows as feature_rows
from agcd.features.extract import fill
from agcd.io import read_json, write_json
from agcd.report.story import Story
from agcd.rng import generator
from support.datasets import toy_images
from support.projects import SETTINGS
from support.servers import SECRET, Client, serving

N_ROWS, N_SLOTS = 20, 8
PEOPLE = ("ann", "bob")
NAMES = ("red-circle", "green-square", "blue-triangle", "kite", "Hawk", "owl", "crane")
"""Three known classes and four that are found; with those that renaming makes there are never more than slots."""
PASSES = ("skip", "unsure", "junk")


@cache
def base_project() -> Path:
    """20 images, two of them for testing, six labels, and base training; made once per process."""
    from agcd.app.model import ask, train

    folder = Path(mkdtemp(prefix="agcd-agreement-"))
    toy_images(folder / "images", n_classes=4, n_per_class=5)
    paths = sorted(path.relative_to(folder / "images") for path in (folder / "images").rglob("*.png"))
    lines = ["path,label,split"]
    for path in paths:
        known = path.parent.name if path.parent.name in NAMES and path.stem in ("00", "01") else ""
        lines.append(f"{path},{known},{'test' if path.stem == '04' and not known and 'blue' in str(path) else 'train'}")
    (folder / "images" / "list.csv").write_text("\n".join(lines) + "\n")
    with Project.create(folder / "project", folder / "images" / "list.csv", None, N_SLOTS, SETTINGS) as project:
        train(project)
        ask(project, 6)
    return folder / "project"


@cache
def more_pictures() -> Path:
    """Five folders with one new picture each."""
    folder = Path(mkdtemp(prefix="agcd-more-"))
    for pick in range(5):
        toy_images(folder / str(pick), n_classes=1, n_per_class=1, size=33, seed=pick)
        (folder / str(pick) / "red-circle").rename(folder / str(pick) / "a-picture")
    return folder


def make_up_round(folder: Path, number: int) -> None:
    """A finished round as training would leave it, with the base model and made-up predictions."""
    with Project.open(folder) as project:
        state, class_ids = project.label_state(number)
        n_rows = len(state.y_class)
        rng, run = generator(number, "made up", len(state.labelled_rows)), project.run_folder(number)
        slot_of_class = np.concatenate([np.arange(state.n_old), state.n_old + rng.permutation(N_SLOTS - state.n_old)])
        slot_of_class = slot_of_class[: len(state.classes)]
        slots = rng.integers(N_SLOTS, size=n_rows)
        right = (state.y_class >= 0) & (rng.random(n_rows) < 0.8)
        slots[right] = slot_of_class[state.y_class[right]]
        probs = rng.dirichlet(np.full(N_SLOTS, 0.5), n_rows)
        probs[np.arange(n_rows), slots] += 1
        top_slots, top_probs = top_of(probs / 2)
        run.mkdir(parents=True, exist_ok=True)
        for name in ("config.json", "model.safetensors"):
            shutil.copyfile(project.run_folder(0) / name, run / name)
        write_json(run / "mapping.json", {"last": {"slot_of_class": slot_of_class.tolist()}})
        metrics: dict[str, float] = {
            "n_labels": len(state.labelled_rows),
            "n_queried": len(state.queried_rows),
            "n_slots": N_SLOTS,
        }
        metrics |= {"n_classes": len(state.classes), "agreement": float(right.mean()), "seconds": 1.0}
        write_json(run / "metrics.json", metrics)
        columns: dict[str, Any] = {"row": np.arange(n_rows), "slot": top_slots[:, 0].astype(np.int64)}
        columns |= {"probability": top_probs[:, 0].astype(np.float64), "margin": np.zeros(n_rows)}
        pq.write_table(pa.table(columns), run / "predictions.parquet")
        write_json(run / "done.json", {"key": "made up"})
        facts = {"model_id": f"m{number}", "n_old": state.n_old, "n_slots": N_SLOTS}
        facts |= {"class_ids": ids_by_slot(run, class_ids, N_SLOTS)}
        features = rng.normal(size=(n_rows, 4)).astype(np.float16)
        write_round_view(folder, number, top_slots, top_probs, features, project.labels_of_round(number), facts)


# --------------------------------------------------------------------------------------------------- what is said


@cache
def command_line() -> Any:
    return get_command(app)


def command(*words: str) -> str:
    """What a command prints; a user's mistake is raised."""
    done = CliRunner().invoke(command_line(), list(words))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def table(client: Client, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(client.http.get(f"/api/v1/export/{name}.csv").text)))


def check_agreement(client: Client) -> None:
    """Everything that says something about the project says the same."""
    with Project.open(client.project) as project:
        status = status_of(project)
        check_counts(client, project, status)
        said = {thumb["row"]: thumb for thumb in client.get("/api/v1/grid")["thumbs"]}
        check_labels(client, project, status, said)
        check_predictions(client, project, said)
        story = project_story(project)
        check_classes(client, project, status, said, [strip.name for strip in story.classes])
        check_report(story, status)


def check_counts(client: Client, project: Project, status: Status) -> None:
    """Page, command line and estimator."""
    state = client.get("/api/v1/state")
    for field in fields(status):
        if field.name in state and field.name not in ("estimate", "agreement"):
            assert state[field.name] == getattr(status, field.name), field.name
    assert state["agreement"] == vars(status.agreement)
    assert (state["n_classes"], state["n_novel"]) == (status.n_classes, status.n_novel)
    told, figures = command("status", str(project.folder)).splitlines(), client.get("/api/v1/figures")
    assert told[: len(status.lines())] == status.lines()
    assert told[len(status.lines()) :][:1] == ([f"names    {figures['headline']}"] if figures else [])
    labels, _ = project.label_state()
    size = sized(str(project.folder), None, None, {}, load_dataset).size
    assert (size.n_train, size.n_test, size.n_labelled) == (
        len(labels.train_rows),
        status.n_test,
        status.n_seeds + status.n_labelled,
    )


def check_labels(client: Client, project: Project, status: Status, said: dict[int, Any]) -> None:
    """labels.csv, Parquet, COCO and Label Studio against the page, and against what training gets."""
    labels, lines = project.label_state()[0], table(client, "labels")
    kinds = Counter(line["answer"] for line in lines)
    assert kinds["label"] == status.n_seeds + status.n_labelled + status.n_audit
    assert (kinds["skip"] + kinds["unsure"], kinds["junk"]) == (status.n_passed, status.n_junk)
    for line in lines:
        if line["answer"] == "label":
            assert (said[int(line["row"])]["name"], said[int(line["row"])]["by"]) == (line["class"], "human")
    named = {int(line["row"]): line["class"] for line in lines if line["class"]}
    learned = {row: labels.classes[labels.y_class[row]] for row in labels.labelled_rows.tolist()}
    assert len(learned) == status.n_seeds + status.n_labelled
    assert learned.items() <= named.items()
    held = {row for row in named if row not in learned}
    assert len(held) == status.n_audit
    junk = {int(line["row"]) for line in lines if line["answer"] == "junk"}
    removed = {*np.flatnonzero(project.labels().is_removed)}
    assert len(removed) == status.n_removed
    assert {*np.flatnonzero(labels.held_out & ~project.is_test)} == held | junk | removed
    passed = {int(line["row"]) for line in lines if line["answer"] in ("skip", "unsure")}
    accepted = {row for row, thumb in said.items() if thumb["by"] == "page"}
    assert len(accepted) == status.n_accepted
    train = {row for row in range(project.n_rows) if not project.is_test[row]} - removed
    assert {*said} == train
    assert {*labels.pool_rows} == train - held - junk - passed - accepted - {*learned}
    parquet = pq.read_table(io.BytesIO(client.http.get("/api/v1/export/labels.parquet").content)).to_pydict()
    assert dict(zip(parquet["row"], parquet["class"], strict=True)).items() >= named.items()
    fiftyone = client.get("/api/v1/export/labels.fiftyone.json")
    present = [row for row in range(project.n_rows) if row not in removed]
    found = {row: fiftyone["labels"][project.paths[row].removesuffix(".png")] for row in present}
    assert len(fiftyone["labels"]) == len(present) == status.n_images
    assert {row: fiftyone["classes"][number] for row, number in found.items() if number is not None} == named
    coco = json.loads(client.http.get("/api/v1/export/labels.coco.json").text)
    name_of = {category["id"]: category["name"] for category in coco["categories"]}
    assert {note["image_id"]: name_of[note["category_id"]] for note in coco["annotations"]} == named
    tasks = {task["data"]["row"]: task for task in client.get("/api/v1/export/labels.label-studio.json")}
    answers = {row: task["data"]["known_answer"] for row, task in tasks.items() if "annotations" in task}
    assert answers == {int(line["row"]): line["class"] or line["answer"] for line in lines}


def check_predictions(client: Client, project: Project, said: dict[int, Any]) -> None:
    """predictions.csv and Parquet against the page, row by row; junk is nobody's."""
    lines = {int(line["row"]): line for line in table(client, "predictions")}
    for row, thumb in said.items():
        line = lines.get(row)
        assert (thumb["name"], thumb["by"]) == ((line["class"], line["by"]) if line else (None, None)), row
    assert not {*lines} & {*np.flatnonzero(project.labels().is_removed)}
    assert {row for row, line in lines.items() if line["split"] == "test"} == {*np.flatnonzero(project.is_test)}
    parquet = pq.read_table(io.BytesIO(client.http.get("/api/v1/export/predictions.parquet").content)).to_pydict()
    assert parquet["class"] == [line["class"] for line in lines.values()]
    told = [json.loads(line) for line in client.http.get("/api/v1/export/predictions.jsonl").text.splitlines()]
    assert {name: [line[name] for line in told] for name in parquet} == parquet
    is_new = {card["name"]: card["is_new"] for card in client.get("/api/v1/board")["cards"]}
    assert all(line["known"] is not is_new[line["class"]] for line in told if line["class"] in is_new)


def check_classes(client: Client, project: Project, status: Status, said: dict[int, Any], reported: list[str]) -> None:
    """The board against counts, labels, members and the groups that the report shows."""
    cards = {card["name"]: card for card in client.get("/api/v1/board")["cards"]}
    labels = project.label_state()[0]
    carried = Counter(labels.classes[c] for c in labels.y_class[labels.labelled_rows])
    assert {found.name: found.n_labels for found in status.classes if found.n_labels} == carried
    assert {name: card["n_labels"] for name, card in cards.items() if card["n_labels"]} == carried
    assert {found.name for found in status.classes} <= {name for name, card in cards.items() if card["is_named"]}
    assert sum(card["n_accepted"] for card in cards.values()) == status.n_accepted
    says = Counter(thumb["name"] for thumb in said.values())
    assert all(card["size"] == says[name] for name, card in cards.items())
    typed = {found["name"] for found in client.get("/api/v1/names")}
    assert {name for name, card in cards.items() if card["is_named"]} <= typed
    assert sorted(reported) == sorted(cards)


def check_report(story: Story, status: Status) -> None:
    """The figures of the report."""
    facts = dict(story.facts)
    assert facts["Labels at the start"].startswith(f"{status.n_seeds} in ")
    label = "1 label" if status.n_labelled == 1 else f"{status.n_labelled} labels"
    counted = [(status.n_passed, "skipped or unsure"), (status.n_junk, "junk")]
    counted += [(status.n_accepted, "accepted by page"), (status.n_audit, "in a blind audit")]
    assert facts["Answers"] == ", ".join([label, *(f"{n} {words}" for n, words in counted if n)])
    assert facts["Classes"].startswith(f"{status.n_classes} named, {status.n_novel} of them found by you")
    assert sum(len(strip.queried_rows) for strip in story.classes) == status.n_labelled
    assert len(story.rounds) == status.n_finished


# ---------------------------------------------------------------------------------------------- the state machine

rows = st.lists(st.integers(0, N_ROWS - 3), min_size=1, max_size=3, unique=True)
people = st.sampled_from(PEOPLE)
some_name = st.sampled_from(NAMES)
by_command_line = st.booleans()


@cache
def site() -> tuple[Path, ServerState, Client]:
    """One server for all histories of a process: to build its routes takes longer than a history."""
    folder = Path(mkdtemp(prefix="agcd-histories-"))
    server = ServerState(Path(shutil.copytree(base_project(), folder / "project")))
    gate = make_app(server, GateSettings(SECRET, frozenset({"127.0.0.1:8765"})))
    http = TestClient(gate, base_url="http://127.0.0.1:8765", headers={"Authorization": f"Bearer {SECRET}"})
    return folder, server, Client(http.__enter__(), folder / "project")


class Machine(RuleBasedStateMachine):
    """People who do random things to one project."""

    def __init__(self) -> None:
        super().__init__()
        self.folder, server, self.client = site()
        self.project = self.client.project
        server.close()
        shutil.rmtree(self.project)
        shutil.copytree(base_project(), self.project)
        for new in self.folder.glob("new-*"):
            shutil.rmtree(new)
        ServerState.__init__(server, self.project)
        self.is_test = server.project.is_test
        self.last: tuple[str, dict[str, Any]] | None = None

    def train_rows(self, wanted: list[int]) -> list[int]:
        return [row for row in wanted if not self.is_test[row]] or [0]

    def post(self, path: str, **body: Any) -> Any:
        """A change; one that makes no sense now is refused in one sentence, and changes nothing."""
        sent = {"uid": new_uid(), **body}
        response = self.client.http.post(path, json=sent)
        assert response.status_code in (200, 409), response.text
        if response.status_code == 200:
            self.last = (path, sent)
        check_agreement(self.client)
        return response.json()

    def run(self, act: Callable[[], Any]) -> None:
        """A command; one that makes no sense now is refused, and changes nothing."""
        with suppress(AgcdError):
            act()
        check_agreement(self.client)

    @rule(wanted=rows, who=people, name=some_name, kind=st.sampled_from(("label", "label", "label", *PASSES)))
    def answer(self, wanted: list[int], who: str, name: str, kind: str) -> None:
        more = {"name": name} if kind == "label" else {}
        said = [{"row": row, "kind": kind, **more} for row in self.train_rows(wanted)]
        self.post("/api/v1/answers", who=who, answers=said)

    @rule(wanted=rows, who=people, name=some_name | st.sampled_from(PASSES))
    def answer_by_csv(self, wanted: list[int], who: str, name: str) -> None:
        file = self.folder / "answers.csv"
        file.write_text("row,label\n" + "".join(f"{row},{name}\n" for row in self.train_rows(wanted)))
        self.run(lambda: command("label", str(self.project), "--from", str(file), "--who", who))

    @rule(who=people, name=some_name, audit=st.booleans())
    def answer_the_question(self, who: str, name: str, audit: bool) -> None:
        card = self.client.question(who, audit=audit)
        if card["row"] is not None:
            said = [{"row": card["row"], "kind": "label", "name": name}]
            self.post("/api/v1/answers", who=who, answers=said, is_audit=audit)

    @rule()
    def draw_an_audit(self) -> None:
        self.post("/api/v1/audit", n=5)

    @rule(wanted=rows, who=people)
    def ask_about(self, wanted: list[int], who: str) -> None:
        self.post("/api/v1/queue", who=who, rows=self.train_rows(wanted))

    @rule()
    def repeat_the_last_request(self) -> None:
        if self.last is not None:
            before = self.client.get("/api/v1/state")["last_event"]
            self.client.http.post(self.last[0], json=self.last[1])
            assert self.client.get("/api/v1/state")["last_event"] == before

    @rule(who=people, pick=st.integers(0, 7), name=some_name, spare=rows)
    def accept_a_page(self, who: str, pick: int, name: str, spare: list[int]) -> None:
        cards = self.client.get("/api/v1/board")["cards"]
        card, order = cards[pick % len(cards)], new_uid()
        shown = self.client.get("/api/v1/grow", key=card["key"], order=order)["thumbs"]
        if shown:
            chosen = {"class_id": card["class_id"]} if card["class_id"] else {"name": name}
            chosen |= {"key": card["key"], "order": order, "last_row": shown[-1]["row"]}
            self.post("/api/v1/accept", who=who, except_rows=spare, **chosen)

    @rule(who=people, one=some_name, new=st.sampled_from((*NAMES, "heron")), by_cli=by_command_line)
    def rename(self, who: str, one: str, new: str, by_cli: bool) -> None:
        self._change("rename", who, one, new, by_cli, {"name": new})

    @rule(who=people, one=some_name, into=some_name, by_cli=by_command_line)
    def merge(self, who: str, one: str, into: str, by_cli: bool) -> None:
        self._change("merge", who, one, into, by_cli, {"into": self._id(into)})

    @rule(who=people, one=some_name, by_cli=by_command_line)
    def retire(self, who: str, one: str, by_cli: bool) -> None:
        self._change("retire", who, one, None, by_cli, {})

    def _change(
        self, kind: str, who: str, one: str, other: str | None, by_cli: bool, body: dict[str, str | None]
    ) -> None:
        if by_cli:
            words = [kind, str(self.project), one, *([other] if other else []), "--who", who]
            self.run(lambda: command(*words))
        elif self._id(one) and all(body.values()):
            self.post(f"/api/v1/classes/{kind}", who=who, class_id=self._id(one), **body)

    def _id(self, name: str) -> str | None:
        known = {found["name"]: found["class_id"] for found in self.client.get("/api/v1/names")}
        return known.get(name)

    @rule(who=people, pick=st.integers(0, 7), name=some_name)
    def split(self, who: str, pick: int, name: str) -> None:
        cards = self.client.get("/api/v1/board")["cards"]
        found = self.client.http.get("/api/v1/classes/split-preview", params={"key": cards[pick % len(cards)]["key"]})
        if found.status_code == 200:
            half = found.json()["halves"][1]
            ticked = [*half["labelled"], *half["typical"][:1]]
            if ticked:
                said = [{"row": thumb["row"], "kind": "label", "name": name} for thumb in ticked]
                self.post("/api/v1/answers", who=who, answers=said)

    @rule(who=people)
    def undo(self, who: str) -> None:
        self.post("/api/v1/undo", who=who)

    @rule()
    def undo_by_command(self) -> None:
        self.run(lambda: command("undo", str(self.project)))

    @rule(wanted=rows, name=some_name)
    def import_from_label_studio(self, wanted: list[int], name: str) -> None:
        tasks = self.client.get("/api/v1/export/labels.label-studio.json")
        value = {"from_name": "new_class", "to_name": "image", "type": "textarea", "value": {"text": [name]}}
        for task in tasks:
            if task["data"]["row"] in wanted:
                task["annotations"] = [{"result": [value], "completed_by": {"email": "eve@example.org"}}]
        file = self.folder / "tasks.json"
        file.write_text(json.dumps(tasks))
        self.run(lambda: command("label", str(self.project), "--from", str(file)))

    @rule(wanted=rows, who=people)
    def remove(self, wanted: list[int], who: str) -> None:
        with Project.open(self.project) as project:
            paths = [project.paths[row] for row in self.train_rows(wanted)]
        self.run(lambda: command("remove", str(self.project), *paths, "--who", who))

    @rule(name=some_name, pick=st.integers(0, 4), back=rows, look=st.booleans())
    def add(self, name: str, pick: int, back: list[int], look: bool) -> None:
        """A new picture in a folder that names it; what was removed is named again, and may come back."""
        with Project.open(self.project) as project:
            named = [str(project.images / project.paths[row]) for row in self.train_rows(back)]
            new = more_pictures() / str(pick)
            shutil.copytree(new / "a-picture", self.folder / f"new-{pick}" / name, dirs_exist_ok=True)
            places = [str(self.folder / f"new-{pick}"), *named]
            command("add", str(self.project), *places, "--class-level", "1", "--allow-outside")
            if look:
                look_at_new_rows(project)
        check_agreement(self.client)

    @rule(finish=st.booleans())
    def train(self, finish: bool) -> None:
        with Project.open(self.project) as project:
            number = project.n_finished
            project.store.begin_run(number)
        if finish:
            make_up_round(self.project, number)
        check_agreement(self.client)


def lay_out_nothing(features: Any, rows: Any, before: Any = None) -> Any:
    """In place of t-SNE, which would take most of the time and says nothing about labels."""
    return np.zeros((len(features), 2), np.float32)


async def run_here(function: Callable[..., Any], *arguments: Any, **_: Any) -> Any:
    """In place of a thread for every request: there is one at a time, and the hand-over takes longer than its work."""
    return function(*arguments)


def fill_in_process(*arguments: Any, **options: Any) -> dict[str, str]:
    """Without processes that decode: to start them takes a second."""
    return fill(*arguments, **{**options, "workers": 0})


def run_histories(monkeypatch: pytest.MonkeyPatch, shard: int, n: int) -> None:
    monkeypatch.setattr(round_files, "lay_out", lay_out_nothing)
    monkeypatch.setattr(anyio.to_thread, "run_sync", run_here)
    monkeypatch.setattr(feature_rows, "fill_here", fill_in_process)
    machine = seed(shard)(type(f"Machine{shard}", (Machine,), {}))
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    options = settings(max_examples=n, stateful_step_count=5, deadline=None, database=None, suppress_health_check=slow)
    run_state_machine_as_test(machine, settings=options)


@pytest.mark.parametrize("shard", range(8))
def test_everything_that_speaks_of_a_project_agrees(shard: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run_histories(monkeypatch, shard, 25)


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(100, 120))
def test_everything_agrees_over_thousands_of_histories(shard: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run_histories(monkeypatch, shard, 250)


# ------------------------------------------------------------------------- what once disagreed, each on its own


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with serving(Path(shutil.copytree(base_project(), tmp_path / "project"))) as found:
        yield found


def status(client: Client) -> Status:
    with Project.open(client.project) as project:
        return status_of(project)


def test_blind_answers_are_no_junk_and_make_no_class(client: Client) -> None:
    before = status(client)
    client.post("/api/v1/audit", {"uid": new_uid(), "n": 5})
    for name in ("kite", "owl"):
        client.say(client.question(audit=True)["row"], name, is_audit=True)
    state, after = client.get("/api/v1/state"), status(client)
    assert (state["n_junk"], after.n_junk, state["n_audit"], after.n_audit) == (0, 0, 2, 2)
    assert state["n_classes"] == after.n_classes == before.n_classes == 3
    assert {card["name"] for card in client.get("/api/v1/board")["cards"]}.isdisjoint({"kite", "owl"})
    assert "2 held for an audit" in command("status", str(client.project))
    check_agreement(client)


def test_an_accepted_page_is_not_passed_and_its_questions_are_not_open(client: Client) -> None:
    order, card = new_uid(), max(client.get("/api/v1/board")["cards"], key=lambda card: card["size"])
    shown = client.get("/api/v1/grow", key=card["key"], order=order)["thumbs"]
    chosen = {"class_id": card["class_id"]} if card["class_id"] else {"name": "kite"}
    chosen |= {"key": card["key"], "order": order, "last_row": shown[-1]["row"]}
    n = client.do("/api/v1/accept", **chosen)["n_accepted"]
    state, after = client.get("/api/v1/state"), status(client)
    assert state["n_accepted"] == after.n_accepted == n == len(shown)
    assert state["n_passed"] == after.n_passed == 0
    assert state["n_open"] == after.n_open
    accepted = {thumb["row"] for thumb in shown}
    left = [client.question(holder=f"holder-number-{i}")["row"] for i in range(7)]
    assert accepted.isdisjoint(left), "what was accepted is not asked about"
    assert sum(row is not None for row in left) == after.n_open
    check_agreement(client)


def test_who_repeats_a_given_label_teaches_nothing_and_nothing_is_due(client: Client) -> None:
    given = next(line for line in table(client, "labels") if line["source"] == "seed")
    told = client.say(int(given["row"]), given["class"], who="bob")
    assert told["stored"] == {"label": 1}
    assert (told["state"]["is_due"], status(client).is_due) == (False, False)
    assert "nothing new to learn" in command("status", str(client.project))


def test_a_group_that_an_answer_names_has_that_name_in_every_file(client: Client) -> None:
    shutil.rmtree(client.project / "cache" / "rounds" / "start")  # without it the model's groups are shown
    with Project.open(client.project) as project:
        project.store.begin_run(1)
    make_up_round(client.project, 1)
    unnamed = max(
        (card for card in client.get("/api/v1/board")["cards"] if not card["is_named"]), key=lambda c: c["size"]
    )
    typical = [thumb["row"] for thumb in unnamed["typical"]]
    client.say(typical[0], "purple-square")
    group = [thumb for thumb in client.get("/api/v1/grid")["thumbs"] if thumb["name"] == "purple-square"]
    assert {*typical} <= {thumb["row"] for thumb in group}
    lines = {int(line["row"]): line["class"] for line in table(client, "predictions")}
    assert {lines[thumb["row"]] for thumb in group} == {"purple-square"}
    command("export", str(client.project), "--out", str(client.project / "out"))
    slots = read_json(client.project / "out" / "model.json")
    assert "purple-square" in json.dumps(slots)
    check_agreement(client)


def test_rounds_that_are_trained_agree_too(client: Client) -> None:
    from agcd.app.model import ask, train

    for number in (1, 2):
        while (card := client.question())["row"] is not None:
            client.say(card["row"], client_truth(client, card["row"]))
        client.do("/api/v1/undo")
        check_agreement(client)
        with Project.open(client.project) as project:
            assert train(project).round == number
            ask(project, 4)
        check_agreement(client)
    assert not status(client).is_due


def client_truth(client: Client, row: int) -> str:
    with Project.open(client.project) as project:
        return project.paths[row].split("/")[0]
