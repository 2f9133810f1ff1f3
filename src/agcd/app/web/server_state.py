"""What all requests share: the project, its pictures, the last snapshot and the work in the background."""

from __future__ import annotations

import queue
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from agcd.app.create import read_health
from agcd.app.jobs import Jobs
from agcd.app.kinds import IMAGE
from agcd.app.project import Project
from agcd.app.rounds import RoundView
from agcd.app.snapshot import NO_GROUP, SOURCES, Snapshot
from agcd.app.status import status_of
from agcd.app.store.store import Store
from agcd.app.web.file_names import FileNames
from agcd.app.web.pictures import Pictures
from agcd.app.web.schemas import Cell, Item, State, Thumb
from agcd.errors import ConfigError, DataError
from agcd.types import IntArray

_KEPT_LISTS = 50
_NO_ROWS = np.empty(0, np.int64)


class NoSuchRow(DataError):
    """A row that a request named and that there is not."""


class ServerState:
    """One project, open for as long as the server runs."""

    trains_itself = False
    """Whether training starts by itself (``agcd.app.web.training``)."""

    def __init__(self, folder: Path) -> None:
        self.project = Project.open(folder)
        self.jobs = Jobs(folder)
        self.pictures = Pictures(self.project, folder / "cache" / "thumbs")
        self._files = self._names()
        self.health = read_health(folder)
        self._stores: queue.SimpleQueue[Store] = queue.SimpleQueue()
        self._lists: OrderedDict[str, IntArray] = OrderedDict()
        self._lock = threading.Lock()
        self._snapshot: Snapshot | None = None
        # Every request has a thread already. On a busy machine the threads of one product of matrices wait long for
        # each other (two cores: 2 s instead of 20 ms for the eigenvectors that a split needs).
        self._one_thread = threadpool_limits(1, "blas")

    @property
    def files(self) -> FileNames:
        """The names of the files of all rows that there are now."""
        if self._files.paths is not self.project.paths:
            self._files = self._names()
        return self._files

    def _names(self) -> FileNames:
        texts = [] if self.project.kind.name == IMAGE else self.project.contents()
        return FileNames(self.project.paths, texts)

    def close(self) -> None:
        self.project.close()
        self._one_thread.restore_original_limits()
        while not self._stores.empty():
            self._stores.get_nowait().close()

    @contextmanager
    def opened(self) -> Iterator[Project]:
        """The project with a connection that is this thread's alone until the block ends."""
        try:
            store = self._stores.get_nowait()
        except queue.Empty:
            store = Store(self.project.store.path)
        try:
            yield self.project.with_store(store)
        finally:
            self._stores.put(store)

    def snapshot(self, project: Project) -> Snapshot:
        """The present moment; what was worked out for it is shared until somebody says something or a round ends."""
        snapshot = project.snapshot(self._snapshot)
        self._snapshot = snapshot
        return snapshot

    @contextmanager
    def moment(self) -> Iterator[Snapshot]:
        """The present moment, for requests that only read."""
        with self.opened() as project:
            yield self.snapshot(project)

    def trained_snapshot(self, project: Project) -> tuple[Snapshot, RoundView]:
        """The present moment of a project that has been trained, and its last round."""
        snapshot = self.snapshot(project)
        if snapshot.round is None:
            raise ConfigError("Nothing is trained yet: start the training first.")
        return snapshot, snapshot.round

    @contextmanager
    def trained_moment(self) -> Iterator[tuple[Snapshot, RoundView]]:
        """``trained_snapshot``, for requests that only read."""
        with self.opened() as project:
            yield self.trained_snapshot(project)

    def state(self, project: Project) -> State:
        """Where the project stands, for the bar at the top of every page."""
        snapshot = self.snapshot(project)
        state = State.model_validate(status_of(project, snapshot), from_attributes=True)
        seen = snapshot.round
        live = {"is_live": bool(seen and seen.live), "view": seen.number if seen else None}
        n_added = snapshot.labels.n_rows - project.log.n_first
        health = [*self.health, *([f"{self.project.kind.count(n_added)} added since"] if n_added else [])]
        return state.model_copy(update={"health": health, "trains_itself": self.trains_itself, **live})

    def thumbs(self, snapshot: Snapshot, rows: Iterable[int], *, judged: bool = True) -> list[Thumb]:
        """Pictures with what each counts as now, and where ``judged``, which takes a moment, the chance of that."""
        wanted = np.fromiter(rows, np.int64)
        says, names = snapshot.says(wanted), snapshot.names
        probs: list[float | None] = [None] * len(wanted)
        if judged and snapshot.round:
            probs = snapshot.p_right(wanted).astype(float).tolist()
        shown = zip(wanted.tolist(), says.group.tolist(), says.by.tolist(), probs, strict=True)
        paths = self.files.paths
        return [
            Thumb(
                **self.seen(row),
                path=paths[row],
                name=None if group == NO_GROUP else names[group],
                by=SOURCES[by] or None,
                probability=probability,
            )
            for row, group, by, probability in shown
        ]

    def has_picture(self, row: int) -> bool:
        """Whether there is a picture of ``row`` to show."""
        return self.project.kind.has_pictures and self.project.picture(row) is not None

    def seen(self, row: int) -> dict[str, Any]:
        """How a row looks, and nothing of what it is called: fields of ``Thumb`` and ``Card``."""
        return {
            "row": row,
            "v": self.pictures.version(row),
            "text": self.project.kind.excerpt(self.project.contents()[row]),
            "has_picture": self.has_picture(row),
        }

    def excerpt_around(self, row: int, words: str) -> str:
        """The excerpt of a row that shows ``words`` which it holds."""
        return self.project.kind.excerpt_around(self.project.contents()[row], words)

    def item(self, row: int) -> Item:
        """A row at full length."""
        shown = self.project.kind.shown(self.project.contents()[row])
        cells = [Cell(name=name, value=value) for name, value in shown.cells]
        return Item(row=row, text=shown.text, cells=cells, link=shown.link, has_picture=self.has_picture(row))

    def thumb_lists(
        self, snapshot: Snapshot, lists: Sequence[Sequence[int] | IntArray], *, judged: bool = True
    ) -> list[list[Thumb]]:
        """``thumbs`` of several lists at once: one by one they would take most of the time."""
        found = iter(self.thumbs(snapshot, np.concatenate([*lists, _NO_ROWS]), judged=judged))
        return [list(islice(found, len(rows))) for rows in lists]

    def check_rows(self, rows: list[int]) -> IntArray:
        """Rows that a request named: known ones only, each once."""
        for row in rows:
            if not 0 <= row < self.project.n_rows:
                raise NoSuchRow(f"There is no row {row}: the project has {self.project.n_rows}, numbered from 0.")
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
                raise DataError(f"That selection is forgotten: choose the {self.project.kind.nouns} again.")
            return self._lists[name]
