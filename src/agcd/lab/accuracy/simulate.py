"""One simulated project, answered truly question by question, and what can be seen of it at some moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agcd.accuracy import CHOSEN, DRAWN, GIVEN, POOL
from agcd.asking import Asking
from agcd.lab.accuracy.projects import Project
from agcd.signs import Signs, labelled_signs, pool_signs
from agcd.types import BoolArray, FloatArray, IntArray

LEAST_LEFT = 100
"""A project is over when fewer rows than this are left without a label."""


@dataclass(frozen=True)
class Moment:
    """A project after some answers: what is seen of its rows, and the truth."""

    n_answers: int
    pool: Signs
    pool_right: BoolArray
    """(p,): whether each row without a label is believed right."""
    share: FloatArray
    """(p,): the share of the believed class in the evidence, a first guess at the chance of being right."""
    labelled: Signs
    labelled_right: BoolArray
    """(m,): whether each labelled row would be believed right without its label."""
    kind: IntArray
    """(m,): how it came to its label."""

    @property
    def accuracy(self) -> float:
        return float(self.pool_right.mean())


def simulate(project: Project, rng: np.random.Generator, stops: Sequence[int], drawn_every: int) -> list[Moment]:
    """Ask and answer; one question in ``drawn_every`` (0: none) is drawn at random, the others the rule chooses."""
    asking = Asking(project.x, project.y_class)
    y_class = project.y_class.copy()
    kind = np.where(y_class >= 0, GIVEN, POOL)
    moments = []
    for n_answers in range(1, max(stops) + 1):
        if (y_class < 0).sum() <= LEAST_LEFT:
            break
        is_drawn = drawn_every > 0 and n_answers % drawn_every == 0
        row = asking.draw(rng) if is_drawn else asking.next()
        y_class[row], kind[row] = project.truth[row], DRAWN if is_drawn else CHOSEN
        asking.tell(row, int(y_class[row]))
        if n_answers in stops:
            moments.append(_moment(n_answers, asking, project, y_class, kind))
    return moments


def _moment(n_answers: int, asking: Asking, project: Project, y_class: IntArray, kind: IntArray) -> Moment:
    rows, pool = pool_signs(asking, y_class, kind)
    labelled_rows, labelled = labelled_signs(asking, y_class, kind)
    return Moment(
        n_answers,
        pool,
        pool.y_class == project.truth[rows],
        asking.beliefs.shares(len(asking.beliefs.n_labels), rows).max(1),
        labelled,
        labelled.y_class == y_class[labelled_rows],
        kind[labelled_rows],
    )
