"""Small training jobs, and what must not change when they are killed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agcd.training import Trainer
from agcd.training.fitted import Fitted
from agcd.training.job import Outcome, TrainingJob
from agcd.training.loop import read_log
from agcd.types import IntArray, LabelState
from support.blobs import Blobs

ASKED = np.array([65, 85, 105])


class Killed(Exception):
    pass


def job(blobs: Blobs, folder: Path, **changes: Any) -> TrainingJob:
    return replace(TrainingJob(blobs.features, blobs.labels, 6, 0, 0, folder), **changes)


def told(blobs: Blobs, rows: IntArray = ASKED) -> LabelState:
    return blobs.labels.tell(rows, blobs.names(rows), 1)


def weights(fitted: Fitted) -> dict[str, torch.Tensor]:
    return {
        f"{which}.{name}": tensor.clone()
        for which, model in (("student", fitted.student), ("ema", fitted.ema))
        for name, tensor in model.state_dict().items()
    }


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def killer(at: int) -> Callable[[dict[str, Any]], None]:
    def echo(line: dict[str, Any]) -> None:
        if line["epoch"] == at:
            raise Killed

    return echo


def assert_kills_change_nothing(trainer: Trainer, blobs: Blobs, folder: Path, **changes: Any) -> Outcome:
    unbroken = trainer.fit(job(blobs, folder / "unbroken", **changes))
    n_epochs = len(read_log(folder / "unbroken" / "log.jsonl"))
    assert n_epochs > 1
    for killed_at in range(n_epochs):
        place = folder / str(killed_at)
        with pytest.raises(Killed):
            trainer.fit(job(blobs, place, echo=killer(killed_at), **changes))
        resumed = trainer.fit(job(blobs, place, **changes))
        assert same(weights(unbroken.fitted), weights(resumed.fitted))
        assert unbroken.first.to_json() == resumed.first.to_json()
        assert unbroken.last.to_json() == resumed.last.to_json()
        assert unbroken.fitted.facts == resumed.fitted.facts
        assert [line["epoch"] for line in read_log(place / "log.jsonl")] == list(range(n_epochs))
    return unbroken
