"""Benchmark splits: which classes are old, which train rows carry a label at the start, a long tail on request.

Every draw comes from the seed, so different seeds give different splits. The published code always drew the labelled
rows with 0; ``draw="published"`` repeats that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from agcd.data.items import clean_name
from agcd.errors import ConfigError, DataError, did_you_mean
from agcd.io import digest, read_json, write_json
from agcd.rng import generator
from agcd.types import UNLABELLED, Dataset, IntArray, LabelState, Split

_VERSION = 1


def make_split(
    dataset: Dataset,
    *,
    seed: int,
    n_old: int | None = None,
    label_ratio: float = 0.2,
    long_tail: float | None = None,
    old_classes: Sequence[str] | None = None,
    draw: Literal["seeded", "published"] = "seeded",
) -> Split:
    """Old and novel classes, and the train rows that start with a label.

    The old classes are ``n_old`` (default: half, rounded down) drawn with the seed, or those named. Of
    the n train rows of old classes int(label_ratio · n) are labelled, uniform over rows; an old class that got none
    takes one from the class that got most, because a class nobody labelled is not known. With ``label_ratio`` 0 no
    class is old. ``long_tail`` is the ratio between the largest and the smallest class of an exponential profile over
    the train rows.

    ``draw="published"`` labels the rows that the published code labels, the same for every seed: exactly as there,
    so an old class that got no label stays without one.
    """
    _check_settings(dataset, label_ratio, long_tail)
    train = ~dataset.is_test
    unused_rows = _long_tail_rest(dataset, seed, long_tail) if long_tail else np.empty(0, dtype=np.int64)
    train[unused_rows] = False
    old = _old_classes(dataset, seed, n_old, old_classes) if label_ratio > 0 else []
    is_old = set(old)
    old_rows = np.flatnonzero(train & np.isin(dataset.y_class, old))
    return Split(
        old_classes=tuple(dataset.classes[c] for c in old),
        novel_classes=tuple(name for c, name in enumerate(dataset.classes) if c not in is_old),
        labelled_rows=_labelled_rows(old_rows, dataset.y_class, seed, label_ratio, draw),
        unused_rows=unused_rows,
        seed=seed,
        label_ratio=label_ratio,
    )


def _check_settings(dataset: Dataset, label_ratio: float, long_tail: float | None) -> None:
    if len(dataset.classes) < 2:
        raise DataError(f"{dataset.name} has {len(dataset.classes)} labelled classes; a split needs at least 2.")
    if not 0 <= label_ratio <= 1:
        raise ConfigError(f"label_ratio is {label_ratio}; a share from 0 to 1 is expected.")
    if long_tail is not None and not 1 <= long_tail < math.inf:
        raise ConfigError(f"long_tail is {long_tail}; a number of at least 1 is expected.")


def _old_classes(dataset: Dataset, seed: int, n_old: int | None, names: Sequence[str] | None) -> list[int]:
    """The numbers of the old classes, in listed order, or in the order of ``names``."""
    if names is not None:
        return _named_classes(dataset, names, n_old)
    candidates = np.unique(dataset.y_class[~dataset.is_test & (dataset.y_class >= 0)])
    wanted = len(dataset.classes) // 2 if n_old is None else n_old
    most = min(len(candidates), len(dataset.classes) - 1)
    if not 1 <= wanted <= most:
        raise ConfigError(f"n_old is {wanted}; 1 to {most} of the {len(dataset.classes)} classes can be old.")
    drawn = generator(seed, "split", "old_classes").permutation(candidates)
    return sorted(drawn[:wanted].tolist())


def _named_classes(dataset: Dataset, names: Sequence[str], n_old: int | None) -> list[int]:
    number = {name: c for c, name in enumerate(dataset.classes)}
    with_train_rows = set(dataset.y_class[~dataset.is_test].tolist())
    for name in names:
        if name not in number:
            raise ConfigError(f"Unknown old class {name!r}.{did_you_mean(name, number)}")
        if number[name] not in with_train_rows:
            raise DataError(f"Old class {name!r} has no train rows in {dataset.name}.")
    if len(set(names)) < len(names) or not 1 <= len(names) < len(number) or n_old not in (None, len(names)):
        raise ConfigError(
            f"old_classes names {len(set(names))} different classes in {len(names)} entries; "
            f"{n_old or f'1 to {len(number) - 1}'} of the {len(number)} classes are expected."
        )
    return [number[name] for name in names]


def _labelled_rows(old_rows: IntArray, y_class: IntArray, seed: int, label_ratio: float, draw: str) -> IntArray:
    if draw == "seeded":
        return _draw_labelled(old_rows, y_class, seed, label_ratio)
    if draw == "published":
        return _draw_as_published(old_rows, label_ratio)
    raise ConfigError(f"Unknown draw {draw!r}.{did_you_mean(draw, ('seeded', 'published'))}")


def _draw_as_published(old_rows: IntArray, label_ratio: float) -> IntArray:
    """int(label_ratio · n) of ``old_rows`` in data set order, by NumPy's legacy generator with seed 0; sorted."""
    legacy = np.random.RandomState(0)
    places = legacy.choice(len(old_rows), int(label_ratio * len(old_rows)), replace=False)
    return np.sort(old_rows[places])


