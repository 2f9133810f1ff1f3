"""The engine ray: the bytes of a local fill, errors that come out as themselves, and nothing started for nothing."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from agcd.app.model import predict, train
from agcd.config import BackboneConfig
from agcd.engine import open_engine
from agcd.errors import ConfigError, DataError, EngineError, StorageError
from agcd.features import extract
from agcd.features.backbones import Backbone, load_backbone
from agcd.features.devices import CPU
from agcd.features.store import FeatureStore
from agcd.features.views import ViewSpec
from agcd.io import digest_bytes
from support import TESTS
from support.datasets import toy_images
from support.pretend_device import DEVICE, pretend_device
from support.projects import make_project

ray = pytest.importorskip("ray", reason="the extra ray is not installed")

from agcd.engine.ray import RayEngine  # noqa: E402
from agcd.engine.ray_worker import moved  # noqa: E402

# Ray Data sets its own deprecated options when it is first used, and leaves sockets to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
SHARD_BYTES = 5000
"""Two images of three views."""
Wanted = list[tuple[str, Path, int]]


@pytest.fixture(scope="module")
def engine() -> Iterator[RayEngine]:
    """Two workers on this machine, which can import this file."""
    engine = RayEngine(None, 2)
    with pytest.MonkeyPatch.context() as patch:
        places = [str(TESTS), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(places))
        # GPUs are a number to Ray: it deals out two that are not there, and no work uses them.
        patch.setattr(ray, "init", partial(ray.init, num_gpus=2))
        patch.setenv("RAY_worker_niceness", "0")  # it is 15, with which workers wait for all other tests
        list(engine.run(abs, [(1,)]))
    yield engine
    engine.close()
    assert not ray.is_initialized()


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agcd.engine.ray.plan_shards", partial(extract.plan_shards, shard_bytes=SHARD_BYTES))


def backbone_of(name: str) -> Backbone:
    return load_backbone(BackboneConfig(name=name, image_size=32, views=3))


def store_of(root: Path, backbone: Backbone) -> FeatureStore:
    return FeatureStore(root, {"backbone": backbone.fingerprint}, backbone.token_shape)


def wanted_of(folder: Path, n: int = 8) -> Wanted:
    paths = sorted(toy_images(folder, n_classes=2, n_per_class=(n + 1) // 2).rglob("*.png"))[:n]
    return [(digest_bytes(path.read_bytes()), path, 3) for path in paths]


def with_troubles(wanted: Wanted, folder: Path) -> Wanted:
    """One damaged file and one that has the content of another, more."""
    damaged, double = folder / "damaged.png", folder / "double.png"
    damaged.write_bytes(wanted[3][1].read_bytes()[:60])
    double.write_bytes(wanted[0][1].read_bytes())
    extra = [(digest_bytes(path.read_bytes()), path, 3) for path in (damaged, double)]
    return [*wanted[:3], *extra, *wanted[3:]]


def contents(folder: Path) -> dict[str, str]:
    """Every file below ``folder`` with the digest of its bytes."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): digest_bytes(path.read_bytes()) for path in paths}


def local(root: Path, backbone: Backbone, wanted: Wanted) -> dict[str, str]:
    return extract.fill(store_of(root, backbone), backbone, wanted, workers=2, shard_bytes=SHARD_BYTES)


