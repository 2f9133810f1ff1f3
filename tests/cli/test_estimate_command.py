"""``agcd estimate``: sizes from numbers, data and projects, on a machine that was measured before."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agcd.app.sizing import sized, with_labels
from agcd.cli import main
from agcd.data.sources import load_dataset
from agcd.engine.costs import Embedding, Machine
from agcd.errors import ConfigError
from support.datasets import toy_images
from support.machines import MACHINE
from support.projects import make_project

TOY = {"backbone": {"name": "toy", "image_size": 32}}


def agcd_estimate(monkeypatch: pytest.MonkeyPatch, capsys: Any, *arguments: object) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["agcd", "estimate", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0), *capsys.readouterr()


def test_sizes_come_from_numbers_data_or_a_project(tmp_path: Path) -> None:
    assumed = sized(None, 1000, None, {}, load_dataset).size
    assert (assumed.n_train, assumed.n_slots, assumed.n_labelled) == (1000, 100, 100)
    folder = sized(str(toy_images(tmp_path / "images", n_classes=3, n_per_class=4)), None, None, TOY, load_dataset)
    assert (folder.size.n_train, folder.size.n_slots, folder.size.n_labelled, folder.dim) == (12, 3, 12, None)
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(0).normal(size=(20, 4)), y=np.arange(20) % 4)
    assert sized(str(tmp_path / "x.npz"), None, None, {}, load_dataset).dim == 4
    with make_project(tmp_path / "project") as project:
        of_project = sized(str(project.folder), None, None, {}, load_dataset)
        assert of_project.config == project.config
        assert of_project.size.n_train + of_project.size.n_test == len(project.keys)
        assert of_project.size.n_slots == 5
        with pytest.raises(ConfigError, match="has its own settings"):
            sized(str(project.folder), None, None, TOY, load_dataset)
    few = sized(None, 1000, 7, {}, load_dataset)
    assert with_labels(few, 5000).size.n_labelled == 1000
    assert with_labels(few, None) == few


@pytest.mark.parametrize("arguments", [[], ["data", "--images", "10"]])
def test_either_data_or_a_number_is_needed(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = agcd_estimate(monkeypatch, capsys, *arguments)
    assert code == 2
    assert err == "error: Give either a data set or --images, the number of images.\n"


def test_a_table_or_json_of_costs_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("agcd.engine.machine.this_machine", lambda *_, **__: MACHINE)
    code, out, _ = agcd_estimate(monkeypatch, capsys, "--images", 5000, "--classes", 20, "--cache", tmp_path)
    assert code == 0
    assert "as set" in out
    assert "disk" in out
    code, out, _ = agcd_estimate(monkeypatch, capsys, "--images", 5000, "--classes", 20, "--json", "--cache", tmp_path)
    found = json.loads(out)
    assert found["disk_bytes"] > 0
    assert found["what_if"]


def test_texts_tell_how_fast_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = replace(MACHINE, extraction=None, pooled=None, embedding=Embedding(1.0, 0.002, 1e-5), neighbour_s=1e-9)
    asked: list[dict[str, Any]] = []

    def known(*_: object, **how: Any) -> Machine:
        asked.append(how)
        return machine

    monkeypatch.setattr("agcd.engine.machine.this_machine", known)
    (tmp_path / "mail.csv").write_text("text,label\nhello there,a\ngood bye all,b\n", encoding="utf-8")
    for what in (("--texts", 5000), (f"mail={tmp_path / 'mail.csv'}",)):
        code, out, err = agcd_estimate(monkeypatch, capsys, *what, "--cache", tmp_path)
        assert (code, err) == (0, "")
        assert "first question" in out
        assert "texts of" in out
    assert [how["has_texts"] for how in asked] == [True, True]
    _, out, _ = agcd_estimate(monkeypatch, capsys, "--texts", 5000, "--json", "--cache", tmp_path)
    assert json.loads(out)["texts_per_s"] == pytest.approx(1 / 0.003)
    assert json.loads(out)["extraction_s"] == pytest.approx(16.0)


def test_images_and_texts_at_once_are_refused(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    code, _, err = agcd_estimate(monkeypatch, capsys, "--images", 10, "--texts", 10)
    assert (code, err) == (2, "error: Give either --images or --texts, not both.\n")
