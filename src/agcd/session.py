"""One round, start to finish: train, ask, tell. The benchmark and the labelling page run this same code.

Round 0 is base training; round t trains on all answers up to the t-th query. A session lives in memory. With a
``RunStore`` every round and query is also kept on disk: calling the same step again continues or reuses it, and two
processes that need the same run do it once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from agcd import mapping
from agcd.arrays import blocks, confidence_and_slot
from agcd.config import ROUND_SETTINGS, Config, QueryConfig
from agcd.engine import Fit
from agcd.errors import ConfigError, StorageError
from agcd.features.devices import find_device, in_memory
from agcd.features.rows import RowFeatures
from agcd.io import digest, digest_bytes
from agcd.rng import generator
from agcd.run_files import LOG
from agcd.run_store import RunStore, StoredModel, StoredRun
from agcd.strategies import (
    Chosen,
    get_strategy,
    has_phases,
    needed_fields,
    open_one_by_one,
    select,
    strategy_code,
    strategy_options,
    strategy_title,
)
from agcd.tracking import Tracking, tracked_run
from agcd.training import fit as fit_here
from agcd.training import place_record, sections_read, train_record, trainer_code
from agcd.training.fitted import Fitted
from agcd.training.job import Evaluate, Outcome, TrainingJob
from agcd.training.loop import Log, not_finite
from agcd.types import FloatArray, IntArray, LabelMapping, LabelState, OneByOne, Phase, PoolView, Prediction, Query


@dataclass(frozen=True)
class Round:
    """A finished round: its model, its mapping at the first and last epoch, and its measurements."""

    number: int
    key: str
    model: Fitted | StoredModel
    """The trained model; that of a round taken up from disk is read when ``fitted`` is first asked for."""
    first: LabelMapping
    last: LabelMapping
    metrics: dict[str, Any]
    folder: Path | None = None
    """Where it is kept; None for a session without a store."""
    prediction: Prediction | None = None
    """What the EMA model says about every readable row. ``Session.train`` returns it with a round that it has trained;
    rounds that were loaded, and those that the session keeps, are without, as it is large."""

    @property
    def fitted(self) -> Fitted:
        return self.model if isinstance(self.model, Fitted) else self.model.fitted

    @property
    def n_slots(self) -> int:
        """The outputs of the model, known without reading it."""
        return int(self.metrics["n_slots"])


class Session:
    """The ask–tell–train loop over one set of features.

    Parameters
    ----------
    store : keeps rounds and queries (``agcd.run_store``); without one nothing touches the disk.
    evaluate : measures a model for the log and ``metrics.json``; what it returns never reaches the training.
    fit : trains one run, elsewhere perhaps (see ``agcd.engine``); None trains here.
    track : what is told of every epoch and round that is trained (``agcd.tracking``).
    strategy : what asks; None: the one that ``config.query`` names.
    """

    def __init__(
        self,
        features: RowFeatures,
        labels: LabelState,
        config: Config,
        n_slots: int,
        store: RunStore | None = None,
        *,
        evaluate: Evaluate | None = None,
        echo: Log | None = None,
        fit: Fit | None = None,
        strategy: Chosen | None = None,
        track: Tracking | None = None,
    ):
        check_labels(labels, n_slots)
        self.features, self.config, self.n_slots, self.store = features, config, n_slots, store
        self.device = find_device(config.device)
        self.labels = without_bad_rows(labels, features)
        self.evaluate, self.echo, self.fit = evaluate, echo, fit or fit_here
        self._strategy, self._track = strategy, track
        self.rounds: list[Round] = []

    @property
    def strategy(self) -> Chosen:
        """What asks."""
        return self.config.query.strategy if self._strategy is None else self._strategy

    @property
    def latest(self) -> Round:
        if not self.rounds:
            raise ConfigError("Nothing is trained yet: call train() first.")
        return self.rounds[-1]

    @property
    def phase(self) -> Phase:
        """Whether the next query asks for confident or for informative samples."""
        query = self.config.query
        return mapping.next_phase(
            (self._diff(done) for done in self.rounds[1:]),
            threshold=query.stable_threshold,
            switch_round=query.switch_round,
            round=len(self.rounds),
            n_rounds=query.rounds,
        )

    def _diff(self, done: Round) -> float:
        """How much the mapping changed over a round, by the rule of ``query.stability``."""
        if self.config.query.stability == "mapping":
            return mapping.diff(done.first, done.last, self.latest.n_slots)
        if "literal_diff" not in done.metrics:
            raise StorageError(
                f"Round {done.number} was trained before 'literal_diff' was recorded, which query.stability = "
                '"literal" needs: train it anew, in another folder.'
            )
        return float(done.metrics["literal_diff"])

    @property
    def budget(self) -> int:
        """Questions per round where nobody says how many."""
        return self.config.budget(len(self.labels.pool_rows), self.latest.n_slots - self.labels.n_old)

    def resume(self, n_rounds: int) -> None:
        """Take up the first ``n_rounds`` finished rounds as they stand, without their labels or their models."""
        if self.store is None:
            raise ConfigError("A session without a store has no rounds to take up: give it one.")
        for number in range(n_rounds):
            self.rounds.append(self._load(self.store.finished(number), number))

    def train(self) -> Round:
        """Base training on the first call, one active round on each later one; a finished round is only loaded."""
        number = len(self.rounds)
        key = run_key(self.features, self.labels, self.config, self.n_slots, self.rounds[-1].key if number else None)
        done = self._run(number, key) if self.store is None else self._run_once(self.store, number, key)
        self.rounds.append(replace(done, prediction=None))
        return done

    def ask(self, budget: int | None = None, answer: Callable[[int], str] | None = None) -> Query:
        """The rows to ask about next; with a store the same question is never computed twice.

        ``answer`` gives the class of a row: with it every row is decided after the answer to the one before. Those
        answers are not kept: ``tell`` takes them, as it takes those to a batch. ``facts["slots"]`` lists the slot
        that the asking model predicts for each row.
        """
        number, budget = len(self.rounds), self.budget if budget is None else budget
        strategy, options = self.strategy, strategy_settings(self.config.query, self.strategy)
        asked = [self.latest.key, strategy_title(strategy), options, budget, self.phase, self.config.seed]
        way = [] if answer is None else ["one by one"]
        key = digest([*asked, labels_digest(self.labels), *code_part(strategy_code(strategy)), *way])
        if self.store and (stored := self.store.load_query(number, key)):
            return self._with_slots(stored)
        view, rng = self.pool_view(), generator(self.config.seed, "query", number)
        if answer is None:
            rows = select(view, strategy, budget, rng, options)
        else:
            asking = open_one_by_one(view, strategy, budget, rng, options)
            rows = self._ask_each(asking, min(budget, len(view.rows)), answer)
        query = describe_query(view, rows, strategy, budget, self.config.seed, self.latest.fitted.model_id)
        if self.store:
            self.store.save_query(number, key, query)
        return query

    def _ask_each(self, asking: OneByOne, count: int, answer: Callable[[int], str]) -> IntArray:
        slots = dict(zip(self.labels.classes, self.latest.last.slot_of_class.tolist(), strict=True))
        n_known, rows = len(slots), []
        for _ in range(count):
            rows.append(asking.next())
            # A class that this model never heard of has no slot yet: it takes the next number after them.
            next_number = self.latest.n_slots + len(slots) - n_known
            asking.tell(rows[-1], slots.setdefault(answer(rows[-1]), next_number))
        return np.asarray(rows, np.int64)

    def tell(self, rows: IntArray, names: Sequence[str]) -> None:
        """Take the answers to a query; names not heard before become classes."""
        self.labels = self.labels.tell(rows, names, len(self.rounds))

    def pool_view(self) -> PoolView:
        """What the strategy may see: the student, its prediction of the pool, and the labelled rows."""
        fitted, labels = self.latest.fitted, self.labels
        pool = fitted.predict(self.features, labels.pool_rows, "student", scratch=self.latest.folder)
        labelled = fitted.predict(self.features, labels.labelled_rows, "student")
        weights, biases = fitted.student.linear_weights()
        needs_earlier_models = "labelled_probs" in needed_fields(self.strategy)
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
            labelled_probs=self._probs_when_asked(labelled) if needs_earlier_models else None,
            slot_weights=in_memory(weights),
            slot_biases=in_memory(biases),
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

    def _with_slots(self, query: Query) -> Query:
        """The query with its slots, which version 0.1 did not store."""
        if "slots" in query.facts:
            return query
        y_slot = self.latest.fitted.predict(self.features, query.rows, "student").y_slot
        return replace(query, facts=query.facts | {"slots": y_slot.tolist()})

    def _run_once(self, store: RunStore, number: int, key: str) -> Round:
        """The round as the store has it, trained and stored first where it has not."""
        with store.opened(number, key) as run:
            if run.is_done:
                return self._load(run, number)
            run.claim(self.config, self.n_slots)
            return self._run(number, key, run)

    def _load(self, run: StoredRun, number: int) -> Round:
        metrics, (first, last) = run.metrics(), run.mappings()
        return Round(number, run.key, run.model(self.features, self.device), first, last, metrics, run.folder)

    def _run(self, number: int, key: str, run: StoredRun | None = None) -> Round:
        started, folder = time.monotonic(), run.folder if run else None
        job, log_file = self._job(number, folder), folder and folder / LOG
        with tracked_run(self._track, number, key, self.config, log_file, self.echo) as tracked:
            outcome = self.fit(self.config.train, replace(job, echo=tracked.tell_epoch))
            outcome.fitted.identify()
            metrics = self._measure(outcome) | {"seconds": round(time.monotonic() - started, 2)}
            readable = np.setdiff1d(np.arange(self.features.n_rows), list(self.features.bad_rows))
            prediction = outcome.fitted.predict(self.features, readable, "ema", scratch=folder)
            check_finite(prediction)
            metrics["literal_diff"] = literal_diff(job, outcome.fitted, prediction)
            tracked.tell_end(metrics)
        if run:
            run.save(outcome, prediction, self.labels, metrics)
        return Round(number, key, outcome.fitted, outcome.first, outcome.last, metrics, folder, prediction)

    def _job(self, number: int, folder: Path | None) -> TrainingJob:
        latest, train = self.rounds[-1] if self.rounds else None, self.config.train
        restarts = train.answers.restart and "answers" in sections_read(train.trainer)
        start = self.rounds[0] if latest and restarts else latest
        return TrainingJob(
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
            device=self.device,
        )

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


def check_finite(prediction: Prediction) -> None:
    """Refuse a model whose predictions hold numbers that are not finite: it must not become a round."""
    for name, values in (("probabilities", prediction.probs), ("features", prediction.features)):
        if not all(np.isfinite(values[part]).all() for part in blocks(len(values), values.shape[1])):
            raise not_finite(f"the {name} that the model predicts")


def literal_diff(job: TrainingJob, fitted: Fitted, prediction: Prediction) -> float | None:
    """The paper's diff between the model a round began with and the one it ended with; base training has none.

    ``prediction`` is what the EMA model of ``fitted`` says about every readable row.
    """
    if job.start is None:
        return None
    rows, n_slots = job.labels.labelled_rows, max(fitted.n_slots, len(job.labels.classes))
    before = job.start.predict(job.features, rows, "ema").y_slot
    after = prediction.y_slot[np.searchsorted(prediction.rows, rows)]
    return mapping.literal_diff(job.labels.y_class[rows], before, after, n_slots)


def run_key(features: RowFeatures, labels: LabelState, config: Config, n_slots: int, parent: str | None) -> str:
    """Equal for runs that must come out equal; settings that a run does not use play no part in it."""
    unread = set() if parent else ROUND_SETTINGS
    train = {name: value for name, value in train_record(config.train).items() if name not in unread}
    rest = [*code_part(trainer_code(config.train.trainer)), *place_record(config)]
    return digest(["run-1", features.fingerprint, labels_digest(labels), train, n_slots, config.seed, parent, *rest])


def code_part(code: str | None) -> list[str]:
    """The part of a key that code from outside has; agcd's own has none, so that its results stay valid."""
    return [] if code is None else [code]


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
    arrays += [] if labels.accepted is None else [labels.accepted]  # older keys stay valid
    return digest([labels.classes, labels.n_old, *(digest_bytes(a.tobytes()) for a in arrays)])


def strategy_settings(query: QueryConfig, strategy: Chosen | None = None) -> dict[str, Any]:
    """The options to call the strategy with, that of ``query`` where none is given: ``fill`` where it takes one, and
    what the user gave."""
    takes_fill = "fill" in strategy_options(get_strategy(strategy or query.strategy))
    return ({"fill": query.fill} if takes_fill else {}) | query.options


def describe_query(view: PoolView, rows: IntArray, strategy: Chosen, budget: int, seed: int, model_id: str) -> Query:
    """The query with a score, a sentence and the predicted slot for each row."""
    position = {int(row): i for i, row in enumerate(view.rows)}
    margins, y_slot = confidence_and_slot(view.probs[[position[int(row)] for row in rows]], "margin")
    phase = view.phase if has_phases(strategy) else None
    reasons = tuple(
        f"predicted {'novel' if slot >= view.n_old else 'old'} slot {slot}, margin {gap:.2f}"
        + (f", {phase} phase" if phase else "")
        for slot, gap in zip(y_slot.tolist(), margins.tolist(), strict=True)
    )
    facts = {"phase": phase, "round": view.round, "slots": y_slot.tolist()}
    return Query(rows, margins, reasons, strategy_title(strategy), budget, seed, model_id, facts)
