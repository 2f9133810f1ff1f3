"""Machines that train together: they find each other by what the command says, and know what keeps one from it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore

from agcd.app.model import train
from agcd.app.project import Project
from agcd.engine import open_engine, rank
from agcd.engine.agents import Meeting, interface_of
from agcd.engine.job_files import read_error
from agcd.errors import AgcdError, ConfigError, EngineError, StorageError
from agcd.features.devices import CPU
from agcd.io import write_json
from support.killing import wait_for
from support.projects import make_project, predictions

AGCD = [sys.executable, "-m", "agcd.cli"]


# --- where they meet ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "rendezvous", "sentence"),
    [
        (2, None, r"2 machines need an address .* --rendezvous HOST:PORT"),
        (2, "node1", r"is HOST:PORT, not 'node1'"),
        (2, ":29500", r"is HOST:PORT, not ':29500'"),
        (1, "node1:29500", r"say with --nodes how many"),
    ],
)
def test_a_meeting_that_is_none_is_one_sentence(nodes: int, rendezvous: str | None, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        open_engine("torchrun", nodes=nodes, rendezvous=rendezvous)


def test_a_host_that_nobody_knows_is_one_sentence() -> None:
    with pytest.raises(ConfigError, match=r"No way leads to 'no-such-host\.invalid'"):
        Meeting.at(2, "no-such-host.invalid:29500").arguments(is_first=False)


def test_a_machine_knows_its_address_and_network() -> None:
    meeting = Meeting.at(2, "127.0.0.1:29500")
    assert meeting.own_address() == "127.0.0.1"
    if sys.platform == "linux":
        assert interface_of("127.0.0.1") == "lo"
        assert meeting.environment() == {"GLOO_SOCKET_IFNAME": "lo"}
    assert interface_of("203.0.113.77") is None


# --- what they tell each other before they begin -------------------------------------------------------------------


def test_the_folder_is_told_by_those_who_know_it() -> None:
    store = HashStore()
    assert rank.told_folder(store, ["/shared/run"]) == Path("/shared/run")
    assert rank.told_folder(store, []) == Path("/shared/run")


def test_what_keeps_one_process_from_taking_part_ends_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def of_this_thread(folder: Path) -> torch.device:
        if threading.current_thread().name == "1":
            raise StorageError("node2 does not see the folder.")
        return CPU

    def begin(number: int) -> None:
        try:
            rank.begin_together(store, number, 3, tmp_path)
        except AgcdError as error:
            found[number] = error

    monkeypatch.setattr(rank, "own_device", of_this_thread)
    store, found = HashStore(), dict[int, AgcdError]()
    store.set_timeout(timedelta(seconds=20))
    threads = [threading.Thread(target=begin, args=[i], name=str(i)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {(type(error), str(error)) for error in found.values()} == {(StorageError, "node2 does not see the folder.")}
    assert len(found) == 3


def test_a_folder_that_is_not_shared_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=f"{socket.gethostname()} does not see .*: put it on a disk that all share"):
        rank.own_device(tmp_path)


def test_devices_that_cannot_train_together_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rank.backend_of(CPU) == "gloo"
    with pytest.raises(ConfigError, match=r"together on cuda or cpu, not on mps: set device to cpu"):
        rank.backend_of(torch.device("mps"))
    monkeypatch.setattr(dist, "is_nccl_available", lambda: False)
    with pytest.raises(ConfigError, match="has no NCCL"):
        rank.backend_of(torch.device("cuda", 0))
    monkeypatch.setattr(dist, "is_nccl_available", lambda: True)
    assert rank.backend_of(torch.device("cuda", 0)) == "nccl"
    with pytest.raises(ConfigError, match=r"4 processes need a device each, and torch finds 0 of cuda"):
        rank.check_devices(torch.device("cuda", 0), 4)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of a job on the CPU, for a process that is its only one."""
    monkeypatch.setattr(rank, "rendezvous", lambda url: iter([(HashStore(), 0, 1)]))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    write_json(tmp_path / "job.json", {"device": "cpu"})
    return tmp_path


