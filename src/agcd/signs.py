"""What is seen of a row that says how likely its believed class is right, and the figure made of it.

A belief is more often right where its margin is wide, where much evidence has arrived and where a label lies near; at
the same margin, a row far from all labels is more often wrong. How much each sign counts was learned from simulated
projects (``agcd.lab.accuracy.learn``, docs/accuracy.md); how much better or worse this project is than those is learned
from its own labels (``agcd.accuracy``). A labelled row is looked at without its own label, so no answer has to be kept
apart, labels may be taken back and classes merged, and the order of answers plays no part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agcd.accuracy import DRAWN, GIVEN, TAKEN, AccuracyEstimate, Checked, Shift, ShiftPrior, pool_shift
from agcd.arrays import Float64Array
from agcd.asking import Asking, Moment
from agcd.beliefs import Belief
from agcd.evidence import NO_CLASS
from agcd.types import BoolArray, FloatArray, IntArray

MOST_LABELS = 50
"""More labels of a class than this say nothing more."""
LEAST_UNNAMED = 1e-4
MOST_GIVEN = 200
"""Rows labelled at the start that are looked at: more say little more, and each costs one flow along the graph."""


NearestLabel = tuple[FloatArray, IntArray]
"""Of every row, how near the nearest label of another row is, and its class."""
_NO_ROWS = np.empty(0, np.int64)


MOST_ASKED = 500
"""Rows asked about that are looked at: by then the interval is narrow, and each costs one flow along the graph."""


@dataclass(frozen=True)
class Signs:
    """What is seen of n rows, each without its own label."""

    y_class: IntArray
    """(n,): the believed class; −1 if there is none."""
    margin: FloatArray
    unnamed: FloatArray
    """(n,), (n,): as ``Belief`` has them."""
    covered: FloatArray
    """(n,): nearness of the nearest other label, from 0 (none is near) to 1 (the same place)."""
    near_agrees: BoolArray
    """(n,): whether that label is of the believed class."""
    n_labels: IntArray
    """(n,): other labels of the believed class."""
    is_given: BoolArray
    """(n,): whether the believed class was known at the start."""

    def terms(self) -> Float64Array:
        """(n, 13): the numbers that ``WEIGHTS`` weighs."""
        m, c, near = (np.asarray(v, np.float64) for v in (self.margin, self.covered, self.near_agrees))
        unnamed = np.log(np.maximum(self.unnamed, LEAST_UNNAMED))
        labels = np.log(np.clip(self.n_labels, 1, MOST_LABELS))
        given = self.is_given.astype(np.float64)
        columns = [np.ones_like(m), m, m * m, unnamed, unnamed**2, c, c * c, labels, given]
        return np.column_stack([*columns, near, near * c, near * m, c * m])


@dataclass(frozen=True)
class Judgement:
    """How likely beliefs are right, by the labels so far."""

    shift: Shift
    """How much better these beliefs are than beliefs in general."""
    checked: Checked
    labelled_rows: IntArray
    """(l,): labelled rows, those behind ``checked`` and some that got their label with many others."""
    believed: IntArray
    """(l,): what each would be believed to be without its own label."""
    pool_rows: IntArray
    """(p,): the rows without a label."""
    pool_logits: Float64Array
    """(p,)"""

    @property
    def accuracy(self) -> AccuracyEstimate:
        """The share of rows without a label that are believed right."""
        return self.shift.accuracy(self.pool_logits)

    @property
    def p_right(self) -> Float64Array:
        """(p,): the chance that each row without a label is believed right."""
        return self.shift.p_right(self.pool_logits)


def judge(
    asking: Asking | Moment,
    y_class: IntArray,
    kind: IntArray,
    held: IntArray = _NO_ROWS,
    held_class: IntArray = _NO_ROWS,
) -> Judgement:
    """Judge the beliefs by all labels so far.

    Parameters
    ----------
    y_class : (n,), the labels that ``asking`` has been told; −1 is none.
    kind : (n,), of ``agcd.accuracy``: how each labelled row came to its label.
    held, held_class : (h,), (h,), rows drawn at random whose class is known and was never told to ``asking``.
    """
    near = _nearest_label(asking, y_class)
    rows, signs = labelled_signs(asking, y_class, kind, near)
    pool_rows, pool = pool_signs(asking, y_class, kind, near)
    place = np.searchsorted(pool_rows, held)
    pool_logits = logits(pool)
    checked = Checked(
        np.concatenate([logits(signs), pool_logits[place]]),
        np.concatenate([signs.y_class == y_class[rows], pool.y_class[place] == held_class]),
        np.concatenate([kind[rows], np.full(len(held), DRAWN)]),
    )
    taken = _spread(np.flatnonzero((y_class >= 0) & (kind == TAKEN)), MOST_GIVEN)
    believed = [signs.y_class, pool.y_class[place], asking.beliefs.without_own(taken, y_class[taken]).y_class]
    rest = np.setdiff1d(np.arange(len(pool_rows)), place)
    return Judgement(
        pool_shift(checked, PRIOR),
        checked,
        np.concatenate([rows, held, taken]),
        np.concatenate(believed),
        pool_rows[rest],
        pool_logits[rest],
    )


def _spread(rows: IntArray, most: int) -> IntArray:
    """``rows``, or so many of them at even distances."""
    return np.asarray(rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(np.int64))])


def belief_accuracy(asking: Asking | Moment, y_class: IntArray, kind: IntArray) -> AccuracyEstimate:
    """The share of rows without a label that are believed right, from all labels so far; as ``judge``."""
    return judge(asking, y_class, kind).accuracy


def pool_signs(
    asking: Asking | Moment, y_class: IntArray, kind: IntArray, near: NearestLabel | None = None
) -> tuple[IntArray, Signs]:
    """The rows without a label, and what is seen of them: (n,), (n,) → (p,), p signs; as ``judge``."""
    rows = np.flatnonzero(y_class < 0)
    return rows, _signs(asking, rows, asking.belief.at(rows), y_class, kind, near)


def labelled_signs(
    asking: Asking | Moment, y_class: IntArray, kind: IntArray, near: NearestLabel | None = None
) -> tuple[IntArray, Signs]:
    """Labelled rows, and what would be seen of each if its own label were missing: (m,), m signs.

    Up to ``MOST_ASKED`` rows that were asked about, and up to ``MOST_GIVEN`` of those that were labelled at the start.
    """
    given = _spread(np.flatnonzero((y_class >= 0) & (kind == GIVEN)), MOST_GIVEN)
    asked = _spread(np.flatnonzero((y_class >= 0) & (kind != GIVEN) & (kind != TAKEN)), MOST_ASKED)
    rows = np.sort(np.concatenate([given, asked]))
    return rows, _signs(asking, rows, asking.beliefs.without_own(rows, y_class[rows]), y_class, kind, near)


def logits(signs: Signs) -> Float64Array:
    """What the signs say in general about the chance that the belief is right: (n,)."""
    return np.asarray(signs.terms() @ WEIGHTS, np.float64)


def _signs(
    asking: Asking | Moment,
    rows: IntArray,
    belief: Belief,
    y_class: IntArray,
    kind: IntArray,
    near: NearestLabel | None,
) -> Signs:
    covered, near_class = near or _nearest_label(asking, y_class)
    believed = belief.y_class
    is_known = believed != NO_CLASS
    n_labels = np.where(is_known, asking.beliefs.n_labels[believed], 0) - (is_known & (believed == y_class[rows]))
    given = np.isin(believed, y_class[(kind == GIVEN) & (y_class >= 0)])
    agrees = is_known & (near_class[rows] == believed)
    return Signs(believed, belief.margin, belief.unnamed, covered[rows], agrees, n_labels, given)


def _nearest_label(asking: Asking | Moment, y_class: IntArray) -> NearestLabel:
    """How near the nearest label of another row is, and its class: (n,), (n,); 0 and −1 where none is near."""
    kernel, n = asking.kernel, len(y_class)
    row = np.repeat(np.arange(n), np.diff(kernel.indptr))
    is_label = (y_class[kernel.indices] >= 0) & (kernel.indices != row)
    nearness = np.where(is_label, kernel.data, np.float32(0))
    covered = np.maximum.reduceat(nearness, kernel.indptr[:-1])  # no row is empty: each has itself
    nearest = np.flatnonzero(is_label & (nearness == covered[row]))[::-1]  # of equals the first comes last and stays
    near_class = np.full(n, NO_CLASS)
    near_class[row[nearest]] = y_class[kernel.indices[nearest]]
    return covered, near_class


# Learned from 312 simulated projects of banking77 (sentence embeddings, and TF-IDF), grocery81, flowers102, digits and
# made-up blobs, train rows only, after 50, 100 and 200 answers (docs/accuracy.md). Lines as in ``Signs.terms``.
# fmt: off
WEIGHTS = np.array([
    -0.338, 4.976, 0.026,  # 1, margin, margin²
    0.729, 0.122,  # ln unnamed, its square
    -2.357, 1.920,  # covered, covered²
    0.774, -0.650,  # ln labels of the class, known at the start
    -0.781, 2.849, 0.891, -1.125,  # nearest label agrees, and times covered, times margin; covered times margin
])
PRIOR = ShiftPrior(
    mean=np.array([0.356, 0.442, -0.082, 0.252]),  # pool, given, chosen, drawn
    spread=np.array([
        [0.585, 0.398, 0.287, 0.503],
        [0.398, 0.352, 0.198, 0.362],
        [0.287, 0.198, 0.215, 0.286],
        [0.503, 0.362, 0.286, 0.536],
    ]),
)
# fmt: on
