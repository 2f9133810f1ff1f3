"""A whole epoch of base training over cached tokens, against the plain way.

    python benchmarks/epoch.py [--quick]

Ours: ``SimGCD.fit`` for one epoch over a store of random ViT-S/16 tokens, two views an image, with k-means start,
mapping, checkpoint and log. Plain: the same losses and optimiser on batches that go through the whole network, timed
for 20 steps and multiplied; decoding is not counted for it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stored_tokens import StoredTokens

# isort: split
import torch

from agcd.config import TrainConfig, make_config
from agcd.features.torchvision_compat import import_timm
from agcd.training.heads import DiscoveryModel
from agcd.training.job import TrainingJob
from agcd.training.runs import make_optimiser
from agcd.training.simgcd import SimGCD, original_loss
from agcd.types import LabelState

N_OLD = 50


def vit(name: str) -> Any:
    torch.manual_seed(0)
    return import_timm().create_model(name, num_classes=0).eval()


def half_labelled(n_rows: int) -> LabelState:
    """Fifty old classes; half of their rows, a quarter of all, have labels."""
    y_class = np.where(np.arange(n_rows) % 4 == 0, np.arange(n_rows) // 4 % N_OLD, -1)
    return LabelState(
        tuple(f"class {c}" for c in range(N_OLD)),
        N_OLD,
        y_class,
        np.where(y_class >= 0, 0, -1),
        np.zeros(n_rows, bool),
        np.zeros(n_rows, bool),
    )


def cached_epochs(features: StoredTokens, n_slots: int, n_epochs: int) -> float:
    """Seconds of ``SimGCD.fit`` with that many epochs."""
    config = make_config({"train": {"base_epochs": n_epochs}}).train
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        SimGCD(config).fit(TrainingJob(features, half_labelled(features.n_rows), n_slots, 0, 0, Path(folder)))
        return time.perf_counter() - start


def plain_step(model: Any, n_slots: int, config: TrainConfig, n_steps: int) -> float:
    """Seconds of a step through the whole network."""
    model.requires_grad_(False)
    model.blocks[-1].requires_grad_(True)
    student = DiscoveryModel(model, model.embed_dim, n_slots, (config.projector_width, config.projector_dim), 0)
    optimiser = make_optimiser(student, config)
    crops = torch.randn(2 * config.batch_size, 3, 224, 224)
    y_class = torch.from_numpy(half_labelled(config.batch_size).y_class)
    start = time.perf_counter()
    for _ in range(n_steps):
        optimiser.zero_grad(set_to_none=True)
        original_loss(student(crops), y_class, config.teacher_temp, config).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return (time.perf_counter() - start) / n_steps


def compare(n_rows: int, n_steps: int) -> None:
    config, n_slots = make_config().train, 2 * N_OLD
    model = vit("vit_small_patch16_224")
    with tempfile.TemporaryDirectory() as folder:
        features = StoredTokens(Path(folder), model, n_rows, n_views=2)
        start_up = cached_epochs(features, n_slots, 0)
        one, three = (cached_epochs(features, n_slots, n) for n in (1, 3))
        size = sum(path.stat().st_size for path in Path(folder).rglob("*.npy")) / 1e9
    steps = n_rows // config.batch_size
    plain = steps * plain_step(model, n_slots, config, n_steps)
    print(
        f"{n_rows:,} images, ViT-S/16, {steps} steps of {config.batch_size} images, {torch.get_num_threads()} threads,"
    )
    print(f"store of {size:.1f} GB. Plain: {n_steps} steps, extrapolated.\n")
    print("| | plain | ours | ratio |\n|---|---|---|---|")
    print(
        f"| one epoch in a longer run | {plain:.0f} s | {(three - one) / 2:.1f} s | {2 * plain / (three - one):.0f}× |"
    )
    print(f"| one epoch from nothing, k-means start included | {plain:.0f} s | {one:.1f} s | {plain / one:.0f}× |")
    print(f"\nThe start (features of all rows, k-means, mapping) takes {start_up:.1f} s.\n", flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the images, two plain steps")
    options = parser.parse_args(argv)
    compare(600 if options.quick else 6000, 2 if options.quick else 20)


if __name__ == "__main__":
    main()
