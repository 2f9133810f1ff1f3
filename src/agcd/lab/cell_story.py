"""Turns a finished benchmark cell into the story that the report tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sklearn.manifold import TSNE

from agcd import mapping
from agcd.data.images import decode
from agcd.lab.cells import Cell, Prepared, open_session, prepare
from agcd.report.story import ClassStrip, Confidence, FeatureMap, RoundFacts, Story
from agcd.session import Round, Session

_THUMBNAILS = 8
_MAP_POINTS = 2000
_MEASURED = ("acc_all", "acc_old", "acc_new", "phase", "mapping_diff", "best_on_test", "agreement")
_NOVELTY = ("nov_coverage", "nov_ratio", "nov_uniformity", "nov_information")


@dataclass(frozen=True)
class Replay:
    """A finished cell, opened again: nothing is computed that is on disk."""

    prepared: Prepared
    session: Session

    @property
    def last(self) -> Round:
        return self.session.rounds[-1]


def replay(cell: Cell, out: Path, cache_dir: Path) -> Replay:
    """Go through the rounds of a finished cell again, from its stored runs and queries."""
    prepared = prepare(cell, cache_dir)
    session = open_session(cell, prepared, out)
    session.train()
    for _ in range(cell.config.query.rounds):
        query = session.ask()
        session.tell(query.rows, prepared.examiner.answer(query.rows))
        session.train()
    return Replay(prepared, session)


def tell_story(
    replayed: Replay,
    records: Sequence[dict[str, Any]],
    rivals: dict[str, Sequence[dict[str, Any]]],
    facts: Sequence[tuple[str, str]],
    commands: Sequence[str],
) -> Story:
    """Everything the report shows about one run and its rivals."""
    prepared = replayed.prepared
    examiner, dataset = prepared.examiner, prepared.dataset
    moments = (("Before the first answer", replayed.session.rounds[0]), ("At the end", replayed.last))
    paths = dataset.paths
    return Story(
        title=f"Category discovery in {dataset.name}",
        subtitle=f"{examiner.n_old} classes known at the start, {len(examiner.names) - examiner.n_old} hidden",
        facts=tuple(facts),
        rounds=round_facts(records, replayed.session.rounds, replayed.session.labels.classes),
        rivals={name: round_facts(rows) for name, rows in rivals.items()},
        confidence=tuple(_confidence(title, done, replayed) for title, done in moments),
        maps=tuple(_feature_map(title, done, replayed) for title, done in moments),
        classes=class_strips(replayed),
        name=replayed.session.config.query.strategy,
        measured_on="the test split" if examiner.on_test else "the unlabelled training rows",
        thumbnail=(lambda row: thumbnail(paths[row])) if paths else None,
        commands=tuple(commands),
    )


def round_facts(
    records: Sequence[dict[str, Any]], rounds: Sequence[Round] = (), names: Sequence[str] = ()
) -> tuple[RoundFacts, ...]:
    """The table of rounds; with ``rounds`` also what changed in the mapping, in words."""
    changes: list[tuple[str, ...]] = [()] * len(records)
    for i in range(1, len(rounds)):
        changes[i] = tuple(mapping.describe_change(rounds[i - 1].last, rounds[i].last, names))
    return tuple(
        RoundFacts(
            number=record["round"],
            n_labels=record["n_queried"],
            mapping_changes=changed,
            **{name: record[name] for name in _MEASURED},
            # Before the first question there is nothing whose novelty could be measured.
            **{name: record[name] if record["round"] else None for name in _NOVELTY},
        )
        for record, changed in zip(records, changes, strict=True)
    )


def class_strips(replayed: Replay) -> tuple[ClassStrip, ...]:
    """Each slot of the last model as a class: its name, size, most typical images and those asked about."""
    session, last = replayed.session, replayed.last
    labels, examiner = session.labels, replayed.prepared.examiner
    prediction = last.fitted.predict(session.features, labels.train_rows)
    name_of_slot = {int(slot): name for name, slot in zip(labels.classes, last.last.slot_of_class, strict=True)}
    strips = []
    for slot in range(last.fitted.n_slots):
        members = np.flatnonzero(prediction.y_slot == slot)
        typical = members[np.argsort(-prediction.probs[members, slot], kind="stable")]
        name = name_of_slot.get(slot)
        asked = labels.queried_rows[[labels.classes[c] == name for c in labels.y_class[labels.queried_rows]]]
        right = [examiner.names[c] == name for c in examiner.truth[prediction.rows[members]]]
        strips.append(
            ClassStrip(
                name=name or f"unnamed #{slot}",
                is_new=slot >= labels.n_old,
                size=len(members),
                typical_rows=prediction.rows[typical[:_THUMBNAILS]],
                queried_rows=asked[:_THUMBNAILS],
                purity=float(np.mean(right)) if name and len(right) else None,
            )
        )
    return tuple(strips)


def _confidence(title: str, done: Round, replayed: Replay) -> Confidence:
    examiner = replayed.prepared.examiner
    is_new = examiner.truth[examiner.rows] >= examiner.n_old
    top = done.fitted.predict(replayed.prepared.features, examiner.rows).probs.max(1)
    return Confidence(title, top[~is_new], top[is_new])


def _feature_map(title: str, done: Round, replayed: Replay) -> FeatureMap:
    """Measured rows and queried ones in two dimensions by t-SNE."""
    examiner, session = replayed.prepared.examiner, replayed.session
    asked = session.labels.queried_rows
    shown = np.concatenate([examiner.rows[:: 1 + len(examiner.rows) // _MAP_POINTS], asked])
    features = done.fitted.predict(session.features, shown).features
    xy = TSNE(perplexity=min(30.0, (len(shown) - 1) / 3), init="pca", random_state=0).fit_transform(features)
    truth = examiner.truth[shown]
    return FeatureMap(title, xy, truth, truth >= examiner.n_old, np.isin(shown, asked), examiner.names)


def thumbnail(path: Path) -> Image.Image:
    """A small copy of an image, turned as its camera meant it."""
    image = decode(path, draft_size=256)
    image.thumbnail((256, 256))
    return image
