"""Processes that train together: the model of one process, whatever their number and whoever of them dies."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st
from torch.multiprocessing.spawn import spawn

from agcd.config import BackboneConfig, TrainConfig
from agcd.data.folder import from_folder
from agcd.engine.job_files import read_error, read_job, read_outcome, write_error, write_job
from agcd.engine.local import LocalEngine
from agcd.engine.rank import TorchProcessGroup, train
from agcd.engine.torchrun import TorchrunEngine
from agcd.errors import ConfigError, EngineError, StorageError
from agcd.features import open_features
from agcd.features.devices import CPU
from agcd.features.rows import EmbeddingRows
from agcd.run_files import LOG
from agcd.training.fitted import Fitted, model_tensors
from agcd.training.job import Outcome, TrainingJob
from agcd.training.loop import CHECKPOINT, load_tensors, read_log
from agcd.training.process_group import SINGLE_PROCESS, SingleProcess, shares
from agcd.types import LabelState
from support import TESTS
from support.blobs import fast_config, make_blobs
from support.datasets import toy_images
from support.faulty_rank import ABORT_AT_THE_END
from support.killing import wait_for
from support.pretend_device import DEVICE, pretend_device

ASKED = np.array([65, 85, 105])
LONG = 40
"""Epochs of a run that is broken off."""


def settings(**train: Any) -> TrainConfig:
    return fast_config(**train).train


def toy_job(folder: Path) -> TrainingJob:
    blobs = make_blobs()
    return TrainingJob(blobs.features, blobs.labels, 6, 0, 0, folder)


def stored_job(folder: Path) -> TrainingJob:
    """Images through the toy transformer, which has no noise and two views of its own."""
    dataset = from_folder(toy_images(folder / "images", n_per_class=8))
    features = open_features(dataset, BackboneConfig(name="toy", image_size=32, views=3), folder / "cache", workers=0)
    y_class = np.where(dataset.y_class == 0, np.where(np.arange(dataset.n_rows) % 2, 0, -1), -1)
    nothing = np.zeros(dataset.n_rows, bool)
    labels = LabelState(dataset.classes[:1], 1, y_class, np.where(y_class < 0, -1, 0), nothing, nothing)
    return TrainingJob(features, labels, 3, 0, 0, folder)


def make_jobs(folder: Path) -> dict[str, tuple[TrainConfig, TrainingJob]]:
    """By name: base training and rounds of the trainers that have batches; some do not divide by two or three."""
    blobs, base = make_blobs(), toy_job(folder)
    start = LocalEngine().fit(settings(), replace(base, run_dir=folder / "start"))
    told = blobs.labels.tell(ASKED, blobs.names(ASKED), 1)
    active = replace(base, labels=told, round=1, start=start.fitted, previous=start.last)
    return {
        "simgcd": (settings(batch_size=31), base),
        "simgcd round": (settings(query_batch_size=2), active),
        "gcd": (settings(trainer="gcd", gcd={"n_init": 2}), base),
        "mugcd": (settings(trainer="mugcd", batch_size=29), base),
        "stored": (settings(batch_size=5), stored_job(folder / "stored")),
        "one step": (settings(base_epochs=1, batch_size=200), base),
        "long": (settings(base_epochs=LONG), base),
        "bfloat16": (settings(precision="bfloat16"), base),
        "float16": (settings(precision="float16"), base),
    }


def work(rank: int, folder: Path, names: list[str]) -> None:
    """Processes 0 and 1 as a team of two through all jobs, then all three as a team of three."""
    torch.set_num_threads(1)
    for size in (2, 3):
        if rank < size:
            dist.init_process_group("gloo", f"file://{folder}/meet-{size}", world_size=size, rank=rank)
            for name in names:
                train(folder / str(size) / name / "torchrun", TorchProcessGroup())
            dist.destroy_process_group()


class Trained:
    """Outcomes and run folders of every job by the number of processes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.jobs = folder, make_jobs(folder)
        self.outcomes: dict[tuple[int, str], Outcome] = {}
        for name, (config, job) in self.jobs.items():
            self.outcomes[1, name] = LocalEngine().fit(config, replace(job, run_dir=folder / "1" / name))
            for size in (2, 3):
                write_job(folder / str(size) / name / "torchrun", config, job)
        spawn(work, (folder, list(self.jobs)), nprocs=3)  # type: ignore[no-untyped-call]
        for name, (_, job) in self.jobs.items():
            for size in (2, 3):
                self.outcomes[size, name] = read_outcome(folder / str(size) / name / "torchrun", job.features)

    def log(self, size: int, name: str) -> list[dict[str, Any]]:
        return read_log(self.folder / str(size) / name / LOG)


