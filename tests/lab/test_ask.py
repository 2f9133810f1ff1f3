from __future__ import annotations

from pathlib import Path

import pytest

from agcd.errors import ConfigError
from agcd.lab.ask import N_PARTS, judge_asking, report_asking
from agcd.lab.bench import make_cells
from agcd.lab.cells import Cell
from agcd.strategies import list_strategies
from support.benches import SMALL, toy_folder


def cells_of(strategies: list[str], n_seeds: int = 1, budget: int = 4) -> list[Cell]:
    return make_cells(["digits"], strategies, n_seeds, {"query": {"budget": budget}}, {"label_ratio": 0.2})


@pytest.mark.parametrize("one_by_one", [False, True])
def test_answers_are_counted_and_what_they_bring_is_measured(one_by_one: bool, tmp_path: Path) -> None:
    records = judge_asking(cells_of(["propagation_herding"])[0], tmp_path, one_by_one)
    assert [r["n_answers"] for r in records] == [4 * part for part in range(1, N_PARTS + 1)]
    assert records[-1]["acc_new"] > max(0.8, records[0]["acc_new"])
    assert 0 < records[-1]["nov_ratio"] <= 1
    assert records[-1]["nov_coverage"] == 1


@pytest.mark.parametrize("name", sorted(set(list_strategies()) - {"random"}))
def test_every_strategy_can_be_judged_without_training(name: str, tmp_path: Path) -> None:
    records = judge_asking(cells_of([name], budget=2)[0], tmp_path, one_by_one=False)
    assert records[-1]["n_answers"] == 2 * N_PARTS


@pytest.mark.usefixtures("in_this_process")
def test_the_tables_have_a_line_for_every_strategy_and_a_column_for_every_fifth(tmp_path: Path) -> None:
    text = report_asking(cells_of(["random", "propagation_herding"], 2, 3), tmp_path, progress=lambda line: None)
    assert "| strategy | 3 | 6 | 9 | 12 | 15 | Nov-R | Nov-C |" in text
    assert text.count("| propagation_herding | ") == 2
    assert "All after so many answers, 2 seeds" in text


def test_images_with_trained_blocks_are_refused_in_one_sentence(tmp_path: Path) -> None:
    cells = make_cells([str(toy_folder(tmp_path / "toys"))], ["random"], 1, SMALL, {})
    with pytest.raises(ConfigError, match=r"trainable_blocks=0\.$"):
        report_asking(cells, tmp_path, progress=lambda line: None)
