"""One round, start to finish: train, ask, tell. The benchmark and the labelling page run this same code.

Round 0 is base training; round t trains on all answers up to the t-th query. Every run has a folder that is
complete exactly when it holds ``done.json``; calling the same step again continues or reuses it, and two
processes that need the same run do it once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock

from agcd import __version__, mapping
from agcd.config import ROUND_SETTINGS, Config, QueryConfig, TrainConfig
from agcd.errors import ConfigError, StorageError
from agcd.features.rows import RowFeatures
from agcd.io import atomic_write, digest, digest_bytes, read_json, write_json
from agcd.rng import generator
from agcd.strategies import get_strategy, has_phases, select, strategy_options
from agcd.strategies.uncertainty import margin_of
from agcd.training import fit as fit_here
from agcd.training.fitted import Fitted
from agcd.training.job import Evaluate, Job, Outcome
from agcd.training.loop import CHECKPOINT, Log
from agcd.types import FloatArray, IntArray, LabelMapping, LabelState, Phase, PoolView, Prediction, Query

Fit = Callable[[TrainConfig, Job], Outcome]


class Folders(Protocol):
    """Where a session keeps its runs and queries."""

    def run(self, number: int, key: str) -> Path: ...
    def query(self, number: int) -> Path: ...


@dataclass(frozen=True)
class ProjectFolders:
    """``runs/000``, ``runs/001``, … under a project's root, each with the query that led to it."""

    root: Path

    def run(self, number: int, key: str) -> Path:
        return self.root / "runs" / f"{number:03d}"

    def query(self, number: int) -> Path:
        return self.run(number, "") / "query.json"


@dataclass(frozen=True)
class Round:
    """A finished round: its model, its mapping at the first and last epoch, and its measurements."""

    number: int
    key: str
    folder: Path
    fitted: Fitted
    first: LabelMapping
    last: LabelMapping
    metrics: dict[str, Any]


