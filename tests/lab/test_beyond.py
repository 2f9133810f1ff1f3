"""Our comparison with the paper: which runs it asks for, its arithmetic, its tables, and the command."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from agcd.cli import app, main
from agcd.config import OUR_ANSWERS, OUR_STRATEGY, AnswersConfig
from agcd.engine import open_engine
from agcd.errors import ConfigError
from agcd.lab.beyond.comparison import (
    ablation_table,
    after,
    all_tables,
    answers_needed,
    curves_table,
    half_width,
    lines_table,
    old_table,
    overall_table,
    rounds_table,
    smallest_table,
)
from agcd.lab.beyond.plan import ALONE, MAIN, WITHOUT, Plan, chosen_lines, make_plan
from agcd.lab.beyond.run_beyond import needed_cells, run_beyond
from agcd.lab.cells import Cell
from agcd.lab.finished import FinishedCells, Records
from agcd.lab.paper.study import Entry, Study
from support.blobs import FAST

SETTINGS: dict[str, Any] = {"train": FAST}
STUDENTS_T = {2: 12.7062, 3: 4.3027, 4: 3.1824, 5: 2.7764}
"""Number of values → the 97.5 % point of Student's t with one degree less, from a printed table."""
MAIN_NAMES = [
    "k-means, logistic regression",
    "k-means, label spreading",
    "none",
    "random",
    "typiclust",
    "adaptive_novel",
    "typiclust, our use",
    "adaptive_novel, our use",
    "max_herding, our use",
    "uncertainty_herding, our use",
    "ours in batches",
    "ours",
]


def made_up_plan(n_seeds: int = 3, n_other_seeds: int = 2, names: tuple[str, ...] = ("one", "two", "three")) -> Plan:
    return Plan(tuple(Study(name, n_seeds, SETTINGS, {}, 5, 5, 5) for name in names), n_other_seeds, 2)


def main_of(plan: Plan) -> list[Entry]:
    return plan.main_entries(plan.studies[0])


class MadeUp(FinishedCells):
    """Curves that rise by the same step each round: a step per line, and a start per data set and seed."""

    def __init__(self) -> None:
        super().__init__(Path(), Path())

    def records(self, cell: Cell) -> Records:
        step = {"random": 0.02, "adaptive_novel": 0.03, OUR_STRATEGY: 0.05}.get(cell.strategy, 0.01)
        step += 0.001 * cell.seed * (cell.strategy == OUR_STRATEGY) * len(cell.data)
        start = 0.3 + 0.02 * cell.seed + 0.1 * (cell.data == "two")
        n_rounds = 1 if cell.strategy == "none" else 6
        shares = [start + step * i for i in range(n_rounds)]
        return [
            {
                "acc_all": share,
                "acc_old": None if cell.data == "three" else share,
                "acc_new": share,
                "nov_coverage": 0.5,
                "nov_ratio": 0.5,
                "n_queried": 5 * i,
                "on_test": True,
            }
            for i, share in enumerate(shares)
        ]


def cells_of_line(text: str, name: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in line.strip("|").split("|")[1:]]


def test_the_lines_of_all_tables_and_their_use_of_answers() -> None:
    assert [line.name for line in MAIN] == MAIN_NAMES
    papers = AnswersConfig().model_dump()
    assert all(line.answers == (OUR_ANSWERS if "our" in line.name else papers) for line in MAIN)
    assert [line.name for line in MAIN if line.one_by_one] == ["ours"]
    assert {line.trainer for line in MAIN} == {None, "logistic", "label_spreading"}
    switched = {
        line.name: (line.strategy, {key for key, value in line.answers.items() if value != papers[key]})
        for line in (*ALONE, *WITHOUT)
    }
    ours = set(OUR_ANSWERS)
    assert switched == {
        "adaptive_novel": ("adaptive_novel", set()),
        "strategy alone": (OUR_STRATEGY, set()),
        "mapping alone": ("adaptive_novel", {"mapping"}),
        "repair alone": ("adaptive_novel", {"repair"}),
        "label use alone": ("adaptive_novel", {"spread_weight"}),
        "restart alone": ("adaptive_novel", {"restart"}),
        "adaptive_novel, our use": ("adaptive_novel", ours),
        "all but mapping": (OUR_STRATEGY, ours - {"mapping"}),
        "all but repair": (OUR_STRATEGY, ours - {"repair"}),
        "all but label use": (OUR_STRATEGY, ours - {"spread_weight"}),
        "all but restart": (OUR_STRATEGY, ours - {"restart"}),
        "ours": (OUR_STRATEGY, ours),
    }
    assert (ALONE[0].name, WITHOUT[0].name) == ("adaptive_novel", "ours")


