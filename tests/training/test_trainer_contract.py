"""What every trainer owes, checked for each one in the registry."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agcd import metrics
from agcd.config import SECTIONS, Config, TrainConfig, make_config
from agcd.errors import ConfigError
from agcd.io import digest
from agcd.session import run_key
from agcd.training import TRAINERS, Trainer, get_trainer, sections_read, settings_record
from agcd.training.fitted import Fitted
from agcd.training.loop import read_log
from agcd.training.simgcd import SimGCD
from support.blobs import fast_config, make_blobs, make_session
from support.training_jobs import assert_kills_change_nothing, job, same, told, weights

SMALL: dict[str, Any] = {
    "pim": {"steps": 150, "round_steps": 150, "entropy_weights": [0.3, 1.0], "search_steps": 10},
    "gcd": {"n_init": 2},
}
every_trainer = pytest.mark.parametrize("name", sorted(TRAINERS))


def config_of(name: str, **train: Any) -> Config:
    return fast_config(trainer=name, **{**SMALL, **train})


def trainer_of(name: str, **train: Any) -> Trainer:
    return get_trainer(name)(config_of(name, **train).train)


@every_trainer
def test_base_training_killed_after_any_epoch_and_resumed_equals_an_unbroken_one(name: str, tmp_path: Path) -> None:
    assert_kills_change_nothing(trainer_of(name), make_blobs(), tmp_path)


@every_trainer
def test_a_round_killed_after_any_epoch_and_resumed_equals_an_unbroken_one(name: str, tmp_path: Path) -> None:
    blobs, trainer = make_blobs(), trainer_of(name)
    base = trainer.fit(job(blobs, tmp_path / "base"))
    before = weights(base.fitted)
    active = {"labels": told(blobs), "round": 1, "start": base.fitted, "previous": base.last}
    done = assert_kills_change_nothing(trainer, blobs, tmp_path, **active)
    assert same(before, weights(base.fitted)), "the model that a round starts from must stay as it is"
    assert not same(before, weights(done.fitted))


@every_trainer
def test_a_model_saves_and_loads_to_the_same_prediction_and_the_same_next_round(name: str, tmp_path: Path) -> None:
    blobs, trainer = make_blobs(), trainer_of(name)
    base = trainer.fit(job(blobs, tmp_path / "base"))
    base.fitted.save(tmp_path / "model.safetensors")
    loaded = Fitted.load(tmp_path / "model.safetensors", blobs.features)
    for which in ("student", "ema"):
        before, after = (f.predict(blobs.features, np.arange(120), which) for f in (base.fitted, loaded))
        np.testing.assert_array_equal(before.probs, after.probs)
        np.testing.assert_array_equal(before.features, after.features)
    assert loaded.model_id == base.fitted.model_id
    rounds = [
        trainer.fit(job(blobs, tmp_path / str(i), labels=told(blobs), round=1, start=start, previous=base.last)).fitted
        for i, start in enumerate((base.fitted, loaded))
    ]
    assert same(weights(rounds[0]), weights(rounds[1]))


@every_trainer
def test_one_seed_repeats_and_two_differ(name: str, tmp_path: Path) -> None:
    blobs, trainer = make_blobs(per_class=10), trainer_of(name)
    runs = [
        weights(trainer.fit(job(blobs, tmp_path / str(i), n_slots=9, seed=seed)).fitted)
        for i, seed in enumerate([0, 0, 1])
    ]
    assert same(runs[0], runs[1])
    assert not same(runs[0], runs[2])


@every_trainer
def test_what_evaluate_sees_and_says_and_labels_of_held_out_rows_change_nothing(name: str, tmp_path: Path) -> None:
    blobs, trainer = make_blobs(), trainer_of(name)
    held_out = np.arange(120) % 5 == 4
    hidden = replace(blobs.labels, held_out=held_out, y_class=np.where(held_out, -1, blobs.labels.y_class))
    poisoned = replace(hidden, y_class=np.where(held_out, np.arange(120) % 3, hidden.y_class))

    def evaluate(fitted: Fitted) -> dict[str, Any]:
        fitted.predict(blobs.features, np.arange(120), "student")
        return {"acc_all": 1.0}

    plain = trainer.fit(job(blobs, tmp_path / "a", labels=hidden))
    watched = trainer.fit(job(blobs, tmp_path / "b", labels=poisoned, evaluate=evaluate))
    assert same(weights(plain.fitted), weights(watched.fitted))
    assert plain.last.to_json() == watched.last.to_json()
    lines = read_log(tmp_path / "b" / "log.jsonl")
    assert all(line["evaluation"] == {"acc_all": 1.0} and math.isfinite(line["loss"]) for line in lines)


@every_trainer
def test_training_starts_without_any_label_and_goes_on_without_any_answer(name: str, tmp_path: Path) -> None:
    blobs = make_blobs(n_old=0, ratio=0.0)
    session = make_session(blobs, tmp_path, config_of(name))
    session.train()
    session.train()
    query = session.ask(4)
    session.tell(query.rows, blobs.names(query.rows))
    done = session.train()
    assert np.isfinite(done.fitted.predict(blobs.features, np.arange(120)).probs).all()
    assert len(done.last.slot_of_class) == len(set(blobs.truth[query.rows]))


@every_trainer
@pytest.mark.parametrize("n_slots", [3, 9])
def test_the_number_of_slots_need_not_be_that_of_classes_and_grows_with_names(
    name: str, n_slots: int, tmp_path: Path
) -> None:
    blobs = make_blobs()
    session = make_session(blobs, tmp_path, config_of(name), n_slots=n_slots)
    assert session.train().fitted.n_slots == n_slots
    rows = np.array([60, 61, 62, 80, 81, 82, 100, 101, 102])
    session.tell(rows, blobs.names(rows))
    done = session.train()
    assert done.fitted.n_slots == max(6, n_slots)
    assert done.last.slot_of_class[:3].tolist() == [0, 1, 2]
    assert len(set(done.last.slot_of_class.tolist())) == 6
    assert done.fitted.student.n_slots == done.fitted.ema.n_slots
    found = done.fitted.predict(blobs.features, rows).y_slot
    assert (found == done.last.slot_of_class[session.labels.y_class[rows]]).mean() > 0.6
    assert session.train().fitted.n_slots == max(6, n_slots)


@every_trainer
def test_a_round_of_answers_finds_classes_that_had_no_slot(name: str, tmp_path: Path) -> None:
    blobs = make_blobs(per_class=30)
    session = make_session(blobs, tmp_path, config_of(name, base_epochs=6, round_epochs=6), n_slots=4)
    accuracy = []
    for _ in range(2):
        y_slot = session.train().fitted.predict(blobs.features, np.arange(180)).y_slot
        accuracy.append(metrics.accuracy(blobs.truth, y_slot, 3)["acc_all"])
        rows = np.concatenate([np.arange(c * 30, c * 30 + 3) for c in (3, 4, 5)])
        session.tell(rows, blobs.names(rows))
    assert accuracy[1] > max(0.85, accuracy[0] + 0.1), accuracy


CHANGES: dict[str, dict[str, Any]] = {
    "answers": {"repair": True},
    "mugcd": {"representation_share": 0.1},
    "pim": {"steps": 7},
    "gcd": {"n_init": 7},
    "simgcd_nn": {"n_neighbours": 2},
}


@every_trainer
def test_sections_that_a_trainer_does_not_read_play_no_part_in_the_key_of_a_run(name: str) -> None:
    blobs = make_blobs()
    plain = make_config({"protocol": "short", "train": {"trainer": name}})
    assert set(CHANGES) == SECTIONS, "a section of a new trainer belongs here"
    for section, change in CHANGES.items():
        changed = make_config({"protocol": "short", "train": {"trainer": name, section: change}})
        reads = section in sections_read(name)
        for parent in (None, "parent"):
            keys = {run_key(blobs.features, blobs.labels, config, 6, parent) for config in (plain, changed)}
            assert len(keys) == (2 if reads and (parent or section != "answers") else 1)
        assert (settings_record(plain) != settings_record(changed)) == reads


@every_trainer
def test_a_trainer_reads_no_section_that_it_does_not_declare(name: str, tmp_path: Path) -> None:
    blobs, seen = make_blobs(), set[str]()

    class Watched(TrainConfig):
        def __getattribute__(self, attribute: str) -> Any:
            if attribute in SECTIONS:
                seen.add(attribute)
            return super().__getattribute__(attribute)

    trainer = get_trainer(name)(Watched.model_validate(config_of(name).train.model_dump()))
    base = trainer.fit(job(blobs, tmp_path / "base"))
    trainer.fit(job(blobs, tmp_path / "round", labels=told(blobs), round=1, start=base.fitted, previous=base.last))
    assert seen <= sections_read(name)
    assert seen >= {name} & SECTIONS


class Undeclared(SimGCD):
    """Inherits what SimGCD reads, and may read more."""


class Declared:
    reads = ("answers", "gcd")


class Mistyped:
    reads = frozenset({"answer"})


def test_a_trainer_from_outside_reads_what_it_declares_and_else_everything() -> None:
    assert sections_read(f"{__name__}:Undeclared") == SECTIONS
    assert sections_read(f"{__name__}:Declared") == {"answers", "gcd"}
    with pytest.raises(ConfigError, match=r"reads 'answer', no section of train\. Did you mean 'answers'\?"):
        sections_read(f"{__name__}:Mistyped")


def test_every_setting_is_in_the_key_of_a_trainer_that_declares_nothing() -> None:
    blobs, name = make_blobs(), f"{__name__}:Undeclared"
    for section, change in CHANGES.items():
        values = ({"trainer": name}, {"trainer": name, section: change})
        configs = [make_config({"protocol": "short", "train": train}) for train in values]
        assert len({run_key(blobs.features, blobs.labels, config, 6, "parent") for config in configs}) == 2, section


@pytest.mark.parametrize(
    ("protocol", "expected"),
    [
        ("short", "b2-ede06c631a92fc02c949f100e187d610"),
        ("paper", "b2-767f6da08bb88d46a584ce1fddf3677c"),  # not that of 0.2, which left out losses of the paper's text
        ("official", "b2-e1544da35a2b275f577c6d2273a1ea5a"),
    ],
)
def test_the_settings_of_simgcd_have_the_digest_that_stored_runs_were_keyed_by(protocol: str, expected: str) -> None:
    assert digest(settings_record(make_config({"protocol": protocol}))["train"]) == expected
