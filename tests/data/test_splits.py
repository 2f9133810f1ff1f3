"""Splits: sizes as the method says, every draw from the seed, every old class known."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agcd.data.splits import (
    make_split,
    read_old_classes,
    start_state,
    truth_in_split_order,
)
from agcd.errors import ConfigError, DataError
from agcd.types import Dataset, Split
from support.datasets import toy_rows

COUNTS = st.lists(st.integers(1, 12), min_size=2, max_size=8)
RATIOS = st.floats(0.01, 1.0)
SEEDS = st.integers(0, 2**40)


def old_train_rows(dataset: Dataset, split: Split) -> list[int]:
    old = {dataset.classes.index(name) for name in split.old_classes}
    unused = set(split.unused_rows.tolist())
    rows = np.flatnonzero(~dataset.is_test).tolist()
    return [row for row in rows if int(dataset.y_class[row]) in old and row not in unused]


def same(a: Split, b: Split) -> bool:
    arrays = np.array_equal(a.labelled_rows, b.labelled_rows) and np.array_equal(a.unused_rows, b.unused_rows)
    return arrays and (a.old_classes, a.novel_classes) == (b.old_classes, b.novel_classes)


@settings(max_examples=80, deadline=None)
@given(counts=COUNTS, ratio=RATIOS, seed=SEEDS, n_unlabelled=st.integers(0, 3), data=st.data())
def test_labelled_rows_are_sorted_train_rows_of_old_classes_in_the_right_number(
    counts: list[int], ratio: float, seed: int, n_unlabelled: int, data: st.DataObject
) -> None:
    dataset = toy_rows(counts, n_unlabelled=n_unlabelled)
    n_old = data.draw(st.integers(1, len(counts) - 1))
    split = make_split(dataset, seed=seed, n_old=n_old, label_ratio=ratio)
    rows = split.labelled_rows.tolist()
    candidates = old_train_rows(dataset, split)
    assert len(split.old_classes) == n_old
    assert sorted(split.old_classes + split.novel_classes) == sorted(dataset.classes)
    assert rows == sorted(set(rows))
    assert set(rows) <= set(candidates)
    assert {dataset.classes[c] for c in dataset.y_class[rows]} == set(split.old_classes)
    assert len(rows) == max(int(ratio * len(candidates)), n_old)


@settings(max_examples=30, deadline=None)
@given(counts=COUNTS, ratio=RATIOS, seed=SEEDS, tail=st.none() | st.floats(1, 50))
def test_the_same_seed_gives_the_same_split(counts: list[int], ratio: float, seed: int, tail: float | None) -> None:
    dataset = toy_rows(counts)
    first, second = (make_split(dataset, seed=seed, label_ratio=ratio, long_tail=tail) for _ in range(2))
    assert same(first, second)


def test_different_seeds_give_different_classes_and_different_rows() -> None:
    dataset = toy_rows([50] * 10)
    splits = [make_split(dataset, seed=seed) for seed in range(20)]
    assert len({split.old_classes for split in splits}) > 15
    named = [make_split(dataset, seed=seed, old_classes=dataset.classes[:5]) for seed in range(20)]
    assert len({tuple(split.labelled_rows.tolist()) for split in named}) == 20


def test_every_class_and_every_row_can_be_drawn() -> None:
    dataset = toy_rows([4] * 4)
    splits = [make_split(dataset, seed=seed, label_ratio=0.5) for seed in range(60)]
    assert {name for split in splits for name in split.old_classes} == set(dataset.classes)
    assert {row for split in splits for row in split.labelled_rows.tolist()} == set(range(16))


def test_labels_are_uniform_over_rows_not_over_classes() -> None:
    dataset = toy_rows([900, 100, 5])
    split = make_split(dataset, seed=0, old_classes=["c0", "c1"])
    counts = np.bincount(dataset.y_class[split.labelled_rows])
    assert counts.sum() == 200
    assert 160 < counts[0] < 195


def test_a_class_that_drew_no_label_takes_one_from_the_class_with_most() -> None:
    dataset = toy_rows([200, 1, 1, 1, 5])
    for seed in range(10):
        split = make_split(dataset, seed=seed, old_classes=["c0", "c1", "c2", "c3"], label_ratio=0.1)
        assert np.bincount(dataset.y_class[split.labelled_rows]).tolist() == [17, 1, 1, 1]


def test_default_is_half_of_the_classes_rounded_down_and_a_fifth_of_their_rows() -> None:
    split = make_split(toy_rows([10] * 7), seed=3)
    assert (len(split.old_classes), len(split.novel_classes), len(split.labelled_rows)) == (3, 4, 6)
    assert (split.seed, split.label_ratio, len(split.unused_rows)) == (3, 0.2, 0)


def test_seeded_old_classes_stay_in_listed_order_and_named_ones_in_theirs() -> None:
    dataset = toy_rows([5] * 6)
    for seed in range(5):
        old = make_split(dataset, seed=seed).old_classes
        assert list(old) == sorted(old)
    named = make_split(dataset, seed=0, old_classes=("c4", "c1"))
    assert named.old_classes == ("c4", "c1")
    assert named.novel_classes == ("c0", "c2", "c3", "c5")


def test_ratio_zero_means_no_label_and_no_old_class() -> None:
    dataset = toy_rows([5] * 4)
    split = make_split(dataset, seed=0, label_ratio=0, n_old=2)
    assert (split.old_classes, split.novel_classes) == ((), dataset.classes)
    assert split.labelled_rows.tolist() == []
    state = start_state(dataset, split)
    assert (state.n_old, state.classes, len(state.pool_rows)) == (0, (), 20)


def test_ratio_one_labels_every_train_row_of_the_old_classes() -> None:
    dataset = toy_rows([5] * 4)
    split = make_split(dataset, seed=0, label_ratio=1)
    assert split.labelled_rows.tolist() == old_train_rows(dataset, split)


@settings(max_examples=60, deadline=None)
@given(counts=COUNTS, seed=SEEDS, factor=st.floats(1, 100))
def test_a_long_tail_keeps_the_exponential_profile_and_at_least_one_row(
    counts: list[int], seed: int, factor: float
) -> None:
    dataset = toy_rows(counts)
    split = make_split(dataset, seed=seed, long_tail=factor)
    unused = split.unused_rows
    assert not set(unused.tolist()) & set(split.labelled_rows.tolist())
    assert not dataset.is_test[unused].any()
    kept = np.array(counts) - np.bincount(dataset.y_class[unused], minlength=len(counts))
    assert kept.min() >= 1
    if len(set(counts)) == 1:  # the order of the classes does not matter, so the profile can be told
        k = len(counts)
        profile = [max(1, math.floor(counts[0] * factor ** (-i / (k - 1)) + 1e-9)) for i in range(k)]
        assert sorted(kept.tolist(), reverse=True) == profile


def test_the_long_tail_runs_from_all_rows_to_one_over_the_factor_in_a_seeded_order() -> None:
    dataset = toy_rows([100] * 3)
    orders = set()
    for seed in range(20):
        kept = 100 - np.bincount(dataset.y_class[make_split(dataset, seed=seed, long_tail=10).unused_rows], minlength=3)
        assert sorted(kept.tolist()) == [10, 31, 100]
        orders.add(tuple(kept.tolist()))
    assert len(orders) > 3


def test_a_class_without_train_rows_is_novel_and_cannot_be_old() -> None:
    dataset = toy_rows([5, 0, 5])
    for seed in range(10):
        assert "c1" in make_split(dataset, seed=seed, n_old=2).novel_classes
    with pytest.raises(DataError, match="Old class 'c1' has no train rows"):
        make_split(dataset, seed=0, old_classes=["c1"])


def published_twin(dataset: Dataset, old: set[int], ratio: float) -> list[int]:
    """The published rule, word for word: filter rows by class, reset the global legacy generator to 0, choose."""
    rows = [row for row, c in enumerate(dataset.y_class.tolist()) if c in old and not dataset.is_test[row]]
    before = np.random.get_state()  # noqa: NPY002
    try:
        np.random.seed(0)  # noqa: NPY002
        places = np.random.choice(range(len(rows)), replace=False, size=(int(ratio * len(rows)),))  # noqa: NPY002
    finally:
        np.random.set_state(before)  # noqa: NPY002
    return sorted(rows[place] for place in places.tolist())


@settings(max_examples=40, deadline=None)
@given(counts=COUNTS, ratio=RATIOS, seed=SEEDS)
def test_the_published_draw_is_the_published_rule_whatever_the_seed(counts: list[int], ratio: float, seed: int) -> None:
    dataset = toy_rows(counts, n_unlabelled=2)
    split = make_split(dataset, seed=seed, old_classes=["c1"], label_ratio=ratio, draw="published")
    assert split.labelled_rows.tolist() == published_twin(dataset, {1}, ratio)
    assert split.labelled_rows.dtype == np.int64


def test_the_published_draw_leaves_a_class_without_labels_and_the_global_generator_alone() -> None:
    dataset = toy_rows([200, 1, 1, 1, 5])
    before = np.random.get_state()[1].tolist()  # type: ignore[index] # noqa: NPY002
    split = make_split(dataset, seed=0, old_classes=["c0", "c1", "c2", "c3"], label_ratio=0.1, draw="published")
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index] # noqa: NPY002
    assert split.labelled_rows.tolist() == published_twin(dataset, {0, 1, 2, 3}, 0.1)
    assert len(np.unique(dataset.y_class[split.labelled_rows])) < 4
    assert split.old_classes == ("c0", "c1", "c2", "c3")


def test_the_published_draw_of_nothing_is_nothing() -> None:
    split = make_split(toy_rows([5] * 4), seed=0, label_ratio=0, draw="published")
    assert split.labelled_rows.tolist() == []


def test_old_classes_come_from_a_file_in_its_order(tmp_path: Path) -> None:
    path = tmp_path / "split.json"
    path.write_text(json.dumps({"old": ["c3", "Cafe\u0301"], "from": "a paper"}))
    assert read_old_classes(path) == ("c3", "Caf\u00e9")
    path.write_text(json.dumps({"old": ["c3", "c0"]}))
    assert make_split(toy_rows([5] * 4), seed=0, old_classes=read_old_classes(path)).old_classes == ("c3", "c0")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"old": "c1"}', '{"old": [1]}', "[" * 100_000, "\ud800"])
def test_a_file_that_lists_no_old_classes_is_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "split.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(DataError, match=r'does not list old classes .*: JSON \{"old": \[class names\]\} is expected'):
        read_old_classes(path)
    with pytest.raises(DataError, match=r"There is no file at .*nowhere: JSON"):
        read_old_classes(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_old": 0}, "n_old is 0; 1 to 3 of the 4 classes"),
        ({"n_old": 4}, "n_old is 4; 1 to 3 of the 4 classes"),
        ({"n_old": -1}, "n_old is -1"),
        ({"label_ratio": -0.1}, "label_ratio is -0.1"),
        ({"label_ratio": 1.1}, "label_ratio is 1.1"),
        ({"label_ratio": math.nan}, "label_ratio is nan"),
        ({"long_tail": 0.5}, "long_tail is 0.5"),
        ({"long_tail": math.inf}, "long_tail is inf"),
        ({"long_tail": 0.0}, "long_tail is 0.0"),
        ({"old_classes": ["c9"]}, "Unknown old class 'c9'"),
        ({"old_classes": ["c1", "c1"]}, "names 1 different classes in 2 entries"),
        ({"old_classes": []}, "names 0 different classes"),
        ({"old_classes": ["c0", "c1", "c2", "c3"]}, "1 to 3 of the 4 classes are expected"),
        ({"old_classes": ["c0"], "n_old": 2}, "2 of the 4 classes are expected"),
        ({"draw": "publish"}, "Unknown draw 'publish'. Did you mean 'published'"),
    ],
)
def test_settings_out_of_range_are_one_sentence(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_split(toy_rows([5] * 4), seed=0, **arguments)


@pytest.mark.parametrize("counts", [[], [5]])
def test_fewer_than_two_classes_cannot_be_split(counts: list[int]) -> None:
    with pytest.raises(DataError, match=f"has {len(counts)} labelled classes; a split needs at least 2"):
        make_split(toy_rows(counts, n_unlabelled=2), seed=0)


@settings(max_examples=40, deadline=None)
@given(counts=COUNTS, seed=SEEDS, tail=st.none() | st.floats(1, 20))
def test_the_start_state_speaks_of_the_split_and_hides_the_rest(
    counts: list[int], seed: int, tail: float | None
) -> None:
    dataset = toy_rows(counts, n_test=2, n_unlabelled=2)
    split = make_split(dataset, seed=seed, long_tail=tail)
    state = start_state(dataset, split)
    assert (state.classes, state.n_old) == (split.old_classes, len(split.old_classes))
    assert np.array_equal(state.labelled_rows, split.labelled_rows)
    assert np.array_equal(state.seed_rows, split.labelled_rows)
    for row in split.labelled_rows.tolist():
        assert state.classes[state.y_class[row]] == dataset.classes[dataset.y_class[row]]
    assert set(np.flatnonzero(state.asked_round == 0)) == set(split.labelled_rows.tolist())
    assert np.array_equal(np.flatnonzero(state.asked_round == -1), np.flatnonzero(state.y_class == -1))
    held_out = set(np.flatnonzero(dataset.is_test).tolist()) | set(split.unused_rows.tolist())
    assert set(np.flatnonzero(state.held_out).tolist()) == held_out
    nobody_knows = set(np.flatnonzero(dataset.y_class == -1).tolist()) - held_out
    assert set(np.flatnonzero(state.passed).tolist()) == nobody_knows, "nobody could answer for them"
    assert len(state.pool_rows) == dataset.n_rows - len(held_out) - len(split.labelled_rows) - len(nobody_knows)


def test_truth_is_numbered_old_first_and_unknown_stays_unknown() -> None:
    dataset = toy_rows([1, 1, 1], n_test=1, n_unlabelled=1)
    split = make_split(dataset, seed=0, old_classes=["c2"])
    assert truth_in_split_order(dataset, split).tolist() == [1, 2, 0, -1, 1, 2, 0]


def test_neither_state_nor_truth_changes_the_data_set() -> None:
    dataset = toy_rows([5] * 4, n_unlabelled=1)
    y_class, is_test = dataset.y_class.copy(), dataset.is_test.copy()
    split = make_split(dataset, seed=0, long_tail=5)
    start_state(dataset, split)
    assert np.array_equal(dataset.y_class, y_class)
    assert np.array_equal(dataset.is_test, is_test)
