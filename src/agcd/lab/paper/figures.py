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

from agcd.arrays import confidence_of
from agcd.lab.cells import NO_QUERY
from agcd.lab.evaluator import Examiner
from agcd.lab.paper import charts
from agcd.lab.paper.charts import Spread, Stroke
from agcd.lab.paper.look import Look
from agcd.lab.paper.render import LINES
from agcd.lab.paper.study import Entry, Study, Wanted
from agcd.lab.paper.tables import OURS, TABLES
from agcd.report.style import INK, NEW, OLD, RIVALS, house_style, new_figure
from agcd.report.style import OURS as OURS_COLOUR
from agcd.report.words import shown
from agcd.rng import generator
from agcd.types import FloatArray

ADAPTIVE = (OURS, "confident_novel", "informative_novel")
EMA, NO_EMA = "EMA", "no EMA"
MAPPED = ("random", "entropy", OURS)
MAP_POINTS = 2000
"""About so many rows at most are placed by t-SNE, which takes minutes for more."""
CONFIDENCES = {"entropy": "−entropy", "margin": "margin", "msp": "MSP"}
"""Metric → its name in the paper."""
MEASURED = {"acc_all": "accuracy, all classes", "mapping_consistency": "mapping consistency"}
NAMED_CLASSES = 10
"""So many classes at most are named beside a map."""


@dataclass(frozen=True)
class Figure(Wanted):
    """A figure, with the function that draws it for some data sets."""

    draw: Callable[[Sequence[Study], Look], matplotlib.figure.Figure]


def by_round(entry: Entry, measure: str, look: Look) -> Spread:
    """A measure after each round, over the seeds of an entry."""
    values = [[record[measure] for record in look.records(cell)] for cell in entry.cells]
    return charts.spread_of(np.asarray(values, float))


def _final(entries: Sequence[Entry], measure: str, look: Look) -> Spread:
    """A measure after the last round of each entry."""
    return charts.last_of([by_round(entry, measure, look) for entry in entries])


def _title(study: Study, width: int = 30) -> str:
    return shown(study.title, width) + (" (--quick)" if study.quick else "")


def _first_seed(entries: Sequence[Entry]) -> list[Entry]:
    """For figures that show one model and not a mean."""
    return [replace(entry, cells=entry.cells[:1]) for entry in entries]


def _base_entries(study: Study) -> list[Entry]:
    return [study.entry(NO_QUERY, NO_QUERY)]


@house_style()
def _draw_imbalance(studies: Sequence[Study], look: Look) -> matplotlib.figure.Figure:
    entries = [entry for study in studies for entry in _base_entries(study)]
    figure = new_figure(max(4.8, 1.6 + 1.5 * len(studies)), 4.0)
    axes = figure.add_subplot()
    bars = [(_final(entries, "acc_old", look), OLD), (_final(entries, "acc_new", look), NEW)]
    charts.draw_bars(axes, [_title(study, 16) for study in studies], bars)
    axes.set_ylabel("accuracy without questions")
    charts.legend_below(figure, [Patch(color=OLD, label="old classes"), Patch(color=NEW, label="novel classes")])
    return figure


def _confidence_entries(study: Study) -> list[Entry]:
    return _first_seed([study.entry(OURS, OURS)])


@house_style()
def _draw_confidence(studies: Sequence[Study], look: Look) -> matplotlib.figure.Figure:
    figure = new_figure(3.4 * (len(CONFIDENCES) + 1), 2.9 * len(studies))
    grid = figure.subplots(len(studies), len(CONFIDENCES) + 1, squeeze=False)
    for line, study in zip(grid, studies, strict=True):
        _confidence_line(line, study, look)
    charts.legend_below(figure, charts.density_keys())
    return figure


