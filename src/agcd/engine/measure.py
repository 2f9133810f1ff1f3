"""Measure this machine: the real extraction, training, prediction and selection, on a few made-up images or texts.

Constants are differences between runs of different length and head, so that what a run costs once (libraries,
threads, worker processes) is told apart from what every image, step and row costs.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from agcd.asking import Neighbours
from agcd.config import Config, TrainConfig
from agcd.data.folder import from_folder
from agcd.engine.costs import (
    Embedding,
    Extraction,
    Line,
    Machine,
    Training,
    neighbour_cells,
    selection_cells,
)
from agcd.features import open_features, views
from agcd.features.devices import CPU, find_device
from agcd.features.rows import EmbeddingRows, RowFeatures
from agcd.features.text_encoders import TextEncoder, load_encoder
from agcd.rng import generator
from agcd.strategies import select
from agcd.training import fit
from agcd.training.job import Outcome, TrainingJob
from agcd.training.kmeans import semi_supervised_kmeans
from agcd.types import Dataset, LabelState, PoolView

N_IMAGES, IMAGE_SIZE = 24, (640, 480)
N_SKIPPED = 4
"""The first images also wait for the decoding processes to start."""
FEW_SLOTS, MANY_SLOTS = 16, 2048
"""What depends on the number of slots is a straight line through these two."""
N_EPOCHS = 3
"""The first one warms up; the fastest of the others counts, as other work on the machine only ever slows one down."""
LONG = 4
"""Steps of the longer runs; the shorter ones have one."""
N_LABELLED, N_ASKED = 64, 32
SHORT_TEXTS, LONG_TEXTS = (256, 12), (32, 100)
"""How many texts, and words of each on average; what a text takes is a straight line through these two lengths."""
_WORDS = (
    *("I", "you", "we", "they", "the", "a", "my", "your", "this", "that", "what", "when", "why", "how", "not", "is"),
    *("was", "have", "has", "been", "to", "from", "with", "for", "and", "but", "still", "can", "could", "please"),
    *("card", "account", "money", "transfer", "payment", "bank", "phone", "number", "pending", "declined", "charged"),
    *("yesterday", "abroad", "fee", "exchange", "rate", "balance", "wrong", "amount", "receive", "cancel", "identity"),
)
PROBE_BYTES = 64 * 2**20


def measure(config: Config, cache_dir: Path, dim: int | None = None, has_texts: bool = False) -> Machine:
    """The constants of this machine under ``config``; ``dim`` is the size of given embeddings."""
    cache_dir.mkdir(parents=True, exist_ok=True)
    device = find_device(config.device)
    with tempfile.TemporaryDirectory(dir=cache_dir) as name:
        folder = Path(name)
        n_rows = LONG * config.train.batch_size
        extraction, pooled, embedding = None, None, None
        if has_texts:
            encoder = load_encoder(config.backbone, config.device)
            embedding, dim = measure_embedding(encoder), encoder.dim
        if dim is None:
            images = _repeated(make_images(folder / "images"), n_rows)
            extraction, features = measure_extraction(images, config, folder)
        else:
            features = _random_rows(n_rows, dim, config.backbone.dropout)
        tail = measure_training(features, config.train, folder / "tail", device)
        if extraction and config.backbone.trainable_blocks:
            adapter = measure_training(_random_rows(n_rows, features.dim), config.train, folder / "pooled", device)
            pooled = replace(adapter, item_bytes=2 * features.dim)  # stored in float16
        process_bytes = peak_memory()
        return Machine(
            memory_bytes=machine_memory(),
            disk_bytes_per_s=measure_disk(folder / "probe"),
            process_bytes=process_bytes,
            dim=features.dim,
            kmeans_s=measure_kmeans(features.dim),
            select_s=measure_selection(config, features.dim),
            tail=tail,
            pooled=pooled,
            extraction=extraction,
            embedding=embedding,
            neighbour_s=measure_neighbours(features.dim),
            device=_name_of(device),
        )


def make_images(folder: Path, n: int = N_IMAGES, size: tuple[int, int] = IMAGE_SIZE, seed: int = 0) -> Dataset:
    """Photograph-like JPEG files: gradients and grain, about as long to decode as a photograph of that size."""
    rng = generator(seed, "measure", "images")
    folder.mkdir(parents=True, exist_ok=True)
    across, down = np.linspace(0, 1, size[0]), np.linspace(0, 1, size[1])[:, None]
    for i in range(n):
        slopes = rng.uniform(-200, 200, (3, 2))
        planes = [128 + sx * (across - 0.5) + sy * (down - 0.5) for sx, sy in slopes]
        pixels = np.stack(planes, axis=2) + rng.normal(0, 12, (size[1], size[0], 1))
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / f"{i:05d}.jpg", quality=88)
    return from_folder(folder)


def _repeated(dataset: Dataset, n_rows: int) -> Dataset:
    """The same images again and again: rows of equal content share their features."""
    row = np.arange(n_rows) % dataset.n_rows
    assert dataset.paths is not None
    return replace(
        dataset,
        y_class=dataset.y_class[row],
        is_test=dataset.is_test[row],
        keys=tuple(dataset.keys[i] for i in row),
        paths=tuple(dataset.paths[i] for i in row),
    )


def measure_extraction(images: Dataset, config: Config, folder: Path) -> tuple[Extraction, RowFeatures]:
    """Seconds per image and crop, and the features that were made on the way."""
    backbone = config.backbone.model_copy(update={"cache": "store", "views": max(2, min(4, config.backbone.views))})
    ticks: list[float] = []
    start = time.perf_counter()

    def tick(done: int, total: int) -> None:
        ticks.append(time.perf_counter())

    features = open_features(images, backbone, folder, device=config.device, progress=tick)
    per_image = (ticks[-1] - ticks[N_SKIPPED - 1]) / (len(ticks) - N_SKIPPED)
    start_s = max(0.0, ticks[-1] - start - per_image * len(ticks))
    decode_s = min(decode_seconds(images, backbone.image_size) / (os.cpu_count() or 1), per_image / 2)
    return Extraction(start_s, decode_s, (per_image - decode_s) / backbone.views), features


def decode_seconds(images: Dataset, image_size: int) -> float:
    """Seconds of one core per image."""
    assert images.paths is not None
    jobs = [views.ViewJob(str(images.paths[i]), images.keys[i], (0, 1)) for i in range(N_SKIPPED)]
    spec = views.ViewSpec(image_size)
    return seconds_of(lambda: [views.load_views(job, spec) for job in jobs]) / len(jobs)


def measure_embedding(encoder: TextEncoder) -> Embedding:
    """Seconds to open the encoder, and per text and character."""
    opened_s = _once(lambda: encoder(["one"]))
    rng = generator(0, "measure", "texts")
    short, long = ([_made_up(rng, n_words) for _ in range(n)] for n, n_words in (SHORT_TEXTS, LONG_TEXTS))
    few, many = ((_chars(texts), seconds_of(partial(encoder, texts)) / len(texts)) for texts in (short, long))
    char_s = max(0.0, (many[1] - few[1]) / (many[0] - few[0]))
    return Embedding(opened_s, max(0.0, few[1] - char_s * few[0]), char_s)


def _made_up(rng: np.random.Generator, n_words: int) -> str:
    """Words of everyday English, as many as sentences vary in length."""
    n = int(rng.integers(n_words // 2, 2 * n_words - n_words // 2 + 1))
    return " ".join(rng.choice(_WORDS, n).tolist())


def _chars(texts: Sequence[str]) -> float:
    return sum(map(len, texts)) / len(texts)


def _random_rows(n: int, dim: int, dropout: float = 0.0) -> EmbeddingRows:
    return EmbeddingRows(generator(0, "measure", "rows").standard_normal((n, dim), dtype=np.float32), dropout)


@dataclass(frozen=True)
class _Timed:
    """A short run, and the seconds of its fastest epoch."""

    outcome: Outcome
    epoch_s: float


def measure_training(features: RowFeatures, config: TrainConfig, folder: Path, device: torch.device = CPU) -> Training:
    """Steps and predictions with few and many slots; the floors keep noise from making anything free."""
    short = {"init": "random", "base_epochs": N_EPOCHS, "round_epochs": N_EPOCHS, "map_every": 0}
    config = config.model_copy(update=short)
    one, long = config.batch_size, features.n_rows
    train = partial(_train, features, config, device)
    few = train(folder / "few", one, FEW_SLOTS)
    few_long = train(folder / "few-long", long, FEW_SLOTS)
    many_long = train(folder / "many-long", long, MANY_SLOTS)
    predict = [_predict_seconds(run.outcome, features) for run in (few_long, many_long)]
    step_few = max(few_long.epoch_s - few.epoch_s, 0.2 * few_long.epoch_s) / (LONG - 1)
    epoch_s = max(0.0, few.epoch_s - step_few - N_LABELLED * predict[0])
    step_many = max(step_few, (many_long.epoch_s - epoch_s - N_LABELLED * predict[1]) / LONG)
    queried = []
    for run, step, row in ((few, step_few, predict[0]), (many_long, step_many, predict[1])):
        again = train(folder / f"round-{run.outcome.fitted.n_slots}", one, 0, run.outcome)
        beside = epoch_s + step + 2 * (N_LABELLED + N_ASKED) * row
        queried.append(max(0.05 * step, again.epoch_s - beside) / -(-N_ASKED // config.query_batch_size))
    return Training(
        item_bytes=_item_bytes(features),
        step=line_through(step_few, step_many),
        queried_step=line_through(*queried),
        predict=line_through(*predict),
        epoch_s=epoch_s,
        model_bytes=line_through(*(_model_bytes(run.outcome, folder) for run in (few_long, many_long))),
    )


def line_through(at_few: float, at_many: float) -> Line:
    """Through both points; noise must not make more slots cheaper."""
    slope = max(0.0, (at_many - at_few) / (MANY_SLOTS - FEW_SLOTS))
    return Line(max(0.0, at_few - slope * FEW_SLOTS), slope)


def _train(
    features: RowFeatures,
    config: TrainConfig,
    device: torch.device,
    folder: Path,
    n_rows: int,
    n_slots: int,
    start: Outcome | None = None,
) -> _Timed:
    """Base training on the first ``n_rows``, or a round from ``start`` with some answers."""
    ticks: list[float] = []
    folder.mkdir(parents=True)
    number = 0 if start is None else 1
    job = TrainingJob(
        features,
        _labels(features.n_rows, n_rows, N_ASKED * number),
        n_slots,
        0,
        number,
        folder,
        start.fitted if start else None,
        start.last if start else None,
        echo=lambda line: ticks.append(time.perf_counter()),
        device=device,
    )
    outcome = fit(config, job)
    return _Timed(outcome, float(np.diff(ticks).min()))


def _labels(n_rows: int, n_used: int, n_asked: int) -> LabelState:
    """Labels of a few classes on the first rows, then answers; rows from ``n_used`` on play no part."""
    n_old = FEW_SLOTS // 2
    row = np.arange(n_rows)
    answered = (row >= N_LABELLED) & (row < N_LABELLED + n_asked)
    y_class = np.where((row < N_LABELLED) | answered, row % n_old, -1)
    asked_round = np.where(answered, 1, np.where(row < N_LABELLED, 0, -1))
    classes = tuple(f"class {c}" for c in range(n_old))
    return LabelState(classes, n_old, y_class, asked_round, row >= n_used, np.zeros(n_rows, dtype=bool))


def _predict_seconds(outcome: Outcome, features: RowFeatures) -> float:
    rows = np.arange(features.n_rows)
    return seconds_of(lambda: outcome.fitted.predict(features, rows)) / len(rows)


def _item_bytes(features: RowFeatures) -> int:
    item = features.read(np.zeros(1, np.int64), np.zeros(1, np.int64))
    return item.numel() * item.element_size()


def _model_bytes(outcome: Outcome, folder: Path) -> int:
    path = folder / f"model-{outcome.fitted.n_slots}.safetensors"
    outcome.fitted.save(path)
    return path.stat().st_size


def measure_kmeans(dim: int, n: int = 4096, n_slots: int = 64) -> float:
    """Seconds of one run per row, slot and dimension, on rows around as many centres as there are slots."""
    rng = generator(0, "measure", "kmeans")
    centres = rng.standard_normal((n_slots, dim), dtype=np.float32)
    x = centres[rng.integers(0, n_slots, n)] + rng.standard_normal((n, dim), dtype=np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y_class = np.where(np.arange(n) < n // 10, np.arange(n) % (n_slots // 2), -1)
    return _once(lambda: semi_supervised_kmeans(x, y_class, n_slots, rng, n_init=1)) / (n * n_slots * dim)


def measure_selection(config: Config, dim: int, n: int = 16384, n_slots: int = 128, budget: int = 32) -> float:
    """Seconds of the configured strategy per cell."""
    rng = generator(0, "measure", "selection")
    features = rng.standard_normal((n, dim), dtype=np.float32)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    probs = rng.dirichlet(np.full(n_slots, 0.1), n).astype(np.float32)
    view = PoolView(
        np.arange(n), probs, features, features[:N_LABELLED], np.arange(N_LABELLED) % (n_slots // 2), n_slots // 2
    )
    name = config.query.strategy
    spent = seconds_of(lambda: select(view, name, budget, generator(0, "measure"), config.query.options))
    return spent / selection_cells(name, n, n_slots, dim, budget)


def measure_neighbours(dim: int, n: int = 4096) -> float:
    """Seconds of finding nearest neighbours per pair of rows and dimension."""
    x = generator(0, "measure", "neighbours").standard_normal((n, dim), dtype=np.float32)
    return seconds_of(lambda: Neighbours.of(x), repeats=1) / neighbour_cells(n, dim)


def measure_disk(path: Path) -> float:
    """Bytes per second of reading a file that is not in memory, where the system lets one put it out."""
    path.write_bytes(generator(0, "measure", "disk").bytes(PROBE_BYTES))
    with path.open("rb") as file:
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        spent = _once(lambda: file.read())
    path.unlink()
    return PROBE_BYTES / spent


def _name_of(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def machine_memory() -> int:
    """Bytes of memory, 8 GB where the system does not tell."""
    names = getattr(os, "sysconf_names", {})
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if "SC_PHYS_PAGES" in names else 8 * 2**30


def peak_memory() -> int:
    """Bytes this process has held at most, 1 GB where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 2**30
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def seconds_of(call: Callable[[], Any], repeats: int = 3) -> float:
    """The fastest of a few calls, the first of which warms up."""
    return min([_once(call) for _ in range(repeats + 1)][1:])


def _once(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
