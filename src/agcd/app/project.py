"""The project folder: ``agcd.toml`` and ``project.db`` are the truth, ``runs/`` follows, ``cache/`` may go."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from agcd.app.answers import Answer, Told, undo_last, write_answers
from agcd.app.create import CONFIG, RECORDS, create_project, read_settings
from agcd.app.estimate import read_estimate
from agcd.app.export.tables import prediction_table
from agcd.app.status import Status, status_of
from agcd.app.store.events import Source
from agcd.app.store.fold import fold_with_ids
from agcd.app.store.queries import StoredQuery
from agcd.app.store.store import Store
from agcd.config import Config
from agcd.errors import ConfigError, DataError
from agcd.io import read_json
from agcd.types import UNLABELLED, BoolArray, Dataset, LabelState, NumberOfClasses

if TYPE_CHECKING:
    from agcd.app.model import Trained
    from agcd.engine import Engine
    from agcd.training.loop import Log

Rows = tuple[tuple[str, ...], tuple[str, ...], BoolArray]
"""Content keys, paths and which rows are for testing, each by row."""


class Project:
    """An open project; close it, or use it in a ``with`` block. Only training, asking and predicting load torch."""

    def __init__(self, folder: Path, store: Store, config: Config, images: Path, rows: Rows | None = None) -> None:
        self.folder, self.store, self.config, self.images = folder, store, config, images
        self.engine: Engine | None = None
        """Where features are computed and rounds are trained; None does both here."""
        self.keys, self.paths, self.is_test = rows or store.rows()

    @property
    def rows(self) -> Rows:
        return self.keys, self.paths, self.is_test

    @classmethod
    def create(
        cls,
        folder: Path,
        images: Path,
        labels_csv: Path | None = None,
        n_classes: int | None = None,
        settings: dict[str, Any] | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> Self:
        """Scan ``images`` and make the project; ``say`` gets the health report. Nothing is written on an error."""
        create_project(folder, images, labels_csv, n_classes, settings or {}, say)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The project at ``folder``."""
        if not (folder / RECORDS).is_file():
            raise DataError(f"There is no project at {folder}: make one with agcd init.")
        config, images = read_settings(folder / CONFIG)
        return cls(folder, Store(folder / RECORDS), config, images)

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def train(self, echo: Log | None = None) -> Trained:
        """Train the next round if there is something new to learn; a broken-off round is continued."""
        from agcd.app import model

        return model.train(self, echo)

    def estimate(self) -> NumberOfClasses:
        """How many classes there seem to be; kept, and used where none is given."""
        from agcd.app import model

        return model.estimate_classes(self, model.row_features(self))

    def ask(self, n: int | None = None) -> StoredQuery:
        """The ``n`` images (default: as configured) whose labels would help most; the query is stored."""
        from agcd.app import model

        return model.ask(self, n)

    def tell(self, answers: Sequence[Answer], who: str = "me", source: Source = "import") -> Told:
        """Store answers, all or none; what this person has said already is not stored again."""
        return write_answers(self.store, answers, who, source)

    def undo(self) -> str:
        """Take back the last answer, batch of answers or change of classes; says what it was."""
        return undo_last(self.store).what

    def status(self) -> Status:
        """Where the project stands."""
        return status_of(self)

    def predictions(self) -> dict[str, list[Any]]:
        """What the last round says about every image, by column; people's labels come before the model's."""
        return prediction_table(self)

    def predict(self, new_images: Sequence[Path]) -> dict[str, list[Any]]:
        """Classes of images that are not in the project: one folder, or files."""
        from agcd.app.predicting import predict

        return predict(self, new_images)

    def export(self, out: Path, *, onnx: bool = False) -> list[Path]:
        """Write labels, predictions and the classifier, each in several formats; returns the files."""
        from agcd.app.export.files import export_all

        return export_all(self, out, onnx=onnx)

    @property
    def n_slots(self) -> int:
        """Classes to look for: as given, else as estimated."""
        known = self.n_slots_known
        if known is None:
            raise ConfigError(f"Nothing is known of the number of classes yet: run agcd train {self.folder} first.")
        return known

    @property
    def n_slots_known(self) -> int | None:
        """``n_slots``, or None where nobody has given it and it is not estimated yet."""
        if self.config.n_slots is not None:
            return self.config.n_slots
        estimate = read_estimate(self.folder)
        return estimate.n if estimate else None

    def labels(self, upto: int | None = None) -> tuple[LabelState, tuple[str, ...]]:
        """What was said up to an event, and the id of each class number."""
        return fold_with_ids(self.store.events(upto), self.is_test, self.store.runs().get(0))

    def dataset(self) -> Dataset:
        """The rows as they were scanned; labels are in the events, not here."""
        if not self.images.is_dir():
            raise DataError(
                f"There is no folder {self.images}: set 'images' in {self.folder / CONFIG} to its new place."
            )
        y_class = np.full(len(self.keys), UNLABELLED, dtype=np.int64)
        paths = tuple(self.images / path for path in self.paths)
        return Dataset(os.path.basename(self.images), (), y_class, self.is_test, self.keys, paths)

    def run_folder(self, number: int) -> Path:
        return self.folder / "runs" / f"{number:03d}"

    @property
    def n_finished(self) -> int:
        """How many rounds are done, counting base training."""
        begun, number = self.store.runs(), 0
        while number in begun and (self.run_folder(number) / "done.json").exists():
            number += 1
        return number

    @property
    def in_training(self) -> bool:
        """Whether a round was begun and is not finished."""
        return self.n_finished in self.store.runs()

    @property
    def is_due(self) -> bool:
        """Whether training would learn something: the labels differ from those of the last finished round."""
        number = self.n_finished
        if number == 0 or self.in_training:
            return True
        then, now = (self.labels(upto)[0] for upto in (self.store.runs()[number - 1], None))
        return not np.array_equal(then.y_class, now.y_class)

    def slot_names(self) -> tuple[list[str | None], BoolArray]:
        """The present name of each slot of the last round, or None, and whether the slot is novel."""
        number = self.n_finished - 1
        if number < 0:
            raise ConfigError(f"Nothing is trained yet: run agcd train {self.folder} first.")
        folder = self.run_folder(number)
        n_slots: int = read_json(folder / "metrics.json")["n_slots"]
        slot_of_class: list[int] = read_json(folder / "mapping.json")["last"]["slot_of_class"]
        labels, class_ids = self.labels(self.store.runs()[number])
        registry = self.store.registry()
        names: list[str | None] = [None] * n_slots
        novel = np.arange(n_slots) >= labels.n_old
        for class_id, slot in zip(class_ids, slot_of_class, strict=True):
            info = registry.resolve(class_id)
            names[slot], novel[slot] = info.name, not info.is_old
        return names, novel
