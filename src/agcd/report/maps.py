"""The features of a story on a plane: cool dots are old classes, warm triangles are novel ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from agcd.report.story import FeatureMap
from agcd.report.style import FAINT, INK, house_style, new_figure
from agcd.report.words import count, shown
from agcd.types import BoolArray

MAX_CLASSES = 20
UNKNOWN = "#9AA4B1"
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


@dataclass(frozen=True)
class _Look:
    """How one class is drawn, and the number that stands for it in map and legend."""

    number: int
    name: str
    is_new: bool
    colour: tuple[float, float, float]


@house_style()
def map_figure(maps: Sequence[FeatureMap]) -> Figure | None:
    """One panel per moment (three at most) with shared colours, and the legend beside them."""
    maps = [each for each in maps if len(each.xy)][:3]
    if not maps:
        return None
    looks, n_others = _choose_looks(maps)
    keys = _legend_keys(looks, n_others, maps)
    figure = new_figure(4.7 * len(maps) + 2.3, max(4.8, 0.21 * len(keys) + 0.5))
    for axes, each in zip(figure.subplots(1, len(maps), squeeze=False).ravel(), maps, strict=True):
        _draw_map(axes, each, looks)
    labels = [str(key.get_label()) for key in keys]
    legend = figure.legend(keys, labels, loc="outside right upper", fontsize=9, handletextpad=0.5)
    for text in legend.get_texts():
        if text.get_text() in ("Old classes", "Novel classes"):
            text.set_fontweight("bold")
    return figure


def _choose_looks(maps: Sequence[FeatureMap]) -> tuple[dict[int, _Look], int]:
    """The classes that get a colour, by class number, and how many are left over."""
    y_class = np.concatenate([each.y_class for each in maps])
    is_new = np.concatenate([each.is_new for each in maps])
    names = max((each.names for each in maps), key=len)
    classes, sizes = np.unique(y_class[y_class >= 0], return_counts=True)
    by_size = classes[np.argsort(-sizes, kind="stable")].tolist()
    new = {c: bool(is_new[y_class == c].mean() > 0.5) for c in by_size}
    kept = _share_out(by_size, new)
    looks: dict[int, _Look] = {}
    for palette, wanted in ((_COOL, False), (_WARM, True)):
        for i, c in enumerate(c for c in kept if new[c] is wanted):
            name = names[c] if c < len(names) else f"class {c}"
            looks[c] = _Look(len(looks) + 1, name, wanted, _colour(palette, i))
    return looks, len(classes) - len(kept)


def _share_out(by_size: list[int], new: dict[int, bool]) -> list[int]:
    """The largest classes, half of them old and half novel as far as there are so many, by class number."""
    rank = {True: 0, False: 0}
    place = {}
    for c in by_size:
        place[c] = rank[new[c]]
        rank[new[c]] += 1
    return sorted(sorted(by_size, key=place.__getitem__)[:MAX_CLASSES])


def _colour(palette: Sequence[str], i: int) -> tuple[float, float, float]:
    """The i-th colour; a second turn through the palette is darker, so that twenty classes stay distinct."""
    red, green, blue = to_rgb(palette[i % len(palette)])
    shade = 0.55 ** (i // len(palette))
    return (red * shade, green * shade, blue * shade)


def _draw_map(axes: Axes, each: FeatureMap, looks: dict[int, _Look]) -> None:
    finite = np.asarray(np.isfinite(each.xy).all(1))
    size = float(np.clip(12000 / max(1, len(each.xy)), 5, 28))
    coloured = np.isin(each.y_class, list(looks))
    x, y = each.xy.T
    others, unknown = finite & ~coloured & (each.y_class >= 0), finite & (each.y_class < 0)
    axes.scatter(x[others], y[others], s=0.6 * size, c=FAINT, linewidths=0)
    axes.scatter(x[unknown], y[unknown], s=0.6 * size, c=UNKNOWN, marker="x", linewidths=0.8)
    for novel, marker in ((False, "o"), (True, "^")):
        for queried in (False, True):
            chosen = finite & coloured & (each.is_new == novel) & (each.queried == queried)
            colours = [looks[c].colour for c in each.y_class[chosen].tolist()]
            edge: dict[str, Any] = {"linewidths": 0, "alpha": 0.75, "s": size}
            if queried:
                edge = {"linewidths": 1.3, "edgecolors": "black", "s": 3 * max(size, 14), "zorder": 7}
            axes.scatter(x[chosen], y[chosen], c=colours, marker=marker, **edge)
    _number_classes(axes, each, looks, finite)
    axes.set_title(shown(each.title, 40), loc="left")
    axes.set(xticks=[], yticks=[], aspect="equal", adjustable="datalim")
    for spine in axes.spines.values():
        spine.set(visible=True, color=FAINT)


def _number_classes(axes: Axes, each: FeatureMap, looks: dict[int, _Look], finite: BoolArray) -> None:
    """The number of each class at the middle of its points, for readers who cannot tell the colours apart."""
    halo = [patheffects.withStroke(linewidth=3, foreground="white")]
    for c, look in looks.items():
        points = each.xy[finite & (each.y_class == c)]
        if len(points):
            x, y = np.median(points, axis=0)
            text = axes.annotate(str(look.number), (x, y), (0, 8), textcoords="offset points", ha="center", zorder=8)
            text.set(color=INK, fontsize=10, fontweight="bold", path_effects=halo)


def _legend_keys(looks: dict[int, _Look], n_others: int, maps: Sequence[FeatureMap]) -> list[Line2D]:
    """Old classes, novel classes, then what the other marks mean; only what occurs."""
    keys: list[Line2D] = []
    for title, wanted, marker in (("Old classes", False, "o"), ("Novel classes", True, "^")):
        members = [look for look in looks.values() if look.is_new is wanted]
        if members:
            keys.append(Line2D([], [], linestyle="", label=title))
        keys += [_dot(f"{look.number}  {shown(look.name, 22)}", look.colour, marker) for look in members]
    marks = []
    if n_others:
        marks.append(_dot(count(n_others, "further class"), FAINT, "o"))
    if any((each.y_class < 0).any() for each in maps):
        marks.append(_dot("class not known", UNKNOWN, "x", edge=UNKNOWN))
    if any(each.queried.any() for each in maps):
        marks.append(_dot("answered", "white", "o", edge="black"))
    return keys + ([Line2D([], [], linestyle="", label=" "), *marks] if marks else [])


def _dot(label: str, colour: str | tuple[float, float, float], marker: str, edge: str = "none") -> Line2D:
    dot = Line2D([], [], linestyle="", marker=marker, markersize=7, label=label)
    dot.set(markerfacecolor=colour, markeredgecolor=edge, markeredgewidth=1.3)
    return dot
