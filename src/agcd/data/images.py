"""The one decoder: file bytes in, an upright RGB image out, or an ``ImageError`` with a short reason.

The page and the trainer both call it, so they see the same pixels. Files come from strangers: only formats on
the allow-list are parsed, sizes and the memory that decoding takes are checked before anything is decoded, and only
regular files are opened.
"""

from __future__ import annotations

import functools
import io
import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from agcd.data.depth import DEEP_MODES, in_strips, is_dim, stretched_colours, tiles_of_lower_bytes, to_8_bits
from agcd.errors import DataError
from agcd.io import digest_bytes
from agcd.words import printable

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF", "AVIF", "JPEG2000")
HEIF = "HEIF"
"""What phones take; read where the extra ``heif`` is installed."""
RISKY_FORMATS = frozenset({"AVIF", "JPEG2000", HEIF})
"""Their libraries are young or seldom met by strangers' files: decoded apart, as those of libtiff."""
IMAGE_SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".dib", ".tif", ".tiff", ".gif", ".avif"}
    | {".jp2", ".j2k", ".jpx", ".heic", ".heif", ".hif"}
)
FOREIGN_SUFFIXES = frozenset(
    {".svg", ".eps", ".ps", ".pdf", ".psd", ".fits", ".fit", ".icns", ".ico", ".jxl", ".dng", ".cr2", ".nef", ".arw"}
)
"""Pictures that we do not decode: worth a word to the user, where other files are passed over in silence."""
MAX_PIXELS = 64_000_000
"""More than nearly all cameras take."""
MAX_BYTES = 256 * 2**20
"""Above what so many pixels take without compression."""
MAX_DECODED_BYTES = 640 * 2**20
"""What decoding one picture may take with all copies made on the way: 10 bytes for each of so many pixels."""
MAX_DRAFT = 1024
"""The largest side that any part of the program asks for: what the header is judged by."""
_BITS, _SAMPLES, _ROWS_PER_STRIP, _TILE_WIDTH, _TILE_LENGTH = 258, 277, 278, 322, 323
"""Tags of TIFF."""
JPEG_QUALITY = 85
_HEIF_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")


class ImageError(DataError):
    """A file that is not a usable image; ``reason`` is the message without the path."""

    def __init__(self, reason: str, path: Path | None = None) -> None:
        super().__init__(f"{printable(str(path))}: {reason}." if path else f"Not a usable image: {reason}.")
        self.reason, self.path = reason, path

    def __reduce__(self) -> tuple[type[ImageError], tuple[str, Path | None]]:
        return ImageError, (self.reason, self.path)  # it comes back from decoding processes


class Header(NamedTuple):
    """What the header of a picture tells before anything is decoded."""

    format: str
    size: tuple[int, int]
    mode: str
    codec: str
    is_progressive: bool
    decoded_bytes: int
    """Most that decoding takes, all copies included."""
    has_pages: bool = False
    """Whether a TIFF has more pages than the first, which is read."""

    @property
    def is_deep(self) -> bool:
        """Whether values are stretched to the 256 that are shown and learned."""
        return self.mode.startswith(DEEP_MODES)


def decode(
    data: bytes | Path, *, max_pixels: int = MAX_PIXELS, max_bytes: int = MAX_BYTES, draft_size: int | None = None
) -> Image.Image:
    """The image as upright RGB; alpha is laid on white, of animations the first frame is taken.

    Grey of more than 8 bits is stretched: of 16 bits what lies between the darkest and the brightest thousandth of
    the pixels, of 32 bits all. So are colours of 16 bits that use at most a quarter of their range. ``draft_size`` lets
    a JPEG be decoded at 1/2, 1/4 or 1/8 scale as long as both sides stay at least that long.
    """
    with _as_image_error(data):
        content = data if isinstance(data, bytes) else read_file(data, max_bytes=max_bytes)
        image = _open(content, max_pixels, max_bytes, draft_size)
        lower = tiles_of_lower_bytes(image)
        image.load()
        if lower and is_dim(image):
            other = _open(content, max_pixels, max_bytes, draft_size)
            other.tile = lower  # type: ignore[attr-defined]
            image = stretched_colours(image, other)
        image = to_8_bits(image)
        upright = _upright(_to_rgb(image))
        upright.info.clear()  # a broken colour profile must not travel into thumbnails
        return upright


