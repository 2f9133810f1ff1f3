"""A project with each trainer: what a person does with it must not depend on how it is trained."""

from __future__ import annotations

from pathlib import Path

import pytest

from agcd.app.export.classifier import load_classifier
from agcd.app.export.files import export_all
from agcd.app.model import predict, train
from agcd.app.project import Project
from agcd.app.report import write_project_report
from agcd.training import TRAINERS
from support.projects import SETTINGS, answer_all, make_project

QUICK = {"pim": {"steps": 20, "round_steps": 10, "search_steps": 10}}


@pytest.mark.parametrize("trainer", sorted(TRAINERS))
def test_a_project_trains_asks_reopens_predicts_and_exports(trainer: str, tmp_path: Path) -> None:
    settings = SETTINGS | {"train": {**SETTINGS["train"], "trainer": trainer, **QUICK}}
    with make_project(tmp_path, settings) as project:
        train(project)
        answer_all(project)
        assert train(project).round == 1
    with Project.open(tmp_path / "project") as again:
        answer_all(again)
        train(again)
        new = sorted((tmp_path / "images" / "unlabelled").iterdir())[:4]
        named = predict(again, new)
        export_all(again, tmp_path / "out")
        write_project_report(again, tmp_path / "report")
    classifier = load_classifier(tmp_path / "out")
    assert len(classifier.slots) == 5
    assert [str(name) for name in named["path"]] == [str(path) for path in new]
    assert (tmp_path / "report" / "report.html").exists()
