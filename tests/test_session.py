"""One round, start to finish: what is written, what is reused, what survives a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from agcd import mapping
from agcd.config import TrainConfig
from agcd.errors import ConfigError, StorageError
from agcd.features.rows import EmbeddingRows, RowFeatures
from agcd.io import read_json, write_json
from agcd.run_store import KeyedRuns, NumberedRuns
from agcd.session import Session, check_labels
from agcd.training import fit as fit_here
from agcd.training.fitted import Fitted
from agcd.training.job import Outcome, TrainingJob
from agcd.types import IntArray, Prediction
from support import TESTS
from support.blobs import Blobs, fast_config, make_blobs, make_session, work_through

RUN_FILES = {
    *("config.json", "log.jsonl", "model.safetensors", "mapping.json", "predictions.parquet"),
    *("metrics.json", "done.json"),
}


def files_of(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir() if not p.name.startswith(".")}


def test_a_run_folder_holds_everything_and_no_leftovers(tmp_path: Path) -> None:
    blobs = make_blobs()
    session = make_session(blobs, tmp_path)
    session.train()
    query = session.ask()
    session.tell(query.rows, blobs.names(query.rows))
    session.train()
    assert files_of(tmp_path / "runs" / "000") == RUN_FILES
    assert files_of(tmp_path / "runs" / "001") == RUN_FILES | {"query.json"}
    facts = read_json(tmp_path / "runs" / "001" / "metrics.json")
    assert facts["n_queried"] == len(query.rows) == 10
    table = pq.read_table(tmp_path / "runs" / "001" / "predictions.parquet").to_pydict()
    assert table["row"] == list(range(120))
    named = {row: name for row, name in zip(table["row"], table["human_class"], strict=True) if name}
    assert {row: named[row] for row in query.rows.tolist()} == dict(
        zip(query.rows.tolist(), blobs.names(query.rows), strict=True)
    )


def test_running_again_loads_what_is_done_and_asks_the_same(tmp_path: Path) -> None:
    blobs = make_blobs()
    first, second = make_session(blobs, tmp_path), make_session(blobs, tmp_path)
    done = first.train()
    stamp = (tmp_path / "runs" / "000" / "model.safetensors").stat().st_mtime_ns
    again = second.train()
    assert (tmp_path / "runs" / "000" / "model.safetensors").stat().st_mtime_ns == stamp
    rows = np.arange(120)
    np.testing.assert_array_equal(
        done.fitted.predict(blobs.features, rows).probs, again.fitted.predict(blobs.features, rows).probs
    )
    asked, asked_again = first.ask(), second.ask()
    np.testing.assert_array_equal(asked.rows, asked_again.rows)
    assert asked.reasons == asked_again.reasons


def test_a_query_says_why_and_stays_inside_the_pool(tmp_path: Path) -> None:
    blobs = make_blobs()
    passed = np.zeros(120, bool)
    passed[60:100] = True
    blobs = replace(blobs, labels=replace(blobs.labels, passed=passed))
    session = make_session(blobs, tmp_path)
    session.train()
    query = session.ask(10)
    assert len(query.rows) == len(query.reasons) == len(query.scores) == 10
    assert not passed[query.rows].any()
    assert (session.labels.y_class[query.rows] < 0).all()
    assert all("slot" in reason and "margin" in reason for reason in query.reasons)
    assert query.facts["phase"] is None  # the default strategy knows none
    phased = make_session(blobs, tmp_path / "phased", fast_config(query={"strategy": "adaptive_novel"}))
    phased.train()
    assert all(reason.endswith("confident phase") for reason in phased.ask(10).reasons)


def test_a_query_tells_the_slots_of_its_rows_and_finds_them_where_an_older_version_left_none(tmp_path: Path) -> None:
    blobs = make_blobs()
    session = make_session(blobs, tmp_path)
    session.train()
    query = session.ask(10)
    slots = session.latest.fitted.predict(blobs.features, query.rows, "student").y_slot.tolist()
    assert query.facts["slots"] == session.ask(10).facts["slots"] == slots
    stored = read_json(tmp_path / "runs" / "001" / "query.json")
    del stored["facts"]["slots"]
    write_json(tmp_path / "runs" / "001" / "query.json", stored)
    assert session.ask(10).facts["slots"] == slots


def test_without_a_store_nothing_touches_the_disk_and_all_comes_out_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = make_blobs()
    stored = make_session(blobs, tmp_path / "stored")
    memory = Session(blobs.features, blobs.labels, fast_config(), 6)
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    monkeypatch.setattr("tempfile.tempdir", str(empty))
    for _ in range(3):
        done, kept = memory.train(), stored.train()
        assert done.folder is None
        assert done.key == kept.key
        assert done.fitted.model_id == kept.fitted.model_id != ""
        assert done.last.to_json() == kept.last.to_json()
        assert {**done.metrics, "seconds": 0} == {**kept.metrics, "seconds": 0}
        query, same = memory.ask(), stored.ask()
        assert query.rows.tolist() == same.rows.tolist()
        assert (query.reasons, query.facts, query.model_id) == (same.reasons, same.facts, same.model_id)
        for session in (memory, stored):
            session.tell(query.rows, blobs.names(query.rows))
    assert not list(empty.iterdir())
    with pytest.raises(ConfigError, match="without a store"):
        memory.resume(1)


def test_a_round_comes_with_the_prediction_of_all_readable_rows_unless_it_was_loaded(tmp_path: Path) -> None:
    blobs = make_blobs()
    x = blobs.features.read(np.arange(120), np.zeros(120, np.int64)).numpy().copy()
    x[7] = np.nan
    blobs = replace(blobs, features=EmbeddingRows(x, dropout=0.1))
    session = make_session(blobs, tmp_path)
    done = session.train()
    assert done.prediction is not None
    assert done.prediction.rows.tolist() == [row for row in range(120) if row != 7]
    again = done.fitted.predict(blobs.features, done.prediction.rows)
    np.testing.assert_array_equal(done.prediction.probs, again.probs)
    np.testing.assert_array_equal(done.prediction.features, again.features)
    assert session.latest.prediction is None, "a session that kept them all would grow round by round"
    assert make_session(blobs, tmp_path).train().prediction is None


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs whose models were read."""
    names: list[str] = []
    load = Fitted.load

    def spy(path: Path, *args: Any) -> Fitted:
        names.append(path.parent.name)
        return load(path, *args)

    monkeypatch.setattr(Fitted, "load", staticmethod(spy))
    return names


