"""The benchmark on the toy data set: shared runs, resumption, tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from agcd.config import TrainConfig, make_config
from agcd.engine import open_engine
from agcd.engine.torchrun import TorchrunEngine, _log_evaluation
from agcd.errors import ConfigError, DataError
from agcd.lab.bench import make_cells, report_bench
from agcd.lab.cells import Cell, run_cell
from agcd.lab.results import mean_std, rounds_table, summary_table
from agcd.run_files import LOG
from agcd.training import fit
from agcd.training.job import Outcome, TrainingJob
from support.blobs import FAST

SETTINGS: dict[str, Any] = {"train": FAST, "query": {"rounds": 2, "budget": 4}}


def run_grid(out: Path, strategies: list[str], seeds: int = 1) -> str:
    said: list[str] = []
    cells = make_cells(["toy"], strategies, seeds, SETTINGS, {})
    return report_bench(cells, out, out / "cache", engine=open_engine(processes=2), progress=said.append)


@pytest.mark.usefixtures("in_this_process")
def test_a_grid_writes_tidy_results_and_tables_and_shares_the_base(tmp_path: Path) -> None:
    text = run_grid(tmp_path, ["none", "random", "adaptive_novel"], seeds=2)
    rows = pq.read_table(tmp_path / "results.parquet").to_pylist()
    assert len(rows) == 2 * (1 + 3 + 3)
    assert (tmp_path / "results.md").read_text() == text
    assert len((tmp_path / "results.csv").read_text().splitlines()) == len(rows) + 1
    for seed in (0, 1):
        bases = {r["acc_all"] for r in rows if r["seed"] == seed and r["round"] == 0}
        assert len(bases) == 1
    assert len(list((tmp_path / "cells").glob("*/split.json"))) == 6
    done = list((tmp_path / "runs").glob("*/done.json"))
    assert len(done) <= 2 + 2 * 2 * 2
    for row in rows:
        assert 0 <= row["acc_new"] <= 1
        assert row["best_on_test"] >= row["acc_all"] - 1e-9
        assert row["n_queried"] == 4 * row["round"]
        assert row["on_test"]


@pytest.mark.usefixtures("in_this_process")
def test_running_the_grid_again_computes_nothing(tmp_path: Path) -> None:
    first = run_grid(tmp_path, ["random"])
    stamps = {p: p.stat().st_mtime_ns for p in (tmp_path / "runs").glob("*/model.safetensors")}
    assert run_grid(tmp_path, ["random"]) == first
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "runs").glob("*/model.safetensors")} == stamps


def test_a_longer_benchmark_reuses_the_rounds_of_a_shorter_one(tmp_path: Path) -> None:
    short, long = (
        Cell("toy", "margin", 0, {**SETTINGS, "query": {"rounds": n, "budget": 4, "switch_round": 1}}) for n in (1, 2)
    )
    one = run_cell(short, tmp_path, tmp_path / "cache")
    two = run_cell(long, tmp_path, tmp_path / "cache")
    assert two[:2] == one
    assert len(list((tmp_path / "runs").iterdir())) == 3


@pytest.mark.usefixtures("in_this_process")
def test_a_sweep_is_trained_by_what_the_engine_trains_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[int] = []

    def fit_together(_: TorchrunEngine, config: TrainConfig, job: TrainingJob) -> Outcome:
        trained.append(job.round)
        outcome = fit(config, replace(job, evaluate=None))
        assert job.evaluate
        assert job.run_dir
        _log_evaluation(job.run_dir / LOG, job.evaluate(outcome.fitted))
        return outcome

    monkeypatch.setattr(TorchrunEngine, "fit", fit_together)
    cells = make_cells(["toy"], ["random"], 1, SETTINGS, {})
    rows = {}
    for name, engine in (("alone", open_engine()), ("together", open_engine("torchrun", processes=2))):
        out = tmp_path / name
        report_bench(cells, out, tmp_path / "cache", engine=engine, progress=lambda line: None)
        rows[name] = pq.read_table(out / "results.parquet").to_pylist()
    assert trained == [0, 1, 2]
    assert [row["acc_all"] for row in rows["together"]] == [row["acc_all"] for row in rows["alone"]]
    assert [row["best_on_test"] for row in rows["together"]] == [row["acc_all"] for row in rows["together"]]


def test_results_do_not_depend_on_how_many_processes_run(tmp_path: Path) -> None:
    cells = make_cells(["toy"], ["random", "margin"], 1, SETTINGS, {})
    texts = [
        report_bench(
            cells, tmp_path / str(n), tmp_path / "cache", engine=open_engine(processes=n), progress=lambda line: None
        )
        for n in (1, 2)
    ]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("strategies", "settings", "error", "sentence"),
    [
        (["margn"], {}, ConfigError, "Did you mean 'margin'"),
        (["nome"], {}, ConfigError, "Did you mean 'none'"),
        (["random"], {"query": {"budget": 0}}, ConfigError, "query.budget"),
        (["adaptive_novel"], {"query": {"options": {"metric": "magrin"}}}, ConfigError, "Did you mean 'margin'"),
        (["nowhere.module:function"], {}, ConfigError, "could not be loaded"),
        (["random"], {"train": {"trainer": "simgdc"}}, ConfigError, "Did you mean 'simgcd'"),
    ],
)
def test_mistakes_are_found_before_anything_runs(
    strategies: list[str], settings: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        make_cells(["toy"], strategies, 1, settings, {})


def test_a_data_set_without_two_classes_is_refused(tmp_path: Path) -> None:
    import numpy as np

    np.savez(tmp_path / "one.npz", x=np.random.default_rng(0).normal(size=(30, 4)), y=np.zeros(30, int))
    cells = make_cells([str(tmp_path / "one.npz")], ["random"], 1, SETTINGS, {})
    with pytest.raises(DataError, match="at least two"):
        report_bench(cells, tmp_path / "out", tmp_path / "cache", engine=open_engine(processes=1))
    assert not (tmp_path / "out").exists()


def test_label_ratio_zero_and_a_wrong_number_of_slots_run(tmp_path: Path) -> None:
    nothing = Cell("toy", "adaptive_novel", 0, SETTINGS, {"label_ratio": 0.0})
    records = run_cell(nothing, tmp_path, tmp_path / "cache")
    assert records[-1]["acc_old"] is None
    assert records[-1]["acc_new"] == records[-1]["acc_all"] > 0
    for n_slots in (7, 14):
        cell = Cell("toy", "adaptive_novel", 0, {**SETTINGS, "n_slots": n_slots})
        assert run_cell(cell, tmp_path, tmp_path / "cache")[-1]["n_slots"] >= n_slots


@pytest.mark.parametrize("protocol", ["quick", "short", "paper", "official"])
def test_every_protocol_runs_with_every_kind_of_strategy(protocol: str, tmp_path: Path) -> None:
    for strategy in ("random", "badge", "adaptive_novel"):
        cell = Cell("toy", strategy, 0, {**SETTINGS, "protocol": protocol})
        records = run_cell(cell, tmp_path, tmp_path / "cache")
        assert [r["n_queried"] for r in records] == [0, 4, 8]
        assert all(0 <= r["acc_all"] <= 1 for r in records)
    switched = [r["phase"] for r in records]
    assert protocol != "official" or switched == [None, "confident", "informative"]


def test_a_cell_knows_its_strategy_and_seed() -> None:
    config = Cell("toy", "badge", 7, SETTINGS).config
    assert (config.query.strategy, config.seed) == ("badge", 7)
    assert config == make_config({**SETTINGS, "seed": 7, "query": {"rounds": 2, "budget": 4, "strategy": "badge"}})


def test_mean_std_is_the_sample_deviation() -> None:
    assert mean_std([0.5, 0.7], percent=True) == "60.0 ± 14.1"
    assert mean_std([0.5], percent=False) == "0.50"
    assert mean_std([None], percent=True) == "–"


def test_tables_name_every_strategy_once_per_data_set() -> None:
    figures = dict.fromkeys(
        ["acc_all", "acc_old", "acc_new", "mapped_all", "best_on_test", "nov_ratio", "nov_coverage"], 0.5
    ) | {"nov_uniformity": 0.5, "nov_information": 0.5, "n_queried": 4}
    records = [
        {"data": "some/folder", "strategy": s, "seed": seed, "round": t, **figures}
        for s in ("random", "margin")
        for seed in (0, 1)
        for t in (0, 1)
    ]
    summary, rounds = summary_table(records), rounds_table(records)
    assert summary.count("| random |") == summary.count("| margin |") == 1
    assert "50.0 ± 0.0" in summary
    assert "base | round 1" in rounds