def test_a_device_without_room_for_a_share_is_one_sentence(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill_memory(folder: Path, group: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    monkeypatch.setattr(rank, "train", fill_memory)
    with pytest.raises(SystemExit, match=r"The memory of cpu is too small for a process's share of a batch"):
        rank.main([str(alone)])
    dist.destroy_process_group()
    assert isinstance(read_error(alone), EngineError)


def test_nccl_is_told_the_process_s_own_device(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, object] = {}
    monkeypatch.setattr(rank, "own_device", lambda folder: torch.device("cuda", 3))
    monkeypatch.setattr(rank, "backend_of", lambda device: "nccl")
    monkeypatch.setattr(dist, "init_process_group", lambda backend, **given: told.update(given, backend=backend))
    monkeypatch.setattr(dist, "get_world_size", lambda: 1)
    monkeypatch.setattr(dist, "get_rank", lambda: 0)
    monkeypatch.setattr(dist, "barrier", lambda **given: told.update(given))
    monkeypatch.setattr(dist, "destroy_process_group", lambda: None)
    monkeypatch.setattr(rank, "train", lambda folder, group: group.barrier())
    rank.main([str(alone)])
    assert (told["backend"], told["device_id"], told["device_ids"]) == ("nccl", torch.device("cuda", 3), [3])


# --- two machines --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Places:
    """What to write in front of a command for each of two machines, and the address of the first."""

    first: list[str]
    second: list[str]
    address: str


@contextmanager
def one_machine_twice() -> Iterator[Places]:
    yield Places([], [], "127.0.0.1")


@contextmanager
def two_networks() -> Iterator[Places]:
    """Two network namespaces joined by a cable; all else they share, as machines share a disk."""
    names = [f"agcd{i}-{os.getpid()}" for i in (1, 2)]
    ends = [f"ag{i}x{os.getpid() % 100_000}" for i in (1, 2)]
    made = subprocess.run(["ip", "netns", "add", names[0]], capture_output=True, check=False).returncode
    if made:
        pytest.skip("may not make network namespaces")
    try:
        _ip("netns add", names[1])
        _ip("link add", ends[0], "type veth peer name", ends[1])
        for number, (name, end) in enumerate(zip(names, ends, strict=True), start=1):
            _ip("link set", end, "netns", name)
            _ip("-n", name, "addr add", f"10.77.0.{number}/24", "dev", end)
            _ip("-n", name, "link set lo up")
            _ip("-n", name, "link set", end, "up")
        yield Places(["ip", "netns", "exec", names[0]], ["ip", "netns", "exec", names[1]], "10.77.0.1")
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *" ".join(words).split()], capture_output=True, check=True)


NEEDS_IP = pytest.mark.skipif(shutil.which("ip") is None, reason="makes networks with ip")


@pytest.mark.parametrize("places", [one_machine_twice, pytest.param(two_networks, marks=[pytest.mark.slow, NEEDS_IP])])
def test_two_machines_train_by_what_the_command_says_what_one_trains(
    places: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with make_project(tmp_path / "one") as project:
        train(project)
        alone = predictions(project)
    make_project(tmp_path / "two").close()
    folder, said = tmp_path / "two" / "project", tmp_path / "said.txt"
    assert callable(places)
    with places() as found, said.open("w") as file, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        how = ["--engine", "torchrun", "--processes", "1", "--nodes", "2"]
        how += ["--rendezvous", f"{found.address}:{probe.getsockname()[1]}"]
        probe.close()
        first = subprocess.Popen([*found.first, *AGCD, "train", str(folder), *how], stderr=file, stdout=file)
        wait_for("what to do", lambda: "each other machine: agcd join" in said.read_text())
        words = re.search(r"each other machine: agcd (.*)", said.read_text())
        assert words
        second = subprocess.Popen([*found.second, *AGCD, *words[1].split()], stderr=subprocess.PIPE, text=True)
        try:
            assert first.wait(120) == 0, said.read_text()
        finally:
            first.kill()
            second.send_signal(signal.SIGINT)
            _, told = second.communicate(timeout=60)
    assert "took part in a run" in told
    with Project.open(folder) as project:
        together = predictions(project)
    assert together["class"] == alone["class"]
    np.testing.assert_allclose(together["probability"], alone["probability"], atol=1e-3)