class Session:
    """The ask–tell–train loop over one set of features.

    Parameters
    ----------
    evaluate : measures a model for the log and ``metrics.json``; what it returns never reaches the training.
    fit : trains one run, elsewhere perhaps (see ``agcd.engine``); None trains here.
    """

    def __init__(
        self,
        features: RowFeatures,
        labels: LabelState,
        config: Config,
        n_slots: int,
        folders: Folders,
        *,
        evaluate: Evaluate | None = None,
        echo: Log | None = None,
        fit: Fit | None = None,
    ):
        check_labels(labels, n_slots)
        self.features, self.config, self.n_slots, self.folders = features, config, n_slots, folders
        self.labels = without_bad_rows(labels, features)
        self.evaluate, self.echo, self.fit = evaluate, echo, fit or fit_here
        self.rounds: list[Round] = []

    @property
    def latest(self) -> Round:
        if not self.rounds:
            raise ConfigError("Nothing is trained yet: call train() first.")
        return self.rounds[-1]

    @property
    def phase(self) -> Phase:
        """Whether the next query asks for confident or for informative samples."""
        history = [(r.first, r.last) for r in self.rounds[1:]]
        query = self.config.query
        return mapping.next_phase(
            history,
            self.latest.fitted.n_slots,
            threshold=query.stable_threshold,
            switch_round=query.switch_round,
            round=len(self.rounds),
            n_rounds=query.rounds,
        )

    @property
    def budget(self) -> int:
        """Questions per round: as configured, else one per novel slot."""
        return self.config.query.budget or max(1, self.latest.fitted.n_slots - self.labels.n_old)

    def resume(self, n_rounds: int) -> None:
        """Take up the first ``n_rounds`` finished rounds of numbered folders as they stand, without their labels."""
        for number in range(n_rounds):
            folder = self.folders.run(number, "")
            self.rounds.append(self._load(folder, number, read_json(folder / "done.json")["key"]))

    def train(self) -> Round:
        """Base training on the first call, one active round on each later one; a finished round is only loaded."""
        number = len(self.rounds)
        key = run_key(self.features, self.labels, self.config, self.n_slots, self.rounds[-1].key if number else None)
        folder = self.folders.run(number, key)
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock"):
            done = (folder / "done.json").exists()
            self.rounds.append((self._load if done else self._run)(folder, number, key))
        return self.latest

    def ask(self, budget: int | None = None) -> Query:
        """The rows to ask about next; the same question is never computed twice."""
        number, budget = len(self.rounds), self.budget if budget is None else budget
        query_config = self.config.query
        path = self.folders.query(number)
        options = strategy_settings(query_config)
        asked = [self.latest.key, query_config.strategy, options, budget, self.phase, self.config.seed]
        key = digest([*asked, labels_digest(self.labels)])
        if path.exists() and (stored := read_json(path))["key"] == key:
            return _query_from_json(stored)
        view = self.pool_view()
        rng = generator(self.config.seed, "query", number)
        rows = select(view, query_config.strategy, budget, rng, options)
        query = describe_query(view, rows, self.config, budget, self.latest.fitted.model_id)
        write_json(path, {"key": key, **_query_to_json(query)})
        return query

    def tell(self, rows: IntArray, names: Sequence[str]) -> None:
        """Take the answers to a query; names not heard before become classes."""
        self.labels = self.labels.tell(rows, names, len(self.rounds))

    def pool_view(self) -> PoolView:
        """What the strategy may see: the student, its prediction of the pool, and the labelled rows."""
        fitted, labels = self.latest.fitted, self.labels
        pool = fitted.predict(self.features, labels.pool_rows, "student", scratch=self.latest.folder)
        labelled = fitted.predict(self.features, labels.labelled_rows, "student")
        weights, biases = fitted.student.linear_weights()
        return PoolView(
            pool.rows,
            pool.probs,
            pool.features,
            labelled.features,
            self.latest.last.slot_of_class[labels.y_class[labelled.rows]],
            labels.n_old,
            len(self.rounds),
            self.phase,
            labelled_rounds=labels.asked_round[labelled.rows],
            labelled_probs=self._probs_when_asked(labelled),
            slot_weights=weights.numpy(),
            slot_biases=biases.numpy(),
            temperature=fitted.student_temp,
        )

    def _probs_when_asked(self, labelled: Prediction) -> FloatArray:
        """Labelled rows (m, K) as the student that asked about them saw them, before it learned the answers."""
        probs, asked_round = labelled.probs.copy(), self.labels.asked_round[labelled.rows]
        for number in np.unique(asked_round[asked_round > 0]).tolist():
            asked = asked_round == number
            asker = self.rounds[min(number, len(self.rounds)) - 1].fitted
            then = asker.predict(self.features, labelled.rows[asked], "student").probs
            probs[asked] = np.pad(then, ((0, 0), (0, probs.shape[1] - then.shape[1])))  # slots may have been added
        return probs

    def _run(self, folder: Path, number: int, key: str) -> Round:
        started = time.monotonic()
        self._claim(folder, key)
        outcome = self.fit(self.config.train, self._job(folder, number))
        outcome.fitted.save(folder / "model.safetensors")
        metrics = self._measure(outcome) | {"seconds": round(time.monotonic() - started, 2)}
        write_json(
            folder / "mapping.json",
            {"classes": self.labels.classes, "first": outcome.first.to_json(), "last": outcome.last.to_json()},
        )
        everything = self._predict_all(outcome.fitted, scratch=folder)
        write_predictions(folder / "predictions.parquet", everything, self.labels, outcome.last)
        write_json(folder / "metrics.json", metrics)
        write_json(folder / "done.json", {"key": key, "version": __version__})
        (folder / CHECKPOINT).unlink(missing_ok=True)
        return Round(number, key, folder, outcome.fitted, outcome.first, outcome.last, metrics)

    def _job(self, folder: Path, number: int) -> Job:
        latest = self.rounds[-1] if self.rounds else None
        train = self.config.train
        restarts = train.answers.restart and "answers" not in train.unused_sections
        start = self.rounds[0] if latest and restarts else latest
        return Job(
            self.features,
            self.labels,
            self.n_slots,
            self.config.seed,
            number,
            folder,
            start.fitted if start else None,
            latest.last if latest else None,
            self.evaluate,
            self.echo,
        )

    def _claim(self, folder: Path, key: str) -> None:
        """Write the settings first; a folder half filled under other settings is refused, not overwritten."""
        path = folder / "config.json"
        if path.exists() and read_json(path)["key"] != key:
            raise StorageError(f"{folder} holds a run with other settings or labels; choose another folder.")
        write_json(path, {"key": key, "settings": self.config.snapshot(), "n_slots": self.n_slots})

    def _measure(self, outcome: Outcome) -> dict[str, Any]:
        """Label-free facts of the round, and what ``evaluate`` says."""
        n_slots = outcome.fitted.n_slots
        facts: dict[str, Any] = {
            "n_labels": len(self.labels.labelled_rows),
            "n_queried": len(self.labels.queried_rows),
            "n_classes": len(self.labels.classes),
            "n_slots": n_slots,
            "agreement": outcome.last.agreement,
            "mapping_diff": mapping.diff(outcome.first, outcome.last, n_slots),
        }
        if self.evaluate:
            facts["evaluation"] = self.evaluate(outcome.fitted)
        return facts

    def _predict_all(self, fitted: Fitted, scratch: Path) -> Prediction:
        rows = np.setdiff1d(np.arange(self.features.n_rows), list(self.features.bad_rows))
        return fitted.predict(self.features, rows, "ema", scratch=scratch)

    def _load(self, folder: Path, number: int, key: str) -> Round:
        if read_json(folder / "done.json")["key"] != key:
            raise StorageError(f"{folder} holds a run with other settings or labels; choose another folder.")
        stored = read_json(folder / "mapping.json")
        fitted = Fitted.load(folder / "model.safetensors", self.features)
        first, last = LabelMapping.from_json(stored["first"]), LabelMapping.from_json(stored["last"])
        return Round(number, key, folder, fitted, first, last, read_json(folder / "metrics.json"))