def _draw_labelled(old_rows: IntArray, y_class: IntArray, seed: int, label_ratio: float) -> IntArray:
    """int(label_ratio · n) of ``old_rows``, uniform over rows, then mended so that every class has one; sorted."""
    rng = generator(seed, "split", "labelled")
    chosen = set(rng.choice(old_rows, int(label_ratio * len(old_rows)), replace=False).tolist())
    count = dict.fromkeys(np.unique(y_class[old_rows]).tolist(), 0)
    for row in chosen:
        count[int(y_class[row])] += 1
    for missing in [c for c, n in count.items() if n == 0]:
        chosen.add(int(rng.choice(old_rows[y_class[old_rows] == missing])))
        richest = max(count, key=lambda c: count[c])
        if count[richest] > 1:
            chosen.remove(int(rng.choice(sorted(row for row in chosen if y_class[row] == richest))))
            count[richest] -= 1
        count[missing] = 1
    return np.array(sorted(chosen), dtype=np.int64)


def read_old_classes(path: Path) -> tuple[str, ...]:
    """The old classes that a user's file names, in its order: JSON ``{"old": ["name of a class", …]}``.

    Other keys are passed over, so that a file may say where it comes from.
    """
    expected = 'JSON {"old": [class names]} is expected'
    try:
        value = read_json(path)
        if not isinstance(value, dict) or "old" not in value:
            raise ValueError("no key 'old'")
        names = value["old"]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise TypeError("old is not a list of str")
        return tuple(clean_name(name) for name in names)
    except FileNotFoundError:
        raise DataError(f"There is no file at {path}: {expected}.") from None
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise DataError(f"{path} does not list old classes ({error}): {expected}.") from None


def _long_tail_rest(dataset: Dataset, seed: int, factor: float) -> IntArray:
    """The train rows that an exponential profile leaves out.

    Class number i of K in a seeded order keeps floor(n_max · factor^(−i/(K−1))) rows, at least 1, at most all.
    """
    rng = generator(seed, "split", "long_tail")
    y_class = np.where(dataset.is_test, UNLABELLED, dataset.y_class)
    classes, counts = np.unique(y_class[y_class >= 0], return_counts=True)
    steps = max(len(classes) - 1, 1)
    rest: list[int] = []
    for i, c in enumerate(rng.permutation(classes).tolist()):
        # the tiny addend keeps 100 · 10^(−1) from being floored to 9
        n_kept = max(1, math.floor(counts.max() * factor ** (-i / steps) + 1e-9))
        rest += rng.permutation(np.flatnonzero(y_class == c))[n_kept:].tolist()
    return np.array(sorted(rest), dtype=np.int64)


def start_state(dataset: Dataset, split: Split) -> LabelState:
    """What is known before the first question: the labels of ``split.labelled_rows``, in its class order.

    Train rows whose class is not known can teach, but nobody could answer for them: they are not asked about.
    """
    y_class = np.full(dataset.n_rows, UNLABELLED, dtype=np.int64)
    rows = split.labelled_rows
    y_class[rows] = truth_in_split_order(dataset, split)[rows]
    held_out = dataset.is_test.copy()
    held_out[split.unused_rows] = True
    asked_round = np.where(y_class >= 0, 0, -1).astype(np.int64)
    passed = (dataset.y_class == UNLABELLED) & ~held_out
    return LabelState(split.old_classes, len(split.old_classes), y_class, asked_round, held_out, passed)


def truth_in_split_order(dataset: Dataset, split: Split) -> IntArray:
    """The true class of every row (n,): old classes 0 … n_old − 1, then novel ones; −1 where it is not known."""
    place = {name: i for i, name in enumerate(split.old_classes + split.novel_classes)}
    new_number = np.array([*(place[name] for name in dataset.classes), UNLABELLED], dtype=np.int64)
    return new_number[dataset.y_class]  # −1 picks the last entry


def dataset_digest(dataset: Dataset) -> str:
    """A name for what the rows are and how they are numbered, whatever the files are called."""
    numbers = [dataset.y_class.tolist(), dataset.is_test.tolist()]
    return digest([list(dataset.keys), list(dataset.classes), *numbers])


def save_split(path: Path, split: Split, dataset: Dataset) -> None:
    """Store ``split`` as JSON with the digest of the data set whose rows it numbers."""
    value = {
        "version": _VERSION,
        "dataset": dataset_digest(dataset),
        "old_classes": list(split.old_classes),
        "novel_classes": list(split.novel_classes),
        "labelled_rows": split.labelled_rows.tolist(),
        "unused_rows": split.unused_rows.tolist(),
        "seed": split.seed,
        "label_ratio": split.label_ratio,
    }
    write_json(path, value)
