"""What all requests share: the project's rows, its records, the last round's arrays and the work in the background."""

from __future__ import annotations

import queue
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from agcd.app.create import CONFIG, HEALTH, read_settings
from agcd.app.jobs import Jobs
from agcd.app.project import Project
from agcd.app.rounds import Atlas, has_atlas, open_atlas
from agcd.app.store.standing import Follower
from agcd.app.store.store import Store
from agcd.app.web.images import Pictures
from agcd.app.web.snapshot import Look
from agcd.errors import ConfigError, DataError
from agcd.io import read_json
from agcd.types import IntArray

_KEPT_LISTS = 50


class Desk:
    """One project, open for as long as the server runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = Project.open(folder)
        self.jobs = Jobs(folder)
        self.pictures = Pictures(
            self.project.paths, self.project.keys, self.project.images, folder / "cache" / "thumbs"
        )
        health = folder / HEALTH
        self.health: list[str] = read_json(health) if health.exists() else []
        self.n_test = int(self.project.is_test.sum())
        self.n_set_aside = len(self.project.store.quarantine())
        self._follower = Follower()
        self._stores: queue.SimpleQueue[Store] = queue.SimpleQueue()
        self._lists: OrderedDict[str, IntArray] = OrderedDict()
        self._lock = threading.Lock()
        self._look: Look | None = None
        # Every request has a thread already. On a busy machine the threads of one product of matrices wait long for
        # each other (two cores: 2 s instead of 20 ms for the eigenvectors that a split needs).
        self._one_thread = threadpool_limits(1, "blas")

    def reload(self) -> None:
        """Read the settings again."""
        self.project.config = read_settings(self.folder / CONFIG)[0]

    def close(self) -> None:
        self.project.close()
        self._one_thread.restore_original_limits()
        while not self._stores.empty():
            self._stores.get_nowait().close()

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    @property
    def n_rows(self) -> int:
        return len(self.project.keys)

    @contextmanager
    def store(self) -> Iterator[Store]:
        """The records, for this thread alone until the block ends."""
        try:
            store = self._stores.get_nowait()
        except queue.Empty:
            store = Store(self.project.store.path)
        try:
            yield store
        finally:
            self._stores.put(store)

    def look(self, store: Store) -> Look:
        """The present moment. Between the end of a round and its atlas the one before is shown."""
        standing, number = self._follower.standing(store), self._newest_atlas(self.n_finished(store) - 1)
        with self._lock:
            look = self._look
            atlas = look.atlas if look is not None else None
            if (atlas.number if atlas else None) != number:
                atlas = open_atlas(self.folder, number) if number is not None else None
            if look is None or look.standing is not standing or look.atlas is not atlas:
                look = self._look = Look(standing, atlas, self.project.is_test, self.pictures)
            return look

    def _newest_atlas(self, last: int) -> int | None:
        return next((number for number in range(last, -1, -1) if has_atlas(self.folder, number)), None)

    def n_finished(self, store: Store) -> int:
        """Rounds done, base training included."""
        begun, number = store.runs(), 0
        while number in begun and (self.project.run_folder(number) / "done.json").exists():
            number += 1
        return number

    def trained_look(self, store: Store) -> tuple[Look, Atlas]:
        """The present moment of a project that has been trained."""
        look = self.look(store)
        if look.atlas is None:
            raise ConfigError("Nothing is trained yet: start the training first.")
        return look, look.atlas

    def check_rows(self, rows: list[int]) -> IntArray:
        """Rows that a request named: known ones only, each once."""
        if any(row >= self.n_rows for row in rows):
            raise DataError(f"There is no row {max(rows)}.")
        return np.unique(np.asarray(rows, np.int64))

    def keep(self, name: str, rows: IntArray) -> None:
        """Remember a list of rows for later requests; the oldest lists are forgotten."""
        with self._lock:
            self._lists[name] = rows
            self._lists.move_to_end(name)
            while len(self._lists) > _KEPT_LISTS:
                self._lists.popitem(last=False)

    def kept(self, name: str) -> IntArray:
        with self._lock:
            if name not in self._lists:
                raise DataError("That selection is forgotten: choose the pictures again.")
            return self._lists[name]