def _confidence_line(line: Sequence[Axes], study: Study, look: Look) -> None:
    """The three measures before the first question, then MSP after the last answer.

    The paper does not say which measure its figure of before and after shows.
    """
    replayed = look.replay(_confidence_entries(study)[0].cells[0])
    examiner, features = replayed.prepared.examiner, replayed.prepared.features
    is_new = examiner.truth[examiner.rows] >= examiner.n_old
    before, after = (
        done.fitted.predict(features, examiner.rows).probs for done in (replayed.session.rounds[0], replayed.last)
    )
    shown_probs = [(metric, before, "before") for metric in CONFIDENCES] + [("msp", after, "after")]
    for axes, (metric, probs, moment) in zip(line, shown_probs, strict=True):
        lowest, highest = (-float(np.log(probs.shape[1])), 0.0) if metric == "entropy" else (0.0, 1.0)
        charts.draw_densities(axes, confidence_of(probs, metric), is_new, lowest, highest)
        axes.set(xlabel=CONFIDENCES[metric], ylabel="density")
        axes.set_title(f"{_title(study, 18)}, {moment}", loc="left")
    # Before and after are compared by eye, so they need one scale.
    line[-1].sharey(line[-2])
    line[-2].autoscale(axis="y")


def _rounds_entries(study: Study) -> list[Entry]:
    return [entry for entry in TABLES["main"].entries(study) if entry.line != NO_QUERY]


@house_style()
def _draw_rounds(studies: Sequence[Study], look: Look) -> matplotlib.figure.Figure:
    figure, grid = charts.panels(len(studies), 5.4, 4.0)
    looks = charts.strokes([entry.line for entry in _rounds_entries(studies[0])], OURS)
    for axes, study in zip(grid, studies, strict=True):
        _draw_lines(axes, _rounds_entries(study), looks, "acc_all", look)
        axes.set_title(_title(study), loc="left")
    charts.legend_below(figure, [stroke.key() for stroke in looks.values()])
    return figure


def _draw_lines(axes: Axes, entries: Sequence[Entry], looks: Mapping[str, Stroke], measure: str, look: Look) -> None:
    for entry in entries:
        charts.draw_band(axes, by_round(entry, measure, look), looks[entry.line])
    charts.frame_rounds(axes, MEASURED[measure])


def _adaptive_entries(study: Study) -> list[Entry]:
    return [study.entry(name, name) for name in ADAPTIVE]


@house_style()
def _draw_adaptive(studies: Sequence[Study], look: Look) -> matplotlib.figure.Figure:
    return _ablation(studies, _adaptive_entries, charts.strokes(ADAPTIVE, OURS), "acc_all", look)


def _ema_entries(study: Study) -> list[Entry]:
    """With a decay of zero the EMA model is the student itself after every step."""
    return [study.entry(EMA, OURS), study.entry(NO_EMA, OURS, settings={"train": {"ema_decay": 0.0}})]


@house_style()
def _draw_ema(studies: Sequence[Study], look: Look) -> matplotlib.figure.Figure:
    # The thin line on top of the thick one: where both are the same, both are still seen.
    looks = {EMA: Stroke(EMA, OURS_COLOUR, "o", 3), NO_EMA: Stroke(NO_EMA, RIVALS[1], "s", 5)}
    return _ablation(studies, _ema_entries, looks, "mapping_consistency", look)


def _ablation(
    studies: Sequence[Study],
    entries_of: Callable[[Study], list[Entry]],
    looks: Mapping[str, Stroke],
    measure: str,
    look: Look,
) -> matplotlib.figure.Figure:
    """For each data set a measure by round, and All after the last round."""
    figure = new_figure(9.0, 3.4 * len(studies))
    for line, study in zip(figure.subplots(len(studies), 2, squeeze=False), studies, strict=True):
        entries = entries_of(study)
        _draw_lines(line[0], entries, looks, measure, look)
        bars = [(_final([entry], "acc_all", look), looks[entry.line].colour) for entry in entries]
        charts.draw_bars(line[1], [""], bars)
        line[1].set_ylabel(MEASURED["acc_all"])
        for axes, when in zip(line, ("by round", "after the last round"), strict=True):
            axes.set_title(f"{_title(study)}, {when}", loc="left")
    charts.legend_below(figure, [stroke.key() for stroke in looks.values()])
    return figure


def _balance_entries(study: Study) -> list[Entry]:
    return TABLES["main"].entries(study)


