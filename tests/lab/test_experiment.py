"""``run_experiment``: the benchmark in one call, with functions and arrays as they are."""

from __future__ import annotations

import doctest
import re
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import agcd
from agcd.engine import open_engine
from agcd.engine.here import HereEngine
from agcd.errors import ConfigError, DataError, EngineError, InstallError
from agcd.lab import experiment
from agcd.lab.bench import make_cells, report_bench
from agcd.lab.starts import split_settings
from agcd.strategies import STRATEGIES
from agcd.training import REGISTRY
from agcd.training.simgcd import SimGCD
from agcd.types import Dataset, IntArray, Prediction
from support.blobs import FAST

SETTINGS: dict[str, Any] = {"train": {**FAST, "base_epochs": 2, "round_epochs": 1}}


def run(folder: Path, *args: Any, **more: Any) -> pd.DataFrame:
    given: dict[str, Any] = {"seeds": 1, "budget": 4, "rounds": 1, "settings": SETTINGS, "jobs": 1, "progress": False}
    return agcd.run_experiment(*args, cache=folder / "cache", **{"out": folder / "out", **given, **more})


def picker(step: int) -> Callable[..., IntArray]:
    """A closure, which no other process could import."""

    def pick(view: Any, budget: int, rng: Any) -> IntArray:
        """Picks from one end."""
        rows: IntArray = view.rows[::step][:budget]
        return rows

    return pick


def blobs() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(centre, 0.3, (30, 4)) for centre in 3 * np.eye(4)])
    return x, np.repeat(["ant", "bee", "cat", "dog"], 30)


def files(folder: Path) -> dict[str, int]:
    """Everything that was computed, with the time it was written."""
    found = [*folder.glob("out/runs/*/model.safetensors"), *folder.glob("out/cells/*/records.json")]
    return {str(path): path.stat().st_mtime_ns for path in found}


def test_it_is_the_benchmark_with_its_cells_and_its_records(tmp_path: Path) -> None:
    frame = run(tmp_path, "toy", ["random", "none"], seeds=[0, 2])
    before = files(tmp_path)
    values = {"protocol": "quick", **SETTINGS, "query": {"rounds": 1, "budget": 4}}
    split = split_settings(None, None, 0.2, None, None)
    cells = [cell for cell in make_cells(["toy"], ["random", "none"], 3, values, split) if cell.seed != 1]
    text = (tmp_path / "out" / "results.md").read_text()
    table = tmp_path / "out" / "results.parquet"
    stored = pq.read_table(table).to_pylist()
    assert report_bench(cells, tmp_path / "out", tmp_path / "cache", engine=open_engine(processes=1)) == text
    assert files(tmp_path) == before, "the command finds every cell that the call has made"
    assert pq.read_table(table).to_pylist() == stored
    assert set(frame.columns) == set(stored[0])
    assert list(frame.columns[:5]) == ["data", "trainer", "strategy", "seed", "round"]
    assert frame[["strategy", "seed", "round"]].to_numpy().tolist() == [
        *(["random", seed, number] for seed in (0, 2) for number in (0, 1)),
        *(["none", seed, 0] for seed in (0, 2)),
    ]


def test_functions_and_arrays_run_as_they_are_and_are_found_again(tmp_path: Path) -> None:
    def again(step: int = 1) -> pd.DataFrame:
        data = {"toy": "toy", "pets": blobs()}
        return run(tmp_path, data, ["random", picker(step), lambda view, budget, rng: view.rows[2 : 2 + budget]])

    first = again()
    assert set(first["data"]) == {"toy", "pets"}
    assert list(dict.fromkeys(first["strategy"])) == ["random", "pick", "lambda"]
    before = files(tmp_path)
    pd.testing.assert_frame_equal(again(), first)
    assert files(tmp_path) == before, "an unchanged function is not asked again"
    other = again(step=-1)
    assert set(files(tmp_path)) > set(before), "what a function encloses belongs to it"
    assert not other.equals(first)
    assert "pick" not in STRATEGIES.names(), "names are lent for the call alone"


