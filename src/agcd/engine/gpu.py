"""What a GPU would take, by arithmetic: the work of the network is counted, and a share of the peak is assumed.

Nothing here was measured on a GPU. Decoding, the disk and the choice of questions, which stay on the CPU, are measured
on this machine; bytes and operations are counted on the network itself, built without its weights.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from agcd.config import Config
from agcd.engine.costs import Extraction, Line, Machine, Size, Training
from agcd.engine.measure import (
    FEW_SLOTS,
    MANY_SLOTS,
    decode_seconds,
    line_through,
    machine_memory,
    make_images,
    measure_disk,
    measure_kmeans,
    measure_selection,
    peak_memory,
)
from agcd.errors import ConfigError, did_you_mean
from agcd.features.backbones import blank_network
from agcd.features.resident import SHARE
from agcd.features.rows import DECODING_THREADS
from agcd.training.heads import DiscoveryModel
from agcd.training.simgcd import original_loss

REACHED = 0.4
"""The share of the peak that is assumed."""
LAUNCHES_S = 0.01
"""A step at least: some hundreds of small operations are started one after another."""
EPOCH_S = 1.0
"""The mapping and the stored state at the end of an epoch."""
HALF_BYTES = 2
COUNTED = 4
"""Crops of the step that is counted."""
T = TypeVar("T")


@dataclass(frozen=True)
class Gpu:
    """A GPU by its data sheet: operations a second without sparsity, bytes of memory, bytes a second to it."""

    half: float
    single: float
    memory_bytes: float
    bus_bytes_per_s: float


GPUS = {
    "a100": Gpu(half=312e12, single=19.5e12, memory_bytes=40e9, bus_bytes_per_s=25e9),
    "a100-80gb": Gpu(half=312e12, single=19.5e12, memory_bytes=80e9, bus_bytes_per_s=25e9),
}
"""Name → data sheet. In float32 training takes no TF32: agcd leaves torch's default, which is off."""


@dataclass(frozen=True)
class Work:
    """Operations (a multiplication and an addition are two) and bytes of one crop."""

    prefix: float
    tail: float
    step: float
    """The tail and the head, forward and backward, without slots."""
    step_per_slot: float
    item_bytes: int
    """In the store."""
    dim: int
    model_bytes: Line


def machine_with(name: str, config: Config, size: Size) -> Machine:
    """This machine with the GPU of that name, for ``costs.estimate`` of a project of images of that size."""
    if name not in GPUS:
        raise ConfigError(f"Unknown GPU {name!r}.{did_you_mean(name, GPUS)}")
    gpu, work, backbone = GPUS[name], count_work(config), config.backbone
    stored = work.item_bytes * (size.n_train * backbone.views + size.n_test)
    is_resident = backbone.cache == "store" and stored <= SHARE * gpu.memory_bytes
    # What is not on the GPU is sent there; without a store crops are made there of files that the cost model reads.
    sent_s = 0.0 if is_resident or backbone.cache == "off" else work.item_bytes / gpu.bus_bytes_per_s
    training = REACHED * (gpu.single if config.train.precision == "float32" else gpu.half)
    crops = {"step": 2 * config.train.batch_size, "queried_step": 2 * config.train.query_batch_size}
    steps = {
        step: Line(max(LAUNCHES_S, n * work.step / training) + n * sent_s, n * work.step_per_slot / training)
        for step, n in crops.items()
    }
    predict = Line(work.tail / (REACHED * gpu.single) + sent_s, 2 * work.dim / (REACHED * gpu.single))
    with tempfile.TemporaryDirectory() as folder:
        decode_s = decode_seconds(make_images(Path(folder) / "images"), backbone.image_size)
        disk = measure_disk(Path(folder) / "probe")
    cores = DECODING_THREADS if backbone.cache == "off" else os.cpu_count() or 1
    return Machine(
        memory_bytes=max(stored, machine_memory()) if is_resident else machine_memory(),
        disk_bytes_per_s=disk,
        process_bytes=peak_memory(),
        dim=work.dim,
        kmeans_s=measure_kmeans(work.dim),
        select_s=measure_selection(config, work.dim),
        tail=Training(work.item_bytes, **steps, predict=predict, epoch_s=EPOCH_S, model_bytes=work.model_bytes),
        extraction=Extraction(0.0, decode_s / cores, work.prefix / (REACHED * gpu.half)),
        device=name,
    )


def assumptions(name: str, config: Config) -> str:
    """What the figures rest on, in a line."""
    gpu, precision = GPUS[name], config.train.precision
    training = gpu.single if precision == "float32" else gpu.half
    peaks = f"features in float16, {gpu.half / 1e12:g} TFLOP/s, training in {precision}, {training / 1e12:g}"
    return (
        f"computed, not measured: {name} at {REACHED:.0%} of its peak ({peaks}), at least {1000 * LAUNCHES_S:g} ms "
        "a step; files are decoded as fast as here"
    )


def count_work(config: Config) -> Work:
    """Count on the network itself, with random weights."""
    parts, train = blank_network(config.backbone), config.train
    side = config.backbone.image_size
    with torch.no_grad():
        prefix, cached = counted(lambda: parts.prefix(torch.zeros(1, 3, side, side)))
        tail, features = counted(lambda: parts.tail(cached))
    steps, n_bytes = [], []
    for n_slots in (FEW_SLOTS, MANY_SLOTS):
        shape = (train.projector_width, train.projector_dim)
        model = DiscoveryModel(parts.tail, features.shape[1], n_slots, shape, seed=0)
        steps.append(_step_work(model, cached, config))
        n_bytes.append(2.0 * sum(tensor.nbytes for tensor in model.state_dict().values()))  # the student, the EMA model
    step, per_slot = line_through(*steps), line_through(*n_bytes)
    return Work(prefix, tail, step.fixed, step.per_slot, HALF_BYTES * cached.numel(), features.shape[1], per_slot)


def _step_work(model: DiscoveryModel, cached: Tensor, config: Config) -> float:
    """Operations of a training step per crop; products of crops with each other are left out, some hundredths of it."""
    inputs, nobody = cached.repeat(COUNTED, *[1] * (cached.dim() - 1)), torch.full((COUNTED // 2,), -1)

    def step() -> None:
        original_loss(model(inputs), nobody, config.train.teacher_temp, config.train).backward()  # type: ignore[no-untyped-call]

    return counted(step)[0] / COUNTED


def counted(call: Callable[[], T]) -> tuple[float, T]:
    """The operations of matrix products and convolutions in a call, and what it gives."""
    with FlopCounterMode(display=False, custom_mapping=_COUNTED_AS) as counter:
        found = call()
    return float(counter.get_total_flops()), found


def _of_linear(x: Sequence[int], weight: Sequence[int], *_: Any, **__: Any) -> int:
    return 2 * math.prod(x) * weight[0]


_COUNTED_AS = {
    operator: _of_linear
    for operator in [getattr(torch.ops.mkldnn, "_linear_pointwise", None)]  # products of ours, on a CPU
    if operator is not None
}
"""Operators that torch's counter does not know."""
