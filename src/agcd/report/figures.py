"""The numbers of a story as charts, and its features on a plane.

A function returns None where there is nothing to draw. On maps cool dots are old classes, warm triangles novel ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from agcd import plotting
from agcd.plotting import DASHES, FAINT, INK, MARKERS, MUTED, NEW, OLD, OURS, Stroke, house_style, line_key
from agcd.report.story import Confidence, Estimate, FeatureMap, RoundFacts
from agcd.types import BoolArray, FloatArray
from agcd.words import count, is_known, shown

Rounds = tuple[RoundFacts, ...]
WIDTH, HEIGHT = 6.4, 4.3
MAX_CLASSES = 20
"""So many classes have a colour on a map: ten of each kind can still be told apart."""
RESEARCHERS_HEADS, PERSONS_HEADS = ("Old classes", "Novel classes"), ("Known from the start", "Found since")
"""What stands over the two kinds of classes in the legend of a map."""
UNKNOWN = "#9AA4B1"
_MAX_MOMENTS, _MAX_MAPS = 6, 3
"""What fits into the width of a page."""


@dataclass(frozen=True)
class _Way:
    """One way of asking, with the look of its lines."""

    rounds: Rounds
    stroke: Stroke

    def columns(self, *fields: str) -> FloatArray:
        """The rounds in which all ``fields`` are known, as (n, len(fields))."""
        return _columns(self.rounds, *fields)

    @property
    def look(self) -> dict[str, Any]:
        return {"color": self.stroke.colour, "marker": self.stroke.marker, "zorder": self.stroke.order}


def _columns(rounds: Rounds, *fields: str) -> FloatArray:
    rows = [[getattr(facts, field) for field in fields] for facts in rounds]
    known = [row for row in rows if all(is_known(value) for value in row)]
    return np.asarray(known, float).reshape(-1, len(fields))


def _ways(rounds: Rounds, rivals: Mapping[str, Rounds], name: str, *fields: str) -> list[_Way]:
    """Ours, drawn on top, and the rivals below it in their own order, as far as ``fields`` are known.

    Empty when ours has no figures, or when nobody has two: the headline tells a single point better.
    """
    told = [rounds, *rivals.values()]
    # By number and not by name: a rival may be called as we are.
    looks = plotting.strokes([str(i) for i in range(len(told))], "0").values()
    labels = [shown(each, 20) for each in (name, *rivals)]
    strokes = [Stroke(label, look.colour, look.marker, look.order) for label, look in zip(labels, looks, strict=True)]
    ways = [_Way(each, stroke) for each, stroke in zip(told, strokes, strict=True)]
    n_points = [len(way.columns(*fields)) for way in ways]
    if n_points[0] == 0 or max(n_points) < 2:
        return []
    return [way for way, n in zip(ways, n_points, strict=True) if n]


def _one_chart() -> tuple[Figure, Axes]:
    figure = plotting.new_figure(WIDTH, HEIGHT)
    return figure, figure.add_subplot()


@house_style()
def accuracy_figure(rounds: Rounds, rivals: Mapping[str, Rounds], name: str = "This run") -> Figure | None:
    """Accuracy against the answers given: all classes solid, novel classes dashed, ours and the rivals'."""
    ways = _ways(rounds, rivals, name, "n_labels", "acc_all")
    if not ways:
        return None
    figure, axes = _one_chart()
    for way in ways:
        look: dict[str, Any] = way.look | {"markersize": 5, "clip_on": False}
        axes.plot(*way.columns("n_labels", "acc_all").T, linewidth=2.2, **look)
        axes.plot(*way.columns("n_labels", "acc_new").T, linewidth=1.4, linestyle=DASHES, alpha=0.9, **look)
    plotting.frame_shares(axes, "answers given", "accuracy")
    styles = [
        line_key("all classes", INK, linewidth=2.2),
        line_key("novel classes only", INK, linewidth=1.4, linestyle=DASHES),
    ]
    plotting.legend_below(figure, [*(way.stroke.key() for way in ways), *styles])
    return figure