def three_rounds(folder: Path, **query: Any) -> tuple[Blobs, Session]:
    """A session that has taken up three finished rounds and is told what they knew."""
    blobs, config = make_blobs(), fast_config(query=query)
    before = make_session(blobs, folder, config)
    for number in range(3):
        before.train()
        if number < 2:
            asked = before.ask()
            before.tell(asked.rows, blobs.names(asked.rows))
    session = make_session(replace(blobs, labels=before.labels), folder, config)
    session.resume(3)
    return blobs, session


def test_taking_up_rounds_reads_no_model(tmp_path: Path, loaded: list[str]) -> None:
    _, session = three_rounds(tmp_path)
    assert session.phase in ("confident", "informative")
    assert session.budget == 9
    assert loaded == []


@pytest.mark.parametrize(
    ("strategy", "models"), [("widest_reach", {"002"}), ("adaptive_novel", {"002"}), ("mq_net", {"000", "001", "002"})]
)
def test_earlier_models_are_read_only_for_a_strategy_that_needs_them(
    strategy: str, models: set[str], tmp_path: Path, loaded: list[str]
) -> None:
    _, session = three_rounds(tmp_path, strategy=strategy)
    session.ask()
    assert set(loaded) == models
    assert len(loaded) == len(models), "each is read once"


def test_a_round_that_restarts_reads_the_base_model_alone(tmp_path: Path, loaded: list[str]) -> None:
    _, session = three_rounds(tmp_path)
    session.train()
    assert loaded == ["000"]


def test_asking_predicts_every_row_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = make_session(make_blobs(), tmp_path)
    session.train()
    rows: list[int] = []
    predict = Fitted.predict

    def spy(self: Fitted, features: RowFeatures, of: IntArray, *args: Any, **options: Any) -> Prediction:
        rows.extend(of.tolist())
        return predict(self, features, of, *args, **options)

    monkeypatch.setattr(Fitted, "predict", spy)
    session.ask()
    assert sorted(rows) == list(range(120))


