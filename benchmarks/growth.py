"""How the cost of features and training grows with images, slots, width and views.

    python benchmarks/growth.py [--quick] [--plots DIR]

Training: ``SimGCD.fit`` over random ViT tokens in a store. Features: ``open_features`` of made-up JPEGs through the
default network at 64 pixels. Output is Markdown.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from agcd.config import BackboneConfig
from agcd.engine.measure import make_images
from agcd.features import open_features
from agcd.types import Dataset
from epoch import cached_epochs, vit
from stored_tokens import StoredTokens

WIDTHS = {192: "vit_tiny_patch16_224", 384: "vit_small_patch16_224", 768: "vit_base_patch16_224"}
Points = tuple[Sequence[int], list[float]]


def epoch_seconds(n_rows: int, n_slots: int = 100, width: int = 384) -> float:
    """Seconds of an epoch in a longer run."""
    with tempfile.TemporaryDirectory() as folder:
        features = StoredTokens(Path(folder), vit(WIDTHS[width]), n_rows)
        return (cached_epochs(features, n_slots, 3) - cached_epochs(features, n_slots, 1)) / 2


def features_seconds(photographs: Dataset, n_views: int) -> float:
    """Seconds per 1,000 images."""
    config = BackboneConfig(image_size=64, views=n_views)
    with tempfile.TemporaryDirectory() as cache:
        start = time.perf_counter()
        open_features(photographs, config, Path(cache), progress=lambda done, total: None)
        return 1000 * (time.perf_counter() - start) / photographs.n_rows


def measured(values: Sequence[int], cost: Callable[[int], float]) -> Points:
    return values, [cost(value) for value in values]


def plot(panels: dict[str, tuple[str, Points]], folder: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(panels), figsize=(3.2 * len(panels), 3), layout="constrained")
    for axis, (what, (unit, (x, y))) in zip(axes, panels.items(), strict=True):
        axis.plot(x, y, marker="o")
        axis.set(xlabel=what, ylabel=unit, xlim=(0, None), ylim=(0, None))
        axis.grid(alpha=0.3)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "growth.png", dpi=120)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a quarter of the images")
    parser.add_argument("--plots", type=Path, help="folder for growth.png")
    options = parser.parse_args(argv)
    n = 512 if options.quick else 2048
    with tempfile.TemporaryDirectory() as folder:
        photographs = make_images(Path(folder), n // 8)
        panels = {
            "images N (K = 100, d = 384)": ("s an epoch", measured((n // 2, n, 2 * n), epoch_seconds)),
            "slots K (d = 384)": ("s an epoch", measured((50, 100, 300, 1000), lambda k: epoch_seconds(n, k))),
            "width d (K = 100)": ("s an epoch", measured(list(WIDTHS), lambda d: epoch_seconds(n, 100, d))),
            "views V": ("s per 1,000 images", measured((1, 2, 4, 8), lambda v: features_seconds(photographs, v))),
        }
    print(f"N = {n:,} where it does not grow; the store grows with N and V in proportion.\n")
    for what, (unit, (x, y)) in panels.items():
        print(f"| {what} | " + " | ".join(f"{value:,}" for value in x) + " |\n" + "|---" * (len(y) + 1) + "|")
        print(f"| {unit} | " + " | ".join(f"{value:.2f}" for value in y) + " |\n")
    if options.plots:
        plot(panels, options.plots)


if __name__ == "__main__":
    main()
