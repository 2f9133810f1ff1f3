"""Strategies that propagate labels over the neighbour graph of the features and ask where they leave most open."""

from __future__ import annotations

import numpy as np

from agcd import propagation
from agcd.arrays import floats, subsample
from agcd.asking import Asking
from agcd.errors import ConfigError
from agcd.types import FloatArray, IntArray, PoolView, grows_with, one_by_one


class PoolAsking:
    """``agcd.asking`` over the rows of a ``PoolView``: one question after another, each after all answers so far.

    It takes what ``propagation_herding`` takes; ``budget`` is the number of questions it will be asked for at most.
    """

    def __init__(
        self,
        view: PoolView,
        budget: int,
        rng: np.random.Generator,
        *,
        max_candidates: int = 10_000,
        n_neighbours: int = 10,
    ):
        view, x, y_slot = _joined(view, budget, rng, max_candidates, n_neighbours)
        self.rows = view.rows
        self._asking = Asking(x, y_slot, n_neighbours=n_neighbours)

    def next(self) -> int:
        """The row to ask about next."""
        return int(self.rows[self._asking.next()])

    def cover(self, row: int) -> None:
        """A question that waits for its answer: what lies near it need not be asked meanwhile."""
        self._asking.cover([self._position(row)])

    def tell(self, row: int, y_slot: int) -> None:
        """The answer; a class that has no slot yet takes a number of its own from the number of slots on."""
        self._asking.tell(self._position(row), y_slot)

    def _position(self, row: int) -> int:
        return int(np.searchsorted(self.rows, row))


@grows_with("pairs")
@one_by_one(PoolAsking)
def propagation_herding(
    view: PoolView, budget: int, rng: np.random.Generator, *, max_candidates: int = 10_000, n_neighbours: int = 10
) -> IntArray:
    """Picks, one after another, the row that covers the most of what labels leave uncertain.

    MaxHerding (Bae, Noh and Sutherland 2024) in which covering a row is worth 1 − the margin that label propagation
    (Zhou et al. 2003) gives it, where a little evidence speaks everywhere for a class nobody has named
    (``agcd.asking``). Asked one by one, the margins follow every answer (``PoolAsking``).

    Of a larger pool only ``max_candidates`` rows drawn at random are joined and asked about, with all answers and at
    most a fifth as many of the labels known from the start.
    """
    asking = PoolAsking(view, budget, rng, max_candidates=max_candidates, n_neighbours=n_neighbours)
    rows = []
    for _ in range(min(budget, len(view.rows))):
        rows.append(asking.next())
        asking.cover(rows[-1])
    return np.asarray(rows, dtype=np.int64)


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
    view, x, y_slot = _joined(view, budget, rng, max_candidates, n_neighbours)
    if len(view.rows) == 1:
        return view.rows
    neighbours = propagation.neighbour_graph(x, n_neighbours)
    found = propagation.propagate_labels(neighbours, y_slot, view.probs.shape[1])
    uncertainty = np.where(y_slot < 0, 1 - found.certainty, 0)
    return view.rows[propagation.widest_reach(neighbours, uncertainty, y_slot < 0, budget)]


def _joined(
    view: PoolView, budget: int, rng: np.random.Generator, max_candidates: int, n_neighbours: int
) -> tuple[PoolView, FloatArray, IntArray]:
    """The candidates; their features and, below, those of the labelled rows (n + m, d); slots (n + m,), −1 above."""
    if n_neighbours < 1:
        raise ConfigError(f"n_neighbours is {n_neighbours}; it must be at least 1.")
    view = subsample(view, max_candidates, budget, rng)
    labelled = _kept_labels(view, max_candidates // 5, rng)
    x = floats(view.features)
    if len(labelled):
        x = np.concatenate([x, view.labelled_features[labelled].astype(x.dtype)])
    return view, x, np.concatenate([np.full(len(view.rows), -1), view.labelled_slots[labelled]])


def _kept_labels(view: PoolView, most: int, rng: np.random.Generator) -> IntArray:
    """Positions of the labelled rows to use: all answers, and of the labels known from the start at most ``most``."""
    if view.labelled_rounds is None:
        known, answers = np.arange(len(view.labelled_slots)), np.empty(0, np.int64)
    else:
        known, answers = np.flatnonzero(view.labelled_rounds == 0), np.flatnonzero(view.labelled_rounds > 0)
    if len(known) > most:
        known = np.sort(rng.choice(known, most, replace=False))
    return np.concatenate([known, answers])