def test_runs_that_are_kept_by_key_cannot_be_taken_up_by_number(tmp_path: Path) -> None:
    blobs = make_blobs()
    session = Session(blobs.features, blobs.labels, fast_config(), 6, KeyedRuns(tmp_path, tmp_path / "cell"))
    assert session.train().folder == tmp_path / "runs" / session.latest.key
    session.ask()
    assert (tmp_path / "cell" / "query-001.json").exists()
    with pytest.raises(StorageError, match="kept by key"):
        session.resume(1)


def test_other_settings_never_overwrite_a_finished_run(tmp_path: Path) -> None:
    blobs = make_blobs()
    make_session(blobs, tmp_path).train()
    other = make_session(blobs, tmp_path, fast_config(lr=0.05))
    with pytest.raises(StorageError, match="other settings"):
        other.train()


def test_round_settings_do_not_change_the_key_of_the_base(tmp_path: Path) -> None:
    blobs = make_blobs()
    keys = [
        make_session(blobs, tmp_path / str(i), fast_config(round_epochs=epochs)).train().key
        for i, epochs in enumerate([1, 2])
    ]
    assert keys[0] == keys[1]


def test_held_out_rows_are_neither_asked_nor_trained_on(tmp_path: Path) -> None:
    blobs = make_blobs()
    held_out = np.zeros(120, bool)
    held_out[60:80] = True
    session = make_session(replace(blobs, labels=replace(blobs.labels, held_out=held_out)), tmp_path)
    session.train()
    assert not held_out[session.ask(1000).rows].any()
    assert len(session.ask(1000).rows) == len(session.labels.pool_rows)


def test_phase_starts_confident_and_turns_informative_when_the_mapping_is_stable(tmp_path: Path) -> None:
    blobs = make_blobs()
    session = make_session(blobs, tmp_path)
    session.train()
    assert session.phase == "confident"
    query = session.ask()
    session.tell(query.rows, blobs.names(query.rows))
    done = session.train()
    assert session.phase == ("informative" if done.metrics["mapping_diff"] < 0.1 else "confident")


def test_a_round_records_both_diffs_and_the_literal_one_decides_where_it_is_asked_to(tmp_path: Path) -> None:
    blobs, store = make_blobs(), KeyedRuns(tmp_path, tmp_path / "queries")

    def session_of(**query: Any) -> Session:
        return Session(blobs.features, blobs.labels, fast_config(query={"stable_threshold": 0.3, **query}), 6, store)

    plain, literal = session_of(), session_of(stability="literal")
    for session in (plain, literal):
        base = session.train()
        assert base.metrics["literal_diff"] is None, "base training begins with no model"
        session.tell(np.array([60, 80]), blobs.names(np.array([60, 80])))
        done = session.train()
        assert {"mapping_diff", "literal_diff"} <= set(done.metrics)
    assert literal.latest.key == plain.latest.key, "both rules need the same runs"
    for told, phase in ((0.2, "informative"), (0.3, "confident")):
        literal.rounds[-1] = replace(literal.latest, metrics=literal.latest.metrics | {"literal_diff": told})
        assert literal.phase == phase
        assert plain.phase == ("informative" if plain.latest.metrics["mapping_diff"] < 0.3 else "confident")


def test_the_literal_diff_compares_the_models_before_and_after_a_round_on_all_labels(tmp_path: Path) -> None:
    blobs = make_blobs()
    session = make_session(blobs, tmp_path, fast_config(answers={"restart": False}))
    before = session.train().fitted
    query = session.ask(5)
    session.tell(query.rows, blobs.names(query.rows))
    done = session.train()
    rows = session.labels.labelled_rows
    was, now = (fitted.predict(blobs.features, rows, "ema").y_slot for fitted in (before, done.fitted))
    assert done.metrics["literal_diff"] == mapping.literal_diff(session.labels.y_class[rows], was, now, 6)


