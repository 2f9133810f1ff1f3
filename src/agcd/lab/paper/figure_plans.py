"""The figures of the paper: which runs each needs, and how it is drawn from them.

What the paper shows for one data set is a panel, or a line of panels, for every data set asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import matplotlib.figure
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from agcd import plotting
from agcd.arrays import confidence_of
from agcd.lab.cells import NO_QUERY
from agcd.lab.evaluator import Evaluator
from agcd.lab.finished import FinishedCells
from agcd.lab.paper.study import Entry, Study, Wanted
from agcd.lab.paper.table_plans import OURS, TABLES
from agcd.lab.paper.table_text import LINES
from agcd.layout import tsne
from agcd.plotting import INK, NEW, OLD, Spread, Stroke, house_style, new_figure
from agcd.rng import generator
from agcd.words import shown

ADAPTIVE = (OURS, "confident_novel", "informative_novel")
EMA, NO_EMA = "EMA", "no EMA"
MAPPED = ("random", "entropy", OURS)
MAP_POINTS = 2000
"""About so many rows at most are placed by t-SNE, which takes minutes for more."""
CONFIDENCES = {"entropy": "−entropy", "margin": "margin", "msp": "MSP"}
"""Metric → its name in the paper."""
ROUNDS = "round (0: before any question)"
MEASURED = {"acc_all": "accuracy, all classes", "mapping_consistency": "mapping consistency"}
NAMED_CLASSES = 10
"""So many classes at most are named beside a map."""


@dataclass(frozen=True)
class Figure(Wanted):
    """A figure, with the function that draws it for some data sets."""

    draw: Callable[[Sequence[Study], FinishedCells], matplotlib.figure.Figure]


def by_round(entry: Entry, measure: str, finished: FinishedCells) -> Spread:
    """A measure after each round, over the seeds of an entry."""
    values = [[record[measure] for record in finished.records(cell)] for cell in entry.cells]
    return plotting.spread_of(np.asarray(values, float))


def _final(entries: Sequence[Entry], measure: str, finished: FinishedCells) -> Spread:
    """A measure after the last round of each entry."""
    return plotting.last_of([by_round(entry, measure, finished) for entry in entries])


def _title(study: Study, width: int = 30) -> str:
    return shown(study.title, width) + (" (--quick)" if study.quick else "")


def _first_seed(entries: Sequence[Entry]) -> list[Entry]:
    """For figures that show one model and not a mean."""
    return [replace(entry, cells=entry.cells[:1]) for entry in entries]


def _base_entries(study: Study) -> list[Entry]:
    return [study.entry(NO_QUERY, NO_QUERY)]


@house_style()
def _draw_imbalance(studies: Sequence[Study], finished: FinishedCells) -> matplotlib.figure.Figure:
    entries = [entry for study in studies for entry in _base_entries(study)]
    figure = new_figure(max(4.8, 1.6 + 1.5 * len(studies)), 4.0)
    axes = figure.add_subplot()
    bars = [(_final(entries, "acc_old", finished), OLD), (_final(entries, "acc_new", finished), NEW)]
    plotting.draw_bars(axes, [_title(study, 16) for study in studies], bars)
    axes.set_ylabel("accuracy without questions")
    plotting.legend_below(figure, [Patch(color=OLD, label="old classes"), Patch(color=NEW, label="novel classes")])
    return figure


def _confidence_entries(study: Study) -> list[Entry]:
    return _first_seed([study.entry(OURS, OURS)])


@house_style()
def _draw_confidence(studies: Sequence[Study], finished: FinishedCells) -> matplotlib.figure.Figure:
    figure = new_figure(3.4 * (len(CONFIDENCES) + 1), 2.9 * len(studies))
    grid = figure.subplots(len(studies), len(CONFIDENCES) + 1, squeeze=False)
    for line, study in zip(grid, studies, strict=True):
        _confidence_line(line, study, finished)
    plotting.legend_below(figure, plotting.area_keys())
    return figure


def _confidence_line(line: Sequence[Axes], study: Study, finished: FinishedCells) -> None:
    """The three measures before the first question, then MSP after the last answer.

    The paper does not say which measure its figure of before and after shows.
    """
    replayed = finished.replay(_confidence_entries(study)[0].cells[0])
    evaluator, features = replayed.prepared.evaluator, replayed.prepared.features
    is_new = evaluator.truth[evaluator.rows] >= evaluator.n_old
    before, after = (
        done.fitted.predict(features, evaluator.rows).probs for done in (replayed.session.rounds[0], replayed.last)
    )
    shown_probs = [(metric, before, "before") for metric in CONFIDENCES] + [("msp", after, "after")]
    for axes, (metric, probs, moment) in zip(line, shown_probs, strict=True):
        lowest, highest = (-float(np.log(probs.shape[1])), 0.0) if metric == "entropy" else (0.0, 1.0)
        confidence = confidence_of(probs, metric)
        plotting.draw_histograms(axes, confidence[~is_new], confidence[is_new], (lowest, highest), density=True)
        axes.set(xlabel=CONFIDENCES[metric], ylabel="density")
        axes.set_title(f"{_title(study, 18)}, {moment}", loc="left")
    # Before and after are compared by eye, so they need one scale.
    line[-1].sharey(line[-2])
    line[-2].autoscale(axis="y")


def _rounds_entries(study: Study) -> list[Entry]:
    return [entry for entry in TABLES["main"].entries(study) if entry.line != NO_QUERY]


@house_style()
def _draw_rounds(studies: Sequence[Study], finished: FinishedCells) -> matplotlib.figure.Figure:
    figure, grid = plotting.panels(len(studies), 5.4, 4.0)
    looks = plotting.strokes([entry.line for entry in _rounds_entries(studies[0])], OURS)
    for axes, study in zip(grid, studies, strict=True):
        _draw_lines(axes, _rounds_entries(study), looks, "acc_all", finished)
        axes.set_title(_title(study), loc="left")
    plotting.legend_below(figure, [stroke.key() for stroke in looks.values()])
    return figure


def _draw_lines(
    axes: Axes, entries: Sequence[Entry], looks: Mapping[str, Stroke], measure: str, finished: FinishedCells
) -> None:
    for entry in entries:
        plotting.draw_band(axes, by_round(entry, measure, finished), looks[entry.line])
    plotting.frame_shares(axes, ROUNDS, MEASURED[measure])


def _adaptive_entries(study: Study) -> list[Entry]:
    return [study.entry(name, name) for name in ADAPTIVE]


@house_style()
def _draw_adaptive(studies: Sequence[Study], finished: FinishedCells) -> matplotlib.figure.Figure:
    return _ablation(studies, _adaptive_entries, plotting.strokes(ADAPTIVE, OURS), "acc_all", finished)


def _ema_entries(study: Study) -> list[Entry]:
    """With a decay of zero the EMA model is the student itself after every step."""
    return [study.entry(EMA, OURS), study.entry(NO_EMA, OURS, settings={"train": {"ema_decay": 0.0}})]


@house_style()
def _draw_ema(studies: Sequence[Study], finished: FinishedCells) -> matplotlib.figure.Figure:
    # The thin line on top of the thick one: where both are the same, both are still seen.
    looks = {EMA: Stroke(EMA, plotting.OURS, "o", 3), NO_EMA: Stroke(NO_EMA, plotting.RIVALS[1], "s", 5)}
    return _ablation(studies, _ema_entries, looks, "mapping_consistency", finished)


def _ablation(
    studies: Sequence[Study],
    entries_of: Callable[[Study], list[Entry]],
    looks: Mapping[str, Stroke],
    measure: str,
    finished: FinishedCells,
) -> matplotlib.figure.Figure:
    """For each data set a measure by round, and All after the last round."""
    figure = new_figure(9.0, 3.4 * len(studies))
    for line, study in zip(figure.subplots(len(studies), 2, squeeze=False), studies, strict=True):
        entries = entries_of(study)
        _draw_lines(line[0], entries, looks, measure, finished)
        bars = [(_final([entry], "acc_all", finished), looks[entry.line].colour) for entry in entries]
        plotting.draw_bars(line[1], [""], bars)
        line[1].set_ylabel(MEASURED["acc_all"])
        for axes, when in zip(line, ("by round", "after the last round"), strict=True):
            axes.set_title(f"{_title(study)}, {when}", loc="left")
    plotting.legend_below(figure, [stroke.key() for stroke in looks.values()])
    return figure


def _balance_entries(study: Study) -> list[Entry]:
    return TABLES["main"].entries(study)


@house_style()
def _draw_balance(studies: Sequence[Study], finished: FinishedCells) -> matplotlib.figure.Figure:
    figure = new_figure(6.0, 5.4)
    axes = figure.add_subplot()
    shapes = plotting.shapes([entry.line for entry in _balance_entries(studies[0])], OURS)
    colours = [plotting.SET_COLOURS[i % len(plotting.SET_COLOURS)] for i in range(len(studies))]
    points = []
    for study, colour in zip(studies, colours, strict=True):
        for entry in _balance_entries(study):
            old, new = (_final([entry], measure, finished).mean[0] for measure in ("acc_old", "acc_new"))
            plotting.draw_mark(axes, old, new, shapes[entry.line], colour)
            points.append((old, new))
    plotting.frame_balance(axes, np.asarray(points))
    names = [_title(study) if study.n_old else f"{_title(study)}: no old classes" for study in studies]
    sets = [Patch(color=colour, label=name) for name, colour in zip(names, colours, strict=True)]
    axes.legend(handles=sets, loc="best")
    plotting.legend_below(figure, [plotting.shape_key(LINES.get(name, name), shape) for name, shape in shapes.items()])
    return figure


def _tsne_entries(study: Study) -> list[Entry]:
    return _first_seed([study.entry(name, name) for name in MAPPED])


@house_style()
def _draw_tsne(studies: Sequence[Study], finished: FinishedCells) -> matplotlib.figure.Figure:
    n_panels = 1 + len(MAPPED)
    figure = new_figure(3.1 * n_panels + 1.4, 3.3 * len(studies))
    for line, study in zip(figure.subplots(len(studies), n_panels, squeeze=False), studies, strict=True):
        _tsne_line(line, study, finished)
    kinds = [plotting.shape_key("old classes", "o"), plotting.shape_key("novel classes", "^")]
    plotting.legend_below(figure, kinds)
    return figure


def _tsne_line(line: Sequence[Axes], study: Study, finished: FinishedCells) -> None:
    """The same rows as the base model places them, and the models that each strategy led to."""
    cells = {entry.line: entry.cells[0] for entry in _tsne_entries(study)}
    ours = finished.replay(cells[OURS])
    models = {"before": ours.session.rounds[0]}
    models |= {name: ours.last if name == OURS else finished.replay(cells[name]).last for name in MAPPED}
    evaluator = ours.prepared.evaluator
    chosen = shown_classes(evaluator)
    rows = evaluator.rows[np.isin(evaluator.truth[evaluator.rows], chosen)]
    rows = rows[:: 1 + len(rows) // MAP_POINTS]
    dots = plotting.class_dots({c: shown(evaluator.names[c], 20) for c in chosen}, evaluator.n_old)
    for axes, (name, done) in zip(line, models.items(), strict=True):
        features = done.fitted.predict(ours.prepared.features, rows).features
        plotting.draw_map(axes, tsne(features), evaluator.truth[rows], dots)
        axes.set_title(f"{_title(study, 18)}, {name}", loc="left")
    if len(dots) <= NAMED_CLASSES:
        line[-1].legend(handles=list(dots.values()), loc="upper left", bbox_to_anchor=(1.0, 1.0))


def shown_classes(evaluator: Evaluator) -> list[int]:
    """Ten classes by a seeded choice, twenty of more than a hundred; half of them old as far as there are so many."""
    n_most = 20 if len(evaluator.names) > 100 else 10
    measured = generator(0, "paper", "tsne").permutation(np.unique(evaluator.truth[evaluator.rows]))
    old, new = measured[measured < evaluator.n_old], measured[measured >= evaluator.n_old]
    n_old = max(n_most // 2, n_most - len(new))
    chosen = [*old[:n_old], *new[: n_most - min(n_old, len(old))]]
    return sorted(int(c) for c in chosen)


@house_style()
def _draw_n_classes(studies: Sequence[Study], finished: FinishedCells) -> matplotlib.figure.Figure:
    figure, grid = plotting.panels(len(studies), 5.4, 3.8)
    for axes, study in zip(grid, studies, strict=True):
        for seed, estimate in enumerate(study.estimates):
            plotting.draw_search(axes, seed, estimate.curve, estimate.n)
        axes.axvline(study.n_classes, color=INK, linestyle="--", linewidth=1.6, label=f"in truth {study.n_classes}")
        plotting.frame_shares(axes, "number of clusters tried", "accuracy on labelled rows")
        axes.legend(loc="best")
        axes.set_title(_title(study), loc="left")
    return figure


def _figure(
    name: str,
    title: str,
    draw: Callable[[Sequence[Study], FinishedCells], matplotlib.figure.Figure],
    entries: Callable[[Study], list[Entry]],
    *,
    core: bool = False,
    estimates: bool = False,
) -> Figure:
    return Figure(name, title, entries, core, estimates, draw)


_ALL = (
    _figure("imbalance", "Old and novel accuracy without questions", _draw_imbalance, _base_entries, core=True),
    _figure("confidence", "Confidence before and after the questions", _draw_confidence, _confidence_entries),
    _figure("rounds", "All by round", _draw_rounds, _rounds_entries, core=True),
    _figure("adaptive", "Adaptive-Novel and its two halves", _draw_adaptive, _adaptive_entries, core=True),
    _figure("ema", "With and without the EMA model", _draw_ema, _ema_entries, core=True),
    _figure("balance", "Novel against old accuracy", _draw_balance, _balance_entries, core=True),
    _figure("tsne", "Features of the test data by t-SNE", _draw_tsne, _tsne_entries),
    _figure("n-classes", "Max-ACC by number of classes", _draw_n_classes, lambda study: [], estimates=True),
)
FIGURES: dict[str, Figure] = {figure.name: figure for figure in _ALL}
