"""``agcd demo``: after the report it leaves a project to go on with by hand, where there is something to see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from agcd.app.project import Project
from agcd.app.status import status_of
from agcd.cli import app
from agcd.errors import AgcdError
from agcd.lab import demo
from agcd.lab.cells import Cell
from agcd.lab.datasets import load_data
from support.benches import SMALL, toy_folder


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("has_images", [True, False])
def test_the_demo_ends_in_a_project_of_the_same_images(
    has_images: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, run = str(toy_folder(tmp_path / "images")) if has_images else "toy", demo.run_demo

    def small(out: Path, seed: int, wanted: str | None, *, classes: list[str], console: Console) -> Any:
        assert (wanted, classes) == (None, [])
        return run(out, seed, data, SMALL, console=console)

    monkeypatch.setattr(demo, "run_demo", small)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["demo", "--out", "out"])
    assert done.exit_code == 0, done.output + repr(done.exception)
    assert "Report: out/report.html" in done.stdout
    assert ("serve out/images" in done.stdout) is has_images
    if has_images:
        with Project.open(tmp_path / "out" / "images") as project:
            assert project.n_finished == 1
            assert any(line.startswith("1 round") or "question" in line for line in status_of(project).lines())


def test_with_texts_the_demo_is_about_the_packaged_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str | None] = []

    def none(out: Path, seed: int, wanted: str | None, *, classes: list[str], console: Console) -> demo.Demo:
        asked.append(wanted)
        return demo.Demo(out / "report.html", Cell("toy", "random", seed), load_data("toy", out))

    monkeypatch.setattr(demo, "run_demo", none)
    done = CliRunner().invoke(app, ["demo", "--texts", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert asked == ["banking20"]


@pytest.mark.usefixtures("in_this_process")
def test_the_demo_runs_on_some_classes_of_data_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, run = str(toy_folder(tmp_path / "images")), demo.run_demo
    wanted = sorted(path.name for path in Path(folder, "train").iterdir())[:4]

    def small(out: Path, seed: int, data: str | None, *, classes: list[str], console: Console) -> demo.Demo:
        return run(out, seed, data, SMALL, classes=classes, console=console)

    monkeypatch.setattr(demo, "run_demo", small)
    asked = ["demo", "--data", folder, "--classes", ", ".join(wanted), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output + repr(done.exception)
    assert "Data: images." in done.stdout
    found = " ".join(done.stdout.split())
    assert "6 questions found 2 of 2 hidden classes" in found or "6 questions found 1 of 2 hidden classes" in found
    assert "serve" not in done.stdout, "the folder holds more than what was looked at"
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert f"agcd demo --data {folder} --classes {','.join(wanted)} --seed 0" in page


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--data", "toy", "--texts"], "give it or --data"),
        (["--data", "toy", "--classes", "blob1,blob22"], "toy has no class 'blob22'. Did you mean 'blob2'?"),
    ],
)
def test_what_the_demo_cannot_do_is_said(arguments: list[str], why: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["demo", *arguments, "--out", str(tmp_path)])
    assert isinstance(done.exception, AgcdError)
    assert why in str(done.exception)
