"""What agcd check finds beyond damaged files: rounds of no use, changed settings, exported files, traces of kills."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from agcd.app.check import Finding, check_project, repair
from agcd.app.create import CONFIG
from agcd.app.jobs import export_folder, seal_export
from agcd.app.model import train
from agcd.app.project import Project
from agcd.errors import ConfigError, StorageError
from agcd.io import write_json
from agcd.run_files import DONE, MODEL
from support.damage import damage
from support.projects import answer_all, predictions
from support.servers import serving, trained_project


def lines(folder: Path) -> list[str]:
    return [finding.line(folder) for finding in check_project(folder)]


def with_nan(project: Path) -> Path:
    """Round 0 as version 0.2 could leave it: finished, without digests, and its model is full of NaN."""
    path = project / "runs" / "000" / MODEL
    with safe_open(path, framework="numpy") as file:
        facts = json.loads(file.metadata()["facts"])
    facts.pop("digest")
    nan = {name: np.full_like(values, np.nan) for name, values in load_file(path).items()}
    save_file(nan, path, {"facts": json.dumps(facts)})
    write_json(project / "runs" / "000" / DONE, {"key": "k", "version": "0.2.0"})
    return path


def test_a_round_that_is_not_finite_can_be_left(tmp_path: Path) -> None:
    project = trained_project(tmp_path)
    with Project.open(project) as opened:
        expected = predictions(opened)
    model = (project / "runs" / "000" / MODEL).read_bytes()
    with_nan(project)
    assert any("runs/000/model.safetensors" in line and "repair moves 000 away" in line for line in lines(project))
    told = pytest.raises(StorageError, match=r"not finite: move .* training makes that round again")
    with Project.open(project) as opened, told:
        answer_all(opened)
    repair(project, check_project(project))
    with Project.open(project) as opened:
        train(opened)
        assert predictions(opened) == expected
    assert (project / "runs" / "000" / MODEL).read_bytes() == model
    assert lines(project) == []


def test_settings_that_changed_since_the_last_round_are_told_and_no_damage(tmp_path: Path) -> None:
    project = trained_project(tmp_path)
    text = (project / CONFIG).read_text()
    (project / CONFIG).write_text(text.replace("round_epochs = 2", "round_epochs = 3"))
    (found,) = check_project(project)
    assert not found.is_damage
    assert found.repair is None
    assert "differ from what round 0 was trained with: set train.round_epochs back" in found.line(project)


def test_images_that_are_gone_are_named(tmp_path: Path) -> None:
    project = trained_project(tmp_path)
    with Project.open(project) as opened:
        images, gone = opened.images, opened.paths[3]
    moved = (images / gone).rename(tmp_path / "moved")
    assert [gone in line for line in lines(project)] == [True]
    moved.rename(images / gone)


def test_exported_files_that_are_damaged_are_not_handed_out(tmp_path: Path) -> None:
    project = trained_project(tmp_path)
    folder = export_folder(project, 1)
    folder.mkdir(parents=True)
    (folder / "model.json").write_text('{"classes": []}')
    seal_export(folder)
    with serving(project) as client:
        assert client.http.get("/api/v1/export/model.json").status_code == 200
        damage(folder / "model.json", "flip")
        answer = client.http.get("/api/v1/export/model.json")
    assert (answer.status_code, "damaged" in answer.text) == (409, True)
    assert lines(project) == ["cache/export/000 is damaged (model.json is damaged): the page builds it again"]


def test_files_of_killed_work_are_found_and_cleaned(tmp_path: Path) -> None:
    project = trained_project(tmp_path)
    died = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    left = project / "runs" / "000" / f".model.safetensors.{died.stdout.decode().strip()}.0123abcd.tmp"
    left.write_bytes(b"half")
    os.utime(left, (time.time() - 7200,) * 2)
    (found,) = check_project(project)
    assert (found.is_damage, str(found.path.relative_to(project))) == (False, "runs/000")
    repair(project, [found])
    assert not left.exists()


def test_a_training_that_goes_on_cleans_up_after_the_one_that_was_killed(tmp_path: Path) -> None:
    project = trained_project(tmp_path)
    died = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    left = project / "runs" / "001" / f".checkpoint.safetensors.{died.stdout.decode().strip()}.0123abcd.tmp"
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(b"half")
    with Project.open(project) as opened:
        answer_all(opened)
        train(opened)
    assert not left.exists()


def test_where_there_is_no_project_nothing_is_checked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="There is no project"):
        check_project(tmp_path)


def test_nothing_is_repaired_while_training_runs(tmp_path: Path) -> None:
    project = trained_project(tmp_path)
    (project / "cache" / "job").mkdir()
    with (project / "cache" / "job" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        write_json(project / "cache" / "job" / "progress.json", {"state": "running", "kind": "train"})
        with pytest.raises(ConfigError, match="being trained"):
            repair(project, [Finding(project, "is damaged", "nothing")])