def test_the_result_does_not_depend_on_where_it_is_computed(tmp_path: Path) -> None:
    here = run(tmp_path / "here", "toy", ["random", picker(1)], jobs=1)
    elsewhere = run(tmp_path / "elsewhere", "toy", ["random", picker(1)], jobs=2)
    pd.testing.assert_frame_equal(here.drop(columns="seconds"), elsewhere.drop(columns="seconds"))


def test_trainers_are_compared_by_name_class_and_settings(tmp_path: Path) -> None:
    class Twice(SimGCD):
        """Known to this test alone."""

        reads = frozenset({"answers"})

    trainers = {"plain": "simgcd", "no entropy": {"trainer": "simgcd", "entropy_weight": 0.0}, "Twice": Twice}
    frame = run(tmp_path, "toy", "random", trainers)
    assert list(dict.fromkeys(frame["trainer"])) == list(trainers)
    by_trainer = frame.set_index(["trainer", "round"])["acc_all"]
    assert by_trainer["plain"].tolist() == by_trainer["Twice"].tolist(), "the same trainer under another name"
    assert "**toy**, no entropy, 1 seeds" in (tmp_path / "out" / "results.md").read_text()
    assert "Twice" not in REGISTRY.names()


def test_without_a_folder_nothing_stays_and_the_protocol_says_who_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "tmp").mkdir()
    pairs = ["train.base_epochs=2", "train.round_epochs=1", "train.projector_width=16"]
    frame = run(tmp_path, "toy", settings=pairs, out=None, protocol="short", device="cpu")
    assert set(frame["strategy"]) == {"adaptive_novel"}
    assert not list((tmp_path / "tmp").iterdir())


def test_a_summary_has_means_and_deviations_by_data_trainer_and_strategy(tmp_path: Path) -> None:
    frame = run(tmp_path, "toy", ["random", "margin"], seeds=2, metrics=["nmi"])
    last = agcd.summarise(frame, metrics=["nmi"])
    assert last.index.tolist() == [("toy", "simgcd", "random"), ("toy", "simgcd", "margin")]
    for name in ("random", "margin"):
        values = frame[(frame["strategy"] == name) & (frame["round"] == 1)]["acc_all"] * 100
        shown = f"{values.mean():.1f} ± {values.std():.1f}"
        assert last.loc[("toy", "simgcd", name), "All"] == shown
        assert agcd.summarise(frame, by_round=True).loc[("toy", "simgcd", name), "round 1"] == shown
    assert re.fullmatch(r"0\.\d\d ± 0\.\d\d", last["nmi"].iloc[0])
    nothing_old = run(tmp_path, "toy", "none", label_ratio=0.0)
    assert agcd.summarise(nothing_old)["Old"].tolist() == ["–"], "there is no figure, and it is not called nan"


def test_a_metric_adds_columns_and_an_edited_one_measures_without_training(tmp_path: Path) -> None:
    def measured(factor: float) -> pd.DataFrame:
        def share(prediction: Prediction, y_class: IntArray, n_old: int) -> dict[str, float]:
            return {"share": factor * float((y_class < n_old).mean()), "rows": len(prediction.rows)}

        return run(tmp_path, "toy", "random", metrics=["ari", share])

    first = measured(1.0)
    assert first["share"].tolist() == [0.5, 0.5]
    assert first["rows"].tolist() == [200, 200]
    assert first["ari"].between(0, 1).all()
    assert "| ari | share | rows |" in (tmp_path / "out" / "results.md").read_text()
    before = files(tmp_path)
    assert measured(2.0)["share"].tolist() == [1.0, 1.0]
    assert files(tmp_path) == before


def clashing(prediction: Prediction, y_class: IntArray, n_old: int) -> dict[str, float]:
    return {"acc_all": 1.0}