@house_style()
def balance_figure(rounds: Rounds, rivals: Mapping[str, Rounds], name: str = "This run") -> Figure | None:
    """The path from round to round over old accuracy (x) and novel accuracy (y); on the diagonal both are equal."""
    ways = _ways(rounds, rivals, name, "acc_old", "acc_new")
    if not ways:
        return None
    figure, axes = _one_chart()
    for way in ways:
        _draw_path(axes, way)
    plotting.frame_balance(axes, np.concatenate([way.columns("acc_old", "acc_new") for way in ways]))
    axes.xaxis.label.set_color(OLD)
    axes.yaxis.label.set_color(NEW)
    axes.text(0.03, 0.97, "better on novel", color=NEW, fontsize=9, va="top", transform=axes.transAxes)
    axes.text(0.97, 0.03, "better on old", color=OLD, fontsize=9, ha="right", transform=axes.transAxes)
    ring = Line2D([], [], color=INK, marker="o", markersize=8, markerfacecolor="white", linestyle="", label="start")
    plotting.legend_below(figure, [*(way.stroke.key() for way in ways), ring])
    return figure


def _draw_path(axes: Axes, way: _Way) -> None:
    """A line through the rounds with an arrow head at its last step; the start is an open ring."""
    path, colour, order = way.columns("acc_old", "acc_new"), way.stroke.colour, way.stroke.order
    axes.plot(*path.T, markevery=list(range(len(path) - 1)), linewidth=1.6, **way.look)
    axes.plot(*path[0], color=colour, marker="o", markersize=9, markerfacecolor="white", zorder=order + 2)
    if len(path) > 1 and not np.allclose(path[-1], path[-2]):
        arrow = {
            "arrowstyle": "-|>",
            "color": colour,
            "linewidth": 1.6,
            "mutation_scale": 18,
            "shrinkA": 0,
            "shrinkB": 0,
        }
        axes.annotate("", path[-1], path[-2], arrowprops=arrow, zorder=order + 3)


@house_style()
def agreement_figure(rounds: Rounds, noun: str = "picture") -> Figure | None:
    """How often the model says what people said, of labelled samples and in blind audits: the chart without truth."""
    path = _columns(rounds, "n_labels", "agreement")
    if len(path) < 2:
        return None
    figure, axes = _one_chart()
    axes.plot(*path.T, color=OURS, marker=MARKERS[0], markersize=5, linewidth=2.2, clip_on=False)
    plotting.frame_shares(axes, "answers given", f"{noun}s called as people call them")
    axes.set_ylim(0, 1)
    keys = [line_key(f"labelled {noun}s", OURS, MARKERS[0])]
    audits = [(facts.n_labels, facts.audit) for facts in rounds if facts.audit]
    if audits:
        _draw_audits(axes, audits)
        keys.append(line_key("blind audit, with 95 % interval", INK, MARKERS[1]))
    plotting.legend_below(figure, keys)
    return figure


def _draw_audits(axes: Axes, audits: Sequence[tuple[int, Estimate]]) -> None:
    """Shares with their intervals, over the answers given."""
    shares = [audit.share for _, audit in audits]
    reach = [[audit.share - audit.low for _, audit in audits], [audit.high - audit.share for _, audit in audits]]
    look: dict[str, Any] = {"color": INK, "marker": MARKERS[1], "markersize": 5, "capsize": 4, "clip_on": False}
    axes.errorbar([n for n, _ in audits], shares, reach, linewidth=1.4, **look)


