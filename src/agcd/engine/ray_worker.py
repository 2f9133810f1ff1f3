"""What runs on the workers of a Ray cluster."""

from __future__ import annotations

import copy
import importlib
import json
import logging
import os
import socket
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from agcd.errors import AgcdError, EngineError, StorageError
from agcd.features.backbones import Backbone
from agcd.features.decoding import decoded
from agcd.features.devices import find_device
from agcd.features.extract import computed, write_shard
from agcd.features.store import FeatureStore
from agcd.features.torchvision_compat import import_timm
from agcd.features.views import ViewJob
from agcd.io import read_json
from agcd.training.loop import use_one_thread

KEPT = "What was finished is kept: run again to continue."
_MAX_ATTEMPTS = 3
"""How often a chunk may kill its worker; Ray itself would try for ever."""


class Worker:
    """Lives on a Ray worker: answers chunk after chunk with what ``make`` made."""

    def __init__(self, make: Callable[[], Callable[[Any], Any]], attempts: Any) -> None:
        use_one_thread()
        see_own_gpus()
        self._make, self._attempts = make, attempts
        self._function: Callable[[Any], Any] | None = None

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        result, error = None, None
        with collected_warnings() as warnings:
            try:
                self._check_attempts(row["position"])
                self._function = self._function or self._make()
                result = self._function(json.loads(row["chunk"]))
            except AgcdError as found:
                error = (type(found).__name__, str(found))
            except Exception:  # Ray Data would try again, without an end
                error = ("RuntimeError", f"On a Ray worker:\n{traceback.format_exc()}")
        answer = {"result": result, "warnings": warnings, "error": error}
        return {"position": row["position"], "answer": json.dumps(answer)}

    def _check_attempts(self, position: int) -> None:
        ray = importlib.import_module("ray")
        if ray.get(self._attempts.begin.remote(position)) > _MAX_ATTEMPTS:
            raise EngineError(
                f"Ray workers died {_MAX_ATTEMPTS} times over the same images: are they short of memory? {KEPT}"
            )


class ShardWriter:
    """Computes one shard per call and writes it to the store.

    Files are decoded in the worker itself. One that was started again, because something killed it, decodes in a
    process apart: a file that kills its decoder is then a bad one, as everywhere, and the rest go on.
    """

    def __init__(self, backbone: Any, folder: Path, shape: tuple[int, ...]) -> None:
        ray = importlib.import_module("ray")
        if not (folder / "spec.json").exists():  # the store would be made anew, where nobody looks for it
            raise StorageError(f"The worker {socket.gethostname()} does not see {folder}: put it on a shared disk.")
        import_timm()  # before its modules arrive
        sent: Backbone = ray.get(backbone)
        self._backbone = moved(sent, find_device(sent.made_on))
        self._store = FeatureStore(folder.parent, read_json(folder / "spec.json")["spec"], shape)
        self._n_decoders = int(ray.get_runtime_context().was_current_actor_reconstructed)

    def __call__(self, chunk: list[tuple[str, str, list[int]]]) -> dict[str, str]:
        jobs = [ViewJob(path, key, tuple(views)) for path, key, views in chunk]
        crops = decoded(jobs, self._backbone.view_spec, self._n_decoders)
        with closing(computed(self._backbone, crops)) as done:
            return write_shard(self._store, done)


def moved(backbone: Backbone, device: torch.device) -> Backbone:
    """The same backbone on the device; the one that was given stays where it is."""
    if backbone.device == device:
        return backbone
    return replace(backbone, device=device, network=copy.deepcopy(backbone.network).to(device))


def call_alone(function: Callable[..., Any], task: tuple[Any, ...]) -> tuple[Any, list[str]]:
    use_one_thread()
    see_own_gpus()
    with collected_warnings() as warnings:
        return function(*task), warnings


def see_own_gpus() -> None:
    """Ray shows a worker the GPUs that it was given, but all of them where it was given none: there hide them."""
    ray = importlib.import_module("ray")
    if not ray.get_runtime_context().get_accelerator_ids().get("GPU"):
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """What is logged as a warning meanwhile, for whoever is far away."""
    lines: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    handler = Collector(logging.WARNING)
    log = logging.getLogger("agcd")
    log.addHandler(handler)
    try:
        yield lines
    finally:
        log.removeHandler(handler)
