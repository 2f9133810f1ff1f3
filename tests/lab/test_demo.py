"""The demo, on small made-up images and on embeddings; the real one is slow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from agcd.engine import open_engine
from agcd.lab.bench import make_cells, report_bench
from agcd.lab.cells import Cell, run_cell
from agcd.lab.demo import RIVAL, SETTINGS, STRATEGY, run_demo
from support.benches import SMALL, toy_folder


@pytest.mark.usefixtures("in_this_process")
def test_the_demo_prints_the_rounds_and_writes_the_report(tmp_path: Path, capsys: Any) -> None:
    folder = str(toy_folder(tmp_path / "images"))
    report = run_demo(tmp_path / "out", 0, folder, SMALL, console=Console(width=110)).report
    printed = capsys.readouterr().out
    assert "Nov-C/R/U/I" in printed
    assert "Classes at the end" in printed
    assert report == tmp_path / "out" / "report.html"
    page = report.read_text(encoding="utf-8")
    assert page.count("data:image") > 10
    figures = {path.name for path in (tmp_path / "out" / "figures").iterdir()}
    assert {"accuracy.png", "balance.png", "confidence.png", "map.png", "classes-01.png"} <= figures


@pytest.mark.usefixtures("in_this_process")
def test_the_demo_runs_on_embeddings_too(tmp_path: Path) -> None:
    report = run_demo(tmp_path, 1, "toy", SMALL, console=Console(width=110)).report
    assert "propagation_herding" in report.read_text(encoding="utf-8")
    assert not (tmp_path / "figures" / "classes-01.png").exists()


@pytest.mark.usefixtures("in_this_process")
def test_a_broken_image_never_stops_a_benchmark(tmp_path: Path) -> None:
    cells = make_cells([str(toy_folder(tmp_path / "images"))], ["margin"], 1, SMALL, {})
    report_bench(
        cells, tmp_path / "out", tmp_path / "cache", engine=open_engine(processes=1), progress=lambda line: None
    )
    rows = pq.read_table(tmp_path / "out" / "results.parquet").to_pylist()
    assert [row["n_queried"] for row in rows] == [0, 3, 6]


def test_training_without_a_cache_writes_no_features(tmp_path: Path) -> None:
    settings = {**SMALL, "backbone": {**SMALL["backbone"], "cache": "off"}}
    cell = Cell(str(toy_folder(tmp_path / "images")), "random", 0, settings)
    records = run_cell(cell, tmp_path / "out", tmp_path / "cache")
    assert len(records) == 3
    assert not (tmp_path / "cache").exists()


@pytest.mark.slow
def test_on_real_photographs_the_answers_help_and_beat_random_ones(tmp_path: Path) -> None:
    cells = [Cell("groceries14", name, seed, SETTINGS) for name in (STRATEGY, RIVAL) for seed in range(3)]
    last = {(c.strategy, c.seed): run_cell(c, tmp_path, tmp_path / "cache") for c in cells}
    gain = [last[STRATEGY, s][-1]["acc_all"] - last[STRATEGY, s][0]["acc_all"] for s in range(3)]
    lead = [last[STRATEGY, s][-1]["acc_all"] - last[RIVAL, s][-1]["acc_all"] for s in range(3)]
    assert sum(gain) / 3 > 0.03
    assert sum(lead) / 3 > 0


@pytest.mark.usefixtures("in_this_process")
def test_the_demo_shows_texts_as_texts(tmp_path: Path, capsys: Any) -> None:
    lines = [
        f"{opening} {thing} {ending},{thing},{split}"
        for thing in ("card", "transfer", "password", "exchange rate")
        for split, openings in (
            ("train", ("where is my", "I lost the", "check my")),
            ("test", ("what about a",)),
        )
        for opening in openings
        for ending in ("now", "today", "please")
    ]
    (tmp_path / "mail.csv").write_text("\n".join(["text,label,split", *lines]), encoding="utf-8")
    settings = {"train": SMALL["train"], "query": SMALL["query"]}
    done = run_demo(tmp_path / "out", 0, f"mail={tmp_path / 'mail.csv'}", settings, console=Console(width=110))
    page = done.report.read_text(encoding="utf-8")
    assert "Nov-C/R/U/I" in capsys.readouterr().out
    assert "Category discovery in mail" in page
    assert "minilm, sentence embeddings of 384 numbers" in page
    assert page.count('<div class="excerpts') >= 4
    assert "exchange rate" in page
    assert not (tmp_path / "out" / "figures" / "classes-01.png").exists()
