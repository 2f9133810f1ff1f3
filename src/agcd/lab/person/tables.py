"""The measured curves as Markdown tables and as lines of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from agcd.lab.person.curves import Run
from agcd.lab.person.ways import WAYS
from agcd.lab.results import Record, markdown_table, mean_std, name_of, unique

MINUTES = (1, 2, 5, 10, 20)
"""After which the right names are counted."""
LEVELS = (0.8, 0.9, 0.95)
"""Shares of right names until which minutes are counted."""
STEP_SECONDS = 10
"""Between two lines of the file."""


def result_lines(run: Run, minutes: float) -> list[Record]:
    """A line for every ten seconds."""
    seconds = np.arange(0, 60 * minutes + 1, STEP_SECONDS).tolist()
    what = {"data": run.data, "way": run.way, "seed": run.seed, "errors": run.errors}
    return [{**what, **asdict(run.curve.at(s / 60)), "seconds": s} for s in seconds]


def person_tables(runs: Sequence[Run], minutes: float) -> str:
    """A table for each data set and each rate of errors."""
    blocks = []
    for data, errors in unique((run.data, run.errors) for run in runs):
        own = [run for run in runs if (run.data, run.errors) == (data, errors)]
        shown: list[float] = [m for m in MINUTES if m <= minutes] or [minutes]
        heads = ["way", *(f"{m:g} min" for m in shown), *(f"min to {100 * s:g} %" for s in LEVELS)]
        heads += [f"keys to {100 * LEVELS[-1]:g} %", "minutes in all", "waiting, s", "keys", "seeds"]
        lines = [_line([run for run in own if run.way == way], shown) for way in unique(run.way for run in own)]
        rows = mean_std([run.curve.n_hidden for run in own], percent=False).partition(" ")[0].partition(".")[0]
        title = f"**{name_of(data)}**, right names (%) of {rows} {own[0].noun}s, {100 * errors:g} % wrong answers"
        blocks.append(f"{title}\n\n{markdown_table(heads, lines)}\n")
    return "\n".join(blocks)


def _line(runs: Sequence[Run], shown: Sequence[float]) -> list[str]:
    curves = [run.curve for run in runs]
    right = [mean_std([curve.at(m).right for curve in curves], percent=True) for m in shown]
    until = [_mean_reached([curve.minutes_until(share) for curve in curves]) for share in LEVELS]
    until.append(_mean_reached([curve.keys_until(LEVELS[-1]) for curve in curves], digits=0))
    last = [curve.moments[-1] for curve in curves]
    minutes = _mean_reached([moment.seconds / 60 for moment in last])
    waited, keys = (f"{np.mean(values):.0f}" for values in ([m.waited for m in last], [m.keys for m in last]))
    return [WAYS[runs[0].way].words, *right, *until, minutes, waited, keys, str(len(runs))]


def _mean_reached(found: Sequence[float | None], digits: int = 1) -> str:
    """The mean over the seeds that got there, and how many did if not all."""
    reached = [value for value in found if value is not None]
    if not reached:
        return "–"
    some = "" if len(reached) == len(found) else f" ({len(reached)} of {len(found)})"
    return f"{np.mean(reached):.{digits}f}{some}"
