"""Classes are renamed, merged and retired on the command line, and each change can be taken back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agcd import cli
from agcd.app.answers import Answer, merge_classes, rename_class, retire_class, undo, write_answers
from agcd.app.project import Project
from agcd.app.status import status_of
from agcd.errors import DataError
from support.projects import make_project


def run(*arguments: object) -> None:
    cli.app([str(argument) for argument in arguments], standalone_mode=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with make_project(tmp_path) as project:
        write_answers(project, [Answer(30, "kite"), Answer(31, "hawk"), Answer(32, "hawk")])
        return project.folder


def label_counts(folder: Path) -> dict[str, int]:
    with Project.open(folder) as project:
        return {found.name: found.n_labels for found in status_of(project).classes}


def test_changes_of_classes_hold_and_are_undone_one_by_one(folder: Path, capsys: Any) -> None:
    run("rename", folder, "kite", "red kite")
    run("merge", folder, "hawk", "Red Kite")
    assert label_counts(folder)["red kite"] == 3
    assert "hawk" not in label_counts(folder)
    run("undo", folder)
    assert label_counts(folder)["hawk"] == 2
    run("undo", folder)
    assert label_counts(folder)["kite"] == 1
    printed = capsys.readouterr().out
    assert "hawk now counts as red kite" in printed
    assert "undone: 1 merge by me" in printed


def test_a_retired_class_takes_no_more_labels(folder: Path) -> None:
    run("retire", folder, "hawk")
    with Project.open(folder) as project:
        with pytest.raises(DataError, match="retired"):
            write_answers(project, [Answer(33, "hawk")])
        undo(project)
        write_answers(project, [Answer(33, "hawk")])
    assert label_counts(folder)["hawk"] == 3


def test_changes_that_make_no_sense_are_one_sentence(folder: Path) -> None:
    with pytest.raises(DataError, match="no class called 'crow'"):
        run("rename", folder, "crow", "raven")
    with pytest.raises(DataError, match="two classes called"):
        run("rename", folder, "kite", "HAWK")
    with pytest.raises(DataError, match="merged into itself"):
        run("merge", folder, "kite", "kite")
    with pytest.raises(DataError, match="an answer of its own"):
        run("rename", folder, "kite", "junk")


def test_a_change_of_a_class_that_is_gone_is_refused(folder: Path) -> None:
    with Project.open(folder) as project:
        kite, hawk = (project.labels().registry.find(name) for name in ("kite", "hawk"))
        assert kite is not None
        assert hawk is not None
        assert merge_classes(project, kite.id, hawk.id, "ann", uid="merge-once")
        assert not merge_classes(project, kite.id, hawk.id, "ann", uid="merge-once")
        with pytest.raises(DataError, match="merged into another"):
            rename_class(project, kite.id, "x", "ann")
        with pytest.raises(DataError, match="merged into another"):
            retire_class(project, kite.id, "ann")
        with pytest.raises(DataError, match="no class with id"):
            retire_class(project, "0" * 32, "ann")
        with pytest.raises(DataError, match="no class with id"):
            merge_classes(project, hawk.id, "0" * 32, "ann")
