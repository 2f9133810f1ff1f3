"""The project folder: ``agcd.toml`` and ``project.db`` are the truth, ``runs/`` follows, ``cache/`` may go."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from agcd.app.create import CONFIG, RECORDS, create_project, read_kind, read_settings
from agcd.app.embeddings import has_given_embeddings, read_given_embeddings
from agcd.app.image_paths import picture_path
from agcd.app.kinds import IMAGE, ItemKind, Picture
from agcd.app.label_log import LabelLog
from agcd.app.labels import LabelView
from agcd.app.live import LiveLog
from agcd.app.questions import QueryLog
from agcd.app.round_files import adopt_old_cache, open_round_view, round_version, round_view_of_run
from agcd.app.rounds import START, RoundView
from agcd.app.row_log import RowLog
from agcd.app.snapshot import Snapshot
from agcd.app.store.seals import RESTORE
from agcd.app.store.store import Store
from agcd.config import Config
from agcd.data.reading import DEFAULT_OPTIONS, Choose, SourceOptions, refuse_doubt
from agcd.errors import ConfigError, DataError, StorageError
from agcd.io import read_sealed, write_sealed
from agcd.run_files import CONFIG as RUN_CONFIG
from agcd.run_files import DONE, METRICS, read_checked
from agcd.types import UNLABELLED, BoolArray, Dataset, LabelState, NumberOfClasses

if TYPE_CHECKING:
    from agcd.engine import Engine

N_CLASSES = "n_classes.json"


class Project:
    """An open project; close it, or use it in a ``with`` block.

    It reads. What people change goes through ``agcd.app.answers``; training, asking and predicting, which need torch,
    are functions of ``agcd.app.model``.
    """

    def __init__(self, folder: Path, store: Store, config: Config, images: Path, kind: ItemKind) -> None:
        self.folder, self.store, self.config, self.images, self.kind = folder, store, config, images, kind
        self.engine: Engine | None = None
        """Where features are computed and rounds are trained; None does both here."""
        self.row_log = RowLog(store, kind)
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
        options: SourceOptions = DEFAULT_OPTIONS,
        choose: Choose = refuse_doubt,
        kind: str = IMAGE,
        embeddings: Path | None = None,
    ) -> Self:
        """Scan the items at ``images`` and make the project; ``say`` gets what was understood. Nothing is written on an
        error.

        ``options`` and ``choose`` say how items of this ``kind`` are read, and decide where that is not sure.
        """
        create_project(folder, images, labels_csv, n_classes, settings or {}, say, options, choose, kind, embeddings)
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
        return cls(folder, Store(folder / RECORDS), config, images, read_kind(folder))

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
    def keys(self) -> tuple[str, ...]:
        """The key of each row's content."""
        return self.row_log.rows.keys

    @property
    def paths(self) -> tuple[str, ...]:
        """The path of each row, as it is stored (``agcd.app.image_paths``)."""
        return self.row_log.rows.paths

    @property
    def is_test(self) -> BoolArray:
        """(n,) rows that are for testing."""
        return self.row_log.rows.is_test

    @property
    def n_rows(self) -> int:
        return len(self.keys)

    @property
    def n_set_aside(self) -> int:
        """Files that were found and cannot be used."""
        return self.store.n_quarantined

    def contents(self) -> Sequence[str]:
        """What the rows hold, by row; "" of rows that are files (``agcd.app.kinds``)."""
        return self.row_log.contents(self.store)

    def picture(self, row: int) -> Picture | None:
        """The picture of ``row``, if it has one."""
        return self.kind.picture(self.paths[row], self.keys[row], self.contents()[row])

    def picture_file(self, row: int) -> tuple[Path, str] | None:
        """Where the picture of ``row`` lies, and the key of its content."""
        found = self.picture(row)
        return None if found is None else (self._place(found.path), found.key)

    def picture_path(self, row: int) -> Path:
        """Where the file of ``row`` lies."""
        return self._place(self.paths[row])

    def _place(self, stored: str) -> Path:
        return picture_path(stored, self.images, self.folder)

    # ------------------------------------------------------------------------------------------ what people say

    @property
    def log(self) -> LabelLog:
        return self._log

    def labels(self) -> LabelView:
        """What people say now, of all rows that there are now."""
        view = self._log.view(self.store)
        self.row_log.follow(self.store, view.n_rows)
        return view

    def label_state(self, number: int | None = None, *, all_rows: bool = False) -> tuple[LabelState, tuple[str, ...]]:
        """What training reads, and the id of each class number: now, or what round ``number`` knew when it began, of
        the rows that there were then or, with ``all_rows``, of those that were added since as well."""
        runs, now = self.store.runs(), self.labels()
        then = self._log.at(now, {runs[one] for one in (0, number) if one in runs})
        view = now if number is None else then[runs[number]]
        view = view.with_rows(now.is_test) if all_rows else view
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
        """What a finished round says, or None where cache/ has lost it; rows that came later have nothing."""
        return self._view_over(number, self.labels().n_rows)

    def _view_over(self, number: int, n_rows: int) -> RoundView | None:
        """The view of a round over ``n_rows`` rows; None also for one of rows that the records have lost."""
        found = open_round_view(self.folder, number)
        return found.over(n_rows) if found and found.n_rows <= n_rows else None

    def snapshot(self, before: Snapshot | None = None) -> Snapshot:
        """The present moment; ``before`` is given back where nothing has changed since."""
        labels, runs = self.labels(), self.store.runs()
        n_finished, asked = self._count_finished(runs), self._queries.asked(self.store)
        versions = ((n, round_version(self.folder, n)) for n in range(n_finished - 1, START - 1, -1))
        number, version = next(((n, version) for n, version in versions if version), (None, None))
        same_view = before is not None and version == (before.round.version if before.round else None)
        if before and same_view and before.labels is labels and (before.runs, before.asked) == (runs, asked):
            return before
        shown = before.round if before and same_view else None
        if shown is not None:
            shown = shown.over(labels.n_rows)
        elif number is not None:
            shown = self._view_over(number, labels.n_rows)
            if shown is None and self.labels().n_rows > labels.n_rows:  # rows were added since the labels were read
                return self.snapshot(before)
        learned = self._log.at(labels, {runs[0], runs[n_finished - 1]})[runs[n_finished - 1]] if n_finished else None
        return Snapshot(labels, shown, runs, n_finished, learned, asked, self.live, self.kind.noun)

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

    @property
    def has_given_embeddings(self) -> bool:
        """Whether the features came with the items."""
        return has_given_embeddings(self.store)

    def dataset(self, n_rows: int | None = None) -> Dataset:
        """The rows as they were scanned, or the first ``n_rows`` of them; labels are in the events, not here."""
        if self.kind.name == IMAGE and not self.images.is_dir():
            raise DataError(
                f"There is no folder {self.images}: set 'images' in {self.folder / CONFIG} to its new place."
            )
        self.labels()  # rows may have been added
        rows, x = self.row_log.rows, read_given_embeddings(self.folder, self.store)
        fields = self.kind.dataset_fields(self.contents()[:n_rows], rows.paths[:n_rows], self._place)
        return Dataset(
            name=os.path.basename(self.images),
            classes=(),
            y_class=np.full(len(rows.keys[:n_rows]), UNLABELLED, dtype=np.int64),
            is_test=rows.is_test[:n_rows],
            keys=rows.keys[:n_rows],
            x=None if x is None else x[:n_rows],
            **fields,
        )
