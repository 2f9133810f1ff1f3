"""The pieces that the paper's figures are put together from: each draws arrays into the axes it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from agcd.report.style import FAINT, INK, MARKERS, MUTED, NEW, OLD, OURS, RIVALS, new_figure, share_axis
from agcd.report.words import shown
from agcd.types import BoolArray, FloatArray, IntArray

_PER_LINE = 3
_LEGEND_COLUMN = 1.75
"""Inches that a legend needs for "least_confidence" with its mark."""
_BINS = 24
_COOL = LinearSegmentedColormap.from_list("old", ("#332288", "#0072B2", "#56B4E9", "#44AA99", "#117733"))
_WARM = LinearSegmentedColormap.from_list("novel", ("#882255", "#CC79A7", "#D55E00", "#E69F00", "#F0C419"))
STAR = "*"
SET_COLOURS = (OURS, *RIVALS[1:])
"""For data sets and seeds: the palette without the grey, which reads as "not important"."""


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


@dataclass(frozen=True)
class Stroke:
    """How one line of a chart is drawn, and its name in the legend."""

    label: str
    colour: str
    marker: str
    order: int

    def key(self) -> Line2D:
        return Line2D([], [], color=self.colour, marker=self.marker, markersize=5, linewidth=1.8, label=self.label)


def strokes(names: Sequence[str], ours: str) -> dict[str, Stroke]:
    """Ours first in the legend and on top of the chart, the others in their own order."""
    rivals = [name for name in names if name != ours]
    looks = {ours: Stroke(ours, OURS, MARKERS[0], 5)}
    for i, name in enumerate(rivals):
        looks[name] = Stroke(name, RIVALS[i % len(RIVALS)], MARKERS[1 + i % (len(MARKERS) - 1)], 3)
    return looks


def panels(n: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure with ``n`` panels of this size in inches, three to a line; four are two and two."""
    n_columns = 2 if n == 4 else min(n, _PER_LINE)
    n_lines = -(-n // n_columns)
    figure = new_figure(width * n_columns, height * n_lines)
    grid = figure.subplots(n_lines, n_columns, squeeze=False).ravel().tolist()
    for spare in grid[n:]:
        spare.set_visible(False)
    return figure, grid[:n]


def legend_below(figure: Figure, keys: Sequence[Artist]) -> None:
    """A legend under the panels, as wide as they are; it makes the figure taller rather than the panels smaller."""
    n_most = max(1, int(figure.get_figwidth() / _LEGEND_COLUMN))
    n_lines = -(-len(keys) // n_most)
    n_columns = -(-len(keys) // n_lines)
    figure.set_figheight(figure.get_figheight() + 0.1 + 0.22 * n_lines)
    figure.legend(handles=list(keys), loc="outside lower center", ncols=n_columns)


def draw_band(axes: Axes, spread: Spread, stroke: Stroke) -> None:
    """A mean line over the rounds, 0 being the base model, within a light band of one deviation on each side."""
    rounds = np.arange(len(spread.mean))
    low, high = spread.mean - spread.deviation, spread.mean + spread.deviation
    # All bands begin as one at the base model: lighter ones keep eight of them from turning black.
    alpha, width = (0.16, 2.6) if stroke.colour == OURS else (0.09, 1.6)
    axes.fill_between(rounds, low, high, color=stroke.colour, alpha=alpha, linewidth=0, zorder=1)
    axes.plot(
        rounds,
        spread.mean,
        color=stroke.colour,
        marker=stroke.marker,
        markersize=5,
        linewidth=width,
        zorder=stroke.order,
        clip_on=False,
    )


def frame_rounds(axes: Axes, what: str) -> None:
    """Rounds along x and a share along y, never beyond what a share can be."""
    low, high = axes.get_ylim()
    axes.set_ylim(max(0.0, low), min(1.0, high))
    share_axis(axes, "y")
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))
    axes.grid(axis="y")
    axes.set(xlabel="round (0: before any question)", ylabel=what)


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


def draw_densities(axes: Axes, values: FloatArray, is_new: BoolArray, lowest: float, highest: float) -> None:
    """The densities of ``values`` (n,) of old and of novel samples, each with its mean as a dashed line."""
    bins = np.linspace(lowest, highest, _BINS + 1).tolist()
    for own, colour in ((values[~is_new], OLD), (values[is_new], NEW)):
        if len(own):
            # float32 probabilities may sum to a little more than one: the edge bin takes what lies beyond it.
            inside = np.clip(own, lowest, highest)
            axes.hist(inside, bins, density=True, color=colour, alpha=0.3, edgecolor="none")
            axes.hist(inside, bins, density=True, histtype="step", color=colour, linewidth=1.5)
            axes.axvline(float(own.mean()), color=colour, linestyle="--", linewidth=1.4)
    axes.set_xlim(lowest, highest)
    axes.grid(axis="y")


def density_keys() -> list[Line2D]:
    return [
        Line2D([], [], color=OLD, linewidth=6, alpha=0.6, label="old classes"),
        Line2D([], [], color=NEW, linewidth=6, alpha=0.6, label="novel classes"),
        Line2D([], [], color=INK, linewidth=1.4, linestyle="--", label="mean"),
    ]


def class_dots(classes: Sequence[int], names: Sequence[str], n_old: int) -> dict[int, Line2D]:
    """The mark of each class: cool circles for old classes, warm triangles for novel ones."""
    dots = {}
    for marker, palette, own in (
        ("o", _COOL, [c for c in classes if c < n_old]),
        ("^", _WARM, [c for c in classes if c >= n_old]),
    ):
        for c, colour in zip(own, palette(np.linspace(0, 1, len(own))), strict=True):
            label = shown(names[c], 20)
            dots[c] = Line2D([], [], color=colour, linestyle="", marker=marker, markersize=6, label=label)
    return dots


def draw_map(axes: Axes, xy: FloatArray, y_class: IntArray, dots: Mapping[int, Line2D]) -> None:
    """Points ``xy`` (n, 2) in the colour and shape of their class ``y_class`` (n,)."""
    size = float(np.clip(6000 / max(1, len(xy)), 5, 22))
    for c, dot in dots.items():
        x, y = xy[y_class == c].T
        axes.scatter(x, y, s=size, color=dot.get_color(), marker=dot.get_marker(), alpha=0.75, linewidths=0)
    axes.set(xticks=[], yticks=[], aspect="equal", adjustable="datalim")
    for spine in axes.spines.values():
        spine.set(visible=True, color=FAINT)


def kind_keys() -> list[Line2D]:
    """What circles and triangles mean."""
    return [shape_key("old classes", "o"), shape_key("novel classes", "^")]


def shape_key(label: str, marker: str) -> Line2D:
    return Line2D([], [], linestyle="", color=MUTED, marker=marker, markersize=_size(marker), label=label)


def shapes(names: Sequence[str], ours: str) -> dict[str, str]:
    """A marker for each name; ours, first, is the star."""
    markers = (*MARKERS, "^")
    rivals = [name for name in names if name != ours]
    return {ours: STAR} | {name: markers[i % len(markers)] for i, name in enumerate(rivals)}


def _size(marker: str) -> float:
    return 13.0 if marker == STAR else 7.0


def draw_mark(axes: Axes, old: float, new: float, marker: str, colour: str) -> None:
    """One strategy on one data set, by its accuracy on old and on novel classes."""
    edge: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.6, "zorder": 5 if marker == STAR else 3}
    axes.plot(old, new, linestyle="", marker=marker, markersize=_size(marker), color=colour, alpha=0.9, **edge)


