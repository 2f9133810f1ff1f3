"""What was measured on this machine, kept beside the features so that it is measured once.

One small JSON file per machine and set of settings that shape the work; it may be deleted at any time. Reading it
loads no torch.
"""

from __future__ import annotations

import logging
import os
import platform
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from agcd import __version__
from agcd.config import Config
from agcd.engine.costs import Embedding, Extraction, Line, Machine, Training
from agcd.errors import ConfigError
from agcd.io import digest, read_json, write_json

log = logging.getLogger("agcd")

RULE = 3
"""Raise when the meaning of a stored number changes."""
TRAINERS = ("simgcd", "simgcd_nn", "mugcd")
"""Trainers whose epochs are made of the steps that are measured."""


def this_machine(
    config: Config, cache_dir: Path, *, dim: int | None = None, has_texts: bool = False, renew: bool = False
) -> Machine:
    """The constants of this machine under ``config``, measured (about 20 s) unless ``cache_dir`` holds them.

    Parameters
    ----------
    dim : size of the embeddings when the data are embeddings; None for images and texts
    has_texts : whether the data are texts
    renew : measure again
    """
    if config.train.trainer not in TRAINERS:
        raise ConfigError(f"There is no cost model for the trainer {config.train.trainer!r}: {', '.join(TRAINERS)}.")
    path = cache_dir / f"machine-{machine_key(config, dim, has_texts)}.json"
    if path.exists() and not renew:
        return from_json(read_json(path))
    from agcd.engine.measure import measure

    log.info("measuring this machine, once")
    machine = measure(config, cache_dir, dim, has_texts)
    write_json(path, asdict(machine))
    return machine


def machine_key(config: Config, dim: int | None, has_texts: bool = False) -> str:
    """Equal for equal constants: the machine, the code, and the settings that shape a crop, a step or a query."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    here = [platform.node(), platform.machine(), cores, os.environ.get("OMP_NUM_THREADS")]
    device = [config.device, os.environ.get("CUDA_VISIBLE_DEVICES"), _cards()]
    train, backbone = config.train, config.backbone
    step = [train.trainer, train.batch_size, train.query_batch_size, train.projector_width, train.projector_dim]
    step += [train.precision, train.compile, train.deterministic]
    network = [backbone.name, str(backbone.weights), backbone.image_size, backbone.trainable_blocks, backbone.runner]
    code = [RULE, __version__, version("torch")]
    made_of = ["texts", *network[:2]] if has_texts else network if dim is None else dim
    return digest([here, device, code, step, made_of, config.query.strategy])


def _cards() -> list[str]:
    """NVIDIA's cards by model, as the driver on Linux tells them: else one that is new would pass as measured."""
    told = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    return [line for path in told for line in path.read_text().splitlines() if line.startswith("Model")]


def from_json(stored: dict[str, Any]) -> Machine:
    """What ``this_machine`` stored."""
    parts = {"tail": _training(stored["tail"]), "pooled": _training(stored["pooled"])}
    extraction = Extraction(**stored["extraction"]) if stored["extraction"] else None
    embedding = Embedding(**stored["embedding"]) if stored["embedding"] else None
    return Machine(**(stored | parts | {"extraction": extraction, "embedding": embedding}))


def _training(stored: dict[str, Any] | None) -> Any:
    if stored is None:
        return None
    lines = {name: Line(*value) for name, value in stored.items() if isinstance(value, list)}
    return Training(**(stored | lines))
