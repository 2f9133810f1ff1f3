"""The parts of training: schedules, sampling, heads, and what SimGCD makes of them; the contract has its own file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agcd.config import TrainConfig, make_config
from agcd.errors import ConfigError, WeightsError
from agcd.run_files import LOG
from agcd.training import get_trainer
from agcd.training.fitted import Fitted
from agcd.training.heads import DiscoveryModel, HeadKind, Output, ema_update
from agcd.training.job import TrainingJob
from agcd.training.loop import CHECKPOINT, load_tensors, read_log, save_tensors
from agcd.training.runs import DescentRun, make_optimiser
from agcd.training.sampler import Batch, balanced_batches, shuffled_batches, two_views
from agcd.training.schedules import learning_rate, teacher_temperature
from support.blobs import Blobs, fast_config, make_blobs, make_session


def job(blobs: Blobs, folder: Path, **changes: Any) -> TrainingJob:
    return replace(TrainingJob(blobs.features, blobs.labels, 6, 0, 0, folder), **changes)


def test_weights_for_another_backbone_are_refused_in_one_sentence(tmp_path: Path) -> None:
    blobs = make_blobs()
    fitted = get_trainer("simgcd")(fast_config().train).fit(job(blobs, tmp_path)).fitted
    fitted.save(tmp_path / "model.safetensors")
    wider = type(blobs.features)(np.zeros((4, 9), np.float32))
    with pytest.raises(WeightsError, match="does not fit"):
        Fitted.load(tmp_path / "model.safetensors", wider)


@pytest.mark.parametrize("damage", ["replace", "flip"])
def test_a_damaged_checkpoint_is_dropped_with_a_sentence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    save_tensors(tmp_path / CHECKPOINT, {"x": torch.arange(5.0)}, {"epoch": 1})
    content = bytearray((tmp_path / CHECKPOINT).read_bytes())
    content[-1] ^= 0x80
    (tmp_path / CHECKPOINT).write_bytes(b"not safetensors at all" if damage == "replace" else content)
    get_trainer("simgcd")(fast_config().train).fit(job(make_blobs(), tmp_path))
    assert "is damaged" in caplog.text
    assert "from its start" in caplog.text
    assert [line["epoch"] for line in read_log(tmp_path / LOG)] == list(range(fast_config().train.base_epochs))


def test_an_unknown_trainer_is_named_with_a_guess() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'simgcd'"):
        get_trainer("simgdc")


def test_queried_rows_leave_the_unlabelled_stream_unless_asked_to_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs, forward = make_blobs(), DescentRun.forward
    asked = np.array([65, 85, 105])
    seen: dict[bool, set[int]] = {}
    for keep in (False, True):
        session = make_session(
            blobs, tmp_path / str(keep), fast_config(keep_queried_unlabelled=keep, query_batch_size=1)
        )
        session.train()
        session.tell(asked, blobs.names(asked))
        rows_of_large_batches: set[int] = set()

        def spy(run: Any, batch: Batch, seen_rows: set[int] = rows_of_large_batches) -> Output:
            if len(batch.rows) > 1:
                seen_rows.update(batch.rows.tolist())
            return forward(run, batch)

        monkeypatch.setattr(DescentRun, "forward", spy)
        session.train()
        monkeypatch.undo()
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


@pytest.mark.parametrize("head", ["cosine", "linear"])
def test_both_heads_are_linear_in_unit_features_and_grow_at_the_end(head: HeadKind) -> None:
    model = DiscoveryModel(torch.nn.Identity(), 8, 4, (8, 4), 0, head)
    draw = torch.Generator().manual_seed(0)
    if head == "linear":
        model.biases.copy_(torch.randn(4, generator=draw))
    features = torch.nn.functional.normalize(torch.randn(5, 8, generator=draw), dim=1)
    before, vectors = model.classify(features), torch.randn(2, 8, generator=draw)
    model.grow(vectors)
    weights, biases = model.linear_weights()
    logits = model.classify(features)
    torch.testing.assert_close(logits, features @ weights.T + biases)
    torch.testing.assert_close(logits[:, :4], before)
    lengths = vectors.norm(dim=1) if head == "cosine" else torch.ones(2)
    torch.testing.assert_close(logits[:, 4:], features @ vectors.T / lengths)


def test_a_stored_model_that_names_no_head_has_a_cosine_one(tmp_path: Path) -> None:
    blobs = make_blobs()
    fitted = get_trainer("simgcd")(fast_config().train).fit(job(blobs, tmp_path)).fitted
    fitted.save(tmp_path / "model.safetensors")
    tensors, facts = load_tensors(tmp_path / "model.safetensors")
    del facts["head"]
    save_tensors(tmp_path / "old.safetensors", tensors, facts)
    loaded = Fitted.load(tmp_path / "old.safetensors", blobs.features)
    probs = [f.predict(blobs.features, np.arange(120)).probs for f in (fitted, loaded)]
    np.testing.assert_array_equal(probs[0], probs[1])


def test_training_without_momentum_can_be_resumed(tmp_path: Path) -> None:
    trainer = get_trainer("simgcd")(fast_config(momentum=0.0).train)
    for _ in range(2):
        fitted = trainer.fit(job(make_blobs(), tmp_path)).fitted
    assert fitted.n_slots == 6
