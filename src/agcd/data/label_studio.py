"""What Label Studio exports: the answers in its tasks, and the images or texts that they are about."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from agcd.data.images import ImageError, read_file
from agcd.errors import DataError
from agcd.io import parse_strictly
from agcd.words import count

_LONGEST = 4096
_UPLOAD = re.compile(r"(?:.*/)?data/upload/\d+/(?:[0-9a-f]{8}-)?([^/]+)")
"""Label Studio stores an uploaded file as ``/data/upload/<project>/<8 hexadecimal digits>-<name>``."""


class KnownImages:
    """The paths of a project's images, found again from what other programs call them."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = set(paths)
        self._by_name: defaultdict[str, list[str]] = defaultdict(list)
        for path in self._paths:
            self._by_name[_as_uploaded(path.rpartition("/")[2])].append(path)

    def find(self, reference: str) -> str | None:
        """The path that ``reference`` means, or None.

        An equal path is taken first; else the only one of which it is the end, or which is the end of it. Where several
        fit, it is better to ask than to label the wrong image.
        """
        if reference in self._paths:
            return reference
        if len(reference) > _LONGEST:
            return None
        spoken = _spoken_path(reference)
        if spoken in self._paths:
            return spoken
        fitting = self._fitting(spoken)
        if len(fitting) > 1:
            shown = " and ".join(repr(path) for path in sorted(fitting)[:2])
            raise DataError(f"{reference[:100]!r} may be {shown}: the path below the image folder is needed.")
        return fitting[0] if fitting else None

    def _fitting(self, spoken: str) -> list[str]:
        if upload := _UPLOAD.fullmatch(spoken):
            name = upload[1]
            uploaded = self._by_name.get(_as_uploaded(name), [])
            return [path for path in uploaded if path.rpartition("/")[2] == name] or list(uploaded)
        parts = [part for part in spoken.split("/") if part not in ("", ".")]
        if not parts or ".." in parts:
            return []
        end = "/" + "/".join(parts)
        same_name = self._by_name.get(_as_uploaded(parts[-1]), [])
        return [path for path in same_name if end.endswith(f"/{path}") or f"/{path}".endswith(end)]


def _spoken_path(reference: str) -> str:
    """The path inside a URL, a Windows path with its slashes turned, or the reference itself."""
    try:
        url = urlsplit(reference)
        if url.path.endswith("/data/local-files/"):
            return parse_qs(url.query, max_num_fields=16).get("d", [""])[0]
    except ValueError:  # brackets that are no address, or far too many fields
        return reference
    if len(url.scheme) > 1 or _UPLOAD.fullmatch(url.path):
        return unquote(url.path)
    return unquote(reference).replace("\\", "/")


def _as_uploaded(name: str) -> str:
    """A file name as Label Studio's uploads change it: spaces become underscores, other signs vanish."""
    return re.sub(r"[^\w.-]", "", name.strip().replace(" ", "_"))


CLASS, NEW_CLASS, IMAGE, TEXT = "class", "new_class", "image", "text"
"""Names in the labelling config: the listed classes, a field for a class that is not listed, the picture or text."""
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


class Answered(NamedTuple):
    words: list[str]
    who: str
    at: str


def read_label_studio(file: Path, paths: Iterable[str], who: str = "label-studio", noun: str = "image") -> list[Said]:
    """The answers in an export, of each person the last one about each image.

    Parameters
    ----------
    paths : the project's images; nothing else is ever looked at, whatever paths and URLs the file names
    who : whose answers they are where the file does not say
    noun : what the project has in place of images
    """
    try:
        content = read_file(file, max_bytes=MAX_BYTES)
    except ImageError as error:
        raise DataError(str(error)) from None
    return parse_label_studio(content, paths, who, name=str(file), noun=noun)


def parse_label_studio(
    content: bytes, paths: Iterable[str], who: str, name: str = "The file", noun: str = "image"
) -> list[Said]:
    """``read_label_studio`` for a file that was sent."""
    tasks = load_tasks(content, name)
    known, unknown = KnownImages(paths), []
    last: dict[tuple[str, str], tuple[str, Said]] = {}
    for task in tasks:
        data = task["data"] if isinstance(task.get("data"), dict) else task
        for answer in answers_of(task, who):
            path = path_of(data, known, name)
            if path is None:
                unknown.append(_named(data))
                break
            said = _said(path, answer, data, who, name)
            if (path, said.who) not in last or last[path, said.who][0] <= answer.at:
                last[path, said.who] = answer.at, said
    if unknown:
        shown = ", ".join(map(repr, unknown[:_SHOWN])) + (" …" if len(unknown) > _SHOWN else "")
        raise DataError(f"{name}: {count(len(unknown), noun)} with answers, not in this project: {shown}.")
    return [said for _, said in last.values()]


def _named(data: dict[str, Any]) -> str:
    """What a task is about, for a sentence."""
    return str(next((data[field] for field in (IMAGE, "path", TEXT) if field in data), None))[:100]


def load_tasks(content: bytes, name: str) -> list[dict[str, Any]]:
    if len(content) > MAX_BYTES:
        raise DataError(f"{name} has {len(content):,} bytes, more than the {MAX_BYTES:,} allowed.")
    try:
        text = content.decode("utf-8-sig")
        tasks = parse_strictly(text)
    except RecursionError:
        raise DataError(f"{name} is nested too deeply to be an export of Label Studio.") from None
    except ValueError as error:  # not UTF-8, not JSON, a number of thousands of digits, or what the hooks refuse
        raise DataError(f"{name} is not valid JSON: {error!s:.200}.") from None
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise DataError(f"{name} is not an export of Label Studio: a list of tasks is expected, as JSON or JSON-MIN.")
    return tasks


def path_of(data: dict[str, Any], known: KnownImages, name: str) -> str | None:
    for field in ("path", IMAGE):
        reference = data.get(field)
        try:
            found = known.find(reference) if isinstance(reference, str) else None
        except DataError as error:
            raise DataError(f"{name}: {error}") from None
        if found is not None:
            return found
    return None


def answers_of(task: dict[str, Any], who: str) -> Iterator[Answered]:
    """What people said of one task; drafts and predictions are no answers."""
    if not isinstance(task.get("data"), dict):  # JSON-MIN: one entry per annotation, its fields beside the data's
        field = next((field for field in (NEW_CLASS, *_CLASS_FIELDS) if _words(task.get(field))), CLASS)
        answers = [Answered(_words(task.get(field)), _person(task.get("annotator"), who), _time(task))]
    else:
        annotations = task.get("annotations", task.get("completions"))
        answers = [
            Answered(_annotated(annotation), _person(annotation.get("completed_by"), who), _time(annotation))
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


def _said(path: str, answer: Answered, data: dict[str, Any], who: str, name: str) -> Said:
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