@pytest.mark.parametrize("name", ["toy", "toy_conv"])
def test_the_store_has_the_bytes_of_a_local_fill(
    name: str, engine: RayEngine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    backbone = backbone_of(name)
    wanted = with_troubles(wanted_of(tmp_path / "images"), tmp_path)
    store, calls = store_of(tmp_path / "ray", backbone), []
    with caplog.at_level(logging.INFO, logger="agcd"):
        bad = engine.fill(store, backbone, wanted, progress=lambda *numbers: calls.append(numbers))
    assert bad == local(tmp_path / "local", backbone, wanted)
    assert list(bad) == [wanted[3][0]]
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")
    assert len(list(store.folder.glob("*.npy"))) > 2
    assert len(store) == 8 * 3, "the driver's own store knows what the workers wrote"
    assert calls == [(i, 9) for i in range(1, 10)]
    assert "images/s" in caplog.text
    assert f"{wanted[3][1]} has no features" in caplog.text, "workers' warnings are repeated here"


def test_what_is_stored_starts_no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> None:
        raise AssertionError("Ray was started")

    backbone, wanted = backbone_of("toy"), with_troubles(wanted_of(tmp_path / "images"), tmp_path)
    bad = local(tmp_path / "ray", backbone, wanted)
    monkeypatch.setattr("agcd.engine.ray._connect", refuse)
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    assert RayEngine(None, 2).fill(store_of(tmp_path / "ray", backbone), backbone, wanted) == bad


def test_too_little_space_is_refused_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agcd.features.extract.shutil.disk_usage", lambda path: SimpleNamespace(free=1000))
    backbone, wanted = backbone_of("toy"), wanted_of(tmp_path / "images")
    with pytest.raises(StorageError, match="Features need"):
        RayEngine(None, 2).fill(store_of(tmp_path / "ray", backbone), backbone, wanted)


def test_a_store_that_workers_cannot_see_is_one_sentence(engine: RayEngine, tmp_path: Path) -> None:
    backbone, wanted = backbone_of("toy"), wanted_of(tmp_path / "images", 2)
    store = store_of(tmp_path / "ray", backbone)
    (store.folder / "spec.json").unlink()
    with pytest.raises(StorageError, match=r"does not see .* shared disk"):
        engine.fill(store, backbone, wanted)


@dataclass(frozen=True)
class DeadlySpec(ViewSpec):
    """Kills whoever cuts views out of a decoded image, as a file might that crashes a C library."""

    def __getattribute__(self, name: str) -> Any:
        if name == "seed" and sys._getframe(1).f_code.co_name == "view_box":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getattribute__(name)


def test_a_file_that_kills_its_decoder_is_a_bad_one(engine: RayEngine, tmp_path: Path) -> None:
    wanted = wanted_of(tmp_path / "images", 2)
    backbone = replace(backbone_of("toy"), view_spec=DeadlySpec(32))
    bad = engine.fill(store_of(tmp_path / "ray", backbone), backbone, wanted)
    assert bad == {key: "its decoder died twice" for key, _, _ in wanted}


class DeadlyPrefix(nn.Module):
    """Kills its process over images that are mostly of one colour."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        if images[:, 0].mean() > images[:, 1].mean():
            os.kill(os.getpid(), signal.SIGKILL)
        out: Tensor = self.network(images)
        return out


@pytest.mark.slow  # Ray starts worker after worker: minutes beside other tests
def test_workers_that_keep_dying_are_one_sentence_and_the_next_fill_continues(
    engine: RayEngine, tmp_path: Path
) -> None:
    backbone, wanted = backbone_of("toy"), wanted_of(tmp_path / "images", 6)
    deadly = replace(backbone, network=DeadlyPrefix(backbone.network))
    local(tmp_path / "ray", backbone, wanted[:2])  # Ray deals in any order: the deadly ones may all come first
    store = store_of(tmp_path / "ray", backbone)
    with pytest.raises(EngineError, match=r"died 3 times over the same images.*run again to continue"):
        engine.fill(store, deadly, wanted)
    n_stored, calls = len(store) // 3, []
    assert 2 <= n_stored < 6
    engine.fill(store, backbone, wanted, progress=lambda *numbers: calls.append(numbers))
    assert len(calls) == 6 - n_stored
    local(tmp_path / "local", backbone, wanted)
    assert len(store) == len(store_of(tmp_path / "local", backbone)) == 6 * 3


def squared(number: int) -> tuple[int, int]:
    logging.getLogger("agcd").warning("number %d", number)
    return number**2, torch.get_num_threads()


def failing(what: type[Exception], flag: Path) -> None:
    if what is KeyError:
        time.sleep(60)
        flag.touch()
    raise what("the disk is full.")


def dying() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("processes", [1, 2, None])
def test_every_task_is_run_once_with_one_thread(
    processes: int | None, engine: RayEngine, caplog: pytest.LogCaptureFixture
) -> None:
    found = list(RayEngine(None, processes).run(squared, [(n,) for n in range(5)]))
    assert sorted(found) == [(n, (n**2, 1)) for n in range(5)]
    assert "number 3" in caplog.text
    assert list(engine.run(squared, [])) == []


def seen(n: int) -> tuple[str | None, float, float]:
    """The GPUs that a task sees, and its beginning and end."""
    began = time.monotonic()
    time.sleep(0.5)
    return os.environ.get("CUDA_VISIBLE_DEVICES"), began, time.monotonic()


def test_tasks_for_gpus_have_one_each_and_others_see_none(engine: RayEngine) -> None:
    (one, *first), (other, *second) = (found for _, found in engine.run(seen, [(0,), (1,)], "cuda"))
    assert {one, other} <= {"0", "1"}
    assert one != other or first[1] < second[0] or second[1] < first[0]
    assert {found[0] for _, found in engine.run(seen, [(0,), (1,)], "cpu")} == {""}


@pytest.mark.slow  # a task with GPUs has a process of its own, which loads torch
def test_gpus_limit_how_many_tasks_and_workers_there_are(engine: RayEngine) -> None:
    (one, *first), (other, *second) = (found for _, found in RayEngine(gpus=2).run(seen, [(0,), (1,)], "cuda"))
    assert {*one.split(",")} == {*other.split(",")} == {"0", "1"}
    assert first[1] < second[0] or second[1] < first[0], "one has both"
    shown = engine.map_chunks(partial(Shown, "CUDA_VISIBLE_DEVICES"), [["a"], ["b"]], "cuda")
    assert {value for _, value in shown} <= {"0", "1"}
    hidden = engine.map_chunks(partial(Shown, "CUDA_VISIBLE_DEVICES"), [["a"], ["b"]])
    assert {value for _, value in hidden} == {""}


class Shown:
    """Tells a variable of its worker's environment, whatever the chunk."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, chunk: list[str]) -> str | None:
        return os.environ.get(self.name)


@pytest.mark.parametrize(
    ("processes", "gpus", "device", "each"),
    [
        (None, None, "cuda", 1),
        (4, None, "cuda", 1),
        (5, None, "cuda", 0.5),
        (9, None, "cuda", 1 / 3),
        (9, 2, "cuda", 2),
        (None, 0.25, "cuda", 0.25),
        (None, 0.25, "cpu", 0),
        (None, None, "mps", 0),
    ],
)
def test_workers_have_a_gpu_each_or_equal_parts_of_one(
    processes: int | None, gpus: float | None, device: str, each: float
) -> None:
    cluster = SimpleNamespace(cluster_resources=lambda: {"CPU": 16.0, "GPU": 4.0})
    assert RayEngine(None, processes, gpus)._gpus_of_each(cluster, device) == each


def test_gpus_that_a_cluster_has_not_are_one_sentence() -> None:
    cluster = SimpleNamespace(cluster_resources=lambda: {"CPU": 16.0})
    with pytest.raises(ConfigError, match="The Ray cluster has no GPU to work with"):
        RayEngine()._gpus_of_each(cluster, "cuda")
    with pytest.raises(ConfigError, match=r"a whole number of GPUs or a part of one, as 0\.5, not 1\.5"):
        RayEngine(gpus=1.5)


def test_features_are_computed_on_the_kind_of_device_that_the_command_found(
    engine: RayEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def note(_: RayEngine, make: Any, chunks: Any, device: str) -> Generator[Any]:
        asked.append(device)
        yield from ()

    monkeypatch.setattr(RayEngine, "_mapped", note)
    backbone, wanted = backbone_of("toy"), wanted_of(tmp_path / "images", 2)
    with pytest.raises(StorageError):  # nobody has written them
        engine.fill(store_of(tmp_path, backbone), replace(backbone, device=torch.device("cuda", 5)), wanted)
    assert asked == ["cuda"]


def test_a_backbone_travels_by_the_memory_of_the_cpu() -> None:
    with pretend_device():
        here = backbone_of("toy")
        there = moved(here, DEVICE)
        back = moved(there, CPU)
        places = [{p.device.type for p in one.network.parameters()} for one in (here, there, back)]
    assert places == [{"cpu"}, {DEVICE.type}, {"cpu"}]
    assert moved(here, CPU) is here


@pytest.mark.parametrize("kind", [StorageError, ValueError])
def test_the_first_failure_comes_out_as_itself(kind: type[Exception], engine: RayEngine, tmp_path: Path) -> None:
    flag, started = tmp_path / "flag", time.monotonic()
    with pytest.raises(kind) as caught:
        list(engine.run(failing, [(kind, flag), (KeyError, flag), (KeyError, flag)]))
    assert type(caught.value) is kind
    assert str(caught.value) == "the disk is full."
    assert list(engine.run(squared, [(3,), (4,)])), "the cores are free again"
    assert time.monotonic() - started < 50
    assert not flag.exists()


def test_a_task_whose_worker_dies_is_one_sentence(engine: RayEngine) -> None:
    with pytest.raises(EngineError, match=r"Ray's workers failed \(.*\) What was finished is kept"):
        list(engine.run(dying, [()]))


class Opened:
    """Something expensive to open: tells how often it was used."""

    def __init__(self, name: str) -> None:
        self.name, self.n_uses = name, 0

    def __call__(self, chunk: list[str]) -> dict[str, Any]:
        if "bad" in chunk:
            raise DataError("bad is not a path.")
        self.n_uses += 1
        return {"name": self.name, "n_uses": self.n_uses, "items": chunk, "nothing": None}


def test_chunks_share_what_was_opened_once_per_worker(engine: RayEngine) -> None:
    chunks = [[f"{i}", "caf\udce9"] for i in range(6)]
    found = dict(engine.map_chunks(partial(Opened, "model"), chunks))
    assert [found[i]["items"] for i in range(6)] == chunks
    assert max(answer["n_uses"] for answer in found.values()) >= 3
    assert {answer["name"] for answer in found.values()} == {"model"}
    assert list(engine.map_chunks(partial(Opened, "model"), [])) == []
    with pytest.raises(DataError, match=r"^bad is not a path\.$"):
        list(engine.map_chunks(partial(Opened, "model"), [["bad"]]))


@pytest.fixture
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no cluster of the other tests were running in this process."""
    monkeypatch.setattr("ray.is_initialized", lambda: False)


@pytest.mark.usefixtures("no_cluster")
def test_a_cluster_that_does_not_answer_is_one_sentence_and_soon() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        started = time.monotonic()
        with pytest.raises(ConfigError, match=f"No Ray cluster answers at '{address}'.*is its head running"):
            list(RayEngine(address).run(squared, [(1,)]))
    assert time.monotonic() - started < 10


@pytest.mark.usefixtures("no_cluster")
@pytest.mark.parametrize("address", ["head", "ray://head:10001", "head:port", "127.0.0.1:99999"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="Ray cluster"):
        list(RayEngine(address).run(squared, [(1,)]))


def test_without_ray_the_way_to_get_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r'^The engine ray needs Ray: pip install "agcd\[ray\]"\.$'):
        open_engine("ray")


def test_a_project_predicts_on_workers_what_it_predicts_here(
    engine: RayEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = toy_images(tmp_path / "new", n_classes=2, n_per_class=4, seed=5)
    (images / "damaged.png").write_bytes(b"not an image")
    monkeypatch.setattr("agcd.app.model._CHUNK", 3)
    with make_project(tmp_path / "project") as project:
        train(project)
        here = predict(project, [images])
        project.engine = engine
        assert predict(project, [images]) == here
    assert len(here["path"]) >= 8


def test_no_tasks_start_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RayEngine, "_start", lambda self: pytest.fail("a cluster was started"))
    assert list(RayEngine(None, 2).run(abs, [])) == []
    assert list(RayEngine(None, 2).map_chunks(lambda: abs, [])) == []
