"""Base training over a cached store: one process with one thread, one with two, and two processes through torchrun.

    python benchmarks/engines.py [--quick]

The store holds random float16 tokens in the shape of ViT-S/16; the tail is that of a randomly initialised ViT-S/16.
Output is Markdown.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

# isort: split

import numpy as np
import torch
from safetensors.torch import save_file

from agcd.config import BackboneConfig, TrainConfig
from agcd.engine import Engine
from agcd.engine.local import LocalEngine
from agcd.engine.torchrun import TorchrunEngine
from agcd.features.backbones import load_backbone
from agcd.features.rows import StoredRows
from agcd.features.store import FeatureStore
from agcd.features.torchvision_compat import import_timm
from agcd.training.job import TrainingJob
from agcd.types import Dataset, LabelState

MODEL = "vit_small_patch16_224"
N_VIEWS, N_SLOTS, N_OLD = 2, 20, 10
ALIKE = 1e-3
"""What losses may differ by after all epochs: rounding errors grow from step to step."""


class Measured(NamedTuple):
    """Losses by epoch, seconds per epoch, and seconds until the first one began."""

    losses: list[float]
    epoch: float
    start: float


def random_features(folder: Path, n_rows: int) -> StoredRows:
    """A full store of random tokens for the tail of a random ViT-S/16."""
    torch.manual_seed(0)
    weights = folder / "weights.safetensors"
    save_file(import_timm().create_model(MODEL, num_classes=0).state_dict(), weights)
    backbone = load_backbone(BackboneConfig(name=MODEL, weights=weights))
    draw = np.random.default_rng(0)
    keys = tuple(f"row-{row}" for row in range(n_rows))
    store = FeatureStore(folder / "features", "random", backbone.token_shape)
    for key in keys:
        values = draw.standard_normal((N_VIEWS, *backbone.token_shape), dtype=np.float32)
        store.add([(key, view) for view in range(N_VIEWS)], values.astype(np.float16))
    y_class = np.arange(n_rows) % N_SLOTS
    dataset = Dataset("random", (), y_class, np.zeros(n_rows, bool), keys)
    return StoredRows(dataset, backbone, store, N_VIEWS, {})


def half_labelled(n_rows: int) -> LabelState:
    """Half of the rows of the old classes carry their label."""
    y_class = np.arange(n_rows) % N_SLOTS
    known = (y_class < N_OLD) & (np.arange(n_rows) // N_SLOTS % 2 == 0)
    nothing = np.zeros(n_rows, bool)
    classes = tuple(f"class {c}" for c in range(N_OLD))
    return LabelState(classes, N_OLD, np.where(known, y_class, -1), np.where(known, 0, -1), nothing, nothing)


def measure(engine: Engine, threads: int, config: TrainConfig, job: TrainingJob) -> Measured:
    """Train with that many threads in all; epochs are timed from the end of the first to the end of the last."""
    torch.set_num_threads(threads)
    ends, losses, began = [], [], time.perf_counter()

    def note(line: dict[str, Any]) -> None:
        ends.append(time.perf_counter())
        losses.append(line["loss"])

    engine.fit(config, TrainingJob(**(vars(job) | {"echo": note})))
    epoch = (ends[-1] - ends[0]) / (len(ends) - 1)
    return Measured(losses, epoch, ends[0] - began - epoch)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rows and epochs")
    quick = parser.parse_args(argv).quick
    n_rows, n_epochs = (256, 8) if quick else (768, 12)
    config = TrainConfig(base_epochs=n_epochs, init="random")
    ways: dict[str, tuple[Engine, int]] = {
        "one process, one thread": (LocalEngine(), 1),
        "one process, two threads": (LocalEngine(), 2),
        "torchrun, two processes of one thread": (TorchrunEngine(2), 2),
    }
    with TemporaryDirectory() as name:
        folder = Path(name)
        features, labels = random_features(folder, n_rows), half_labelled(n_rows)
        steps = f"{n_rows // config.batch_size} steps of {config.batch_size} rows per epoch, {n_epochs} epochs"
        print(f"Base training over {n_rows} rows with {N_VIEWS} views of (198, 384) float16; {steps}.\n")
        print("| engine | s/epoch | speed | start, s | largest difference of a loss |")
        print("|---|---|---|---|---|")
        first: Measured | None = None
        for number, (way, (engine, threads)) in enumerate(ways.items()):
            done = measure(engine, threads, config, TrainingJob(features, labels, N_SLOTS, 0, 0, folder / str(number)))
            first = first or done
            apart = max(abs(a - b) for a, b in zip(first.losses, done.losses, strict=True))
            print(
                f"| {way} | {done.epoch:.2f} | {first.epoch / done.epoch:.2f}× | {done.start:.1f} | {apart:.1e} |",
                flush=True,
            )
            assert apart < ALIKE, f"{way}: losses differ by {apart}"


if __name__ == "__main__":
    main()
