"""Neighbours as views: which rows stand in for which, and what that is good for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agcd.features.rows import EmbeddingRows
from agcd.features.store import Allocate
from agcd.training import get_trainer
from agcd.training.fitted import frozen_features
from agcd.training.sampler import two_views
from agcd.training.simgcd_nn import NeighbourViews, neighbours
from agcd.types import IntArray, LabelState
from support.blobs import Blobs, fast_config, make_blobs
from support.training_jobs import job, same, told, weights


class Noted(EmbeddingRows):
    """Features that tell which views of which rows were read."""

    def __init__(self, n_rows: int, n_views: int) -> None:
        super().__init__(np.zeros((n_rows, 2), np.float32))
        self.n_views = n_views
        self.asked: list[tuple[int, int]] = []

    def announce(self, rows: IntArray, views: IntArray) -> None:
        self.asked += zip(rows.tolist(), views.tolist(), strict=True)

    def read(self, rows: IntArray, views: IntArray, allocate: Allocate = np.empty):  # type: ignore[no-untyped-def]
        self.announce(rows, views)
        return super().read(rows, views, allocate)


def plainly(row: int, near: list[int], n_views: int) -> Iterator[tuple[int, int]]:
    """Every view of a row in turn, said the slow way."""
    for _ in range(max(1, len(near))):
        yield from ((row, view) for view in range(n_views))
    for view in range(n_views):
        yield from ((other, view) for other in near)


@given(st.integers(1, 4), st.integers(0, 5), st.integers(0, 100))
def test_views_are_the_rows_own_first_and_then_its_neighbours(n_views: int, k: int, seed: int) -> None:
    near = np.random.default_rng(seed).integers(7, size=(7, k))
    features = Noted(7, n_views)
    seen = NeighbourViews(features, near)
    for row in range(7):
        expected = list(plainly(row, near[row].tolist(), n_views))
        assert seen.n_views == len(expected)
        for ask in (seen.read, seen.announce):
            features.asked.clear()
            ask(np.full(seen.n_views, row), np.arange(seen.n_views))
            assert features.asked == expected


@pytest.mark.parametrize("n_views", [1, 4, 2**31 - 1])
def test_half_of_the_views_of_a_batch_are_those_of_neighbours(n_views: int) -> None:
    n, rng = 4000, np.random.default_rng(0)
    near = (np.arange(n)[:, None] + np.arange(1, 6)) % n
    features = Noted(n, n_views)
    seen = NeighbourViews(features, near)
    for views in two_views(n, seen.n_views, rng):
        features.asked.clear()
        seen.announce(np.arange(n), views)
        shown = np.array([row for row, _ in features.asked])
        assert (shown != np.arange(n)).mean() == pytest.approx(0.5, abs=0.03)
        assert np.isin((shown - np.arange(n)) % n, np.arange(6)).all()
        assert max(view for _, view in features.asked) < n_views


def test_neighbours_are_the_nearest_training_rows_and_labelled_rows_have_them_of_their_own_class() -> None:
    blobs = make_blobs(per_class=15)
    held_out = np.arange(90) % 7 == 0
    labels = replace(
        blobs.labels,
        held_out=held_out,
        y_class=np.where(held_out & (blobs.labels.y_class < 0), -1, blobs.labels.y_class),
    )
    found = neighbours(replace(job(blobs, Path()), labels=labels), 4)
    rows, y = labels.train_rows, labels.y_class
    x = frozen_features(blobs.features, rows)
    cosine = x @ x.T
    np.fill_diagonal(cosine, -9)
    for place, row in enumerate(rows.tolist()):
        nearest = rows[np.argsort(-cosine[place], kind="stable")[:4]].tolist()
        expected = nearest if y[row] < 0 else [near if y[near] == y[row] else row for near in nearest]
        assert sorted(found[row].tolist()) == sorted(expected)
    others = np.setdiff1d(np.arange(90), rows)
    assert len(others)
    assert (found[others] == others[:, None]).all(), "rows outside training stand for themselves"


@pytest.mark.parametrize("n", [1, 2, 3])
def test_so_few_rows_that_there_are_not_as_many_neighbours_are_trained_all_the_same(n: int) -> None:
    x = np.random.default_rng(0).normal(size=(n, 8))
    nowhere = np.zeros(n, bool)
    labels = LabelState(
        ("a",), 1, np.where(np.arange(n) == 0, 0, -1), np.where(np.arange(n) == 0, 0, -1), nowhere, nowhere
    )
    blobs = Blobs(EmbeddingRows(x, dropout=0.1), labels, np.zeros(n, np.int64))
    assert neighbours(job(blobs, Path()), 5).shape == (n, min(5, n - 1))
    done = get_trainer("simgcd_nn")(fast_config(trainer="simgcd_nn").train).fit(job(blobs, None, n_slots=1))  # type: ignore[arg-type]
    assert all(tensor.isfinite().all() for tensor in weights(done.fitted).values())


def test_a_round_is_that_of_simgcd(tmp_path: Path) -> None:
    blobs = make_blobs()
    trainers = {name: get_trainer(name)(fast_config(trainer=name).train) for name in ("simgcd", "simgcd_nn")}
    bases = {name: trainer.fit(job(blobs, tmp_path / name)) for name, trainer in trainers.items()}
    assert not same(*(weights(base.fitted) for base in bases.values()))
    base = bases["simgcd_nn"]
    rounds = [
        trainer.fit(job(blobs, tmp_path / f"{n}r", labels=told(blobs), round=1, start=base.fitted, previous=base.last))
        for n, trainer in enumerate(trainers.values())
    ]
    assert same(*(weights(done.fitted) for done in rounds))


def classes_that_noise_hides(seed: int) -> Blobs:
    """Eight classes of 40 rows that differ in 8 directions, while their members differ in 24 others as much."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(8), 40)
    x = np.concatenate([1.6 * np.eye(8)[truth] + 0.3 * rng.normal(size=(320, 8)), 0.3 * rng.normal(size=(320, 24))], 1)
    y = np.where((truth < 4) & (np.arange(320) % 10 == 0), truth, -1)
    nowhere = np.zeros(320, bool)
    labels = LabelState(tuple("abcd"), 4, y, np.where(y >= 0, 0, -1), nowhere, nowhere)
    return Blobs(EmbeddingRows(x, dropout=0.05), labels, truth)


def test_members_of_a_class_are_drawn_together_further_than_by_noise_alone(tmp_path: Path) -> None:
    """What it is for: rows and their neighbours come to agree more than under SimGCD."""
    agreement: dict[str, list[float]] = {"simgcd": [], "simgcd_nn": []}
    for seed in range(3):
        blobs = classes_that_noise_hides(seed)
        near = neighbours(job(blobs, Path()), 5)
        for name, values in agreement.items():
            config = fast_config(trainer=name, base_epochs=8, projector_width=32, projector_dim=16)
            done = get_trainer(name)(config.train).fit(job(blobs, tmp_path / f"{name}{seed}", n_slots=8))
            probs = done.fitted.predict(blobs.features, np.arange(320)).probs
            values.append(float(np.einsum("ik,ijk->ij", probs, probs[near]).mean()))
    assert np.mean(agreement["simgcd_nn"]) > np.mean(agreement["simgcd"]), agreement
