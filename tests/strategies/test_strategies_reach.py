"""What the strategy ``widest_reach`` asks about, on blobs whose answers are plain to see."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from agcd import propagation
from agcd.errors import ConfigError
from agcd.propagation import neighbour_graph, propagate_labels
from agcd.strategies import select
from agcd.types import FloatArray, IntArray, PoolView

N_SLOTS = 8


def unit(x: FloatArray) -> FloatArray:
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def separated(sizes: list[int], noise: float = 0.1, seed: int = 0) -> tuple[FloatArray, IntArray]:
    """Unit rows around the axes of ten dimensions, ``sizes[b]`` around axis b, with the number of the axis."""
    rng, blob = np.random.default_rng(seed), np.repeat(np.arange(len(sizes)), sizes)
    return unit(np.eye(10)[blob] + noise * rng.standard_normal((len(blob), 10))), blob


def make_view(x: FloatArray, blob: IntArray, labelled: Any, rounds: Any = None) -> PoolView:
    """A pool of all rows but the positions ``labelled``; row 1000 + i is position i, and slot b stands for blob b."""
    labelled = np.asarray(labelled, dtype=np.int64)
    pool = np.setdiff1d(np.arange(len(x)), labelled)
    probs = np.full((len(pool), N_SLOTS), 1 / N_SLOTS)
    asked = None if rounds is None else np.asarray(rounds, dtype=np.int64)
    return PoolView(1000 + pool, probs, x[pool], x[labelled], blob[labelled], n_old=2, labelled_rounds=asked)


def ask(view: PoolView, budget: int, seed: int = 0, **options: Any) -> IntArray:
    return select(view, "widest_reach", budget, np.random.default_rng(seed), options)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("labelled_blobs", [[], [0], [0, 3, 5]])
def test_the_first_picks_lie_one_in_each_blob_without_labels(labelled_blobs: list[int], seed: int) -> None:
    x, blob = separated([30] * 6, seed=seed)
    labelled = [30 * b + i for b in labelled_blobs for i in range(4)]
    rows = ask(make_view(x, blob, labelled), 6 - len(labelled_blobs), seed)
    assert sorted(blob[rows - 1000].tolist()) == sorted(set(range(6)) - set(labelled_blobs))


@pytest.mark.parametrize("seed", range(5))
def test_one_answer_is_enough_to_send_the_next_questions_elsewhere(seed: int) -> None:
    x, blob = separated([40, 40, 40, 40], seed=seed)
    first = ask(make_view(x, blob, []), 2, seed)
    rows = ask(make_view(x, blob, first - 1000, rounds=[1, 1]), 2, seed)
    assert sorted(blob[[*first - 1000, *rows - 1000]].tolist()) == [0, 1, 2, 3]


def bridged(seed: int) -> tuple[FloatArray, IntArray]:
    """Two blobs of 40 rows each, and 20 rows (blob 2) halfway between them."""
    rng = np.random.default_rng(seed)
    centres = np.eye(10)[[0, 1, 2]]
    centres[2] = (centres[0] + centres[1]) / np.sqrt(2)
    blob = np.repeat([0, 1, 2], [40, 40, 20])
    return unit(centres[blob] + 0.1 * rng.standard_normal((100, 10))), blob


@pytest.mark.parametrize("seed", range(5))
def test_a_border_between_labelled_blobs_is_asked_about_before_their_cores(seed: int) -> None:
    x, blob = bridged(seed)
    row = int(ask(make_view(x, blob, [*range(8), *range(40, 48)]), 1, seed)[0])
    assert blob[row - 1000] == 2


def test_probabilities_count_for_their_width_alone() -> None:
    x, blob = separated([25] * 5)
    view = make_view(x, blob, [0, 1, 25])
    other = np.random.default_rng(1).dirichlet(np.full(N_SLOTS, 0.2), len(view.rows))
    wider = np.full((len(view.rows), 90), 1 / 90)
    rows = ask(view, 9).tolist()
    assert ask(replace(view, probs=other), 9).tolist() == rows
    assert ask(replace(view, probs=wider), 9).tolist() == rows


def test_phase_round_and_number_of_old_classes_play_no_part() -> None:
    x, blob = separated([25] * 5)
    view = make_view(x, blob, [0, 1, 25])
    assert ask(replace(view, phase="confident", round=4, n_old=0), 9).tolist() == ask(view, 9).tolist()


def test_the_seed_plays_no_part_in_a_pool_of_few_rows() -> None:
    x, blob = separated([25] * 5, noise=0.3)
    view = make_view(x, blob, [0, 1, 25])
    assert ask(view, 12, seed=0).tolist() == ask(view, 12, seed=1).tolist()


def test_the_numbers_of_slots_play_no_part() -> None:
    x, blob = separated([25] * 5, noise=0.3)
    view = make_view(x, blob, [0, 1, 25, 50])
    renamed = replace(view, labelled_slots=np.array([5, 7, 0, 3, 1])[view.labelled_slots])
    assert ask(renamed, 12).tolist() == ask(view, 12).tolist()


def test_picks_are_those_of_the_graph_of_pool_and_labelled_rows_together() -> None:
    x, blob = separated([25] * 5, noise=0.3)
    view = make_view(x, blob, [0, 1, 25, 50])
    weights = neighbour_graph(np.concatenate([view.features, view.labelled_features]), 7)
    y_slot = np.concatenate([np.full(len(view.rows), -1), view.labelled_slots])
    uncertainty = np.where(y_slot < 0, 1 - propagate_labels(weights, y_slot, N_SLOTS).certainty, 0)
    expected = view.rows[propagation.widest_reach(weights, uncertainty, y_slot < 0, 10)]
    assert ask(view, 10, n_neighbours=7).tolist() == expected.tolist()


class Seen:
    """What the graph was made of and what was spread over it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        def spy(weights: Any, y_slot: IntArray, n_classes: int) -> Any:
            self.y_slot = y_slot
            return propagate_labels(weights, y_slot, n_classes)

        monkeypatch.setattr(propagation, "propagate_labels", spy)


