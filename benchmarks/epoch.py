"""A whole epoch of base training over cached tokens, against the plain way.

    python benchmarks/epoch.py [--quick] [--plots DIR]

Ours: ``SimGCD.fit`` for one epoch over a store of random ViT-S/16 tokens, two views an image, with k-means start,
mapping, checkpoint and log. Plain: the same losses and optimiser on batches that go through the whole network, timed
for 20 steps and multiplied; decoding is not counted for it. ``--plots`` shows how a step grows with the number of
slots and with the width of the network.
"""

from __future__ import annotations

import argparse
import math
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
from agcd.discovery.heads import DiscoveryModel
from agcd.discovery.job import Job
from agcd.discovery.runs import make_optimiser
from agcd.discovery.simgcd import SimGCD, original_loss
from agcd.features.torchvision_compat import import_timm
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
        SimGCD(config).fit(Job(features, half_labelled(features.n_rows), n_slots, 0, 0, Path(folder)))
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


def growth(n_rows: int, plots: Path | None) -> None:
    """Seconds per epoch against slots and width."""
    slots: Sequence[int] = (50, 100, 300, 1000)
    widths = {"vit_tiny_patch16_224": 192, "vit_small_patch16_224": 384, "vit_base_patch16_224": 768}
    by_slots, by_width = [], []
    for name, width in widths.items():
        with tempfile.TemporaryDirectory() as folder:
            features = StoredTokens(Path(folder), vit(name), n_rows)
            by_width.append(_epoch_of(features, 2 * N_OLD))
            if width == 384:
                by_slots = [_epoch_of(features, n) for n in slots]
    steps = math.ceil(n_rows / 128)
    print("| slots K (d = 384) | " + " | ".join(f"{max(N_OLD, n):,}" for n in slots) + " |")
    print("|---" * (len(slots) + 1) + "|")
    print("| ms a step | " + " | ".join(f"{1e3 * s / steps:.0f}" for s in by_slots) + " |\n")
    print(
        "| width d (K = 100) | "
        + " | ".join(str(d) for d in widths.values())
        + " |\n"
        + "|---" * (len(widths) + 1)
        + "|"
    )
    print("| ms a step | " + " | ".join(f"{1e3 * s / steps:.0f}" for s in by_width) + " |")
    if plots:
        _plot(plots, [max(N_OLD, n) for n in slots], by_slots, list(widths.values()), by_width, steps)


def _epoch_of(features: StoredTokens, n_slots: int) -> float:
    return (cached_epochs(features, n_slots, 3) - cached_epochs(features, n_slots, 1)) / 2


def _plot(
    plots: Path, slots: list[int], by_slots: list[float], widths: list[int], by_width: list[float], steps: int
) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True, constrained_layout=True)
    for axis, x, y, name in (
        (axes[0], slots, by_slots, "slots K (d = 384)"),
        (axes[1], widths, by_width, "width d (K = 100)"),
    ):
        axis.loglog(x, [1e3 * s / steps for s in y], marker="o")
        axis.set_xlabel(name)
        axis.grid(alpha=0.3, which="both")
    axes[0].set_ylabel("ms a step of 128 images")
    plots.mkdir(parents=True, exist_ok=True)
    figure.savefig(plots / "training-growth.png", dpi=120)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the images, two plain steps")
    parser.add_argument("--plots", type=Path, help="folder for training-growth.png")
    options = parser.parse_args(argv)
    compare(600 if options.quick else 6000, 2 if options.quick else 20)
    growth(512 if options.quick else 2048, options.plots)


if __name__ == "__main__":
    main()
