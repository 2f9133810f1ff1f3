"""A trainer of somebody else, in a package of its own with a setting of its own, from its entry point to the tables."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import agcd
from agcd.io import digest_file
from agcd.training.loop import read_log
from support.killing import wait_for
from support.outside import contributing_example, make_package, new_process

TRAIN = {"base_epochs": 40, "round_epochs": 2, "projector_width": 16, "projector_dim": 8}
GRID = ["--data", "toy", "--strategies", "random", "--seeds", "1", "--rounds", "1", "--budget", "4", "--jobs", "1"]


def install(place: Path, edit: str = "") -> None:
    source = contributing_example("from pydantic import Field") + edit
    make_package(place, "theirs", {"training": source}, {"agcd.trainers": {"plain": "theirs.training:Plain"}})


def bench(folder: Path, place: Path, scale: float) -> subprocess.Popen[str]:
    """``agcd bench run`` with the trainer, as somebody types it."""
    train = {"trainer": "plain", "options.entropy_scale": scale, **TRAIN}
    settings = [f"--set=train.{name}={value}" for name, value in train.items()]
    command = [sys.executable, "-m", "agcd.cli", "bench", "run", *GRID, *settings]
    found = {**os.environ, "PYTHONPATH": os.pathsep.join([str(place), *sys.path]), "PYTHONDONTWRITEBYTECODE": "1"}
    command += ["--out", str(folder / "out"), "--cache", str(folder / "cache")]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=found, start_new_session=True, **pipes)


def models(folder: Path) -> dict[str, str]:
    """A digest of every finished model, by the key of its run."""
    return {path.parent.name: digest_file(path) for path in (folder / "out" / "runs").glob("*/model.safetensors")}


def in_one_call(folder: Path, place: Path, scale: float) -> str:
    """The same grid from Python; what its table calls the trainer."""
    with new_process(place):
        frame = agcd.run_experiment(
            "toy",
            "random",
            trainers=[{"trainer": "plain", "options": {"entropy_scale": scale}, **TRAIN}],
            seeds=1,
            budget=4,
            rounds=1,
            jobs=1,
            out=folder / "out",
            cache=folder / "cache",
            progress=False,
        )
    (trainer,) = frame["trainer"].unique()
    assert frame["acc_all"].between(0.3, 1).all()
    return str(trainer)


@pytest.mark.usefixtures("one_thread")
def test_it_trains_is_killed_goes_on_and_stands_in_the_tables_under_its_name(tmp_path: Path) -> None:
    place = tmp_path / "installed"
    install(place)

    def n_epochs() -> int:
        return max([len(read_log(path)) for path in (tmp_path / "killed" / "out" / "runs").glob("*/log.jsonl")] or [0])

    killed = bench(tmp_path / "killed", place, 2.0)
    wait_for("some epochs", lambda: n_epochs() > 2 or killed.poll() is not None)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    assert not models(tmp_path / "killed")
    resumed = bench(tmp_path / "killed", place, 2.0)
    told, errors = resumed.communicate()
    assert resumed.returncode == 0, errors
    assert "**toy**, plain (entropy_scale=2.0), 1 seeds\n" in told
    assert in_one_call(tmp_path / "unbroken", place, 2.0) == "plain (entropy_scale=2.0)"
    assert models(tmp_path / "killed") == models(tmp_path / "unbroken")
    assert len(models(tmp_path / "killed")) == 2


@pytest.mark.usefixtures("one_thread")
def test_another_option_and_another_source_are_other_runs(tmp_path: Path) -> None:
    place = tmp_path / "installed"
    install(place)
    kept: list[dict[str, str]] = []
    for scale, edit in ((1.0, ""), (1.0, ""), (2.0, ""), (2.0, "# edited\n")):
        install(place, edit)
        in_one_call(tmp_path, place, scale)
        kept.append(models(tmp_path))
    assert kept[0] == kept[1]
    assert [len(found) for found in kept] == [2, 2, 4, 6]
    assert len(set(kept[2].values())) == 4, "the option does something"
