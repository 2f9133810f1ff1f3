"""Work on a Ray cluster: Ray Data for features and predictions, Ray tasks for sweeps.

Workers write store shards themselves, so the store and the images must lie on a file system that all machines
share. Backbones travel through Ray's own transport; nothing pickled is ever kept.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
import math
import os
import socket
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from agcd import errors
from agcd.config import TrainConfig
from agcd.engine import Fit
from agcd.engine.local import LocalEngine
from agcd.engine.ray_worker import KEPT, ShardWriter, Worker, call_alone, moved
from agcd.errors import ConfigError, EngineError, StorageError
from agcd.features.backbones import Backbone
from agcd.features.devices import CPU
from agcd.features.extract import check_space, missing_jobs, plan_shards, shown
from agcd.features.store import FeatureStore
from agcd.features.views import ViewJob
from agcd.training.job import Outcome, TrainingJob

log = logging.getLogger("agcd")

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is reported to anybody
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # what matters arrives as an exception
}
_CONNECT = {"RAY_NUM_REDIS_GET_RETRIES": "1"}  # of 40 s; Ray would try twenty times
_CONNECT_SECONDS = 5.0
"""How long a cluster's head may take to answer; one that listens answers at once."""
_CHUNKS_AHEAD = 2
"""Per worker: the next one waits there, and a slow worker holds back no more than that."""


class RayEngine:
    """The workers of a Ray cluster, which is reached or started when there is work for it.

    Parameters
    ----------
    address : ``HOST:PORT`` of the cluster's head, or ``auto``; None starts a cluster on this machine
    processes : how many workers at a time; None is all the cluster has
    gpus : how many GPUs, or which part of one, each worker has whose work is for GPUs; None is one, or an equal part
        if there are more workers than GPUs
    """

    def __init__(self, address: str | None = None, processes: int | None = None, gpus: float | None = None) -> None:
        if importlib.util.find_spec("ray") is None:
            raise ConfigError('The engine ray needs Ray: pip install "agcd[ray]".')
        if gpus is not None and not (0 < gpus < 1 or (gpus >= 1 and gpus == int(gpus))):
            raise ConfigError(f"A Ray worker has a whole number of GPUs or a part of one, as 0.5, not {gpus:g}.")
        self.address, self.processes, self.gpus = address, processes, gpus
        self._started = False

    def fill(
        self,
        store: FeatureStore,
        backbone: Backbone,
        wanted: Sequence[tuple[str, Path, int]],
        *,
        workers: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, str]:
        """``features.extract.fill`` with one shard per call; every Ray worker decodes for itself, not ``workers``."""
        bad = store.bad(key for key, _, _ in wanted)
        jobs = missing_jobs(store, wanted, bad)
        if not jobs:
            return bad
        n_items = sum(len(job.views) for job in jobs)
        check_space(store, n_items)
        try:
            with shown(progress, len(jobs), n_items) as advance:
                bad |= self._write_shards(store, backbone, plan_shards(store, jobs), advance)
        finally:
            store.refresh()
        if missing_jobs(store, wanted, bad):
            raise StorageError(f"Workers wrote features that {store.folder} does not show here: is it shared? {KEPT}")
        return bad

    def fit(self, config: TrainConfig, job: TrainingJob) -> Outcome:
        """On this machine; training on several is the engine torchrun's business."""
        return LocalEngine(self.processes).fit(config, job)

    @property
    def fit_in_task(self) -> Fit | None:
        return None

    def run(
        self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], device: str = "cpu"
    ) -> Iterator[tuple[int, Any]]:
        """Ray tasks of one core each, and of GPUs where these compute; the first failure cancels the rest and comes out
        as itself. A task sees no other GPUs than its own."""
        if not tasks:
            return
        ray = self._start()
        call = ray.remote(num_cpus=1, num_gpus=self._gpus_of_each(ray, device))(call_alone)
        left = iter(enumerate(tasks))
        position_of: dict[Any, int] = {}
        try:
            while True:
                while len(position_of) < (self.processes or len(tasks)) and (task := next(left, None)):
                    position_of[call.remote(function, task[1])] = task[0]
                if not position_of:
                    return
                (done,), _ = ray.wait(list(position_of))
                position = position_of.pop(done)
                with _own_errors(ray):
                    result, warnings = ray.get(done)
                _repeat(warnings)
                yield position, result
        finally:
            for waiting in position_of:
                ray.cancel(waiting, force=True)  # what is asked politely while it starts may miss it; runs resume

    def map_chunks(
        self, make: Callable[[], Callable[[Any], Any]], chunks: Sequence[Any], device: str = "cpu"
    ) -> Iterator[tuple[int, Any]]:
        """``make()`` once per worker, then what it made on every chunk, as they finish: position and result.

        Unlike ``run`` this keeps what is expensive to open, such as a model, from chunk to chunk.
        """
        return self._mapped(make, chunks, device)

    def close(self) -> None:
        """Leave the cluster; one that was started here ends. Ray does the same when Python ends."""
        if self._started:
            importlib.import_module("ray").shutdown()
            self._started = False

    def _start(self) -> Any:
        for name, value in (_QUIET if self.address is None else _QUIET | _CONNECT).items():
            os.environ.setdefault(name, value)
        ray = importlib.import_module("ray")
        if not ray.is_initialized():
            _connect(ray, self.address, self.processes)
            self._started = True
        return ray

    def _write_shards(
        self, store: FeatureStore, backbone: Backbone, shards: Sequence[Sequence[ViewJob]], advance: Callable[[], None]
    ) -> dict[str, str]:
        bad: dict[str, str] = {}
        # From the memory of the CPU, as a worker's own GPU is the first one that it sees, whichever this one is here.
        make = partial(ShardWriter, self._start().put(moved(backbone, CPU)), store.folder.absolute(), store.shape)
        chunks = [[(os.path.abspath(job.path), job.key, job.views) for job in shard] for shard in shards]
        with closing(self._mapped(make, chunks, backbone.device.type)) as answers:
            for position, found in answers:
                bad |= found
                for _ in shards[position]:
                    advance()
        return bad

    def _gpus_of_each(self, ray: Any, device: str) -> float:
        """How many GPUs a worker asks for whose work is for devices of that kind."""
        if device != "cuda":
            return 0
        n = _count(ray, "GPU")
        return self.gpus or 1 / math.ceil((self.processes or 1) / n)

    def _mapped(self, make: Callable[[], Any], chunks: Sequence[Any], device: str) -> Generator[tuple[int, Any]]:
        """``map_chunks`` on workers with one core each, or with GPUs."""
        if not chunks:
            return
        ray = self._start()
        data = importlib.import_module("ray.data")
        data.DataContext.get_current().enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)
        gpus = self._gpus_of_each(ray, device)
        n_places = int(_count(ray, "GPU") / gpus) if gpus else _count(ray, "CPU")
        if n_places == 0:
            raise ConfigError(f"The Ray cluster has not the {gpus:g} GPUs that --gpus wants for each worker.")
        n_workers = min(self.processes or len(chunks), len(chunks), n_places)
        # Rows are JSON because Arrow refuses file names that are not UTF-8.
        rows = [{"position": i, "chunk": json.dumps(chunk)} for i, chunk in enumerate(chunks)]
        answers = data.from_items(rows, override_num_blocks=len(rows)).map(
            Worker,
            fn_constructor_args=(make, _count_attempts(ray)),
            compute=data.ActorPoolStrategy(size=n_workers, max_tasks_in_flight_per_actor=_CHUNKS_AHEAD),
            **({"num_gpus": gpus} if gpus else {"num_cpus": 1}),
        )
        with _own_errors(ray):
            for row in answers.iter_rows():
                answer = json.loads(row["answer"])
                _repeat(answer["warnings"])
                if answer["error"]:
                    name, words = answer["error"]
                    raise getattr(errors, name, RuntimeError)(words)
                yield row["position"], answer["result"]