def frame_balance(axes: Axes, points: FloatArray) -> None:
    """A square window around the finite ``points`` (n, 2), with the diagonal on which both kinds are equal."""
    known = points[np.isfinite(points).all(1)]
    # A little beyond 100 %, so that marks at the edge are whole.
    low, high = (max(0.0, known.min() - 0.05), min(1.02, known.max() + 0.05)) if len(known) else (0.0, 1.0)
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=":", zorder=1)
    axes.set(xlim=(low, high), ylim=(low, high), aspect="equal")
    axes.set(xlabel="accuracy on old classes", ylabel="accuracy on novel classes")
    for which in ("x", "y"):
        share_axis(axes, which)
    axes.grid()


def draw_curve(axes: Axes, seed: int, curve: Sequence[tuple[int, float]], estimated: int) -> None:
    """Accuracy on the labelled rows by number of clusters tried, with a line down at the estimate."""
    colour = SET_COLOURS[seed % len(SET_COLOURS)]
    tried, shares = np.asarray(curve, float).T
    label = f"seed {seed}: {estimated} estimated"
    axes.plot(tried, shares, color=colour, marker=MARKERS[0], markersize=3.5, linewidth=1.4, label=label)
    axes.plot(estimated, np.interp(estimated, tried, shares), color=colour, marker="D", markersize=8, zorder=5)
    axes.axvline(estimated, color=colour, linestyle=":", linewidth=1.4)


def frame_curve(axes: Axes) -> None:
    axes.set(xlabel="number of clusters tried", ylabel="accuracy on labelled rows")
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))
    share_axis(axes, "y")
    axes.grid(axis="y")
    axes.legend(loc="best")
