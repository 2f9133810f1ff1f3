"""From an image file to the pixels that a classifier reads: the test view, as code and in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agcd.data.images import decode, read_file
from agcd.features import views
from agcd.features.views import ViewSpec, render


def preprocess(path: Path, image_size: int) -> NDArray[np.uint8]:
    """The test view (image_size, image_size, 3) of an image file, RGB: what the exported classifiers take."""
    spec = ViewSpec(image_size)
    image = decode(read_file(path), draft_size=spec.resize)
    return np.asarray(render(image, "", (0,), spec)[0])


def preprocessing_facts(
    image_size: int, mean: tuple[float, float, float], std: tuple[float, float, float]
) -> dict[str, Any]:
    """The same in words and numbers, for programs that do not use agcd."""
    resize = ViewSpec(image_size).resize
    return {
        "steps": [
            "decode to RGB with 8 bits, turned upright by its EXIF orientation, transparency laid on white; "
            f"a JPEG may be decoded at 1/2, 1/4 or 1/8 scale while both sides stay at least {resize}",
            f"cut the middle out of images more than {views.MAX_ASPECT} times as long as wide",
            f"resize with bicubic interpolation and antialiasing (Pillow) so that the short side is {resize}",
            f"cut out the {image_size} × {image_size} pixels in the middle, rounding left and top down",
            "divide by 255, subtract mean, divide by std, each per channel (inside the exported model)",
        ],
        "resize_short_side": resize,
        "interpolation": "bicubic",
        "crop": image_size,
        "channels": "RGB",
        "mean": list(mean),
        "std": list(std),
    }
