"""The command line as a user meets it: every mistake is one sentence, exit code 2, and nothing is written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import agcd
from agcd.cli import app, bench, main
from agcd.errors import AgcdError
from agcd.strategies import list_strategies
from support.commands import command_names
from support.datasets import toy_images
from support.projects import make_project

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
    code, _, err = agcd_command(
        "bench", "run", *defaults, *strategies, *arguments, monkeypatch=monkeypatch, capsys=capsys
    )
    assert code == 2, err
    assert piece in err
    assert err.startswith("error: ")
    assert len(err.strip().splitlines()) == 1
    assert not out.exists()


@pytest.mark.usefixtures("in_this_process")
def test_bench_prints_the_table_it_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGCD_CACHE", str(tmp_path / "cache"))
    settings = tmp_path / "fast.toml"
    settings.write_text("[train]\nbase_epochs = 2\nround_epochs = 1\nprojector_width = 16\n")
    arguments = ["bench", "run", "--data", "toy", "--strategies", "none,margin", "--out", "out", "--seeds", "1"]
    done = CliRunner().invoke(app, [*arguments, "--rounds", "1", "--budget", "3", "--settings", str(settings)])
    assert done.exit_code == 0, done.output
    assert "| margin | 3 |" in done.stdout
    assert (tmp_path / "out" / "results.md").read_text() in done.stdout


@pytest.mark.usefixtures("in_this_process")
def test_bench_accuracy_prints_its_tables(tmp_path: Path) -> None:
    places = ["--cache", str(tmp_path), "--out", str(tmp_path / "curves.png")]
    done = CliRunner().invoke(app, ["bench", "accuracy", "--data", "toy", "--projects", "1", "--jobs", "1", *places])
    assert done.exit_code == 0, done.output
    assert "| toy | 50 | 1 |" in done.stdout
    assert (tmp_path / "curves.png").exists()


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
    names = list(command_names(app, "agcd"))
    assert {"agcd init", "agcd bench run", "agcd bench beyond", "agcd data check"} <= set(names)
    for name in names:
        assert name in readme, f"README.md does not mention '{name}'"


OLD_SPELLINGS = {
    "a grid": (["--data", "toy", "--strategies", "none"], "run", ["--data", "toy", "--strategies", "none"]),
    "a value called as a command": (["--out=o", "--data", "run"], "run", ["--out=o", "--data", "run"]),
    "beyond after an option": (["--data", "toy", "beyond", "--out", "o"], "beyond", ["--data", "toy", "--out", "o"]),
    "beyond at the end": (["--out", "beyond", "beyond"], "beyond", ["--out", "beyond"]),
}


@pytest.mark.parametrize("name", OLD_SPELLINGS)
def test_old_spellings_of_bench_go_on_working_with_a_hint(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    old, command, rest = OLD_SPELLINGS[name]
    assert spelled(old) == (command, rest)
    hint = f"note: this is now written agcd bench {command} …; the old spelling still works\n"
    assert capsys.readouterr().err == hint
    assert spelled([command, *rest]) == (command, rest)
    assert capsys.readouterr().err == ""


def spelled(arguments: list[str]) -> tuple[str, list[str]]:
    """The subcommand of ``agcd bench`` that these arguments mean, and what it is given."""
    group = typer.main.get_command(bench.app)
    context = group.make_context("agcd bench", list(arguments), resilient_parsing=True)
    return context._protected_args[0], context.args


def test_a_mistyped_benchmark_is_told_and_not_taken_for_an_old_spelling(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = agcd_command("bench", "beynd", "--data", "toy", monkeypatch=monkeypatch, capsys=capsys)
    assert code == 2
    assert "beynd" in err
    assert "note:" not in err


@pytest.mark.usefixtures("in_this_process")
def test_the_old_spelling_of_a_grid_runs_it(tmp_path: Path) -> None:
    places = ["--out", str(tmp_path / "out"), "--cache", str(tmp_path / "cache"), "--jobs", "1"]
    settings = ["--set", "train.base_epochs=1", "--set", "train.projector_width=16"]
    old = ["bench", "--data", "toy", "--strategies", "none", "--seeds", "1", *places, *settings]
    done = CliRunner().invoke(app, old)
    assert done.exit_code == 0, done.output
    assert "note: this is now written" in done.stderr
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "runs").rglob("*")}
    again = CliRunner().invoke(app, ["bench", "run", *old[1:]])
    assert again.stdout.endswith(done.stdout[done.stdout.index("**toy**") :])
    assert again.stderr == ""
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "runs").rglob("*")} == stamps


@pytest.mark.parametrize("more", [["--nodes", "2"], ["--rendezvous", "here:29500"]])
def test_machines_that_train_together_need_torchrun(
    more: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_project(tmp_path).close()
    code, _, err = agcd_command("train", str(tmp_path / "project"), *more, monkeypatch=monkeypatch, capsys=capsys)
    assert (code, err) == (2, "error: --nodes and --rendezvous are for the engine torchrun, not for local.\n")
    torchrun = ["--engine", "torchrun", "--nodes", "2"]
    code, _, err = agcd_command("train", str(tmp_path / "project"), *torchrun, monkeypatch=monkeypatch, capsys=capsys)
    assert (code, err) == (2, "error: 2 machines need an address where they find each other: --rendezvous HOST:PORT.\n")


@pytest.mark.parametrize(
    "words", ["bench run --strategies none", "bench beyond --seeds 1", "paper table main --seeds 1 --quick"]
)
def test_sweeps_take_machines_and_gpus_as_well(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = f"{words} --data toy --out {tmp_path / 'out'} --cache {tmp_path / 'cache'} --engine torchrun"
    for more, sentence in ((["--nodes", "2"], "2 machines need an address"), (["--gpus", "1"], "--gpus is for the")):
        code, _, err = agcd_command(*words.split(), *more, monkeypatch=monkeypatch, capsys=capsys)
        assert code == 2
        assert f"error: {sentence}" in err


def test_whoever_joins_says_where(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = agcd_command("join", "node1", monkeypatch=monkeypatch, capsys=capsys)
    assert (code, err) == (2, "error: The address where machines find each other is HOST:PORT, not 'node1'.\n")


def test_every_error_class_is_a_user_error() -> None:
    from agcd import errors

    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, Exception)]
    assert all(issubclass(c, AgcdError) for c in classes)


def test_the_module_runs_as_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "agcd.cli", "version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == agcd.__version__


@pytest.mark.parametrize("arguments", [["--help"], ["bench", "--help"], ["train", "--help"], ["version"]])
def test_help_waits_for_no_heavy_library(arguments: list[str]) -> None:
    code = (
        "import sys, runpy; sys.argv[0] = 'agcd'\n"
        "try:\n    runpy.run_module('agcd.cli', run_name='__main__')\n"
        "except SystemExit as stopped:\n    assert not stopped.code\n"
        "heavy = {'torch', 'fastapi', 'sklearn', 'matplotlib', 'pyarrow'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
