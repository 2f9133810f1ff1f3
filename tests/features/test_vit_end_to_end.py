"""A vision transformer from a weights file, as a user meets it: train, be killed, go on, ask, export, predict."""

from __future__ import annotations

import csv
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor
from typer.testing import CliRunner

from agcd.app.export.classifier import load_classifier, preprocess
from agcd.app.model import train
from agcd.app.project import Project
from agcd.cli import app
from agcd.config import make_config
from agcd.features.backbones import load_backbone
from agcd.features.onnx_graph import has_onnx
from agcd.features.rows import OnlineRows, RowFeatures, open_stored
from agcd.features.store import Allocate
from agcd.training.job import TrainingJob
from agcd.training.loop import CHECKPOINT, load_tensors
from agcd.training.simgcd import SimGCD
from agcd.types import IntArray
from support import TESTS
from support.datasets import toy_images
from support.projects import answer_all, make_project, partly_labelled, predictions, truth
from support.vits import random_vit, relative

SIZE = 64
N_EPOCHS = 3
TRAIN = {"base_epochs": N_EPOCHS, "round_epochs": N_EPOCHS, "batch_size": 32, "projector_width": 16, "projector_dim": 8}
HERE = str(TESTS)
DIE_IN_ROUND = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from agcd.app.model import train
from agcd.app.project import Project
from support.projects import answer_all

def die(line):
    if line["epoch"] == 1:
        os.kill(os.getpid(), signal.SIGKILL)

with Project.open(Path(sys.argv[1])) as project:
    while True:
        if project.snapshot().is_due:
            train(project, die if project.n_finished == int(sys.argv[3]) else None)
        else:
            answer_all(project)
"""


def vit_settings(folder: Path, **backbone: Any) -> dict[str, Any]:
    """Settings for timm's smallest transformer, its random weights in a file as pretrained ones would be."""
    file = folder / "vit.safetensors"
    vit = random_vit(img_size=2 * SIZE, patch_size=16, embed_dim=64, num_heads=2, depth=6, mlp_ratio=3)
    safetensors.torch.save_file(vit.state_dict(), file)
    chosen = {"name": "test_vit", "weights": str(file), "image_size": SIZE, "views": 2, **backbone}
    return {"backbone": chosen, "train": TRAIN}


def first_step_gradients(features: RowFeatures, project: Project, run_dir: Path) -> dict[str, Tensor]:
    """Gradients by parameter of the first batch of base training, which the optimiser keeps as its momentum.

    One epoch of one batch, no weight decay; the paper's start, which does not look at the features.
    """
    whole = {"base_epochs": 1, "batch_size": len(project.keys), "weight_decay": 0.0}
    config = make_config({"protocol": "paper", "train": {**TRAIN, **whole}})
    run_dir.mkdir()
    job = TrainingJob(features, project.label_state()[0], project.n_slots, seed=0, round=0, run_dir=run_dir)
    student = SimGCD(config.train).fit(job).fitted.student
    tensors, _ = load_tensors(run_dir / CHECKPOINT)
    names = [name for name, parameter in student.named_parameters() if parameter.requires_grad]
    return {name: tensors[f"momentum.{i}"] for i, name in enumerate(names)}


class RoundedRows(OnlineRows):
    """Features computed at every read, in the precision of a store."""

    def read(self, rows: IntArray, views: IntArray, allocate: Allocate = np.empty) -> Tensor:
        return super().read(rows, views).half()


@pytest.mark.parametrize("trainable_blocks", [1, 2])
def test_without_a_cache_the_first_gradients_are_those_with_one(trainable_blocks: int, tmp_path: Path) -> None:
    settings = vit_settings(tmp_path, trainable_blocks=trainable_blocks)
    with make_project(tmp_path, settings) as project:
        dataset, backbone = project.dataset(), load_backbone(project.config.backbone)
        stored = open_stored(dataset, backbone, 2, tmp_path / "cache", workers=0)
        online, rounded, other_views = (kind(dataset, backbone) for kind in (OnlineRows, RoundedRows, OnlineRows))
        # Without a cache every view is new; here these two draw from the views that are stored.
        online.n_views = rounded.n_views = stored.n_views
        expected = first_step_gradients(stored, project, tmp_path / "stored")
        found, exact, unlike = (
            first_step_gradients(rows, project, tmp_path / f"run {i}")
            for i, rows in enumerate((online, rounded, other_views))
        )
    assert {name.partition(".")[0] for name in expected} == {"tail", "prototypes", "projector"}
    for name, gradient in expected.items():
        assert relative(exact[name], gradient) < 1e-5, name
        assert relative(found[name], gradient) < 3e-3, f"{name}: a store rounds to float16, and nothing more"
        assert relative(unlike[name], gradient) > 3e-2, f"{name}: other views must be told from rounding"


