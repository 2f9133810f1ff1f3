"""Numbers that are not finite never become a round: training breaks off in one sentence, and what was good stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agcd.errors import ConfigError, TrainingError
from agcd.features.rows import EmbeddingRows
from agcd.io import read_json
from agcd.training import get_trainer
from agcd.training.loop import CHECKPOINT, load_tensors
from agcd.training.runs import DescentRun, TrainingRun
from support.blobs import fast_config, make_blobs, make_session
from support.training_jobs import job, same, weights

TRAINERS = ("simgcd", "simgcd_nn", "mugcd", "gcd", "pim")


@pytest.mark.parametrize("name", TRAINERS)
def test_features_that_turn_into_nan_break_training_off_and_leave_no_round(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs, read = make_blobs(), EmbeddingRows.read

    def damaged(self: EmbeddingRows, rows: Any, views: Any, allocate: Any = np.empty) -> torch.Tensor:
        found = read(self, rows, views).clone()
        found[torch.from_numpy(np.asarray(rows) == 7)] = torch.nan
        return found

    session = make_session(blobs, tmp_path, fast_config(trainer=name))
    monkeypatch.setattr(EmbeddingRows, "read", damaged)
    with pytest.raises(TrainingError, match="finite"):
        session.train()
    assert not (tmp_path / "runs" / "000" / "done.json").exists()
    monkeypatch.undo()
    make_session(blobs, tmp_path, fast_config(trainer=name)).train()
    assert read_json(tmp_path / "runs" / "000" / "done.json")["key"]


def test_a_loss_that_is_not_finite_changes_nothing(tmp_path: Path) -> None:
    blobs = make_blobs()
    fitted = get_trainer("simgcd")(fast_config().train).fit(job(blobs, tmp_path)).fitted
    run = type("Run", (DescentRun,), dict.fromkeys(TrainingRun.__abstractmethods__))(
        job(blobs, tmp_path), fast_config().train, fitted, 1
    )
    before = weights(fitted)
    loss = next(iter(fitted.student.trainable())).sum() * torch.nan
    with pytest.raises(TrainingError, match="no label is lost"):
        run.step(loss, 0.9)
    assert same(weights(fitted), before)


def test_an_epoch_that_fails_once_is_done_again_from_the_last_good_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs, config = make_blobs(), fast_config()
    unbroken = weights(get_trainer("simgcd")(config.train).fit(job(blobs, tmp_path / "unbroken")).fitted)
    backward, calls = DescentRun._backward, list[int]()

    def unlucky(self: DescentRun, loss: torch.Tensor) -> None:
        calls.append(len(calls))
        backward(self, loss * torch.nan if len(calls) == 4 else loss)

    monkeypatch.setattr(DescentRun, "_backward", unlucky)
    done = get_trainer("simgcd")(config.train).fit(job(blobs, tmp_path / "unlucky"))
    assert same(weights(done.fitted), unbroken)


def test_the_last_good_epoch_stays_when_it_fails_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs, config, backward, calls = make_blobs(), fast_config(), DescentRun._backward, list[int]()

    def broken(self: DescentRun, loss: torch.Tensor) -> None:
        calls.append(len(calls))
        backward(self, loss * torch.nan if len(calls) > 3 else loss)

    monkeypatch.setattr(DescentRun, "_backward", broken)
    with pytest.raises(TrainingError):
        get_trainer("simgcd")(config.train).fit(job(blobs, tmp_path))
    tensors, facts = load_tensors(tmp_path / CHECKPOINT)
    assert all(tensor.isfinite().all() for tensor in tensors.values())
    monkeypatch.undo()
    resumed = get_trainer("simgcd")(config.train).fit(job(blobs, tmp_path))
    unbroken = get_trainer("simgcd")(config.train).fit(job(blobs, tmp_path / "unbroken"))
    assert facts["epoch"] >= 0
    assert same(weights(resumed.fitted), weights(unbroken.fitted))


def test_a_learning_rate_that_cannot_work_is_refused() -> None:
    with pytest.raises(ConfigError, match="lr"):
        fast_config(lr=1000)
