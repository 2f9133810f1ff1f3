"""The numbers of a story as charts. A function returns None where there is nothing to draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from agcd.report.story import Confidence, Estimate, RoundFacts
from agcd.report.style import INK, MARKERS, MUTED, NEW, OLD, OURS, RIVALS, house_style, new_figure, share_axis
from agcd.report.words import is_known, shown
from agcd.types import FloatArray

Rounds = tuple[RoundFacts, ...]
WIDTH, HEIGHT = 6.4, 4.8


@dataclass(frozen=True)
class _Way:
    """One way of asking, with the look of its lines."""

    name: str
    rounds: Rounds
    colour: str
    marker: str
    order: int

    def columns(self, *fields: str) -> FloatArray:
        """The rounds in which all ``fields`` are known, as (n, len(fields))."""
        rows = [[getattr(facts, field) for field in fields] for facts in self.rounds]
        known = [row for row in rows if all(is_known(value) for value in row)]
        return np.asarray(known, float).reshape(-1, len(fields))

    def key(self) -> Line2D:
        """The entry of this way in a legend."""
        return Line2D([], [], color=self.colour, marker=self.marker, markersize=5, label=shown(self.name, 20))


def _ways(rounds: Rounds, rivals: Mapping[str, Rounds], name: str, *fields: str) -> list[_Way]:
    """Ours, drawn on top, and the rivals below it in their own order, as far as ``fields`` are known.

    Empty when ours has no figures, or when nobody has two: the headline tells a single point better.
    """
    looks = [(RIVALS[i % len(RIVALS)], MARKERS[1 + i % (len(MARKERS) - 1)]) for i in range(len(rivals))]
    others = [_Way(rival, told, *look, 3) for (rival, told), look in zip(rivals.items(), looks, strict=True)]
    ways = [_Way(name, rounds, OURS, MARKERS[0], 4), *others]
    n_points = [len(way.columns(*fields)) for way in ways]
    if n_points[0] == 0 or max(n_points) < 2:
        return []
    return [way for way, n in zip(ways, n_points, strict=True) if n]


def _legend_below(figure: Figure, keys: Sequence[Line2D]) -> None:
    """A legend under the axes; a long one makes the figure taller rather than the chart smaller."""
    n_columns = 2 if len(keys) == 4 else min(3, len(keys))
    n_lines = -(-len(keys) // n_columns)
    figure.set_figheight(figure.get_figheight() + 0.24 * max(0, n_lines - 2))
    labels = [str(key.get_label()) for key in keys]
    figure.legend(keys, labels, loc="outside lower center", ncols=n_columns)


@house_style()
def accuracy_figure(rounds: Rounds, rivals: Mapping[str, Rounds], name: str = "This run") -> Figure | None:
    """Accuracy against the answers given: all classes solid, novel classes dashed, ours and the rivals'."""
    ways = _ways(rounds, rivals, name, "n_labels", "acc_all")
    if not ways:
        return None
    figure = new_figure(WIDTH, HEIGHT)
    axes = figure.add_subplot()
    for way in ways:
        look: dict[str, Any] = {
            "color": way.colour,
            "marker": way.marker,
            "markersize": 5,
            "zorder": way.order,
            "clip_on": False,
        }
        axes.plot(*way.columns("n_labels", "acc_all").T, linewidth=2.2, **look)
        axes.plot(*way.columns("n_labels", "acc_new").T, linewidth=1.4, linestyle=(0, (4, 2)), alpha=0.9, **look)
    _frame_shares(axes, "answers given", "accuracy")
    styles = [
        Line2D([], [], color=INK, linewidth=2.2, label="all classes"),
        Line2D([], [], color=INK, linewidth=1.4, linestyle=(0, (4, 2)), label="novel classes only"),
    ]
    _legend_below(figure, [*(way.key() for way in ways), *styles])
    return figure


