"""What every strategy owes, whoever wrote it: the tests find the strategies through the registry."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agcd.strategies import (
    get_strategy,
    list_strategies,
    needed_fields,
    open_one_by_one,
    select,
    strategy_options,
)
from agcd.types import FloatArray, IntArray, PoolView

every_strategy = pytest.mark.parametrize("name", sorted(list_strategies()))


def make_view(
    n: int = 60, n_slots: int = 8, n_old: int = 3, d: int = 5, n_labelled: int = 9, seed: int = 0
) -> PoolView:
    """A pool of random rows with gaps in their numbers, in ascending order; all arrays read-only."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(n_slots, 0.4), size=n)
    rows = np.sort(rng.choice(10 * n, size=n, replace=False))
    labelled_slots = rng.integers(0, max(1, n_old), n_labelled)
    return _locked(PoolView(rows, probs, _unit(rng, n, d), _unit(rng, n_labelled, d), labelled_slots, n_old))


def _unit(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    x = rng.standard_normal((n, d))
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def _arrays(view: PoolView) -> dict[str, np.ndarray[Any, Any]]:
    return {k: v for k, v in vars(view).items() if isinstance(v, np.ndarray)}


def _locked(view: PoolView) -> PoolView:
    for array in _arrays(view).values():
        array.flags.writeable = False
    return view


def ask_and_check(name: str, view: PoolView, budget: int, seed: int = 0, **options: Any) -> IntArray:
    """Select, and check all that holds for any answer."""
    rows = select(view, name, budget, np.random.default_rng(seed), options)
    assert rows.dtype == np.int64
    assert len(rows) == min(budget, len(view.rows))
    assert len(set(rows.tolist())) == len(rows)
    assert set(rows.tolist()) <= set(view.rows.tolist())
    return rows


def test_the_registry_names_the_strategies_of_the_paper_and_its_ablations() -> None:
    usual = {"random", "entropy", "least_confidence", "margin", "kmeans", "coreset", "badge"}
    ablations = {"novel_random", "novel_informative", "novel_margin", "novel_entropy", "novel_msp"}
    assert set(list_strategies()) >= usual | ablations | {"confident_novel", "informative_novel", "adaptive_novel"}


@every_strategy
def test_first_docstring_line_stands_alone_and_says_what_is_picked(name: str) -> None:
    line = list_strategies()[name]
    assert line.startswith("Picks")
    assert line[-1] in ".:)"
    assert len(line) < 120


@every_strategy
@pytest.mark.parametrize("budget", [1, 7, 60, 1000])
def test_returns_min_of_budget_and_pool_distinct_rows_of_the_pool(name: str, budget: int) -> None:
    ask_and_check(name, make_view(), budget)


@every_strategy
@pytest.mark.parametrize("y_slot", [2, 7, 11], ids=["a known class", "a free slot", "a class without a slot"])
def test_asked_one_by_one_it_asks_distinct_rows_of_the_pool_whatever_is_answered(name: str, y_slot: int) -> None:
    view, rows = make_view(), []
    asking = open_one_by_one(view, name, 12, np.random.default_rng(0))
    for _ in range(12):
        rows.append(asking.next())
        asking.tell(rows[-1], y_slot)
    assert len(set(rows)) == 12
    assert set(rows) <= set(view.rows.tolist())
    again = open_one_by_one(view, name, 12, np.random.default_rng(0))
    assert again.next() == rows[0]


@every_strategy
def test_who_reads_what_earlier_models_thought_declares_it(name: str) -> None:
    view, rng = make_view(), np.random.default_rng(3)
    probs = rng.dirichlet(np.full(8, 0.4), size=9)
    told = replace(view, labelled_rounds=np.arange(9) % 2)
    rows, rows_told = (ask_and_check(name, v, 12).tolist() for v in (told, replace(told, labelled_probs=probs)))
    assert (rows != rows_told) == ("labelled_probs" in needed_fields(name))


@every_strategy
def test_same_seed_gives_same_rows_in_the_same_order(name: str) -> None:
    assert (
        ask_and_check(name, make_view(), 12, seed=4).tolist() == ask_and_check(name, make_view(), 12, seed=4).tolist()
    )


@every_strategy
@pytest.mark.parametrize("phase", ["confident", "informative"])
def test_order_of_pool_rows_does_not_matter(name: str, phase: Any) -> None:
    view = replace(make_view(), phase=phase)
    order = np.random.default_rng(1).permutation(len(view.rows))
    shuffled = replace(view, rows=view.rows[order], probs=view.probs[order], features=view.features[order])
    assert ask_and_check(name, view, 12).tolist() == ask_and_check(name, shuffled, 12).tolist()


@every_strategy
def test_order_of_pool_rows_does_not_matter_when_everything_is_tied(name: str) -> None:
    view = make_view(n=20)
    view = replace(view, probs=np.full((20, 8), 1 / 8), features=np.ones((20, 5)))
    assert ask_and_check(name, view, 6).tolist() == ask_and_check(name, replace(view, rows=view.rows[::-1]), 6).tolist()


@every_strategy
def test_input_arrays_are_left_unchanged(name: str) -> None:
    view = make_view()
    before = {k: v.copy() for k, v in _arrays(view).items()}
    ask_and_check(name, view, 12)
    for key, array in _arrays(view).items():
        np.testing.assert_array_equal(array, before[key])


@every_strategy
def test_works_when_one_class_is_predicted_for_all(name: str) -> None:
    for slot in (0, 7):
        view = make_view()
        probs = view.probs.copy()
        probs[:, slot] += 2
        ask_and_check(name, replace(view, probs=probs / probs.sum(1, keepdims=True)), 12)


@every_strategy
@pytest.mark.parametrize("empty", [np.empty((0, 5)), np.empty(0)])
def test_works_with_nothing_labelled(name: str, empty: FloatArray) -> None:
    ask_and_check(name, replace(make_view(), labelled_features=empty, labelled_slots=np.empty(0, dtype=np.int64)), 12)


@every_strategy
def test_works_when_the_budget_is_larger_than_any_slot(name: str) -> None:
    view = make_view(n=40, n_slots=20, n_old=2)
    assert np.bincount(view.probs.argmax(1)).max() < 30
    ask_and_check(name, view, 30)


@every_strategy
@pytest.mark.parametrize("n_old", [0, 8])
def test_works_without_old_and_without_novel_slots(name: str, n_old: int) -> None:
    ask_and_check(name, replace(make_view(), n_old=n_old), 12)


@every_strategy
def test_works_with_one_slot(name: str) -> None:
    for n_old in (0, 1):
        ask_and_check(name, make_view(n_slots=1, n_old=n_old), 12)


@every_strategy
def test_works_with_a_pool_of_one_row_and_of_none(name: str) -> None:
    assert ask_and_check(name, make_view(n=1), 5).tolist() == make_view(n=1).rows.tolist()
    assert ask_and_check(name, make_view(n=0), 5).tolist() == []


@every_strategy
def test_works_when_rows_are_copies_of_each_other(name: str) -> None:
    view = make_view(n=30)
    probs, features = np.tile(view.probs[:3], (10, 1)), np.tile(view.features[:3], (10, 1))
    ask_and_check(name, replace(view, probs=probs, features=features), 12)
    ask_and_check(name, replace(view, probs=probs, features=features, labelled_features=features[:9]), 12)


@every_strategy
def test_works_with_sure_predictions_and_zero_features(name: str) -> None:
    view = make_view(n=30)
    ask_and_check(name, replace(view, probs=np.eye(8)[np.arange(30) % 8], features=np.zeros((30, 5))), 12)


@every_strategy
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_works_with_short_floats_and_memory_maps(name: str, dtype: Any, tmp_path: Path) -> None:
    view = make_view()
    maps: dict[str, Any] = {}
    for key in ("probs", "features", "labelled_features"):
        np.save(tmp_path / f"{key}.npy", getattr(view, key).astype(dtype))
        maps[key] = np.load(tmp_path / f"{key}.npy", mmap_mode="r")
    mapped = replace(view, **maps)
    maps = {key: np.array(array) for key, array in maps.items()}
    in_memory = replace(view, **maps)
    assert ask_and_check(name, mapped, 12).tolist() == ask_and_check(name, in_memory, 12).tolist()


@every_strategy
def test_every_option_is_accepted_by_its_name(name: str) -> None:
    options = strategy_options(get_strategy(name))
    assert ask_and_check(name, make_view(), 12, **options).tolist() == ask_and_check(name, make_view(), 12).tolist()
