"""The validation part: what decisions are made on, drawn from the train rows alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agcd.errors import ConfigError, DataError
from agcd.lab.cells import Cell, load, run_cell
from agcd.lab.starts import validation_part
from agcd.types import Dataset
from support.blobs import FAST
from support.datasets import toy_rows

SETTINGS: dict[str, Any] = {"train": FAST, "query": {"rounds": 1, "budget": 3}}


def with_contents(dataset: Dataset) -> Dataset:
    """Every row holds its own number, so that a mix-up shows."""
    return replace(dataset, x=np.arange(dataset.n_rows, dtype=np.float32)[:, None])


@given(
    counts=st.lists(st.integers(1, 12), min_size=1, max_size=5).filter(lambda counts: max(counts) > 1),
    n_unlabelled=st.integers(0, 4),
    share=st.floats(0.01, 0.99),
)
def test_every_class_gives_its_share_and_keeps_a_row_and_no_test_row_survives(
    counts: list[int], n_unlabelled: int, share: float
) -> None:
    whole = with_contents(toy_rows(counts, n_test=2, n_unlabelled=n_unlabelled))
    part = validation_part(whole, share)
    train_rows = np.flatnonzero(~whole.is_test)
    assert part.x is not None
    np.testing.assert_array_equal(part.x[:, 0], train_rows)
    assert part.keys == tuple(f"k{row}" for row in train_rows)
    np.testing.assert_array_equal(part.y_class, whole.y_class[train_rows])
    assert part.classes == whole.classes
    for c, count in enumerate(counts):
        n_held_out = int(part.is_test[part.y_class == c].sum())
        assert n_held_out == (0 if count == 1 else np.clip(round(share * count), 1, count - 1))
    assert not part.is_test[part.y_class < 0].any()


def test_images_keep_their_paths_beside_their_keys() -> None:
    rows = toy_rows([4, 4], n_test=3)
    mixed = replace(rows, x=None, paths=tuple(Path(key) for key in rows.keys), is_test=np.arange(rows.n_rows) % 3 == 0)
    part = validation_part(mixed, 0.5)
    assert part.x is None
    assert part.paths == tuple(Path(key) for key in part.keys)
    assert part.keys == tuple(f"k{row}" for row in range(rows.n_rows) if row % 3)


def test_all_seeds_of_a_benchmark_are_measured_on_the_same_rows(tmp_path: Path) -> None:
    one, other = (load(Cell("toy", "random", seed, SETTINGS, {"validation": 0.25}), tmp_path) for seed in (0, 7))
    np.testing.assert_array_equal(one.dataset.is_test, other.dataset.is_test)
    assert one.dataset.keys == other.dataset.keys
    assert one.dataset.is_test.sum() == 10 * 10
    assert not np.isin(one.split.labelled_rows, np.flatnonzero(one.dataset.is_test)).any()
    assert set(one.split.labelled_rows.tolist()) != set(other.split.labelled_rows.tolist())


def test_the_test_rows_play_no_part_in_what_a_validation_run_finds(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 15)
    x = rng.normal(size=(4, 6))[y] * 3 + rng.normal(size=(60, 6))
    found = []
    for name, x_test in (("one", x[::5]), ("other", rng.normal(size=(12, 6)) + 50)):
        np.savez(tmp_path / f"{name}.npz", x_train=x, y_train=y, x_test=x_test, y_test=y[::5])
        cell = Cell(str(tmp_path / f"{name}.npz"), "margin", 0, SETTINGS, {"validation": 0.2})
        records = run_cell(cell, tmp_path / name, tmp_path / "cache")
        assert records[-1]["split"].endswith("measured on 0.2 of the train rows")
        assert records[-1]["on_test"]
        unstable = ("data", "seconds")
        found.append([{key: value for key, value in record.items() if key not in unstable} for record in records])
    assert found[0] == found[1]


@pytest.mark.parametrize("share", [0.0, 1.0, -0.2, 3.0, float("nan")])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(ConfigError, match=rf"validation is {share}; a share .* between 0 and 1 is expected\.$"):
        validation_part(toy_rows([4, 4]), share)


def test_classes_of_one_row_cannot_be_held_out() -> None:
    with pytest.raises(DataError, match="no class with two train rows"):
        validation_part(toy_rows([1, 1, 1]), 0.5)
