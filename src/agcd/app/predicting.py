"""The classes of images that are not in the project, chunk by chunk, here or on the workers of an engine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agcd.app.export.tables import shown_name
from agcd.app.model import checked_run
from agcd.arrays import margin_of
from agcd.config import BackboneConfig
from agcd.data.folder import from_folder
from agcd.data.items import Item, image_dataset
from agcd.engine import open_engine
from agcd.errors import DataError
from agcd.features.backbones import load_backbone
from agcd.features.rows import OnlineRows
from agcd.training.fitted import Fitted
from agcd.types import UNLABELLED, BoolArray, Dataset

if TYPE_CHECKING:
    from agcd.app.project import Project

_CHUNK = 512
_MODEL_COLUMNS = ("class", "novel", "probability", "margin")
Chunk = list[tuple[str, str]]
"""Paths and content keys."""


def predict(project: Project, new_images: Sequence[Path]) -> dict[str, list[Any]]:
    """Class, old or new, probability and margin of images from elsewhere; unusable ones have a reason instead."""
    names, novel = project.slot_names()  # refuses where nothing is trained
    model = (checked_run(project, project.n_finished - 1) / "model.safetensors").absolute()
    dataset, shown = _new_dataset(new_images)
    files = [(str(path.absolute()), key) for path, key in zip(dataset.paths or (), dataset.keys, strict=True)]
    chunks = [files[i : i + _CHUNK] for i in range(0, len(files), _CHUNK)]
    engine = project.engine or open_engine()
    make = partial(Predictor, project.config.backbone, model, names, novel)
    answers = dict(engine.map_chunks(make, chunks))
    lines = [line for position in range(len(chunks)) for line in answers[position]]
    rows = [[path, *line] for path, line in zip(shown, lines, strict=True)]
    rows += [[refused.path, *[None] * len(_MODEL_COLUMNS), refused.reason] for refused in dataset.quarantine]
    rows.sort(key=lambda row: row[-1] is not None)  # the unusable ones last
    columns = ("path", *_MODEL_COLUMNS, "problem")
    return {name: [row[i] for row in rows] for i, name in enumerate(columns)}


class Predictor:
    """A stored model, opened once, for chunks of files; ``names`` and ``novel`` are those of its slots."""

    def __init__(self, config: BackboneConfig, model: Path, names: list[str | None], novel: BoolArray) -> None:
        self._backbone, self._model, self._names, self._novel = load_backbone(config), model, names, novel
        self._fitted: Fitted | None = None

    def __call__(self, chunk: Chunk) -> list[list[Any]]:
        """Class, old or new, probability, margin and problem of every file."""
        # New images are looked at once: their features are not worth a place on the disk.
        features = OnlineRows(_unlabelled(chunk), self._backbone)
        self._fitted = self._fitted or Fitted.load(self._model, features)
        prediction = self._fitted.predict(features, np.arange(features.n_rows))
        slots, sure = prediction.y_slot.tolist(), prediction.probs.max(1).tolist()
        lines: list[list[Any]] = [
            [shown_name(self._names, slot), bool(self._novel[slot]), probability, margin, None]
            for slot, probability, margin in zip(slots, sure, margin_of(prediction.probs).tolist(), strict=True)
        ]
        for row, reason in features.bad_rows.items():
            lines[row] = [*[None] * len(_MODEL_COLUMNS), reason]
        return lines


def _unlabelled(chunk: Chunk) -> Dataset:
    n = len(chunk)
    paths, keys = tuple(Path(path) for path, _ in chunk), tuple(key for _, key in chunk)
    return Dataset("new images", (), np.full(n, UNLABELLED, dtype=np.int64), np.zeros(n, dtype=bool), keys, paths)


def _new_dataset(new_images: Sequence[Path]) -> tuple[Dataset, list[str]]:
    """The images and how their paths are shown."""
    if len(new_images) == 1 and new_images[0].is_dir():
        dataset = from_folder(new_images[0])
        return dataset, [path.relative_to(new_images[0]).as_posix() for path in dataset.paths or ()]
    for path in new_images:
        if not path.is_file():
            raise DataError(f"{path} is not an image file; give one folder, or files.")
    items = [Item(path, str(path), None) for path in new_images]
    dataset = image_dataset("new images", items, otherwise="None of the given files is a usable image")
    return dataset, [str(path) for path in dataset.paths or ()]
