"""The training loop: schedules, sampling, resumption bit for bit, growth, and what labels may reach it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agcd.config import TrainConfig, make_config
from agcd.discovery import TRAINERS, get_trainer
from agcd.discovery.fitted import Fitted
from agcd.discovery.heads import DiscoveryModel, ema_update
from agcd.discovery.loop import CHECKPOINT, read_log
from agcd.discovery.sampler import balanced_batches, shuffled_batches, two_views
from agcd.discovery.schedules import learning_rate, teacher_temperature
from agcd.discovery.simgcd import Job
from agcd.errors import ConfigError, StorageError, WeightsError
from blobs import Blobs, fast_config, make_blobs, make_session


class Killed(Exception):
    pass


def job(blobs: Blobs, folder: Path, **changes: Any) -> Job:
    return replace(Job(blobs.features, blobs.labels, 6, 0, 0, folder), **changes)


def weights(fitted: Fitted) -> dict[str, torch.Tensor]:
    return {f"s.{n}": t for n, t in fitted.student.state_dict().items()} | {
        f"e.{n}": t for n, t in fitted.ema.state_dict().items()
    }


def same(a: Fitted, b: Fitted) -> bool:
    left, right = weights(a), weights(b)
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def killer(at: int) -> Any:
    def echo(line: dict[str, Any]) -> None:
        if line["epoch"] == at:
            raise Killed

    return echo


@pytest.mark.parametrize("name", sorted(TRAINERS))
@pytest.mark.parametrize("killed_at", [0, 1, 2])
def test_a_trainer_killed_after_any_epoch_and_resumed_has_the_weights_of_an_unbroken_one(
    name: str, killed_at: int, tmp_path: Path
) -> None:
    blobs, trainer = make_blobs(), get_trainer(name)(fast_config().train)
    unbroken = trainer.fit(job(blobs, tmp_path / "a")).fitted
    with pytest.raises(Killed):
        trainer.fit(job(blobs, tmp_path / "b", echo=killer(killed_at)))
    resumed = trainer.fit(job(blobs, tmp_path / "b")).fitted
    assert same(unbroken, resumed)
    assert [line["epoch"] for line in read_log(tmp_path / "b" / "log.jsonl")] == [0, 1, 2]


@pytest.mark.parametrize("name", sorted(TRAINERS))
def test_an_active_round_killed_and_resumed_equals_an_unbroken_one(name: str, tmp_path: Path) -> None:
    blobs, trainer = make_blobs(), get_trainer(name)(fast_config().train)
    base = trainer.fit(job(blobs, tmp_path / "base"))
    asked = np.array([65, 85, 105])
    labels = blobs.labels.tell(asked, blobs.names(asked), 1)
    active = {"labels": labels, "round": 1, "start": base.fitted, "previous": base.last}
    unbroken = trainer.fit(job(blobs, tmp_path / "a", **active))
    with pytest.raises(Killed):
        trainer.fit(job(blobs, tmp_path / "b", **active, echo=killer(0)))
    resumed = trainer.fit(job(blobs, tmp_path / "b", **active))
    assert same(unbroken.fitted, resumed.fitted)
    assert not same(base.fitted, unbroken.fitted)
    assert (unbroken.first.slot_of_class == resumed.first.slot_of_class).all()
    assert (unbroken.last.slot_of_class == resumed.last.slot_of_class).all()


@pytest.mark.parametrize("name", sorted(TRAINERS))
def test_a_trainer_saves_and_loads_to_the_same_prediction(name: str, tmp_path: Path) -> None:
    blobs = make_blobs()
    fitted = get_trainer(name)(fast_config().train).fit(job(blobs, tmp_path)).fitted
    fitted.save(tmp_path / "model.safetensors")
    loaded = Fitted.load(tmp_path / "model.safetensors", blobs.features)
    rows = np.arange(120)
    for which in ("student", "ema"):
        before, after = (f.predict(blobs.features, rows, which) for f in (fitted, loaded))
        np.testing.assert_array_equal(before.probs, after.probs)
        np.testing.assert_array_equal(before.features, after.features)
    assert loaded.model_id == fitted.model_id


def test_weights_for_another_backbone_are_refused_in_one_sentence(tmp_path: Path) -> None:
    blobs = make_blobs()
    fitted = get_trainer("simgcd")(fast_config().train).fit(job(blobs, tmp_path)).fitted
    fitted.save(tmp_path / "model.safetensors")
    wider = type(blobs.features)(np.zeros((4, 9), np.float32))
    with pytest.raises(WeightsError, match="does not fit"):
        Fitted.load(tmp_path / "model.safetensors", wider)


def test_a_damaged_checkpoint_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / CHECKPOINT).write_bytes(b"not safetensors at all")
    with pytest.raises(StorageError, match="is damaged"):
        get_trainer("simgcd")(fast_config().train).fit(job(make_blobs(), tmp_path))


def test_an_unknown_trainer_is_named_with_a_guess() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'simgcd'"):
        get_trainer("simgdc")


def test_two_seeds_differ_and_one_seed_repeats(tmp_path: Path) -> None:
    blobs, trainer = make_blobs(), get_trainer("simgcd")(fast_config().train)
    runs = [trainer.fit(job(blobs, tmp_path / str(i), seed=seed)).fitted for i, seed in enumerate([0, 0, 1])]
    assert same(runs[0], runs[1])
    assert not same(runs[0], runs[2])


def test_training_without_any_label_works(tmp_path: Path) -> None:
    blobs = make_blobs(n_old=0, ratio=0.0)
    session = make_session(blobs, tmp_path)
    session.train()
    query = session.ask(4)
    session.tell(query.rows, blobs.names(query.rows))
    done = session.train()
    assert np.isfinite(done.fitted.predict(blobs.features, np.arange(120)).probs).all()
    assert len(done.last.slot_of_class) == len(set(blobs.truth[query.rows]))


def test_more_classes_than_slots_grow_the_head_at_the_mean_feature_of_the_class(tmp_path: Path) -> None:
    blobs = make_blobs()
    session = make_session(blobs, tmp_path, n_slots=4)
    assert session.train().fitted.n_slots == 4
    rows = np.array([60, 61, 80, 81, 100, 101])
    session.tell(rows, blobs.names(rows))
    done = session.train()
    assert done.fitted.n_slots == 6
    assert sorted(done.last.slot_of_class.tolist()) == [0, 1, 2, 3, 4, 5]
    found = done.fitted.predict(blobs.features, rows).y_slot
    assert (found == done.last.slot_of_class[session.labels.y_class[rows]]).mean() > 0.6


def test_the_log_has_one_line_per_epoch_and_what_evaluate_returns_changes_nothing(tmp_path: Path) -> None:
    blobs, trainer = make_blobs(), get_trainer("simgcd")(fast_config().train)
    plain = trainer.fit(job(blobs, tmp_path / "a")).fitted
    watched = trainer.fit(job(blobs, tmp_path / "b", evaluate=lambda fitted: {"acc_all": 1.0})).fitted
    assert same(plain, watched)
    lines = read_log(tmp_path / "b" / "log.jsonl")
    assert [line["epoch"] for line in lines] == [0, 1, 2]
    assert all(line["evaluation"] == {"acc_all": 1.0} and math.isfinite(line["loss"]) for line in lines)


def test_queried_rows_leave_the_unlabelled_stream_unless_asked_to_stay(tmp_path: Path) -> None:
    blobs = make_blobs()
    asked = np.array([65, 85, 105])
    seen: dict[bool, set[int]] = {}
    for keep in (False, True):
        session = make_session(
            blobs, tmp_path / str(keep), fast_config(keep_queried_unlabelled=keep, query_batch_size=1)
        )
        session.train()
        session.tell(asked, blobs.names(asked))
        read = blobs.features.read
        rows_of_large_batches: set[int] = set()

        def spy(rows: Any, views: Any, read: Any = read, seen_rows: set[int] = rows_of_large_batches) -> torch.Tensor:
            if torch.is_grad_enabled() and len(rows) > 2:
                seen_rows.update(rows.tolist())
            return read(rows, views)  # type: ignore[no-any-return]

        blobs.features.read = spy  # type: ignore[method-assign]
        session.train()
        blobs.features.read = read  # type: ignore[method-assign]
        seen[keep] = rows_of_large_batches
    assert not seen[False] & set(asked.tolist())
    assert seen[True] & set(asked.tolist())


def test_half_of_each_batch_is_labelled_in_expectation() -> None:
    labelled, unlabelled = np.arange(10), np.arange(10, 1000)
    rows = np.concatenate(list(balanced_batches(labelled, unlabelled, 100, np.random.default_rng(0))))
    assert len(rows) == 1000
    assert 0.45 < (rows < 10).mean() < 0.55


@pytest.mark.parametrize(("n_labelled", "n_unlabelled"), [(0, 50), (50, 0), (3, 4)])
def test_batches_exist_whatever_is_missing(n_labelled: int, n_unlabelled: int) -> None:
    labelled, unlabelled = np.arange(n_labelled), np.arange(100, 100 + n_unlabelled)
    batches = list(balanced_batches(labelled, unlabelled, 16, np.random.default_rng(0)))
    assert len(batches) == max(1, (n_labelled + n_unlabelled) // 16)
    assert set(np.concatenate(batches).tolist()) <= set(labelled.tolist()) | set(unlabelled.tolist())


def test_shuffled_batches_show_every_row_once() -> None:
    batches = list(shuffled_batches(np.arange(19), 8, np.random.default_rng(0)))
    assert [len(b) for b in batches] == [8, 8, 3]
    assert sorted(np.concatenate(batches).tolist()) == list(range(19))


@pytest.mark.parametrize("n_views", [1, 2, 5])
def test_two_views_differ_and_stay_in_range(n_views: int) -> None:
    first, second = two_views(200, n_views, np.random.default_rng(0))
    assert ((first >= 0) & (first < n_views) & (second >= 0) & (second < n_views)).all()
    assert (first != second).all() == (n_views > 1)


def test_the_schedule_ends_at_its_minimum_and_the_official_one_climbs_back() -> None:
    cosine = [learning_rate(TrainConfig(), epoch, 15) for epoch in range(16)]
    assert cosine[0] == pytest.approx(0.1)
    assert cosine[15] == pytest.approx(1e-4)
    assert sorted(cosine, reverse=True) == cosine
    official = [learning_rate(TrainConfig(lr_schedule="official"), epoch, 15) for epoch in range(15)]
    assert official[7] == pytest.approx(0.0012, abs=1e-4)
    assert official[14] == pytest.approx(0.0957, abs=1e-4)


def test_the_teacher_sharpens_linearly_then_stays() -> None:
    config = TrainConfig(warmup_epochs=30)
    assert teacher_temperature(config, 0, 200) == pytest.approx(0.07)
    assert teacher_temperature(config, 29, 200) == pytest.approx(0.04)
    assert teacher_temperature(config, 100, 200) == 0.04
    assert teacher_temperature(config, 4, 5) == pytest.approx(0.04)


def test_ema_moves_a_tenth_of_the_way() -> None:
    blobs = make_blobs()
    a, b = (DiscoveryModel(blobs.features.new_tail(), 8, 4, (8, 4), seed) for seed in (0, 1))
    before = [p.detach().clone() for p in a.parameters()]
    ema_update(a, b, 0.9)
    for old, now, target in zip(before, a.parameters(), b.parameters(), strict=True):
        torch.testing.assert_close(now.detach(), 0.9 * old + 0.1 * target.detach())


def test_base_training_leaves_student_and_ema_equal_and_a_round_parts_them(tmp_path: Path) -> None:
    blobs = make_blobs()
    session = make_session(blobs, tmp_path)
    base = session.train().fitted
    for a, b in zip(base.student.parameters(), base.ema.parameters(), strict=True):
        assert torch.equal(a, b)
    session.tell(np.array([65]), ["class 3"])
    active = session.train().fitted
    assert not torch.equal(active.student.prototypes, active.ema.prototypes)


def test_matrices_decay_and_vectors_do_not() -> None:
    from agcd.discovery.simgcd import make_optimiser

    model = DiscoveryModel(make_blobs().features.new_tail(), 8, 4, (8, 4), 0)
    decayed, free = make_optimiser(model, TrainConfig()).param_groups
    assert {p.dim() for p in decayed["params"]} == {2}
    assert {p.dim() for p in free["params"]} == {1}
    assert (decayed["weight_decay"], free["weight_decay"]) == (5e-5, 0.0)
    assert len(decayed["params"]) + len(free["params"]) == len(list(model.parameters()))


def test_a_frozen_parameter_is_neither_trained_nor_averaged() -> None:
    tail = torch.nn.Linear(8, 8)
    tail.bias.requires_grad_(False)
    model = DiscoveryModel(tail, 8, 4, (8, 4), 0)
    assert all(p is not tail.bias for p in model.trainable())
    assert len(model.trainable()) == len(list(model.parameters())) - 1


def test_the_paper_protocol_starts_from_random_prototypes_without_centring() -> None:
    train = make_config({"protocol": "paper"}).train
    assert (train.init, train.center, train.base_epochs, train.round_epochs) == ("random", False, 200, 15)
    assert (train.projector_width, train.projector_dim, train.pin_old, train.lr_schedule) == (2048, 256, True, "cosine")


def test_kmeans_start_is_better_than_a_random_one_before_any_training(tmp_path: Path) -> None:
    from agcd import metrics

    blobs = make_blobs(per_class=30)
    accuracy = {}
    for init in ("random", "kmeans"):
        config = fast_config(base_epochs=0, init=init).train
        fitted = get_trainer("simgcd")(config).fit(job(blobs, tmp_path / init)).fitted
        prediction = fitted.predict(blobs.features, np.arange(180))
        accuracy[init] = metrics.accuracy(blobs.truth, prediction.y_slot, 3)["acc_all"]
    assert accuracy["kmeans"] > max(0.9, accuracy["random"])