def test_what_tables_share_is_run_once_and_under_one_name() -> None:
    cells = needed_cells(made_up_plan())
    assert len(cells) == 3 * 12 * 3 + 2 * 2 * 3 * 2 + 2 * 9 * 2  # main, two budgets, pieces of two sets
    assert len({repr(cell) for _, cell in cells}) == len(cells)

    def what(cell: Cell) -> tuple[str, str, bool]:
        return cell.strategy, str(cell.config.train), cell.config.query.one_by_one

    names = {what(cell): name for name, cell in cells}
    assert all(names[what(cell)] == name for name, cell in cells)


def test_the_main_budget_is_left_to_the_default_and_the_others_are_half_and_double() -> None:
    plan = made_up_plan()
    assert {cell.config.query.budget for e in plan.main_entries(plan.studies[0]) for cell in e.cells} == {None}
    budgets = {(entry.cells[0].data, entry.cells[0].config.query.budget, entry.column) for entry in plan.entries}
    others = {(data, budget, str(budget)) for data in ("one", "two") for budget in (2, 10)}
    assert budgets == others | {(data, None, "5") for data in ("one", "two", "three")}


def test_the_papers_data_sets_also_get_one_question_per_novel_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study("cub=x", 1, {"train": {"entropy_weight": 2.0}, "query": {"budget": 100, "rounds": 1}}, {}, 6, 4, 100)
    monkeypatch.setattr("agcd.lab.beyond.plan.open_study", lambda *_: study)
    plan = make_plan(["cub=x", "cub=x"], 1, 1, 2, {"query": {"switch_round": 2}}, {}, tmp_path)
    assert [(s.budget, s.settings["query"]) for s in plan.studies] == [(4, {"switch_round": 2})]
    assert plan.studies[0].settings["train"] == {"entropy_weight": 2.0}


def test_some_lines_can_be_left_out_but_not_ours_and_the_papers() -> None:
    plan = Plan(made_up_plan().studies, 2, 0, chosen_lines(["random", "ours in batches"]))
    names = [entry.line for entry in main_of(plan)]
    assert names == ["random", "adaptive_novel", "ours in batches", "ours"]
    text = all_tables(plan, MadeUp())
    assert all(f"| ours − {name} |" in text for name in names[:-1])
    assert "typiclust" not in text
    with pytest.raises(ConfigError, match=r"There is no line 'randm'\. Did you mean 'random'"):
        chosen_lines(["randm"])


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=5))
def test_the_interval_is_students(values: list[float]) -> None:
    slow = STUDENTS_T[len(values)] * statistics.stdev(values) / len(values) ** 0.5
    assert half_width(np.asarray(values)) == pytest.approx(slow, rel=1e-4, abs=1e-9)


def test_one_value_has_no_interval() -> None:
    assert np.isnan(half_width(np.asarray([0.3])))


def walked(n_answers: list[int], reached: list[float], target: float) -> float:
    """The slow twin: walk along the curve in ten thousand steps a round, until the target is met."""
    if reached[0] >= target:
        return n_answers[0]
    for i in range(len(reached) - 1):
        for step in range(10_001):
            along = step / 10_000
            if reached[i] + along * (reached[i + 1] - reached[i]) >= target - 1e-12:
                return n_answers[i] + along * (n_answers[i + 1] - n_answers[i])
    return float("nan")


@given(
    reached=st.lists(st.integers(0, 20), min_size=1, max_size=6),
    target=st.integers(0, 20),
    budget=st.integers(1, 50),
)
def test_answers_needed_are_where_a_walk_along_the_curve_first_meets_the_target(
    reached: list[int], target: int, budget: int
) -> None:
    shares, n_answers = [value / 20 for value in reached], [budget * i for i in range(len(reached))]
    found = answers_needed(np.asarray(n_answers), np.asarray(shares), target / 20)
    assert found == pytest.approx(walked(n_answers, shares, target / 20), abs=1e-3 * budget, nan_ok=True)


def test_the_main_table_pairs_lines_by_seed() -> None:
    text = lines_table(main_of(made_up_plan()), MadeUp())
    # Ours rises by 5, 5.3 and 5.6 points a round, adaptive_novel by 3, from the same start of each seed.
    gains = [5 * (2 + 0.3 * seed) for seed in range(3)]
    half = STUDENTS_T[3] * statistics.stdev(gains) / 3**0.5
    gain = f"{statistics.mean(gains):+.1f} [{statistics.mean(gains) - half:+.1f}, {statistics.mean(gains) + half:+.1f}]"
    cells = cells_of_line(text, "adaptive_novel")
    assert cells == ["25", *["47.0 ± 2.0"] * 3, *["0.50 ± 0.00"] * 2, gain, gain, "25 (100 %)"]
    needed = statistics.mean(25 * 3 / (5 + 0.3 * seed) for seed in range(3))
    ours = cells_of_line(text, "ours")
    assert ours[-3:] == ["–", "–", f"{needed:.0f} ({4 * needed:.0f} %)"]
    assert cells_of_line(text, "random")[-1] == "never reached"
    assert cells_of_line(text, "none")[0] == "0"
    assert [line.split("|")[1].strip() for line in text.splitlines()[2:]] == MAIN_NAMES


