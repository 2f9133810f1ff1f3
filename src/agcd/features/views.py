"""Views: the crops of an image, decided by its content, the view's number and nothing else.

This is the reference augmentation: short side to 256/224 of the crop, a random crop, a flip half of the time.
View 0 is the test view, a centred crop without flip. Decoding workers import this module, so it stays free of
torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agcd.data.images import ImageError, decode, read_file
from agcd.io import digest_bytes
from agcd.rng import generator

MAX_ASPECT = 8
"""Longer images lose their ends: a 1 × 100,000 strip would otherwise grow to gigabytes when enlarged."""


@dataclass(frozen=True)
class ViewSpec:
    """All that decides the pixels of a view, apart from the image."""

    image_size: int
    seed: int = 0

    @property
    def resize(self) -> int:
        """Length of the short side before cropping."""
        return round(self.image_size * 256 / 224)


class ViewJob(NamedTuple):
    """One file to decode: where it is, what its content was when it was scanned, and which views are wanted."""

    path: str
    key: str
    views: tuple[int, ...]


class Bad(NamedTuple):
    """Why a file has no views; ``lasting`` if it is the content that is at fault and not just the file."""

    reason: str
    lasting: bool


def view_box(key: str, view: int, size: tuple[int, int], spec: ViewSpec) -> tuple[int, int, bool]:
    """Left, top and flip of a view inside the resized image of ``size`` (width, height)."""
    width, height = (side - spec.image_size for side in size)
    if view == 0:
        return width // 2, height // 2, False
    draw = generator(spec.seed, "view", key, view)
    return int(draw.integers(width + 1)), int(draw.integers(height + 1)), bool(draw.integers(2))


def render(image: Image.Image, key: str, views: Sequence[int], spec: ViewSpec) -> NDArray[np.uint8]:
    """The wanted views of one image, (n, image_size, image_size, 3); it is resized once."""
    pixels = np.asarray(_resized(image, spec.resize))
    crops = np.empty((len(views), spec.image_size, spec.image_size, 3), dtype=np.uint8)
    for crop, view in zip(crops, views, strict=True):
        left, top, flip = view_box(key, view, (pixels.shape[1], pixels.shape[0]), spec)
        part = pixels[top : top + spec.image_size, left : left + spec.image_size]
        crop[:] = part[:, ::-1] if flip else part
    return crops


def _resized(image: Image.Image, short: int) -> Image.Image:
    """The image with its short side at ``short``, the long one in proportion."""
    width, height = image.size
    longest = min(width, height) * MAX_ASPECT
    if max(width, height) > longest:
        left, top = max(0, (width - longest) // 2), max(0, (height - longest) // 2)
        image = image.crop((left, top, left + min(width, longest), top + min(height, longest)))
        width, height = image.size
    scale = short / min(width, height)
    size = (max(short, round(width * scale)), max(short, round(height * scale)))
    return image if size == image.size else image.resize(size, Image.Resampling.BICUBIC)


def load_views(job: ViewJob, spec: ViewSpec) -> NDArray[np.uint8] | Bad:
    """Decode and render one file, or say why not; it never raises on account of the file."""
    try:
        content = read_file(Path(job.path))
    except ImageError as error:
        return Bad(error.reason, lasting=False)
    if job.key.startswith("b2-") and digest_bytes(content) != job.key:
        return Bad("the file changed after it was scanned", lasting=False)
    try:
        return render(decode(content, draft_size=spec.resize), job.key, job.views, spec)
    except ImageError as error:
        return Bad(error.reason, lasting=True)
