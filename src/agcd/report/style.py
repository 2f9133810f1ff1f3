"""How figures look: one palette, one house style that no user setting can disturb, one way to PNG."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager

OLD, NEW = "#0072B2", "#D55E00"
"""Blue and vermilion of Okabe and Ito: told apart with every common kind of colour blindness."""
OURS, INK, MUTED, FAINT = "#00694F", "#1F2933", "#5F6B7A", "#D5DAE1"
RIVALS = ("#8A94A3", "#B5679A", "#8C6D31", "#56A0C8", "#6B5B95", "#A3A847", "#C0504D")
MARKERS = ("o", "s", "D", "v", "P", "X", "<")
_WIDE_FONTS = ("Noto Sans CJK SC", "Noto Sans CJK JP", "PingFang SC", "Hiragino Sans", "Microsoft YaHei", "SimHei")


@contextmanager
def house_style() -> Iterator[None]:
    """Draw with our settings only: a user's matplotlibrc (say, LaTeX text) must not break on a class name."""
    installed = set(fontManager.get_font_names())
    settings: dict[Any, Any] = {
        "font.family": ["DejaVu Sans", *(font for font in _WIDE_FONTS if font in installed)],
        "font.size": 10,
        "text.parse_math": False,
        "text.color": INK,
        "axes.edgecolor": MUTED,
        "axes.labelcolor": INK,
        "axes.titlesize": 11,
        "axes.titlepad": 10,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "grid.color": "#E8EBEF",
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "legend.frameon": False,
        "legend.fontsize": 9,
    }
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        mpl.rcdefaults()
        mpl.rcParams.update(settings)
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of a size in inches; 150 dots per inch stay sharp on a dense screen."""
    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def share_axis(axes: Axes, which: str) -> None:
    """Let an axis ("x" or "y") read in per cent."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_formatter(lambda value, _: f"{round(100 * value, 4):g} %")


@house_style()
def png_bytes(figure: Figure) -> bytes:
    """The figure as PNG; the same figure gives the same bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=figure.dpi, metadata={"Software": None})
    return buffer.getvalue()
