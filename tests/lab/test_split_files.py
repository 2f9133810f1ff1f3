"""A split file holds the split whole, pins the data it numbers, and is one sentence when it is anything else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agcd.data.splits import dataset_digest, load_split, make_split, save_split
from agcd.errors import DataError
from support.datasets import toy_rows

COUNTS = st.lists(st.integers(1, 12), min_size=2, max_size=8)


@settings(max_examples=15, deadline=None)
@given(counts=COUNTS, seed=st.integers(0, 2**40), tail=st.none() | st.floats(1, 20))
def test_a_saved_split_loads_to_the_same(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], seed: int, tail: float | None
) -> None:
    dataset = toy_rows(counts)
    split = make_split(dataset, seed=seed, long_tail=tail)
    path = tmp_path_factory.mktemp("split") / "split.json"
    save_split(path, split, dataset)
    loaded = load_split(path, dataset)
    assert loaded.labelled_rows.tolist() == split.labelled_rows.tolist()
    assert loaded.unused_rows.tolist() == split.unused_rows.tolist()
    assert (loaded.old_classes, loaded.novel_classes) == (split.old_classes, split.novel_classes)
    assert (loaded.seed, loaded.label_ratio) == (split.seed, split.label_ratio)
    assert loaded.labelled_rows.dtype == np.int64


def test_a_split_of_other_data_is_refused_but_a_new_name_is_not(tmp_path: Path) -> None:
    dataset = toy_rows([5] * 4)
    path = tmp_path / "split.json"
    save_split(path, make_split(dataset, seed=0), dataset)
    assert load_split(path, replace(dataset, name="renamed")).seed == 0
    with pytest.raises(DataError, match="was made for other data than rows"):
        load_split(path, replace(dataset, keys=("other", *dataset.keys[1:])))
    with pytest.raises(DataError, match="was made for other data"):
        load_split(path, replace(dataset, y_class=np.roll(dataset.y_class, 1)))


@pytest.mark.parametrize(
    "change",
    [
        {"labelled_rows": [99]},
        {"labelled_rows": [-1]},
        {"labelled_rows": [0, 0]},
        {"labelled_rows": ["0"]},
        {"labelled_rows": [[0]]},
        {"labelled_rows": None},
        {"labelled_rows": [10**30]},
        {"labelled_rows": [19]},
        {"labelled_rows": [21]},
        {"old_classes": ["c0"]},
        {"old_classes": [1]},
        {"seed": "x"},
        {"version": 2},
    ],
)
def test_a_tampered_split_is_one_sentence(tmp_path: Path, change: dict[str, Any]) -> None:
    dataset = toy_rows([5] * 4)
    path = tmp_path / "split.json"
    save_split(path, make_split(dataset, seed=0, order="listed"), dataset)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DataError, match=r"is not a (valid )?split"):
        load_split(path, dataset)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "7", "[" * 100_000, "9" * 10_000, '{"version": 1}'])
def test_a_file_that_is_no_split_is_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "split.json"
    path.write_text(text)
    with pytest.raises(DataError, match="is not a split"):
        load_split(path, toy_rows([2, 2]))
    with pytest.raises(DataError, match="no split at"):
        load_split(tmp_path / "gone.json", toy_rows([2, 2]))


@settings(max_examples=30, deadline=None)
@given(counts=COUNTS, other=COUNTS)
def test_the_digest_tells_data_sets_apart(counts: list[int], other: list[int]) -> None:
    assume(counts != other)
    assert dataset_digest(toy_rows(counts)) == dataset_digest(toy_rows(counts))
    assert dataset_digest(toy_rows(counts)) != dataset_digest(toy_rows(other))
