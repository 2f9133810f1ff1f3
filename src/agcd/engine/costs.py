"""What a project will cost: disk, memory and time from its sizes, its settings and what was measured here.

Pure arithmetic over a ``Machine`` (see ``machine`` for where its numbers come from). Times are those of one process
that has the machine to itself; a factor of two either way is what to expect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import mean
from typing import Any, NamedTuple

import numpy as np

from agcd.config import Config
from agcd.propagation import CELL_ROWS, EXACT_ROWS, NEARBY_CELLS
from agcd.strategies import get_strategy, growth_of, strategy_options
from agcd.types import Dataset

KMEANS_STARTS = 3
"""Runs of k-means before base training (``discovery.job.new_model``)."""
PREDICTION_BYTES = 32
"""One row of predictions.parquet."""
BLOCK_BYTES = 400_000_000
"""What one block of inference and its intermediate results take at most."""
LIVE_ROWS = 10_000
"""Rows whose neighbours the first question waits for, at most (``agcd.app.live_rows``)."""
LIVE_SHARE = 0.5
"""Of that wait which finding neighbours takes; clusters and the question itself take the rest (0.37 of 0.78 s for 4,096
rows of 384 numbers, 1.8 of 3.3 s for 10,000)."""
TYPICAL_CHARS = 100
"""Of a text, where only their number is known: a sentence or two."""


class Line(NamedTuple):
    """Something that grows with the number of slots."""

    fixed: float
    per_slot: float

    def at(self, n_slots: int) -> float:
        return self.fixed + self.per_slot * n_slots


@dataclass(frozen=True)
class Extraction:
    """Seconds with all cores at work: to start, per image to decode, per crop through the frozen prefix."""

    start_s: float
    decode_s: float
    crop_s: float


@dataclass(frozen=True)
class Embedding:
    """Seconds with all cores at work: to open the sentence encoder, per text, and per character of it."""

    start_s: float
    text_s: float
    char_s: float

    def seconds(self, n_chars: float) -> float:
        """Of one text."""
        return self.text_s + self.char_s * n_chars


@dataclass(frozen=True)
class Training:
    """One tail: bytes of a cached crop, seconds per training step and predicted row, and the stored model's bytes."""

    item_bytes: int
    step: Line
    queried_step: Line
    predict: Line
    """Seconds per row."""
    epoch_s: float
    """What every epoch costs beside its steps and predictions: the mapping and the stored state."""
    model_bytes: Line


@dataclass(frozen=True)
class Machine:
    """What was measured on one machine with one set of settings (backbone, trainer, batch sizes, strategy)."""

    memory_bytes: int
    disk_bytes_per_s: float
    process_bytes: int
    """Memory of a small run: libraries, network, one batch."""
    dim: int
    kmeans_s: float
    """Seconds of one run of k-means per row, slot and dimension."""
    select_s: float
    """Seconds of the strategy per cell, see ``selection_cells``."""
    tail: Training
    pooled: Training | None = None
    """The adapter that takes the tail's place when no block is trained."""
    extraction: Extraction | None = None
    """None for texts and embeddings."""
    embedding: Embedding | None = None
    """None for images and embeddings."""
    neighbour_s: float = 0.0
    """Seconds of finding nearest neighbours per pair of rows and dimension."""
    device: str = "cpu"
    """Where features, training and predictions were measured, by name: of another one these numbers say nothing."""


@dataclass(frozen=True)
class Size:
    """How much there is: rows to train on (labelled or not) and to test on, slots, and labels at the start."""

    n_train: int
    n_test: int
    n_slots: int
    n_labelled: int
    n_chars: float = 0.0
    """Characters of a text on average; 0 where rows are no texts."""


@dataclass(frozen=True)
class Costs:
    """Bytes and seconds; ``round_s`` and ``query_s`` are those of an average round."""

    disk_bytes: int
    memory_bytes: int
    """What the process itself holds; cached features are mapped from disk and only profit from free memory."""
    extraction_s: float
    base_s: float
    round_s: float
    query_s: float
    n_rounds: int
    first_question_s: float = 0.0
    """Until the page can ask: it waits for features, and for no training."""

    @property
    def total_s(self) -> float:
        return self.extraction_s + self.base_s + self.n_rounds * (self.round_s + self.query_s)


def size_of(dataset: Dataset, n_slots: int) -> Size:
    """The sizes of a data set as it stands, with all of its train labels."""
    is_train = ~dataset.is_test
    n_labelled = int(((dataset.y_class >= 0) & is_train).sum())
    return Size(int(is_train.sum()), int(dataset.is_test.sum()), n_slots, n_labelled, mean_length(dataset))


def mean_length(dataset: Dataset) -> float:
    """Characters of a text in the mean; 0 where rows are none."""
    return mean(map(len, dataset.texts)) if dataset.texts else 0.0


