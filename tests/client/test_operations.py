"""The client can do all that the OpenAPI document describes, and nothing of it under another name or shape."""

from __future__ import annotations

import inspect
import json
import re
from collections import defaultdict
from pathlib import Path
from types import NoneType
from typing import Any, get_args
from unittest.mock import MagicMock

import pytest

from agcd.app.web.app import make_api
from agcd.client import Change, Client, Said, ShownAs
from agcd.client import operations as module
from agcd.client.operations import Operations
from agcd.errors import DataError

CLASS_ID = "a" * 32
SAMPLES: dict[str, Any] = {
    "answers": [Said(row=3, kind="label", name="kiwi")],
    "answered": [1, 2],
    "audit": True,
    "blind": True,
    "changes": [Change(row=4, name="kiwi")],
    "class_id": CLASS_ID,
    "except_rows": [5],
    "folder": "a",
    "hidden": [8, 9],
    "how": "link",
    "into": CLASS_ID,
    "is_audit": True,
    "junk": [6],
    "key": "s-3",
    "kind": "round",
    "last_row": 9,
    "live": True,
    "mode": "class",
    "n": 7,
    "n_questions": 5,
    "name": "labels.csv",
    "one": "s-1",
    "only_checked": True,
    "order": "uid-of-an-order",
    "page": 2,
    "per_page": 50,
    "right": [ShownAs(row=3, class_id=CLASS_ID)],
    "round": 1,
    "row": 7,
    "rows": [1, 2],
    "selection": "b" * 32,
    "show": "labelled",
    "size": 160,
    "sort": "name",
    "sure": "sure",
    "text": "kiwi",
    "uid": "uid-of-a-test",
    "v": "0123",
    "view": "cards",
    "who": "ann",
}
METHODS = [name for name, _ in inspect.getmembers(Operations, inspect.isfunction) if not name.startswith("_")]


class Recorder:
    """Takes requests in place of a server."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = []

    def send(self, method: str, path: str, query: Any = (), body: bytes | None = None, **_: Any) -> bytes:
        self.sent.append((method.lower(), path, dict(query), json.loads(body or b"{}")))
        return b""


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return make_api(MagicMock()).openapi()


def described(document: dict[str, Any], method: str, path: str) -> tuple[str, dict[str, Any]]:
    """The operation that a request reaches; a path without a number in it comes before one with a place for it."""
    for template, methods in sorted(document["paths"].items(), key=lambda pair: "{" in pair[0]):
        if method in methods and re.fullmatch(re.sub(r"{\w+}", "[^/]+", template), path):
            return template, methods[method]
    raise AssertionError(f"the document has no {method} {path}")


def call(name: str, *, with_all: bool, monkeypatch: pytest.MonkeyPatch) -> tuple[Recorder, list[Any]]:
    """Call a method with all of its arguments or with those it needs; what was sent, and as what the answer is read."""
    recorder, shapes = Recorder(), []
    monkeypatch.setattr(module, "_read", lambda shape, _: shapes.append(shape))
    given = {
        key: SAMPLES[key]
        for key, parameter in inspect.signature(getattr(Operations, name)).parameters.items()
        if key != "self" and (with_all or parameter.default is parameter.empty)
    }
    getattr(Operations(recorder, "ann"), name)(**given)  # type: ignore[arg-type]
    return recorder, shapes


def shape_of(response: dict[str, Any]) -> Any:
    """What the document says of an answer: the name of a model, in a list where it is one; None if it is a file."""
    schema = response["content"].get("application/json", {}).get("schema", {})
    schema = next((one for one in schema.get("anyOf", []) if one.get("type") != "null"), schema)
    is_list, schema = schema.get("type") == "array", schema.get("items", schema)
    name = schema.get("$ref", "").rpartition("/")[2] or {"string": "str"}.get(schema.get("type"))
    return [name] if is_list else name


def spelled(shape: Any) -> Any:
    """The same of a type."""
    inner = [one for one in get_args(shape) if one is not NoneType]
    return [inner[0].__name__] if getattr(shape, "__origin__", None) is list else (inner or [shape])[0].__name__


def test_every_operation_of_the_document_is_a_method(document: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    reached: set[tuple[str, str]] = set()
    asked: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    told: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for name in METHODS:
        ((method, path, query, body),) = call(name, with_all=True, monkeypatch=monkeypatch)[0].sent
        template, _ = described(document, method, path)
        reached.add((method, template))
        asked[method, template] |= query.keys()
        told[method, template] |= body.keys()
    assert reached == {(method, path) for path, methods in document["paths"].items() for method in methods}
    for (method, template), names in asked.items():
        operation = document["paths"][template][method]
        assert names == {one["name"] for one in operation.get("parameters", []) if one["in"] == "query"}, template
        if "requestBody" in operation:
            model = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
            assert told[method, template] == set(document["components"]["schemas"][model]["properties"]), template


@pytest.mark.parametrize("name", METHODS)
def test_a_method_sends_what_is_needed_and_reads_what_comes_back(
    document: dict[str, Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder, shapes = call(name, with_all=False, monkeypatch=monkeypatch)
    ((method, path, query, body),) = recorder.sent
    _, operation = described(document, method, path)
    needed = {one["name"] for one in operation.get("parameters", []) if one["in"] == "query" and one["required"]}
    assert needed <= query.keys()
    if "requestBody" in operation:
        model = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        assert set(document["components"]["schemas"][model].get("required", [])) <= body.keys()
    if shapes:
        assert spelled(shapes[0]) == shape_of(operation["responses"]["200"])
    else:
        assert shape_of(operation["responses"]["200"]) is None, "only files come as bytes"


def test_the_methods_of_a_client_are_told_in_its_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "client.md").read_text(encoding="utf-8")
    own = [name for name, _ in inspect.getmembers(Client, inspect.isfunction) if not name.startswith("_")]
    assert [name for name in own if f"`{name}" not in page and f".{name}(" not in page] == []


def test_a_value_that_the_page_would_refuse_is_one_sentence() -> None:
    recorder = Recorder()
    with pytest.raises(DataError, match=r"^class_id: String should match pattern '\^\[a-f0-9\]\{32\}\$'\.$"):
        Operations(recorder, "ann").rename("kiwi", "lime")  # type: ignore[arg-type]
    said = Said(row=1, kind="junk")
    with pytest.raises(DataError, match=r"^A row is named twice: say one thing of each\.$"):
        Operations(recorder, "ann").send_answers([said, said])  # type: ignore[arg-type]
    assert not recorder.sent


def test_each_change_has_a_uid_of_its_own_unless_one_is_given() -> None:
    recorder = Recorder()
    person = Operations(recorder, "ann")  # type: ignore[arg-type]
    for uid in (None, None, "uid-of-a-test"):
        with pytest.raises(ValueError, match="Invalid JSON"):
            person.undo(uid=uid)
    uids = [body["uid"] for *_, body in recorder.sent]
    assert (len(set(uids)), uids[2]) == (3, "uid-of-a-test")