def _count_attempts(ray: Any) -> Any:
    """An actor that counts how often each chunk was begun, and outlives the workers that die of one."""

    class Attempts:  # a class inside a function travels by value: its process need not load torch
        def __init__(self) -> None:
            self.n_begun: dict[int, int] = {}

        def begin(self, position: int) -> int:
            self.n_begun[position] = self.n_begun.get(position, 0) + 1
            return self.n_begun[position]

    return ray.remote(num_cpus=0)(Attempts).remote()


def _connect(ray: Any, address: str | None, processes: int | None) -> None:
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    if address is None:
        ray.init("local", num_cpus=processes or os.cpu_count(), include_dashboard=False, **options)
        return
    if address != "auto":
        _check_listening(address)
    try:
        ray.init(address, **options)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        if "AuthenticationError" in f"{error!r} {error.__cause__!r}":
            raise ConfigError(f"The Ray cluster at {address!r} wants its token: set RAY_AUTH_MODE=token.") from error
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise ConfigError(f"No Ray cluster can be joined at {address!r}: {reason}.") from error


def _check_listening(address: str) -> None:
    """Ray itself takes minutes to find out that nobody is there."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal():
        raise ConfigError(f"The address of a Ray cluster is HOST:PORT or auto, not {address!r}.")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ConfigError(f"No Ray cluster answers at {address!r} ({error}): is its head running?") from None


def _count(ray: Any, kind: str) -> int:
    n = int(ray.cluster_resources().get(kind, 0))
    if n == 0:
        raise ConfigError(f"The Ray cluster has no {kind} to work with: add workers to it.")
    return n


@contextmanager
def _own_errors(ray: Any) -> Iterator[None]:
    """What a worker raised comes out as itself; workers that died are one sentence."""
    try:
        yield
    except ray.exceptions.RayError as error:
        cause = getattr(error, "cause", error)
        if not isinstance(cause, ray.exceptions.RayError):
            raise cause from error
        raise EngineError(f"Ray's workers failed ({str(cause).strip().splitlines()[-1]}) {KEPT}") from error


def _repeat(warnings: Sequence[str]) -> None:
    for line in warnings:
        log.warning("%s", line)