@house_style()
def progress_figure(rounds: Rounds, noun: str = "picture") -> Figure | None:
    """How much of the data has a name, and how much changed its group, per answer given; needs no truth."""
    named, regrouped = _columns(rounds, "n_labels", "named"), _columns(rounds, "n_labels", "regrouped")
    if len(named) < 2:
        return None
    figure, axes = _one_chart()
    axes.plot(*named.T, color=NEW, marker=MARKERS[0], markersize=5, linewidth=2.2, clip_on=False)
    axes.plot(*regrouped.T, color=MUTED, marker=MARKERS[1], markersize=5, linestyle=DASHES, clip_on=False)
    plotting.frame_shares(axes, "answers given", f"share of all {noun}s")
    axes.set_ylim(0, 1)
    named_key = line_key("in a group with a name", NEW, MARKERS[0])
    plotting.legend_below(figure, [named_key, line_key("regrouped in this round", MUTED, MARKERS[1], linestyle=DASHES)])
    return figure


@house_style()
def confidence_figure(
    moments: Sequence[Confidence], *, predicted: bool = False, noun: str = "picture"
) -> Figure | None:
    """Histograms of the highest probability of old and novel samples, one panel per moment.

    ``predicted``: which samples are old is the model's own word, and legend and axes speak to a person.
    """
    moments = [moment for moment in moments if len(moment.old) or len(moment.new)][:_MAX_MOMENTS]
    if not moments:
        return None
    figure, grid = plotting.panels(len(moments), WIDTH if len(moments) == 1 else 5.2, 3.6, sharey=True)
    for axes, moment in zip(grid, moments, strict=True):
        plotting.draw_histograms(axes, moment.old, moment.new)
        axes.set_title(shown(moment.title, 40), loc="left")
        if predicted:
            axes.set(xlabel="how sure the model is", ylabel=f"share of the {noun}s")
        else:
            axes.set(xlabel="highest probability", ylabel="share of the samples")
        axes.tick_params(labelleft=True)
        plotting.share_axis(axes, "y")
    kinds = ("in known classes", "in classes and groups found since") if predicted else ("old classes", "novel classes")
    plotting.legend_below(figure, plotting.area_keys(*kinds))
    return figure


@dataclass(frozen=True)
class _ClassMark:
    """How one class is drawn, and the number that stands for it in map and legend."""

    number: int
    name: str
    is_new: bool
    colour: plotting.Colour


@house_style()
def map_figure(maps: Sequence[FeatureMap], heads: tuple[str, str] = RESEARCHERS_HEADS) -> Figure | None:
    """One panel per moment (three at most) with shared colours, and the legend beside them under two ``heads``."""
    maps = [each for each in maps if len(each.xy)][:_MAX_MAPS]
    if not maps:
        return None
    marks, n_others = _class_marks(maps)
    keys = _map_keys(marks, n_others, maps, heads)
    figure = plotting.new_figure(4.7 * len(maps) + 2.3, max(4.8, 0.21 * len(keys) + 0.5))
    for axes, each in zip(figure.subplots(1, len(maps), squeeze=False).ravel(), maps, strict=True):
        _draw_map(axes, each, marks)
    labels = [str(key.get_label()) for key in keys]
    legend = figure.legend(keys, labels, loc="outside right upper", fontsize=9, handletextpad=0.5)
    for text in legend.get_texts():
        if text.get_text() in heads:
            text.set_fontweight("bold")
    return figure


def _class_marks(maps: Sequence[FeatureMap]) -> tuple[dict[int, _ClassMark], int]:
    """The classes that get a colour, by class number, and how many are left over."""
    y_class = np.concatenate([each.y_class for each in maps])
    is_new = np.concatenate([each.is_new for each in maps])
    names = max((each.names for each in maps), key=len)
    classes, sizes = np.unique(y_class[y_class >= 0], return_counts=True)
    by_size = classes[np.argsort(-sizes, kind="stable")].tolist()
    new = {c: bool(is_new[y_class == c].mean() > 0.5) for c in by_size}
    kept = _largest_of_both_kinds(by_size, new)
    marks: dict[int, _ClassMark] = {}
    for wanted in (False, True):
        for i, c in enumerate(c for c in kept if new[c] is wanted):
            name = names[c] if c < len(names) else f"class {c}"
            marks[c] = _ClassMark(len(marks) + 1, name, wanted, plotting.class_colour(wanted, i))
    return marks, len(classes) - len(kept)


