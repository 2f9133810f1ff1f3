"""Pictures of more than 8 bits a value, made into the 256 shades that are shown and learned."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

DEEP_MODES = ("I", "F")
"""Modes whose values have no nominal range, 16-bit ones (``I;16…``) among them: their range is stretched."""
_STRIP_PIXELS = 2**20
"""Converted at a time, so that copies of the whole picture in wider numbers are never made."""
_SWAPPED = {"B": "L", "L": "B", "N": "B" if sys.byteorder == "little" else "L"}
"""The order of bytes in which Pillow, which keeps the upper byte of a colour of 16 bits, keeps the lower one."""
_DIM = 64
"""Upper bytes below this leave three quarters of the range of 16 bits unused: 14 bits or fewer were meant."""
_CLIPPED = 0.001
"""Of the pixels at either end of a 16-bit range: a few dead or hot ones must not leave the rest in one grey."""


def to_8_bits(image: Image.Image) -> Image.Image:
    """Grey of 16 or 32 bits with its range stretched, as Pillow's own conversion clips at 255; others as they are."""
    if image.mode.startswith("I;16"):
        return _stretched_16_bits(image)
    return _stretched(image) if image.mode in DEEP_MODES else image


def _stretched(image: Image.Image) -> Image.Image:
    """32-bit values have no nominal range: their own smallest becomes black, their largest white."""
    ends = [(values.min(), values.max()) for values in map(_finite, _strips(image))]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    scale = 255.0 / ((high - low) or 1.0)
    return in_strips(image, "L", lambda strip: Image.fromarray(_rounded((_finite(strip) - low) * scale)))


def _stretched_16_bits(image: Image.Image) -> Image.Image:
    """Cameras of microscopes fill 12 of 16 bits: what the pixels use of the range becomes black to white."""
    shades = _shades(map(np.asarray, _strips(image)))
    return in_strips(image, "L", lambda strip: Image.fromarray(shades[np.asarray(strip)]))


def _shades(strips: Iterable[NDArray[Any]]) -> NDArray[np.uint8]:
    """(65536,): what each value of 16 bits becomes, where ``strips`` hold all that occur."""
    counts = sum(np.bincount(strip.ravel(), minlength=2**16) for strip in strips)
    low, high = _used_range(np.asarray(counts))
    return _rounded(np.clip((np.arange(2**16) - low) * (255.0 / ((high - low) or 1)), 0, 255))


def tiles_of_lower_bytes(image: Image.Image) -> list[Any]:
    """How to decode the lower bytes of colours of 16 bits, of which Pillow keeps the upper ones; else nothing."""
    tiles: list[Any] = getattr(image, "tile", [])
    if image.mode not in ("RGB", "RGBA") or not all(";16" in _raw_mode(tile) for tile in tiles):
        return []
    if not all(_raw_mode(tile)[:-1] == f"{image.mode};16" for tile in tiles):
        return []  # grey with alpha, of which Pillow knows one order alone
    return [_with_raw_mode(tile, _raw_mode(tile)[:-1] + _SWAPPED[_raw_mode(tile)[-1]]) for tile in tiles]


def _raw_mode(tile: Any) -> str:
    return str(tile.args[0] if isinstance(tile.args, tuple) and tile.args else tile.args)


def _with_raw_mode(tile: Any, mode: str) -> Any:
    return tile._replace(args=(mode, *tile.args[1:]) if isinstance(tile.args, tuple) else mode)


def is_dim(image: Image.Image) -> bool:
    extrema: Any = image.getextrema()
    return bool(max(high for _, high in extrema[:3]) < _DIM)


def stretched_colours(upper: Image.Image, lower: Image.Image) -> Image.Image:
    """Colours of 16 bits from their bytes, with one range for all three; ``upper`` becomes the result."""
    lower.load()
    shades = _shades(_wide(*pair) for pair in zip(_strips(upper), _strips(lower), strict=True))
    top = 0
    for high, low in zip(_strips(upper), _strips(lower), strict=True):
        strip = Image.fromarray(shades[_wide(high, low)])
        if "A" in upper.getbands():
            strip.putalpha(high.getchannel("A"))
        upper.paste(strip, (0, top))
        top += strip.height
    return upper


def _wide(upper: Image.Image, lower: Image.Image) -> NDArray[Any]:
    high, low = (np.asarray(image)[..., :3].astype(np.uint16) for image in (upper, lower))
    return high * 256 + low


def _used_range(counts: NDArray[np.int64]) -> tuple[int, int]:
    """The values between which all but a thousandth of the pixels at either end lie; all, where that is one value."""
    up_to = counts.cumsum()
    low = int(np.searchsorted(up_to, _CLIPPED * up_to[-1], side="right"))
    high = int(np.searchsorted(up_to, (1 - _CLIPPED) * up_to[-1], side="left"))
    used = np.flatnonzero(counts)
    return (low, high) if low < high else (int(used[0]), int(used[-1]))


def _finite(image: Image.Image) -> NDArray[np.float64]:
    return np.nan_to_num(np.asarray(image).astype(np.float64), posinf=0.0, neginf=0.0)


def _rounded(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    return values.round().astype(np.uint8)


def _strips(image: Image.Image) -> Iterator[Image.Image]:
    """The image from top to bottom, a few rows at a time."""
    rows = max(1, _STRIP_PIXELS // image.width)
    for top in range(0, image.height, rows):
        yield image.crop((0, top, image.width, min(top + rows, image.height)))


def in_strips(image: Image.Image, mode: str, convert: Callable[[Image.Image], Image.Image]) -> Image.Image:
    """``convert`` of the whole image, which handles each pixel by itself, without wide copies of the whole."""
    whole, top = Image.new(mode, image.size), 0
    for strip in _strips(image):
        whole.paste(convert(strip), (0, top))
        top += strip.height
    whole.info = dict(image.info)
    return whole