def _frame_shares(axes: Axes, x_label: str, y_label: str) -> None:
    """Whole answers along x, per cent along y, and never beyond what a share can be."""
    low, high = axes.get_ylim()
    axes.set_ylim(max(0.0, low - 0.02), min(1.0, high + 0.02))
    share_axis(axes, "y")
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))
    axes.grid(axis="y")
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)


@house_style()
def balance_figure(rounds: Rounds, rivals: Mapping[str, Rounds], name: str = "This run") -> Figure | None:
    """The path from round to round over old accuracy (x) and novel accuracy (y); on the diagonal both are equal."""
    ways = _ways(rounds, rivals, name, "acc_old", "acc_new")
    if not ways:
        return None
    figure = new_figure(WIDTH, HEIGHT)
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=":", zorder=1)
    for way in ways:
        _draw_path(axes, way)
    _frame_balance(axes, np.concatenate([way.columns("acc_old", "acc_new") for way in ways]))
    _legend_below(figure, [*(way.key() for way in ways), _ring()])
    return figure


def _ring() -> Line2D:
    return Line2D([], [], color=INK, marker="o", markersize=8, markerfacecolor="white", linestyle="", label="start")


def _draw_path(axes: Axes, way: _Way) -> None:
    """A line through the rounds with an arrow head at its last step; the start is an open ring."""
    path = way.columns("acc_old", "acc_new")
    shown_marks = list(range(len(path) - 1))
    axes.plot(*path.T, color=way.colour, marker=way.marker, markevery=shown_marks, zorder=way.order, linewidth=1.6)
    axes.plot(*path[0], color=way.colour, marker="o", markersize=9, markerfacecolor="white", zorder=way.order + 2)
    if len(path) > 1 and not np.allclose(path[-1], path[-2]):
        arrow = {
            "arrowstyle": "-|>",
            "color": way.colour,
            "linewidth": 1.6,
            "mutation_scale": 18,
            "shrinkA": 0,
            "shrinkB": 0,
        }
        axes.annotate("", path[-1], path[-2], arrowprops=arrow, zorder=way.order + 3)


def _frame_balance(axes: Axes, path: FloatArray) -> None:
    """A square window around all paths that keeps a piece of the diagonal in sight."""
    low = max(0.0, float(path.min()) - 0.06)
    high = min(1.0, float(path.max()) + 0.06)
    axes.set(xlim=(low, high), ylim=(low, high), aspect="equal")
    axes.set_xlabel("accuracy on old classes", color=OLD)
    axes.set_ylabel("accuracy on novel classes", color=NEW)
    for which in ("x", "y"):
        share_axis(axes, which)
    axes.grid()
    axes.text(0.03, 0.97, "better on novel", color=NEW, fontsize=9, va="top", transform=axes.transAxes)
    axes.text(0.97, 0.03, "better on old", color=OLD, fontsize=9, ha="right", transform=axes.transAxes)


@house_style()
def agreement_figure(rounds: Rounds) -> Figure | None:
    """How often the model says what people said, of labelled samples and in blind audits: the chart without truth."""
    path = _points(rounds, "agreement")
    if len(path) < 2:
        return None
    figure = new_figure(WIDTH, HEIGHT)
    axes = figure.add_subplot()
    axes.plot(*path.T, color=OURS, marker=MARKERS[0], markersize=5, linewidth=2.2, clip_on=False)
    _frame_shares(axes, "answers given", "samples predicted as people say")
    axes.set_ylim(0, 1)
    keys = [Line2D([], [], color=OURS, marker=MARKERS[0], markersize=5, label="labelled samples")]
    audits = [(facts.n_labels, facts.audit) for facts in rounds if facts.audit]
    if audits:
        _draw_audits(axes, audits)
        keys.append(Line2D([], [], color=INK, marker=MARKERS[1], markersize=5, label="blind audit, with 95 % interval"))
    _legend_below(figure, keys)
    return figure