@pytest.fixture(scope="module")
def trained(one_thread: None, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return Trained(tmp_path_factory.mktemp("trained"))


def assert_same_weights(a: Outcome, b: Outcome, rtol: float = 0.0, atol: float = 0.0) -> None:
    one, other = (model_tensors(outcome.fitted.student, outcome.fitted.ema) for outcome in (a, b))
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=rtol, atol=atol)


@given(st.integers(1, 9), st.integers(0, 50))
def test_shares_hold_every_row_once_and_differ_by_one_at_most(size: int, n: int) -> None:
    parts = [list(range(n))[part] for part in shares(size, n)]
    assert [row for part in parts for row in part] == list(range(n))
    assert len(parts) == size
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("name", ["simgcd", "simgcd round", "gcd", "mugcd", "stored"])
def test_a_team_learns_what_one_process_learns(name: str, size: int, trained: Trained) -> None:
    one, team = trained.outcomes[1, name], trained.outcomes[size, name]
    lines, team_lines = trained.log(1, name), trained.log(size, name)
    assert [line.keys() for line in lines] == [line.keys() for line in team_lines]
    for line, team_line in zip(lines, team_lines, strict=True):
        assert team_line == pytest.approx(line, rel=1e-5)
    assert_same_weights(one, team, rtol=1e-4, atol=1e-5)
    assert team.first.to_json() == one.first.to_json()
    assert team.last.to_json() == one.last.to_json()
    features = trained.jobs[name][1].features
    rows = np.arange(features.n_rows)
    for which in ("student", "ema"):
        slots = [outcome.fitted.predict(features, rows, which).y_slot for outcome in (one, team)]
        np.testing.assert_array_equal(slots[0], slots[1])


@pytest.mark.parametrize("size", [2, 3])
def test_the_gradient_of_a_step_is_that_of_one_process(size: int, trained: Trained) -> None:
    # After one step from rest the momentum is the gradient and the weight decay.
    one, team = (load_tensors(trained.folder / str(n) / "one step" / CHECKPOINT)[0] for n in (1, size))
    steps = [name for name in one if name.startswith("momentum.")]
    assert len(steps) == len(trained.outcomes[1, "one step"].fitted.student.trainable())
    for name in steps:
        torch.testing.assert_close(one[name], team[name], rtol=1e-6, atol=1e-6)
    assert max(one[name].abs().max() for name in steps) > 0.01


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_a_team_in_half_precision_learns_what_one_process_learns(precision: str, size: int, trained: Trained) -> None:
    one, team = trained.outcomes[1, precision], trained.outcomes[size, precision]
    error = {"bfloat16": 0.05, "float16": 0.02}[precision]
    assert_same_weights(one, team, rtol=error, atol=error)
    scales = [load_tensors(trained.folder / str(n) / precision / CHECKPOINT)[1].get("scaler") for n in (1, size)]
    assert scales[0] == scales[1], "steps whose gradients overflow are left out by all"
    assert (scales[0] is None) == (precision == "bfloat16")


def test_a_job_arrives_as_it_was_sent(trained: Trained, tmp_path: Path) -> None:
    for name, (config, job) in trained.jobs.items():
        write_job(tmp_path / name / "torchrun", config, job)
        arrived_config, arrived = read_job(tmp_path / name / "torchrun", SINGLE_PROCESS)
        assert arrived_config == config
        assert arrived.features.fingerprint == job.features.fingerprint
        rows = np.arange(job.features.n_rows)
        views = rows % job.features.n_views
        assert torch.equal(arrived.features.read(rows, views), job.features.read(rows, views))
        for field, value in vars(job.labels).items():
            np.testing.assert_array_equal(getattr(arrived.labels, field), value)
        assert (arrived.n_slots, arrived.seed, arrived.round) == (job.n_slots, job.seed, job.round)
        assert arrived.run_dir == tmp_path / name
        if job.start and job.previous:
            assert arrived.start is not None
            assert arrived.start.facts == job.start.facts
            assert arrived.previous is not None
            assert arrived.previous.to_json() == job.previous.to_json()


