"""Label Studio: what goes out can be imported there, and what comes back finds its images and nothing else."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from agcd.app.export.label_studio import ACCEPTED, labelling_config, to_label_studio
from agcd.data import label_studio
from agcd.data.label_studio import KnownImages, Said, parse_label_studio, read_label_studio
from agcd.errors import DataError

PATHS = ["cat/1.jpg", "cat/2.jpg", "dog/2.jpg", "my photo (1).jpg", "ü/ß%20?.jpg", "deep/er/only.jpg"]
LABELS: dict[str, list[Any]] = {
    "row": [0, 1, 2, 3],
    "answer": ["label", "skip", "junk", "label"],
    "class": ["cat", None, None, "dog"],
    "who": ["ann", "bob", "bob", ""],
}
PREDICTIONS: dict[str, list[Any]] = {
    "row": [0, 4, 5, 6],
    "class": ["cat", "dog", "unnamed #3", "dog"],
    "probability": [0.9, 0.5, 0.25, 0.2],
    "by": ["human", "model", "model", "page"],
}


def choice(name: str, **values: Any) -> dict[str, Any]:
    result = {"from_name": "class", "to_name": "image", "type": "choices", "value": {"choices": [name]}}
    return {"result": [result], "was_cancelled": False, **values}


def task(image: str, *annotations: dict[str, Any], **data: Any) -> dict[str, Any]:
    return {"id": 1, "data": {"image": image, **data}, "annotations": list(annotations), "predictions": []}


def parsed(tasks: Any, paths: list[str] = PATHS) -> list[Said]:
    return parse_label_studio(json.dumps(tasks).encode(), paths, "me")


def tasks_of_project() -> list[dict[str, Any]]:
    items = list(enumerate([*PATHS, "seven.jpg"]))
    return list(to_label_studio(items, LABELS, PREDICTIONS, ["cat", "dog"], "photos", "agcd round 2"))


def test_answered_images_are_annotated_and_the_others_predicted() -> None:
    tasks = tasks_of_project()
    assert [len(t.get("annotations", [])) for t in tasks] == [1, 1, 1, 1, 0, 0, 0]
    assert tasks[0]["annotations"][0]["result"][0]["value"] == {"choices": ["cat"]}
    assert tasks[1]["annotations"] == [{"was_cancelled": True, "result": []}]
    assert tasks[2]["annotations"][0]["result"][0]["value"] == {"choices": ["junk"]}
    (prediction,) = tasks[4]["predictions"]
    assert (prediction["score"], prediction["model_version"]) == (0.5, "agcd round 2")
    assert "predictions" not in tasks[5], "a group without a name is no choice"
    assert tasks[5]["data"]["predicted"] == "unnamed #3"
    assert tasks[6]["predictions"][0]["model_version"] == ACCEPTED
    assert tasks[4]["data"]["image"] == "/data/local-files/?d=photos/%C3%BC/%C3%9F%2520%3F.jpg"


def test_the_config_lists_the_classes_whatever_they_are_called() -> None:
    names = ['"quoted" & <b>', "it's", "猫"]
    root = ElementTree.fromstring(labelling_config(names))
    assert [choice.get("value") for choice in root.iter("Choice")] == [*names, "unsure", "junk"]
    (choices,) = root.iter("Choices")
    assert (choices.get("name"), choices.get("toName")) == ("class", "image")


def test_what_went_out_comes_back_as_the_same_answers_and_is_no_news() -> None:
    found = parsed(tasks_of_project(), [*PATHS, "seven.jpg"])
    assert found == [
        Said("cat/1.jpg", "cat", "ann", False),
        Said("cat/2.jpg", "skip", "bob", False),
        Said("dog/2.jpg", "junk", "bob", False),
        Said("my photo (1).jpg", "dog", "me", False),
    ]


def test_a_changed_answer_is_news_of_whoever_changed_it() -> None:
    tasks = tasks_of_project()[:1]
    tasks[0]["annotations"] = [choice("dog", completed_by={"id": 3, "email": "eve@example.org"})]
    assert parsed(tasks) == [Said("cat/1.jpg", "dog", "eve@example.org")]


REFERENCES = {
    "cat/1.jpg": "cat/1.jpg",
    "/data/local-files/?d=cat/1.jpg": "cat/1.jpg",
    "/data/local-files/?d=photos/cat/1.jpg": "cat/1.jpg",
    "http://localhost:8080/data/local-files/?d=%2Fphotos%2Fcat%2F1.jpg": "cat/1.jpg",
    "/data/local-files/?d=photos/%C3%BC/%C3%9F%2520%3F.jpg": "ü/ß%20?.jpg",
    "/data/upload/7/0123abcd-1.jpg": "cat/1.jpg",
    "/data/upload/7/0123abcd-my_photo_1.jpg": "my photo (1).jpg",
    "https://studio.example.org/data/upload/7/0123abcd-only.jpg": "deep/er/only.jpg",
    "file:///home/me/photos/cat/2.jpg": "cat/2.jpg",
    "s3://bucket/photos/dog/2.jpg": "dog/2.jpg",
    "C:\\photos\\cat\\2.jpg": "cat/2.jpg",
    "er/only.jpg": "deep/er/only.jpg",
    "only.jpg": "deep/er/only.jpg",
    "./cat/1.jpg": "cat/1.jpg",
    "my%20photo%20(1).jpg": "my photo (1).jpg",
}


@pytest.mark.parametrize("reference", REFERENCES)
def test_images_are_found_by_path_or_by_their_only_end(reference: str) -> None:
    assert KnownImages(PATHS).find(reference) == REFERENCES[reference]


HOSTILE = [
    "../../etc/passwd",
    "/etc/passwd",
    "file:///etc/passwd",
    "cat/../cat/1.jpg",
    "%2e%2e/cat/1.jpg",
    "/data/local-files/?d=../cat/1.jpg",
    "/data/local-files/?" + "d=1.jpg&" * 100,
    "http://169.254.169.254/latest/meta-data",
    "http://[bad/1.jpg",
    "other/1.jpg",
    "at/1.jpg",
    "1.jpg\x00",
    "\ud800",
    "",
    "/",
    "?" * 10_000,
]


@pytest.mark.parametrize("reference", HOSTILE, ids=range(len(HOSTILE)))
def test_no_hostile_reference_finds_or_opens_or_fetches_anything(
    reference: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("something was opened")

    content = json.dumps([task(reference, choice("x"))]).encode()
    with monkeypatch.context() as patch:
        for module, name in ((os, "open"), (os, "stat"), (socket, "socket"), (socket, "getaddrinfo")):
            patch.setattr(module, name, refuse)
        patch.setattr("builtins.open", refuse)
        with pytest.raises(DataError, match=r"1 image|half a character") as refused:
            parse_label_studio(content, PATHS, "me")
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 1000


def test_an_image_that_may_be_two_is_asked_about() -> None:
    for reference in ("2.jpg", "/data/upload/1/0123abcd-2.jpg"):
        with pytest.raises(DataError, match=r"may be 'cat/2\.jpg' and 'dog/2\.jpg'"):
            parsed([task(reference, choice("x"))])


def test_unknown_images_are_named_once_and_only_if_they_have_answers() -> None:
    assert parsed([task("nowhere.jpg")]) == []
    tasks = [task(f"nowhere-{i}.jpg", choice("x"), choice("y")) for i in range(5)]
    with pytest.raises(DataError, match=r"5 images.*'nowhere-0.jpg', 'nowhere-1.jpg', 'nowhere-2.jpg' …"):
        parsed(tasks)


def test_several_people_give_several_answers_and_of_each_the_last_counts() -> None:
    annotations = [
        choice("late", completed_by=1, updated_at="2024-02-02T00:00:00Z"),
        choice("early", completed_by=1, updated_at="2024-01-01T00:00:00Z"),
        choice("other", completed_by={"id": 2, "email": "bob@example.org"}),
        {"result": [], "was_cancelled": True, "completed_by": {"id": 3}},
        {"result": [], "was_cancelled": False, "completed_by": 4},
        choice("nobody's"),
    ]
    assert parsed([task("cat/1.jpg", *annotations)]) == [
        Said("cat/1.jpg", "late", "annotator 1"),
        Said("cat/1.jpg", "other", "bob@example.org"),
        Said("cat/1.jpg", "skip", "annotator 3"),
        Said("cat/1.jpg", "nobody's", "me"),
    ]


def test_a_typed_name_comes_before_a_choice() -> None:
    annotation = choice("cat")
    annotation["result"].append({"from_name": "new_class", "type": "textarea", "value": {"text": [" axolotl "]}})
    assert parsed([task("cat/1.jpg", annotation)]) == [Said("cat/1.jpg", "axolotl", "me")]


def test_json_min_is_read_too() -> None:
    records = [
        {"id": 1, "image": "/data/upload/1/0123abcd-1.jpg", "class": "cat", "annotator": 7, "annotation_id": 1},
        {"id": 2, "image": "x", "path": "cat/2.jpg", "choice": "dog", "annotator": "ann@example.org"},
        {"id": 3, "image": "dog/2.jpg", "class": "cat", "new_class": "axolotl", "annotator": 7},
        {"id": 4, "image": "deep/er/only.jpg", "annotator": 7},
    ]
    assert parsed(records) == [
        Said("cat/1.jpg", "cat", "annotator 7"),
        Said("cat/2.jpg", "dog", "ann@example.org"),
        Said("dog/2.jpg", "axolotl", "annotator 7"),
    ]


def test_two_classes_for_one_image_are_refused() -> None:
    annotation = choice("cat")
    annotation["result"][0]["value"]["choices"].append("dog")
    with pytest.raises(DataError, match="several classes, 'cat' and 'dog'"):
        parsed([task("cat/1.jpg", annotation)])
    with pytest.raises(DataError, match="several classes"):
        parsed([{"image": "cat/1.jpg", "class": {"choices": ["cat", "dog"]}}])


BAD_FILES: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "not valid JSON"),
    "no JSON": (b"PK\x03\x04", "not valid JSON"),
    "cut off": (b'[{"data": {', "not valid JSON"),
    "no UTF-8": (b'["\xff"]', "not valid JSON"),
    "NaN": (b'[{"data": {"image": NaN}}]', "NaN is no number"),
    "minus infinity": (b"[-Infinity]", "-Infinity is no number"),
    "a key twice": (b'[{"data": {}, "data": {}}]', "a key stands twice"),
    "too deep": (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
    "deep objects": (b'{"a":' * 100_000, "nested too deeply"),
    "a huge number": (b"[" + b"9" * 10_000 + b"]", "not valid JSON"),
    "an object": (b"{}", "list of tasks"),
    "numbers": (b"[1, 2]", "list of tasks"),
    "a text": (b'"tasks"', "list of tasks"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_one_sentence(name: str, tmp_path: Path) -> None:
    content, piece = BAD_FILES[name]
    (tmp_path / "tasks.json").write_bytes(content)
    with pytest.raises(DataError, match=piece) as refused:
        read_label_studio(tmp_path / "tasks.json", PATHS)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 1000


STRANGE: list[Callable[[dict[str, Any]], Any]] = [
    lambda t: t.update(annotations=None),
    lambda t: t.update(annotations=[None, 1, "x", []]),
    lambda t: t.update(annotations=[{"result": {"a": 1}}]),
    lambda t: t.update(annotations=[{"result": [None, {"type": "choices", "value": None}]}]),
    lambda t: t.update(annotations=[{"result": [{"type": "choices", "value": {"choices": [[[[["deep"]]]]]}}]}]),
    lambda t: t.update(annotations=[{"result": [{"type": "choices", "value": {"choices": [1, None, "  "]}}]}]),
    lambda t: t.update(data=[]),
    lambda t: t.update(annotations="x", completions=[1]),
]


@pytest.mark.parametrize("number", range(len(STRANGE)))
def test_parts_of_an_unknown_shape_are_no_answers(number: int) -> None:
    strange = task("cat/1.jpg", choice("cat"))
    STRANGE[number](strange)
    assert parsed([strange]) == []


def test_a_task_without_any_image_is_one_sentence() -> None:
    for data in ({}, {"image": 3}, {"image": None}, {"image": ["cat/1.jpg"]}):
        with pytest.raises(DataError, match="1 image"):
            parsed([{"data": data, "annotations": [choice("cat")]}])


def test_large_files_and_missing_ones_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_studio, "MAX_BYTES", 10)
    (tmp_path / "tasks.json").write_bytes(b"[" + b" " * 20 + b"]")
    with pytest.raises(DataError, match="more than the 10 allowed"):
        read_label_studio(tmp_path / "tasks.json", PATHS)
    with pytest.raises(DataError, match="more than the 10 allowed"):
        parse_label_studio(b" " * 20, PATHS, "me")
    with pytest.raises(DataError, match="cannot be read"):
        read_label_studio(tmp_path / "gone.json", PATHS)
    with pytest.raises(DataError, match="not a regular file"):
        read_label_studio(tmp_path, PATHS)
