"""How figures look: one palette, one house style that no user setting can disturb, one way to PNG, and the charts.

A chart draws arrays into the axes it is given; a frame sets the limits and labels around what was drawn.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from agcd.types import FloatArray, IntArray

Colour = tuple[float, float, float]
OLD, NEW = "#0072B2", "#D55E00"
"""Blue and vermilion of Okabe and Ito: told apart with every common kind of colour blindness."""
OURS, INK, MUTED, FAINT = "#00694F", "#1F2933", "#5F6B7A", "#D5DAE1"
RIVALS = ("#8A94A3", "#B5679A", "#8C6D31", "#56A0C8", "#6B5B95", "#A3A847", "#C0504D")
SET_COLOURS = (OURS, *RIVALS[1:])
"""For data sets and seeds: the palette without the grey, which reads as "not important"."""
# fmt: off
_COOL = (
    "#0072B2", "#56B4E9", "#009E73", "#332288", "#88CCEE",
    "#44AA99", "#5E4FA2", "#117733", "#3F7FBF", "#7A8FD6",
)
_WARM = (
    "#D55E00", "#E69F00", "#CC79A7", "#882255", "#F0C419",
    "#AA4499", "#B2182B", "#F4A582", "#8C510A", "#EE6677",
)
# fmt: on
MARKERS = ("o", "s", "D", "v", "P", "X", "<")
STAR = "*"
DASHES = (0, (4, 2))
_WIDE_FONTS = ("Noto Sans CJK SC", "Noto Sans CJK JP", "PingFang SC", "Hiragino Sans", "Microsoft YaHei", "SimHei")
_PER_LINE = 3
_LEGEND_COLUMN = 1.75
"""Inches that a legend needs for "least_confidence" with its mark."""
_BINS = 24


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


def panels(n: int, width: float, height: float, *, sharey: bool = False) -> tuple[Figure, list[Axes]]:
    """A figure with ``n`` panels of this size in inches, three to a line; four are two and two."""
    n_columns = 2 if n == 4 else min(n, _PER_LINE)
    n_lines = -(-n // n_columns)
    figure = new_figure(width * n_columns, height * n_lines)
    grid = figure.subplots(n_lines, n_columns, sharey=sharey, squeeze=False).ravel().tolist()
    for spare in grid[n:]:
        spare.set_visible(False)
    return figure, grid[:n]


@house_style()
def png_bytes(figure: Figure) -> bytes:
    """The figure as PNG; the same figure gives the same bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=figure.dpi, metadata={"Software": None})
    return buffer.getvalue()


@house_style()
def headed(figure: Figure, words: str) -> Figure:
    """The figure with a line above its panels; it makes the figure taller rather than the panels smaller."""
    figure.set_figheight(figure.get_figheight() + 0.22 * (1 + words.count("\n")))
    figure.suptitle(words, fontsize=9, color=MUTED)
    return figure


