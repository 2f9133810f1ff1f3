"""Pictures that tell which way is up, a project that scanned them, and what may take the place of a file."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from agcd.app.web.pictures import Pictures
from agcd.data.images import thumbnail
from agcd.io import digest_bytes

COLOURS = {"top left": (200, 0, 0), "top right": (0, 200, 0), "bottom left": (0, 0, 200), "bottom right": (200, 200, 0)}


@dataclass(frozen=True)
class Rows:
    """The rows of a made-up project."""

    paths: Sequence[str]
    keys: Sequence[str]
    root: Path

    def picture_file(self, row: int) -> tuple[Path, str]:
        return self.root / self.paths[row], self.keys[row]


def encoded(image: Image.Image, kind: str = "JPEG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def quarters(width: int = 400, height: int = 200) -> Image.Image:
    """A picture whose four quarters tell which way is up."""
    image = Image.new("RGB", (width, height))
    for name, colour in COLOURS.items():
        left, top = width // 2 * ("right" in name), height // 2 * ("bottom" in name)
        image.paste(colour, (left, top, left + width // 2, top + height // 2))
    return image


def corners(jpeg: bytes) -> list[str]:
    """Which colour stands in the middle of each quarter, in the order of ``COLOURS``."""
    pixels = np.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB")).astype(int)
    height, width = pixels.shape[:2]
    found = [pixels[height * y // 4, width * x // 4] for y in (1, 3) for x in (1, 3)]
    return [min(COLOURS, key=lambda name: int(abs(colour - COLOURS[name]).sum())) for colour in found]


def size_of(jpeg: bytes) -> tuple[int, int]:
    image = Image.open(io.BytesIO(jpeg), formats=["JPEG"])
    image.load()
    return image.size


def scanned(folder: Path, *contents: bytes) -> Pictures:
    """The pictures of a project whose files hold ``contents``."""
    root = folder / "images"
    root.mkdir()
    names = [f"{i}.img" for i in range(len(contents))]
    for name, content in zip(names, contents, strict=True):
        (root / name).write_bytes(content)
    return Pictures(Rows(names, [digest_bytes(content) for content in contents], root), folder / "cache")


def counted(monkeypatch: pytest.MonkeyPatch, wait: Callable[[], object] = lambda: None) -> list[float]:
    """The decodings from now on; each calls ``wait`` first."""
    calls: list[float] = []

    def counting(*args: Any, **options: Any) -> Image.Image:
        calls.append(time.monotonic())
        wait()
        return thumbnail(*args, **options)

    monkeypatch.setattr("agcd.data.images.thumbnail", counting)
    return calls


def replace_by_nothing(path: Path) -> None:
    path.unlink()


def replace_by_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_by_device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def replace_by_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)
