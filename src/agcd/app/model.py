"""What of a project needs its model: features, training, asking, naming new items. It loads torch.

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
from agcd.app.new_items import Chunk, New, Reader, find_new_items
from agcd.app.project import Project
from agcd.app.round_files import ids_by_slot, open_round_view, write_round_view
from agcd.app.rounds import NO_SLOT, START, RoundView, top_of
from agcd.app.store.queries import Question, StoredQuery, add_query
from agcd.arrays import margin_of
from agcd.config import Config
from agcd.engine import open_engine
from agcd.errors import ConfigError, DataError
from agcd.features import open_features
from agcd.features.devices import find_device
from agcd.features.rows import RowFeatures
from agcd.io import digest
from agcd.layout import place_beside
from agcd.run_files import MODEL, checked
from agcd.run_store import NumberedRuns
from agcd.session import Round, Session, check_labels, without_bad_rows
from agcd.tracking import Tracking
from agcd.training import trainer_options
from agcd.training.fitted import Fitted, frozen_features
from agcd.training.loop import Log
from agcd.training.n_classes import look_for_classes
from agcd.types import IntArray, LabelMapping, LabelState, NumberOfClasses

Progress = Callable[[int, int], None]
"""Called with how much is done, and of how much."""
_CHUNK = 512
"""Items that are named at once: enough to keep the decoders busy, few enough to share among workers."""
_MODEL_COLUMNS = ("class", "known", "by", "probability", "margin", "slot")


@dataclass(frozen=True)
class Trained:
    """The last round, and whether this call had anything to do for it."""

    round: int
    is_new: bool
    metrics: dict[str, Any]


def train(
    project: Project, echo: Log | None = None, progress: Progress | None = None, track: Tracking | None = None
) -> Trained:
    """Train the next round on all that was said before it began; labels that come in meanwhile wait.

    A broken-off round is continued. ``echo`` sees every epoch, ``progress`` the images whose features are made, and
    ``track`` is told of every epoch as well.
    """
    snapshot = project.snapshot()
    number = snapshot.n_finished
    if number and _show_all_rows(project, number - 1, progress):
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
    if features.n_rows != len(labels.y_class):  # rows were added since the round began: it never learns of them
        features = row_features(project, progress, n_rows=len(labels.y_class))
    session = _session(project, features, labels, number, echo, track)
    if number:
        before = project.label_state(number - 1)[1]
        session.rounds[-1] = replace(session.latest, last=realigned(session.latest.last, before, class_ids))
    done = session.train()
    make_round_view(project, features, done)
    _show_all_rows(project, number, progress)
    return Trained(done.number, True, done.metrics)


def _show_all_rows(project: Project, number: int, progress: Progress | None) -> bool:
    """Have a whole view of a finished round over all rows that there are; whether there was something to do."""
    view = project.round_view(number)
    if view is None or view.live is None:  # somebody emptied the cache, or it is of version 0.1
        make_round_view(project, row_features(project, progress))
    elif view.n_unseen:
        look_at_new_rows(project, progress)
    else:
        return False
    return True


def look_at_new_rows(project: Project, progress: Progress | None = None) -> None:
    """Give rows that were added their neighbours, a group, a place on the map, and what the last model says of them.

    What is known of the other rows stays as it is, and only the new pictures are computed.
    """
    features = row_features(project, progress, n_views=1)
    make_start_view(project, features)
    number = project.n_finished - 1
    before = open_round_view(project.folder, number) if number >= 0 else None
    if before is not None and before.n_rows - before.n_unseen < features.n_rows:
        _grow_round_view(project, features, before, before.n_rows - before.n_unseen)


def _grow_round_view(project: Project, features: RowFeatures, before: RoundView, n_known: int) -> None:
    """Write the view of a finished round again, with what its model says of the rows from ``n_known`` on."""
    if before.features is None:
        make_round_view(project, features)
        return
    folder = project.checked_run(before.number)
    fitted = Fitted.load(checked(folder, MODEL), features, find_device(project.config.device))
    fresh = _readable(features)
    prediction = fitted.predict(features, fresh[fresh >= n_known])
    slots, probs = top_of(prediction.probs)
    grown = before.over(features.n_rows)
    assert grown.features is not None
    top_slots, top_probs, vectors = np.array(grown.top_slots), np.array(grown.top_probs), np.array(grown.features)
    top_slots[prediction.rows], top_probs[prediction.rows] = slots, probs
    vectors[prediction.rows] = prediction.features
    is_test = project.is_test[: features.n_rows]
    labels, xy = project.labels_of_round(before.number).with_rows(is_test), np.array(grown.xy)
    train = prediction.rows[~is_test[prediction.rows]]
    xy[train] = place_beside(vectors, train, xy)
    facts = {name: before.facts[name] for name in ("model_id", "n_old", "n_slots", "class_ids")}
    write_round_view(project.folder, before.number, top_slots, top_probs, vectors, labels, facts, xy=xy)


def _readable(features: RowFeatures) -> IntArray:
    return np.setdiff1d(np.arange(features.n_rows), list(features.bad_rows))


def estimate_classes(project: Project, features: RowFeatures, progress: Progress | None = None) -> NumberOfClasses:
    """Estimate how many classes there are (Max-ACC), from the pretrained features; once per project."""
    known = project.estimated_classes()
    if known is not None:
        return known
    labels = without_bad_rows(project.label_state()[0], features)
    estimate = look_for_classes(
        features, labels, seed=project.config.seed, max_acc=project.config.max_acc, say=progress
    )
    project.keep_estimate(estimate)
    return estimate


def make_round_view(project: Project, features: RowFeatures, done: Round | None = None) -> RoundView:
    """Write what the page shows of ``done``, else of the last finished round; what was predicted is not predicted
    again. A round that was lost and made anew may have later ones after it."""
    number = done.number if done else project.last_round
    device = find_device(project.config.device)
    fitted = done.fitted if done else Fitted.load(checked(project.checked_run(number), MODEL), features, device)
    prediction = done.prediction if done else None
    if prediction is None:
        prediction = fitted.predict(features, _readable(features))
    slots, probs = top_of(prediction.probs)
    top_slots = np.full((features.n_rows, slots.shape[1]), NO_SLOT, np.int32)
    top_probs = np.zeros(top_slots.shape, np.float16)
    vectors = np.zeros((features.n_rows, prediction.features.shape[1]), np.float16)
    top_slots[prediction.rows], top_probs[prediction.rows] = slots, probs
    vectors[prediction.rows] = prediction.features
    labels = project.labels_of_round(number).with_rows(project.is_test[: features.n_rows])
    _, class_ids = project.label_state(number)
    owner = ids_by_slot(project.run_folder(number), class_ids, fitted.n_slots)
    facts = {"model_id": fitted.model_id, "n_old": fitted.n_old, "n_slots": fitted.n_slots, "class_ids": owner}
    make_start_view(project, features, with_map=False)
    return write_round_view(project.folder, number, top_slots, top_probs, vectors, labels, facts)


def make_start_view(project: Project, features: RowFeatures, *, with_map: bool = True) -> RoundView:
    """What there is to show and to ask before any training: clusters of the pretrained features, from the first view
    of every image."""
    known = open_round_view(project.folder, START)
    known = known if known and known.live and known.n_rows <= project.n_rows else None
    if known is not None and known.n_rows >= features.n_rows:
        return known
    readable, is_test = _readable(features), project.is_test[: features.n_rows]
    train = readable[~is_test[readable]]
    vectors = np.zeros((features.n_rows, features.dim), np.float16)
    vectors[readable] = frozen_features(features, readable, find_device(project.config.device))
    live = find_live_rows(vectors, train, readable, known.live if known else None)
    top_slots = np.full((features.n_rows, 1), NO_SLOT, np.int32)
    top_slots[readable, 0] = live.cluster[live.stand_in[readable]]
    top_probs = np.zeros(top_slots.shape, np.float16)
    n = live.n_clusters
    facts = {"model_id": digest(["start", features.fingerprint]), "n_old": 0, "n_slots": n, "class_ids": [None] * n}
    said, xy = project.labels().with_rows(is_test), None
    if known is not None:
        fresh, xy = train[train >= known.n_rows], np.array(known.over(features.n_rows).xy)
        xy[fresh] = place_beside(vectors, fresh, xy)
    return write_round_view(
        project.folder, START, top_slots, top_probs, vectors, said, facts, live, with_map=with_map, xy=xy
    )


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
    then, now = project.label_state(number - 1, all_rows=True)[0], project.label_state()[0]
    answered = np.ones(project.n_rows, dtype=np.bool_)
    answered[now.pool_rows] = False
    labels = replace(then, passed=then.passed | answered)
    if not len(labels.pool_rows):
        raise DataError(f"There is nothing left to ask: every {project.kind.noun} has an answer.")
    features = row_features(project)
    session = _session(project, features, labels, number, None)
    query = session.ask(n)
    asked = list(zip(query.rows.tolist(), query.reasons, query.scores.tolist(), query.facts["slots"], strict=True))
    # One predicted slot after another, so that the eye of whoever answers stays on one topic.
    first = {slot: rank for rank, (*_, slot) in reversed(list(enumerate(asked)))}
    asked.sort(key=lambda question: first[question[-1]])
    questions = [Question(row, rank, why, score, slot) for rank, (row, why, score, slot) in enumerate(asked)]
    return add_query(project.store, number, query.strategy, query.model_id, questions)


def row_features(
    project: Project, progress: Progress | None = None, n_views: int | None = None, n_rows: int | None = None
) -> RowFeatures:
    """The features of every image, or of the first ``n_rows``, made where they are missing; of ``n_views`` views, or as
    many as configured."""
    for number in range(project.n_finished):
        project.checked_run(number)
    fill = project.engine.fill if project.engine else None
    cache = project.folder / "cache"
    backbone = project.config.backbone
    if n_views is not None:
        backbone = backbone.model_copy(update={"views": n_views})
    return open_features(
        project.dataset(n_rows), backbone, cache, device=project.config.device, progress=progress, fill=fill
    )


def _session(
    project: Project,
    features: RowFeatures,
    labels: LabelState,
    n_rounds: int,
    echo: Log | None,
    track: Tracking | None = None,
) -> Session:
    """A session that has taken up the finished rounds."""
    store = NumberedRuns(project.folder)
    fit = project.engine.fit if project.engine else None
    session = Session(features, labels, project.config, project.n_slots, store, echo=echo, fit=fit, track=track)
    session.resume(n_rounds)
    return session


# ---------------------------------------------------------------------------------------------------- new items


def predict(project: Project, new: Sequence[New]) -> dict[str, list[Any]]:
    """What the model says of items from elsewhere: of images in folders or files, of texts in such or typed, or of
    embeddings where the project was given some; unusable ones have a reason instead."""
    snapshot = project.trained_snapshot()
    model = checked(project.checked_run(snapshot.n_finished - 1), MODEL).absolute()
    found = find_new_items(project, new)
    chunks = [found.items[i : i + _CHUNK] for i in range(0, len(found.items), _CHUNK)]
    engine = project.engine if project.engine and found.is_work else open_engine()
    make = partial(Predictor, found.reader, project.config, model, snapshot.slot_names)
    answers = dict(engine.map_chunks(make, chunks, find_device(project.config.device).type))
    lines = [line for position in range(len(chunks)) for line in answers[position]]
    rows = [[*shown, *line] for shown, line in zip(zip(*found.shown.values(), strict=True), lines, strict=True)]
    columns = (*found.shown, *_MODEL_COLUMNS, "problem")
    rows += [[path, *[None] * (len(columns) - 2), reason] for path, reason in found.refused]
    rows.sort(key=lambda row: row[-1] is not None)  # the unusable ones last
    return {name: [row[i] for row in rows] for i, name in enumerate(columns)}


class Predictor:
    """A stored model, opened once, for chunks of items; ``named`` is the name of each slot, and whether it is new."""

    def __init__(
        self,
        reader: Callable[[Config], Reader],
        config: Config,
        model: Path,
        named: list[tuple[str, bool]],
    ) -> None:
        self._read, self._model, self._named = reader(config), model, named
        self._device = find_device(config.device)
        self._fitted: Fitted | None = None

    def __call__(self, chunk: Chunk) -> list[list[Any]]:
        """The columns of the model and the problem, of every item."""
        features = self._read(chunk)
        self._fitted = self._fitted or Fitted.load(self._model, features, self._device)
        prediction = self._fitted.predict(features, np.arange(features.n_rows))
        slots, sure = prediction.y_slot.tolist(), prediction.probs.max(1).tolist()
        lines: list[list[Any]] = [
            [self._named[slot][0], not self._named[slot][1], "model", probability, margin, slot, None]
            for slot, probability, margin in zip(slots, sure, margin_of(prediction.probs).tolist(), strict=True)
        ]
        for row, reason in features.bad_rows.items():
            lines[row] = [*[None] * len(_MODEL_COLUMNS), reason]
        return lines