def kill_in_round(number: int, project: Path) -> None:
    """Train in another process, which is killed in the second epoch of that round."""
    command = [sys.executable, "-c", DIE_IN_ROUND, str(project), HERE, str(number)]
    done = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL


def finish(project: Project) -> None:
    """Go on to the end of round 1 from wherever the project stands."""
    while project.n_finished < 2:
        if project.snapshot().is_due:
            train(project)
        else:
            answer_all(project)


def weights(project: Project, number: int) -> dict[str, Tensor]:
    return load_tensors(project.run_folder(number) / "model.safetensors")[0]


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(("killed_in", "cache"), [(0, "store"), (1, "off")])
def test_a_killed_run_ends_with_the_weights_of_an_unbroken_one(killed_in: int, cache: str, tmp_path: Path) -> None:
    make_project(tmp_path, vit_settings(tmp_path, cache=cache)).close()
    shutil.copytree(tmp_path / "project", tmp_path / "unbroken")
    kill_in_round(killed_in, tmp_path / "project")
    with Project.open(tmp_path / "project") as broken, Project.open(tmp_path / "unbroken") as unbroken:
        assert broken.n_finished == killed_in
        finish(broken)
        finish(unbroken)
        for number in (0, 1):
            one, other = weights(broken, number), weights(unbroken, number)
            assert one.keys() == other.keys()
            assert all(torch.equal(one[name], other[name]) for name in one), f"round {number}"
        assert predictions(broken) == predictions(unbroken)
        assert (broken.folder / "cache" / "features").exists() == (cache == "store")


def agcd(*arguments: str | Path) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output + repr(done.exception)
    return done.stdout


def fill_in(sheet: Path) -> None:
    """Answer every question of a sheet with the true class."""
    with sheet.open(newline="") as file:
        lines = list(csv.DictReader(file))
    for line in lines:
        line["label"] = truth(line["path"])
    with sheet.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``project``, trained twice by commands alone, ``new`` images and an export ``out``."""
    folder = tmp_path_factory.mktemp("trained")
    project, sheet, settings = folder / "project", folder / "questions.csv", vit_settings(folder)
    given = [f"{section}.{key}={value}" for section, values in settings.items() for key, value in values.items()]
    # Random weights tell classes apart so poorly that labels spread to the wrong ones: learn as the paper does.
    options = [part for setting in ["protocol=short", *given] for part in ("--set", setting)]
    agcd("init", project, "--images", partly_labelled(folder), "--classes", "5", *options)
    assert "round 0 is trained on 9 labels of 3 classes" in agcd("train", project)
    assert "6 lines" in agcd("query", project, "-n", "6", "--out", sheet)
    fill_in(sheet)
    assert "stored: 6 label" in agcd("label", project, "--from", sheet)
    assert "round 1 is trained on 15 labels" in agcd("train", project)
    agcd("export", project, "--out", folder / "out", *(["--onnx"] if has_onnx() else []))
    toy_images(folder / "new", n_classes=5, n_per_class=3, seed=1)
    return folder


def predicted(folder: Path) -> tuple[list[Path], list[str], list[float]]:
    """New images, and the class and probability that ``agcd predict`` says."""
    lines = list(csv.DictReader(agcd("predict", folder / "project", folder / "new").splitlines()))
    return (
        [folder / "new" / line["path"] for line in lines],
        [line["class"] for line in lines],
        [float(line["probability"]) for line in lines],
    )


def test_the_exported_classifier_names_new_images_as_the_project_does(trained: Path) -> None:
    paths, names, probabilities = predicted(trained)
    classifier = load_classifier(trained / "out", weights=trained / "vit.safetensors")
    views = torch.from_numpy(np.stack([preprocess(path, classifier.image_size) for path in paths]))
    found = classifier(views)
    assert len(paths) == 15
    assert len(set(names)) > 1, "the images must not all look alike"
    assert [classifier.slots[slot].name for slot in found.argmax(1).tolist()] == names
    np.testing.assert_allclose(found.amax(1).numpy(), probabilities, atol=1e-4)


def test_the_onnx_file_names_new_images_as_the_project_does(trained: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    if not has_onnx():
        pytest.skip("agcd[onnx] is not installed")
    paths, names, probabilities = predicted(trained)
    session = onnxruntime.InferenceSession(trained / "out" / "model.onnx", providers=["CPUExecutionProvider"])
    images = np.stack([preprocess(path, SIZE) for path in paths])
    found, classes = session.run(["probabilities", "class"], {"image": images})
    assert classes.tolist() == names
    np.testing.assert_allclose(found.max(1), probabilities, atol=1e-4)
