"""The project's commands as a user meets them: the loop by CSV, and every mistake is one sentence."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from agcd.app.model import train
from agcd.app.project import Project
from agcd.cli import app, main
from support.projects import make_project, partly_labelled, truth

FAST = [
    *("--set", "backbone.name=toy", "--set", "backbone.image_size=32", "--set", "backbone.views=2"),
    *("--set", "train.base_epochs=1", "--set", "train.round_epochs=1", "--set", "train.projector_width=16"),
]


def run(*arguments: str | Path) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output + repr(done.exception)
    return done.stdout


def refused(capsys: Any, monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> str:
    """The one sentence on the error stream of a command that must fail with exit code 2."""
    monkeypatch.setattr(sys, "argv", ["agcd", *map(str, arguments)])
    capsys.readouterr()
    with pytest.raises(SystemExit) as stopped:
        main()
    out, err = capsys.readouterr()
    assert stopped.value.code == 2
    assert out == ""
    assert err.startswith("error: ")
    assert len(err.strip().splitlines()) == 1
    return str(err)


def test_the_loop_by_csv(tmp_path: Path) -> None:
    folder, images, sheet = tmp_path / "birds", partly_labelled(tmp_path), tmp_path / "questions.csv"
    said = run("init", folder, "--images", images, "--classes", "5", *FAST)
    assert "50 images: 9 labelled, 41 unlabelled" in said
    assert f"agcd train {folder}" in said
    assert "round 0 is trained on 9 labels of 3 classes" in run("train", folder)
    assert "6 lines" in run("query", folder, "-n", "6", "--out", sheet)
    with sheet.open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == ["row", "path", "why", "label"]
    for line in lines[:4]:
        line["label"] = truth(line["path"])
    lines[4]["label"] = "skip"
    with sheet.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    assert "4 label, 1 skip" in run("label", folder, "--from", sheet, "--who", "ann")
    assert "nothing new; 5 known already" in run("label", folder, "--from", sheet, "--who", "ann")
    status = run("status", folder)
    assert "9 from the start, 4 answered; 1 passed, 0 junk" in status
    assert "1 question" in status
    assert "round 1 is trained on 13 labels" in run("train", folder)
    assert "up to date" in run("train", folder)
    predicted = run("predict", folder, images / "green-square")
    assert predicted.splitlines()[0] == "path,class,known,by,probability,margin,slot,problem"
    assert len(predicted.splitlines()) == 4
    assert "predictions.csv" in run("export", folder, "--out", tmp_path / "out")
    assert "undone: 4 labels, 1 skip by ann" in run("undo", folder)
    assert "0 answered; 0 passed" in run("status", folder)


def test_answers_may_name_paths_instead_of_rows(tmp_path: Path) -> None:
    make_project(tmp_path).close()
    sheet = tmp_path / "answers.csv"
    sheet.write_text("label,path\njunk,unlabelled/red-circle-00.png\nkite,unlabelled/red-circle-01.png\n")
    assert "new classes: kite" in run("label", tmp_path / "project", "--from", sheet)


def test_exported_cells_cannot_run_as_formulas(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        train(project)
        sheet = tmp_path / "answers.csv"
        sheet.write_text('path,label\nunlabelled/red-circle-00.png,"=cmd|calc"\n')
    run("label", tmp_path / "project", "--from", sheet)
    run("export", tmp_path / "project", "--out", tmp_path / "out")
    for name in ("labels.csv", "predictions.csv"):
        with (tmp_path / "out" / name).open(newline="") as file:
            assert "'=cmd|calc" in {line["class"] for line in csv.DictReader(file)}


INIT_MISTAKES: dict[str, tuple[list[str], str]] = {
    "missing folder": (["--images", "gone"], "There is nothing at"),
    "empty folder": (["--images", "empty"], "holds no usable image"),
    "embeddings": (["--images", "x.npz"], "needs images"),
    "too few classes": (["--images", "images", "--classes", "2"], "less than the 3 classes"),
    "no classes at all": (["--images", "images", "--classes", "0"], "n_slots"),
    "more classes than images": (["--images", "images", "--classes", "99"], "too few for 99"),
    "unknown setting": (["--images", "images", "--set", "train.base_epoch=3"], "Did you mean 'base_epochs'"),
    "unknown strategy": (["--images", "images", "--set", "query.strategy=margn"], "Did you mean 'margin'"),
    "unknown backbone": (["--images", "images", "--set", "backbone.name=toi"], "Did you mean 'toy'"),
    "missing labels": (["--images", "images", "--labels", "gone.csv"], "cannot be read"),
    "labels of unknown images": (["--images", "images", "--labels", "unknown.csv"], "nowhere.png"),
    "labels given twice": (["--images", "images", "--labels", "twice.csv"], "listed twice"),
    "labels without a path": (["--images", "images", "--labels", "nopath.csv"], "no column 'path'"),
    "a class called skip": (["--images", "images", "--labels", "skip.csv"], "an answer of its own"),
    "names that differ in case": (["--images", "images", "--labels", "case.csv"], "two classes called"),
}


@pytest.mark.parametrize("name", INIT_MISTAKES)
def test_a_mistake_in_init_is_one_sentence_and_nothing_is_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    partly_labelled(tmp_path)
    (tmp_path / "empty").mkdir()
    np.savez(tmp_path / "x.npz", x=np.eye(4), y=np.arange(4))
    green, blue = "green-square/00.png", "blue-triangle/00.png"
    for file, text in {
        "unknown": "path,label\nnowhere.png,a\n",
        "twice": f"path,label\n{green},a\n{green},b\n",
        "nopath": "where,label\na,b\n",
        "skip": f"path,label\n{green},Skip\n",
        "case": f"path,label\n{green},kite\n{blue},Kite\n",
    }.items():
        (tmp_path / f"{file}.csv").write_text(text)
    arguments, piece = INIT_MISTAKES[name]
    before = sorted(tmp_path.rglob("*"))
    assert piece in refused(capsys, monkeypatch, "init", "project", *FAST, *arguments)
    assert sorted(tmp_path.rglob("*")) == before


LABEL_MISTAKES = {
    "no label column": ("row,answer\n9,cat\n", "no column 'label'"),
    "neither row nor path": ("label\ncat\n", "is not in this project"),
    "unknown path": ("path,label\nnowhere.png,cat\n", "nowhere.png"),
    "row out of range": ("row,label\n50,cat\n", "from 0 to 49"),
    "negative row": ("row,label\n-1,cat\n", "from 0 to 49"),
    "row that is no number": ("row,label\nsix,cat\n", "'six'"),
    "row of another path": ("row,path,label\n9,green-square/00.png,cat\n", "not 'green-square/00.png'"),
    "two answers to one question": ("row,label\n9,cat\n9,dog\n", "answered twice"),
    "control characters": ("row,label\n9,ca\x07t\n", "control characters"),
    "a name too long": (f"row,label\n9,{'x' * 201}\n", "201 characters"),
}


def test_mistakes_in_answers_are_one_sentence_and_nothing_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    make_project(tmp_path).close()
    sheet, folder = tmp_path / "answers.csv", tmp_path / "project"
    for text, piece in LABEL_MISTAKES.values():
        sheet.write_text(text)
        assert piece in refused(capsys, monkeypatch, "label", folder, "--from", sheet)
    sheet.write_text("row,label\n9,cat\n")
    assert "name of a person" in refused(capsys, monkeypatch, "label", folder, "--from", sheet, "--who", " ")
    assert "cannot be read" in refused(capsys, monkeypatch, "label", folder, "--from", tmp_path / "gone.csv")
    with Project.open(folder) as project:
        assert {event.source for event in project.store.events()} == {"seed"}


def test_commands_out_of_turn_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    sheet, out = tmp_path / "a.csv", tmp_path / "out"
    commands: list[list[str | Path]] = [
        ["train"],
        ["query"],
        ["label", "--from", sheet],
        ["undo"],
        ["status"],
        ["predict", tmp_path],
        ["export", "--out", out],
    ]
    for command, *rest in commands:
        assert "agcd init" in refused(capsys, monkeypatch, command, tmp_path / "nowhere", *rest)
    images = partly_labelled(tmp_path)
    folder = tmp_path / "project"
    run("init", folder, "--images", images, *FAST)
    untrained: list[list[str | Path]] = [["query", "-n", "3"], ["predict", images], ["export", "--out", out]]
    for command, *rest in untrained:
        assert "Nothing is trained yet" in refused(capsys, monkeypatch, command, folder, *rest)
    assert "nothing to undo" in refused(capsys, monkeypatch, "undo", folder)
    assert "a project already" in refused(capsys, monkeypatch, "init", folder, "--images", images, *FAST)
    run("train", folder)
    assert "at least 1" in refused(capsys, monkeypatch, "query", folder, "-n", "0")
    assert "None of the given files is a usable image" in refused(
        capsys, monkeypatch, "predict", folder, tmp_path / "gone.png"
    )
    (folder / "agcd.toml").write_text("n_slots = 6\n")
    assert "where the images are" in refused(capsys, monkeypatch, "status", folder)
    (folder / "agcd.toml").write_text("images = [")
    assert "cannot be read as settings" in refused(capsys, monkeypatch, "status", folder)
    (folder / "agcd.toml").unlink()
    assert "lost its settings" in refused(capsys, monkeypatch, "status", folder)
    assert not out.exists()


@pytest.mark.parametrize("command", ["status", "label", "undo", "rename"])
def test_commands_that_do_not_train_never_load_torch(command: str, tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        train(project)
    sheet = tmp_path / "answers.csv"
    sheet.write_text("path,label\nunlabelled/red-circle-00.png,kite\n")
    run("label", tmp_path / "project", "--from", sheet)
    rest = {"label": ["--from", str(sheet)], "rename": ["kite", "red kite"]}.get(command, [])
    code = (
        "import sys, runpy\nsys.argv = ['agcd', *sys.argv[1:]]\n"
        "try:\n    runpy.run_module('agcd.cli', run_name='__main__')\n"
        "except SystemExit as e:\n    assert not e.code, e.code\n"
        "assert 'torch' not in sys.modules, 'torch was loaded'"
    )
    arguments = [command, str(tmp_path / "project"), *rest]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
