"""What of a project needs its model: features, training, asking, naming new images. It loads torch.

Rounds run through the same ``Session`` as in the benchmark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from agcd.app.live_rows import find_live_rows
from agcd.app.project import Project
from agcd.app.rounds import (
    NO_SLOT,
    START,
    RoundView,
    ids_by_slot,
    top_of,
    write_round_view,
)
from agcd.app.store.queries import Question, StoredQuery, add_query
from agcd.arrays import margin_of
from agcd.config import BackboneConfig
from agcd.data.folder import from_folder
from agcd.data.items import Item, image_dataset
from agcd.engine import open_engine
from agcd.errors import ConfigError, DataError
from agcd.features import open_features
from agcd.features.backbones import load_backbone
from agcd.features.rows import OnlineRows, RowFeatures
from agcd.io import digest
from agcd.run_files import MODEL, checked
from agcd.run_store import NumberedRuns
from agcd.session import Round, Session, check_labels, without_bad_rows
from agcd.training import trainer_options
from agcd.training.fitted import Fitted, frozen_features
from agcd.training.loop import Log
from agcd.training.n_classes import estimate_n_classes, prefix_features
from agcd.types import UNLABELLED, Dataset, LabelMapping, LabelState, NumberOfClasses

Progress = Callable[[int, int], None]
"""Called with how much is done, and of how much."""
_CHUNK = 512
"""Images that are named at once: enough to keep the decoders busy, few enough to share among workers."""
_MODEL_COLUMNS = ("class", "novel", "probability", "margin")
Chunk = list[tuple[str, str]]
"""Paths and content keys."""


@dataclass(frozen=True)
class Trained:
    """The last round, and whether this call had anything to do for it."""

    round: int
    is_new: bool
    metrics: dict[str, Any]


def train(project: Project, echo: Log | None = None, progress: Progress | None = None) -> Trained:
    """Train the next round on all that was said before it began; labels that come in meanwhile wait.

    A broken-off round is continued. ``echo`` sees every epoch, ``progress`` the images whose features are made.
    """
    snapshot = project.snapshot()
    number = snapshot.n_finished
    if number and not _is_whole(project.round_view(number - 1)):  # somebody emptied the cache
        make_round_view(project, row_features(project, progress))
        snapshot = project.snapshot(snapshot)
    if not snapshot.is_due:
        return Trained(number - 1, False, project.metrics(number - 1))
    trainer_options(project.config.train)  # a wrong name or option is told before features are made
    features = row_features(project, progress)
    if project.config.n_slots is None and project.estimated_classes() is None:
        estimate_classes(project, features)
    if not snapshot.in_training:
        check_labels(project.label_state()[0], project.n_slots)
    project.store.begin_run(number)
    labels, class_ids = project.label_state(number)
    session = _session(project, features, labels, number, echo)
    if number:
        before = project.label_state(number - 1)[1]
        session.rounds[-1] = replace(session.latest, last=realigned(session.latest.last, before, class_ids))
    done = session.train()
    make_round_view(project, features, done)
    return Trained(done.number, True, done.metrics)


def _is_whole(view: RoundView | None) -> bool:
    """Whether a view can be asked by: those of version 0.1 lack the neighbours."""
    return view is not None and view.live is not None


def estimate_classes(project: Project, features: RowFeatures, progress: Progress | None = None) -> NumberOfClasses:
    """Estimate how many classes there are (Max-ACC), from the pretrained features; once per project.

    Where no class is known from the start there is nothing to explain: the root of the number of images is looked for.
    Slots that turn out to be too many are switched off later, and a name that has none gets a new one.
    """
    known = project.estimated_classes()
    if known is not None:
        return known
    labels = without_bad_rows(project.label_state()[0], features)
    rows = labels.train_rows
    if labels.n_old == 0:
        n = max(2, round(len(rows) ** 0.5))
        project.keep_estimate(NumberOfClasses(n, n, n, ()))
        return NumberOfClasses(n, n, n, ())
    x = prefix_features(features, rows)
    estimate = estimate_n_classes(x, labels.y_class[rows], labels.n_old, seed=project.config.seed, say=progress)
    project.keep_estimate(estimate)
    return estimate


def make_round_view(project: Project, features: RowFeatures, done: Round | None = None) -> RoundView:
    """Write what the page shows of ``done``, else of the last finished round; what was predicted is not predicted
    again. A round that was lost and made anew may have later ones after it."""
    number = done.number if done else project.last_round
    fitted = done.fitted if done else Fitted.load(checked(project.checked_run(number), MODEL), features)
    prediction = done.prediction if done else None
    if prediction is None:
        readable = np.setdiff1d(np.arange(features.n_rows), list(features.bad_rows))
        prediction = fitted.predict(features, readable)
    slots, probs = top_of(prediction.probs)
    top_slots = np.full((features.n_rows, slots.shape[1]), NO_SLOT, np.int32)
    top_probs = np.zeros(top_slots.shape, np.float16)
    vectors = np.zeros((features.n_rows, prediction.features.shape[1]), np.float16)
    top_slots[prediction.rows], top_probs[prediction.rows] = slots, probs
    vectors[prediction.rows] = prediction.features
    labels, (_, class_ids) = project.labels_of_round(number), project.label_state(number)
    owner = ids_by_slot(project.run_folder(number), class_ids, fitted.n_slots)
    facts = {"model_id": fitted.model_id, "n_old": fitted.n_old, "n_slots": fitted.n_slots, "class_ids": owner}
    make_start_view(project, features, with_map=False)
    return write_round_view(project.folder, number, top_slots, top_probs, vectors, labels, facts)


def make_start_view(project: Project, features: RowFeatures, *, with_map: bool = True) -> RoundView:
    """What there is to show and to ask before any training: clusters of the pretrained features, from the first view
    of every image."""
    known = project.round_view(START)
    if known is not None and known.live is not None:
        return known
    readable = np.setdiff1d(np.arange(features.n_rows), list(features.bad_rows))
    train = readable[~project.is_test[readable]]
    vectors = np.zeros((features.n_rows, features.dim), np.float16)
    vectors[readable] = frozen_features(features, readable)
    live = find_live_rows(vectors, train, readable)
    top_slots = np.full((features.n_rows, 1), NO_SLOT, np.int32)
    top_slots[readable, 0] = live.cluster[live.stand_in[readable]]
    top_probs = np.zeros(top_slots.shape, np.float16)
    n = live.n_clusters
    facts = {"model_id": digest(["start", features.fingerprint]), "n_old": 0, "n_slots": n, "class_ids": [None] * n}
    said = project.labels()
    return write_round_view(project.folder, START, top_slots, top_probs, vectors, said, facts, live, with_map=with_map)


def realigned(mapping: LabelMapping, before: Sequence[str], now: Sequence[str]) -> LabelMapping:
    """``mapping`` in the class numbers of ``now``; merging or undoing may renumber novel classes. −1: no slot yet."""
    place = {class_id: c for c, class_id in enumerate(before)}
    known = np.array([place.get(class_id, -1) for class_id in now], dtype=np.int64)
    slots = np.append(mapping.slot_of_class, -1)[known]
    return replace(mapping, slot_of_class=slots, observed=np.append(mapping.observed, False)[known])


def ask(project: Project, n: int | None = None) -> StoredQuery:
    """The ``n`` images (default: as configured) whose labels would help most; the query is stored.

    The last finished round's model is asked; rows that were answered since are not asked about again.
    """
    number = project.last_round + 1
    if n is not None and n < 1:
        raise ConfigError(f"{n} questions were asked for; at least 1 is expected.")
    # The mapping knows the classes of its own round only, so newer answers count as passed until the next one.
    then, now = project.label_state(number - 1)[0], project.label_state()[0]
    answered = np.ones(project.n_rows, dtype=np.bool_)
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


def row_features(project: Project, progress: Progress | None = None, n_views: int | None = None) -> RowFeatures:
    """The features of every image, made where they are missing; of ``n_views`` views, or as many as configured."""
    for number in range(project.n_finished):
        project.checked_run(number)
    fill = project.engine.fill if project.engine else None
    cache = project.folder / "cache"
    backbone = project.config.backbone
    if n_views is not None:
        backbone = backbone.model_copy(update={"views": n_views})
    return open_features(project.dataset(), backbone, cache, progress=progress, fill=fill)


def _session(project: Project, features: RowFeatures, labels: LabelState, n_rounds: int, echo: Log | None) -> Session:
    """A session that has taken up the finished rounds."""
    store = NumberedRuns(project.folder)
    fit = project.engine.fit if project.engine else None
    session = Session(features, labels, project.config, project.n_slots, store, echo=echo, fit=fit)
    session.resume(n_rounds)
    return session


# --------------------------------------------------------------------------------------------------- new images


def predict(project: Project, new_images: Sequence[Path]) -> dict[str, list[Any]]:
    """Class, old or new, probability and margin of images from elsewhere, one folder or files; unusable ones have a
    reason instead."""
    snapshot = project.trained_snapshot()
    model = checked(project.checked_run(snapshot.n_finished - 1), MODEL).absolute()
    dataset, shown = _new_dataset(new_images)
    files = [(str(path.absolute()), key) for path, key in zip(dataset.paths or (), dataset.keys, strict=True)]
    chunks = [files[i : i + _CHUNK] for i in range(0, len(files), _CHUNK)]
    engine = project.engine or open_engine()
    make = partial(Predictor, project.config.backbone, model, snapshot.slot_names)
    answers = dict(engine.map_chunks(make, chunks))
    lines = [line for position in range(len(chunks)) for line in answers[position]]
    rows = [[path, *line] for path, line in zip(shown, lines, strict=True)]
    rows += [[refused.path, *[None] * len(_MODEL_COLUMNS), refused.reason] for refused in dataset.quarantine]
    rows.sort(key=lambda row: row[-1] is not None)  # the unusable ones last
    columns = ("path", *_MODEL_COLUMNS, "problem")
    return {name: [row[i] for row in rows] for i, name in enumerate(columns)}


class Predictor:
    """A stored model, opened once, for chunks of files; ``named`` is the name of each slot, and whether it is new."""

    def __init__(self, config: BackboneConfig, model: Path, named: list[tuple[str, bool]]) -> None:
        self._backbone, self._model, self._named = load_backbone(config), model, named
        self._fitted: Fitted | None = None

    def __call__(self, chunk: Chunk) -> list[list[Any]]:
        """Class, old or new, probability, margin and problem of every file."""
        # New images are looked at once: their features are not worth a place on the disk.
        features = OnlineRows(_unlabelled(chunk), self._backbone)
        self._fitted = self._fitted or Fitted.load(self._model, features)
        prediction = self._fitted.predict(features, np.arange(features.n_rows))
        slots, sure = prediction.y_slot.tolist(), prediction.probs.max(1).tolist()
        lines: list[list[Any]] = [
            [*self._named[slot], probability, margin, None]
            for slot, probability, margin in zip(slots, sure, margin_of(prediction.probs).tolist(), strict=True)
        ]
        for row, reason in features.bad_rows.items():
            lines[row] = [*[None] * len(_MODEL_COLUMNS), reason]
        return lines


def _unlabelled(chunk: Chunk) -> Dataset:
    n = len(chunk)
    paths, keys = tuple(Path(path) for path, _ in chunk), tuple(key for _, key in chunk)
    return Dataset("new images", (), np.full(n, UNLABELLED, dtype=np.int64), np.zeros(n, dtype=bool), keys, paths)


def _new_dataset(new_images: Sequence[Path]) -> tuple[Dataset, list[str]]:
    """The images and how their paths are shown."""
    if len(new_images) == 1 and new_images[0].is_dir():
        dataset = from_folder(new_images[0])
        return dataset, [path.relative_to(new_images[0]).as_posix() for path in dataset.paths or ()]
    for path in new_images:
        if not path.is_file():
            raise DataError(f"{path} is not an image file; give one folder, or files.")
    items = [Item(path, str(path), None) for path in new_images]
    dataset = image_dataset("new images", items, otherwise="None of the given files is a usable image")
    return dataset, [str(path) for path in dataset.paths or ()]
