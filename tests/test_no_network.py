"""Nothing is sent anywhere: the whole work of a project opens no connection."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from agcd.app.backup import write_backup
from agcd.app.export.files import export_all
from agcd.app.model import ask, predict, train
from agcd.app.report import write_project_report
from support.projects import answer_all, make_project


def test_a_project_is_made_trained_asked_and_exported_without_any_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Any] = []

    def refuse(*where: Any, **_: Any) -> Any:
        tried.append(where)
        raise OSError("no network here")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with make_project(tmp_path) as project:
        train(project)
        answer_all(project)
        ask(project, 2)
        export_all(project, tmp_path / "out")
        write_project_report(project, tmp_path / "report")
        write_backup(project, tmp_path / "backup.zip")
        predict(project, [tmp_path / "images" / "unlabelled"])
    assert not tried
