"""A small project on toy images: three known classes, two hidden ones, settings that train in a second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agcd.app.answers import Answer, write_answers
from agcd.app.export.row_tables import prediction_table
from agcd.app.project import Project
from agcd.app.store.queries import StoredQuery
from support.datasets import toy_images

SETTINGS: dict[str, Any] = {
    "backbone": {"name": "toy", "image_size": 32, "views": 2},
    "train": {"base_epochs": 2, "round_epochs": 2, "batch_size": 32, "projector_width": 16, "projector_dim": 8},
}
N_IMAGES = 50


def partly_labelled(folder: Path) -> Path:
    """``<class>/`` with three images each of three classes; the other images, of five, in ``unlabelled/``."""
    toy_images(folder / "all", n_classes=5, n_per_class=10)
    images = folder / "images"
    for c, source in enumerate(sorted((folder / "all").iterdir())):
        for i, path in enumerate(sorted(source.iterdir())):
            known = images / source.name / path.name
            target = known if c < 3 and i < 3 else images / "unlabelled" / f"{source.name}-{path.name}"
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
    return images


def make_project(folder: Path, settings: dict[str, Any] = SETTINGS, n_classes: int | None = 5) -> Project:
    return Project.create(folder / "project", partly_labelled(folder), n_classes=n_classes, settings=settings)


def truth(path: str) -> str:
    """The class of an image of ``partly_labelled``, from its path."""
    folder, _, name = path.rpartition("/")
    return name.rpartition("-")[0] if folder in ("", "unlabelled") else folder


def true_answers(project: Project, query: StoredQuery) -> list[Answer]:
    return [Answer(question.row, truth(project.paths[question.row])) for question in query.questions]


def answer_all(project: Project, n: int = 6) -> None:
    from agcd.app.model import ask  # it loads torch, which a serving process must not

    write_answers(project, true_answers(project, ask(project, n)))


def work_through(folder: Path) -> None:
    """Train and answer until three rounds are finished, from wherever the project stands."""
    from agcd.app.model import train

    with Project.open(folder) as project:
        while project.n_finished < 3:
            if project.snapshot().is_due:
                train(project)
            else:
                answer_all(project, 4)


def predictions(project: Project) -> dict[str, list[Any]]:
    """What is said of every image now, by column."""
    return prediction_table(project, project.trained_snapshot())
