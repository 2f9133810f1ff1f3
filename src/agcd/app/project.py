"""The project folder: ``agcd.toml`` and ``project.db`` are the truth, ``runs/`` follows, ``cache/`` may go."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Container
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from agcd.app.create import CONFIG, RECORDS, create_project, read_settings
from agcd.app.label_log import LabelLog
from agcd.app.labels import LabelView
from agcd.app.live import LiveLog
from agcd.app.questions import QueryLog
from agcd.app.rounds import START, RoundView, adopt_old_cache, has_round_view, open_round_view, round_view_of_run
from agcd.app.snapshot import Snapshot
from agcd.app.store.seals import RESTORE
from agcd.app.store.store import Store
from agcd.config import Config
from agcd.errors import ConfigError, DataError, StorageError
from agcd.io import read_sealed, write_sealed
from agcd.run_files import CONFIG as RUN_CONFIG
from agcd.run_files import DONE, METRICS, read_checked
from agcd.types import UNLABELLED, BoolArray, Dataset, LabelState, NumberOfClasses

if TYPE_CHECKING:
    from agcd.engine import Engine

N_CLASSES = "n_classes.json"
Rows = tuple[tuple[str, ...], tuple[str, ...], BoolArray]
"""Content keys, paths and which rows are for testing, each by row."""


class Project:
    """An open project; close it, or use it in a ``with`` block.

    It reads. What people change goes through ``agcd.app.answers``; training, asking and predicting, which need torch,
    are functions of ``agcd.app.model``.
    """

    def __init__(self, folder: Path, store: Store, config: Config, images: Path) -> None:
        self.folder, self.store, self.config, self.images = folder, store, config, images
        self.engine: Engine | None = None
        """Where features are computed and rounds are trained; None does both here."""
        self.keys, self.paths, self.is_test = store.rows()
        self.n_test, self.n_set_aside = int(self.is_test.sum()), len(store.quarantine())
        self._log, self._queries, self.live = LabelLog(self.is_test), QueryLog(), LiveLog()

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
            if (folder / CONFIG).exists() or (folder / "runs").exists():
                raise StorageError(f"The project at {folder} has lost its {RECORDS}: {RESTORE}.")
            raise DataError(f"There is no project at {folder}: make one with agcd init.")
        config, images = read_settings(folder / CONFIG)
        adopt_old_cache(folder)
        return cls(folder, Store(folder / RECORDS), config, images)

    def with_store(self, store: Store) -> Self:
        """The same project through another connection, for another thread; what was read of it is shared."""
        other = copy.copy(self)
        other.store = store
        return other

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    @property
    def n_rows(self) -> int:
        return len(self.keys)

    # ------------------------------------------------------------------------------------------ what people say

    @property
    def log(self) -> LabelLog:
        return self._log

    def labels(self) -> LabelView:
        """What people say now."""
        return self._log.view(self.store)

    def label_state(self, number: int | None = None) -> tuple[LabelState, tuple[str, ...]]:
        """What training reads, and the id of each class number: now, or what round ``number`` knew when it began."""
        runs, now = self.store.runs(), self.labels()
        then = self._log.at(now, {runs[one] for one in (0, number) if one in runs})
        view = now if number is None else then[runs[number]]
        # The slots of the classes that base training knew are theirs for ever.
        return view.state(then[runs[0]].carried if 0 in runs else None)

    def labels_of_round(self, number: int) -> LabelView:
        """What people had said when round ``number`` began: all that it learned from."""
        event = self.store.runs()[number]
        return self._log.at(self.labels(), {event})[event]

    # -------------------------------------------------------------------------------------------------- rounds

    def run_folder(self, number: int) -> Path:
        return self.folder / "runs" / f"{number:03d}"

    def metrics(self, number: int) -> dict[str, Any]:
        """What a finished round measured of itself."""
        found: dict[str, Any] = read_checked(self.run_folder(number), METRICS)
        return found

    @property
    def n_finished(self) -> int:
        """How many rounds are done, counting base training."""
        return self._count_finished(self.store.runs())

    def _count_finished(self, begun: Container[int]) -> int:
        number = 0
        while number in begun and (self.run_folder(number) / DONE).exists():
            number += 1
        return number

    @property
    def last_round(self) -> int:
        """The number of the last finished round; it is an error if there is none."""
        number = self.n_finished - 1
        if number < 0:
            raise ConfigError(f"Nothing is trained yet: run agcd train {self.folder} first.")
        return number

    def round_view(self, number: int) -> RoundView | None:
        """What a finished round says, or None where cache/ has lost it."""
        return open_round_view(self.folder, number)

    def snapshot(self, before: Snapshot | None = None) -> Snapshot:
        """The present moment; ``before`` is given back where nothing has changed since."""
        labels, runs = self.labels(), self.store.runs()
        n_finished, asked = self._count_finished(runs), self._queries.asked(self.store)
        numbers = (number for number in range(n_finished - 1, START - 1, -1) if has_round_view(self.folder, number))
        number = next(numbers, None)
        shown = before.round if before and before.round and before.round.number == number else None
        same_view = before is not None and number == (before.round.number if before.round else None)
        if before and same_view and before.labels is labels and (before.runs, before.asked) == (runs, asked):
            return before
        if shown is None and number is not None:
            shown = self.round_view(number)
        learned = self._log.at(labels, {runs[0], runs[n_finished - 1]})[runs[n_finished - 1]] if n_finished else None
        return Snapshot(labels, shown, runs, n_finished, learned, asked, self.live)

    def trained_snapshot(self) -> Snapshot:
        """The present moment of a project that has been trained; what cache/ has lost is read from the last run."""
        snapshot, number = self.snapshot(), self.last_round
        if snapshot.round is not None and snapshot.round.number == number:
            return snapshot
        state, class_ids = self.label_state(number)
        view = round_view_of_run(self.run_folder(number), number, class_ids, state.n_old, self.is_test)
        return replace(snapshot, round=view)

    def checked_run(self, number: int) -> Path:
        """The folder of a finished round, which must have been trained on features like ours."""
        folder = self.run_folder(number)
        stored = read_checked(folder, RUN_CONFIG)["settings"]["backbone"]
        own = self.config.backbone.model_dump(mode="json")
        for key in ("name", "weights", "image_size", "trainable_blocks"):
            if stored[key] != own[key]:
                raise ConfigError(
                    f"{folder} was trained with backbone.{key} = {stored[key]!r}, agcd.toml now says {own[key]!r}: "
                    "put it back, or make a new project."
                )
        return folder

    # ------------------------------------------------------------------------------------- the number of classes

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
        estimate = self.estimated_classes()
        return estimate.n if estimate else None

    def estimated_classes(self) -> NumberOfClasses | None:
        """The number of classes that was estimated, if it was; where the file is lost, what the first round took it
        for."""
        try:
            return NumberOfClasses.from_json(read_sealed(self.folder / N_CLASSES))
        except (OSError, ValueError, KeyError, TypeError):
            if self.config.n_slots is not None or not (self.run_folder(0) / DONE).exists():
                return None
            n = int(read_checked(self.run_folder(0), RUN_CONFIG)["n_slots"])
            return NumberOfClasses(n, n, n, ())

    def keep_estimate(self, estimate: NumberOfClasses) -> None:
        """Store how many classes there seem to be, beside the settings."""
        write_sealed(self.folder / N_CLASSES, estimate.to_json())

    # -------------------------------------------------------------------------------------------------- images

    def reload(self) -> None:
        """Read the settings again."""
        self.config = read_settings(self.folder / CONFIG)[0]

    def dataset(self) -> Dataset:
        """The rows as they were scanned; labels are in the events, not here."""
        if not self.images.is_dir():
            raise DataError(
                f"There is no folder {self.images}: set 'images' in {self.folder / CONFIG} to its new place."
            )
        y_class = np.full(self.n_rows, UNLABELLED, dtype=np.int64)
        paths = tuple(self.images / path for path in self.paths)
        return Dataset(os.path.basename(self.images), (), y_class, self.is_test, self.keys, paths)
