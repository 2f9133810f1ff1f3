"""Engines by name, on the command line and in a project: they change where work runs, not what comes out."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from agcd.cli import main
from agcd.engine import open_engine
from agcd.engine.local import LocalEngine, default_processes
from agcd.engine.torchrun import TorchrunEngine
from agcd.errors import ConfigError
from agcd.features.devices import LOCAL_RANK, find_device
from agcd.features.reading import Buffer, read_in_turn
from agcd.features.rows import EmbeddingRows
from agcd.features.store import Allocate
from agcd.types import IntArray
from support import TESTS
from support.killing import wait_for
from support.pretend_device import pretend_device
from support.projects import make_project, predictions


def test_engines_are_opened_by_name() -> None:
    assert type(open_engine()) is LocalEngine
    assert isinstance(open_engine("torchrun", processes=2), TorchrunEngine)
    with pytest.raises(ConfigError, match=r"Unknown engine 'torchrn'\. Did you mean 'torchrun'\?"):
        open_engine("torchrn")
    with pytest.raises(ConfigError, match="--address is for the engine ray"):
        open_engine("local", address="10.0.0.1:6379")
    with pytest.raises(ConfigError, match="--gpus is for the engine ray, not for torchrun"):
        open_engine("torchrun", gpus=0.5)


def _no_threes(n: int) -> int:
    if n == 3:
        raise ConfigError("three is not allowed")
    return n * n


def test_local_tasks_come_with_their_positions_and_a_failure_comes_out_as_itself() -> None:
    engine = LocalEngine(2)
    assert sorted(engine.run(_no_threes, [(2,), (4,), (5,)])) == [(0, 4), (1, 16), (2, 25)]
    assert list(engine.run(_no_threes, [])) == []
    with pytest.raises(ConfigError, match="three is not allowed"):
        list(engine.run(_no_threes, [(n,) for n in range(6)]))


def _place(folder: Path, n: int) -> tuple[int, str]:
    """The number of this worker and the device it finds, when all ``n`` are there, so that no two are the same one."""
    (folder / os.environ[LOCAL_RANK]).touch()
    wait_for("all workers", lambda: len(list(folder.iterdir())) == n)
    with pretend_device():
        return int(os.environ[LOCAL_RANK]), str(find_device("pretend"))


def test_workers_share_the_devices_evenly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]))
    found = dict(place for _, place in LocalEngine(3).run(_place, [(tmp_path, 3)] * 3, "pretend"))
    assert found == {0: "pretend:0", 1: "pretend:1", 2: "pretend:0"}


def test_a_worker_opens_its_own_gpu_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[torch.device] = []
    monkeypatch.setenv(LOCAL_RANK, "13")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    monkeypatch.setattr(torch.cuda, "set_device", opened.append)
    assert find_device("auto") == torch.device("cuda", 5)
    assert find_device("cuda:2") == torch.device("cuda", 2), "whoever names one gets it"
    assert opened == [torch.device("cuda", 5), torch.device("cuda", 2)]


def test_there_is_a_worker_for_every_device_or_every_core() -> None:
    with pretend_device():
        assert default_processes("pretend") == 2
    assert default_processes("cpu") == os.cpu_count()
    assert default_processes("cuda") == 1, "where there is none, the error is find_device's"


def _beat(path: Path) -> None:
    while True:
        with path.open("a") as file:
            file.write(".")
        time.sleep(0.01)


def _beats(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def test_parallel_work_ends_with_a_process_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib, test_engines as t\n"
        "if __name__ == '__main__':\n"
        "    list(t.LocalEngine(2).run(t._beat, [(pathlib.Path(p),) for p in sys.argv[1:]]))"
    )
    paths = [tmp_path / "one", tmp_path / "two"]
    places = [str(TESTS), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places)}
    parent = subprocess.Popen([sys.executable, "-c", code, *map(str, paths)], env=environment)
    wait_for("both workers", lambda: all(_beats(path) for path in paths))
    parent.kill()
    parent.wait()

    def are_still() -> bool:
        before = [_beats(path) for path in paths]
        time.sleep(0.5)
        return before == [_beats(path) for path in paths]

    wait_for("the end of both workers", are_still)
    assert are_still(), "one that was only slow beats on"


def test_what_is_made_for_chunks_is_made_once_and_only_if_there_are_any() -> None:
    made = []

    def make() -> Any:
        made.append(1)
        return sum

    assert list(LocalEngine().map_chunks(make, [])) == []
    assert list(LocalEngine().map_chunks(make, [[1, 2], [3]])) == [(0, 3), (1, 3)]
    assert made == [1]


def _agcd(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["agcd", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code in (0, None)


def test_a_project_trained_by_two_processes_predicts_as_one_trained_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = []
    for engine in ("local", "torchrun"):
        with make_project(tmp_path / engine) as project:
            _agcd(monkeypatch, "train", project.folder, "--engine", engine, "--processes", 2)
            tables.append(predictions(project))
            assert not (project.run_folder(0) / "torchrun").exists()
    assert tables[0]["class"] == tables[1]["class"]
    np.testing.assert_allclose(tables[0]["probability"], tables[1]["probability"], atol=1e-3)


class Lending(EmbeddingRows):
    """Embeddings that are read into the memory they are given."""

    def read(self, rows: IntArray, views: IntArray, allocate: Allocate = np.empty) -> Tensor:
        values = allocate((len(rows), self.dim), np.float32)
        values[:] = super().read(rows, views).numpy()
        return torch.from_numpy(values)


def test_reading_ahead_keeps_the_order_and_never_overwrites_what_is_in_use() -> None:
    x = np.arange(60, dtype=np.float32).reshape(20, 3)
    features = Lending(x)
    requests = [np.arange(start, min(start + 4, 20)) for start in range(0, 20, 3)]
    read = []
    for inputs in read_in_turn(features, ((rows, np.zeros_like(rows)) for rows in requests)):
        before = inputs.clone()
        features.read(np.arange(20), np.zeros(20, np.int64))  # something else is read meanwhile
        torch.testing.assert_close(inputs, before, rtol=0, atol=0)
        read.append(before.numpy())
    for rows, values in zip(requests, read, strict=True):
        np.testing.assert_array_equal(values, x[rows])
    assert list(read_in_turn(features, iter(()))) == []


def test_a_failure_to_read_comes_out_where_the_batch_is_wanted() -> None:
    features = Lending(np.zeros((4, 2), np.float32))
    rows = np.array([0, 1])
    reading = read_in_turn(features, [(rows, rows), (np.array([9]), np.array([0]))])
    next(reading)
    with pytest.raises(IndexError):
        next(reading)


def test_a_buffer_lends_the_same_memory_again() -> None:
    buffer = Buffer()
    large, small = buffer((4, 5), np.float16), buffer((2, 3), np.float16)
    assert large.shape == (4, 5)
    assert small.shape == (2, 3)
    assert np.shares_memory(large, small)
    assert not np.shares_memory(small, buffer((50, 50), np.float32))
