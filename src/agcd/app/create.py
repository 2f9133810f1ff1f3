"""Making a project: scan, check everything, then write; ``project.db`` appears last and marks the project as made."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from agcd.app.labels import LabelView
from agcd.app.store.classes import check_names, clean_class_name
from agcd.app.store.events import LabelEvent, new_uid
from agcd.app.store.store import Store
from agcd.config import Config, make_config, read_toml
from agcd.data.health import health_report
from agcd.data.sources import load_dataset
from agcd.data.tables import read_table
from agcd.errors import ConfigError, DataError
from agcd.io import atomic_write, read_json, write_json
from agcd.types import UNLABELLED, Dataset

CONFIG, RECORDS, HEALTH, PEOPLE = "agcd.toml", "project.db", "health.json", "people.json"


def create_project(
    folder: Path,
    images: Path,
    labels_csv: Path | None,
    n_classes: int | None,
    settings: dict[str, Any],
    say: Callable[[str], None],
) -> None:
    """Scan ``images`` (a folder or a manifest), check that it can be trained, and write the project."""
    if (folder / RECORDS).exists():
        raise DataError(f"{folder} is a project already; choose another folder.")
    make_config(settings)  # a misspelt setting should not have to wait for the scan
    root, dataset = _scan(images)
    shown = [path.relative_to(root).as_posix() for path in dataset.paths or ()]
    if labels_csv is not None:
        dataset = _with_labels(dataset, shown, root, labels_csv)
    events = seed_events(dataset)
    given = settings.get("n_slots") if n_classes is None else n_classes
    config, values = _config(settings, given)
    _check(config, events, dataset)
    health = health_report(dataset)
    for line in health:
        say(line)
    if given is None:
        say("how many classes there are is found out on the way (--classes sets it)")
    else:
        say(f"looking for {given} classes")
    write_json(folder / HEALTH, health)
    _write(folder, root, dataset, shown, events, values)


def read_settings(path: Path) -> tuple[Config, Path]:
    """The settings in ``agcd.toml`` and where the images are."""
    if not path.exists():
        raise ConfigError(f"There is no {path}: the project has lost its settings.")
    values = read_toml(path)
    images = values.pop("images", None)
    if not isinstance(images, str):
        raise ConfigError(f'{path} does not say where the images are: images = "/path/to/folder" is expected.')
    return make_config(values), path.parent / images


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


def _scan(images: Path) -> tuple[Path, Dataset]:
    """The folder that paths are relative to, and what was found."""
    dataset = load_dataset(Path(os.path.abspath(images)))
    if dataset.paths is None:
        raise DataError(f"{images} holds embeddings: a project needs images, in a folder or listed in a manifest.")
    root = Path(os.path.abspath(images))
    return root if root.is_dir() else root.parent, dataset


def _with_labels(dataset: Dataset, shown: Sequence[str], root: Path, labels_csv: Path) -> Dataset:
    """The labels of a CSV in place of those that folders gave; paths start at the images or at the CSV."""
    row_of = {path: row for row, path in enumerate(shown)}
    y_class = np.full(dataset.n_rows, UNLABELLED, dtype=np.int64)
    names: dict[str, int] = {}
    for line, cells in read_table(labels_csv, ("path", "label")):
        if not cells["label"].strip():
            continue
        beside = os.path.relpath(os.path.abspath(labels_csv.parent / cells["path"]), root)
        row = row_of.get(os.path.normpath(cells["path"]), row_of.get(beside))
        if row is None:
            raise DataError(f"{labels_csv}, line {line}: {cells['path']!r} is not one of the usable images in {root}.")
        if y_class[row] >= 0:
            raise DataError(f"{labels_csv}, line {line}: {cells['path']!r} is listed twice; once is expected.")
        y_class[row] = names.setdefault(clean_class_name(cells["label"]), len(names))
    number = {name: c for c, name in enumerate(sorted(names))}
    place = np.array([*(number[name] for name in names), UNLABELLED], dtype=np.int64)  # −1 picks the last entry
    return replace(dataset, classes=tuple(number), y_class=place[y_class])


def _config(settings: dict[str, Any], n_slots: int | None) -> tuple[Config, dict[str, Any]]:
    """The settings with the number of classes, typed and as plain values; a weights file gets its full path."""
    values = settings if n_slots is None else {**settings, "n_slots": n_slots}
    if "weights" in values.get("backbone", {}):
        values["backbone"] = {**values["backbone"], "weights": os.path.abspath(values["backbone"]["weights"])}
    return make_config(values), values


def _check(config: Config, events: Sequence[LabelEvent], dataset: Dataset) -> None:
    """Whatever would stop the first training stops ``init`` already."""
    from agcd.features.backbones import load_backbone
    from agcd.session import check_labels, strategy_settings

    view = LabelView.empty(dataset.is_test).after(events)
    check_names(view.registry)
    labels, _ = view.state()
    check_labels(labels, config.n_slots or max(2, labels.n_old))
    strategy_settings(config.query)
    load_backbone(config.backbone)


def _write(
    folder: Path,
    root: Path,
    dataset: Dataset,
    shown: Sequence[str],
    events: Sequence[LabelEvent],
    values: dict[str, Any],
) -> None:
    with atomic_write(folder / RECORDS) as aside:
        with Store(aside, create=True) as store, store.transaction():
            store.add_rows(dataset.keys, shown, dataset.is_test)
            store.add_quarantine(dataset.quarantine)
            store.append(events)
        with atomic_write(folder / CONFIG) as config_aside:
            config_aside.write_text(to_toml({"images": str(root), **values}), encoding="utf-8")


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
