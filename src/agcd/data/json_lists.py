"""Lists of images in JSON: JSON lines, lists of records, COCO, FiftyOne and Label Studio, told apart by their shape."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agcd.data.columns import standard_names
from agcd.data.folder import walk
from agcd.data.images import ImageError, read_file
from agcd.data.label_studio import KnownImages, answers_of, path_of
from agcd.data.listing import Line, Listing, line_of, listing_of
from agcd.data.reading import SourceOptions
from agcd.data.tables import lines_of
from agcd.errors import DataError
from agcd.io import parse_strictly
from agcd.types import Quarantined
from agcd.words import count, listed

MAX_BYTES = 1024 * 2**20
KINDS = "a COCO file, a FiftyOne labels.json, an export of Label Studio or a list of records with a path"
FIFTYONE = "labels.json"
"""What FiftyOne calls the list beside its folder ``data``."""
_NO_CLASS = frozenset({"skip", "unsure", "junk"})
"""Answers that name no class."""
_SHOWN = 3
Records = list[tuple[int, Any]]
"""Values with the number of the line or the place at which each stands."""


def read_json_lines(path: Path) -> Listing:
    """One record on each line, as ``metadata.jsonl`` of Hugging Face."""
    return _records(path, parsed_lines(path, json_text(path)))


def read_json(path: Path, options: SourceOptions) -> Listing:
    """Any other JSON file that lists images."""
    value = parsed(json_text(path), str(path))
    if isinstance(value, dict) and isinstance(value.get("images"), list):
        return _coco(path, value)
    if isinstance(value, dict) and isinstance(value.get("labels"), dict):
        return _fiftyone(path, value, options)
    if isinstance(value, list) and value and all(isinstance(task, dict) for task in value):
        if any(isinstance(task.get("data"), dict) or "annotation_id" in task for task in value):
            return _label_studio(path, value, options)
        return _records(path, list(enumerate(value, start=1)))
    raise DataError(f"{path} is no list of images that we know: {KINDS} is expected.")


def json_text(path: Path, what: str = "images") -> str:
    """The text of a JSON file that lists ``what``."""
    try:
        return read_file(path, max_bytes=MAX_BYTES).decode("utf-8-sig")
    except ImageError as error:
        raise DataError(f"{path} cannot be read as a list of {what}: {error.reason}.") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not valid JSON: its text is not UTF-8.") from None


def parsed_lines(path: Path, text: str, what: str = "images") -> Records:
    """The values of JSON Lines."""
    lines = enumerate(lines_of(text), start=1)
    return [(number, parsed(line, f"{path}, line {number}", what)) for number, line in lines if line.strip()]


def parsed(text: str, where: str, what: str = "images") -> Any:
    """The value in a JSON text."""
    try:
        return parse_strictly(text)
    except RecursionError:
        raise DataError(f"{where} is nested too deeply to be a list of {what}.") from None
    except ValueError as error:
        raise DataError(f"{where} is not valid JSON: {error!s:.200}.") from None


def _records(path: Path, records: Records) -> Listing:
    """Records with the columns of a manifest as keys; they need not all have the same."""
    columns, names, rows = named_cells(path, records, lambda found: standard_names(path, found))
    return listing_of(columns, names, [line_of(number, cells) for number, cells in rows])


def named_cells(
    path: Path, records: Records, rename: Callable[[Sequence[str]], list[str]]
) -> tuple[list[str], list[str], list[tuple[int, dict[str, Any]]]]:
    """The keys of all records, the names that ``rename`` gives them, and the values by those names."""
    for number, record in records:
        if not isinstance(record, dict):
            raise DataError(f"{path}, line {number}: {str(record)[:40]!r} is no record; an object is expected.")
    columns = list(dict.fromkeys(key for _, record in records for key in record))
    names = rename(columns)
    renamed = dict(zip(columns, names, strict=True))
    rows = []
    for number, record in records:
        cells = {renamed[key]: value for key, value in record.items()}
        for name in ("path", "text", "label", "split"):
            if isinstance(cells.get(name), dict | list):
                raise DataError(f"{path}, line {number}: {name} is {str(cells[name])[:40]!r}; one text is expected.")
        rows.append((number, cells))
    return columns, names, rows


# ------------------------------------------------------------------------------------------------------ COCO


def _coco(path: Path, value: Mapping[str, Any]) -> Listing:
    """One class per image: that of its annotations. Several categories on one image name no class of the whole."""
    names = {str(category.get("id")): str(category.get("name")) for category in _dicts(value.get("categories"))}
    said: defaultdict[str, set[str]] = defaultdict(set)
    for annotation in _dicts(value.get("annotations")):
        category = str(annotation.get("category_id"))
        if category not in names:
            raise DataError(f"{path}: an annotation has the category {category[:40]!r}, which is not listed.")
        said[str(annotation.get("image_id"))].add(names[category])
    listing = Listing([], notes=[f"a COCO file of {count(len(names), 'class')}"])
    for number, image in enumerate(_dicts(value["images"]), start=1):
        file, classes = image.get("file_name"), said[str(image.get("id"))]
        if not isinstance(file, str) or not file:
            raise DataError(f"{path}: image number {number} has no file_name.")
        if len(classes) > 1:
            listing.quarantine.append(Quarantined(file, _several(classes)))
        else:
            listing.lines.append(Line(number, file, next(iter(classes), "")))
    return listing


def _several(classes: Iterable[str]) -> str:
    names = sorted(classes)
    shown = [repr(name[:40]) for name in names[:_SHOWN]] + ["more"] * (len(names) > _SHOWN)
    return f"several classes on one picture ({listed(shown)}); one is expected"


# -------------------------------------------------------------------------------------------------- FiftyOne


def _fiftyone(path: Path, value: Mapping[str, Any], options: SourceOptions) -> Listing:
    """``labels`` by the path of the image below ``data/``, without its suffix; numbers count into ``classes``."""
    classes = [str(name) for name in value["classes"]] if isinstance(value.get("classes"), list) else []
    folder = path.parent / "data" if (path.parent / "data").is_dir() else path.parent
    files: defaultdict[str, list[str]] = defaultdict(list)
    for parts in walk(folder, options).files:
        name = "/".join(parts)
        files[name].append(name)
        files[name.rpartition(".")[0]].append(name)
    listing = Listing([], notes=["a FiftyOne list of classes"])
    for number, (key, label) in enumerate(value["labels"].items(), start=1):
        found = files.get(key, [])
        if len(found) > 1:
            raise DataError(f"{path}: {key[:100]!r} may be {found[0]!r} or {found[1]!r}; different names are expected.")
        name = found[0] if found else key
        below = name if folder == path.parent else f"data/{name}"
        names = {_fiftyone_class(one, classes) for one in (label if isinstance(label, list) else [label])}
        if len(names) > 1:
            listing.quarantine.append(Quarantined(below, _several(names)))
        else:
            listing.lines.append(Line(number, below, next(iter(names), "")))
    return listing


def _fiftyone_class(label: Any, classes: Sequence[str]) -> str:
    if isinstance(label, dict):  # with a confidence
        label = label.get("label")
    if isinstance(label, int) and 0 <= label < len(classes):
        return classes[label]
    return "" if label is None else str(label)


# ---------------------------------------------------------------------------------------------- Label Studio


def _label_studio(path: Path, tasks: Sequence[dict[str, Any]], options: SourceOptions) -> Listing:
    """The last answer about each image; its file is found below the list's folder by the end of its path."""
    known = KnownImages("/".join(parts) for parts in walk(path.parent, options).files)
    labels: dict[str, tuple[str, list[str]]] = {}
    listing = Listing([], notes=["an export of Label Studio"])
    for task in tasks:
        data = task["data"] if isinstance(task.get("data"), dict) else task
        shown = str(data.get("image", data.get("path")))[:200]
        try:
            file = path_of(data, known, path.name)
        except DataError as error:
            listing.quarantine.append(Quarantined(shown, str(error).removesuffix(".")))
            continue
        name = file or shown
        labels.setdefault(name, ("", []))
        for answer in answers_of(task, ""):
            if answer.at >= labels[name][0]:
                labels[name] = answer.at, list(dict.fromkeys(answer.words))
    for number, (name, (_, words)) in enumerate(labels.items(), start=1):
        if len(words) > 1:
            listing.quarantine.append(Quarantined(name, _several(words)))
        else:
            label = words[0] if words and words[0].casefold() not in _NO_CLASS else ""
            listing.lines.append(Line(number, name, label))
    return listing


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    yield from (inner for inner in value if isinstance(inner, dict)) if isinstance(value, list) else ()
