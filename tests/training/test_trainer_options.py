"""Settings of a trainer from outside: who checks them, who gets them, and that they are part of a run's key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from agcd.app.model import train
from agcd.config import Settings, TrainConfig, make_config
from agcd.engine.job_files import read_job, write_job
from agcd.errors import ConfigError
from agcd.lab.bench import make_cells
from agcd.session import Session, run_key
from agcd.training import fit, train_record, trainer_options
from agcd.training.process_group import SINGLE_PROCESS
from agcd.training.simgcd import SimGCD
from support.blobs import fast_config, make_blobs
from support.projects import SETTINGS, make_project
from support.training_jobs import job, same, weights


class Warm(Settings):
    epochs: int = Field(1, ge=0)


class ScaledSettings(Settings):
    entropy_scale: float = Field(1.0, ge=0)
    warm: Warm = Warm()


class Scaled(SimGCD):
    """SimGCD whose entropy term may be scaled, as in CONTRIBUTING."""

    reads = frozenset({"answers"})
    Settings = ScaledSettings

    def __init__(self, config: TrainConfig, options: ScaledSettings):
        scaled = config.entropy_weight * options.entropy_scale
        super().__init__(config.model_copy(update={"entropy_weight": scaled}))


class Lenient:
    class Settings(BaseModel):
        scale: float = 1.0


NAME = f"{__name__}:Scaled"


def options_of(name: str = NAME, **options: Any) -> Settings | None:
    return trainer_options(make_config({"train": {"trainer": name, "options": options}}).train)


def test_a_trainer_gets_its_settings_checked_and_complete(tmp_path: Path) -> None:
    assert options_of(entropy_scale="2") == ScaledSettings(entropy_scale=2.0)
    assert options_of("simgcd") is None
    blobs = make_blobs()
    half, plain = (
        fit(fast_config(**train).train, job(blobs, tmp_path / str(len(train)))).fitted
        for train in ({"trainer": NAME, "options": {"entropy_scale": 0.5}}, {"entropy_weight": 1.0})
    )
    assert same(weights(half), weights(plain))


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        (NAME, {"entropy_scal": 1}, "Unknown setting 'train.options.entropy_scal'. Did you mean 'entropy_scale'?"),
        (NAME, {"entropy_scale": -1}, "Setting 'train.options.entropy_scale' is -1: "),
        (NAME, {"warm": {"epoch": 1}}, "Unknown setting 'train.options.warm.epoch'. Did you mean 'epochs'?"),
        ("simgcd", {"entropy_scale": 1}, "Trainer 'simgcd' has no option 'entropy_scale'. It takes none."),
        (f"{__name__}:Lenient", {"scal": 1}, "must be derived from agcd.config.Settings"),
    ],
)
def test_a_wrong_option_is_one_sentence_before_anything_runs(
    name: str, options: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    settings = {"trainer": name, "options": options}
    with pytest.raises(ConfigError, match=re.escape(sentence)) as caught:
        make_cells(["toy"], ["random"], 1, {"train": settings}, {})
    assert "\n" not in str(caught.value)
    with make_project(tmp_path, SETTINGS | {"train": settings}) as project:
        with pytest.raises(ConfigError, match=re.escape(sentence)):
            train(project)
        assert not list((project.folder / "cache").rglob("*.npy")), "no feature was made"


def test_options_are_part_of_the_key_by_what_they_come_to() -> None:
    blobs = make_blobs()

    def key(**options: Any) -> str:
        return run_key(blobs.features, blobs.labels, fast_config(trainer=NAME, options=options), 6, None)

    assert key() == key(entropy_scale=1) == key(entropy_scale=1.0, warm={})
    assert len({key(), key(entropy_scale=2), key(warm={"epochs": 2})}) == 3
    assert "options" not in train_record(fast_config().train), "stored runs of agcd's own trainers stay valid"


def test_options_travel_with_a_job_and_stay_in_the_record_of_a_run(tmp_path: Path) -> None:
    config = fast_config(trainer=NAME, options={"entropy_scale": 2.0})
    blobs = make_blobs()
    write_job(tmp_path / "torchrun", config.train, job(blobs, tmp_path))
    assert trainer_options(read_job(tmp_path / "torchrun", SINGLE_PROCESS)[0]) == options_of(entropy_scale=2.0)
    assert train_record(config.train)["options"] == {"entropy_scale": 2.0, "warm": {"epochs": 1}}
    assert Session(blobs.features, blobs.labels, config, 6).train().metrics["n_slots"] == 6