def test_the_literal_rule_refuses_rounds_that_were_trained_before_it_was_recorded(tmp_path: Path) -> None:
    blobs = make_blobs()
    session = make_session(blobs, tmp_path, fast_config(query={"stability": "literal"}))
    session.train()
    session.train()
    metrics = {name: value for name, value in session.latest.metrics.items() if name != "literal_diff"}
    session.rounds[-1] = replace(session.latest, metrics=metrics)
    with pytest.raises(StorageError, match="Round 1 was trained before"):
        session.ask()


def test_asking_before_training_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Nothing is trained yet"):
        make_session(make_blobs(), tmp_path).ask()


@pytest.mark.parametrize(
    ("n_slots", "sentence"), [(2, "less than the 3 classes"), (121, "too few for 121 slots"), (0, "less than")]
)
def test_impossible_numbers_of_slots_are_refused(n_slots: int, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        check_labels(make_blobs().labels, n_slots)


def test_one_slot_is_refused() -> None:
    with pytest.raises(ConfigError, match="only one class"):
        check_labels(make_blobs(n_old=1).labels, 1)


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from support.blobs import work_through
work_through(Path(sys.argv[1]))
"""


@pytest.mark.usefixtures("one_thread")
def test_kill_9_at_random_moments_changes_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    unbroken = work_through(tmp_path / "unbroken")
    broken, kills = tmp_path / "broken", 0
    for wanted in ("runs/000/log.jsonl", "runs/000/done.json", "runs/001/log.jsonl", "runs/002/log.jsonl"):
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(broken), str(TESTS)], env=environment)
        while process.poll() is None and not (broken / wanted).exists():
            time.sleep(0.005)
        process.kill()
        kills += process.wait() == -signal.SIGKILL
    assert kills >= 2
    assert work_through(broken) == unbroken != ""
    logs = [json.loads(line) for line in (broken / "runs/001/log.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in logs] == list(range(6))


@pytest.mark.parametrize(("trainer", "restart", "start"), [("simgcd", True, 0), ("simgcd", False, 1), ("gcd", True, 1)])
def test_rounds_start_from_the_base_model_or_from_the_last_one(
    trainer: str, restart: bool, start: int, tmp_path: Path
) -> None:
    """A trainer that does not read the section of answers goes on from the last round whatever it says."""
    blobs, jobs = make_blobs(), []

    def fit(config: TrainConfig, job: TrainingJob) -> Outcome:
        jobs.append(job)
        return fit_here(config, job)

    config = fast_config(trainer=trainer, answers={"restart": restart})
    session = Session(blobs.features, blobs.labels, config, 6, NumberedRuns(tmp_path), fit=fit)
    for _ in range(3):
        session.train()
        query = session.ask()
        session.tell(query.rows, blobs.names(query.rows))
    assert jobs[2].start is session.rounds[start].fitted
    assert jobs[2].previous is session.rounds[1].last


@pytest.mark.parametrize("strategy", ["propagation_herding", "margin"])
def test_questions_asked_one_by_one_follow_the_answers_and_are_kept(strategy: str, tmp_path: Path) -> None:
    blobs = make_blobs()
    session = make_session(blobs, tmp_path, fast_config(query={"strategy": strategy}))
    session.train()
    heard: list[int] = []

    def answer(row: int) -> str:
        heard.append(row)
        return blobs.names(np.array([row]))[0]

    query = session.ask(6, answer)
    assert query.rows.tolist() == heard
    assert len(set(heard)) == 6
    assert session.ask(6, answer).rows.tolist() == query.rows.tolist()
    assert len(heard) == 6, "a kept query asks nobody again"
    session.ask(6)
    other = session.ask(6, lambda row: "something else each time")
    assert len(other.rows) == 6


def test_an_answer_changes_the_questions_after_it() -> None:
    blobs = make_blobs()
    session = Session(blobs.features, blobs.labels, fast_config(query={"strategy": "propagation_herding"}), 6)
    session.train()
    by_truth = session.ask(8, lambda row: blobs.names(np.array([row]))[0])
    all_alike = session.ask(8, lambda row: "one name for all")
    assert by_truth.rows[0] == all_alike.rows[0]
    assert by_truth.rows.tolist() != all_alike.rows.tolist()
