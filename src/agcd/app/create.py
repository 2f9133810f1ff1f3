"""Making a project: scan, check everything, then write; ``project.db`` appears last and marks the project as made."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from agcd.app.embeddings import add_embeddings
from agcd.app.image_paths import UNPACKED
from agcd.app.kinds import IMAGE, ItemKind, kind_named
from agcd.app.labels import LabelView
from agcd.app.store.classes import check_names, clean_class_name
from agcd.app.store.events import LabelEvent, new_uid
from agcd.app.store.store import Store
from agcd.config import Config, make_config, read_toml
from agcd.data.columns import standard_names
from agcd.data.embeddings import with_embeddings
from agcd.data.reading import DEFAULT_OPTIONS, Choose, Reading, SourceOptions, refuse_doubt
from agcd.data.sources import LISTS
from agcd.data.tables import read_table
from agcd.errors import ConfigError, DataError, did_you_mean
from agcd.io import atomic_write, read_json, write_json
from agcd.known_weights import with_known_weights
from agcd.types import UNLABELLED, Dataset
from agcd.words import count

CONFIG, RECORDS, HEALTH, PEOPLE = "agcd.toml", "project.db", "health.json", "people.json"
SOURCE = "source"
"""The section of ``agcd.toml`` that says how the images are read."""
_OPTIONS: dict[str, type] = {
    "class_level": int,
    "follow_links": bool,
    "allow_outside": bool,
    "column": str,
    "label_column": str,
    "picture_column": str,
    "link_column": str,
}
"""The settings that are options of a reader."""
_LIST, _KIND = "list", "kind"
"""The settings that name the list that a project was made from, and the kind of its items."""
_SOURCE_KINDS = {**_OPTIONS, _LIST: str, _KIND: str}


def create_project(
    folder: Path,
    images: Path,
    labels_csv: Path | None,
    n_classes: int | None,
    settings: dict[str, Any],
    say: Callable[[str], None],
    options: SourceOptions = DEFAULT_OPTIONS,
    choose: Choose = refuse_doubt,
    kind: str = IMAGE,
    embeddings: Path | None = None,
) -> None:
    """Scan the items at ``images``, say what they were understood to be, check that they can be trained, and write the
    project.

    ``choose`` decides between several readings; by default an unsure one is an error. Where ``embeddings`` are given
    they are the features, one vector per item.
    """
    items = kind_named(kind)
    if (folder / RECORDS).exists():
        raise DataError(f"{folder} is a project already; choose another folder.")
    make_config(settings)  # a misspelt setting should not have to wait for the scan
    is_new = not folder.exists()
    unpacked: Path | None = None
    try:
        scan_options = _scan_options(folder, options, labels_csv)
        reading = items.read(Path(os.path.abspath(images)), scan_options, choose)
        unpacked = reading.unpacked
        # New pictures will be read as these were; a list of labels means that folders name nothing.
        level = 0 if labels_csv and reading.class_level is not None else reading.class_level
        source = _source_section(replace(options, class_level=level), images, kind)
        _make(folder, reading, items, labels_csv, embeddings, n_classes, settings, source, say)
    except BaseException:
        _clean_up(folder, unpacked, is_new)
        raise


def _clean_up(folder: Path, unpacked: Path | None, is_new: bool) -> None:
    """Take back what was unpacked for a project that is not made."""
    if unpacked is not None:
        shutil.rmtree(unpacked, ignore_errors=True)
    with suppress(OSError):  # never there, or others have put something into them
        (folder / UNPACKED).rmdir()
        if is_new:
            folder.rmdir()


def _make(
    folder: Path,
    reading: Reading,
    kind: ItemKind,
    labels_csv: Path | None,
    embeddings: Path | None,
    n_classes: int | None,
    settings: dict[str, Any],
    source: dict[str, Any],
    say: Callable[[str], None],
) -> None:
    root, dataset = reading.root, reading.dataset
    shown = kind.places(dataset, root, folder)
    if embeddings is not None:
        dataset = with_embeddings(dataset, embeddings, shown)
    if labels_csv is not None:
        dataset = _with_labels(dataset, shown, root, labels_csv)
    events = seed_events(dataset)
    given = settings.get("n_slots") if n_classes is None else n_classes
    config, values = _config(settings, given)
    _check(config, events, dataset, kind)
    health = kind.health(dataset, root)
    for line in (understood(dataset), *(f"  {line}" for line in reading.tree), *health):
        say(line)
    if not (dataset.y_class[~dataset.is_test] < 0).any():
        say(f"every {kind.noun} has a label, so there is nothing to ask: agcd add takes {kind.nouns} without one")
    if given is None:
        say("how many classes there are is found out on the way (--classes sets it)")
    else:
        say(f"looking for {given} classes")
    write_json(folder / HEALTH, health)
    own = _unpack_to(folder)
    images = f"{UNPACKED}/{root.relative_to(own).as_posix()}" if root.is_relative_to(own) else str(root)
    _write(folder, dataset, kind, shown, events, {"images": images, **values, **({SOURCE: source} if source else {})})


def understood(dataset: Dataset) -> str:
    """What the images were understood to be, in one line."""
    train = dataset.y_class[~dataset.is_test]
    n_labels, n_test = int((train >= 0).sum()), int(dataset.is_test.sum())
    n_known = len(set(train[train >= 0].tolist()))
    known = f"{count(n_known, 'known class')} with {count(n_labels, 'label')}" if n_known else "no known classes"
    return f"understood: {known}, {len(train) - n_labels:,} unlabelled" + (f", {n_test:,} for testing" * (n_test > 0))


def read_settings(path: Path) -> tuple[Config, Path]:
    """The settings in ``agcd.toml`` and where the images are."""
    values = _read_values(path)
    values.pop(SOURCE, None)
    images = values.pop("images", None)
    if not isinstance(images, str):
        raise ConfigError(f'{path} does not say where the images are: images = "/path/to/folder" is expected.')
    return make_config(values), path.parent / images


def read_source_options(folder: Path) -> SourceOptions:
    """How the images of the project at ``folder`` are to be read, as its settings say."""
    section = {name: value for name, value in _read_section(folder).items() if name in _OPTIONS}
    return SourceOptions(**section, unpack_to=_unpack_to(folder))


def read_kind(folder: Path) -> ItemKind:
    """What kind of items the project at ``folder`` has, as its settings say."""
    return kind_named(_read_section(folder).get(_KIND, IMAGE))


def read_source_path(folder: Path) -> Path:
    """What new images of the project at ``folder`` are looked for in: its list of images, or their folder."""
    images, listed = read_settings(folder / CONFIG)[1], _read_section(folder).get(_LIST)
    return images if listed is None else folder / listed


def _read_section(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    section = _read_values(path).get(SOURCE, {})
    if not isinstance(section, dict):
        raise ConfigError(f"{path}: source is {section!r}; a section [source] is expected.")
    for name, value in section.items():
        if name not in _SOURCE_KINDS:
            raise ConfigError(f"{path}: unknown setting source.{name}.{did_you_mean(name, _SOURCE_KINDS)}")
        if type(value) is not _SOURCE_KINDS[name] or (isinstance(value, int) and value < 0):
            texts = {_LIST: "the path of a list", _KIND: "the name of a kind of items"}
            others = {int: "a number from 0", str: "the name of a column", bool: "true or false"}
            wanted = texts.get(name, others[_SOURCE_KINDS[name]])
            raise ConfigError(f"{path}: source.{name} is {value!r}; {wanted} is expected.")
    return section


def _source_section(options: SourceOptions, images: Path, kind: str) -> dict[str, Any]:
    """The section of ``agcd.toml`` by which new items are read: their kind, the options that are not the default, and
    the list that ``images`` is, if it is one."""
    given = {name: getattr(options, name) for name in _OPTIONS}
    changed = {name: value for name, value in given.items() if value != getattr(DEFAULT_OPTIONS, name)}
    if kind != IMAGE:
        changed[_KIND] = kind
    is_list = images.is_file() and (kind != IMAGE or images.suffix.lower() in LISTS)
    return changed | ({_LIST: os.path.abspath(images)} if is_list else {})


def _unpack_to(folder: Path) -> Path:
    return Path(os.path.abspath(folder)) / UNPACKED


def _read_values(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise ConfigError(f"There is no {path}: the project has lost its settings.")
    return read_toml(path)


def read_health(folder: Path) -> list[str]:
    """What the scan found, line by line; nothing where the file has gone or is damaged: it only informs."""
    try:
        lines = read_json(folder / HEALTH)
        return [str(line) for line in lines] if isinstance(lines, list) else []
    except (OSError, ValueError):
        return []


def set_n_classes(folder: Path, n: int, n_old: int) -> None:
    """Write the number of classes to look for into ``agcd.toml``; the rest of the file stays as it is."""
    if n < max(2, n_old):
        raise ConfigError(f"{n} classes are too few: {n_old} are known already, and at least 2 are needed.")
    lines = (folder / CONFIG).read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if not re.match(r"\s*n_slots\s*=", line)]
    with atomic_write(folder / CONFIG) as aside:
        # At the top: below the first [section] it would belong to that section.
        aside.write_text("\n".join([f"n_slots = {n}", *kept]) + "\n", encoding="utf-8")


def seed_events(dataset: Dataset) -> list[LabelEvent]:
    """The labels known from the start, as events: first the classes, then one label per training row."""
    group = new_uid()
    train = np.flatnonzero(~dataset.is_test & (dataset.y_class >= 0))
    used = sorted(set(dataset.y_class[train].tolist()))
    ids = {c: new_uid() for c in used}
    made = [
        LabelEvent(
            "create", "", "seed", class_id=ids[c], payload={"name": clean_class_name(dataset.classes[c]), "old": True}
        )
        for c in used
    ]
    said = [
        LabelEvent("label", "", "seed", row=row, class_id=ids[c], group=group)
        for row, c in zip(train.tolist(), dataset.y_class[train].tolist(), strict=True)
    ]
    return [replace(event, id=number) for number, event in enumerate(made + said, start=1)]


def _scan_options(folder: Path, options: SourceOptions, labels_csv: Path | None) -> SourceOptions:
    """Where labels come from a table, nobody need be asked which folders name classes."""
    means_nothing = labels_csv is not None and options.class_level is None
    level = 0 if means_nothing else options.class_level
    return replace(options, class_level=level, unpack_to=_unpack_to(folder))


def _with_labels(dataset: Dataset, shown: Sequence[str], root: Path, labels_csv: Path) -> Dataset:
    """The labels of a CSV in place of those that folders gave; paths start at the images or at the CSV."""
    row_of = _rows_by_path(shown)
    y_class = np.full(dataset.n_rows, UNLABELLED, dtype=np.int64)
    names: dict[str, int] = {}
    needed = ("path", "label")
    for line, cells in read_table(labels_csv, needed, lambda found: standard_names(labels_csv, found, needed)):
        if not cells["label"].strip():
            continue
        row = next((row_of[path] for path in _spellings(cells["path"], labels_csv, root) if path in row_of), None)
        if row is None:
            raise DataError(f"{labels_csv}, line {line}: {cells['path']!r} is not one of the usable items in {root}.")
        if y_class[row] >= 0:
            raise DataError(f"{labels_csv}, line {line}: {cells['path']!r} is listed twice; once is expected.")
        y_class[row] = names.setdefault(clean_class_name(cells["label"]), len(names))
    number = {name: c for c, name in enumerate(sorted(names))}
    place = np.array([*(number[name] for name in names), UNLABELLED], dtype=np.int64)  # −1 picks the last entry
    return replace(dataset, classes=tuple(number), y_class=place[y_class])


def _rows_by_path(shown: Sequence[str]) -> dict[str, int]:
    """The rows by their paths, and by their names alone where these are unique."""
    names = Counter(path.rpartition("/")[2] for path in shown)
    by_name = {name: row for row, path in enumerate(shown) if names[name := path.rpartition("/")[2]] == 1}
    return by_name | {path: row for row, path in enumerate(shown)}


def _spellings(path: str, labels_csv: Path, root: Path) -> Iterator[str]:
    """How a path in a table of labels may be meant: from the images or from the table, with slashes of Windows."""
    for spelling in dict.fromkeys((path, path.replace("\\", "/"))):
        yield os.path.normpath(spelling)
        yield os.path.relpath(os.path.abspath(labels_csv.parent / spelling), root)


def _config(settings: dict[str, Any], n_slots: int | None) -> tuple[Config, dict[str, Any]]:
    """The settings with the number of classes, typed and as plain values; a weights file gets its full path."""
    values = settings if n_slots is None else {**settings, "n_slots": n_slots}
    if "weights" in values.get("backbone", {}):
        backbone = with_known_weights(values["backbone"])  # what a name stands for now is what the project keeps
        values["backbone"] = {**backbone, "weights": os.path.abspath(backbone["weights"])}
    return make_config(values), values


def _check(config: Config, events: Sequence[LabelEvent], dataset: Dataset, kind: ItemKind) -> None:
    """Whatever would stop the first training stops ``init`` already."""
    from agcd.session import check_labels, strategy_settings

    view = LabelView.empty(dataset.is_test).after(events)
    check_names(view.registry)
    labels, _ = view.state()
    check_labels(labels, config.n_slots or max(2, labels.n_old))
    strategy_settings(config.query)
    if dataset.x is None:
        kind.check_features(config.backbone)


def _write(
    folder: Path,
    dataset: Dataset,
    kind: ItemKind,
    shown: Sequence[str],
    events: Sequence[LabelEvent],
    values: dict[str, Any],
) -> None:
    with atomic_write(folder / RECORDS) as aside:
        with Store(aside, create=True) as store, store.transaction():
            store.add_rows(dataset.keys, shown, dataset.is_test, kind.contents(dataset))
            if dataset.x is not None:
                add_embeddings(folder, store, dataset.x, 0)
            store.add_quarantine(dataset.quarantine)
            store.append(events)
        with atomic_write(folder / CONFIG) as config_aside:
            config_aside.write_text(to_toml(values), encoding="utf-8")


def to_toml(values: dict[str, Any]) -> str:
    """Plain values as TOML, one table per section."""
    sections = {name: value for name, value in values.items() if isinstance(value, dict)}
    lines = [f"{name} = {_toml_value(value)}" for name, value in values.items() if name not in sections]
    for name, section in sections.items():
        lines += ["", f"[{name}]", *(f"{key} = {_toml_value(value)}" for key, value in section.items())]
    return "\n".join(lines) + "\n"


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)  # strings, numbers and booleans are written alike in both
