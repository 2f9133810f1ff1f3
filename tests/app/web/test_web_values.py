"""What a request may say: rows that exist, values of their own kind, JSON with one reading, not too many new names."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from agcd.app import answers as answering
from agcd.app.answers import Answer, write_answers
from agcd.app.store.classes import ClassInfo, Registry
from agcd.app.store.events import new_uid
from agcd.app.web.schemas import MAX_NEW_CLASSES
from support.projects import make_project
from support.servers import Client, serving, trained_project


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serving(trained_project(tmp_path_factory.mktemp("values"))) as opened:
        yield opened


def send(client: Client, content: bytes | str, path: str = "/api/v1/answers") -> tuple[int, str]:
    """The status and the sentence that a body gets."""
    data = content.encode() if isinstance(content, str) else content
    response = client.http.post(path, content=data, headers={"Content-Type": "application/json"})
    return response.status_code, response.json().get("error", "")


def n_events(client: Client) -> int:
    return int(client.get("/api/v1/state")["last_event"])


# ---------------------------------------------------------------------------------------------------------- rows


@pytest.mark.parametrize("row", [-1, -50, -101, "x", "1e3", "0x1", "%20", "9" * 400])
def test_a_row_is_a_number_from_0(client: Client, row: int | str) -> None:
    assert client.get(f"/api/v1/rows/{row}", 422)["error"]
    assert client.get(f"/api/v1/rows/{row}/neighbours", 422)["error"]


@pytest.mark.parametrize("row", [50, 10**6, 10**12])
def test_a_row_that_is_not_there_is_not_found(client: Client, row: int) -> None:
    assert "no row" in client.get(f"/api/v1/rows/{row}", 404)["error"]
    assert "no row" in client.get(f"/api/v1/rows/{row}/neighbours", 404)["error"]
    assert "no row" in client.do("/api/v1/answers", 404, answers=[{"row": row, "kind": "skip"}])["error"]
    assert "no row" in client.do("/api/v1/queue", 404, rows=[row])["error"]
    assert "no row" in client.post("/api/v1/selections", {"rows": [row]}, 404)["error"]
    assert "no row" in client.get("/api/v1/review", 404, **{"except": [row]})["error"]
    assert client.question(answered=[row])["row"] is not None


@pytest.mark.parametrize("row", [-1, 10**400, False, True, "3", 3.0, 1.5, None, [3], {"row": 3}])
def test_only_a_number_is_a_row(client: Client, row: Any) -> None:
    before = n_events(client)
    assert client.do("/api/v1/answers", 422, answers=[{"row": row, "kind": "skip"}])["error"]
    assert client.do("/api/v1/queue", 422, rows=[row])["error"]
    assert client.do("/api/v1/review/confirm", 422, mode="single", junk=[row])["error"]
    assert client.post("/api/v1/selections", {"rows": [row]}, 422)["error"]
    assert n_events(client) == before


@pytest.mark.parametrize("value", [1, 0, "true", "false", None, "yes"])
def test_only_true_and_false_are_yes_and_no(client: Client, value: Any) -> None:
    said = [{"row": 20, "kind": "skip"}]
    assert "is_audit" in client.do("/api/v1/answers", 422, answers=said, is_audit=value)["error"]
    assert "only_checked" in client.post("/api/v1/folders", {"uid": new_uid(), "only_checked": value}, 422)["error"]


@pytest.mark.parametrize("n", ["5", 5.0, True, None])
def test_a_count_is_a_number_too(client: Client, n: Any) -> None:
    assert client.post("/api/v1/audit", {"uid": new_uid(), "n": n}, 422)["error"]
    assert client.post("/api/v1/n-classes", {"n": n}, 422)["error"]


def test_one_batch_says_one_thing_of_each_picture(client: Client) -> None:
    before = client.get("/api/v1/state")["n_answers"]
    said = [{"row": 30, "kind": "label", "name": name} for name in ("kite", "hawk", "kite")]
    assert "named twice" in client.do("/api/v1/answers", 422, answers=said)["error"]
    assert client.get("/api/v1/state")["n_answers"] == before
    shown = {"row": 30, "class_id": "0" * 32}
    assert "named twice" in client.do("/api/v1/review/confirm", 422, mode="class", right=[shown], junk=[30])["error"]


@pytest.mark.parametrize("change", ["rename", "merge", "retire"])
def test_a_known_uid_with_an_unknown_class_is_one_sentence(client: Client, change: str) -> None:
    known = client.get("/api/v1/names")[0]["class_id"]
    body = {"uid": new_uid(), "who": "ann"}
    client.post("/api/v1/answers", body | {"answers": [{"row": 31, "kind": "skip"}]})
    more = {"rename": {"name": "x"}, "merge": {"into": known}, "retire": {}}[change]
    status = {"rename": 200}.get(change, 409)  # a repeated renaming has nothing to look up
    client.post(f"/api/v1/classes/{change}", body | {"class_id": "0" * 32, **more}, status)


# ---------------------------------------------------------------------------------------------------------- JSON

SAID = '{"uid": "a-hostile-one", "who": "ann", "answers": [{"row": 3, "kind": "skip"}]%s}'


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "nested too deeply"),
        (SAID.replace("3", "9" * 400), "less than or equal"),
        (SAID.replace("3", "9" * 5000), "not valid JSON"),
        (SAID.replace("3", "NaN"), "NaN is no number"),
        (SAID.replace("3", "-Infinity"), "-Infinity is no number"),
        (SAID.replace("3", "1e999"), "valid integer"),
        (SAID % ', "who": "bob"', "a key stands twice"),
        (SAID.replace("ann", "\\ud800"), "half a character"),
        (SAID % ', "\\udfff": 1', "half a character"),
        (SAID.encode().replace(b"ann", b"\xff\xfe"), "not valid JSON"),
        (SAID % (', "' + "x" * 1_000_000 + '": 1'), "Extra inputs"),
        ('{"uid": "12345678", "who": "ann", "answers": [%s]}' % ("0," * 1_000_000 + "0"), "answers"),
        ('{"uid": "12345678", "who": "ann", "answers": %s}' % ("9" * 4000), "valid list"),
        ("", "Field required"),
        ("null", "valid dictionary"),
        ("{", "not valid JSON"),
        ('"\\ud83d\\ude00"', "valid dictionary"),
    ],
)
def test_hostile_json_gets_a_short_sentence_and_stores_nothing(client: Client, body: str | bytes, words: str) -> None:
    before = n_events(client)
    status, sentence = send(client, body if isinstance(body, bytes) else body.replace("%s", ""))
    assert status == 422
    assert words in sentence
    assert len(sentence) < 700
    assert sentence.endswith(".")
    assert n_events(client) == before


def test_characters_of_two_halves_are_whole_together(client: Client) -> None:
    status, sentence = send(client, SAID.replace("ann", "\\ud83d\\ude00").replace("a-hostile-one", new_uid()) % "")
    assert (status, sentence) == (200, "")


# -------------------------------------------------------------------------------------------------- many names


def test_one_request_makes_a_bounded_number_of_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agcd.app.web.schemas.MAX_NEW_CLASSES", 20)
    with serving(trained_project(tmp_path)) as client:
        rows = [thumb["row"] for thumb in client.get("/api/v1/grid", show="unlabelled")["thumbs"]]
        said = [{"row": row, "kind": "label", "name": f"kind {row}"} for row in rows[:21]]
        assert "21 new classes; at most 20" in client.do("/api/v1/answers", 422, answers=said)["error"]
        changes = [{"row": one["row"], "name": one["name"]} for one in said]
        assert "at most 20" in client.do("/api/v1/review/confirm", 422, mode="class", changes=changes)["error"]
        assert client.get("/api/v1/state")["n_answers"] == 0
        assert len(client.do("/api/v1/answers", answers=said[:20])["new_classes"]) == 20
        assert client.do("/api/v1/answers", answers=said)["stored"] == {"label": 1}, "known names are not counted"
    assert MAX_NEW_CLASSES == 200


def slow_find(registry: Registry, name: str) -> ClassInfo | None:
    """``Registry.find``, one class after the other."""
    standing = [info for info in registry.infos if info.merged_into is None]
    named = [info for info in standing if info.name.casefold() == name.casefold()]
    known_as = [info for info in standing if name.casefold() in {alias.casefold() for alias in info.aliases}]
    return next(iter(named + known_as), None)


def test_a_class_is_found_by_its_name_before_anothers_former_one(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        rows = [int(row) for row in project.label_state()[0].pool_rows]
        made = write_answers(project, [Answer(row, f"Kind {row}") for row in rows[:8]]).new_classes
        answering.rename_class(project, made[0].id, "Kite")
        answering.rename_class(project, made[1].id, made[0].name)  # the name that was freed: names come before aliases
        answering.rename_class(project, made[2].id, "hawk")
        answering.merge_classes(project, made[3].id, made[4].id)
        answering.retire_class(project, made[5].id)
        registry = project.labels().registry
        spellings = {word for info in registry.infos for word in (info.name, *info.aliases)}
        assert len(spellings) > 8
        for word in [*spellings, *map(str.upper, spellings), "nobody"]:
            assert registry.find(word) == slow_find(registry, word)


def test_the_cost_of_new_names_rises_no_faster_than_their_number(tmp_path: Path) -> None:
    n_calls = {n: _calls_for(tmp_path / str(n), n) for n in (300, 600)}
    assert n_calls[600] < 2.5 * n_calls[300]  # each name was compared with all others: almost four times


def _calls_for(folder: Path, n: int) -> int:
    """How many functions are called to store ``n`` new names in one batch."""
    folder.mkdir()
    with make_project(folder) as project, cProfile.Profile() as profile:
        rows = cycle(project.label_state()[0].pool_rows.tolist())
        told = write_answers(project, [Answer(row, f"kind {i}") for i, row in zip(range(n), rows, strict=False)])
        assert len(told.new_classes) == n
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]