@pytest.mark.parametrize(
    ("data", "more", "error", "sentence"),
    [
        ("toy", {"strategies": ["margn"]}, ConfigError, "Did you mean 'margin'"),
        ("toy", {"strategies": [picker(1), picker(2)]}, ConfigError, "Two are called 'pick': name each"),
        ("toy", {"strategies": {"margin": picker(1)}}, ConfigError, "There is a strategy 'margin' already"),
        ("toy", {"trainers": ["simgdc"]}, ConfigError, "Did you mean 'simgcd'"),
        ("toy", {"trainers": ["simgcd", {"trainer": "simgcd", "lr": 0.2}]}, ConfigError, "Two are called 'simgcd'"),
        ("toy", {"trainers": {"x": {"lr": 1}}}, ConfigError, "without 'trainer'"),
        ("toy", {"metrics": ["nmy"]}, ConfigError, "Unknown metric 'nmy'. Did you mean 'nmi'"),
        ("toy", {"metrics": [lambda p, y, n: 1.0]}, ConfigError, "gave a float; numbers by name of column"),
        ("toy", {"metrics": ["nmi", clashing]}, ConfigError, "'acc_all', which there is already"),
        ("toy", {"seeds": 0}, ConfigError, "seeds is 0"),
        ("toy", {"settings": "base_epochs"}, ConfigError, "section.key=value"),
        ("toy", {"settings": {"train": {"base_epoch": 1}}}, ConfigError, "Did you mean 'base_epochs'"),
        ("toy", {"track": "tensorbord"}, ConfigError, "Did you mean 'tensorboard'"),
        ("toi", {}, DataError, "Did you mean 'toy'"),
        (7, {}, ConfigError, "The data is given as a int"),
    ],
)
def test_mistakes_are_one_sentence(
    data: Any, more: dict[str, Any], error: type[Exception], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=re.escape(sentence)) as caught:
        run(tmp_path, [data], **{"strategies": "random", **more})
    assert "\n" not in str(caught.value)


def test_a_data_set_goes_in_whole_and_equal_ones_share_their_cells(tmp_path: Path) -> None:
    x, y = blobs()
    given = Dataset("pets", ("ant", "bee", "cat", "dog"), np.repeat(np.arange(4), 30), np.zeros(120, bool), ("",), x=x)
    given = Dataset(**{**vars(given), "keys": tuple(map(str, range(120))), "x": x.astype(np.float32)})
    run(tmp_path, given, "random")
    before = files(tmp_path)
    run(tmp_path, [given], "random")
    assert files(tmp_path) == before
    run(tmp_path, Dataset(**{**vars(given), "x": given.x * 2}), "random")  # type: ignore[operator]
    assert set(files(tmp_path)) > set(before)
    assert run(tmp_path, (x, y, x[::3], y[::3]), "none")["on_test"].all()


def test_rows_without_a_label_are_learned_from_and_never_asked_about(tmp_path: Path) -> None:
    x, y = blobs()
    unknown = np.arange(120) % 3 == 0
    asked: list[int] = []

    def last(view: Any, budget: int, rng: Any) -> IntArray:
        if view.rows[-1] >= 100:  # not the pool that is made up to try a strategy
            asked.extend(view.rows.tolist())
        rows: IntArray = view.rows[-budget:]
        return rows

    frame = run(tmp_path, (x, np.where(unknown, "", y)), last, rounds=2)
    assert asked
    assert not set(asked) & set(np.flatnonzero(unknown).tolist())
    assert frame["n_queried"].tolist() == [0, 4, 8]


def test_pandas_and_workers_that_cannot_start_are_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineError, match="give jobs=1"), experiment._explained():
        raise BrokenProcessPool
    monkeypatch.setattr(experiment, "parent_process", lambda: object())
    with pytest.raises(ConfigError, match="if __name__ == '__main__'"):
        agcd.run_experiment("toy", "random")
    monkeypatch.setattr(experiment, "find_spec", lambda name: None)
    with pytest.raises(InstallError, match=re.escape("pip install 'agcd[lab]'")):
        agcd.run_experiment("toy", "random")


def test_an_engine_that_stays_here_gives_the_threads_back() -> None:
    import torch

    before = torch.get_num_threads()
    assert list(HereEngine().run(lambda n: (n, torch.get_num_threads()), [(5,), (6,)])) == [(0, (5, 1)), (1, (6, 1))]
    assert torch.get_num_threads() == before


def test_the_example_of_the_docstring_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGCD_CACHE", str(tmp_path))
    results = doctest.testmod(experiment)
    assert (results.attempted, results.failed) == (5, 0)
