"""How large a project is or would be, for ``agcd estimate``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from agcd.app.create import RECORDS
from agcd.app.kinds import IMAGE
from agcd.app.project import Project
from agcd.config import Config, make_config
from agcd.engine.costs import Size, mean_length, size_of
from agcd.errors import ConfigError
from agcd.types import Dataset

_CLASSES = 100
_LABELLED_SHARE = 10


class Sized(NamedTuple):
    """Settings, sizes, and the size of an embedding where the data are embeddings."""

    config: Config
    size: Size
    dim: int | None


def sized(
    data: str | None,
    n_images: int | None,
    n_classes: int | None,
    values: dict[str, Any],
    load: Callable[[str], Dataset],
) -> Sized:
    """The sizes of a project or a data set, or those of ``n_images`` images of which a tenth are labelled.

    ``load`` reads a data set that is no project.
    """
    if (data is None) == (n_images is None):
        raise ConfigError("Give either a data set or --images, the number of images.")
    if data is not None and (Path(data) / RECORDS).is_file():
        if values:
            raise ConfigError(f"{data} is a project and has its own settings: change them in its agcd.toml.")
        return _project(Path(data), n_classes)
    config = make_config(values)
    if n_images is not None:
        n_slots = n_classes or config.n_slots or _CLASSES
        return Sized(config, Size(n_images, 0, n_slots, n_images // _LABELLED_SHARE), None)
    assert data is not None
    dataset = load(data)
    size = size_of(dataset, n_classes or config.n_slots or max(2, len(dataset.classes)))
    return Sized(config, size, None if dataset.x is None else dataset.x.shape[1])


def with_labels(found: Sized, n_labels: int | None) -> Sized:
    """The same with another number of labels at the start."""
    if n_labels is None:
        return found
    return found._replace(size=replace(found.size, n_labelled=min(n_labels, found.size.n_train)))


def _project(folder: Path, n_classes: int | None) -> Sized:
    with Project.open(folder) as project:
        labels, _ = project.label_state()
        n_slots = n_classes or project.n_slots_known or max(2, 2 * labels.n_old)
        size = Size(len(labels.train_rows), int(project.is_test.sum()), n_slots, len(labels.labelled_rows))
        if project.kind.name == IMAGE and not project.has_given_embeddings:
            return Sized(project.config, size, None)
        data = project.dataset()
        if data.x is not None:
            return Sized(project.config, size, data.x.shape[1])
        return Sized(project.config, replace(size, n_chars=mean_length(data)), None)
