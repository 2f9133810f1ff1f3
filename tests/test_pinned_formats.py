"""What version 0.1 left on disk stays valid: records, runs, features and benchmark cells, by key and by content.

``fixtures/project-0.1.zip`` is a project with 50 images, two rounds, an undo, a rename and a half-answered query;
``expected.json`` in it says what 0.1 said about it. ``fixtures/bench-0.1.zip`` holds one benchmark per trainer.
"""

from __future__ import annotations

import csv
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agcd.app.answers import Answer, write_answers
from agcd.app.export.files import export_file
from agcd.app.model import ask, row_features, train
from agcd.app.project import Project
from agcd.app.status import status_of
from agcd.config import OUR_ANSWERS, PRESETS
from agcd.io import digest_bytes, read_json
from agcd.lab.bench import make_cells
from agcd.lab.cells import run_cell
from agcd.session import run_key
from support.projects import predictions, truth

FIXTURES = Path(__file__).parent / "fixtures"
TRAINERS = ("simgcd", "mugcd", "pim", "gcd")
SMALL: dict[str, Any] = {
    "base_epochs": 2,
    "round_epochs": 2,
    "batch_size": 32,
    "projector_width": 16,
    "projector_dim": 8,
    "pim": {"steps": 20, "round_steps": 10, "search_steps": 5, "n_init": 2},
    "gcd": {"n_init": 2},
}
SPLIT = {"classes": None, "n_old": None, "label_ratio": 0.2, "long_tail": None}
"""Settings and split of the stored benchmarks, as ``agcd bench`` of 0.1 put them into the names of cells."""


def unpacked(name: str, folder: Path) -> Path:
    with zipfile.ZipFile(FIXTURES / f"{name}-0.1.zip") as archive:
        archive.extractall(folder / name)
    return folder / name


@pytest.fixture
def defaults_of_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """What 0.1 asked and made of answers by default: it dropped no slots, and its keys do not know that one could."""
    monkeypatch.setitem(OUR_ANSWERS, "unnamed", "keep")
    monkeypatch.setitem(PRESETS["quick"]["query"], "strategy", "widest_reach")


@pytest.fixture
def old_project(tmp_path: Path) -> Path:
    return unpacked("project", tmp_path)


def test_an_old_project_opens_and_says_what_it_said(old_project: Path) -> None:
    expected = read_json(old_project / "expected.json")
    with Project.open(old_project) as project:
        said = [line.replace("(s)", "s") for line in expected["status"]]  # 0.1 wrote "4 question(s)"
        assert status_of(project).lines() == said
        now, then = (
            list(csv.DictReader(text.splitlines()))
            for text in (export_file(project, "labels.csv").decode(), expected["labels.csv"])
        )
        for line in then:
            line["known"] = {"old": "true", "new": "false", "": ""}[line.pop("kind")]  # what 0.1 called it
        assert [{name: line[name] for name in then[0]} for line in now] == then
        assert predictions(project)["slot"] == expected["slot"]
        query = project.snapshot().asked.query
        assert query is not None
        assert [question.row for question in query.questions] == expected["query"]


def test_an_old_project_goes_on(old_project: Path) -> None:
    expected = read_json(old_project / "expected.json")
    with Project.open(old_project) as project:
        write_answers(project, [Answer(row, truth(project.paths[row])) for row in expected["open"]])
        done = train(project)
        assert (done.round, done.is_new, done.metrics["n_queried"]) == (2, True, 5 + 6)
        assert len(ask(project, 4).questions) == 4
        assert train(project).is_new is False


@pytest.mark.usefixtures("defaults_of_old")
def test_keys_of_old_runs_stay_valid(old_project: Path) -> None:
    expected = read_json(old_project / "expected.json")
    with Project.open(old_project) as project:
        features, parent = row_features(project), None
        assert features.fingerprint == expected["fingerprint"]
        for number, key in enumerate(expected["run_keys"]):
            labels, _ = project.label_state(number)
            parent = run_key(features, labels, project.config, project.n_slots, parent)
            assert parent == key, f"run {number}"


def test_old_features_are_used_and_new_ones_are_the_same(old_project: Path) -> None:
    shards = {path.name: path for path in (old_project / "cache" / "features").rglob("b2-*.npy")}
    before = {name: digest_bytes(path.read_bytes()) for name, path in shards.items()}
    with Project.open(old_project) as project:
        row_features(project)
        assert {p.name for p in (old_project / "cache" / "features").rglob("b2-*.npy")} == set(shards)
        assert {name: digest_bytes(path.read_bytes()) for name, path in shards.items()} == before
        kept = {name: np.load(path) for name, path in shards.items()}
        shutil.rmtree(old_project / "cache")
        row_features(project)
        for name, array in kept.items():
            # The name is a digest of what was asked for; the numbers may differ in their last digit by processor.
            np.testing.assert_allclose(np.load(shards[name]), array, atol=2e-3)


def run_bench(trainer: str, out: Path, cache: Path) -> None:
    settings = {"protocol": "quick", "train": {"trainer": trainer, **SMALL}, "query": {"rounds": 1}}
    for cell in make_cells(["blobs.npz"], ["none", "widest_reach"], 1, settings, SPLIT):
        run_cell(cell, out, cache)


def cells_of(out: Path) -> dict[str, list[dict[str, Any]]]:
    found = {path.parent.name: read_json(path) for path in out.glob("cells/*/records.json")}
    return {name: [{k: v for k, v in r.items() if k != "seconds"} for r in records] for name, records in found.items()}


@pytest.mark.usefixtures("defaults_of_old")
@pytest.mark.parametrize("trainer", TRAINERS)
def test_an_old_benchmark_is_taken_up_and_a_new_one_is_equal(
    trainer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = unpacked("bench", tmp_path)
    monkeypatch.chdir(folder)
    old = folder / f"bench-{trainer}"
    before, runs = cells_of(old), {path.name for path in (old / "runs").iterdir()}
    for path in old.glob("cells/*/records.json"):
        path.unlink()
    run_bench(trainer, old, tmp_path / "cache")
    assert cells_of(old).keys() == before.keys()
    for name, records in cells_of(old).items():
        # Stored models are measured again: another processor may round the sixth digit otherwise.
        for record, known in zip(records, before[name], strict=True):
            assert record == pytest.approx(known, abs=2e-6)
    assert {path.name for path in (old / "runs").iterdir()} == runs, "a run was trained again"
    run_bench(trainer, tmp_path / "new", tmp_path / "cache")
    assert {path.name for path in (tmp_path / "new" / "runs").iterdir()} == runs
    for name, records in cells_of(tmp_path / "new").items():
        for record, known in zip(records, before[name], strict=True):
            assert record["acc_all"] == pytest.approx(known["acc_all"], abs=0.03), "another processor explains little"
