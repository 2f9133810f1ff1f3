"""Small made-up data for tests: no network, no weights, no files of others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from agcd.rng import generator
from agcd.types import UNLABELLED, Dataset, LabelState

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


def labels_as_given(dataset: Dataset) -> LabelState:
    """A practitioner's start, written down apart from the project's: every label of a train row counts."""
    known = np.unique(dataset.y_class[~dataset.is_test & (dataset.y_class >= 0)])
    place = np.full(len(dataset.classes) + 1, UNLABELLED, dtype=np.int64)  # the last entry serves y_class = −1
    place[known] = np.arange(len(known))
    y_class = np.where(dataset.is_test, UNLABELLED, place[dataset.y_class])
    asked_round = np.where(y_class >= 0, 0, -1).astype(np.int64)
    nobody = np.zeros(len(y_class), np.bool_)
    names = tuple(dataset.classes[c] for c in known)
    return LabelState(names, len(names), y_class, asked_round, dataset.is_test.copy(), nobody)
