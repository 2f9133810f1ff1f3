"""A split file holds the split whole, and pins the data that it numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agcd.data.splits import dataset_digest, make_split, save_split
from agcd.io import read_json
from support.datasets import toy_rows

COUNTS = st.lists(st.integers(1, 12), min_size=2, max_size=8)


@settings(max_examples=15, deadline=None)
@given(counts=COUNTS, seed=st.integers(0, 2**40), tail=st.none() | st.floats(1, 20))
def test_a_saved_split_holds_everything_that_was_drawn(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], seed: int, tail: float | None
) -> None:
    dataset = toy_rows(counts)
    split = make_split(dataset, seed=seed, long_tail=tail)
    path = tmp_path_factory.mktemp("split") / "split.json"
    save_split(path, split, dataset)
    assert read_json(path) == {
        "version": 1,
        "dataset": dataset_digest(dataset),
        "old_classes": list(split.old_classes),
        "novel_classes": list(split.novel_classes),
        "labelled_rows": split.labelled_rows.tolist(),
        "unused_rows": split.unused_rows.tolist(),
        "seed": split.seed,
        "label_ratio": split.label_ratio,
    }


def test_a_split_tells_other_data_but_not_a_new_name(tmp_path: Path) -> None:
    dataset = toy_rows([5] * 4)
    save_split(tmp_path / "split.json", make_split(dataset, seed=0), dataset)
    made_for = read_json(tmp_path / "split.json")["dataset"]
    assert made_for == dataset_digest(replace(dataset, name="renamed"))
    assert made_for != dataset_digest(replace(dataset, keys=("other", *dataset.keys[1:])))


@settings(max_examples=30, deadline=None)
@given(counts=COUNTS, other=COUNTS)
def test_the_digest_tells_data_sets_apart(counts: list[int], other: list[int]) -> None:
    assume(counts != other)
    assert dataset_digest(toy_rows(counts)) == dataset_digest(toy_rows(counts))
    assert dataset_digest(toy_rows(counts)) != dataset_digest(toy_rows(other))
