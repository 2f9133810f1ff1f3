"""Small pictures: thumbnails of one size whatever the file holds, and contact sheets of classes."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image, ImageDraw, ImageOps

from agcd.plotting import MUTED, NEW, OLD, house_style
from agcd.report.story import RESEARCHERS, ClassStrip, Kinds, Thumbnail
from agcd.types import IntArray
from agcd.words import count, shown

SIDE = 96
"""Pixels: small enough for thirteen in a line, large enough to tell one fruit from another."""
CLASSES_PER_SHEET = 14
"""About 1,600 pixels of height, which a page shows in one piece."""
_GREY = (238, 240, 243)
_GAP, _LEFT, _TOP, _BETWEEN = 6, 250, 44, 28
"""Pixels between pictures, left of them for the name, above them for the heads, between typical and answered ones."""


class Thumbnails:
    """Square pictures of rows, each made once; a row whose image cannot be had gets a grey placeholder."""

    def __init__(self, thumbnail: Thumbnail) -> None:
        self._thumbnail = thumbnail
        self._squares: dict[int, Image.Image | None] = {}

    def is_missing(self, row: int) -> bool:
        """Whether the row's image could not be had."""
        return self._find(row) is None

    def square(self, row: int) -> Image.Image:
        """The row's picture, ``SIDE`` pixels wide and high."""
        return self._find(row) or placeholder()

    def uri(self, row: int) -> str:
        """The same as a JPEG data URI."""
        buffer = io.BytesIO()
        self.square(row).save(buffer, format="JPEG", quality=85, optimize=True)
        return data_uri(buffer.getvalue(), "image/jpeg")

    def _find(self, row: int) -> Image.Image | None:
        if row not in self._squares:
            try:
                self._squares[row] = as_square(self._thumbnail(row))
            except Exception:  # whatever a decoder raises on a vanished or broken file: the report goes on
                self._squares[row] = None
        return self._squares[row]


def as_square(image: Image.Image) -> Image.Image:
    """Cut to the middle square; pictures more than twice as long as wide are shown whole on grey instead."""
    flat = Image.new("RGBA", image.size, "white")
    flat.alpha_composite(image.convert("RGBA"))
    flat = flat.convert("RGB")
    if max(flat.size) > 2 * min(flat.size):
        return ImageOps.pad(flat, (SIDE, SIDE), color=_GREY)
    return ImageOps.fit(flat, (SIDE, SIDE))


def placeholder() -> Image.Image:
    """A grey square with a thin cross: there was an image and it is gone."""
    image = Image.new("RGB", (SIDE, SIDE), _GREY)
    draw = ImageDraw.Draw(image)
    third, far = SIDE // 3, SIDE - SIDE // 3
    draw.line((third, third, far, far), fill=(170, 178, 189), width=2)
    draw.line((third, far, far, third), fill=(170, 178, 189), width=2)
    return image


def data_uri(data: bytes, kind: str) -> str:
    """``data`` as text that a page can hold."""
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"


def first_rows(strip: ClassStrip, n_classes: int) -> tuple[IntArray, IntArray]:
    """The typical and the queried rows to show; fewer of each where classes are many, so that pages stay light."""
    n_typical, n_queried = (8, 5) if n_classes <= 40 else (5, 3)
    return strip.typical_rows[:n_typical], strip.queried_rows[:n_queried]


def contact_sheets(strips: Sequence[ClassStrip], thumbnails: Thumbnails, kinds: Kinds = RESEARCHERS) -> list[Figure]:
    """Figures of at most ``CLASSES_PER_SHEET`` classes, in the given order."""
    pages = [strips[i : i + CLASSES_PER_SHEET] for i in range(0, len(strips), CLASSES_PER_SHEET)]
    return [_sheet(page, thumbnails, len(strips), kinds) for page in pages]


@house_style()
def _sheet(strips: Sequence[ClassStrip], thumbnails: Thumbnails, n_classes: int, kinds: Kinds) -> Figure:
    """One line per class; one unit of the axes is one pixel of the picture."""
    shown_rows = [first_rows(strip, n_classes) for strip in strips]
    step = SIDE + _GAP
    n_typical, n_queried = (max((len(rows[i]) for rows in shown_rows), default=0) for i in (0, 1))
    queried_left = _LEFT + n_typical * step + _BETWEEN
    width = queried_left + max(n_queried, 1) * step + 10
    height = _TOP + len(strips) * (step + 8) + 6
    paper = Image.new("RGB", (width, height), "white")
    for i, (typical, queried) in enumerate(shown_rows):
        top = _TOP + i * (step + 8)
        _paste_row(paper, thumbnails, typical, _LEFT, top, framed=False)
        _paste_row(paper, thumbnails, queried, queried_left, top, framed=True)
    figure = Figure(figsize=(width / 100, height / 100), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow(np.asarray(paper), extent=(0, width, height, 0), aspect="auto", interpolation="nearest")
    axes.set_axis_off()
    axes.text(_LEFT, _TOP - 12, "most typical", color=MUTED, fontsize=10)
    axes.text(queried_left, _TOP - 12, "answered" if n_queried else "", color=MUTED, fontsize=10)
    for i, strip in enumerate(strips):
        _caption(axes, strip, _TOP + i * (step + 8), kinds)
    return figure


def _paste_row(paper: Image.Image, thumbs: Thumbnails, rows: IntArray, left: int, top: int, framed: bool) -> None:
    draw = ImageDraw.Draw(paper)
    for i, row in enumerate(rows.tolist()):
        x = left + i * (SIDE + _GAP)
        paper.paste(thumbs.square(row), (x, top))
        if framed:
            draw.rectangle((x - 2, top - 2, x + SIDE + 1, top + SIDE + 1), outline="black", width=2)


def _caption(axes: Axes, strip: ClassStrip, top: int, kinds: Kinds) -> None:
    colour = NEW if strip.is_new else OLD
    badge = {"boxstyle": "round,pad=0.3", "facecolor": colour, "edgecolor": "none"}
    axes.text(20, top + 14, kinds.of(strip), color="white", fontsize=8, va="center", bbox=badge)
    name = axes.text(14, top + 44, shown(strip.name, 22), fontsize=11, fontweight="bold", va="center")
    name.set_clip_path(Rectangle((0, top), _LEFT - 8, SIDE, transform=axes.transData))
    axes.text(14, top + 67, count(strip.size, "member"), fontsize=9, color=MUTED, va="center")
