"""The figures of the paper: what they ask for, and whether what they draw is what was measured."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from agcd import plotting
from agcd.errors import StorageError
from agcd.features.rows import EmbeddingRows
from agcd.lab.cells import Cell, run_cell
from agcd.lab.evaluator import Evaluator
from agcd.lab.finished import FinishedCells, Records, Replay
from agcd.lab.paper import figure_plans
from agcd.lab.paper.figure_plans import EMA, FIGURES, by_round, shown_classes
from agcd.lab.paper.study import Entry, Study, open_study
from agcd.lab.paper.table_plans import OURS, TABLES
from agcd.plotting import NEW, OLD, png_bytes
from agcd.plotting import OURS as OURS_COLOUR
from agcd.types import FloatArray, NumberOfClasses
from support.blobs import FAST

SETTINGS: dict[str, Any] = {"train": FAST | {"base_epochs": 1, "round_epochs": 1}, "query": {"rounds": 1}}
PANELS: dict[str, Callable[[int], int]] = {
    "imbalance": lambda n: 1,
    "confidence": lambda n: 4 * n,
    "rounds": lambda n: n,
    "adaptive": lambda n: 2 * n,
    "ema": lambda n: 2 * n,
    "balance": lambda n: 1,
    "tsne": lambda n: 4 * n,
    "n-classes": lambda n: n,
}
"""Figure → how many panels it has for n data sets."""
OF_MODELS = ("confidence", "tsne")
OF_RECORDS = sorted(set(FIGURES) - set(OF_MODELS))
of_records = pytest.mark.parametrize("name", OF_RECORDS)


@dataclass(frozen=True)
class MadeUp(FinishedCells):
    """Rounds whose figures depend on strategy, seed and round alone; it remembers who was looked at."""

    out: Path = Path()
    cache_dir: Path = Path()
    n_rounds: int = 3
    fixed: dict[str, Any] = field(default_factory=dict)
    seen: list[Cell] = field(default_factory=list)

    def records(self, cell: Cell) -> Records:
        self.seen.append(cell)
        n_rounds = 0 if cell.strategy == "none" else self.n_rounds
        return [
            {
                "acc_all": share(cell, i),
                "acc_old": share(cell, i) + 0.1,
                "acc_new": share(cell, i) - 0.1,
                "mapping_consistency": 1 - share(cell, i),
                **self.fixed,
            }
            for i in range(n_rounds + 1)
        ]


@dataclass(frozen=True)
class Remembering(FinishedCells):
    """A look at real runs that remembers whose models were wanted."""

    seen: list[Cell] = field(default_factory=list)

    def replay(self, cell: Cell) -> Replay:
        self.seen.append(cell)
        return super().replay(cell)


def finish(study: Study, names: Sequence[str], finished: FinishedCells) -> Study:
    """Run everything that these figures need of a data set."""
    for cell in (cell for name in names for entry in FIGURES[name].entries(study) for cell in entry.cells):
        run_cell(cell, finished.out, finished.cache_dir)
    return study


def share(cell: Cell, number: int) -> float:
    """An accuracy that differs between strategies, seeds and rounds."""
    return 0.2 + len(cell.strategy) / 100 + cell.seed / 20 + number / 10


def made_up_study(data: str = "toy", n_seeds: int = 2, **changes: Any) -> Study:
    curve = ((8, 0.7), (10, 0.9), (12, 0.8), (20, 0.5))
    estimates = tuple(NumberOfClasses(10 + 2 * (seed % 2), 8, 12, curve) for seed in range(n_seeds))
    return replace(Study(data, n_seeds, SETTINGS, {}, 5, 5, 5, estimates=estimates), **changes)


def panels(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.get_visible()]


def legend_names(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def bar_heights(axes: Axes) -> list[float]:
    return [patch.get_height() for patch in axes.patches if isinstance(patch, Rectangle)]


def points(line: Line2D) -> FloatArray:
    """The points of a line, (n, 2)."""
    return np.column_stack([np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)])


def upright(axes: Axes) -> list[float]:
    """Where lines stand upright over the whole height."""
    return [points(line)[0, 0] for line in axes.lines if np.array_equal(points(line)[:, 1], [0, 1])]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Remembering:
    out = tmp_path_factory.mktemp("paper")
    return Remembering(out, out / "cache")


@pytest.fixture(scope="module")
def toy(real: Remembering) -> Study:
    study = open_study("toy", 1, SETTINGS, {}, real.cache_dir)
    return finish(replace(study, estimates=made_up_study(n_seeds=1).estimates), list(FIGURES), real)


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_every_figure_draws_real_runs_in_the_promised_panels(name: str, real: Remembering, toy: Study) -> None:
    figure = FIGURES[name].draw([toy], real)
    assert len(panels(figure)) == PANELS[name](1)
    assert png_bytes(figure).startswith(b"\x89PNG")


@pytest.mark.parametrize("name", OF_MODELS)
def test_figures_of_models_have_a_line_per_data_set_also_without_old_classes(
    name: str, real: Remembering, toy: Study
) -> None:
    unlabelled = finish(open_study("toy", 2, SETTINGS, {"label_ratio": 0.0}, real.cache_dir), [name], real)
    assert unlabelled.n_old == 0
    real.seen.clear()
    figure = FIGURES[name].draw([toy, unlabelled], real)
    assert len(panels(figure)) == PANELS[name](2)
    assert all(axes.get_title(loc="left").startswith("toy") for axes in panels(figure))
    needed = [cell for study in (toy, unlabelled) for entry in FIGURES[name].entries(study) for cell in entry.cells]
    assert sorted(map(repr, real.seen)) == sorted(map(repr, needed))
    assert {cell.seed for cell in needed} == {0}


@of_records
@pytest.mark.parametrize(("n_seeds", "data"), [(2, ["toy"]), (1, ["toy", "digits", "groceries14", "some/folder"])])
def test_figures_of_records_draw_any_number_of_seeds_and_data_sets(name: str, n_seeds: int, data: list[str]) -> None:
    figure = FIGURES[name].draw([made_up_study(each, n_seeds) for each in data], MadeUp())
    assert len(panels(figure)) == PANELS[name](len(data))
    figure.draw_without_rendering()


@of_records
def test_a_figure_looks_at_no_run_that_it_did_not_ask_for(name: str) -> None:
    studies, finished = [made_up_study("toy"), made_up_study("digits")], MadeUp()
    FIGURES[name].draw(studies, finished)
    needed = [cell for study in studies for entry in FIGURES[name].entries(study) for cell in entry.cells]
    assert {repr(cell) for cell in finished.seen} == {repr(cell) for cell in needed}


@of_records
@pytest.mark.parametrize("missing", [("acc_old",), ("acc_all", "acc_old", "acc_new", "mapping_consistency")])
def test_figures_that_do_not_exist_are_left_out(name: str, missing: tuple[str, ...]) -> None:
    finished = MadeUp(fixed=dict.fromkeys(missing))
    figure = FIGURES[name].draw([made_up_study(), made_up_study("digits", 1)], finished)
    assert len(panels(figure)) == PANELS[name](2)


def test_each_data_set_has_a_panel_with_its_title_and_quick_runs_say_so() -> None:
    studies = [made_up_study("toy"), made_up_study("a/folder/photos", quick=True)]
    for name in ("rounds", "adaptive", "ema", "n-classes"):
        titles = [axes.get_title(loc="left") for axes in panels(FIGURES[name].draw(studies, MadeUp()))]
        assert {title.partition(",")[0] for title in titles} == {"toy", "photos (--quick)"}
    ticks = [label.get_text() for label in panels(FIGURES["imbalance"].draw(studies, MadeUp()))[0].get_xticklabels()]
    assert ticks == ["toy", "photos (--quick)"]


def test_figures_that_carry_a_claim_want_all_seeds() -> None:
    assert {name for name in FIGURES if FIGURES[name].core} == {"imbalance", "rounds", "adaptive", "ema", "balance"}
    assert {name for name in FIGURES if FIGURES[name].estimates} == {"n-classes"}
    assert all(FIGURES[name].name == name for name in FIGURES)


def test_figures_of_the_main_strategies_need_no_run_beyond_those_of_the_main_table() -> None:
    study = made_up_study()
    main = TABLES["main"].entries(study)
    assert FIGURES["balance"].entries(study) == main
    assert FIGURES["rounds"].entries(study) == [entry for entry in main if entry.line != "none"]
    cells = [cell for entry in main for cell in entry.cells]
    needed = [cell for name in OF_MODELS for entry in FIGURES[name].entries(study) for cell in entry.cells]
    assert all(cell in cells for cell in needed)


def test_the_run_without_ema_differs_in_that_alone() -> None:
    default, without = FIGURES["ema"].entries(made_up_study())
    assert default.line == EMA
    assert default.cells == made_up_study().entry("", OURS).cells
    for ours, other in zip(default.cells, without.cells, strict=True):
        changed = {**other.settings, "train": {**other.settings["train"]}}
        assert changed["train"].pop("ema_decay") == 0.0
        assert replace(other, settings=changed) == ours


def test_a_line_is_the_mean_over_seeds_and_its_band_one_sample_deviation_wide() -> None:
    axes = panels(FIGURES["rounds"].draw([made_up_study(n_seeds=3)], MadeUp(n_rounds=2)))[0]
    cells = [Cell("toy", OURS, seed) for seed in range(3)]
    by_hand = [[share(cell, i) for cell in cells] for i in range(3)]
    mean, deviation = [statistics.mean(v) for v in by_hand], [statistics.stdev(v) for v in by_hand]
    line = next(line for line in axes.lines if line.get_color() == OURS_COLOUR)
    np.testing.assert_allclose(points(line), np.column_stack([range(3), mean]))
    drawn = [np.asarray(each.get_facecolor())[0, :3] for each in axes.collections]
    band = axes.collections[[np.allclose(colour, to_rgba(OURS_COLOUR)[:3]) for colour in drawn].index(True)]
    corners = np.asarray(band.get_paths()[0].vertices)
    for i in range(3):
        edges = corners[corners[:, 0] == i, 1]
        np.testing.assert_allclose([edges.min(), edges.max()], [mean[i] - deviation[i], mean[i] + deviation[i]])


def test_ours_is_on_top_and_first_in_the_legend() -> None:
    figure = FIGURES["rounds"].draw([made_up_study()], MadeUp())
    lines = panels(figure)[0].lines
    assert max(lines, key=lambda line: line.get_zorder()).get_color() == OURS_COLOUR
    names = legend_names(figure)
    assert names[0] == OURS
    assert sorted(names) == sorted(entry.line for entry in FIGURES["rounds"].entries(made_up_study()))
    assert len({(line.get_color(), line.get_marker()) for line in lines}) == len(lines) == len(names)


def test_imbalance_shows_old_and_novel_accuracy_with_a_dash_where_there_is_none() -> None:
    axes = panels(FIGURES["imbalance"].draw([made_up_study(n_seeds=2)], MadeUp()))[0]
    base = statistics.mean(share(Cell("toy", "none", seed), 0) for seed in range(2))
    np.testing.assert_allclose(bar_heights(axes), [base + 0.1, base - 0.1])
    assert [text.get_text() for text in axes.texts] == [f"{100 * (base + 0.1):.1f}", f"{100 * (base - 0.1):.1f}"]
    axes = panels(FIGURES["imbalance"].draw([made_up_study()], MadeUp(fixed={"acc_old": None})))[0]
    assert len(bar_heights(axes)) == 1
    assert axes.texts[0].get_text() == "–"


def test_whiskers_need_two_seeds() -> None:
    def n_whiskers(n_seeds: int) -> int:
        axes = panels(FIGURES["imbalance"].draw([made_up_study(n_seeds=n_seeds)], MadeUp()))[0]
        return sum(len(each.get_paths()) for each in axes.collections)

    assert n_whiskers(1) == 0
    assert n_whiskers(2) == 2


def test_adaptive_ends_its_lines_where_its_bars_are() -> None:
    by_rounds, final = panels(FIGURES["adaptive"].draw([made_up_study()], MadeUp(n_rounds=4)))
    np.testing.assert_allclose(np.stack([points(line)[-1, 1] for line in by_rounds.lines]), bar_heights(final))
    assert len(bar_heights(final)) == 3


def test_balance_has_a_mark_per_strategy_and_data_set_shape_for_one_and_colour_for_the_other() -> None:
    axes = panels(FIGURES["balance"].draw([made_up_study("toy"), made_up_study("digits")], MadeUp()))[0]
    marks = [line for line in axes.lines if line.get_linestyle() == "None"]
    n_lines = len(TABLES["main"].entries(made_up_study()))
    assert len(marks) == 2 * n_lines
    assert len({line.get_marker() for line in marks}) == n_lines
    assert len({line.get_color() for line in marks}) == 2
    stars = [line for line in marks if line.get_marker() == plotting.STAR]
    assert len(stars) == 2
    assert min(line.get_markersize() for line in stars) > max(
        line.get_markersize() for line in marks if line not in stars
    )
    old, new = np.concatenate([points(line) for line in marks]).T
    np.testing.assert_allclose(old, new + 0.2)


def test_the_curve_of_the_class_number_shows_the_truth_and_every_estimate() -> None:
    axes = panels(FIGURES["n-classes"].draw([made_up_study(n_seeds=2)], MadeUp()))[0]
    assert sorted(upright(axes)) == [10, 10, 12]
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [
        "seed 0: 10 estimated",
        "seed 1: 12 estimated",
        "in truth 10",
    ]


def test_without_an_estimate_the_truth_still_stands() -> None:
    axes = panels(FIGURES["n-classes"].draw([made_up_study(estimates=())], MadeUp()))[0]
    assert upright(axes) == [10]


numbers = st.one_of(st.just(float("nan")), st.floats(0, 1))


@given(st.integers(1, 4).flatmap(lambda n: st.lists(st.lists(numbers, min_size=n, max_size=n), min_size=1, max_size=5)))
def test_a_spread_is_mean_and_sample_deviation_of_what_exists(values: list[list[float]]) -> None:
    spread = plotting.spread_of(np.asarray(values))
    for i, column in enumerate(zip(*values, strict=True)):
        found = [value for value in column if value == value]
        mean = statistics.mean(found) if found else float("nan")
        deviation = statistics.stdev(found) if len(found) > 1 else float("nan")
        np.testing.assert_allclose([spread.mean[i], spread.deviation[i]], [mean, deviation], atol=1e-9)
        np.testing.assert_allclose(spread.tops[i], mean + (deviation if len(found) > 1 else 0), atol=1e-9)


def test_seeds_without_a_value_do_not_count() -> None:
    entry = Entry("", "", tuple(Cell("toy", "random", seed) for seed in range(3)))

    class Gap(MadeUp):
        def records(self, cell: Cell) -> Records:
            return [{"acc_old": None if cell.seed == 1 else 0.2 + 0.2 * cell.seed}]

    spread = by_round(entry, "acc_old", Gap())
    np.testing.assert_allclose(spread.mean, [0.4])
    np.testing.assert_allclose(spread.deviation, [statistics.stdev([0.2, 0.6])])


def test_densities_cover_an_area_of_one_for_old_and_for_novel_samples() -> None:
    axes = Figure().add_subplot()
    values = np.asarray([0.1, 0.2, 0.2, 0.9, 1.0 + 1e-6])
    plotting.draw_histograms(axes, values[2:], values[:2], density=True)
    for colour in (OLD, NEW):
        own = [p for p in axes.patches if isinstance(p, Rectangle) and p.get_facecolor()[:3] == to_rgba(colour)[:3]]
        assert sum(patch.get_height() * patch.get_width() for patch in own) == pytest.approx(1)


def evaluator(n_old: int, n_new: int) -> Evaluator:
    truth = np.repeat(np.arange(n_old + n_new), 2)
    names = tuple(f"class {c}" for c in range(n_old + n_new))
    return Evaluator(
        EmbeddingRows(np.zeros((len(truth), 2)), dropout=0), names, truth, np.arange(len(truth)), n_old, True
    )


@pytest.mark.parametrize(
    ("n_old", "n_new", "old_shown", "new_shown"),
    [(5, 5, 5, 5), (40, 60, 5, 5), (60, 60, 10, 10), (0, 30, 0, 10), (2, 30, 2, 8), (30, 3, 7, 3), (3, 4, 3, 4)],
)
def test_a_map_shows_as_many_old_as_novel_classes_where_it_can(
    n_old: int, n_new: int, old_shown: int, new_shown: int
) -> None:
    chosen = shown_classes(evaluator(n_old, n_new))
    assert chosen == sorted(set(chosen)) == shown_classes(evaluator(n_old, n_new))
    assert [sum(c < n_old for c in chosen), sum(c >= n_old for c in chosen)] == [old_shown, new_shown]


def test_classes_are_told_apart_by_colour_and_old_from_novel_by_shape() -> None:
    dots = plotting.class_dots({c: f"class {c}" for c in range(20)}, 10)
    assert [dots[c].get_marker() for c in range(20)] == ["o"] * 10 + ["^"] * 10
    assert len({tuple(np.atleast_1d(dots[c].get_color())) for c in range(20)}) == 20


def test_a_map_names_its_classes_unless_they_are_many(
    real: Remembering, toy: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figure_plans, "tsne", lambda features: features[:, :2])
    *_, last = panels(FIGURES["tsne"].draw([toy], real))
    legend = last.get_legend()
    assert legend is not None
    assert sorted(text.get_text() for text in legend.get_texts()) == [f"blob{i}" for i in range(10)]
    monkeypatch.setattr(figure_plans, "NAMED_CLASSES", 9)
    *_, last = panels(FIGURES["tsne"].draw([toy], real))
    assert last.get_legend() is None


def test_a_map_shows_every_measured_row_of_its_classes_in_every_panel(
    real: Remembering, toy: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figure_plans, "tsne", lambda features: features[:, :2])
    for axes in panels(FIGURES["tsne"].draw([toy], real)):
        assert sum(len(np.asarray(each.get_offsets())) for each in axes.collections) == 10 * 20


def test_a_cell_that_was_never_run_is_refused_and_not_run(tmp_path: Path) -> None:
    nothing = FinishedCells(tmp_path, tmp_path / "cache")
    for look_at in (nothing.records, nothing.replay):
        with pytest.raises(StorageError, match="toy with random, seed 0, was not run in"):
            look_at(Cell("toy", "random", 0, SETTINGS))
    assert list(tmp_path.iterdir()) == []
