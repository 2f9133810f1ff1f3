"""A folder as a stranger might send it: small files that promise or hold far more than they weigh, and broken ones."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

SIDE = 8000
"""Of the large pictures: 64 million pixels, as many as are allowed."""


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def png_header(width: int, height: int) -> bytes:
    """A PNG that promises many pixels and holds none."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def gif_header(width: int, height: int) -> bytes:
    """A GIF of four by four pixels that promises more."""
    content = bytearray(encoded(Image.new("P", (4, 4)), "GIF"))
    content[6:10] = struct.pack("<HH", width, height)
    return bytes(content)


def float_tiff(side: int = SIDE, seed: int = 0) -> bytes:
    """Float pixels, some of them not numbers, squeezed into a few hundred kilobytes."""
    row = (seed + np.arange(side) // 1000).astype(np.float32)
    row[:3] = (np.nan, np.inf, -np.inf)
    return encoded(Image.fromarray(np.broadcast_to(row, (side, side)).copy()), "TIFF", compression="tiff_adobe_deflate")


def wide_tile_tiff(side: int = 23_000) -> bytes:
    """64 × 64 pixels in one tile of ``side`` × ``side``, which libtiff would hold whole."""
    body = zlib.compress(bytes(4096))
    tags = [
        (256, 4, 64),  # width
        (257, 4, 64),  # height
        (258, 3, 8),  # bits
        (259, 3, 8),  # deflate
        (262, 3, 1),  # black is zero
        (277, 3, 1),  # one sample
        (322, 4, side // 16 * 16),
        (323, 4, side // 16 * 16),
        (324, 4, 8 + 2 + 9 * 12 + 4),
        (325, 4, len(body)),
    ]
    start = 8 + 2 + len(tags) * 12 + 4
    entries = b"".join(struct.pack("<HHII", tag, kind, 1, start if tag == 324 else value) for tag, kind, value in tags)
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + b"\0\0\0\0" + body


def many_scans(n: int = 400, side: int = 512) -> bytes:
    """A progressive JPEG whose last scan comes again and again: little to store, much to do."""
    whole = encoded(Image.effect_noise((side, side), 60).convert("RGB"), "JPEG", progressive=True)
    last = whole.rfind(b"\xff\xda")
    return whole[:-2] + whole[last:-2] * n + b"\xff\xd9"


def animation(kind: str, n_frames: int = 300) -> bytes:
    frames = [Image.new("RGB", (200, 200), (i % 256, 255 - i % 256, i * 7 % 256)) for i in range(n_frames)]
    return encoded(frames[0], kind, save_all=True, append_images=frames[1:])


def large_files() -> dict[str, Callable[[], bytes]]:
    """Within the limit of pixels, or nearly, and dear to decode."""
    size, rotated = (SIDE, SIDE), Image.Exif()
    rotated[0x0112] = 6
    grey16 = np.broadcast_to((np.arange(SIDE) // 2).astype(np.uint16), size)
    return {
        **{f"float{i}.tif": lambda i=i: float_tiff(seed=i) for i in range(4)},  # type: ignore[misc]
        "int32.tif": lambda: encoded(
            Image.fromarray(grey16.astype(np.int32)), "TIFF", compression="tiff_adobe_deflate"
        ),
        "grey16.tif": lambda: encoded(Image.fromarray(grey16.copy()), "TIFF", compression="tiff_adobe_deflate"),
        "grey16.png": lambda: encoded(Image.fromarray(grey16.copy()), "PNG"),
        "rgba.png": lambda: encoded(Image.new("RGBA", size, (9, 99, 199, 128)), "PNG"),
        "palette.png": lambda: encoded(Image.new("P", size), "PNG", transparency=0),
        "turned.png": lambda: encoded(Image.new("RGB", size, "teal"), "PNG", exif=rotated),
        "turned.tif": lambda: encoded(
            Image.new("RGBA", size, "teal"), "TIFF", compression="tiff_adobe_deflate", exif=rotated
        ),
        "cmyk.tif": lambda: encoded(Image.new("CMYK", size), "TIFF", compression="tiff_adobe_deflate"),
        "cmyk.jpg": lambda: encoded(Image.new("CMYK", size), "JPEG"),
        "progressive.jpg": lambda: encoded(Image.new("RGB", size), "JPEG", progressive=True, subsampling=0),
        "large.webp": lambda: encoded(Image.new("RGBA", size, (1, 2, 3, 4)), "WEBP", lossless=True, method=0),
        "large.gif": lambda: encoded(Image.new("P", size), "GIF"),
        "large.bmp": lambda: encoded(Image.new("L", size), "BMP"),
        "tile.tif": wide_tile_tiff,
    }


def broken_files() -> dict[str, Callable[[], bytes]]:
    """Bombs, polyglots, truncated and mislabelled files, and honest but odd ones."""
    small = Image.effect_noise((120, 80), 50).convert("RGB")
    return {
        "bomb.png": lambda: png_header(50_000, 50_000),
        "bomb.gif": lambda: gif_header(60_000, 60_000),
        "thin.png": lambda: encoded(Image.new("L", (1, 100_000)), "PNG"),
        "flat.png": lambda: encoded(Image.new("L", (100_000, 1)), "PNG"),
        "deep.gif": lambda: animation("GIF"),
        "deep.png": lambda: animation("PNG"),
        "deep.webp": lambda: animation("WEBP", 60),
        "scans.jpg": many_scans,
        "cmyk-small.jpg": lambda: encoded(small.convert("CMYK"), "JPEG"),
        "palette-alpha.png": lambda: encoded(small.convert("P"), "PNG", transparency=bytes(range(256))),
        "truncated.jpg": lambda: encoded(small, "JPEG")[:-900],
        "truncated.tif": lambda: encoded(small, "TIFF", compression="tiff_lzw")[:-900],
        "really-a-png.jpg": lambda: encoded(small, "PNG"),
        "empty.png": lambda: b"",
        "text.jpg": lambda: b"just text",
        "page.jpg": lambda: encoded(small, "JPEG") + b"<html><script>alert(1)</script>",
        "archive.gif": lambda: encoded(small, "GIF") + b"PK\x05\x06" + bytes(18),
        "exif.jpg": lambda: encoded(small, "JPEG", exif=b"Exif\0\0" + b"A" * 60_000),
        "profile.png": lambda: encoded(small, "PNG", icc_profile=bytes(30_000_000)),
        "profile.tif": lambda: encoded(small, "TIFF", icc_profile=bytes(30_000_000)),
    }


def hostile_folder(root: Path, *, large: bool = True) -> Path:
    """``root`` with all of these in a folder of unlabelled images, beside two small classes."""
    files = broken_files() | (large_files() if large else {})
    (root / "unlabelled").mkdir(parents=True)
    for name, make in files.items():
        (root / "unlabelled" / name).write_bytes(make())
    return with_two_classes(root)


def with_two_classes(root: Path) -> Path:
    """``root`` with a few honest pictures of two classes, without which there is nothing to train."""
    for c, name in enumerate(("cat", "dog")):
        (root / name).mkdir(parents=True)
        for i in range(3):
            cells = np.random.default_rng(10 * c + i).integers(0, 255, (8, 8, 3), dtype=np.uint8)
            Image.fromarray(cells).resize((64, 64)).save(root / name / f"{i}.png")
    return root
