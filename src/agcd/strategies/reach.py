"""The strategy that asks where one answer tells most, over the neighbour graph (``agcd.propagation``)."""

from __future__ import annotations

import numpy as np

from agcd import propagation
from agcd.arrays import floats, subsample
from agcd.errors import ConfigError
from agcd.types import IntArray, PoolView, grows_with


@grows_with("pairs")
def widest_reach(
    view: PoolView, budget: int, rng: np.random.Generator, *, max_candidates: int = 10_000, n_neighbours: int = 10
) -> IntArray:
    """Picks the rows whose answers would settle the most rows that labels have not settled yet.

    Labels are propagated over the nearest neighbours of all rows in feature space. Where they have hardly arrived, or
    where those of several classes meet, a row is uncertain. The first pick has the most uncertainty around it, which
    then counts as gone, and the next is looked for. It asks about dense regions without a name first, then about
    borders, and needs neither phases nor a guess at what is novel.

    Of a larger pool only ``max_candidates`` rows drawn at random are joined and asked about, with all answers and at
    most a fifth as many of the labels known from the start.
    """
    if n_neighbours < 1:
        raise ConfigError(f"n_neighbours is {n_neighbours}; it must be at least 1.")
    view = subsample(view, max_candidates, budget, rng)
    labelled = _kept_labels(view, max_candidates // 5, rng)
    n = len(view.rows)
    if n == 1:
        return view.rows
    x = floats(view.features)
    if len(labelled):
        x = np.concatenate([x, view.labelled_features[labelled].astype(x.dtype)])
    y_slot = np.concatenate([np.full(n, -1), view.labelled_slots[labelled]])
    neighbours = propagation.neighbour_graph(x, n_neighbours)
    found = propagation.propagate_labels(neighbours, y_slot, view.probs.shape[1])
    uncertainty = np.where(y_slot < 0, 1 - found.certainty, 0)
    return view.rows[propagation.widest_reach(neighbours, uncertainty, y_slot < 0, budget)]


def _kept_labels(view: PoolView, most: int, rng: np.random.Generator) -> IntArray:
    """Positions of the labelled rows to use: all answers, and of the labels known from the start at most ``most``."""
    if view.labelled_rounds is None:
        known, answers = np.arange(len(view.labelled_slots)), np.empty(0, np.int64)
    else:
        known, answers = np.flatnonzero(view.labelled_rounds == 0), np.flatnonzero(view.labelled_rounds > 0)
    if len(known) > most:
        known = np.sort(rng.choice(known, most, replace=False))
    return np.concatenate([known, answers])