def _largest_of_both_kinds(by_size: list[int], new: dict[int, bool]) -> list[int]:
    """The largest classes, half of them old and half novel as far as there are so many, by class number."""
    rank = {True: 0, False: 0}
    place = {}
    for c in by_size:
        place[c] = rank[new[c]]
        rank[new[c]] += 1
    return sorted(sorted(by_size, key=place.__getitem__)[:MAX_CLASSES])


def _draw_map(axes: Axes, each: FeatureMap, marks: dict[int, _ClassMark]) -> None:
    """Faint dots for classes without a colour, crosses where no class is known, black outlines for answered rows."""
    finite = np.asarray(np.isfinite(each.xy).all(1))
    size = float(np.clip(12000 / max(1, len(each.xy)), 5, 28))
    coloured = np.isin(each.y_class, list(marks))
    x, y = each.xy.T
    others, unknown = finite & ~coloured & (each.y_class >= 0), finite & (each.y_class < 0)
    axes.scatter(x[others], y[others], s=0.6 * size, c=FAINT, linewidths=0)
    axes.scatter(x[unknown], y[unknown], s=0.6 * size, c=UNKNOWN, marker="x", linewidths=0.8)
    for is_new in (False, True):
        for queried in (False, True):
            chosen = finite & coloured & (each.is_new == is_new) & (each.queried == queried)
            colours = [marks[c].colour for c in each.y_class[chosen].tolist()]
            edge: dict[str, Any] = {"linewidths": 0, "alpha": 0.75, "s": size}
            if queried:
                edge = {"linewidths": 1.3, "edgecolors": "black", "s": 3 * max(size, 14), "zorder": 7}
            axes.scatter(x[chosen], y[chosen], c=colours, marker=plotting.class_marker(is_new), **edge)
    _number_classes(axes, each, marks, finite)
    axes.set_title(shown(each.title, 40), loc="left")
    plotting.frame_map(axes)


def _number_classes(axes: Axes, each: FeatureMap, marks: dict[int, _ClassMark], finite: BoolArray) -> None:
    """The number of each class at the middle of its points, for readers who cannot tell the colours apart."""
    halo = [patheffects.withStroke(linewidth=3, foreground="white")]
    for c, mark in marks.items():
        points = each.xy[finite & (each.y_class == c)]
        if len(points):
            x, y = np.median(points, axis=0)
            text = axes.annotate(str(mark.number), (x, y), (0, 8), textcoords="offset points", ha="center", zorder=8)
            text.set(color=INK, fontsize=10, fontweight="bold", path_effects=halo)


def _map_keys(
    marks: dict[int, _ClassMark], n_others: int, maps: Sequence[FeatureMap], heads: tuple[str, str]
) -> list[Line2D]:
    """Old classes, novel classes, then what the other marks mean; only what occurs."""
    keys: list[Line2D] = []
    for title, is_new in zip(heads, (False, True), strict=True):
        members = [mark for mark in marks.values() if mark.is_new is is_new]
        if members:
            keys.append(Line2D([], [], linestyle="", label=title))
        shape = plotting.class_marker(is_new)
        keys += [_dot(f"{mark.number}  {shown(mark.name, 22)}", mark.colour, shape) for mark in members]
    others = []
    if n_others:
        others.append(_dot(count(n_others, "further class"), FAINT, "o"))
    if any((each.y_class < 0).any() for each in maps):
        others.append(_dot("class not known", UNKNOWN, "x", edge=UNKNOWN))
    if any(each.queried.any() for each in maps):
        others.append(_dot("answered", "white", "o", edge="black"))
    return keys + ([Line2D([], [], linestyle="", label=" "), *others] if others else [])


def _dot(label: str, colour: str | plotting.Colour, marker: str, edge: str = "none") -> Line2D:
    dot = Line2D([], [], linestyle="", marker=marker, markersize=7, label=label)
    dot.set(markerfacecolor=colour, markeredgecolor=edge, markeredgewidth=1.3)
    return dot