def test_one_seed_has_differences_without_interval_and_deviation() -> None:
    text = lines_table(main_of(made_up_plan(n_seeds=1)), MadeUp())
    assert cells_of_line(text, "adaptive_novel")[1] == "45.0"
    assert cells_of_line(text, "adaptive_novel")[-3:-1] == ["+10.0 [–]"] * 2


def test_a_target_that_only_some_seeds_reach_says_how_many() -> None:
    class Uneven(MadeUp):
        def records(self, cell: Cell) -> Records:
            fails = cell.strategy == "random" and cell.seed == 1
            lift = 0.0 if fails or cell.strategy != "random" else 0.5
            return [{**record, "acc_all": record["acc_all"] + lift} for record in super().records(cell)]

    text = lines_table(main_of(made_up_plan()), Uneven())
    assert cells_of_line(text, "random")[-1] == "2 of 3 seeds: 0 (0 %)"


def test_data_sets_are_averaged_within_a_seed_before_seeds_are_compared() -> None:
    plan = made_up_plan(names=("one", "two-two"))
    gains = [statistics.mean(5 * (2 + 0.1 * seed * length) for length in (3, 7)) for seed in range(3)]
    half = STUDENTS_T[3] * statistics.stdev(gains) / 3**0.5
    mean = statistics.mean(gains)
    cells = cells_of_line(overall_table(plan, MadeUp()), "ours − adaptive_novel")
    assert cells[:3] == [f"{mean:+.1f} [{mean - half:+.1f}, {mean + half:+.1f}]"] * 3
    mean, half = 0.6 * mean, 0.6 * half  # gains grow by the same step each round: the mean of 1 to 5 is 3 of 5
    assert cells[3:] == [f"{mean:+.1f} [{mean - half:+.1f}, {mean + half:+.1f}]"]
    assert cells_of_line(smallest_table(plan, MadeUp()), "two-two") == ["+10.0"] * 3 + ["+15.0"] * 3


def test_an_accuracy_that_does_not_exist_is_left_out() -> None:
    three = made_up_plan(names=("three",))
    assert cells_of_line(lines_table(main_of(three), MadeUp()), "random")[2] == "–"
    assert cells_of_line(overall_table(three, MadeUp()), "ours − random")[1] == "–"
    assert cells_of_line(smallest_table(three, MadeUp()), "three")[1] == "–"


def test_the_ablation_compares_with_the_papers_line_in_the_mean_over_data_sets() -> None:
    groups = [
        [Entry(line, "5", (Cell(data, strategy, 0), Cell(data, strategy, 1))) for line, strategy in pairs]
        for data in ("one", "two")
        for pairs in [[("adaptive_novel", "adaptive_novel"), ("strategy alone", OUR_STRATEGY)]]
    ]
    text = ablation_table(groups, MadeUp())
    start = statistics.mean([30, 32, 40, 42])
    assert cells_of_line(text, "adaptive_novel")[0].startswith(f"{start + 15:.1f} ± ")
    assert cells_of_line(text, "adaptive_novel")[2:] == ["–", "–"]
    gains = [10.0, 10 + 0.3 * 5]
    half = STUDENTS_T[2] * statistics.stdev(gains) / 2**0.5
    mean = statistics.mean(gains)
    assert cells_of_line(text, "strategy alone")[2] == f"{mean:+.1f} [{mean - half:+.1f}, {mean + half:+.1f}]"
    np.testing.assert_allclose(after(groups[1][:1], "acc_all", MadeUp()), [0.55, 0.57])


def test_the_gain_after_each_round() -> None:
    text = rounds_table(made_up_plan(names=("one",), n_seeds=1), MadeUp(), "adaptive_novel")
    assert cells_of_line(text, "New") == [f"{2.0 * number:+.1f} [–]" for number in range(1, 6)]


def test_the_curves_have_every_round_of_the_lines_that_ask_and_their_mean() -> None:
    text = curves_table(main_of(made_up_plan(names=("one",), n_seeds=1)), MadeUp())
    assert cells_of_line(text, "random") == ["32.0", "34.0", "36.0", "38.0", "40.0", "36.0", "+9.0 [–]"]
    assert cells_of_line(text, "ours")[-2:] == ["45.0", "–"]
    assert "| none |" not in text


