"""Training, asking and predicting in a project, through the same ``Session`` as the benchmark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agcd.app.estimate import read_estimate, write_estimate
from agcd.app.rounds import NO_SLOT, Atlas, has_atlas, top_of, write_atlas
from agcd.app.store.queries import Question, StoredQuery, add_query
from agcd.errors import ConfigError, DataError
from agcd.features import open_features
from agcd.features.rows import RowFeatures
from agcd.io import read_json
from agcd.run_store import NumberedRuns
from agcd.session import Session, check_labels, without_bad_rows
from agcd.training.fitted import Fitted
from agcd.training.loop import Log
from agcd.types import LabelMapping, LabelState, NumberOfClasses

if TYPE_CHECKING:
    from agcd.app.project import Project


@dataclass(frozen=True)
class Trained:
    """The last round, and whether this call had anything to do for it."""

    round: int
    is_new: bool
    metrics: dict[str, Any]


Progress = Callable[[int, int], None]
"""Called with how much is done, and of how much."""


def train(project: Project, echo: Log | None = None, progress: Progress | None = None) -> Trained:
    """Train the next round on all that was said before it began; labels that come in meanwhile wait.

    ``echo`` sees every epoch, ``progress`` the images whose features are made.
    """
    number = project.n_finished
    if not project.is_due:
        if not has_atlas(project.folder, number - 1):  # somebody emptied the cache
            make_atlas(project, row_features(project, progress))
        return Trained(number - 1, False, read_json(project.run_folder(number - 1) / "metrics.json"))
    features = row_features(project, progress)
    if project.config.n_slots is None and read_estimate(project.folder) is None:
        estimate_classes(project, features)
    if not project.in_training:
        check_labels(project.labels()[0], project.n_slots)
    labels, class_ids = project.labels(project.store.begin_run(number))
    session = _session(project, features, labels, number, echo)
    if number:
        before = project.labels(project.store.runs()[number - 1])[1]
        session.rounds[-1] = replace(session.latest, last=realigned(session.latest.last, before, class_ids))
    done = session.train()
    make_atlas(project, features, done.fitted)
    return Trained(done.number, True, done.metrics)


def estimate_classes(project: Project, features: RowFeatures, progress: Progress | None = None) -> NumberOfClasses:
    """Estimate how many classes there are (Max-ACC), from the pretrained features; once per project."""
    from agcd.training.n_classes import estimate_n_classes, prefix_features

    known = read_estimate(project.folder)
    if known is not None:
        return known
    labels = without_bad_rows(project.labels()[0], features)
    rows = labels.train_rows
    x = prefix_features(features, rows)
    found = estimate_n_classes(x, labels.y_class[rows], labels.n_old, seed=project.config.seed, say=progress)
    write_estimate(project.folder, found)
    return found


def make_atlas(project: Project, features: RowFeatures, fitted: Fitted | None = None) -> Atlas:
    """What the page shows of the last finished round."""
    number = project.n_finished - 1
    fitted = fitted or Fitted.load(checked_run(project, number) / "model.safetensors", features)
    prediction = fitted.predict(features, np.arange(features.n_rows))
    top_slots, top_probs = top_of(prediction.probs)
    top_slots[list(features.bad_rows)] = NO_SLOT
    _, class_ids = project.labels(project.store.runs()[number])
    slot_of_class = read_json(project.run_folder(number) / "mapping.json")["last"]["slot_of_class"]
    owner: list[str | None] = [None] * fitted.n_slots
    for class_id, slot in zip(class_ids, slot_of_class, strict=True):
        owner[slot] = class_id
    facts = {"model_id": fitted.model_id, "n_old": fitted.n_old, "n_slots": fitted.n_slots, "class_ids": owner}
    vectors = prediction.features.astype(np.float16)
    return write_atlas(project.folder, number, top_slots, top_probs, vectors, ~project.is_test, facts)


def realigned(mapping: LabelMapping, before: Sequence[str], now: Sequence[str]) -> LabelMapping:
    """``mapping`` in the class numbers of ``now``; merging or undoing may renumber novel classes. −1: no slot yet."""
    place = {class_id: c for c, class_id in enumerate(before)}
    known = np.array([place.get(class_id, -1) for class_id in now], dtype=np.int64)
    slots = np.append(mapping.slot_of_class, -1)[known]
    return replace(mapping, slot_of_class=slots, observed=np.append(mapping.observed, False)[known])


def ask(project: Project, n: int | None = None) -> StoredQuery:
    """Ask the last finished round's model; rows that were answered since are not asked about again."""
    number = project.n_finished
    if number == 0:
        raise ConfigError(f"Nothing is trained yet: run agcd train {project.folder} first.")
    if n is not None and n < 1:
        raise ConfigError(f"{n} questions were asked for; at least 1 is expected.")
    # The mapping knows the classes of its own round only, so newer answers count as passed until the next one.
    then, now = (project.labels(upto)[0] for upto in (project.store.runs()[number - 1], None))
    answered = np.ones(len(project.keys), dtype=np.bool_)
    answered[now.pool_rows] = False
    labels = replace(then, passed=then.passed | answered)
    if not len(labels.pool_rows):
        raise DataError("There is nothing left to ask: every image has an answer.")
    features = row_features(project)
    session = _session(project, features, labels, number, None)
    query = session.ask(n)
    asked = list(zip(query.rows.tolist(), query.reasons, query.scores.tolist(), query.facts["slots"], strict=True))
    # One predicted slot after another, so that the eye of whoever answers stays on one topic.
    first = {slot: rank for rank, (*_, slot) in reversed(list(enumerate(asked)))}
    asked.sort(key=lambda question: first[question[-1]])
    questions = [Question(row, rank, why, score, slot) for rank, (row, why, score, slot) in enumerate(asked)]
    return add_query(project.store, number, query.strategy, query.model_id, questions)


def row_features(project: Project, progress: Progress | None = None) -> RowFeatures:
    """The features of every image, made where they are missing."""
    for number in range(project.n_finished):
        checked_run(project, number)
    fill = project.engine.fill if project.engine else None
    cache = project.folder / "cache"
    return open_features(project.dataset(), project.config.backbone, cache, progress=progress, fill=fill)


def _session(project: Project, features: RowFeatures, labels: LabelState, n_rounds: int, echo: Log | None) -> Session:
    """A session that has taken up the finished rounds."""
    store = NumberedRuns(project.folder)
    fit = project.engine.fit if project.engine else None
    session = Session(features, labels, project.config, project.n_slots, store, echo=echo, fit=fit)
    session.resume(n_rounds)
    return session


def checked_run(project: Project, number: int) -> Path:
    """The folder of a finished round, which must have been trained on features like ours."""
    folder = project.run_folder(number)
    stored, own = read_json(folder / "config.json")["settings"]["backbone"], project.config.snapshot()["backbone"]
    for key in ("name", "weights", "image_size", "trainable_blocks"):
        if stored[key] != own[key]:
            raise ConfigError(
                f"{folder} was trained with backbone.{key} = {stored[key]!r}, agcd.toml now says {own[key]!r}: "
                "put it back, or make a new project."
            )
    return folder