def legend_below(figure: Figure, keys: Sequence[Artist], column: float = _LEGEND_COLUMN) -> None:
    """A legend under the panels, as wide as they are; it makes the figure taller rather than the panels smaller.

    ``column``: inches that the longest label needs with its mark.
    """
    n_most = max(1, int(figure.get_figwidth() / column))
    n_lines = -(-len(keys) // n_most)
    n_columns = -(-len(keys) // n_lines)
    figure.set_figheight(figure.get_figheight() + 0.1 + 0.22 * n_lines)
    # Labels by name: matplotlib leaves out handles whose own label begins with "_", as a user's class may.
    labels = [str(key.get_label()) for key in keys]
    figure.legend(list(keys), labels, loc="outside lower center", ncols=n_columns)


def share_axis(axes: Axes, which: str) -> None:
    """Let an axis ("x" or "y") read in per cent."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_formatter(lambda value, _: f"{round(100 * value, 4):g} %")


def frame_shares(axes: Axes, x_label: str, y_label: str) -> None:
    """Whole numbers along x, per cent along y, and never beyond what a share can be."""
    low, high = axes.get_ylim()
    axes.set_ylim(max(0.0, low), min(1.0, high))
    share_axis(axes, "y")
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))
    axes.grid(axis="y")
    axes.set(xlabel=x_label, ylabel=y_label)


@dataclass(frozen=True)
class Stroke:
    """How one line of a chart is drawn, and its name in the legend."""

    label: str
    colour: str
    marker: str
    order: int

    def key(self) -> Line2D:
        return line_key(self.label, self.colour, self.marker, linewidth=1.8)


def strokes(names: Sequence[str], ours: str) -> dict[str, Stroke]:
    """Ours first in the legend and on top of the chart, the others in their own order."""
    rivals = [name for name in names if name != ours]
    looks = {ours: Stroke(ours, OURS, MARKERS[0], 5)}
    for i, name in enumerate(rivals):
        looks[name] = Stroke(name, RIVALS[i % len(RIVALS)], MARKERS[1 + i % (len(MARKERS) - 1)], 3)
    return looks


def line_key(label: str, colour: str, marker: str = "", **look: Any) -> Line2D:
    """The entry of a line in a legend."""
    return Line2D([], [], color=colour, marker=marker, markersize=5, label=label, **look)


def area_keys(old: str = "old classes", new: str = "novel classes") -> list[Line2D]:
    """The legend of ``draw_histograms``."""
    return [
        Line2D([], [], color=OLD, linewidth=6, alpha=0.6, label=old),
        Line2D([], [], color=NEW, linewidth=6, alpha=0.6, label=new),
        Line2D([], [], color=INK, linewidth=1.4, linestyle="--", label="mean"),
    ]


@dataclass(frozen=True)
class Spread:
    """Mean and sample deviation over seeds, each (n,); NaN where nothing was measured, or only once."""

    mean: FloatArray
    deviation: FloatArray

    @property
    def tops(self) -> FloatArray:
        """Where the whiskers end; the mean where there are none."""
        return np.asarray(self.mean + np.nan_to_num(self.deviation))


def spread_of(values: FloatArray) -> Spread:
    """Over the seeds, which are the first axis of ``values`` (n_seeds, n); NaN is a value that does not exist."""
    columns = [column[np.isfinite(column)] for column in values.T]
    mean = [column.mean() if len(column) else np.nan for column in columns]
    deviation = [column.std(ddof=1) if len(column) > 1 else np.nan for column in columns]
    return Spread(np.asarray(mean, float), np.asarray(deviation, float))


def last_of(spreads: Sequence[Spread]) -> Spread:
    """The last value of each, side by side."""
    mean = [spread.mean[-1] for spread in spreads]
    deviation = [spread.deviation[-1] for spread in spreads]
    return Spread(np.asarray(mean, float), np.asarray(deviation, float))


def draw_band(axes: Axes, spread: Spread, stroke: Stroke) -> None:
    """A mean line over the rounds, 0 being the base model, within a light band of one deviation on each side."""
    rounds = np.arange(len(spread.mean))
    low, high = spread.mean - spread.deviation, spread.mean + spread.deviation
    # All bands begin as one at the base model: lighter ones keep eight of them from turning black.
    alpha, width = (0.16, 2.6) if stroke.colour == OURS else (0.09, 1.6)
    axes.fill_between(rounds, low, high, color=stroke.colour, alpha=alpha, linewidth=0, zorder=1)
    look: dict[str, Any] = {"color": stroke.colour, "marker": stroke.marker, "zorder": stroke.order}
    axes.plot(rounds, spread.mean, markersize=5, linewidth=width, clip_on=False, **look)


def draw_bars(axes: Axes, groups: Sequence[str], bars: Sequence[tuple[Spread, str]]) -> None:
    """Bars from zero with whiskers of one deviation: a spread over the groups, (n_groups,), for each colour."""
    width = 0.8 / len(bars)
    for i, (spread, colour) in enumerate(bars):
        x = np.arange(len(groups)) + (i - (len(bars) - 1) / 2) * width
        known, twice = np.isfinite(spread.mean), np.isfinite(spread.deviation)
        axes.bar(x[known], spread.mean[known], 0.92 * width, color=colour)
        whisker: dict[str, Any] = {"fmt": "none", "ecolor": INK, "elinewidth": 1.0, "capsize": 3}
        axes.errorbar(x[twice], spread.mean[twice], spread.deviation[twice], **whisker)
        for at, mean, top in zip(x, spread.mean, np.nan_to_num(spread.tops), strict=True):
            text = f"{100 * mean:.1f}" if np.isfinite(mean) else "–"
            axes.annotate(text, (at, top), (0, 3), textcoords="offset points", ha="center", fontsize=8)
    tops = np.concatenate([np.nan_to_num(spread.tops) for spread, _ in bars])
    axes.set_ylim(0, 1.1 * max(tops.max(), 0.05))
    slant: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if len(groups) > 3 else {}
    axes.set_xticks(range(len(groups)), groups, **slant)
    axes.tick_params(axis="x", length=0)
    share_axis(axes, "y")
    axes.grid(axis="y")


def draw_histograms(
    axes: Axes, old: FloatArray, new: FloatArray, limits: tuple[float, float] = (0.0, 1.0), *, density: bool = False
) -> None:
    """How the values of old and of novel samples are distributed, each with its mean as a dashed line.

    Heights are shares of the samples of each kind, or with ``density`` such that each covers an area of one.
    """
    bins = np.linspace(*limits, _BINS + 1).tolist()
    for values, colour in ((old, OLD), (new, NEW)):
        finite = values[np.isfinite(values)]
        if len(finite):
            # float32 probabilities may sum to a little more than one: the edge bin takes what lies beyond it.
            inside = np.clip(finite, *limits)
            height: dict[str, Any] = {"density": density}
            height |= {} if density else {"weights": np.full(len(finite), 1 / len(finite))}
            axes.hist(inside, bins, color=colour, alpha=0.3, edgecolor="none", **height)
            axes.hist(inside, bins, histtype="step", color=colour, linewidth=1.5, **height)
            axes.axvline(float(finite.mean()), color=colour, linestyle="--", linewidth=1.4)
    axes.set_xlim(*limits)
    axes.grid(axis="y")


def frame_balance(axes: Axes, points: FloatArray) -> None:
    """A square window around the finite ``points`` (n, 2) of old and novel accuracy, with the diagonal of equals."""
    known = points[np.isfinite(points).all(1)]
    # A little beyond 100 %, so that marks at the edge are whole.
    low, high = (max(0.0, known.min() - 0.05), min(1.02, known.max() + 0.05)) if len(known) else (0.0, 1.0)
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=":", zorder=1)
    axes.set(xlim=(low, high), ylim=(low, high), aspect="equal")
    axes.set(xlabel="accuracy on old classes", ylabel="accuracy on novel classes")
    for which in ("x", "y"):
        share_axis(axes, which)
    axes.grid()


def shapes(names: Sequence[str], ours: str) -> dict[str, str]:
    """A marker for each name; ours, first, is the star."""
    markers = (*MARKERS, "^")
    rivals = [name for name in names if name != ours]
    return {ours: STAR} | {name: markers[i % len(markers)] for i, name in enumerate(rivals)}


def draw_mark(axes: Axes, old: float, new: float, marker: str, colour: str) -> None:
    """One strategy on one data set, by its accuracy on old and on novel classes."""
    edge: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.6, "zorder": 5 if marker == STAR else 3}
    axes.plot(old, new, linestyle="", marker=marker, markersize=_mark_size(marker), color=colour, alpha=0.9, **edge)


def shape_key(label: str, marker: str) -> Line2D:
    """What a mark means, whatever its colour."""
    return Line2D([], [], linestyle="", color=MUTED, marker=marker, markersize=_mark_size(marker), label=label)


def _mark_size(marker: str) -> float:
    return 13.0 if marker == STAR else 7.0


def class_colour(is_new: bool, i: int) -> Colour:
    """The i-th colour of its kind, cool for old classes and warm for novel ones.

    A second turn through the palette is darker, so that twenty classes of one kind stay distinct.
    """
    palette = _WARM if is_new else _COOL
    red, green, blue = to_rgb(palette[i % len(palette)])
    shade = 0.55 ** (i // len(palette))
    return (red * shade, green * shade, blue * shade)


def class_marker(is_new: bool) -> str:
    """Circles for old classes, triangles for novel ones."""
    return "^" if is_new else "o"


def class_dots(names: Mapping[int, str], n_old: int) -> dict[int, Line2D]:
    """The mark of each class of ``names``, by its number; the first ``n_old`` numbers are old."""
    dots, count = {}, {False: 0, True: 0}
    for c, name in names.items():
        is_new = c >= n_old
        look: dict[str, Any] = {"color": class_colour(is_new, count[is_new]), "marker": class_marker(is_new)}
        dots[c] = Line2D([], [], linestyle="", markersize=6, label=name, **look)
        count[is_new] += 1
    return dots


def draw_map(axes: Axes, xy: FloatArray, y_class: IntArray, dots: Mapping[int, Line2D]) -> None:
    """Points ``xy`` (n, 2) in the colour and shape of their class ``y_class`` (n,)."""
    size = float(np.clip(6000 / max(1, len(xy)), 5, 22))
    for c, dot in dots.items():
        x, y = xy[y_class == c].T
        axes.scatter(x, y, s=size, color=dot.get_color(), marker=dot.get_marker(), alpha=0.75, linewidths=0)
    frame_map(axes)


def frame_map(axes: Axes) -> None:
    """A plane without coordinates: only distances mean something, so both directions have one scale."""
    axes.set(xticks=[], yticks=[], aspect="equal", adjustable="datalim")
    for spine in axes.spines.values():
        spine.set(visible=True, color=FAINT)


def draw_search(axes: Axes, seed: int, curve: Sequence[tuple[int, float]], estimated: int) -> None:
    """Accuracy on the labelled rows by number of clusters tried, with a line down at the estimate."""
    colour = SET_COLOURS[seed % len(SET_COLOURS)]
    tried, shares = np.asarray(curve, float).T
    label = f"seed {seed}: {estimated} estimated"
    look: dict[str, Any] = {"color": colour, "clip_on": False}  # marks at 100 % are whole
    axes.plot(tried, shares, marker=MARKERS[0], markersize=3.5, linewidth=1.4, label=label, **look)
    axes.plot(estimated, np.interp(estimated, tried, shares), marker="D", markersize=8, zorder=5, **look)
    axes.axvline(estimated, color=colour, linestyle=":", linewidth=1.4)