def test_old_is_compared_with_the_base_model_in_the_mean_and_in_the_worst_seed() -> None:
    text = old_table(made_up_plan(names=("one", "three")), MadeUp())
    # Old of ours rises by 5, 5.3 and 5.6 points a round.
    assert cells_of_line(text, "one") == [f"{5.3 * n:+.1f} ({5.0 * n:+.1f})" for n in range(1, 6)]
    assert cells_of_line(text, "three") == ["– (–)"] * 5


@pytest.mark.usefixtures("in_this_process")
def test_a_whole_comparison_runs_resumes_and_writes_everything(tmp_path: Path) -> None:
    out, cache = tmp_path / "out", tmp_path / "cache"
    settings: dict[str, Any] = {"train": FAST | {"base_epochs": 1, "round_epochs": 1}, "query": {"rounds": 1}}
    plan = make_plan(["toy"], 2, 1, 2, settings, {"validation": 0.2}, cache)
    one, said = open_engine(processes=1), list[str]()
    first = run_beyond(plan, out, cache, engine=one, progress=said.append)
    assert (out / "beyond.md").read_text(encoding="utf-8") == first
    assert (out / "beyond.png").read_bytes().startswith(b"\x89PNG")
    assert first.count("measured on a validation part (0.2 of the train rows)") == 1 + 2 + 2
    assert "5 old and 5 novel classes, protocol quick, train.base_epochs=1" in first
    for piece in (
        "line − adaptive_novel, All",
        "line − ours, All",
        "2 seeds, 1 round, 5 questions",
        "2 questions a round",
        "10 questions a round",
    ):
        assert piece in first
    for name in [*MAIN_NAMES, *(line.name for line in (*ALONE, *WITHOUT)), "ours − random", "toy"]:
        assert f"| {name} |" in first
    rows = pq.read_table(out / "results.parquet").to_pylist()
    assert len((out / "results.csv").read_text(encoding="utf-8").splitlines()) == len(rows) + 1
    assert {row["line"] for row in rows} == {line.name for line in (*MAIN, *ALONE, *WITHOUT)}
    for seed in (0, 1):
        bases = {
            row["acc_all"] for row in rows if (row["round"], row["seed"]) == (0, seed) and "k-means" not in row["line"]
        }
        assert len(bases) == 1
    done = len(said)
    assert run_beyond(plan, out, cache, engine=one, progress=said.append) == first
    assert not any("min left" in line for line in said[done:])


def bench(*arguments: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> str:
    """What the command says when it stops with a mistake."""
    monkeypatch.setattr(sys, "argv", ["agcd", "bench", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    err = str(capsys.readouterr().err)
    assert err.startswith("error: ")
    assert len(err.strip().splitlines()) == 1
    return err


@pytest.mark.parametrize(
    ("arguments", "piece"),
    [
        (["beyond", "--set", "query.budget=3"], "Setting 'query.budget' is decided by 'agcd bench beyond'"),
        (["beyond", "--set", "train.answers.repair=true"], "Setting 'train.answers.repair' is decided"),
        (["beyond", "--set", "train=3"], "Setting 'train' is 3"),
        (["beyond", "--validation", "1.5"], "validation is 1.5; a share"),
        (["run", "--strategies", "random", "--validation", "0"], "validation is 0.0; a share"),
        (["beyond", "--set", "train.trainer=simgdc"], "Did you mean 'simgcd'"),
    ],
)
def test_mistakes_are_one_sentence_and_nothing_is_written(
    arguments: list[str], piece: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    places = ["--data", "toy", "--out", str(tmp_path / "out"), "--cache", str(tmp_path / "cache"), "--jobs", "1"]
    assert piece in bench(*arguments, *places, monkeypatch=monkeypatch, capsys=capsys)
    assert not (tmp_path / "out").exists()


def test_the_command_takes_five_seeds_and_hands_over_what_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Plan] = []

    def run(plan: Plan, out: Path, cache_dir: Path, **_: Any) -> str:
        made.append(plan)
        return "the tables"

    monkeypatch.setattr("agcd.lab.beyond.run_beyond.run_beyond", run)
    places = ["--out", str(tmp_path / "out"), "--cache", str(tmp_path / "cache")]
    for more in ([], ["--seeds", "4", "--other-seeds", "2", "--validation", "0.3", "--rounds", "2"]):
        done = CliRunner().invoke(app, ["bench", "beyond", "--data", "toy", *places, *more])
        assert done.exit_code == 0, done.output
        assert "the tables" in done.output
    assert [(plan.studies[0].n_seeds, plan.n_other_seeds) for plan in made] == [(5, 5), (4, 2)]
    assert [plan.studies[0].split.get("validation") for plan in made] == [None, 0.3]
    assert [entry.cells[0].config.query.rounds for plan in made for entry in plan.entries[:1]] == [5, 2]