def run_key(features: RowFeatures, labels: LabelState, config: Config, n_slots: int, parent: str | None) -> str:
    """Equal for runs that must come out equal; settings that a run does not use play no part in it."""
    unused = config.train.unused_sections | (set() if parent else ROUND_SETTINGS)
    train = config.train.model_dump(mode="json", exclude=unused)
    return digest(["run-1", features.fingerprint, labels_digest(labels), train, n_slots, config.seed, parent])


def check_labels(labels: LabelState, n_slots: int) -> None:
    """Refuse what cannot be trained, in one sentence."""
    if n_slots < max(1, labels.n_old):
        raise ConfigError(f"n_slots={n_slots} is less than the {labels.n_old} classes that already have labels.")
    if n_slots < 2:
        raise ConfigError("There is only one class: discovery needs at least two slots.")
    if len(labels.train_rows) < n_slots:
        raise ConfigError(f"{len(labels.train_rows)} training rows are too few for {n_slots} slots.")


def without_bad_rows(labels: LabelState, features: RowFeatures) -> LabelState:
    """The labels with undecodable rows held out."""
    held_out = labels.held_out.copy()
    held_out[list(features.bad_rows)] = True
    return replace(labels, held_out=held_out)


def labels_digest(labels: LabelState) -> str:
    """A name for everything in ``labels`` that training or asking depends on."""
    arrays = [labels.y_class, labels.asked_round, labels.held_out, labels.passed]
    return digest([labels.classes, labels.n_old, *(digest_bytes(a.tobytes()) for a in arrays)])


def strategy_settings(query: QueryConfig) -> dict[str, Any]:
    """The options to call the strategy with: ``fill`` where it takes one, and what the user gave."""
    takes_fill = "fill" in strategy_options(get_strategy(query.strategy))
    return ({"fill": query.fill} if takes_fill else {}) | query.options


def describe_query(view: PoolView, rows: IntArray, config: Config, budget: int, model_id: str) -> Query:
    """The query with a score and a sentence for each row."""
    position = {int(row): i for i, row in enumerate(view.rows)}
    probs = view.probs[[position[int(row)] for row in rows]]
    margins = margin_of(probs)
    phase = view.phase if has_phases(config.query.strategy) else None
    reasons = tuple(
        f"predicted {'novel' if slot >= view.n_old else 'old'} slot {slot}, margin {gap:.2f}"
        + (f", {phase} phase" if phase else "")
        for slot, gap in zip(probs.argmax(1).tolist(), margins.tolist(), strict=True)
    )
    facts = {"phase": phase, "round": view.round}
    return Query(rows, margins, reasons, config.query.strategy, budget, config.seed, model_id, facts)


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


def _query_to_json(query: Query) -> dict[str, Any]:
    return {**vars(query), "rows": query.rows.tolist(), "scores": query.scores.tolist()}


def _query_from_json(stored: dict[str, Any]) -> Query:
    values = {name: value for name, value in stored.items() if name != "key"}
    rows, scores = np.asarray(values.pop("rows"), np.int64), np.asarray(values.pop("scores"))
    return Query(rows=rows, scores=scores, reasons=tuple(values.pop("reasons")), **values)
