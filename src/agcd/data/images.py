"""The one decoder: file bytes in, an upright RGB image out, or an ``ImageError`` with a short reason.

The page and the trainer both call it, so they see the same pixels. Files come from strangers: only formats on
the allow-list are parsed, sizes are checked before anything is decoded, and only regular files are opened.
"""

from __future__ import annotations

import io
import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from agcd.errors import DataError
from agcd.io import digest_bytes

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF")
IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".dib", ".tif", ".tiff", ".gif"})
FOREIGN_SUFFIXES = frozenset(
    {".heic", ".heif", ".avif", ".svg", ".eps", ".ps", ".pdf", ".psd", ".fits", ".fit", ".icns", ".ico", ".jp2"}
)
"""Pictures that we do not decode: worth a word to the user, where other files are passed over in silence."""
MAX_PIXELS = 64_000_000
"""192 MB as RGB: more than nearly all cameras take, and several at once still fit into memory."""
MAX_BYTES = 256 * 2**20
"""Above what so many pixels take without compression."""


class ImageError(DataError):
    """A file that is not a usable image; ``reason`` is the message without the path."""

    def __init__(self, reason: str, path: Path | None = None) -> None:
        super().__init__(f"{path}: {reason}." if path else f"Not a usable image: {reason}.")
        self.reason = reason


def decode(
    data: bytes | Path, *, max_pixels: int = MAX_PIXELS, max_bytes: int = MAX_BYTES, draft_size: int | None = None
) -> Image.Image:
    """The image as upright RGB; alpha is laid on white, 16 bits are scaled to 8, of animations the first frame.

    ``draft_size`` lets a JPEG be decoded at 1/2, 1/4 or 1/8 scale as long as both sides stay at least that long.
    """
    with _as_image_error(data):
        image = _open(data, max_pixels, max_bytes)
        if draft_size is not None:
            image.draft(None, (draft_size, draft_size))
        image.load()
        rgb = _to_rgb(_upright(image))
        rgb.info.clear()  # a broken colour profile must not travel into thumbnails
        return rgb


def scanned(path: Path, key: str) -> bytes:
    """The content of a file, as long as it is what was scanned: neither a changed file nor a swapped link is shown."""
    content = read_file(path)
    if digest_bytes(content) != key:
        raise ImageError("the file has changed since it was scanned")
    return content


def thumbnail(data: bytes | Path, size: int) -> Image.Image:
    """A small upright copy, fitted into ``size`` × ``size`` pixels and never enlarged."""
    image = decode(data, draft_size=size)
    image.thumbnail((size, size))
    return image


def probe(data: bytes | Path, *, max_pixels: int = MAX_PIXELS, max_bytes: int = MAX_BYTES) -> str | None:
    """Why the header says this cannot be used, or None; pixels are not decoded."""
    try:
        with _as_image_error(data):
            _open(data, max_pixels, max_bytes)
    except ImageError as error:
        return error.reason
    return None


def read_file(path: Path, *, max_bytes: int = MAX_BYTES) -> bytes:
    """All bytes of a regular file; anything else is refused without waiting for it.

    ``O_NONBLOCK`` keeps a FIFO from blocking the open, and the checks are made on what was opened, not on its name.
    """
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            return _read_regular(handle, path, max_bytes)
        finally:
            os.close(handle)
    except ImageError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the name
        raise ImageError(f"cannot be read ({getattr(error, 'strerror', None) or error})", path) from None


def _read_regular(handle: int, path: Path, max_bytes: int) -> bytes:
    facts = os.fstat(handle)
    if not stat.S_ISREG(facts.st_mode):
        raise ImageError("not a regular file", path)
    if facts.st_size > max_bytes:
        raise ImageError(f"{facts.st_size:,} bytes, more than the {max_bytes:,} allowed", path)
    with open(handle, "rb", closefd=False) as file:
        return file.read()


def _open(data: bytes | Path, max_pixels: int, max_bytes: int) -> Image.Image:
    """The image with its header read and its size checked; nothing is decoded yet."""
    content = data if isinstance(data, bytes) else read_file(data, max_bytes=max_bytes)
    if not content:
        raise ImageError("empty file")
    image = Image.open(io.BytesIO(content), formats=FORMATS)
    width, height = image.size
    if width < 1 or height < 1:
        raise ImageError(f"no pixels ({width}×{height})")
    if width * height > max_pixels:
        raise ImageError(f"{width}×{height} pixels, more than the {max_pixels:,} allowed")
    return image


@contextmanager
def _as_image_error(data: bytes | Path) -> Iterator[None]:
    """Whatever a parser raises on hostile bytes becomes an ``ImageError`` that knows its path."""
    path = data if isinstance(data, Path) else None
    try:
        with warnings.catch_warnings():
            # Only Pillow's own warnings: decoders run in threads, where this filter may outlive the block.
            warnings.filterwarnings("ignore", module=r"PIL\.")
            yield
    except ImageError as error:
        raise ImageError(error.reason, path) from None
    except UnidentifiedImageError:
        raise ImageError(f"not an image of a supported format ({', '.join(FORMATS)})", path) from None
    except Image.DecompressionBombError:
        raise ImageError("far more pixels than allowed", path) from None
    except Exception as error:  # Pillow's plugins raise a dozen types on damaged files
        raise ImageError(f"damaged ({error or type(error).__name__})", path) from None


def _upright(image: Image.Image) -> Image.Image:
    """The image turned as its EXIF orientation says; broken metadata must not cost a good picture."""
    try:
        return ImageOps.exif_transpose(image)
    except Exception:
        return image


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I;16"):  # Pillow's own conversion clips at 255
        values = np.asarray(image).astype(np.float32)
        return Image.fromarray((values / 257).round().astype(np.uint8)).convert("RGB")
    if image.mode in ("I", "F"):
        return _stretched(image).convert("RGB")
    if image.has_transparency_data:
        coloured = image.convert("RGBA")
        white = Image.new("RGBA", coloured.size, "white")
        return Image.alpha_composite(white, coloured).convert("RGB")
    return image.convert("RGB")


def _stretched(image: Image.Image) -> Image.Image:
    """32-bit values have no nominal range: their own smallest becomes black, their largest white."""
    values = np.nan_to_num(np.asarray(image).astype(np.float64), posinf=0.0, neginf=0.0)
    low, high = values.min(), values.max()
    return Image.fromarray(((values - low) * (255.0 / ((high - low) or 1.0))).round().astype(np.uint8))