def estimate(size: Size, config: Config, machine: Machine) -> Costs:
    """What extraction, base training, an average round and its query cost."""
    n_rounds = config.query.rounds
    n_asked = min(_budget(size, config) * (n_rounds + 1) // 2, size.n_train)
    extraction_s = _extraction_seconds(size, config, machine)
    return Costs(
        disk_bytes=_disk_bytes(size, config, machine),
        memory_bytes=_memory_bytes(size, machine),
        extraction_s=extraction_s,
        base_s=_base_seconds(size, config, machine),
        round_s=_round_seconds(size, config, machine, n_asked),
        query_s=_query_seconds(size, config, machine, n_asked),
        n_rounds=n_rounds,
        first_question_s=extraction_s + _live_seconds(size, machine),
    )


def selection_cells(strategy: str, n_rows: int, n_slots: int, dim: int, budget: int) -> int:
    """The work of a strategy by what it says that it grows with (``agcd.types.grows_with``).

    Strategies that compare rows with their picks are often faster than that, as they skip some.
    """
    n_rows = min(n_rows, strategy_options(get_strategy(strategy)).get("max_candidates") or n_rows)
    per_row = {
        "slots": n_slots,
        "features": n_slots + dim,
        "picks": (n_slots + dim) * budget,
        "pairs": (n_slots + dim) * n_rows,
    }
    return n_rows * per_row[growth_of(strategy)]


def _budget(size: Size, config: Config) -> int:
    """Questions per round; half of all slots are taken to be novel."""
    return config.budget(size.n_train - size.n_labelled, size.n_slots // 2)


def _stored_bytes(size: Size, config: Config, machine: Machine) -> int:
    if config.backbone.cache == "off":
        return 0
    if machine.embedding is not None:
        return 2 * machine.dim * (size.n_train + size.n_test)  # float16
    if machine.extraction is None:
        return 0
    return machine.tail.item_bytes * (size.n_train * config.backbone.views + size.n_test)


def _disk_bytes(size: Size, config: Config, machine: Machine) -> int:
    n_rows = size.n_train + size.n_test
    per_run = machine.tail.model_bytes.at(size.n_slots) + PREDICTION_BYTES * n_rows
    return _stored_bytes(size, config, machine) + round((config.query.rounds + 1) * per_run)


def _memory_bytes(size: Size, machine: Machine) -> int:
    """The largest of: k-means over all train rows, and predictions of all rows with what a strategy makes of them."""
    n_rows, dim, n_slots = size.n_train + size.n_test, machine.dim, size.n_slots
    clustering = 4 * size.n_train * (2 * dim + 3 * n_slots)
    predicting = 4 * n_rows * (dim + 2 * n_slots)
    embeddings = 0 if machine.extraction else 8 * n_rows * dim
    block = min(BLOCK_BYTES, 12 * n_rows * dim)
    return machine.process_bytes + embeddings + block + max(clustering, predicting)


def _extraction_seconds(size: Size, config: Config, machine: Machine) -> float:
    """Once; images without a cache are computed whenever they are read instead."""
    if machine.embedding is not None:
        n_rows = size.n_train + size.n_test
        return machine.embedding.start_s + n_rows * machine.embedding.seconds(size.n_chars)
    if machine.extraction is None or config.backbone.cache == "off":
        return 0.0
    start, decode, crop = machine.extraction.start_s, machine.extraction.decode_s, machine.extraction.crop_s
    n_crops = size.n_train * config.backbone.views + size.n_test
    return start + (size.n_train + size.n_test) * decode + n_crops * crop


def _live_seconds(size: Size, machine: Machine) -> float:
    n_rows = min(size.n_train, LIVE_ROWS)
    return machine.neighbour_s * neighbour_cells(n_rows, machine.dim) / LIVE_SHARE


def neighbour_cells(n_rows: int, dim: int) -> int:
    """The work of finding the nearest rows of each (``agcd.propagation.nearest``)."""
    compared = n_rows if n_rows <= EXACT_ROWS else NEARBY_CELLS * CELL_ROWS + n_rows // CELL_ROWS
    return n_rows * compared * dim


def texts_per_second(size: Size, machine: Machine) -> float | None:
    """How fast texts of this length are embedded; None where rows are no texts."""
    return None if machine.embedding is None else 1 / machine.embedding.seconds(size.n_chars)


def _read_seconds(n_crops: int, size: Size, config: Config, machine: Machine) -> float:
    """What reading crops costs on top: nothing from memory, the disk's pace beyond it, all the work without a cache."""
    if machine.extraction is None:
        return 0.0
    if config.backbone.cache == "off":
        return n_crops * (machine.extraction.decode_s + machine.extraction.crop_s)
    stored = _stored_bytes(size, config, machine)
    from_disk = max(0.0, 1 - machine.memory_bytes / max(stored, 1))
    return n_crops * machine.tail.item_bytes * from_disk / machine.disk_bytes_per_s


def _predict_seconds(n_rows: int, size: Size, config: Config, machine: Machine) -> float:
    return n_rows * machine.tail.predict.at(size.n_slots) + _read_seconds(n_rows, size, config, machine)


def _epoch_seconds(size: Size, config: Config, machine: Machine) -> float:
    """The original phase of an epoch, and the mapping after it."""
    batch = min(config.train.batch_size, size.n_train)
    n_steps = max(1, size.n_train // config.train.batch_size)
    one_step = machine.tail.step.at(size.n_slots) * batch / config.train.batch_size
    steps = n_steps * one_step + _read_seconds(2 * n_steps * batch, size, config, machine)
    return steps + machine.tail.epoch_s + _predict_seconds(size.n_labelled, size, config, machine)


def _base_seconds(size: Size, config: Config, machine: Machine) -> float:
    embedded = int(config.train.center) + int(config.train.init == "kmeans")
    start = _predict_seconds(embedded * size.n_train, size, config, machine)
    if config.train.init == "kmeans":
        start += KMEANS_STARTS * machine.kmeans_s * size.n_train * size.n_slots * machine.dim
    epochs = config.train.base_epochs * _epoch_seconds(size, config, machine)
    return start + epochs + _predict_seconds(size.n_train + size.n_test, size, config, machine)


def _round_seconds(size: Size, config: Config, machine: Machine, n_asked: int) -> float:
    n_steps = int(np.ceil(n_asked / config.train.query_batch_size))
    queried = n_steps * machine.tail.queried_step.at(size.n_slots)
    queried += _read_seconds(2 * n_asked, size, config, machine)
    mapped = _predict_seconds(size.n_labelled + 2 * n_asked, size, config, machine)
    epochs = config.train.round_epochs * (_epoch_seconds(size, config, machine) + queried + mapped)
    return epochs + _predict_seconds(size.n_train + size.n_test, size, config, machine)


def _query_seconds(size: Size, config: Config, machine: Machine, n_asked: int) -> float:
    n_pool = max(0, size.n_train - size.n_labelled - n_asked)
    cells = selection_cells(config.query.strategy, n_pool, size.n_slots, machine.dim, _budget(size, config))
    return _predict_seconds(size.n_train, size, config, machine) + cells * machine.select_s


def what_if(size: Size, config: Config, machine: Machine) -> list[tuple[str, Costs]]:
    """What other settings would cost, as (setting, costs): half the views, smaller images, nothing but an adapter."""
    if machine.extraction is None:
        return []
    backbone = config.backbone
    others: list[tuple[str, Config, Machine]] = []
    if backbone.views > 1 and backbone.cache == "store":
        fewer = _with_backbone(config, views=backbone.views // 2)
        others.append((f"backbone.views = {backbone.views // 2}", fewer, machine))
    smaller = backbone.image_size * 5 // 7 // 32 * 32
    if smaller >= 96:
        share = (smaller / backbone.image_size) ** 2
        others.append((f"backbone.image_size = {smaller}", config, _with_smaller_images(machine, share)))
    if machine.pooled is not None and backbone.trainable_blocks:
        pooled = replace(machine, tail=machine.pooled, pooled=None)
        others.append(("backbone.trainable_blocks = 0", _with_backbone(config, trainable_blocks=0), pooled))
    return [(words, estimate(size, other, changed)) for words, other, changed in others]


def _with_backbone(config: Config, **values: Any) -> Config:
    return config.model_copy(update={"backbone": config.backbone.model_copy(update=values)})


def _with_smaller_images(machine: Machine, share: float) -> Machine:
    """Prefix, tokens and tail shrink with the area, about; the head does not."""
    assert machine.extraction is not None
    tail = replace(
        machine.tail,
        item_bytes=round(machine.tail.item_bytes * share),
        step=machine.tail.step._replace(fixed=machine.tail.step.fixed * share),
        predict=machine.tail.predict._replace(fixed=machine.tail.predict.fixed * share),
    )
    return replace(machine, tail=tail, extraction=replace(machine.extraction, crop_s=machine.extraction.crop_s * share))


def describe(costs: Costs) -> list[tuple[str, str]]:
    """The costs as (what, how much), for a table."""
    rounds = f"{costs.n_rounds} round{'s' if costs.n_rounds > 1 else ''}"
    return [
        ("disk", bytes_in_words(costs.disk_bytes)),
        ("memory", bytes_in_words(costs.memory_bytes)),
        ("extraction", seconds_in_words(costs.extraction_s)),
        ("first question", seconds_in_words(costs.first_question_s)),
        ("base training", seconds_in_words(costs.base_s)),
        ("a round", seconds_in_words(costs.round_s)),
        ("a query", seconds_in_words(costs.query_s)),
        (f"all, with {rounds}", seconds_in_words(costs.total_s)),
    ]


def table(settings: Sequence[tuple[str, Costs]]) -> str:
    """Several settings side by side: one column each, lined up for a terminal."""
    columns = [["", *(what for what, _ in describe(settings[0][1]))]]
    columns += [[name, *(amount for _, amount in describe(costs))] for name, costs in settings]
    widths = [max(map(len, column)) for column in columns]
    lines = zip(*columns, strict=True)
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def to_json(costs: Costs) -> dict[str, Any]:
    """Plain bytes and seconds."""
    return asdict(costs) | {"total_s": costs.total_s}


def bytes_in_words(n_bytes: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}" if n_bytes < 10 * size else f"{n_bytes / size:,.0f} {unit}"
    return f"{n_bytes / 1e3:.0f} kB"


def seconds_in_words(seconds: float) -> str:
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}" if seconds < 10 * size else f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
