"""The picture of the comparison: All by number of answers, a panel for each data set."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.figure
import numpy as np
from matplotlib.axes import Axes

from agcd.lab.beyond.plan import OURS, main_entries
from agcd.lab.cells import NO_QUERY
from agcd.lab.paper import charts
from agcd.lab.paper.figures import by_round
from agcd.lab.paper.look import Look
from agcd.lab.paper.study import Entry, Study
from agcd.report.style import house_style
from agcd.report.words import shown


@house_style()
def draw(studies: Sequence[Study], look: Look) -> matplotlib.figure.Figure:
    """A curve for each line that asks, within a band of one deviation over seeds; all begin at the base model."""
    figure, grid = charts.panels(len(studies), 5.4, 4.0)
    looks = charts.strokes([entry.line for entry in _asking(studies[0])], OURS)
    for axes, study in zip(grid, studies, strict=True):
        entries = _asking(study)
        for entry in entries:
            charts.draw_band(axes, by_round(entry, "acc_all", look), looks[entry.line])
        charts.frame_rounds(axes, "accuracy, all classes")
        _count_answers(axes, entries[0], look)
        axes.set_title(shown(study.title, 30), loc="left")
    charts.legend_below(figure, [stroke.key() for stroke in looks.values()])
    return figure


def _asking(study: Study) -> list[Entry]:
    return [entry for entry in main_entries(study) if entry.line != NO_QUERY]


def _count_answers(axes: Axes, entry: Entry, look: Look) -> None:
    """Name each round by the answers given until then, which are the same for all lines."""
    n_answers = by_round(entry, "n_queried", look).mean
    axes.set_xticks(np.arange(len(n_answers)), [f"{n:g}" for n in n_answers])
    axes.set_xlabel("answers")
