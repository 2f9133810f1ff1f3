"""One cell of a benchmark: a data set, a strategy and a seed, run through all rounds with a simulated oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from agcd.config import Config, make_config
from agcd.data.splits import save_split, start_state, truth_in_split_order
from agcd.engine import Fit
from agcd.errors import ConfigError, DataError
from agcd.features import features_code, open_features
from agcd.features.rows import RowFeatures
from agcd.io import digest, read_json, write_json
from agcd.lab.datasets import load_data, source_code
from agcd.lab.evaluator import Evaluator, make_evaluator
from agcd.lab.results import name_of
from agcd.lab.starts import split_of, validation_part
from agcd.run_files import LOG
from agcd.run_store import KeyedRuns
from agcd.session import Round, Session, check_labels, code_part
from agcd.strategies import strategy_code
from agcd.tracking import Tracking
from agcd.training import place_record, settings_record, trainer_code
from agcd.training.loop import read_log
from agcd.types import Dataset, LabelState, Query, Split
from agcd.words import count

SO_FAR = "so_far.json"
"""The records of the rounds that are done, while a cell is run."""
NO_QUERY = "none"
"""The strategy that asks nothing: base training alone, the paper's "w/o AGCD"."""


@dataclass(frozen=True)
class Cell:
    """Everything that decides a result. ``settings`` are plain config values without seed and strategy."""

    data: str
    strategy: str
    seed: int
    settings: dict[str, Any] = field(default_factory=dict)
    split: dict[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> Config:
        query = dict(self.settings.get("query", {}))
        if self.strategy != NO_QUERY:
            query["strategy"] = self.strategy
        return make_config({**self.settings, "seed": self.seed, "query": query})


@dataclass(frozen=True)
class Loaded:
    """A cell's data and where it starts, checked; no features yet."""

    dataset: Dataset
    split: Split
    labels: LabelState
    n_slots: int
    split_words: str
    """Where the split comes from."""


@dataclass(frozen=True)
class Prepared(Loaded):
    """A cell's data with its features, and who measures on it."""

    features: RowFeatures
    evaluator: Evaluator


def load(cell: Cell, cache_dir: Path) -> Loaded:
    """Read the data and make the split of the cell's seed; what cannot be run is refused here."""
    dataset = load_data(cell.data, cache_dir)
    if len(dataset.classes) < 2:
        raise DataError(
            f"{cell.data} has {count(len(dataset.classes), 'labelled class')}; a benchmark needs at least two."
        )
    options = dict(cell.split)
    share = options.pop("validation", None)
    if share is not None:
        dataset = validation_part(dataset, share)
    split, words = split_of(cell.data, dataset, cell.seed, cell.config.protocol, options)
    if share is not None:
        words += f", measured on {share:g} of the train rows"
    labels = start_state(dataset, split)
    n_slots = cell.config.n_slots or len(dataset.classes)
    check_labels(labels, n_slots)
    check_budget(cell.config.query.budget, labels)
    return Loaded(dataset, split, labels, n_slots, words)


def prepare(cell: Cell, cache_dir: Path) -> Prepared:
    """Load the data and open (or compute) its features."""
    loaded = load(cell, cache_dir)
    dataset, split = loaded.dataset, loaded.split
    features = open_features(dataset, cell.config.backbone, cache_dir, device=cell.config.device)
    evaluator = make_evaluator(dataset, split, truth_in_split_order(dataset, split), features)
    return Prepared(dataset, split, loaded.labels, loaded.n_slots, loaded.split_words, features, evaluator)


def check_budget(budget: int | None, labels: LabelState) -> None:
    if budget is not None and budget > len(labels.pool_rows):
        raise ConfigError(f"Setting 'query.budget' is {budget}: the pool has only {len(labels.pool_rows)} rows.")


def run_base(cell: Cell, out: Path, cache_dir: Path, fit: Fit | None = None, track: Tracking | None = None) -> None:
    """Train the base model that all strategies of one seed share."""
    open_session(cell, prepare(cell, cache_dir), out, fit, track).train()


def run_cell(
    cell: Cell, out: Path, cache_dir: Path, fit: Fit | None = None, track: Tracking | None = None
) -> list[dict[str, Any]]:
    """All rounds of a cell; one record per round, round 0 being the base model."""
    path = records_path(cell, out)
    if path.exists():
        stored: list[dict[str, Any]] = read_json(path)
        return stored
    prepared = prepare(cell, cache_dir)
    session = open_session(cell, prepared, out, fit, track)
    records = []
    for done, query in rounds_of(cell, prepared, session):
        records.append(_record(cell, prepared, session, done, query))
        write_json(path.with_name(SO_FAR), records)  # for those who watch
    save_split(path.with_name("split.json"), prepared.split, prepared.dataset)
    if track:
        title = f"{name_of(cell.data)} {cell.strategy} seed {cell.seed} {path.parent.name[-8:]}"
        track.tell_all(title, settings_record(cell.config), {record["round"]: record for record in records})
    write_json(path, records)
    return records


def rounds_of(cell: Cell, prepared: Prepared, session: Session) -> Iterator[tuple[Round, Query | None]]:
    """Every round of a cell as it is done, or taken up from the store, with the query that led to it."""
    yield session.train(), None
    for _ in range(0 if cell.strategy == NO_QUERY else cell.config.query.rounds):
        query = session.ask(questions_a_round(cell, prepared), answer_of(cell, prepared))
        session.tell(query.rows, prepared.evaluator.answer(query.rows))
        yield session.train(), query


def questions_a_round(cell: Cell, loaded: Loaded) -> int:
    """As set, else one per novel class, whatever number of slots the model has."""
    return cell.config.query.budget or max(1, len(loaded.split.novel_classes))


def answer_of(cell: Cell, prepared: Prepared) -> Callable[[int], str] | None:
    """Who answers while questions are being decided; None where a round is decided at once."""
    if not cell.config.query.one_by_one:
        return None
    return lambda row: prepared.evaluator.answer(np.array([row]))[0]


def open_session(
    cell: Cell, prepared: Prepared, out: Path, fit: Fit | None = None, track: Tracking | None = None
) -> Session:
    """The session of a cell, with its runs where every cell that needs the same run finds them."""
    store, start = KeyedRuns(out, cell_dir(cell, out)), (prepared.features, prepared.labels)
    named = track.about(f"{name_of(cell.data)} seed {cell.seed}") if track else None
    return Session(*start, cell.config, prepared.n_slots, store, evaluate=prepared.evaluator, fit=fit, track=named)


def records_path(cell: Cell, out: Path) -> Path:
    """The file that is there exactly when the cell is finished."""
    return cell_dir(cell, out) / "records.json"


def cell_dir(cell: Cell, out: Path) -> Path:
    """A folder for everything that decides a result, the source of code that is not agcd's own included."""
    code = code_part(trainer_code(cell.config.train.trainer))
    if cell.strategy != NO_QUERY:
        code += code_part(strategy_code(cell.strategy))
    code += code_part(source_code(cell.data)) + code_part(features_code(cell.config.backbone))
    code += place_record(cell.config)
    decides = asdict(cell) | {"settings": {name: v for name, v in cell.settings.items() if name != "device"}}
    settings = settings_record(cell.config)
    settings["backbone"].setdefault("runner", "torch")  # in the names of older cells; features say who computed them
    return out / "cells" / digest([decides, settings, *code])


def _record(cell: Cell, prepared: Prepared, session: Session, done: Round, query: Query | None) -> dict[str, Any]:
    measured = prepared.evaluator.full(done.fitted, done.last, session.labels)
    assert done.folder is not None
    measured_epochs = [line["evaluation"] for line in read_log(done.folder / LOG) if "evaluation" in line]
    epochs = [figures["acc_all"] for figures in measured_epochs]  # processes that train together measure the last alone
    return {
        "data": cell.data,
        "strategy": cell.strategy,
        "seed": cell.seed,
        "split": prepared.split_words,
        "round": done.number,
        "n_queried": len(session.labels.queried_rows),
        "phase": query.facts["phase"] if query else None,
        "mapping_diff": done.metrics["mapping_diff"],
        **{name: done.metrics[name] for name in ("literal_diff",) if name in done.metrics},  # runs of 0.1 have none
        "agreement": done.metrics["agreement"],
        "n_slots": done.fitted.n_slots,
        "best_on_test": max(epochs, default=measured["acc_all"]),
        "seconds": done.metrics["seconds"],
        "on_test": prepared.evaluator.on_test,
        **measured,
    }
