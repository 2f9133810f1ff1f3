"""The tables of the paper: which runs they ask for, what they share, and how they are shown."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from agcd.cli import app
from agcd.config import merged
from agcd.engine import open_engine
from agcd.errors import ConfigError
from agcd.lab.cells import NO_QUERY, Cell
from agcd.lab.finished import FinishedCells, Records
from agcd.lab.paper.comparable import PAPER_BACKBONE, why_withheld
from agcd.lab.paper.figure_plans import FIGURES
from agcd.lab.paper.run_paper import find_wanted, needed_cells, run_paper, seeded
from agcd.lab.paper.study import Study, open_study
from agcd.lab.paper.table_plans import ACCURACIES, OURS, TABLES
from agcd.lab.paper.table_text import MEASURES, first_diff, first_literal_diff, markdown, raw_csv, transfer_round
from agcd.lab.published import with_preset
from agcd.plotting import png_bytes
from agcd.strategies import list_strategies
from agcd.types import NumberOfClasses
from support.blobs import FAST
from support.published import make_whole_cub

every_table = pytest.mark.parametrize("name", sorted(TABLES))
SETTINGS: dict[str, Any] = {"train": FAST, "query": {"rounds": 2}}


def made_up_study(data: str = "toy", n_seeds: int = 2, **changes: Any) -> Study:
    estimates = tuple(NumberOfClasses(11 + seed, 10, 12, ((10, 0.5),)) for seed in range(n_seeds))
    return replace(Study(data, n_seeds, SETTINGS, {}, 5, 5, 5, estimates=estimates), **changes)


def in_the_papers_setting(data: str, protocol: str = "paper") -> dict[str, Any]:
    """What ``open_study`` makes of a data set of the paper, its backbone and one of its protocols."""
    return with_preset(data, {"protocol": protocol, "backbone": {"name": PAPER_BACKBONE, "weights": "dino.pth"}})


class MadeUp(FinishedCells):
    """Two rounds whose figures depend on strategy and seed alone."""

    def __init__(self) -> None:
        super().__init__(Path(), Path())

    def records(self, cell: Cell) -> Records:
        share = (len(cell.strategy) + cell.seed) / 40
        names = [name for name in MEASURES if name not in ("transfer_round", "first_diff", "first_literal_diff")]
        return [
            {
                **dict.fromkeys(names, share),
                "round": i,
                "phase": [None, "confident", "informative"][i],
                "mapping_diff": i / 10,
                "literal_diff": i / 5,
                "split": "classes and labels drawn with the seed",
            }
            for i in range(3)
        ]


def cells_of(names: Sequence[str], study: Study) -> list[Cell]:
    return needed_cells([(TABLES[name], [study]) for name in names])


@every_table
def test_every_entry_of_a_table_can_be_run(name: str) -> None:
    study = made_up_study()
    entries = TABLES[name].entries(study)
    assert len({(entry.line, entry.column) for entry in entries}) == len(entries)
    for entry in entries:
        assert [cell.seed for cell in entry.cells] == [0, 1]
        for cell in entry.cells:
            assert cell.strategy == NO_QUERY or cell.strategy in list_strategies()
            assert cell.config.query.budget == 5 or name == "budget"
            assert cell.config.train.base_epochs == FAST["base_epochs"]


@every_table
def test_every_table_is_complete_every_line_has_every_column(name: str) -> None:
    entries = TABLES[name].entries(made_up_study())
    lines, columns = {entry.line for entry in entries}, {entry.column for entry in entries}
    assert len(entries) == len(lines) * len(columns)
    assert set(TABLES[name].measures) <= set(MEASURES)


def test_tables_share_the_cells_that_are_the_same() -> None:
    study = made_up_study()
    n_main = len(cells_of(["main"], study))
    assert n_main == 9 * 2
    assert len(cells_of(["main", "novelty"], study)) == n_main
    assert len(cells_of(["main", "transfer-round"], study)) == n_main + 2  # by the other rule
    assert len(cells_of(["main", "metrics"], study)) == n_main + 2 * 2  # margin is the main table's own run
    assert len(cells_of(["main", "factors"], study)) == n_main + 3 * 2  # a and d are the main table's
    assert len(cells_of(["main", "trainers"], study)) == n_main + 3 * 5 * 2  # SimGCD is the main table's


def test_the_estimate_gives_each_seed_its_own_number_of_slots() -> None:
    entries = [e for e in TABLES["unknown-k"].entries(made_up_study()) if e.line == "random"]
    slots = {e.column: [cell.config.n_slots for cell in e.cells] for e in entries}
    assert slots == {"known": [None, None], "estimated": [11, 12], "below": [8, 8], "above": [12, 12]}


def test_the_budget_stays_when_the_label_ratio_changes() -> None:
    for entry in TABLES["ratio"].entries(made_up_study()):
        assert entry.cells[0].split == {"label_ratio": float(entry.column)}
        assert entry.cells[0].config.query.budget == 5


def test_what_is_not_core_makes_do_with_fewer_seeds() -> None:
    studies = [made_up_study(n_seeds=3)]
    assert [s.n_seeds for s in seeded(studies, TABLES["main"], 1)] == [3]
    assert [s.n_seeds for s in seeded(studies, TABLES["ratio"], 1)] == [1]
    assert [s.n_seeds for s in seeded(studies, TABLES["ratio"], 5)] == [3]


def test_markdown_shows_mean_and_deviation_over_seeds() -> None:
    text = markdown(TABLES["novelty"], made_up_study(), MadeUp())
    random = next(line for line in text.splitlines() if line.startswith("| random"))
    assert random == "| random |" + " 0.16 ± 0.02 |" * 4  # 6/40 and 7/40
    heading = text.splitlines()[0]
    made_with = "EfficientNet-Lite0, 1 trainable block, protocol quick"
    assert heading.startswith(f"**toy**: 5 old and 5 novel classes, {made_with}, train.base_epochs=")
    assert heading.endswith(", 2 seeds, 5 questions a round, 2 rounds")
    assert "(paper" not in text
    assert text.endswith("\n\nThe paper's numbers are withheld: toy is not one of its data sets.\n")


def test_the_papers_numbers_stand_beside_ours_only_in_the_papers_setting() -> None:
    theirs = made_up_study("cub=somewhere", settings=in_the_papers_setting("cub=somewhere"))
    text = markdown(TABLES["main"], theirs, MadeUp())
    ours = next(line for line in text.splitlines() if line.startswith("| adaptive_novel"))
    assert [f"(paper {value})" in ours for value in ("66.62", "66.54", "66.7")] == [True] * 3
    assert text.startswith("**CUB")
    assert "withheld" not in text
    assert text.startswith(
        "**CUB-200-2011**: 5 old and 5 novel classes, ViT-B/16 DINO, 1 trainable block, protocol paper"
    )
    for other in (replace(theirs, quick=True), replace(theirs, settings=SETTINGS), made_up_study()):
        text = markdown(TABLES["main"], other, MadeUp())
        assert "(paper" not in text
        assert text.splitlines()[-1] == why_withheld(other)


def test_a_number_of_the_paper_that_cannot_be_right_carries_a_note() -> None:
    study = made_up_study("imagenet100=x", settings=in_the_papers_setting("imagenet100=x", "official"))
    text = markdown(TABLES["unknown-k"], study, MadeUp())
    entropy = next(line for line in text.splitlines() if line.startswith("| entropy"))
    assert "(paper 76.12 [" in entropy
    assert any(line.startswith("[1] ") for line in text.splitlines())
    assert "Estimated number of classes: 11 (seed 0), 12 (seed 1); in truth 10; the paper estimates 109." in text


def test_the_csv_holds_every_seed_unrounded() -> None:
    rows = list(csv.DictReader(raw_csv(TABLES["novelty"], [made_up_study()], MadeUp()).splitlines()))
    assert len(rows) == 6 * 2
    assert {float(row["nov_ratio"]) for row in rows if row["line"] == "random"} == {6 / 40, 7 / 40}
    assert {row["split"] for row in rows} == {"classes and labels drawn with the seed"}


def test_the_transfer_round_is_the_first_informative_one() -> None:
    told = [(0, None, 0.0, None), (1, "confident", 0.25, 0.5)]
    records = [{"round": i, "phase": p, "mapping_diff": d, "literal_diff": free} for i, p, d, free in told]
    assert transfer_round(records) is None
    assert first_diff(records) == 0.25
    assert first_diff(records[:1]) is None
    assert first_literal_diff(records) == 0.5
    assert first_literal_diff(records[:1]) is None
    assert first_literal_diff([*records[:1], {"round": 1, "mapping_diff": 0.25}]) is None, "as 0.1 recorded it"
    assert transfer_round([*records, {"round": 2, "phase": "informative", "mapping_diff": 0.0}]) == 2.0


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        ({}, {OURS: "mapping", "literal": "literal"}),
        ({"stability": "literal"}, {OURS: "literal", "mapping": "mapping"}),
        ({"switch_round": 2}, {OURS: "mapping"}),
    ],
)
def test_the_switch_is_shown_by_both_rules_unless_it_is_set_by_hand(
    query: dict[str, Any], lines: dict[str, str]
) -> None:
    study = made_up_study(settings=merged(SETTINGS, {"query": query}))
    entries = TABLES["transfer-round"].entries(study)
    assert {entry.line: entry.cells[0].config.query.stability for entry in entries} == lines
    text = markdown(TABLES["transfer-round"], study, MadeUp())
    assert "| round | mapping diff of round 1 | literal diff of round 1 |" in text
    assert "| 2.00 ± 0.00 | 0.10 ± 0.00 | 0.20 ± 0.00 |" in text


def test_settings_merge_section_by_section_and_leave_their_sources_alone() -> None:
    low, high = {"a": {"x": 1, "y": 2}, "b": 3}, {"a": {"y": 5}}
    assert merged(low, high) == {"a": {"x": 1, "y": 5}, "b": 3}
    assert low == {"a": {"x": 1, "y": 2}, "b": 3}


def test_all_means_every_table_and_every_figure() -> None:
    assert [one.name for one in find_wanted("all", "")] == [*TABLES, *FIGURES]


@pytest.mark.parametrize(
    ("what", "name", "says"),
    [
        ("table", "mian", "Unknown table 'mian'. Did you mean 'main'? Allowed: budget, factors"),
        ("figure", "", "Unknown figure ''."),
        ("all", "main", "leave out 'main'"),
    ],
)
def test_a_wrong_name_is_one_sentence_that_lists_the_right_ones(what: str, name: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says.replace(".", r"\.").replace("?", r"\?")):
        find_wanted(what, name)


@pytest.mark.usefixtures("in_this_process")
def test_tables_on_real_runs_share_them_and_a_second_call_runs_nothing(tmp_path: Path) -> None:
    out, said = tmp_path / "out", list[str]()
    study = open_study("toy", 1, SETTINGS, {}, tmp_path / "cache")
    assert (study.n_old, study.n_novel, study.budget) == (5, 5, 5)
    wanted = [TABLES["metrics"], TABLES["transfer-round"]]
    one = open_engine(processes=1)
    first = run_paper([study], wanted, 1, out, tmp_path / "cache", engine=one, progress=said.append)
    stamps = {p: p.stat().st_mtime_ns for p in (out / "runs").glob("*/model.safetensors")}
    assert len(list((out / "cells").iterdir())) == 4
    assert run_paper([study], wanted, 1, out, tmp_path / "cache", engine=one, progress=said.append) == first
    assert {p: p.stat().st_mtime_ns for p in (out / "runs").glob("*/model.safetensors")} == stamps
    assert (out / "tables" / "metrics.md").read_text() in first
    assert len((out / "tables" / "metrics.csv").read_text().splitlines()) == 1 + 3
    assert all(f"{MEASURES[m].title}" in first for m in ACCURACIES)


@pytest.mark.usefixtures("in_this_process")
def test_a_figure_is_headed_by_what_it_was_made_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Figure] = []

    def kept(figure: Figure) -> bytes:
        drawn.append(figure)
        return png_bytes(figure)

    monkeypatch.setattr("agcd.lab.paper.run_paper.png_bytes", kept)
    out, cache = tmp_path / "out", tmp_path / "cache"
    study = open_study("toy", 1, merged(SETTINGS, {"train": {"base_epochs": 0}}), {}, cache)
    run_paper(
        [study], [FIGURES["imbalance"]], 1, out, cache, engine=open_engine(processes=1), progress=lambda line: None
    )
    assert drawn[0].get_suptitle() == "given embeddings, an adapter trained, protocol quick"
    assert (out / "figures" / "imbalance.png").exists()


@pytest.mark.usefixtures("in_this_process")
def test_the_command_makes_a_small_table_and_says_that_it_is_small(tmp_path: Path) -> None:
    arguments = ["paper", "table", "transfer-round", "--data", "toy", "--out", str(tmp_path / "out"), "--quick"]
    result = CliRunner().invoke(app, [*arguments, "--cache", str(tmp_path / "cache"), "--jobs", "1"])
    assert result.exit_code == 0, result.output
    assert "--quick: too short to believe, 1 seed" in result.output
    assert "min left" in result.output


@pytest.mark.usefixtures("in_this_process")
def test_a_miniature_of_cub_says_what_it_was_made_with_and_why_the_papers_numbers_are_not_there(
    tmp_path: Path,
) -> None:
    data = f"cub={make_whole_cub(tmp_path)}"
    small = ["backbone.image_size=32", "backbone.views=1", "train.projector_width=16"]
    arguments = ["paper", "table", "main", "--data", data, "--quick", "--jobs", "1", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(
        app, [*arguments, "--cache", str(tmp_path / "cache"), *(part for one in small for part in ("--set", one))]
    )
    assert result.exit_code == 0, result.output
    heading = next(line for line in result.output.splitlines() if line.startswith("**CUB-200-2011**"))
    made_with = "100 old and 100 novel classes, EfficientNet-Lite0, 1 trainable block, protocol paper,"
    assert heading.startswith(f"**CUB-200-2011**: {made_with} ")
    assert "(paper" not in result.output
    withheld = next(line for line in result.output.splitlines() if line.startswith("The paper's numbers are withheld"))
    for reason in ("EfficientNet-Lite0", "image_size is 32", "--quick", "changed (train.projector_width)"):
        assert reason in withheld
    rows = list(csv.DictReader((tmp_path / "out" / "tables" / "main.csv").read_text().splitlines()))
    assert {(row["backbone"], row["protocol"], row["split"]) for row in rows} == {
        ("EfficientNet-Lite0, 1 trainable block", "paper", "published classes, labels drawn with the seed")
    }


@pytest.mark.slow
def test_everything_of_the_paper_runs_small_on_the_digits(tmp_path: Path) -> None:
    arguments = ["paper", "all", "--data", "digits", "--out", str(tmp_path / "out"), "--quick"]
    result = CliRunner().invoke(app, [*arguments, "--cache", str(tmp_path / "cache")])
    assert result.exit_code == 0, result.output
    assert {p.stem for p in (tmp_path / "out" / "tables").glob("*.md")} == set(TABLES)
    assert {p.stem for p in (tmp_path / "out" / "figures").glob("*.png")} == set(FIGURES)