def header(data: bytes | Path, *, draft_size: int | None = None) -> Header:
    """What the header tells; of a file only so much is read as that takes."""
    with _as_image_error(data), io.BytesIO(data) if isinstance(data, bytes) else _regular(data) as file:
        return _facts(_parsed(file, draft_size))


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


def scanned_thumbnail(path: Path, key: str, size: int) -> Image.Image:
    """A small copy of a file that is still what was scanned, free of all that came with the file."""
    return thumbnail(scanned(path, key), size).copy()


def scanned_jpeg(path: Path, key: str, size: int) -> bytes:
    """The same, encoded anew."""
    buffer = io.BytesIO()
    thumbnail(scanned(path, key), size).save(buffer, "JPEG", quality=JPEG_QUALITY)
    return buffer.getvalue()


def probe(data: bytes | Path, *, max_pixels: int = MAX_PIXELS, max_bytes: int = MAX_BYTES) -> str | None:
    """Why the header says this cannot be used, or None; pixels are not decoded."""
    try:
        with _as_image_error(data):
            _open(data, max_pixels, max_bytes, MAX_DRAFT)
    except ImageError as error:
        return error.reason
    return None


def read_file(path: Path, *, max_bytes: int = MAX_BYTES) -> bytes:
    """All bytes of a regular file; anything else is refused without waiting for it."""
    with _regular(path, max_bytes) as file:
        try:
            return file.read()
        except OSError as error:
            raise _unreadable(path, error) from None