def test_a_larger_pool_is_thinned_and_all_answers_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    x, blob = separated([40] * 5)
    labelled = np.arange(0, 60)
    rounds = np.where(labelled < 40, 0, labelled % 3 + 1)  # 40 labels from the start in blob 0, 20 answers in blob 1
    view, seen = make_view(x, blob, labelled, rounds), Seen(monkeypatch)
    rows = ask(view, 5, max_candidates=12)
    assert (seen.y_slot < 0).sum() == 12
    assert (seen.y_slot == 0).sum() == 2, "labels known from the start are thinned to a fifth of that"
    assert (seen.y_slot == 1).sum() == 20, "answers are not thinned"
    assert len(set(rows.tolist())) == 5


def test_thinning_leaves_no_fewer_rows_than_the_budget_and_follows_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    x, blob = separated([40] * 5)
    view, seen = make_view(x, blob, range(50)), Seen(monkeypatch)
    rows = ask(view, 30, max_candidates=8)
    assert len(set(rows.tolist())) == 30
    assert (seen.y_slot >= 0).sum() == 1, "when nobody knows who was asked, all labels count as known from the start"
    assert ask(view, 30, max_candidates=8).tolist() == rows.tolist()
    assert ask(view, 30, seed=1, max_candidates=8).tolist() != rows.tolist()


def test_a_pool_no_larger_than_max_candidates_is_used_whole() -> None:
    x, blob = separated([20] * 4, noise=0.3)
    view = make_view(x, blob, range(10))
    assert ask(view, 8, max_candidates=70).tolist() == ask(view, 8).tolist()


@pytest.mark.parametrize("options", [{"n_neighbours": 0}, {"n_neighbours": -3}, {"max_candidates": 0}, {"steps": 3}])
def test_bad_options_are_refused_in_one_sentence(options: dict[str, int]) -> None:
    x, blob = separated([10, 10])
    name, value = next(iter(options.items()))
    with pytest.raises(ConfigError, match=f"{name} is {value}; it must be at least 1|has no option '{name}'"):
        ask(make_view(x, blob, [0]), 2, **options)


@pytest.mark.parametrize("n_pool", [1, 2, 3])
@pytest.mark.parametrize("n_neighbours", [1, 10, 1000])
def test_a_tiny_pool_is_asked_about_whole(n_pool: int, n_neighbours: int) -> None:
    x, blob = separated([3, 3])
    for labelled in (range(6 - n_pool), range(0)):
        view = make_view(x[: len(labelled) + n_pool], blob, labelled)
        assert sorted(ask(view, 6, n_neighbours=n_neighbours).tolist()) == view.rows.tolist()
