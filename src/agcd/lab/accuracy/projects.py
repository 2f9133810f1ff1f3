"""Simulated projects: parts of a data set that differ in whatever real projects differ in.

The accuracy figure will be shown for data that nobody here has seen, so its constants are learned from, and checked on,
projects with few and many classes, even and uneven ones, coarse classes made of several, features from clear to noisy,
and hardly any to many labels at the start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.utils.extmath import randomized_svd

from agcd.arrays import unit
from agcd.types import FloatArray, IntArray

LEAST_CLASSES, LEAST_ROWS, MOST_ROWS = 10, 500, 2500


@dataclass(frozen=True)
class Project:
    """Rows without test rows, their classes, and the labels known at the start."""

    x: FloatArray
    """(n, d), unit length."""
    truth: IntArray
    """(n,)"""
    y_class: IntArray
    """(n,): −1 where nothing is known."""


def draw_project(x: FloatArray, truth: IntArray, rng: np.random.Generator) -> Project:
    """A project made of some rows of some classes: (n, d), (n,)."""
    x, truth = _some_classes(x, truth, rng)
    if rng.random() < 0.25 and truth.max() >= 15:
        truth = _coarser(truth, rng)
    if rng.random() < 0.5:
        x, truth = _uneven(x, truth, rng)
    n = min(len(truth), int(np.exp(rng.uniform(np.log(LEAST_ROWS), np.log(MOST_ROWS)))))
    kept = rng.choice(len(truth), n, replace=False)
    x, truth = _changed(x[kept], rng), _numbered(truth[kept])
    truth = rng.permutation(truth.max() + 1)[truth]
    return Project(x, truth, _start(truth, rng))


def draw_blobs(rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """A data set of its own: Gaussian or heavy-tailed clouds of different widths, often in groups, as (n, d), (n,)."""
    n, n_classes, n_dims = 3000, int(rng.integers(10, 80)), int(rng.choice([8, 16, 32, 64]))
    sizes = rng.dirichlet(np.full(n_classes, rng.choice([1.0, 3.0, 100.0])))
    centres = rng.normal(size=(n_classes, n_dims))
    if rng.random() < 0.6:
        groups = rng.normal(size=(max(2, n_classes // 5), n_dims))
        centres = 1.2 * groups[rng.integers(len(groups), size=n_classes)] + 0.6 * centres
    truth = rng.choice(n_classes, n, p=sizes)
    width = np.exp(0.3 * rng.normal(size=n_classes)) * rng.uniform(0.3, 0.8)
    noise = rng.normal(size=(n, n_dims)) if rng.random() < 0.5 else 0.7 * rng.standard_t(4, size=(n, n_dims))
    return (centres[truth] + width[truth, None] * noise).astype(np.float32), truth


def _some_classes(x: FloatArray, truth: IntArray, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    classes = np.unique(truth)
    n_kept = int(rng.integers(min(LEAST_CLASSES, len(classes)), len(classes) + 1))
    kept = np.isin(truth, rng.choice(classes, n_kept, replace=False))
    return x[kept], _numbered(truth[kept])


def _coarser(truth: IntArray, rng: np.random.Generator) -> IntArray:
    """Classes that are unions of classes, all of two or three or of any number."""
    n_classes = truth.max() + 1
    if rng.random() < 0.5:
        union = rng.permutation(n_classes) // int(rng.integers(2, 4))
    else:
        union = rng.integers(0, max(LEAST_CLASSES, n_classes // 2), size=n_classes)
    return _numbered(union[truth])


def _uneven(x: FloatArray, truth: IntArray, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """Classes of log-normal sizes, the smallest a tenth of the largest."""
    share = np.exp(rng.uniform(0.3, 1.2) * rng.normal(size=truth.max() + 1))
    kept = rng.random(len(truth)) < np.maximum(share / share.max(), 0.1)[truth]
    return x[kept], truth[kept]


def _changed(x: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Features as they come, of fewer dimensions, whitened in part, or with noise."""
    x = np.asarray(x - x.mean(0), np.float32)
    if rng.random() < 0.3:
        n_dims = int(rng.integers(8, max(9, min(128, x.shape[1]))))
        _, scale, directions = randomized_svd(x, n_dims, random_state=int(rng.integers(1 << 31)))
        x = x @ directions.T
        if rng.random() < 0.3:
            x = x / np.maximum(scale, 1e-3 * scale[0]) ** rng.uniform(0, 1)
    x = unit(x)
    if rng.random() < 0.5:
        noise = rng.uniform(0.2, 1.0) / np.sqrt(max(x.shape[1], 20))
        x = unit(x + noise * rng.normal(size=x.shape))
    return np.asarray(x, np.float32)


def _start(truth: IntArray, rng: np.random.Generator) -> IntArray:
    """Labels of the first classes, as many as are known: a share of their rows, or the same number of each."""
    n_known = round((truth.max() + 1) * rng.uniform(0.1, 0.8)) if rng.random() < 0.9 else 0
    by_share, share, number = rng.random() < 0.5, rng.uniform(0.05, 0.5), int(rng.integers(3, 21))
    y_class = np.full(len(truth), -1)
    for c in range(n_known):
        own = rng.permutation(np.flatnonzero(truth == c))
        count = max(1, round(share * len(own))) if by_share else min(number, max(1, len(own) // 2))
        y_class[own[:count]] = c
    return y_class


def _numbered(truth: IntArray) -> IntArray:
    return np.unique(truth, return_inverse=True)[1].astype(np.int64)
