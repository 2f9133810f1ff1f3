"""Right names against minutes: a line for each way, a panel for each data set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from agcd.lab.person.curves import Run
from agcd.lab.person.ways import WAYS
from agcd.lab.results import name_of, unique
from agcd.plotting import DASHES, NEW, OLD, OURS, RIVALS, house_style, legend_below, panels, share_axis, spread_of

STEP_SECONDS = 1
"""Between two points of a line."""
LEGEND_COLUMN = 3.2
"""Inches that a legend needs for the words of a way."""
END_SHARE = 0.99
"""A way whose last action comes before this share of the time has ended by itself: a dot says where."""
TICKS = (0, 0.5, 1, 2, 3, 5, 7, 10, 15, 20, 30, 45, 60)
"""Minutes with a mark, on an axis that grows with the root of time: most happens in the first ones."""
LOOKS: dict[str, dict[str, Any]] = {
    "live": {"color": OURS, "linewidth": 2.6, "zorder": 6},
    "live-ticks": {"color": OURS, "linewidth": 1.5, "linestyle": DASHES, "zorder": 5},
    "page": {"color": OURS, "linewidth": 2.0, "linestyle": ":", "zorder": 7},
    "rounds": {"color": NEW, "linewidth": 2.0, "zorder": 4},
    "clusters": {"color": RIVALS[1], "linewidth": 1.6, "zorder": 3},
    "clusters-2x": {"color": RIVALS[1], "linewidth": 1.6, "linestyle": DASHES, "zorder": 3},
    "pages": {"color": OLD, "linewidth": 1.8, "zorder": 4},
    "one-by-one": {"color": RIVALS[0], "linewidth": 1.8, "zorder": 2},
}
"""How each way is drawn."""


@house_style()
def draw_runs(runs: Sequence[Run], minutes: float) -> Figure:
    """The mean over seeds within a band of one deviation; time is all that the person does and waits for."""
    names, used = unique(run.data for run in runs), {run.way for run in runs}
    figure, grid = panels(len(names), 6.4 if len(names) < 3 else 4.8, 4.4, sharey=True)
    for axes, data in zip(grid, names, strict=True):
        own = [run for run in runs if run.data == data]
        for way in unique(run.way for run in own):
            _draw_way(axes, [run for run in own if run.way == way], minutes)
        _frame(axes, f"{name_of(data)}, {_rows(own)} {own[0].noun}s", minutes)
    for axes in grid:
        if axes.get_subplotspec().is_first_col():  # type: ignore[union-attr]
            axes.set_ylabel(f"{_noun(runs)}s with the right name")
    keys = [Line2D([], [], label=WAYS[way].words, **LOOKS.get(way, {})) for way in WAYS if way in used]
    legend_below(figure, keys, column=LEGEND_COLUMN)
    return figure


def _draw_way(axes: Axes, runs: Sequence[Run], minutes: float) -> None:
    times = np.arange(0, 60 * minutes + STEP_SECONDS, STEP_SECONDS) / 60
    spread = spread_of(np.array([[run.curve.at(float(t)).right for t in times] for run in runs]))
    look = LOOKS.get(runs[0].way, {})
    deviation = np.nan_to_num(spread.deviation)
    low, high = spread.mean - deviation, np.minimum(spread.mean + deviation, 1)
    axes.fill_between(times, low, high, color=look.get("color"), alpha=0.12, linewidth=0, zorder=1)
    axes.plot(times, spread.mean, **look)
    ends = [run.curve.moments[-1].seconds / 60 for run in runs]
    if max(ends) < minutes * END_SHARE:
        at = float(np.mean(ends))
        axes.plot(at, np.interp(at, times, spread.mean), "o", color=look.get("color"), markersize=6, zorder=7)


def _frame(axes: Axes, title: str, minutes: float) -> None:
    axes.set_xscale("function", functions=(lambda t: np.sqrt(np.maximum(t, 0)), np.square))
    axes.set(xlim=(0, minutes), ylim=(0, 1.01), xlabel="minutes of the person, waiting included", title=title)
    axes.set_xticks([t for t in TICKS if t <= minutes], [f"{t:g}" for t in TICKS if t <= minutes])
    share_axis(axes, "y")
    axes.grid()


def _noun(runs: Sequence[Run]) -> str:
    nouns = unique(run.noun for run in runs)
    return nouns[0] if len(nouns) == 1 else "row"


def _rows(runs: Sequence[Run]) -> str:
    counts = sorted({run.curve.n_hidden for run in runs})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
