"""Tables and a picture of how true the accuracy figure is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from agcd.accuracy import AccuracyEstimate
from agcd.arrays import Float64Array
from agcd.engine import Engine, open_engine
from agcd.io import atomic_write
from agcd.lab.accuracy.judge import GUESSES, N_BINS, Judged, judge_projects
from agcd.lab.bench import Progress, compute_features, print_now, results_of
from agcd.lab.cells import Cell
from agcd.lab.frozen import check_frozen
from agcd.lab.results import markdown_table, unique
from agcd.plotting import (
    DASHES,
    MUTED,
    OURS,
    RIVALS,
    house_style,
    legend_below,
    line_key,
    panels,
    png_bytes,
    share_axis,
)

ALL = "all"
PROJECTS_AT_ONCE = 10
"""Projects that one task simulates: the features of a data set are read once for all of them."""
_COLOURS = (RIVALS[0], RIVALS[3], OURS)


def report_accuracy(
    cells: Sequence[Cell],
    cache_dir: Path,
    seeds: range,
    drawn_every: int,
    *,
    picture: Path | None = None,
    engine: Engine | None = None,
    progress: Progress = print_now,
) -> str:
    """Judge simulated projects of every cell's data; Markdown tables, and a PNG of the reliability curves."""
    engine = engine or open_engine()
    check_frozen(cells, cache_dir)
    compute_features(cells, cache_dir, engine, progress)
    parts = [seeds[i : i + PROJECTS_AT_ONCE] for i in range(0, len(seeds), PROJECTS_AT_ONCE)]
    tasks = [(cell, cache_dir.absolute(), part, drawn_every) for cell in cells for part in parts]
    names = [f"{cell.data} projects {part[0]} to {part[-1]}" for cell, _, part, _ in tasks]
    judged = [one for part in results_of(engine, judge_projects, tasks, names, progress) for one in part]
    if picture is not None:
        with atomic_write(picture) as aside:
            aside.write_bytes(_reliability_png(judged))
    return f"{_interval_table(judged)}\n\n{_cost_table(judged)}\n\n{_reliability_table(judged)}\n"


def _groups(judged: Sequence[Judged]) -> list[tuple[str, int, list[Judged]]]:
    """What stands in one line: the projects of one data set, or of all, after as many answers."""
    names = unique(one.data for one in judged)
    return [
        (name, n, [one for one in judged if one.n_answers == n and name in (one.data, ALL)])
        for name in ([*names, ALL] if len(names) > 1 else names)
        for n in sorted({one.n_answers for one in judged})
    ]


def _interval_table(judged: Sequence[Judged]) -> str:
    heads = ["data", "answers", "projects", "accuracy", "inside 90 %", "half-width", "bias", "RMS"]
    heads += ["audit of the drawn: inside", "half-width", "RMS", "audit of all: inside", "half-width", "RMS"]
    lines = []
    for name, n, own in _groups(judged):
        ours = _quality(own, lambda one: one.estimate)
        small, large = (_quality(own, pick) for pick in (lambda one: one.audit, lambda one: one.large_audit))
        head = [name, str(n), str(len(own)), _points(np.mean([one.accuracy for one in own]))]
        lines.append([*head, *ours, *(q for audit in (small, large) for q in (audit[0], audit[1], audit[3]))])
    title = (
        "**The figure**: intervals that hold the truth (%), mean half-width, bias and root mean square error (points)"
    )
    return f"{title}\n\n{markdown_table(heads, lines)}"


def _quality(own: Sequence[Judged], pick: Callable[[Judged], AccuracyEstimate]) -> list[str]:
    """The share of intervals that hold the truth, half-width, bias and error of a figure."""
    truth = np.array([one.accuracy for one in own])
    mean, low, high = np.array([(e.mean, e.low, e.high) for e in map(pick, own)]).T
    inside = np.mean((low <= truth) & (truth <= high))
    error = mean - truth
    return [_points(inside), _points(np.mean(high - low) / 2), f"{100 * error.mean():+.1f}", _points(_rms(error))]


def _cost_table(judged: Sequence[Judged]) -> str:
    lines = []
    for name, n, own in _groups([one for one in judged if one.accuracy_undrawn is not None]):
        pairs = np.array([(one.accuracy, one.accuracy_undrawn) for one in own], np.float64)
        change = pairs[:, 0] - pairs[:, 1]
        error = change.std() / max(1, len(own) - 1) ** 0.5
        words = f"{100 * change.mean():+.1f} ± {100 * error:.1f}"
        lines.append([name, str(n), str(len(own)), _points(pairs[:, 1].mean()), words])
    title = (
        "**What drawing at random costs**: accuracy without drawn questions, and its change by them (± standard error)"
    )
    return f"{title}\n\n{markdown_table(['data', 'answers', 'projects', 'without', 'change'], lines)}"


def _reliability_table(judged: Sequence[Judged]) -> str:
    bins = _bins(judged)
    heads = ["guess"] + [f"{column}: {word}" for column in GUESSES for word in ("rows", "guess", "right")]
    lines = []
    for i in range(N_BINS):
        cells = [cell for guess in range(len(GUESSES)) for cell in _bin_cells(bins[guess, i])]
        lines.append([f"{100 * i // N_BINS}–{100 * (i + 1) // N_BINS} %", *cells])
    gaps = ", ".join(f"{name} {100 * _gap(bins[i]):.1f}" for i, name in enumerate(GUESSES))
    title = "**Reliability** over all rows without a label: mean guess and share that is right, in percent"
    return f"{title}\n\n{markdown_table(heads, lines)}\n\nExpected calibration error in points: {gaps}."


def _bins(judged: Sequence[Judged]) -> Float64Array:
    """(3, N_BINS, 3): share of rows, mean guess and share right, every project counting alike."""
    total = np.mean([one.reliability / one.reliability[0, :, 0].sum() for one in judged], axis=0)
    total[:, :, 1:] /= np.maximum(total[:, :, :1], 1e-12)
    return np.asarray(total)


def _bin_cells(one: Float64Array) -> list[str]:
    return [_points(one[0]), _points(one[1]), _points(one[2])] if one[0] > 0 else ["0.0", "–", "–"]


def _gap(bins: Float64Array) -> float:
    return float((bins[:, 0] * np.abs(bins[:, 1] - bins[:, 2])).sum())


@house_style()
def _reliability_png(judged: Sequence[Judged]) -> bytes:
    names = unique(one.data for one in judged)
    figure, axes = panels(len(names), 3.4, 3.2)
    for name, ax in zip(names, axes, strict=True):
        bins = _bins([one for one in judged if one.data == name])
        ax.plot([0, 1], [0, 1], color=MUTED, linestyle=DASHES, linewidth=1)
        for guess, colour in enumerate(_COLOURS):
            shown = bins[guess][bins[guess, :, 0] > 0.002]
            ax.plot(shown[:, 1], shown[:, 2], color=colour, marker="o", markersize=4)
        ax.set(title=name, xlabel="guess", ylabel="right", xlim=(0, 1), ylim=(0, 1))
        share_axis(ax, "x")
        share_axis(ax, "y")
    legend_below(figure, [line_key(name, colour, "o") for name, colour in zip(GUESSES, _COLOURS, strict=True)])
    return png_bytes(figure)


def _rms(error: Float64Array) -> float:
    return float(np.sqrt(np.mean(error**2)))


def _points(value: float | np.floating) -> str:
    return f"{100 * float(value):.1f}"