@house_style()
def _draw_balance(studies: Sequence[Study], look: Look) -> matplotlib.figure.Figure:
    figure = new_figure(6.0, 5.4)
    axes = figure.add_subplot()
    shapes = charts.shapes([entry.line for entry in _balance_entries(studies[0])], OURS)
    colours = [charts.SET_COLOURS[i % len(charts.SET_COLOURS)] for i in range(len(studies))]
    points = []
    for study, colour in zip(studies, colours, strict=True):
        for entry in _balance_entries(study):
            old, new = (_final([entry], measure, look).mean[0] for measure in ("acc_old", "acc_new"))
            charts.draw_mark(axes, old, new, shapes[entry.line], colour)
            points.append((old, new))
    charts.frame_balance(axes, np.asarray(points))
    names = [_title(study) if study.n_old else f"{_title(study)}: no old classes" for study in studies]
    sets = [Patch(color=colour, label=name) for name, colour in zip(names, colours, strict=True)]
    axes.legend(handles=sets, loc="best")
    charts.legend_below(figure, [charts.shape_key(LINES.get(name, name), shape) for name, shape in shapes.items()])
    return figure


def _tsne_entries(study: Study) -> list[Entry]:
    return _first_seed([study.entry(name, name) for name in MAPPED])


@house_style()
def _draw_tsne(studies: Sequence[Study], look: Look) -> matplotlib.figure.Figure:
    n_panels = 1 + len(MAPPED)
    figure = new_figure(3.1 * n_panels + 1.4, 3.3 * len(studies))
    for line, study in zip(figure.subplots(len(studies), n_panels, squeeze=False), studies, strict=True):
        _tsne_line(line, study, look)
    charts.legend_below(figure, charts.kind_keys())
    return figure


def _tsne_line(line: Sequence[Axes], study: Study, look: Look) -> None:
    """The same rows as the base model places them, and the models that each strategy led to."""
    cells = {entry.line: entry.cells[0] for entry in _tsne_entries(study)}
    ours = look.replay(cells[OURS])
    models = {"before": ours.session.rounds[0]}
    models |= {name: ours.last if name == OURS else look.replay(cells[name]).last for name in MAPPED}
    examiner = ours.prepared.examiner
    chosen = shown_classes(examiner)
    rows = examiner.rows[np.isin(examiner.truth[examiner.rows], chosen)]
    rows = rows[:: 1 + len(rows) // MAP_POINTS]
    dots = charts.class_dots(chosen, examiner.names, examiner.n_old)
    for axes, (name, done) in zip(line, models.items(), strict=True):
        features = done.fitted.predict(ours.prepared.features, rows).features
        charts.draw_map(axes, _on_a_plane(features), examiner.truth[rows], dots)
        axes.set_title(f"{_title(study, 18)}, {name}", loc="left")
    if len(dots) <= NAMED_CLASSES:
        line[-1].legend(handles=list(dots.values()), loc="upper left", bbox_to_anchor=(1.0, 1.0))


def shown_classes(examiner: Examiner) -> list[int]:
    """Ten classes by a seeded choice, twenty of more than a hundred; half of them old as far as there are so many."""
    n_most = 20 if len(examiner.names) > 100 else 10
    measured = generator(0, "paper", "tsne").permutation(np.unique(examiner.truth[examiner.rows]))
    old, new = measured[measured < examiner.n_old], measured[measured >= examiner.n_old]
    n_old = max(n_most // 2, n_most - len(new))
    chosen = [*old[:n_old], *new[: n_most - min(n_old, len(old))]]
    return sorted(int(c) for c in chosen)


def _on_a_plane(features: FloatArray) -> FloatArray:
    """(n, d) → (n, 2) by t-SNE."""
    from sklearn.manifold import TSNE  # here, because it takes a second to load

    tsne = TSNE(perplexity=min(30.0, (len(features) - 1) / 3), init="pca", random_state=0)
    return np.asarray(tsne.fit_transform(features))


@house_style()
def _draw_n_classes(studies: Sequence[Study], look: Look) -> matplotlib.figure.Figure:
    figure, grid = charts.panels(len(studies), 5.4, 3.8)
    for axes, study in zip(grid, studies, strict=True):
        for seed, estimate in enumerate(study.estimates):
            charts.draw_curve(axes, seed, estimate.curve, estimate.n)
        axes.axvline(study.n_classes, color=INK, linestyle="--", linewidth=1.6, label=f"in truth {study.n_classes}")
        charts.frame_curve(axes)
        axes.set_title(_title(study), loc="left")
    return figure


def _figure(
    name: str,
    title: str,
    draw: Callable[[Sequence[Study], Look], matplotlib.figure.Figure],
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
