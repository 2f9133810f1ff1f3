"""Rounds on disk: what a session keeps, so that a killed one goes on and two that need the same run do it once.

config.json          settings and key, written first: a folder under other settings is refused, not overwritten
log.jsonl            one line per epoch, while it trains (and a checkpoint, until it is done)
model.safetensors    student and EMA model
mapping.json         the slot of every class, at the first and the last epoch
predictions.parquet  what the EMA model says about every row
metrics.json         the figures of the round
done.json            written last, with the digests of the others: a run that has it is whole (``run_files``)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from filelock import FileLock

from agcd import __version__
from agcd.arrays import margin_of
from agcd.config import Config
from agcd.errors import StorageError
from agcd.features.devices import CPU
from agcd.features.rows import RowFeatures
from agcd.io import atomic_write, read_sealed, remove_leftovers, storage_error, write_json, write_sealed
from agcd.run_files import (
    CONFIG,
    DONE,
    MAPPING,
    METRICS,
    MODEL,
    PREDICTIONS,
    checked,
    digests,
    read_checked,
    read_run_json,
)
from agcd.training import settings_record
from agcd.training.fitted import Fitted
from agcd.training.job import Outcome
from agcd.training.loop import CHECKPOINT
from agcd.types import LabelMapping, LabelState, Prediction, Query


class StoredModel:
    """A model on disk, read when it is first needed."""

    def __init__(self, folder: Path, features: RowFeatures, device: torch.device = CPU):
        self.folder, self.features, self.device = folder, features, device

    @cached_property
    def fitted(self) -> Fitted:
        return Fitted.load(checked(self.folder, MODEL), self.features, self.device)


@dataclass(frozen=True)
class StoredRun:
    """The folder of one run and the key of what belongs in it."""

    folder: Path
    key: str

    @property
    def is_done(self) -> bool:
        """Whether it is whole; a folder that holds another run is refused."""
        is_done = (self.folder / DONE).exists()
        if is_done:
            self._check_key(DONE)
        return is_done

    def claim(self, config: Config, n_slots: int) -> None:
        """Write down the settings before anything else."""
        if (self.folder / CONFIG).exists():
            self._check_key(CONFIG)
        write_json(self.folder / CONFIG, {"key": self.key, "settings": settings_record(config), "n_slots": n_slots})

    def save(self, outcome: Outcome, prediction: Prediction, labels: LabelState, metrics: dict[str, Any]) -> None:
        """Write everything that a finished round consists of, ``done.json`` last."""
        outcome.fitted.save(self.folder / MODEL)
        mappings = {"first": outcome.first.to_json(), "last": outcome.last.to_json()}
        write_json(self.folder / MAPPING, {"classes": labels.classes, **mappings})
        write_predictions(self.folder / PREDICTIONS, prediction, labels, outcome.last)
        write_json(self.folder / METRICS, metrics)
        write_sealed(self.folder / DONE, {"key": self.key, "version": __version__, "digests": digests(self.folder)})
        (self.folder / CHECKPOINT).unlink(missing_ok=True)

    def model(self, features: RowFeatures, device: torch.device = CPU) -> StoredModel:
        """The trained model, on features of the same backbone."""
        return StoredModel(self.folder, features, device)

    def mappings(self) -> tuple[LabelMapping, LabelMapping]:
        """The mapping at the first and at the last epoch."""
        stored = read_checked(self.folder, MAPPING)
        return LabelMapping.from_json(stored["first"]), LabelMapping.from_json(stored["last"])

    def metrics(self) -> dict[str, Any]:
        figures: dict[str, Any] = read_checked(self.folder, METRICS)
        return figures

    def _check_key(self, name: str) -> None:
        if read_run_json(self.folder, name).get("key") != self.key:
            raise StorageError(f"{self.folder} holds a run with other settings, labels or code; choose another folder.")


class RunStore(ABC):
    """Where a session keeps its rounds and the queries between them; a kind of store says which folder is whose."""

    @abstractmethod
    def folder(self, number: int, key: str) -> Path:
        """Where the run of round ``number`` under ``key`` belongs."""

    @abstractmethod
    def query_file(self, number: int) -> Path:
        """Where the query that leads to round ``number`` belongs."""

    @abstractmethod
    def finished(self, number: int) -> StoredRun:
        """The finished run of round ``number``, whatever its key is."""

    @contextmanager
    def opened(self, number: int, key: str) -> Iterator[StoredRun]:
        """The run of round ``number`` under ``key``, which no other process touches meanwhile."""
        folder = self.folder(number, key)
        lock = FileLock(folder / ".lock")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except OSError as error:
            raise storage_error(folder, error) from error
        try:
            remove_leftovers(folder, older_than=0)  # nobody else writes here now
            yield StoredRun(folder, key)
        finally:
            lock.release()

    def load_query(self, number: int, key: str) -> Query | None:
        """The stored query of round ``number``, if it is whole and was asked under the same ``key``."""
        try:
            stored = read_sealed(self.query_file(number))
        except (FileNotFoundError, ValueError):
            return None
        if stored["key"] != key:
            return None
        values = {name: value for name, value in stored.items() if name != "key"}
        rows, scores = np.asarray(values.pop("rows"), np.int64), np.asarray(values.pop("scores"))
        return Query(rows=rows, scores=scores, reasons=tuple(values.pop("reasons")), **values)

    def save_query(self, number: int, key: str, query: Query) -> None:
        plain = {**vars(query), "rows": query.rows.tolist(), "scores": query.scores.tolist()}
        write_sealed(self.query_file(number), {"key": key, **plain})


@dataclass(frozen=True)
class NumberedRuns(RunStore):
    """``runs/000``, ``runs/001``, … under a project's root, each with the query that led to it."""

    root: Path

    def folder(self, number: int, key: str = "") -> Path:
        return self.root / "runs" / f"{number:03d}"

    def query_file(self, number: int) -> Path:
        return self.folder(number) / "query.json"

    def finished(self, number: int) -> StoredRun:
        folder = self.folder(number)
        return StoredRun(folder, str(read_run_json(folder, DONE).get("key")))


@dataclass(frozen=True)
class KeyedRuns(RunStore):
    """Runs by key, so that no two experiments under ``out`` compute the same one; queries in a folder of their own."""

    out: Path
    queries: Path

    def folder(self, number: int, key: str) -> Path:
        return self.out / "runs" / key

    def query_file(self, number: int) -> Path:
        return self.queries / f"query-{number:03d}.json"

    def finished(self, number: int) -> StoredRun:
        raise StorageError(f"Runs under {self.out} are kept by key: round {number} of them is not one run.")


def write_predictions(path: Path, prediction: Prediction, labels: LabelState, names: LabelMapping) -> None:
    """One line per row: slot, class name where the slot has one, probability, margin, and who says so."""
    class_of_slot = {int(slot): labels.classes[c] for c, slot in enumerate(names.slot_of_class)}
    y_slot = prediction.y_slot
    human = labels.y_class[prediction.rows]
    table = pa.table(
        {
            "row": prediction.rows,
            "slot": y_slot,
            "class": [class_of_slot.get(slot) for slot in y_slot.tolist()],
            "novel": y_slot >= labels.n_old,
            "probability": prediction.probs.max(1),
            "margin": margin_of(prediction.probs),
            "human_class": [labels.classes[c] if c >= 0 else None for c in human.tolist()],
        }
    )
    with atomic_write(path) as aside:
        pq.write_table(table, aside)
