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

    def small(out: Path, seed: int, wanted: str | None, *, console: Console) -> Any:
        assert wanted is None
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

    def none(out: Path, seed: int, wanted: str | None, *, console: Console) -> demo.Demo:
        asked.append(wanted)
        return demo.Demo(out / "report.html", Cell("toy", "random", seed), load_data("toy", out))

    monkeypatch.setattr(demo, "run_demo", none)
    done = CliRunner().invoke(app, ["demo", "--texts", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert asked == ["banking20"]