def _draw_audits(axes: Axes, audits: Sequence[tuple[int, Estimate]]) -> None:
    """Shares with their intervals, over the answers given."""
    shares = [audit.share for _, audit in audits]
    reach = [[audit.share - audit.low for _, audit in audits], [audit.high - audit.share for _, audit in audits]]
    look: dict[str, Any] = {"color": INK, "marker": MARKERS[1], "markersize": 5, "capsize": 4, "clip_on": False}
    axes.errorbar([n for n, _ in audits], shares, reach, linewidth=1.4, **look)


@house_style()
def progress_figure(rounds: Rounds) -> Figure | None:
    """How much of the data has a name, and how much changed its group, per answer given; needs no truth."""
    named, regrouped = _points(rounds, "named"), _points(rounds, "regrouped")
    if len(named) < 2:
        return None
    figure = new_figure(WIDTH, HEIGHT)
    axes = figure.add_subplot()
    axes.plot(*named.T, color=NEW, marker=MARKERS[0], markersize=5, linewidth=2.2, clip_on=False)
    axes.plot(*regrouped.T, color=MUTED, marker=MARKERS[1], markersize=5, linestyle=(0, (4, 2)), clip_on=False)
    _frame_shares(axes, "answers given", "share of all samples")
    axes.set_ylim(0, 1)
    keys = [Line2D([], [], color=NEW, marker=MARKERS[0], markersize=5, label="in a group with a name")]
    keys += [Line2D([], [], color=MUTED, marker=MARKERS[1], linestyle=(0, (4, 2)), label="regrouped in this round")]
    _legend_below(figure, keys)
    return figure


def _points(rounds: Rounds, field: str) -> FloatArray:
    """The rounds in which ``field`` is known, as (n, 2): answers given, and the share."""
    return _Way("", rounds, OURS, MARKERS[0], 4).columns("n_labels", field)


@house_style()
def confidence_figure(moments: Sequence[Confidence], *, predicted: bool = False) -> Figure | None:
    """Histograms of the highest probability of old and novel samples, one panel per moment.

    ``predicted``: which samples are old is the model's own word, and the legend says so.
    """
    moments = [moment for moment in moments if len(moment.old) or len(moment.new)][:6]
    if not moments:
        return None
    n_columns = min(3, len(moments))
    n_lines = -(-len(moments) // n_columns)
    figure = new_figure(max(WIDTH, 5.2 * n_columns), 3.6 * n_lines + 0.3)
    grid = figure.subplots(n_lines, n_columns, sharey=True, squeeze=False).ravel()
    for axes, moment in zip(grid, moments, strict=False):
        _draw_histograms(axes, moment)
    for axes in grid[len(moments) :]:
        axes.set_visible(False)
    keys = [Line2D([], [], color=OLD, linewidth=6, alpha=0.6, label="predicted old" if predicted else "old classes")]
    novel = "predicted novel" if predicted else "novel classes"
    keys += [Line2D([], [], color=NEW, linewidth=6, alpha=0.6, label=novel)]
    keys += [Line2D([], [], color=INK, linewidth=1.4, linestyle="--", label="mean")]
    _legend_below(figure, keys)
    return figure


def _draw_histograms(axes: Axes, moment: Confidence) -> None:
    bins = np.linspace(0, 1, 21).tolist()
    for values, colour in ((moment.old, OLD), (moment.new, NEW)):
        finite = values[np.isfinite(values)]
        if len(finite):
            weights = np.full(len(finite), 1 / len(finite))
            axes.hist(finite, bins, weights=weights, color=colour, alpha=0.35, edgecolor="none")
            axes.hist(finite, bins, weights=weights, histtype="step", color=colour, linewidth=1.6)
            axes.axvline(float(finite.mean()), color=colour, linestyle="--", linewidth=1.4)
    axes.set_title(shown(moment.title, 40), loc="left")
    axes.set(xlim=(0, 1), xlabel="highest probability", ylabel="share of the samples")
    axes.tick_params(labelleft=True)
    share_axis(axes, "y")
    axes.grid(axis="y")
