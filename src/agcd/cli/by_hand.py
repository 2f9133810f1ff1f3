"""A benchmark's data as a project: the same images, labels and base model, to be labelled by a person.

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
from agcd.io import atomic_write
from agcd.lab.cells import Cell, Loaded, load, open_session, prepare


def make_project(cell: Cell, folder: Path, out: Path, cache_dir: Path) -> Project:
    """The project of a cell at ``folder``, made, trained and asked as the benchmark was; opened where it is there.

    Features and base training are taken over from the benchmark in ``out``, so this takes seconds.
    """
    if (folder / "project.db").exists():
        return Project.open(folder)
    loaded = load(cell, cache_dir)
    root = _image_root(loaded)
    with atomic_write(folder / "labels.csv") as aside:
        write_table(aside, _known_labels(loaded, root))
    settings = {**cell.settings, "seed": cell.seed, "query": dict(cell.config.query.model_dump(exclude_none=True))}
    project = Project.create(folder, root, folder / "labels.csv", loaded.n_slots, settings)
    _take_over(cell, project, out, cache_dir)
    train(project)
    ask(project)
    return project


def _image_root(loaded: Loaded) -> Path:
    paths = loaded.dataset.paths
    if paths is None:
        raise DataError(f"{loaded.dataset.name} holds no images: there is nothing to show to a person.")
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
