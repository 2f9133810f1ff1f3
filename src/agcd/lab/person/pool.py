"""A collection as a practitioner has it: some classes known by a few labels, the rest hidden; drawn with a seed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from agcd.config import BackboneConfig
from agcd.errors import ConfigError
from agcd.features import open_features
from agcd.rng import generator
from agcd.training.fitted import frozen_features
from agcd.types import UNLABELLED, BoolArray, Dataset, FloatArray, IntArray
from agcd.words import count


@dataclass(frozen=True)
class Start:
    """How much of the data is taken, and how much of that is known."""

    n_classes: int | None
    """Classes that are drawn; None takes all."""
    n_known: int
    n_labels: int
    """Labels of each known class."""
    n_rows: int | None = None
    """Rows that are taken of the drawn classes; None takes all."""


@dataclass(frozen=True)
class Pool:
    """What a way of labelling may see; it holds no truth. Rows are positions."""

    x: FloatArray
    """(n, d): frozen features of unit length."""
    y_start: IntArray
    """(n,): the known class of labelled rows, −1 elsewhere."""
    known: tuple[str, ...]
    """The names of the classes that have labels, by number."""
    n_classes: int
    """How many classes there truly are: only for ways that say that they are told."""
    paths: tuple[Path, ...] | None
    seed: int
    texts: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Drawn:
    """A pool with what only the person, and whoever measures, may know."""

    pool: Pool
    truth: IntArray
    names: tuple[str, ...]
    """By number: the known classes first."""

    @property
    def is_hidden(self) -> BoolArray:
        """(n,): rows that start without a label, over which everything is measured."""
        return self.pool.y_start < 0


def draw_pool(dataset: Dataset, start: Start, seed: int, backbone: BackboneConfig, cache_dir: Path) -> Drawn:
    """Draw classes, known classes and labelled rows, and compute the features of what was drawn."""
    rows, truth, classes = draw_classes(dataset, start, seed)
    features = open_features(only_rows(dataset, rows), backbone, cache_dir)
    kept = np.setdiff1d(np.arange(len(rows)), list(features.bad_rows))
    rows, truth = rows[kept], truth[kept]
    names = tuple(dataset.classes[c] for c in classes)
    pool = Pool(
        frozen_features(features, kept),
        start_labels(truth, start, seed),
        names[: start.n_known],
        len(classes),
        None if dataset.paths is None else tuple(dataset.paths[row] for row in rows),
        seed,
        None if dataset.texts is None else tuple(dataset.texts[row] for row in rows),
    )
    return Drawn(pool, truth, names)


def draw_classes(dataset: Dataset, start: Start, seed: int) -> tuple[IntArray, IntArray, list[int]]:
    """The train rows of the drawn classes, their classes numbered anew, and the old numbers of these, known first."""
    train = ~dataset.is_test
    n_rows = np.bincount(dataset.y_class[train & (dataset.y_class >= 0)], minlength=len(dataset.classes))
    usable = np.flatnonzero(n_rows > start.n_labels)
    wanted = len(usable) if start.n_classes is None else start.n_classes
    if not 2 <= wanted <= len(usable):
        enough = f"{count(len(usable), 'class')} with more than {start.n_labels} train rows"
        raise ConfigError(f"{dataset.name} has {enough}, of which {wanted} cannot be drawn: choose with --classes.")
    if not 1 <= start.n_known <= wanted:
        raise ConfigError(f"--known is {start.n_known}: 1 to {wanted} of {wanted} classes can be known.")
    classes = generator(seed, "person", "classes").permutation(usable)[:wanted].tolist()
    number = np.full(len(dataset.classes), UNLABELLED, np.int64)
    number[classes] = np.arange(wanted)
    y_class = np.where(dataset.y_class >= 0, number[dataset.y_class], UNLABELLED)
    rows = np.flatnonzero(train & (y_class >= 0))
    if start.n_rows is not None:
        rows = np.sort(generator(seed, "person", "rows").permutation(rows)[: start.n_rows])
    return rows, y_class[rows], classes


def start_labels(truth: IntArray, start: Start, seed: int) -> IntArray:
    y_start = np.full(len(truth), UNLABELLED, np.int64)
    rng = generator(seed, "person", "labels")
    for c in range(start.n_known):
        y_start[rng.permutation(np.flatnonzero(truth == c))[: start.n_labels]] = c
    return y_start


def only_rows(dataset: Dataset, rows: IntArray) -> Dataset:
    """Some rows of a data set, without what is known of them."""
    nothing = np.full(len(rows), UNLABELLED, np.int64)
    return replace(dataset.only(rows), y_class=nothing, is_test=np.zeros(len(rows), np.bool_))
