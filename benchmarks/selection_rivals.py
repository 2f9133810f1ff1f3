"""The selection benchmark's other side: plain dense implementations, and scikit-activeml on the same arrays."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from agcd.herding import coverage_by, neighbour_sigma2
from agcd.strategies import badge, diversity, select
from agcd.types import FloatArray, IntArray, PoolView
from selection_data import in_memory, timed

Objective = Callable[[PoolView, IntArray], float]


def potential(view: PoolView, rows: IntArray) -> float:
    """The mean squared distance of all gradients to the nearest picked one, which k-means++ keeps small."""
    norms = badge.gradient_norms(view.probs, view.features)
    return float(badge.gradient_distances(view.probs, view.features, norms, rows).mean())


def potential_with_zero(view: PoolView, rows: IntArray) -> float:
    """The same with the gradient zero among the picks: scikit-activeml draws its second pick as if it were one."""
    norms = badge.gradient_norms(view.probs, view.features)
    return float(np.minimum(norms, badge.gradient_distances(view.probs, view.features, norms, rows)).mean())


def radius(view: PoolView, rows: IntArray) -> float:
    """The largest distance of a row to the nearest pick or label, which CoreSet keeps small."""
    nearest = diversity.nearest_labelled(view.features, view.labelled_features)
    diversity.lower(nearest, view.features, view.features[rows])
    return float(np.sqrt(nearest.max()))


def inertia(view: PoolView, rows: IntArray) -> float:
    """The mean squared distance of all rows to the nearest pick, which k-means keeps small."""
    return float(diversity.nearest_labelled(view.features, view.features[rows]).mean())


def uncovered(view: PoolView, rows: IntArray) -> float:
    """1 − the generalised coverage of labels and picks, which herding keeps small."""
    nearest = diversity.nearest_labelled(view.features, view.labelled_features)
    diversity.lower(nearest, view.features, view.features[rows])
    return float(1 - coverage_by(nearest, neighbour_sigma2(view.features)).mean())


# --- dense -------------------------------------------------------------------------------------------------------


def dense_gradients(view: PoolView) -> FloatArray:
    """All gradient embeddings, n × (K·d) in float64, as the reference keeps them."""
    a = view.probs.astype(np.float64)
    a[np.arange(len(a)), a.argmax(1)] -= 1
    return np.asarray((a[:, :, None] * view.features[:, None, :]).reshape(len(a), -1))


def dense_coreset(view: PoolView, budget: int) -> tuple[list[int], FloatArray]:
    """Picks from the full matrix of squared distances, and that matrix."""
    x = np.concatenate([view.labelled_features, view.features]).astype(np.float64)
    norms = (x**2).sum(1)
    square = np.maximum(norms[:, None] + norms[None, :] - 2 * x @ x.T, 0)
    n_labelled, picks = len(view.labelled_features), list(range(len(view.labelled_features)))
    for _ in range(budget):
        nearest = square[:, picks].min(1)
        nearest[picks] = -1
        picks.append(int(nearest.argmax()))
    return [p - n_labelled for p in picks[n_labelled:]], square


def check_against_dense(n: int, budget: int) -> str:
    """One sentence after asserting the same distances to 1e-6, and for CoreSet the same picks."""
    view = in_memory(n, 100, 384, n_labelled=n // 4)
    g, norms = dense_gradients(view), badge.gradient_norms(view.probs, view.features)
    picks = np.arange(3)
    dense = np.min([((g - g[j]) ** 2).sum(1) for j in picks], axis=0)
    assert dense.max() > 0.1, "a check of tiny numbers would prove nothing"
    worst = float(np.abs(dense - badge.gradient_distances(view.probs, view.features, norms, picks)).max())
    rows, square = dense_coreset(view, budget)
    nearest = diversity.nearest_labelled(view.features, view.labelled_features)
    worst = max(worst, float(np.abs(square[n // 4 :, : n // 4].min(1) - nearest).max()))
    assert worst < 1e-6, worst
    assert select(view, "coreset", budget, np.random.default_rng(0)).tolist() == rows
    return f"Distances equal dense ones (N = {n:,}) to {worst:.0e}, and CoreSet's {budget} picks are the same."


# --- scikit-activeml ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Match:
    """One strategy on one kind of pool; without labels their CoreSet starts at random, ours far from the mean."""

    strategy: str
    n: int
    n_slots: int
    budget: int
    n_labelled: int = 0

    def view(self, n: int | None = None) -> PoolView:
        return in_memory(n or self.n, self.n_slots, 384, self.n_labelled)


OBJECTIVES: dict[str, dict[str, Objective]] = {
    "badge": {"mean squared gradient distance": potential, "with zero as a pick": potential_with_zero},
    "coreset": {"covering radius": radius},
    "typiclust": {"mean squared distance": inertia},
}


def compare_with_scikit_activeml(matches: Sequence[Match], n_small: int, n_seeds: int) -> list[str]:
    """Lines of two tables: times and objectives of one run each, then objectives over seeds on a smaller pool."""
    try:
        pool = importlib.import_module("skactiveml.pool")
    except ImportError:
        return ["scikit-activeml is not installed (`pip install scikit-activeml`), so it was not measured."]
    columns = "strategy | N | K | labelled | b"
    lines = [
        f"| {columns} | scikit-activeml | ours | ratio | objective (smaller is better) | theirs | ours |",
        f"|{'---|' * 11}",
        *(_compare(pool, match) for match in matches),
        f"\nThe objectives over {n_seeds} seeds, mean ± standard deviation:\n",
        f"| {columns} | objective (smaller is better) | theirs | ours |",
        f"|{'---|' * 8}",
    ]
    for match in matches:
        lines += _compare_objectives(pool, match, min(n_small, match.n), n_seeds)
    return lines


def _compare(pool: Any, match: Match) -> str:
    small, view, objectives = in_memory(50, 4, 8), match.view(), OBJECTIVES[match.strategy]
    ours_of(small, match.strategy, 2, 0), theirs_of(pool, small, match.strategy, 2, 0)  # loads what is loaded late
    theirs, their_seconds = timed(lambda: theirs_of(pool, view, match.strategy, match.budget, 0))
    ours, seconds = timed(lambda: ours_of(view, match.strategy, match.budget, 0))
    values = [" / ".join(f"{value(view, rows):.4f}" for value in objectives.values()) for rows in (theirs, ours)]
    return (
        f"| {_cells(match, match.n)} | {their_seconds:.2f} s | {seconds:.3f} s | **{their_seconds / seconds:.0f}×** "
        f"| {' / '.join(objectives)} | {values[0]} | {values[1]} |"
    )


def _compare_objectives(pool: Any, match: Match, n: int, n_seeds: int) -> list[str]:
    view, budget = match.view(n), min(match.budget, n // 10)
    theirs = [theirs_of(pool, view, match.strategy, budget, seed) for seed in range(n_seeds)]
    ours = [ours_of(view, match.strategy, budget, seed) for seed in range(n_seeds)]
    lines = []
    for name, objective in OBJECTIVES[match.strategy].items():
        found = [[objective(view, rows) for rows in runs] for runs in (theirs, ours)]
        cells = " | ".join(f"{np.mean(values):.4f} ± {np.std(values):.4f}" for values in found)
        lines.append(f"| {_cells(replace(match, budget=budget), n)} | {name} | {cells} |")
    return lines


def _cells(match: Match, n: int) -> str:
    return f"{match.strategy} | {n:,} | {match.n_slots} | {match.n_labelled} | {match.budget:,}"


def ours_of(view: PoolView, strategy: str, budget: int, seed: int) -> IntArray:
    return select(view, strategy, budget, np.random.default_rng(seed))


def theirs_of(pool: Any, view: PoolView, strategy: str, budget: int, seed: int) -> IntArray:
    """Their picks as positions in the pool; the labelled rows come after it in what they see."""
    n, known = len(view.rows), view.labelled_features
    labels = np.concatenate([np.full(n, np.nan), np.zeros(len(known))])
    if strategy != "badge":
        query = {"coreset": pool.CoreSet, "typiclust": pool.TypiClust}[strategy](random_state=seed)
        return np.asarray(query.query(np.concatenate([view.features, known]), labels, batch_size=budget))
    base = importlib.import_module("skactiveml.base").SkactivemlClassifier

    def fit(self: Any, x: Any, y: Any, sample_weight: Any = None) -> Any:
        return self

    def predict_proba(self: Any, x: Any) -> tuple[FloatArray, FloatArray]:
        rows = x[:, 0].astype(np.int64)  # looks up what the view holds, so that both see the same gradients
        return view.probs[rows], view.features[rows]

    given = type("Given", (base,), {"fit": fit, "predict_proba": predict_proba})
    numbers = np.arange(len(labels), dtype=np.float64)[:, None]
    query = pool.Badge(random_state=seed)
    return np.asarray(query.query(numbers, labels, clf=given(), fit_clf=False, batch_size=budget))
