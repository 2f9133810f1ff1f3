"""The command line as a user meets it: every mistake is one sentence, exit code 2, and nothing is written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import agcd
from agcd.cli import app, main
from agcd.errors import AgcdError
from agcd.strategies import list_strategies
from support.datasets import toy_images

REPOSITORY = Path(agcd.__file__).parents[2]


def agcd_command(*arguments: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["agcd", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    out, err = capsys.readouterr()
    return int(stopped.value.code or 0), out, err


def bad_inputs(folder: Path) -> dict[str, tuple[list[str], str]]:
    """Every bad input that the documentation promises to refuse: arguments, and a piece of the sentence."""
    (folder / "empty").mkdir()
    toy_images(folder / "one-class", n_classes=1)
    good = toy_images(folder / "good", n_classes=4, n_per_class=6)
    (folder / "unknown.csv").write_text("path,label\nnowhere.jpg,cat\n")
    (folder / "twice.csv").write_text("path,label\na.png,cat\na.png,dog\n")
    (folder / "repeated.csv").write_text("path,label\na.png,cat\na.png,cat\n")
    (folder / "a.png").write_bytes(next(good.rglob("*.png")).read_bytes())
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 4))
    x[3, 1] = np.nan
    np.savez(folder / "nan.npz", x=x, y=np.arange(20) % 4)
    (folder / "weights.safetensors").write_bytes(b"these are no weights")
    toy, weights = ["--data", "toy"], str(folder / "weights.safetensors")
    images = ["--data", str(good), "--set", "backbone.name=vit_small_patch16_224"]
    return {
        "missing folder": (["--data", str(folder / "gone")], "There is nothing at"),
        "empty folder": (["--data", str(folder / "empty")], "holds no usable image"),
        "one class only": (["--data", str(folder / "one-class")], "1 labelled class"),
        "labels of unknown paths": (["--data", str(folder / "unknown.csv")], "nowhere.jpg"),
        "contradictory rows": (["--data", str(folder / "twice.csv")], "a.png"),
        "duplicate rows": (["--data", str(folder / "repeated.csv")], "listed twice"),
        "NaN embeddings": (["--data", str(folder / "nan.npz")], "NaN"),
        "unknown data set": (["--data", "tyo"], "Did you mean 'toy'"),
        "zero budget": ([*toy, "--budget", "0"], "budget"),
        "negative budget": ([*toy, "--budget", "-5"], "budget"),
        "budget larger than the pool": ([*toy, "--budget", "100000"], "the pool has only"),
        "unknown strategy": ([*toy, "--strategies", "margn"], "Did you mean 'margin'"),
        "unknown option": ([*toy, "--set", 'query.options={metrc="msp"}'], "Did you mean 'metric'"),
        "unknown setting": ([*toy, "--set", "train.base_epoch=3"], "Did you mean 'base_epochs'"),
        "unknown protocol": ([*toy, "--protocol", "papr"], "Did you mean 'paper'"),
        "malformed setting": ([*toy, "--set", "train"], "section.key=value"),
        "missing settings file": ([*toy, "--settings", str(folder / "gone.toml")], "gone.toml"),
        "too many old classes": ([*toy, "--n-old", "99"], "n_old is 99"),
        "too few slots": ([*toy, "--set", "n_slots=2"], "n_slots=2 is less than"),
        "missing weights": (images, "weights"),
        "weights that do not fit": ([*images, "--set", f"backbone.weights={weights}"], "weights.safetensors"),
    }


NAMES = [
    *("missing folder", "empty folder", "one class only", "labels of unknown paths", "contradictory rows"),
    *("duplicate rows", "NaN embeddings", "unknown data set", "zero budget", "negative budget"),
    *("budget larger than the pool", "unknown strategy", "unknown option"),
    *("unknown setting", "unknown protocol", "malformed setting", "missing settings file", "too many old classes"),
    *("too few slots", "missing weights", "weights that do not fit"),
]


@pytest.mark.parametrize("name", NAMES)
def test_bad_input_is_one_sentence_exit_code_2_and_nothing_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    cases = bad_inputs(tmp_path)
    assert set(cases) == set(NAMES)
    arguments, piece = cases[name]
    out = tmp_path / "out"
    defaults = ["--out", str(out), "--cache", str(tmp_path / "cache"), "--seeds", "1", "--rounds", "1", "--jobs", "1"]
    strategies = [] if "--strategies" in arguments else ["--strategies", "adaptive_novel"]
    code, _, err = agcd_command("bench", *defaults, *strategies, *arguments, monkeypatch=monkeypatch, capsys=capsys)
    assert code == 2, err
    assert piece in err
    assert err.startswith("error: ")
    assert len(err.strip().splitlines()) == 1
    assert not out.exists()


def test_bench_prints_the_table_it_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGCD_CACHE", str(tmp_path / "cache"))
    settings = tmp_path / "fast.toml"
    settings.write_text("[train]\nbase_epochs = 2\nround_epochs = 1\nprojector_width = 16\n")
    arguments = ["bench", "--data", "toy", "--strategies", "none,margin", "--out", "out", "--seeds", "1"]
    done = CliRunner().invoke(app, [*arguments, "--rounds", "1", "--budget", "3", "--settings", str(settings)])
    assert done.exit_code == 0, done.output
    assert "| margin | 3 |" in done.stdout
    assert (tmp_path / "out" / "results.md").read_text() in done.stdout


def test_strategies_lists_every_strategy_with_its_first_line() -> None:
    lines = CliRunner().invoke(app, ["strategies"]).stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(list_strategies())
    assert all(len(line.split()) > 3 for line in lines)


def test_version_and_data_answer() -> None:
    assert CliRunner().invoke(app, ["version"]).stdout.strip() == agcd.__version__
    assert "groceries14" in CliRunner().invoke(app, ["data"]).stdout


def test_our_own_mistakes_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agcd.cli.app", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main()


def test_an_interrupt_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("agcd.cli.app", interrupted)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 130
    assert "run the same command again" in capsys.readouterr().err


def test_every_command_is_documented_in_the_readme() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    for command in app.registered_commands:
        assert command.callback is not None
        name = command.name or command.callback.__name__
        assert f"agcd {name}" in readme, f"README.md does not mention 'agcd {name}'"


def test_every_error_class_is_a_user_error() -> None:
    from agcd import errors

    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, Exception)]
    assert all(issubclass(c, AgcdError) for c in classes)


def test_the_module_runs_as_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "agcd.cli", "version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == agcd.__version__
