"""The cost model: its arithmetic on a made-up machine, what is kept of a real one, and that one can be measured."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from agcd.app import live_rows
from agcd.config import Config, make_config
from agcd.data.texts import from_texts
from agcd.engine import measure
from agcd.engine.costs import (
    LIVE_ROWS,
    LIVE_SHARE,
    Costs,
    Embedding,
    Machine,
    Size,
    bytes_in_words,
    describe,
    estimate,
    seconds_in_words,
    selection_cells,
    size_of,
    table,
    texts_per_second,
    to_json,
    what_if,
)
from agcd.engine.machine import from_json, machine_key, this_machine
from agcd.engine.measure import measure_embedding
from agcd.errors import ConfigError
from agcd.features.rows import EmbeddingRows
from agcd.io import read_json, write_json
from agcd.strategies import list_strategies
from agcd.types import Growth, IntArray, PoolView, grows_with
from support.datasets import toy_rows
from support.machines import MACHINE
from support.pretend_device import DEVICE, pretend_device

EMBEDDED = replace(MACHINE, extraction=None, pooled=None)
SIZE = Size(n_train=1000, n_test=200, n_slots=10, n_labelled=100)


def config(**sections: Any) -> Config:
    return make_config(sections)


def test_extraction_takes_all_views_of_train_rows_and_one_of_test_rows() -> None:
    found = estimate(SIZE, config(backbone={"views": 4}), MACHINE)
    n_crops = 4 * 1000 + 200
    assert found.extraction_s == pytest.approx(3.0 + 1200 * 0.01 + n_crops * 0.02)
    runs = 6 * (5e6 + 1e4 * 10 + 32 * 1200)
    assert found.disk_bytes == n_crops * 1000 + runs


def test_training_equals_a_loop_over_its_epochs_and_steps() -> None:
    settings = config(
        train={"base_epochs": 3, "round_epochs": 2, "batch_size": 128, "query_batch_size": 8},
        query={"budget": 20, "rounds": 1, "strategy": "margin"},
    )
    step, queried, row = 0.5 + 0.01, 0.1, 0.01 + 0.001

    def epoch() -> float:
        return sum(step for _ in range(1000 // 128)) + 2.0 + 100 * row

    base = 2 * 1000 * row + 3 * 1e-9 * 1000 * 10 * 64  # centre, k-means on features, three starts
    base += sum(epoch() for _ in range(3)) + 1200 * row
    one_round = 1200 * row
    for _ in range(2):
        one_round += epoch() + math.ceil(20 / 8) * queried + (100 + 2 * 20) * row
    found = estimate(SIZE, settings, MACHINE)
    assert found.base_s == pytest.approx(base)
    assert found.round_s == pytest.approx(one_round)
    assert found.query_s == pytest.approx(1000 * row + (1000 - 120) * 10 * 1e-8)
    assert found.total_s == pytest.approx(found.extraction_s + found.base_s + found.round_s + found.query_s)


def test_random_prototypes_on_plain_features_need_neither_clustering_nor_a_first_pass() -> None:
    plain = config(train={"init": "random", "center": False, "base_epochs": 0})
    assert estimate(SIZE, plain, MACHINE).base_s == pytest.approx(1200 * 0.011)


def test_fewer_rows_than_a_batch_make_one_smaller_step() -> None:
    small = replace(SIZE, n_train=64, n_labelled=0, n_test=0)
    plain = config(train={"init": "random", "center": False, "base_epochs": 1})
    assert estimate(small, plain, MACHINE).base_s == pytest.approx(0.51 / 2 + 2.0 + 64 * 0.011)


def test_an_average_round_learns_from_half_of_all_answers() -> None:
    five, one = (estimate(SIZE, config(query={"budget": 16, "rounds": n}), MACHINE) for n in (5, 1))
    n_steps_more = (16 * 3 - 16) // 8
    assert five.round_s - one.round_s == pytest.approx(8 * (n_steps_more * 0.1 + 2 * 32 * 0.011))


def test_without_a_cache_training_pays_for_every_crop_and_the_disk_holds_runs_only() -> None:
    stored, online = (estimate(SIZE, config(backbone={"cache": cache}), MACHINE) for cache in ("store", "off"))
    assert online.extraction_s == 0
    assert stored.disk_bytes - online.disk_bytes == 1000 * (4 * 1000 + 200)
    crops_of_steps = 20 * 2 * 7 * 128
    assert online.base_s - stored.base_s > crops_of_steps * 0.03


def test_a_cache_beyond_memory_is_read_at_the_pace_of_the_disk() -> None:
    tight = replace(MACHINE, memory_bytes=2_100_000)  # half of the 4.2 MB of crops
    slow = replace(tight, disk_bytes_per_s=1e3)
    ample, found = estimate(SIZE, config(), MACHINE), estimate(SIZE, config(), slow)
    n_read = 20 * (2 * 7 * 128 + 100) + 2 * 1000 + 1200
    assert found.base_s - ample.base_s == pytest.approx(n_read * 1000 * 0.5 / 1e3)


def test_embeddings_need_no_extraction_and_offer_no_other_views() -> None:
    found = estimate(SIZE, config(), EMBEDDED)
    assert found.extraction_s == 0
    assert found.disk_bytes == estimate(SIZE, config(backbone={"views": 64}), EMBEDDED).disk_bytes
    assert found.memory_bytes > estimate(SIZE, config(), MACHINE).memory_bytes
    assert what_if(SIZE, config(), EMBEDDED) == []


sizes = st.builds(Size, st.integers(10, 10**7), st.integers(0, 10**6), st.integers(2, 10**4), st.integers(0, 10))


@given(sizes, st.sampled_from(["n_train", "n_test", "n_slots"]), st.sampled_from([MACHINE, EMBEDDED]))
def test_more_of_anything_never_costs_less(size: Size, what: str, machine: Machine) -> None:
    more = replace(size, **{what: 2 * getattr(size, what) + 256})
    before, after = (to_json(estimate(each, config(), machine)) for each in (size, more))
    assert all(after[name] >= before[name] - 1e-6 for name in before)


def test_every_dial_lowers_what_it_says() -> None:
    now = estimate(SIZE, config(), MACHINE)
    others = dict(what_if(SIZE, config(), MACHINE))
    assert list(others) == ["backbone.views = 2", "backbone.image_size = 160", "backbone.trainable_blocks = 0"]
    fewer, smaller, adapter = others.values()
    assert fewer.disk_bytes < now.disk_bytes
    assert fewer.extraction_s < now.extraction_s
    assert fewer.base_s == now.base_s
    assert smaller.extraction_s < now.extraction_s
    assert smaller.base_s < now.base_s
    assert adapter.base_s < now.base_s
    assert adapter.extraction_s == now.extraction_s


def test_dials_that_are_at_their_end_are_not_offered() -> None:
    least = config(backbone={"views": 1, "image_size": 96, "trainable_blocks": 0})
    assert what_if(SIZE, least, replace(MACHINE, pooled=None)) == []


def from_outside(view: PoolView, budget: int, rng: np.random.Generator) -> IntArray:
    """Picks the first rows."""
    return view.rows[:budget]


@pytest.mark.parametrize("name", list(list_strategies()))
def test_every_strategy_has_a_law_of_growth(name: str) -> None:
    small, large = selection_cells(name, 100, 10, 64, 5), selection_cells(name, 200, 20, 64, 10)
    assert 0 < small < large


def test_strategies_that_compare_rows_grow_with_the_budget_and_margins_do_not() -> None:
    assert selection_cells("margin", 100, 10, 64, 5) == selection_cells("margin", 100, 10, 64, 50)
    assert selection_cells("coreset", 100, 10, 64, 50) == 10 * selection_cells("coreset", 100, 10, 64, 5)


def test_strategies_that_compare_all_rows_grow_with_their_square_up_to_their_candidates() -> None:
    assert selection_cells("widest_reach", 200, 10, 64, 5) == 4 * selection_cells("widest_reach", 100, 10, 64, 5)
    assert selection_cells("widest_reach", 10**6, 10, 64, 5) == selection_cells("widest_reach", 10**4, 10, 64, 5)


@pytest.mark.parametrize(
    ("growth", "n_cells"),
    [("slots", 100 * 10), ("features", 100 * 74), ("picks", 100 * 74 * 5), ("pairs", 100 * 74 * 100)],
)
def test_a_strategy_from_outside_grows_as_it_declares(
    growth: Growth, n_cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "from_outside", grows_with(growth)(partial(from_outside)))
    assert selection_cells(f"{__name__}:from_outside", 100, 10, 64, 5) == n_cells


def test_a_strategy_that_declares_no_growth_is_taken_to_compare_rows_with_its_picks() -> None:
    assert selection_cells(f"{__name__}:from_outside", 100, 10, 64, 5) == selection_cells("coreset", 100, 10, 64, 5)


def test_a_growth_that_is_none_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_outside, "growth", "cubes", raising=False)
    with pytest.raises(ConfigError, match="grows with 'cubes'; it must be one of slots, features, picks, pairs"):
        selection_cells(f"{__name__}:from_outside", 100, 10, 64, 5)


def test_sizes_are_read_from_a_data_set() -> None:
    assert size_of(toy_rows([4, 3], n_test=2, n_unlabelled=5), 6) == Size(12, 4, 6, 7)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.04, "0.0 s"), (59.6, "60 s"), (150, "2.5 min"), (3600, "60 min"), (9000, "2.5 h"), (5e5, "5.8 days")],
)
def test_seconds_are_told_in_the_unit_people_use(seconds: float, words: str) -> None:
    assert seconds_in_words(seconds) == words


@pytest.mark.parametrize(("n", "words"), [(2_000, "2 kB"), (1.5e6, "1.5 MB"), (2.34e10, "23 GB"), (1.26e12, "1.3 TB")])
def test_bytes_are_told_in_the_unit_people_use(n: float, words: str) -> None:
    assert bytes_in_words(n) == words


def test_the_table_lines_up_settings_side_by_side() -> None:
    costs = Costs(10**9, 2 * 10**9, 60.0, 600.0, 60.0, 1.0, 5)
    lines = table([("as set", costs), ("other", replace(costs, base_s=7200.0))]).splitlines()
    assert lines[0].split("  ")[-1] == "other"
    assert [line.split("  ")[0] for line in lines[1:]] == [what for what, _ in describe(costs)]
    assert lines[5].split() == ["base", "training", "10", "min", "2.0", "h"]
    assert len({line.index(cell) for line, cell in zip(lines[:3], ("as set", "1.0", "2.0"), strict=True)}) == 1
    assert to_json(costs)["total_s"] == 60 + 600 + 5 * 61


# --- what is kept of a machine -----------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", [MACHINE, EMBEDDED])
def test_a_measured_machine_is_read_and_not_measured_again(tmp_path: Path, machine: Machine) -> None:
    write_json(tmp_path / f"machine-{machine_key(config(), None)}.json", asdict(machine))
    assert this_machine(config(), tmp_path) == machine


def test_a_machine_survives_being_stored() -> None:
    assert from_json(asdict(MACHINE)) == MACHINE


def test_only_settings_that_shape_the_work_ask_for_a_new_measurement() -> None:
    key = machine_key(config(), None)
    same: list[dict[str, Any]] = [
        {"train": {"base_epochs": 99}},
        {"backbone": {"views": 9}},
        {"query": {"budget": 7}},
        {"seed": 3},
    ]
    other: list[dict[str, Any]] = [
        {"train": {"batch_size": 64}},
        {"backbone": {"image_size": 96}},
        {"query": {"strategy": "badge"}},
        {"device": "cuda"},
        {"train": {"precision": "bfloat16"}},
    ]
    assert {machine_key(make_config(values), None) for values in same} == {key}
    assert len({machine_key(make_config(values), None) for values in other} | {key, machine_key(config(), 64)}) == 7


def test_a_trainer_without_a_cost_model_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no cost model for the trainer 'pim': simgcd, simgcd_nn, mugcd\."):
        this_machine(config(train={"trainer": "pim"}), tmp_path)


def test_a_stored_machine_is_read_without_torch(tmp_path: Path) -> None:
    write_json(tmp_path / f"machine-{machine_key(config(), None)}.json", asdict(MACHINE))
    code = (
        "import sys; from pathlib import Path\n"
        "from agcd.config import make_config\n"
        "from agcd.engine.costs import Size, estimate\n"
        "from agcd.engine.machine import this_machine\n"
        "estimate(Size(9, 0, 2, 1), make_config(), this_machine(make_config(), Path(sys.argv[1])))\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# --- measuring ---------------------------------------------------------------------------------------------------


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [number for part in value.values() for number in numbers(part)]
    return [number for part in value for number in numbers(part)] if isinstance(value, list | tuple) else [value]


SMALL = {
    "backbone": {"name": "toy", "image_size": 32, "views": 2},
    "train": {"batch_size": 16, "projector_width": 16, "projector_dim": 8},
}


@pytest.mark.parametrize("dim", [None, 12])
def test_a_machine_can_be_measured_and_then_estimates(tmp_path: Path, dim: int | None) -> None:
    settings = make_config(SMALL)
    measured = this_machine(settings, tmp_path, dim=dim)
    assert measured.dim == (32 if dim is None else 12)
    assert (measured.extraction is None) == (dim is not None)
    assert measured.tail.item_bytes == ((17 + 1) * 32 * 2 if dim is None else 12 * 4)
    assert measured.device == "cpu"
    stored = {k: v for k, v in asdict(measured).items() if v is not None and k != "device"}
    assert all(math.isfinite(n) and n >= 0 for n in numbers(stored))
    assert measured.tail.step.at(16) > 0
    assert measured.tail.predict.at(16) > 0
    costs = to_json(estimate(SIZE, settings, measured))
    assert all(np.isfinite(list(costs.values())))
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]  # nothing else is left behind


def test_steps_and_predictions_are_measured_on_the_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "MANY_SLOTS", 32)
    config = make_config(SMALL).train
    rows = EmbeddingRows(np.random.default_rng(0).normal(size=(measure.LONG * config.batch_size, 8)).astype(np.float32))
    with pretend_device() as traffic:
        measured = measure.measure_training(rows, config, tmp_path, DEVICE)
    assert traffic.to_device > 0
    assert measured.step.at(16) > 0
    assert measured.predict.at(16) > 0


def test_a_device_that_is_not_here_is_not_guessed_at(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Device 'cuda:7' is not here"):
        this_machine(make_config({"device": "cuda:7"}), tmp_path, dim=8)
    assert not list(tmp_path.iterdir())


def test_renewing_measures_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"machine-{machine_key(config(), 64)}.json"
    write_json(path, asdict(MACHINE))
    monkeypatch.setattr(measure, "measure", lambda *_: EMBEDDED)
    assert this_machine(config(), tmp_path, dim=64) == MACHINE
    assert this_machine(config(), tmp_path, dim=64, renew=True) == EMBEDDED
    assert from_json(read_json(path)) == EMBEDDED


# --- texts -------------------------------------------------------------------------------------------------------


READING = replace(EMBEDDED, embedding=Embedding(start_s=1.0, text_s=0.002, char_s=1e-5), neighbour_s=1e-9)
SENTENCES = replace(SIZE, n_chars=100.0)


def test_texts_are_embedded_once_and_stored_in_half_precision() -> None:
    found = estimate(SENTENCES, config(), READING)
    assert found.extraction_s == pytest.approx(1.0 + 1200 * (0.002 + 100 * 1e-5))
    assert found.disk_bytes == estimate(SIZE, config(), EMBEDDED).disk_bytes + 1200 * 64 * 2
    assert texts_per_second(SENTENCES, READING) == pytest.approx(1 / 0.003)
    assert texts_per_second(SIZE, EMBEDDED) is None
    off = estimate(SENTENCES, config(backbone={"cache": "off"}), READING)
    assert off.extraction_s == found.extraction_s
    assert off.disk_bytes == estimate(SIZE, config(), EMBEDDED).disk_bytes


def test_the_first_question_waits_for_features_and_for_the_neighbours_that_are_followed() -> None:
    found = estimate(SENTENCES, config(), READING)
    assert found.first_question_s == pytest.approx(found.extraction_s + 1e-9 * 1000 * 1000 * 64 / LIVE_SHARE)
    large = [estimate(replace(SENTENCES, n_train=n), config(), READING) for n in (LIVE_ROWS, 5 * LIVE_ROWS)]
    waits = [costs.first_question_s - costs.extraction_s for costs in large]
    assert waits[0] == pytest.approx(waits[1])
    assert LIVE_ROWS == live_rows.LIVE_ROWS


def test_texts_are_measured_apart_from_embeddings_of_their_width(tmp_path: Path) -> None:
    assert machine_key(config(), None, True) not in (machine_key(config(), None), machine_key(config(), 384))
    write_json(tmp_path / f"machine-{machine_key(config(), None, True)}.json", asdict(READING))
    assert this_machine(config(), tmp_path, has_texts=True) == READING


class _Sleeper:
    """An encoder that takes two microseconds for every character, and a millisecond on top."""

    name, fingerprint, dim = "sleeper", "0", 2

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        time.sleep(0.001 + 2e-6 * sum(map(len, texts)))
        return np.ones((len(texts), 2), np.float32)


def test_seconds_per_text_are_a_line_through_short_and_long_ones() -> None:
    measured = measure_embedding(_Sleeper())
    assert 2e-6 <= measured.char_s < 4e-6
    assert 0.001 * measured.seconds(100) < 0.001 * measured.seconds(1000) < 1e-5


def test_sizes_of_texts_hold_their_length() -> None:
    texts = from_texts(["four", "sixsix"], ["a", "b"])
    assert size_of(texts, 2) == Size(2, 0, 2, 2, 5.0)
