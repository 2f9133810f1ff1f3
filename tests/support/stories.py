"""A made-up but likely story for the report's tests: coloured shapes, five rounds, one rival."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from agcd.report import ClassStrip, Confidence, FeatureMap, RoundFacts, Story
from agcd.rng import generator
from agcd.types import FloatArray, IntArray

COLOURS = ("crimson", "seagreen", "royalblue", "darkorange", "purple", "teal", "goldenrod")
SHAPES = ("circle", "square")
NAMES = tuple(f"{colour} {shape}" for shape in SHAPES for colour in COLOURS)
PER_CLASS = 100
HOSTILE = (
    '<script>alert("x")</script>',
    "<img src=x onerror=alert(1)>",
    "$\\frac{1$ _{",
    "_under",
    "\u202eإختبار\u202c",
    "日本語の名前",
    "x" * 4096,
    "a\nb\x00\tc",
    "\ud800 lone",
    "",
    "\"quoted' & co",
    "{{ 7 * 7 }} %s",
    "$$",
    "back\\slash",
)
"""Names that a person or a file system may well hand us."""


def toy_thumbnail(row: int) -> Image.Image:
    """A shape of the row's class on a photograph-like frame; rows number the classes in blocks of ``PER_CLASS``."""
    rng = generator(row, "thumbnail")
    c = row // PER_CLASS % len(NAMES)
    width, height = ((160, 120), (120, 160), (128, 128), (300, 100))[int(rng.integers(4))]
    shade = tuple(int(v) for v in rng.integers(215, 250, 3))
    image = Image.new("RGB", (width, height), shade)
    radius = int(rng.integers(25, 40))
    x, y = width // 2 + int(rng.integers(-10, 10)), height // 2 + int(rng.integers(-10, 10))
    draw = ImageDraw.Draw(image)
    paint = draw.ellipse if c < len(COLOURS) else draw.rectangle
    paint((x - radius, y - radius, x + radius, y + radius), fill=COLOURS[c % len(COLOURS)])
    return image


def toy_rounds(n_rounds: int = 6, gain: float = 0.09) -> tuple[RoundFacts, ...]:
    """Accuracies that rise and flatten, novel ones faster than old ones."""
    rounds = []
    for t in range(n_rounds):
        rise = gain * t * (1 - 0.07 * t)
        old, new = 0.90 - 0.01 * t + 0.02 * (t % 2), 0.42 + 1.25 * rise
        asked: dict[str, Any] = {} if t == 0 else _asked(t)
        rounds.append(RoundFacts(t, 7 * t, (old + new) / 2, old, new, agreement=0.8 + 0.03 * t, **asked))
    return tuple(rounds)


def _asked(t: int) -> dict[str, Any]:
    ratio, uniformity = 0.7 + 0.02 * t, 0.9 + 0.015 * t
    moves = tuple(f"“{NAMES[7 + i]}” moved from slot {7 + i} to slot {8 + i}" for i in range(max(0, 6 - 2 * t)))
    return {
        "nov_coverage": min(1.0, 0.5 + 0.15 * t),
        "nov_ratio": ratio,
        "nov_uniformity": uniformity,
        "nov_information": ratio * uniformity,
        "phase": "confident" if t < 3 else "informative",
        "mapping_diff": len(moves) / 14,
        "mapping_changes": moves,
        "best_on_test": 0.75 + 0.02 * t,
    }


def toy_map(title: str, spread: float, n_classes: int = 14, n_per_class: int = 40) -> FeatureMap:
    """Gaussian clouds around a ring; a large ``spread`` lets them overlap. A few points are of no known class."""
    rng = generator(0, title)
    y_class = np.repeat(np.arange(n_classes), n_per_class)
    angle = 2 * np.pi * y_class / n_classes
    radius = np.where(y_class % 2, 4.0, 7.0)
    centre = np.stack([np.cos(angle), np.sin(angle)], axis=1) * radius[:, None]
    xy = centre + rng.normal(0, spread, (len(y_class), 2))
    queried = rng.random(len(y_class)) < 0.06
    is_new = y_class >= n_classes // 2
    y_class = np.where(rng.random(len(y_class)) < 0.05, -1, y_class)
    names = NAMES if n_classes == 14 else tuple(f"species {c}" for c in range(n_classes))
    return FeatureMap(title, xy, y_class, is_new, queried & is_new, names)


def toy_confidence(title: str, new: float) -> Confidence:
    rng = generator(1, title)
    return Confidence(title, _likely(rng.beta(9, 1.5, 400)), _likely(rng.beta(new, 2, 400)))


def _likely(values: FloatArray) -> FloatArray:
    return np.asarray(np.clip(values, 1 / 14, 1))


def toy_strips(n_classes: int = 14, n_old: int = 7) -> tuple[ClassStrip, ...]:
    """One strip per class; the last class is small and has no name yet."""
    strips = []
    for c in range(n_classes):
        rows = np.arange(c * PER_CLASS, c * PER_CLASS + 30, dtype=np.int64)
        name = NAMES[c] if c < len(NAMES) - 1 else f"unnamed #{c}"
        asked: IntArray = rows[20 : 20 + 6 * (c >= n_old)]
        size = 40 + 37 * c % 91
        strips.append(ClassStrip(name, c >= n_old, size, rows[:12], asked, 0.8))
    return tuple(strips)


def toy_story(**changes: object) -> Story:
    """The whole story with every part filled in."""
    story = Story(
        title="Discovery in “shapes”",
        subtitle="14 classes, 7 of them known from the start, efficientnet_lite0 features",
        facts=(
            ("Images", "1,400 (1,120 to learn from, 280 to test)"),
            ("Labelled at the start", "112 (20 % of the old classes)"),
            ("Strategy", "adaptive_novel, 7 questions a round"),
            ("Seed", "0"),
        ),
        rounds=toy_rounds(),
        rivals={"Random": toy_rounds(gain=0.06)},
        confidence=(toy_confidence("before", 3.0), toy_confidence("after", 7.0)),
        maps=(toy_map("before", 1.1), toy_map("after", 0.55)),
        classes=toy_strips(),
        thumbnail=toy_thumbnail,
        commands=("agcd serve shapes-project", "agcd export shapes-project --to predictions.csv"),
        name="Adaptive novel",
    )
    return dataclasses.replace(story, **changes)  # type: ignore[arg-type]


def without_truth() -> Story:
    """What a practitioner has: answers and agreement, but no accuracies and no novelty."""
    rounds = tuple(RoundFacts(f.number, f.n_labels, phase=f.phase, agreement=f.agreement) for f in toy_rounds())
    strips = tuple(dataclasses.replace(strip, purity=None) for strip in toy_strips())
    return toy_story(rounds=rounds, rivals={}, confidence=(), classes=strips)
