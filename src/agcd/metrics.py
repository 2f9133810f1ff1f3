"""How good the answers and the questions are: accuracy on old and novel classes, novelty of a query, confidence.

Here, and in ``bench``, the true classes of the pool may be read. Every metric is arrays → dict; a part without any
samples is NaN, never an error.

A benchmark takes more of them by name (``METRICS``): a metric from outside is a function ``(prediction, y_class, n_old)
-> {column: number}`` of what the EMA model says about the measured rows and of their true classes, the old ones first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csc_array
from scipy.special import entr

from agcd.arrays import entropy_of, margin_of, msp_of
from agcd.assignment import DENSE_CELLS, heaviest_matching, sparse_contingency
from agcd.errors import ConfigError
from agcd.mapping import check_pairs, contingency
from agcd.plugins import Registry
from agcd.types import BoolArray, FloatArray, IntArray, Prediction


def accuracy(y_class: IntArray, y_slot: IntArray, n_old: int) -> dict[str, float]:
    """Share of samples predicted as their class under the best assignment of slots to classes: All, Old, New.

    One Hungarian assignment over all samples and classes ("v2"); Old and New are read off the same assignment.
    Slots without a class are errors. Several assignments may be equally good overall: the one with most hits on
    old classes is taken, so no tie flatters New and the numbers do not depend on how slots are numbered.

    Parameters
    ----------
    y_class, y_slot : shape (n,)
        True classes (none may be −1) and predicted slots; neither needs all of its numbers to occur.
    n_old : int
        Classes below it are old.
    """
    hit = _hits(y_class, y_slot, n_old)
    return _by_part("acc", hit, np.asarray(y_class) < n_old)


def balanced_accuracy(y_class: IntArray, y_slot: IntArray, n_old: int) -> dict[str, float]:
    """As ``accuracy`` and by the same assignment, but every class that occurs counts the same: bal_all/old/new."""
    hit = _hits(y_class, y_slot, n_old)
    size = np.bincount(y_class)
    present = np.flatnonzero(size)
    per_class = np.bincount(y_class, weights=hit)[present] / size[present]
    return _by_part("bal", per_class, present < n_old)


def mapped_accuracy(y_class: IntArray, y_slot: IntArray, slot_of_class: IntArray, n_old: int) -> dict[str, float]:
    """Accuracy under a given mapping, which is what its user gets: mapped_all, mapped_old, mapped_new.

    Samples of classes that the mapping does not know yet are errors.
    """
    check_pairs(y_class, y_slot, _size(y_class), _size(y_slot))
    slots = np.full(max(_size(y_class), len(slot_of_class)), -1, dtype=np.int64)
    slots[: len(slot_of_class)] = slot_of_class
    return _by_part("mapped", slots[y_class] == y_slot, np.asarray(y_class) < n_old)


def _hits(y_class: IntArray, y_slot: IntArray, n_old: int) -> BoolArray:
    """Whether each sample is predicted as its class under the best assignment, (n,)."""
    if not len(y_class):
        return np.empty(0, dtype=bool)
    n_classes, n_slots = _size(y_class), _size(y_slot)
    check_pairs(y_class, y_slot, n_classes, n_slots)
    best = _best if n_classes * n_slots <= DENSE_CELLS else _best_sparsely
    return np.asarray(best(y_class, y_slot, n_old)[y_class] == y_slot)


def _best(y_class: IntArray, y_slot: IntArray, n_old: int) -> IntArray:
    """The slot of each class (n_classes,) under the best assignment; −1 for a class without one."""
    counts = contingency(y_class, y_slot, _size(y_class), _size(y_slot))
    # used slots, sorted by what is in them: how the solver settles ties is then blind to the numbers of slots
    order = np.lexsort(counts)
    order = order[counts.sum(axis=0)[order] > 0]
    is_old = np.arange(len(counts))[:, None] < n_old
    # old hits are a lower digit of the same whole number; exact in float64 up to 9e7 samples
    weights = (counts * (len(y_class) + 1) + counts * is_old)[:, order]
    classes, columns = linear_sum_assignment(weights, maximize=True)
    slot_of_class = np.full(len(counts), -1, dtype=np.int64)
    slot_of_class[classes] = order[columns]
    return slot_of_class


def _best_sparsely(y_class: IntArray, y_slot: IntArray, n_old: int) -> IntArray:
    """As ``_best``, equal to it in hits and old hits and as blind to the numbers of slots, for large tables."""
    counts = sparse_contingency(y_class, y_slot, _size(y_class), _size(y_slot))
    order = _by_content(counts.tocsc())
    counts = counts[:, order]
    counts.sort_indices()  # else each row would remember the numbers of its slots
    is_old = np.repeat(np.arange(counts.shape[0]) < n_old, np.diff(counts.indptr))
    counts.data = counts.data * (len(y_class) + 1) + counts.data * is_old
    column = heaviest_matching(counts)
    return np.where(column >= 0, order[column], -1)


def _by_content(counts: csc_array) -> IntArray:
    """The used slots, sorted by the classes in them and how often each occurs."""
    counts.sort_indices()
    pairs = np.stack([counts.indices.astype(np.int64), counts.data], axis=1)
    starts = counts.indptr
    used = np.flatnonzero(np.diff(starts)).tolist()
    return np.array(sorted(used, key=lambda slot: pairs[starts[slot] : starts[slot + 1]].tobytes()), dtype=np.int64)


def _size(values: IntArray) -> int:
    return int(values.max(initial=-1)) + 1


def _by_part(name: str, values: BoolArray | FloatArray, is_old: BoolArray) -> dict[str, float]:
    everything = np.ones(len(values), dtype=bool)
    parts = {"all": everything, "old": is_old, "new": ~is_old}
    return {f"{name}_{part}": _mean(values[where]) for part, where in parts.items()}


def _mean(values: BoolArray | FloatArray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def novelty(y_class_of_queried: IntArray, n_old: int, n_novel: int) -> dict[str, float]:
    """How novel a query was: coverage, ratio, uniformity, and information = ratio × uniformity, each from 0 to 1.

    Uniformity is the entropy of the novel counts over the number of *novel* samples, divided by log n_novel. The
    paper prints the number of all samples there, under which its own tables are impossible. With a single novel
    class it is 1 as soon as one is found. Should more classes turn up than ``n_novel``, their number replaces it.
    """
    y_class = np.asarray(y_class_of_queried, dtype=np.int64)
    if len(y_class) and y_class.min() < 0:
        raise ValueError("y_class_of_queried holds −1; only answered rows can be counted.")
    counts = np.unique(y_class[y_class >= n_old], return_counts=True)[1]
    n_found, n_new = len(counts), int(counts.sum())
    n_novel = max(n_novel, n_found)
    ratio = n_new / max(1, len(y_class))
    uniformity = float(n_new > 0)
    if n_new and n_novel > 1:
        uniformity = float(entr(counts / n_new).sum() / np.log(n_novel))
    return {
        "nov_coverage": n_found / max(1, n_novel),
        "nov_ratio": ratio,
        "nov_uniformity": uniformity,
        "nov_information": ratio * uniformity,
    }


def confidence(probs: FloatArray, is_new: BoolArray) -> dict[str, float]:
    """Mean top probability, margin and entropy, of old and of novel samples: msp_old, msp_new, margin_old, …

    Parameters
    ----------
    probs : shape (n, n_slots)
    is_new : shape (n,)
    """
    scores = {"msp": msp_of(probs), "margin": margin_of(probs), "entropy": entropy_of(probs)}
    parts = {"old": ~np.asarray(is_new), "new": np.asarray(is_new)}
    return {f"{n}_{part}": _mean(score[where]) for n, score in scores.items() for part, where in parts.items()}


# ---------------------------------------------------------------------------------------------- by name


Metric = Callable[[Prediction, IntArray, int], Mapping[str, float]]


def nmi(prediction: Prediction, y_class: IntArray, n_old: int) -> dict[str, float]:
    """Normalised mutual information of predicted slots and true classes, from 0 to 1."""
    from sklearn.metrics import normalized_mutual_info_score

    return {"nmi": float(normalized_mutual_info_score(y_class, prediction.y_slot))}


def ari(prediction: Prediction, y_class: IntArray, n_old: int) -> dict[str, float]:
    """Rand index of predicted slots and true classes, adjusted for chance: 1 where they agree, 0 on average by luck."""
    from sklearn.metrics import adjusted_rand_score

    return {"ari": float(adjusted_rand_score(y_class, prediction.y_slot))}


METRICS: Registry[Metric] = Registry("Metric", "agcd.metrics", {"nmi": nmi, "ari": ari})
"""Metrics that a benchmark adds to its tables where it is told their names."""


def columns_of(name: str, prediction: Prediction, y_class: IntArray, n_old: int) -> dict[str, float]:
    """What the metric of that name says; anything but numbers by name is refused."""
    found: object = METRICS.get(name)(prediction, y_class, n_old)
    if not isinstance(found, Mapping):
        raise ConfigError(f"Metric {name!r} gave a {type(found).__name__}; numbers by name of column are expected.")
    for column, value in found.items():
        if not isinstance(column, str) or not isinstance(value, Real):
            raise ConfigError(f"Metric {name!r} gave {column!r}: {value!r}; a name and a number are expected.")
    return {column: float(value) for column, value in found.items()}