def test_a_bad_embedding_stays_bad(tmp_path: Path) -> None:
    x = np.ones((4, 3), np.float32)
    x[2, 1] = np.nan
    job = replace(toy_job(tmp_path), features=EmbeddingRows(x, 0.5))
    write_job(tmp_path / "torchrun", settings(), job)
    assert read_job(tmp_path / "torchrun", SINGLE_PROCESS)[1].features.bad_rows == job.features.bad_rows


def test_features_that_are_stored_nowhere_are_refused_in_one_sentence(tmp_path: Path) -> None:
    dataset = from_folder(toy_images(tmp_path / "images"))
    features = open_features(dataset, BackboneConfig(name="toy", image_size=32, cache="off"), tmp_path)
    with pytest.raises(ConfigError, match=r"set backbone\.cache"):
        TorchrunEngine(2).fit(settings(), replace(toy_job(tmp_path), features=features))


def test_a_store_that_lost_its_features_is_one_sentence(tmp_path: Path) -> None:
    job = stored_job(tmp_path)
    write_job(tmp_path / "torchrun", settings(), job)
    for shard in (tmp_path / "cache").rglob("*.npy"):
        shard.unlink()
    with pytest.raises(StorageError, match="lacks features"):
        read_job(tmp_path / "torchrun", SINGLE_PROCESS)


def test_processes_that_see_different_checkpoints_are_one_sentence(tmp_path: Path) -> None:
    class Ahead(SingleProcess):
        def broadcast(self, tensors: Iterable[torch.Tensor]) -> None:
            for tensor in tensors:
                tensor += 1

    with pytest.raises(StorageError, match="a disk that all share"):
        LocalEngine().fit(settings(), replace(toy_job(tmp_path), group=Ahead()))


def test_an_error_of_a_process_arrives_as_itself(tmp_path: Path) -> None:
    assert read_error(tmp_path) is None
    write_error(tmp_path, StorageError("The disk is full."))
    error = read_error(tmp_path)
    assert isinstance(error, StorageError)
    assert str(error) == "The disk is full."


@pytest.mark.parametrize("trainer", ["pim", "logistic", "label_spreading"])
def test_a_trainer_without_batches_runs_in_this_process(
    trainer: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "agcd")
    config = settings(trainer=trainer, pim={"steps": 20, "entropy_weights": [1.0], "n_init": 1})
    outcome = TorchrunEngine(2).fit(config, toy_job(tmp_path))
    assert outcome.fitted.n_slots == 6
    assert "one process" in caplog.text


