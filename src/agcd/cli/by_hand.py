"""A benchmark's data as a project: the same images or texts, labels and base model, to be labelled by a person.

This joins the researcher's room to the practitioner's, which do not know each other; so it stands above both.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from agcd.app.model import ask, train
from agcd.app.project import Project
from agcd.data.tables import write_table
from agcd.errors import DataError
from agcd.lab.cells import Cell, Loaded, load, open_session, prepare


def make_project(cell: Cell, folder: Path, out: Path, cache_dir: Path) -> Project:
    """The project of a cell at ``folder``, made, trained and asked as the benchmark was; opened where it is there.

    Features and base training are taken over from the benchmark in ``out``, so this takes seconds.
    """
    if (folder / "project.db").exists():
        return Project.open(folder)
    loaded = load(cell, cache_dir)
    settings = {**cell.settings, "seed": cell.seed, "query": dict(cell.config.query.model_dump(exclude_none=True))}
    if loaded.dataset.texts is not None:
        write_table(folder / "texts.csv", _text_table(loaded))
        project = Project.create(folder, folder / "texts.csv", None, loaded.n_slots, settings, kind="text")
    else:
        root = _image_root(loaded)
        write_table(folder / "labels.csv", _known_labels(loaded, root))
        project = Project.create(folder, root, folder / "labels.csv", loaded.n_slots, settings)
    _take_over(cell, project, out, cache_dir)
    train(project)
    ask(project)
    return project


def _text_table(loaded: Loaded) -> dict[str, list[str]]:
    """Every text where it stood, with the labels that are known at the start."""
    dataset, labels = loaded.dataset, loaded.labels
    seeds = set(labels.seed_rows.tolist())
    return {
        "id": list(dataset.where or ()),
        "text": list(dataset.texts or ()),
        "label": [labels.classes[labels.y_class[row]] if row in seeds else "" for row in range(dataset.n_rows)],
        "split": ["test" if test else "train" for test in dataset.is_test.tolist()],
    }


def _image_root(loaded: Loaded) -> Path:
    paths = loaded.dataset.paths
    if paths is None:
        raise DataError(f"{loaded.dataset.name} holds neither images nor texts: there is nothing to show to a person.")
    return Path(os.path.commonpath([path.parent for path in paths]))


def _known_labels(loaded: Loaded, root: Path) -> dict[str, list[str]]:
    dataset, labels = loaded.dataset, loaded.labels
    assert dataset.paths is not None
    return {
        "path": [dataset.paths[row].relative_to(root).as_posix() for row in labels.seed_rows],
        "label": [labels.classes[labels.y_class[row]] for row in labels.seed_rows],
    }


def _take_over(cell: Cell, project: Project, out: Path, cache_dir: Path) -> None:
    """Put the benchmark's features and base run where the project looks for its own; training checks that they fit."""
    shutil.copytree(cache_dir / "features", project.folder / "cache" / "features", copy_function=_link)
    base = open_session(cell, prepare(cell, cache_dir), out).train()
    assert base.folder is not None
    shutil.copytree(base.folder, project.run_folder(0), ignore=shutil.ignore_patterns(".lock"))


def _link(source: str, target: str) -> None:
    """Features are never changed in place, so that two folders may share them on the disk."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
