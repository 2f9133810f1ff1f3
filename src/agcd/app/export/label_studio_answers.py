"""Answers in a file that Label Studio exported, as JSON or as JSON-MIN. Such files come from strangers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from agcd.app.export.known_images import KnownImages
from agcd.app.export.label_studio import CLASS, IMAGE, NEW_CLASS
from agcd.data.images import ImageError, read_file
from agcd.errors import DataError

MAX_BYTES = 256 * 2**20
_SHOWN = 3
_CLASS_FIELDS = (CLASS, "choice", "label")
"""What the class may be called in JSON-MIN: as in our labelling config, or as in Label Studio's templates."""


class Said(NamedTuple):
    """One person's answer about one image; ``is_news`` is False if it left this program and came back unchanged."""

    path: str
    label: str
    who: str
    is_news: bool = True


class _Answer(NamedTuple):
    words: list[str]
    who: str
    at: str


def read_label_studio(file: Path, paths: Iterable[str], who: str = "label-studio") -> list[Said]:
    """The answers in an export, of each person the last one about each image.

    Parameters
    ----------
    paths : the project's images; nothing else is ever looked at, whatever paths and URLs the file names
    who : whose answers they are where the file does not say
    """
    try:
        content = read_file(file, max_bytes=MAX_BYTES)
    except ImageError as error:
        raise DataError(str(error)) from None
    return parse_label_studio(content, paths, who, name=str(file))


def parse_label_studio(content: bytes, paths: Iterable[str], who: str, name: str = "The file") -> list[Said]:
    """``read_label_studio`` for a file that was sent."""
    tasks = _load(content, name)
    known, unknown = KnownImages(paths), []
    last: dict[tuple[str, str], tuple[str, Said]] = {}
    for task in tasks:
        data = task["data"] if isinstance(task.get("data"), dict) else task
        for answer in _answers(task, who):
            path = _path(data, known, name)
            if path is None:
                unknown.append(str(data.get(IMAGE, data.get("path")))[:100])
                break
            said = _said(path, answer, data, who, name)
            if (path, said.who) not in last or last[path, said.who][0] <= answer.at:
                last[path, said.who] = answer.at, said
    if unknown:
        shown = ", ".join(map(repr, unknown[:_SHOWN])) + (" …" if len(unknown) > _SHOWN else "")
        raise DataError(f"{name}: {len(unknown)} image(s) with answers are not in this project: {shown}.")
    return [said for _, said in last.values()]


def _load(content: bytes, name: str) -> list[dict[str, Any]]:
    if len(content) > MAX_BYTES:
        raise DataError(f"{name} has {len(content):,} bytes, more than the {MAX_BYTES:,} allowed.")
    try:
        text = content.decode("utf-8-sig")
        tasks = json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
    except RecursionError:
        raise DataError(f"{name} is nested too deeply to be an export of Label Studio.") from None
    except ValueError as error:  # not UTF-8, not JSON, a number of thousands of digits, or what the hooks refuse
        raise DataError(f"{name} is not valid JSON: {error!s:.200}.") from None
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise DataError(f"{name} is not an export of Label Studio: a list of tasks is expected, as JSON or JSON-MIN.")
    return tasks


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return values


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _path(data: dict[str, Any], known: KnownImages, name: str) -> str | None:
    for field in ("path", IMAGE):
        reference = data.get(field)
        try:
            found = known.find(reference) if isinstance(reference, str) else None
        except DataError as error:
            raise DataError(f"{name}: {error}") from None
        if found is not None:
            return found
    return None


def _answers(task: dict[str, Any], who: str) -> Iterator[_Answer]:
    """What people said of one task; drafts and predictions are no answers."""
    if not isinstance(task.get("data"), dict):  # JSON-MIN: one entry per annotation, its fields beside the data's
        field = next((field for field in (NEW_CLASS, *_CLASS_FIELDS) if _words(task.get(field))), CLASS)
        answers = [_Answer(_words(task.get(field)), _person(task.get("annotator"), who), _time(task))]
    else:
        annotations = task.get("annotations", task.get("completions"))
        answers = [
            _Answer(_annotated(annotation), _person(annotation.get("completed_by"), who), _time(annotation))
            for annotation in _dicts(annotations)
        ]
    yield from (answer for answer in answers if answer.words)


def _annotated(annotation: dict[str, Any]) -> list[str]:
    """The words of one annotation: a new name, else the class chosen, else any choice; ``skip`` if it was skipped."""
    if annotation.get("was_cancelled") is True or annotation.get("skipped") is True:
        return ["skip"]
    results = _dicts(annotation.get("result"))
    typed = [result for result in results if result.get("from_name") == NEW_CLASS]
    choices = [result for result in results if result.get("type") == "choices"]
    ours = [result for result in choices if result.get("from_name") == CLASS]
    for group in (typed, ours, choices):
        if words := [word for result in group for word in _words(result.get("value"))]:
            return words
    return []


def _said(path: str, answer: _Answer, data: dict[str, Any], who: str, name: str) -> Said:
    label, *others = dict.fromkeys(answer.words)
    if others:
        raise DataError(
            f"{name}: {path!r} has several classes, {label[:50]!r} and {others[0][:50]!r}; one is expected."
        )
    if label != data.get("known_answer"):
        return Said(path, label, answer.who)
    known_by = data.get("known_by")
    return Said(path, label, known_by if isinstance(known_by, str) and known_by else who, is_news=False)


def _words(value: Any, depth: int = 3) -> list[str]:
    """The texts in a value as Label Studio writes it: a text, a list, or either under ``choices`` or ``text``."""
    if isinstance(value, dict):
        value = value.get("choices", value.get("text"))
    if isinstance(value, str):
        return [value.strip()] if value.strip() else []
    if not isinstance(value, list) or depth == 0:
        return []
    return [word for inner in value for word in _words(inner, depth - 1)]


def _person(value: Any, who: str) -> str:
    """An annotator by e-mail address or number; ``who`` where the file does not say."""
    if isinstance(value, dict):
        value = value.get("email") or value.get("id")
    if isinstance(value, int) and not isinstance(value, bool):
        return f"annotator {value}"
    return value if isinstance(value, str) and value.strip() else who


def _time(value: dict[str, Any]) -> str:
    return next((at for at in (value.get("updated_at"), value.get("created_at")) if isinstance(at, str)), "")


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [inner for inner in value if isinstance(inner, dict)] if isinstance(value, list) else []
