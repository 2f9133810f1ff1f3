"""Herding: labels cover from the start, and a strategy is the greedy of ``agcd.herding`` on what it may see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from agcd.arrays import unit
from agcd.errors import ConfigError
from agcd.herding import greedy_coverage, neighbour_sigma2
from agcd.strategies import select
from agcd.types import FloatArray, IntArray, PoolView


def make_view(x: FloatArray, labelled: FloatArray, n_slots: int = 4, seed: int = 0) -> PoolView:
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(n_slots, 0.4), size=len(x))
    return PoolView(10 * np.arange(len(x)), probs, x, labelled, np.zeros(len(labelled), dtype=np.int64), 1)


def ask(view: PoolView, name: str, budget: int, seed: int = 0, **options: Any) -> IntArray:
    return select(view, name, budget, np.random.default_rng(seed), options)


def groups(sizes: list[int], noise: float = 0.01, d: int = 8) -> FloatArray:
    """Groups of rows around the axes."""
    rng = np.random.default_rng(1)
    return unit(np.repeat(np.eye(d)[: len(sizes)], sizes, axis=0) + noise * rng.standard_normal((sum(sizes), d)))


def test_max_herding_asks_about_the_largest_group_without_labels_first() -> None:
    x = groups([40, 20, 10])
    group = np.repeat([0, 1, 2], [40, 20, 10])
    rows = ask(make_view(x, np.empty((0, 8))), "max_herding", 3, sigma=0.3)
    assert group[rows // 10].tolist() == [0, 1, 2]
    rows = ask(make_view(x, x[:1]), "max_herding", 2, sigma=0.3)
    assert group[rows // 10].tolist() == [1, 2], "the labelled group is covered"


def test_max_herding_is_the_greedy_of_the_library_with_equal_weights() -> None:
    x = unit(np.random.default_rng(0).standard_normal((90, 6)))
    everything = np.ones(90, dtype=bool)
    for sigma in (None, 0.7):
        sigma2 = neighbour_sigma2(x) if sigma is None else sigma**2
        due = greedy_coverage(x, everything, np.zeros(90), everything, 15, sigma2)[0]
        options: dict[str, Any] = {} if sigma is None else {"sigma": sigma}
        assert (ask(make_view(3 * x, np.empty((0, 6))), "max_herding", 15, **options) // 10).tolist() == due.tolist()


@pytest.mark.parametrize("name", ["max_herding"])
@pytest.mark.parametrize("sigma", [0.0, -1.0, float("nan")])
def test_a_sigma_that_is_not_positive_is_refused(name: str, sigma: float) -> None:
    with pytest.raises(ConfigError, match=r"sigma is .*; it must be positive"):
        ask(make_view(groups([5, 5]), np.empty((0, 8))), name, 2, sigma=sigma)