def _regular(path: Path, max_bytes: int = MAX_BYTES) -> io.BufferedReader:
    """A regular file, opened.

    ``O_NONBLOCK`` keeps a FIFO from blocking the open, and the checks are made on what was opened, not on its name.
    """
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the name
        raise _unreadable(path, error) from None
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            raise ImageError("not a regular file", path)
        if facts.st_size > max_bytes:
            raise ImageError(f"{facts.st_size:,} bytes, more than the {max_bytes:,} allowed", path)
        return open(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _unreadable(path: Path, error: Exception) -> ImageError:
    return ImageError(f"cannot be read ({getattr(error, 'strerror', None) or error})", path)


def _open(data: bytes | Path, max_pixels: int, max_bytes: int, draft_size: int | None) -> Image.Image:
    """The image with its header read, its size and its cost checked; nothing is decoded yet."""
    content = data if isinstance(data, bytes) else read_file(data, max_bytes=max_bytes)
    if not content:
        raise ImageError("empty file")
    image = _parsed(io.BytesIO(content), None)
    width, height = image.size
    if width < 1 or height < 1:
        raise ImageError(f"no pixels ({width}×{height})")
    if width * height > max_pixels:
        raise ImageError(f"{width}×{height} pixels, more than the {max_pixels:,} allowed")
    if draft_size is not None:
        image.draft(None, (draft_size, draft_size))
    n_bytes = decoded_bytes(image) + len(content)
    if n_bytes > MAX_DECODED_BYTES:
        raise ImageError(f"decoding takes {n_bytes >> 20} MB, more than the {MAX_DECODED_BYTES >> 20} allowed")
    return image


def _parsed(file: io.BufferedReader | io.BytesIO, draft_size: int | None) -> Image.Image:
    start = file.read(12)
    file.seek(0)
    image = Image.open(file, formats=_formats(start))
    if draft_size is not None:
        image.draft(None, (draft_size, draft_size))
    return image


def _formats(start: bytes) -> tuple[str, ...]:
    """What a file that begins so may be."""
    if start[4:8] != b"ftyp" or start[8:12] not in _HEIF_BRANDS:
        return FORMATS
    if _has_heif():
        return (*FORMATS, HEIF)
    if start[8:10] == b"he":
        raise ImageError('HEIC pictures are read after: pip install "agcd[heif]"')
    return FORMATS


@functools.cache
def _has_heif() -> bool:
    """Whether HEIC can be read; registers its decoder, which is not done before the first such file."""
    try:
        from pillow_heif import register_heif_opener
    except ImportError:
        return False
    register_heif_opener(thumbnails=False)
    return True


def _facts(image: Image.Image) -> Header:
    tiles: list[Any] = getattr(image, "tile", [])
    return Header(
        image.format or "",
        image.size,
        image.mode,
        str(tiles[0][0]) if tiles else "",
        "progressive" in image.info,
        decoded_bytes(image),
        bool(getattr(getattr(image, "tag_v2", None), "next", 0)),
    )


def decoded_bytes(image: Image.Image) -> int:
    """Most that decoding an opened image takes, all copies included; the bytes of the file come on top."""
    n_pixels, stored = image.width * image.height, _stored_bytes(image.mode)
    loading = n_pixels * stored * (2 if tiles_of_lower_bytes(image) else 1) + _codec_bytes(image)
    converting = n_pixels * (5 if image.mode.startswith(DEEP_MODES) else stored + 4 * (image.mode != "RGB"))
    is_known = image.format != "PNG" or "exif" in image.info  # Pillow would decode a PNG to look for its EXIF
    turning = n_pixels * 8 if is_known and _is_turned(image) else 0
    return max(loading, converting, turning)


def _stored_bytes(mode: str) -> int:
    """Of a pixel as Pillow keeps it."""
    return 1 if mode in ("1", "L", "P") else 2 if mode.startswith("I;16") else 4


def _codec_bytes(image: Image.Image) -> int:
    """What a library keeps beside the pixels while it decodes, where that grows with the picture."""
    n_pixels = image.width * image.height
    if image.format == "WEBP":
        return 12 * n_pixels  # the frame and two canvases
    if image.format == "JPEG2000":
        return 6 * len(image.getbands()) * n_pixels  # whole numbers of 32 bits; measured 5.2 a band
    if image.format in RISKY_FORMATS:
        return 12 * n_pixels  # planes and their conversion; measured 5.5
    if image.format == "JPEG" and "progressive" in image.info:
        scale = (getattr(image, "decoderconfig", None) or (1,))[0]
        return 2 * len(image.getbands()) * n_pixels * scale**2  # all coefficients, also for a draft
    tiles: list[Any] = getattr(image, "tile", [])
    return _libtiff_bytes(image) if tiles and tiles[0][0] == "libtiff" else 0


def _libtiff_bytes(image: Image.Image) -> int:
    """One tile, or one strip of rows, which may be the whole picture or even larger than it."""
    tags: Any = getattr(image, "tag_v2", {})
    bits = tags.get(_BITS, 8)
    n_bits = sum(bits) if isinstance(bits, tuple) else bits * _whole(tags.get(_SAMPLES), 1)
    rows = min(image.height, _whole(tags.get(_ROWS_PER_STRIP), image.height))
    area = _whole(tags.get(_TILE_WIDTH), image.width) * _whole(tags.get(_TILE_LENGTH), rows)
    return area * max(_stored_bytes(image.mode), -(-n_bits // 8))


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
        raise ImageError(f"not an image of a supported format ({', '.join(FORMATS)}), or damaged", path) from None
    except MemoryError:
        raise ImageError("decoding takes more memory than allowed", path) from None
    except Image.DecompressionBombError:
        raise ImageError("far more pixels than allowed", path) from None
    except Exception as error:  # Pillow's plugins raise a dozen types on damaged files
        raise ImageError(f"damaged ({error or type(error).__name__})", path) from None


def _is_turned(image: Image.Image) -> bool:
    """Whether EXIF says so; broken metadata must not cost a good picture."""
    try:
        return bool(image.getexif().get(ExifTags.Base.Orientation, 1) != 1)
    except Exception:
        return False


def _upright(image: Image.Image) -> Image.Image:
    """The image turned as its EXIF orientation says."""
    if not _is_turned(image):
        return image
    try:
        return ImageOps.exif_transpose(image)
    except Exception:
        return image


def _to_rgb(image: Image.Image) -> Image.Image:
    """The image as RGB with its metadata; the one given, where it is RGB already."""
    if image.has_transparency_data:
        return in_strips(image, "RGB", _on_white)
    return image if image.mode == "RGB" else image.convert("RGB")


def _on_white(image: Image.Image) -> Image.Image:
    coloured = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", coloured.size, "white"), coloured).convert("RGB")


def _whole(value: Any, otherwise: int) -> int:
    return value if isinstance(value, int) and value > 0 else otherwise
