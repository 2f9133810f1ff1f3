"""Training on a device: the CPU's results, hardly any transfer, and nobody waits.

The device is a pretended one (``support.pretend_device``), which refuses what a GPU would refuse.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from agcd.config import Config
from agcd.errors import TrainingError
from agcd.features import resident
from agcd.features.resident import DeviceRows, near
from agcd.features.rows import EmbeddingRows, RowFeatures
from agcd.features.store import Allocate
from agcd.propagation import nearest as nearest_on_cpu
from agcd.run_store import NumberedRuns
from agcd.session import Session
from agcd.training import TRAINERS, fit, nearest, sections_read
from agcd.training.fitted import Fitted
from agcd.training.job import Outcome, TrainingJob
from agcd.training.loop import load_tensors
from agcd.training.runs import DescentRun
from agcd.types import IntArray
from support.blobs import Blobs, fast_config, make_blobs
from support.pretend_device import DEVICE, NAME, TRAFFIC, counted, pretend_device
from support.training_jobs import Killed, job, killer, same, told, weights

SMALL: dict[str, Any] = {
    "pim": {"n_init": 1, "steps": 20, "round_steps": 20, "entropy_weights": [0.3, 1.0], "search_steps": 2},
    "gcd": {"n_init": 1},
}
OURS = {"mapping": "evidence", "repair": True, "restart": True, "spread_weight": 2.0, "unnamed": "drop"}
TWO_PHASES = {"map_every": 1, "keep_queried_unlabelled": True, "queried_unsupervised": True, "answers": OURS}
COURSES: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in sorted(TRAINERS)),
    *((name, TWO_PHASES) for name in sorted(TRAINERS) if "answers" in sections_read(name)),
]
every_trainer = pytest.mark.parametrize("name", sorted(TRAINERS))
DESCENDING = ("gcd", "mugcd", "simgcd", "simgcd_nn")


@pytest.fixture(autouse=True)
def device() -> Iterator[None]:
    with pretend_device():
        yield


def config_of(name: str, **train: Any) -> Config:
    return fast_config(trainer=name, **{"base_epochs": 2, **SMALL, **train})


class ReadEachTime:
    """Features of others that are in the memory of no device."""

    def __init__(self, features: RowFeatures) -> None:
        self._features = features

    def __getattr__(self, name: str) -> Any:
        return getattr(self._features, name)

    def read(self, rows: IntArray, views: IntArray, allocate: Allocate = np.empty) -> Tensor:
        return self._features.read(rows, views, allocate)


def course(name: str, place: torch.device, folder: Path, **train: Any) -> dict[str, Tensor]:
    """Base training, a round that is killed and resumed, and one in which classes come that have no slot."""
    blobs, config = make_blobs(per_class=10), config_of(name, **train)
    done: Outcome | None = None
    for number, rows in enumerate(([], [32, 33, 42], [32, 33, 42, 52, 53])):
        labels = told(blobs, np.array(rows)) if rows else blobs.labels
        work = job(blobs, folder / str(number), labels=labels, round=number, n_slots=4, device=place)
        if done:
            work = replace(work, start=done.fitted, previous=done.last)
        if number < 2:
            with pytest.raises(Killed):
                fit(config.train, replace(work, echo=killer(0)))
        done = fit(config.train, work)
        assert done.fitted.device.type == place.type
        assert done.fitted.n_slots == max(4, len(labels.classes))
    assert done is not None
    return on_cpu(done.fitted)


def on_cpu(fitted: Fitted) -> dict[str, Tensor]:
    return {name: tensor.cpu() for name, tensor in weights(fitted).items()}


@pytest.mark.parametrize(("name", "train"), COURSES)
def test_base_rounds_a_kill_and_new_slots_come_out_as_on_the_cpu(name: str, train: Any, tmp_path: Path) -> None:
    here = course(name, torch.device("cpu"), tmp_path / "cpu", **train)
    there = course(name, DEVICE, tmp_path / "device", **train)
    assert same(here, there)


@every_trainer
def test_a_checkpoint_of_one_device_goes_on_on_the_other(name: str, tmp_path: Path) -> None:
    blobs, config = make_blobs(), config_of(name)
    unbroken = fit(config.train, job(blobs, tmp_path / "unbroken"))
    with pytest.raises(Killed):
        fit(config.train, job(blobs, tmp_path / "broken", device=DEVICE, echo=killer(0)))
    resumed = fit(config.train, job(blobs, tmp_path / "broken"))
    assert same(on_cpu(unbroken.fitted), on_cpu(resumed.fitted))
    tensors, _ = load_tensors(tmp_path / "broken" / "checkpoint.safetensors")
    assert {tensor.device.type for tensor in tensors.values()} == {"cpu"}


@every_trainer
def test_a_session_asks_the_same_questions_and_loads_its_model_to_the_device(name: str, tmp_path: Path) -> None:
    blobs = make_blobs()
    asked: list[Any] = []
    for place in ("cpu", NAME):
        config = config_of(name).model_copy(update={"device": place})
        session = Session(blobs.features, blobs.labels, config, 6, NumberedRuns(tmp_path / place))
        session.train()
        asked.append(session.ask(5).rows)
        session.tell(asked[-1], blobs.names(asked[-1]))
        session.train()
        again = Session(blobs.features, blobs.labels, config, 6, NumberedRuns(tmp_path / place))
        assert again.train().fitted.device.type == place
        asked.append(session.latest.fitted.predict(blobs.features, np.arange(120)).probs)
    np.testing.assert_array_equal(asked[0], asked[2])
    np.testing.assert_array_equal(asked[1], asked[3])


def traffic_per_step(name: str, features: RowFeatures, blobs: Blobs) -> tuple[float, float]:
    """Transfers and waits that a training step adds, apart from what an epoch costs anyhow."""
    found = []
    for batch_size in (48, 16):
        config = config_of(name, base_epochs=1, batch_size=batch_size)
        work = TrainingJob(features, blobs.labels, 6, 0, 0, device=DEVICE)
        there = counted(lambda config=config, work=work: fit(config.train, work))  # type: ignore[misc]
        n_steps = len(blobs.truth) // batch_size
        found.append((n_steps, there.to_device + there.to_cpu, there.waits))
    (few, moved_few, waited_few), (many, moved_many, waited_many) = found
    return (moved_many - moved_few) / (many - few), (waited_many - waited_few) / (many - few)


@pytest.mark.parametrize("name", DESCENDING)
@pytest.mark.parametrize("is_near", [True, False], ids=["on the device", "read each time"])
def test_a_step_takes_at_most_two_transfers_and_waits_for_nothing(name: str, is_near: bool) -> None:
    blobs = make_blobs(per_class=40)
    features = blobs.features if is_near else ReadEachTime(blobs.features)
    moved, waited = traffic_per_step(name, features, blobs)
    assert 0 < moved <= 2
    assert waited == 0


def test_full_batch_descent_moves_nothing_and_waits_once_a_block() -> None:
    blobs = make_blobs()
    found = []
    for steps in (100, 200):
        pim = {**SMALL["pim"], "steps": steps, "entropy_weights": [0.5]}
        work = TrainingJob(blobs.features, blobs.labels, 6, 0, 0, device=DEVICE)
        there = counted(lambda pim=pim, work=work: fit(config_of("pim", pim=pim).train, work))  # type: ignore[misc]
        found.append((there.to_device + there.to_cpu + there.waits, steps))
    (few, few_steps), (many, many_steps) = found
    assert (many - few) / (many_steps - few_steps) < 0.2


def test_a_round_of_answers_waits_for_nothing_step_by_step() -> None:
    blobs = make_blobs(per_class=40)
    base = fit(config_of("simgcd").train, TrainingJob(blobs.features, blobs.labels, 6, 0, 0, device=DEVICE))
    rows = np.flatnonzero(blobs.labels.y_class < 0)[::9]
    labels = blobs.labels.tell(rows, blobs.names(rows), 1)
    found = []
    for size in (8, 4):
        config = config_of("simgcd", query_batch_size=size, answers={**OURS, "mapping": "labels"})
        work = TrainingJob(blobs.features, labels, 6, 0, 1, None, base.fitted, base.last, device=DEVICE)
        there = counted(lambda config=config, work=work: fit(config.train, work))  # type: ignore[misc]
        n_steps = 2 * -(-len(labels.queried_rows) // size)
        found.append((n_steps, there.to_device + there.to_cpu, there.waits))
    (few, moved_few, waited_few), (many, moved_many, waited_many) = found
    assert waited_many == waited_few
    assert (moved_many - moved_few) / (many - few) <= 2


def test_features_that_fit_go_to_the_device_once_and_others_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    blobs = make_blobs()
    assert isinstance(near(blobs.features, DEVICE), DeviceRows)
    assert near(blobs.features, torch.device("cpu")) is blobs.features
    TRAFFIC.free = 120 * 4 * 8  # exactly as much as they take, and half of it may be taken
    assert near(blobs.features, DEVICE) is blobs.features
    TRAFFIC.free *= 3
    monkeypatch.setattr(resident, "_COPY_BYTES", 100)
    there = near(blobs.features, DEVICE)
    assert isinstance(there, DeviceRows)
    rows, views = np.array([3, 119, 3, 0]), np.zeros(4, np.int64)
    assert torch.equal(there.read(rows, views).cpu(), blobs.features.read(rows, views))


def test_a_batch_that_does_not_fit_is_taken_in_passes_with_the_same_gradient(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING", "agcd")  # whatever a command has set before
    blobs = make_blobs(per_class=40)
    without_noise = EmbeddingRows(blobs.features.read(np.arange(240), np.zeros(240, np.int64)).numpy(), dropout=0.0)
    config = config_of("simgcd", batch_size=64)
    work = replace(job(blobs, tmp_path / "whole", device=DEVICE), features=without_noise)
    whole = fit(config.train, work)
    TRAFFIC.limits = {"aten::gelu": 128 * 16 * 4 - 1}  # the projector's, of both views of a batch
    parts = fit(config.train, replace(work, run_dir=tmp_path / "parts"))
    assert caplog.messages == ["The memory of pretend:0 is full: training goes on in passes of 64."]
    for name, tensor in on_cpu(whole.fitted).items():
        torch.testing.assert_close(on_cpu(parts.fitted)[name], tensor, rtol=1e-3, atol=1e-5)


def test_a_killed_run_in_passes_goes_on_as_if_it_had_not_been_killed(tmp_path: Path) -> None:
    blobs, config = make_blobs(per_class=10), config_of("simgcd", base_epochs=3)
    TRAFFIC.limits = {"aten::gelu": 64 * 16 * 4 - 1}
    work = job(blobs, tmp_path / "unbroken", device=DEVICE)
    unbroken = fit(config.train, work)
    broken = replace(work, run_dir=tmp_path / "broken")
    with pytest.raises(Killed):
        fit(config.train, replace(broken, echo=killer(0)))
    assert same(on_cpu(unbroken.fitted), on_cpu(fit(config.train, broken).fitted))


def test_a_device_too_small_for_one_sample_is_one_sentence(tmp_path: Path) -> None:
    blobs = make_blobs()
    fitted = fit(config_of("simgcd").train, job(blobs, tmp_path, device=DEVICE)).fitted
    TRAFFIC.limits = {"aten::softmax": 20}
    with pytest.raises(TrainingError, match=r"The memory of pretend:0 is too small for one sample of prediction"):
        fitted.predict(blobs.features, np.arange(120))


def test_predictions_in_smaller_blocks_are_those_of_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", "agcd")
    blobs = make_blobs()
    fitted = fit(config_of("simgcd").train, job(blobs, tmp_path, device=DEVICE)).fitted
    whole = fitted.predict(blobs.features, np.arange(120))
    TRAFFIC.limits = {"aten::softmax": 50 * 6 * 4}
    parts = fitted.predict(blobs.features, np.arange(120))
    assert [message.rpartition(" ")[2] for message in caplog.messages] == ["60.", "30."]
    np.testing.assert_allclose(parts.probs, whole.probs, rtol=1e-5)


def test_losses_are_looked_at_a_hundred_at_a_time_and_one_that_is_no_number_ends_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blobs, n_seen = make_blobs(per_class=40), list[int]()
    read = DescentRun._read_losses

    def noted(run: DescentRun) -> None:
        n_seen.append(len(run._unread))
        read(run)

    monkeypatch.setattr(DescentRun, "_read_losses", noted)
    config = config_of("simgcd", batch_size=2, base_epochs=1)
    fit(config.train, TrainingJob(blobs.features, blobs.labels, 6, 0, 0, device=DEVICE))
    assert n_seen == [100, 20]
    broken = config.train.model_copy(update={"student_temp": float("nan")})
    with pytest.raises(TrainingError, match="not all numbers of the loss are finite"):
        fit(broken, TrainingJob(blobs.features, blobs.labels, 6, 0, 0, device=DEVICE))


def test_neighbours_of_many_rows_are_found_on_the_device_and_are_those_of_the_cpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = torch.nn.functional.normalize(torch.randn(200, 8, generator=torch.Generator().manual_seed(0)), dim=1)
    expected = nearest_on_cpu(x.numpy(), 5)
    monkeypatch.setattr(nearest, "EXACT_ROWS", 100)
    monkeypatch.setattr(nearest, "_PRODUCTS_AT_ONCE", 30 * 200)

    def check() -> None:
        near, cosine = nearest.nearest_rows(x.to(DEVICE), 5)
        np.testing.assert_array_equal(np.sort(near, axis=1), np.sort(expected[0], axis=1))
        np.testing.assert_allclose(np.sort(cosine, axis=1), np.sort(expected[1], axis=1), atol=1e-5)

    there = counted(check)
    assert there.to_cpu == 2 * 7, "what is near and how near, block by block, and never the features"
