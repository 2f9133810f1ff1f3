"""A finished round: what the page reads agrees with the round, and maps of two rounds can be compared."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agcd.app import round_files
from agcd.app.labels import LabelView
from agcd.app.model import train
from agcd.app.round_files import open_round_view, round_folder, round_version, write_round_view
from agcd.app.rounds import RoundView, top_of
from agcd.layout import lay_out, turned_to_fit
from agcd.rng import generator
from agcd.types import FloatArray
from support.damage import DAMAGES, Damage, damage
from support.projects import answer_all, make_project, predictions


def unit(x: FloatArray) -> FloatArray:
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def small_view(folder: Path, number: int = 0, n: int = 40, n_slots: int = 6, seed: int = 0) -> RoundView:
    rng = generator(seed, "atlas", number)
    probs = rng.dirichlet(np.full(n_slots, 0.3), n)
    top_slots, top_probs = top_of(probs)
    top_slots[3] = -1
    facts = {"n_old": 2, "n_slots": n_slots, "class_ids": ["a", "b", *[None] * (n_slots - 2)], "model_id": "m"}
    features = unit(rng.normal(size=(n, 5))).astype(np.float16)
    labels = LabelView.empty(np.arange(n) == 7)
    return write_round_view(folder, number, top_slots, top_probs, features, labels, facts)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6), st.integers(1, 9))
def test_the_top_of_probabilities_is_the_top(seed: int, n_slots: int) -> None:
    probs = generator(seed, "top").dirichlet(np.ones(n_slots), 20)
    slots, values = top_of(probs)
    for row in range(20):
        best = sorted(range(n_slots), key=lambda slot: -probs[row, slot])[:5]
        assert slots[row].tolist() == best
        np.testing.assert_allclose(values[row], probs[row, best], atol=1e-3)


def test_members_are_the_train_rows_of_a_slot_the_surest_first(tmp_path: Path) -> None:
    view = small_view(tmp_path)
    listed = np.concatenate([view.members(slot) for slot in range(view.n_slots)])
    assert sorted(listed) == [row for row in range(40) if row not in (3, 7)]
    for slot in range(view.n_slots):
        members = view.members(slot)
        assert (view.top_slots[members, 0] == slot).all()
        assert (np.diff(view.top_probs[members, 0].astype(float)) <= 0).all()
        assert len(members) == view.sizes[slot]


def test_the_most_similar_rows_are_found_as_by_sorting_all(tmp_path: Path) -> None:
    view = small_view(tmp_path)
    rows = np.arange(40)
    centre = view.vectors(np.array([11]))[0]
    found, cosines = view.most_similar(centre, rows, 5)
    assert found[0] == 11
    expected = np.sort(view.vectors(rows) @ centre)[::-1][:5]
    np.testing.assert_allclose(cosines, expected)


def test_stability_and_moves_are_measured_against_the_round_before(tmp_path: Path) -> None:
    first = small_view(tmp_path, 0)
    assert set(first.facts["stability"]) == {None}
    second = small_view(tmp_path, 1)
    order = np.asarray(second.order)
    then, now = first.top_slots[order, 0], second.top_slots[order, 0]
    assert second.facts["moved_share"] == pytest.approx((then != now).mean())
    for slot in range(second.n_slots):
        before = first.top_slots[second.members(slot), 0].tolist()
        known = [s for s in before if s >= 0]
        best = max((known.count(s) for s in known), default=0)
        expected = best / len(known) if known else None
        assert second.facts["stability"][slot] == pytest.approx(expected)


def test_only_the_last_round_keeps_its_features(tmp_path: Path) -> None:
    for number in range(3):
        small_view(tmp_path, number)
    kept = [(round_folder(tmp_path, number) / "features.npy").exists() for number in range(3)]
    assert kept == [False, False, True]
    earlier = open_round_view(tmp_path, 0)
    assert earlier is not None
    assert earlier.features is None
    assert open_round_view(tmp_path, 5) is None


@pytest.mark.parametrize("mirrored", [False, True])
def test_turning_a_map_undoes_any_turn_shift_and_scale(mirrored: bool) -> None:
    xy = generator(0, "turn").normal(size=(30, 2)).astype(np.float32)
    angle = 1.1
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    changed = (xy * [-1 if mirrored else 1, 1]) @ turn * 3 + [5, -2]
    np.testing.assert_allclose(turned_to_fit(changed.astype(np.float32), xy), xy, atol=1e-4)


def test_a_map_of_the_next_round_stays_where_people_remember_it() -> None:
    rng = generator(0, "layout test")
    centres = np.repeat(unit(rng.normal(size=(6, 8))), 30, axis=0)
    before_features, after_features = (unit(centres + 0.1 * rng.normal(size=centres.shape)) for _ in range(2))
    rows = np.arange(180)
    before = lay_out(before_features, rows)
    after = lay_out(after_features, rows, before)
    apart = lay_out(after_features[::-1], rows)[::-1]
    middles = [xy.reshape(6, 30, 2).mean(1) for xy in (before, after, apart)]
    spread = np.linalg.norm(middles[0] - middles[0].mean(0), axis=1).mean()
    moved, moved_apart = (np.linalg.norm(other - middles[0], axis=1).mean() / spread for other in middles[1:])
    assert moved < 0.35
    assert moved < moved_apart


def test_rows_between_anchors_lie_beside_their_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agcd.layout.N_ANCHORS", 60)
    rng = generator(1, "layout test")
    group = np.repeat(np.arange(4), 50)
    features = unit(unit(rng.normal(size=(4, 8)))[group] + 0.05 * rng.normal(size=(200, 8)))
    xy = lay_out(features, np.arange(200))
    assert np.isfinite(xy).all()
    middles = np.stack([xy[group == g].mean(0) for g in range(4)])
    nearest = np.linalg.norm(xy[:, None] - middles, axis=2).argmin(1)
    assert (nearest == group).mean() > 0.95


def test_a_handful_of_rows_can_be_laid_out() -> None:
    xy = lay_out(np.eye(5), np.array([1, 3]))
    assert np.isfinite(xy[[1, 3]]).all()
    assert np.isnan(xy[[0, 2, 4]]).all()


def test_a_project_writes_the_view_of_its_rounds_and_makes_it_again(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        train(project)
        answer_all(project)
        train(project)
        view = open_round_view(project.folder, 1)
        assert view is not None
        table = predictions(project)
        for row, slot, probability in zip(table["row"], table["slot"], table["probability"], strict=True):
            assert view.top_slots[row, 0] == slot
            assert float(view.top_probs[row, 0]) == pytest.approx(probability, abs=1e-3)
        registry = project.labels().registry
        named = [registry.classes[c].name if c else f"unnamed #{slot}" for slot, c in enumerate(view.named_ids)]
        assert named == [name for name, _ in project.snapshot().slot_names]
        before = np.array(view.xy), view.facts
        shutil.rmtree(round_folder(project.folder, 1))
        assert not round_version(project.folder, 1)

        from agcd.app import model

        again = model.make_round_view(project, model.row_features(project))
        np.testing.assert_allclose(again.xy, before[0], atol=1e-3)
        assert {**again.facts, "digests": {}} == {**before[1], "digests": {}}  # the map may move by a hair


VIEW_FILES = ("facts.json", "top_slots.npy", "top_probs.npy", "xy.npy", "order.npy", "starts.npy", "features.npy")


@pytest.mark.parametrize("name", VIEW_FILES)
@pytest.mark.parametrize("how", DAMAGES)
def test_a_view_with_a_damaged_file_counts_as_absent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, how: Damage
) -> None:
    small_view(tmp_path)
    damage(round_folder(tmp_path, 0) / name, how)
    round_files._whole_facts.cache_clear()  # as in a new process
    assert not round_version(tmp_path, 0)
    assert open_round_view(tmp_path, 0) is None
    assert (f"({name}" in caplog.text) == ((name, how) != ("facts.json", "delete"))
    small_view(tmp_path)
    assert open_round_view(tmp_path, 0) is not None
