"""``agcd doctor``, ``agcd --version`` and completion: what a user asks before anything works."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from typer.testing import CliRunner, Result

from agcd import __version__
from agcd.cli import app
from agcd.engine import doctor


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def states(*words: str) -> tuple[int, dict[str, list[dict[str, str]]]]:
    """The exit code and what was found, by what was looked at."""
    done = run("doctor", "--json", *words)
    facts = json.loads(done.stdout)
    assert facts["ok"] == (done.exit_code == 0)
    found: dict[str, list[Any]] = {}
    for finding in facts["findings"]:
        found.setdefault(finding["what"], []).append(finding)
    return done.exit_code, found


def test_a_whole_installation_is_well_and_says_what_it_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGCD_WEIGHTS", str(tmp_path))
    code, found = states()
    assert code == 0
    assert found["agcd"][0]["words"].startswith(f"{__version__}, the whole")
    assert {"python", "packages", "extras", "device", "threads", "memory", "weights", "cache", "folder"} <= set(found)
    assert "numpy" in found["packages"][0]["words"]
    lines = run("doctor").stdout.splitlines()
    assert len(lines) == sum(map(len, found.values())) + 1, "a line each, and what the marks mean"


def test_what_is_missing_is_named_and_the_exit_code_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGCD_WEIGHTS", str(tmp_path))
    monkeypatch.setattr(doctor, "requires", lambda name: ["numpy>=1", "not-there-at-all>=2", "x; extra == 'y'"])
    code, found = states()
    assert code == 1
    assert [finding["state"] for finding in found["packages"]] == ["ok", "missing"]
    assert found["packages"][1]["words"].startswith("not-there-at-all: pip install")


def test_weights_that_have_gone_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGCD_WEIGHTS", str(tmp_path))
    (tmp_path / "weights.json").write_text("{")
    code, found = states()
    assert code == 1
    assert "weights.json is damaged" in found["weights"][-1]["words"]


def test_without_torch_it_is_an_installation_for_labelling(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGCD_WEIGHTS", str(tmp_path))
    monkeypatch.setitem(sys.modules, "torch", None)
    code, found = states()
    assert code == 0
    assert "for labelling alone" in found["agcd"][0]["words"]
    assert "weights" not in found
    assert found["device"][0]["state"] == "ok"


def test_gpus_are_told_by_name_and_nccl_by_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    card = SimpleNamespace(name="NVIDIA A100", total_memory=85e9)
    cards = [card, card, SimpleNamespace(name="Tesla T4", total_memory=16e9)]
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda i: cards[i])
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: True)
    monkeypatch.setattr(torch.cuda.nccl, "version", lambda: (2, 27, 3))
    device, nccl = doctor._device()
    assert device.state == "ok"
    assert device.words.startswith("3 of cuda (2 × NVIDIA A100, 85.0 GB, 1 × Tesla T4, 16.0 GB)")
    assert (nccl.what, nccl.state) == ("nccl", "ok")
    assert nccl.words.startswith("2.27.3: ")
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: False)
    *_, nccl = doctor._device()
    assert (nccl.state, nccl.words.partition(":")[0]) == ("slow", "not in this torch")


def test_a_torch_for_gpus_that_finds_none_says_where_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    words = [finding.words for finding in doctor._device()]
    assert any("made for CUDA 12.8 and finds no GPU" in line for line in words)


@pytest.mark.parametrize("words", [["--version"], ["version"]])
def test_the_version_is_told_either_way(words: list[str]) -> None:
    assert run(*words).stdout == f"{__version__}\n"


def test_a_shell_can_complete_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_AGCD_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "agcd weights ")
    monkeypatch.setenv("COMP_CWORD", "2")
    done = CliRunner().invoke(app, [], prog_name="agcd")
    assert done.stdout.split() == ["list", "add", "check", "remove", "get"]
