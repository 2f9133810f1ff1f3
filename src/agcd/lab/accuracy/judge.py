"""What the accuracy figure says about simulated projects, beside the truth and a blind audit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agcd.accuracy import DRAWN, QUANTILE_90, AccuracyEstimate, Checked, Shift, pool_shift, wilson
from agcd.arrays import Float64Array
from agcd.lab.accuracy.projects import draw_project
from agcd.lab.accuracy.simulate import Moment, simulate
from agcd.lab.cells import Cell, load
from agcd.lab.frozen import frozen_train_rows
from agcd.lab.results import name_of
from agcd.rng import generator
from agcd.signs import PRIOR, logits
from agcd.types import FloatArray, IntArray

STOPS = (50, 100, 200)
"""Numbers of answers after which a project is looked at."""
UNDRAWN_EVERY = 5
N_BINS = 10
GUESSES = ("share of the evidence", "signs in general", "calibrated in the project")
"""Three probabilities that a belief is right, the last of which is what the library gives."""


@dataclass(frozen=True)
class Judged:
    """One project after some answers."""

    data: str
    n_answers: int
    accuracy: float
    estimate: AccuracyEstimate
    audit: AccuracyEstimate
    """Of as many rows as were drawn at random, asked apart."""
    large_audit: AccuracyEstimate
    """Of as many rows as there are answers."""
    accuracy_undrawn: float | None
    """What the same project comes to if no question is drawn at random; every ``UNDRAWN_EVERY``-th is run again."""
    reliability: Float64Array
    """(3, N_BINS, 3): for each guess and bin of it, the rows, the sum of the guess, and the rows believed right."""


def judge_projects(cell: Cell, cache_dir: Path, seeds: range, drawn_every: int) -> list[Judged]:
    """Simulate projects with these seeds out of a cell's train rows, and judge each after ``STOPS`` answers."""
    x, truth = train_rows(cell, cache_dir)
    return [one for seed in seeds for one in judge_project(name_of(cell.data), x, truth, seed, drawn_every)]


def train_rows(cell: Cell, cache_dir: Path) -> tuple[FloatArray, IntArray]:
    """The features and classes of a cell's train rows: (n, d), (n,)."""
    _, x, truth = frozen_train_rows(cell, load(cell, cache_dir), cache_dir)
    return x, truth


def judge_project(data: str, x: FloatArray, truth: IntArray, seed: int, drawn_every: int) -> list[Judged]:
    project = draw_project(x, truth, generator(seed, "project", data))
    moments = simulate(project, generator(seed, "drawn", data), STOPS, drawn_every)
    undrawn: dict[int, float] = {}
    if drawn_every and seed % UNDRAWN_EVERY == 0:
        again = simulate(project, generator(seed, "drawn", data), STOPS, 0)
        undrawn = {moment.n_answers: moment.accuracy for moment in again}
    rng = generator(seed, "audit", data)
    return [judge(data, moment, undrawn.get(moment.n_answers), rng) for moment in moments]


def judge(data: str, moment: Moment, accuracy_undrawn: float | None, rng: np.random.Generator) -> Judged:
    """The figure for one moment, made as the library makes it."""
    shift = pool_shift(Checked(logits(moment.labelled), moment.labelled_right, moment.kind), PRIOR)
    logit = logits(moment.pool)
    return Judged(
        data,
        moment.n_answers,
        moment.accuracy,
        shift.accuracy(logit),
        _audit(moment, int((moment.kind == DRAWN).sum()), rng),
        _audit(moment, moment.n_answers, rng),
        accuracy_undrawn,
        _reliability(moment, logit, shift),
    )


def _audit(moment: Moment, n_rows: int, rng: np.random.Generator) -> AccuracyEstimate:
    """What a blind sample of the pool's rows says, with Wilson's interval."""
    if not n_rows:
        return AccuracyEstimate(0.5, 0.0, 1.0)
    n_rows = min(n_rows, len(moment.pool_right))
    n_right = int(rng.choice(moment.pool_right, n_rows, replace=False).sum())
    low, high = wilson(n_right, n_rows, QUANTILE_90)
    return AccuracyEstimate(n_right / n_rows, low, high)


def _reliability(moment: Moment, logit: Float64Array, shift: Shift) -> Float64Array:
    guesses = [np.asarray(moment.share, np.float64), Shift(0.0, 0.0).p_right(logit), shift.p_right(logit)]
    return np.array([_binned(guess, moment.pool_right.astype(np.float64)) for guess in guesses])


def _binned(guess: Float64Array, right: Float64Array) -> Float64Array:
    place = np.minimum((guess * N_BINS).astype(np.int64), N_BINS - 1)
    return np.column_stack([np.bincount(place, v, minlength=N_BINS) for v in (np.ones_like(guess), guess, right)])
