"""A folder of made-up images for the benchmark, and settings that train in a second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.blobs import FAST
from support.datasets import toy_images

SMALL: dict[str, Any] = {
    "train": FAST,
    "query": {"rounds": 2, "budget": 3},
    "backbone": {"name": "toy", "image_size": 32, "views": 2},
}


def toy_folder(folder: Path) -> Path:
    for part, n in (("train", 12), ("test", 6)):
        toy_images(folder / part, n_classes=5, n_per_class=n, seed=len(part))
    (folder / "train" / "red-circle" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    return folder
