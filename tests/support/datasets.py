"""Small made-up data for tests: no network, no weights, no files of others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from agcd.rng import generator
from agcd.types import Dataset

SHAPES = ("circle", "square", "triangle")
COLOURS = ("red", "green", "blue", "orange", "purple")


def toy_images(folder: Path, *, n_classes: int = 3, n_per_class: int = 4, size: int = 32, seed: int = 0) -> Path:
    """Write ``folder/<colour>-<shape>/NN.png``: shapes that differ in place and size; returns ``folder``."""
    rng = generator(seed, "toy_images")
    for c in range(n_classes):
        colour, shape = COLOURS[c % len(COLOURS)], SHAPES[(c // len(COLOURS) + c) % len(SHAPES)]
        target = folder / f"{colour}-{shape}"
        target.mkdir(parents=True, exist_ok=True)
        for i in range(n_per_class):
            image = Image.new("RGB", (size, size), "white")
            radius = int(rng.integers(size // 6, size // 3))
            x, y = (int(v) for v in rng.integers(radius, size - radius, size=2))
            _draw(ImageDraw.Draw(image), shape, (x - radius, y - radius, x + radius, y + radius), colour)
            image.save(target / f"{i:02d}.png")
    return folder


def _draw(draw: ImageDraw.ImageDraw, shape: str, box: tuple[int, int, int, int], colour: str) -> None:
    left, top, right, bottom = box
    if shape == "circle":
        draw.ellipse(box, fill=colour)
    elif shape == "square":
        draw.rectangle(box, fill=colour)
    else:
        draw.polygon([(left, bottom), (right, bottom), ((left + right) // 2, top)], fill=colour)


def toy_rows(counts: list[int], n_test: int = 1, n_unlabelled: int = 0) -> Dataset:
    """A data set with ``counts[c]`` train rows and ``n_test`` test rows of each class c; contents do not matter."""
    train = np.repeat(np.arange(len(counts)), counts)
    y_class = np.concatenate([train, np.full(n_unlabelled, -1), np.repeat(np.arange(len(counts)), n_test)])
    n_train = len(train) + n_unlabelled
    return Dataset(
        name="rows",
        classes=tuple(f"c{c}" for c in range(len(counts))),
        y_class=y_class.astype(np.int64),
        is_test=np.arange(len(y_class)) >= n_train,
        keys=tuple(f"k{row}" for row in range(len(y_class))),
        x=np.zeros((len(y_class), 2), dtype=np.float32),
    )