def processes_of(folder: Path, part: str = "") -> list[int]:
    """Living processes with ``folder`` and ``part`` in their command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(folder) in words and part in words and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found


def ranks_of(folder: Path) -> list[int]:
    return [pid for pid in processes_of(folder) if pid not in processes_of(folder, "torch.distributed.run")]


needs_proc = pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")


def start_instead(patch: pytest.MonkeyPatch, module: str) -> None:
    """Let engines start processes of this module."""
    patch.setattr("agcd.engine.agents.RANK", module)
    patch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]))


def break_ranks(patch: pytest.MonkeyPatch, fault: str) -> None:
    """Let engines start processes with a fault of ``support.faulty_rank``."""
    start_instead(patch, "support.faulty_rank")
    patch.setenv("FAULT", fault)


@needs_proc
def test_a_broken_run_leaves_no_process_and_goes_on_to_the_same_end(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, job = trained.jobs["long"]
    engine, folder = TorchrunEngine(2), tmp_path / "run"
    seen: list[int] = []

    def kill_one(line: dict[str, Any]) -> None:
        if line["epoch"] == 1:
            os.kill(ranks_of(folder)[-1], signal.SIGKILL)

    died = rf"died \(exit code -9\) in epoch \d+ of {LONG}: run the same"
    with monkeypatch.context() as patch:
        break_ranks(patch, "stop")
        with pytest.raises(EngineError, match=died):
            engine.fit(config, replace(job, run_dir=folder, echo=kill_one))
    assert not processes_of(folder)
    n_done = len(read_log(folder / LOG))
    outcome = engine.fit(config, replace(job, run_dir=folder, echo=lambda line: seen.append(line["epoch"])))
    assert not processes_of(folder)
    assert seen[-1] == LONG - 1
    assert n_done - 1 <= seen[0] <= n_done
    assert sorted(path.name for path in folder.iterdir()) == [CHECKPOINT, LOG]
    assert read_log(folder / LOG) == trained.log(2, "long")
    assert_same_weights(outcome, trained.outcomes[2, "long"])


def test_what_is_finished_counts_and_is_measured_though_every_process_aborts_afterwards(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    config, job = trained.jobs["simgcd"]
    break_ranks(monkeypatch, ABORT_AT_THE_END)
    measured = replace(job, run_dir=tmp_path, evaluate=lambda fitted: {"acc_all": 0.5})
    outcome = TorchrunEngine(2).fit(config, measured)
    assert_same_weights(outcome, trained.outcomes[2, "simgcd"])
    assert "after the model was complete" in caplog.text
    assert sorted(path.name for path in tmp_path.iterdir()) == [CHECKPOINT, LOG]
    assert read_log(tmp_path / LOG)[-1]["evaluation"] == {"acc_all": 0.5}


def test_the_final_model_is_measured_and_nothing_is_left_behind_without_a_folder(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, job = trained.jobs["simgcd"]
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    seen: list[int] = []
    measured: list[Fitted] = []

    def evaluate(fitted: Fitted) -> dict[str, Any]:
        measured.append(fitted)
        return {"acc_all": 0.5}

    memory = replace(job, run_dir=None, evaluate=evaluate, echo=lambda line: seen.append(line["epoch"]))
    outcome = TorchrunEngine(2).fit(config, memory)
    assert_same_weights(outcome, trained.outcomes[2, "simgcd"])
    assert measured == [outcome.fitted]
    assert seen == [0, 1, 2]
    assert not list(tmp_path.iterdir())


@needs_proc
def test_an_interrupted_run_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(seconds: float) -> None:
        wait_for("a process", lambda: bool(processes_of(tmp_path)))
        raise KeyboardInterrupt

    monkeypatch.setattr("agcd.engine.torchrun.time", SimpleNamespace(sleep=interrupt))
    with pytest.raises(KeyboardInterrupt):
        TorchrunEngine(2).fit(settings(), toy_job(tmp_path))
    assert not processes_of(tmp_path)


@needs_proc
def test_processes_end_with_a_leader_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\n"
        "from support import blobs; from agcd.training.job import TrainingJob\n"
        "from agcd.engine.torchrun import TorchrunEngine\n"
        "b = blobs.make_blobs(); job = TrainingJob(b.features, b.labels, 6, 0, 0, pathlib.Path(sys.argv[1]))\n"
        "TorchrunEngine(2).fit(blobs.fast_config(base_epochs=2000).train, job)"
    )
    folder = tmp_path / "run"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    leader = subprocess.Popen([sys.executable, "-c", code, str(folder)], env=environment)
    wait_for("three epochs", lambda: len(read_log(folder / LOG)) > 2)
    assert len(processes_of(folder, "agcd.engine.rank")) == 3
    leader.kill()
    leader.wait()
    wait_for("the end of all processes", lambda: not processes_of(folder))
    assert len(read_log(folder / LOG)) < 2000


@pytest.mark.parametrize("name", ["simgcd round", pytest.param("mugcd", marks=pytest.mark.slow)])
def test_processes_with_a_device_each_learn_what_one_process_learns(
    name: str, trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_instead(monkeypatch, "support.pretend_rank")
    monkeypatch.setattr("agcd.engine.rank.backend_of", lambda device: "gloo")
    config, job = trained.jobs[name]
    seen: list[int] = []

    def break_off(line: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    with pretend_device():
        there = replace(job, run_dir=tmp_path, device=DEVICE)
        if job.round:  # the others go through
            with pytest.raises(KeyboardInterrupt):
                TorchrunEngine().fit(config, replace(there, echo=break_off))
        team = TorchrunEngine().fit(config, replace(there, echo=lambda line: seen.append(line["epoch"])))
        assert team.fitted.device == DEVICE, "predictions are made there as well"
        assert_same_weights(trained.outcomes[1, name], replace(team, fitted=team.fitted.to(CPU)), rtol=1e-3, atol=1e-4)
    assert seen[-1] == len(trained.log(1, name)) - 1


def test_more_processes_than_devices_are_one_sentence(tmp_path: Path) -> None:
    with (
        pretend_device(),
        pytest.raises(ConfigError, match=r"3 processes need a device each, and torch finds 2 of pre"),
    ):
        TorchrunEngine(3).fit(settings(), replace(toy_job(tmp_path), device=DEVICE))
