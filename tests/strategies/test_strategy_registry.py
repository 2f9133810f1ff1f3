"""How strategies are found, and what the door refuses."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import pytest

from agcd.errors import AgcdError, ConfigError, DataError
from agcd.strategies import get_strategy, list_strategies, select
from agcd.types import IntArray, PoolView


def make_view() -> PoolView:
    """Rows 100 to 108, one old slot and two novel ones, nothing labelled."""
    probs = np.random.default_rng(0).dirichlet(np.ones(3), size=9)
    nothing = np.empty(0, dtype=np.int64)
    return PoolView(np.arange(100, 109), probs, np.zeros((9, 2)), np.empty((0, 2)), nothing, n_old=1)


def ask(view: PoolView, name: str, budget: int, **options: Any) -> list[int]:
    return [int(row) for row in select(view, name, budget, np.random.default_rng(0), options)]


def first_rows(view: PoolView, budget: int, rng: np.random.Generator, *, reverse: bool = False) -> IntArray:
    """Picks the first rows."""
    return (view.rows[::-1] if reverse else view.rows)[:budget]


def repeats(view: PoolView, budget: int, rng: np.random.Generator) -> IntArray:
    return view.rows[np.zeros(budget, dtype=np.int64)]


def positions(view: PoolView, budget: int, rng: np.random.Generator) -> IntArray:
    return np.arange(budget)


def too_few(view: PoolView, budget: int, rng: np.random.Generator) -> IntArray:
    return view.rows[: budget - 1]


def anything(view: PoolView, budget: int, rng: np.random.Generator, **options: Any) -> IntArray:
    return view.rows[:budget]


def test_a_strategy_is_found_by_import_string() -> None:
    assert get_strategy(f"{__name__}:first_rows") is first_rows
    assert ask(make_view(), f"{__name__}:first_rows", 2, reverse=True) == [108, 107]
    assert ask(make_view(), f"{__name__}:anything", 1, whatever=1) == [100]


def test_a_strategy_is_found_by_entry_point_and_a_broken_one_does_not_hide_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = {"mine": f"{__name__}:first_rows", "broken": "no_such_package:fn", "margin": "no_such_package:fn"}
    points = [EntryPoint(name, value, "agcd.strategies") for name, value in values.items()]
    monkeypatch.setattr("agcd.plugins.entry_points", lambda group: points)
    assert get_strategy("mine") is first_rows
    assert list_strategies()["mine"] == "Picks the first rows."
    assert "could not be loaded" in list_strategies()["broken"]
    assert list_strategies()["margin"].startswith("Picks")


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("adaptive_nove", "Did you mean 'adaptive_novel'?"),
        ("no_such_package:fn", "could not be loaded"),
        ("agcd.strategies.novelty:nothing", "could not be loaded"),
        ("agcd.strategies.novelty:_FILLS", "cannot be called"),
        (":", "could not be loaded"),
    ],
)
def test_an_unknown_strategy_is_one_sentence(name: str, part: str) -> None:
    with pytest.raises(ConfigError) as error:
        get_strategy(name)
    assert part in str(error.value)


@pytest.mark.parametrize(
    ("name", "options", "part"),
    [
        ("adaptive_novel", {"metrik": "msp"}, "Did you mean 'metric'?"),
        ("adaptive_novel", {"metric": "marign"}, "Did you mean 'margin'?"),
        ("adaptive_novel", {"fill": "offical"}, "Did you mean 'official'?"),
        ("random", {"fill": "slots"}, "It takes none."),
        ("kmeans", {"n_init": 0}, "at least 1"),
    ],
)
def test_a_wrong_option_is_one_sentence(name: str, options: dict[str, Any], part: str) -> None:
    with pytest.raises(ConfigError) as error:
        ask(make_view(), name, 3, **options)
    assert part in str(error.value)


@pytest.mark.parametrize("budget", [0, -3])
def test_a_budget_of_nothing_is_refused(budget: int) -> None:
    with pytest.raises(ConfigError, match=f"budget is {budget}"):
        ask(make_view(), "random", budget)


@pytest.mark.parametrize(
    "change",
    [
        {"probs": np.ones((3, 3))},
        {"probs": np.ones(9)},
        {"features": np.ones((8, 2))},
        {"probs": np.full((9, 3), np.nan)},
        {"probs": np.full((9, 3), -0.1)},
        {"features": np.full((9, 2), np.inf)},
        {"rows": np.zeros(9, dtype=np.int64)},
        {"n_old": 4},
        {"n_old": -1},
        {"probs": np.ones((9, 0)), "n_old": 0},
        {"labelled_features": np.ones((2, 2))},
        {"labelled_features": np.ones((2, 3)), "labelled_slots": np.zeros(2, dtype=np.int64)},
    ],
)
def test_a_view_that_does_not_fit_together_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        ask(replace(make_view(), **change), "random", 2)


@pytest.mark.parametrize(
    ("fault", "part"), [(repeats, "more than once"), (positions, "positions"), (too_few, "2 rows")]
)
def test_a_strategy_that_breaks_the_contract_is_named(fault: Any, part: str) -> None:
    with pytest.raises(AgcdError, match=part) as error:
        ask(make_view(), f"{__name__}:{fault.__name__}", 2)
    assert fault.__name__ in str(error.value)
