"""Results never outlive the code they came from: what is edited counts, what is not edited is reused."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import types
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

from agcd.engine.job_files import read_job, write_job
from agcd.errors import EngineError
from agcd.lab.cells import Cell, cell_dir
from agcd.provenance import source_digest
from agcd.session import Session, run_key
from agcd.strategies import strategy_code
from agcd.training import trainer_code
from agcd.training.process_group import SINGLE_PROCESS
from support.blobs import fast_config, make_blobs, make_session
from support.outside import FIRST, LAST, STRATEGY, TRAINER, new_process, write
from support.training_jobs import job


@pytest.fixture(autouse=True)
def no_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python takes a .pyc for that of a file which was edited in the same second to the same length."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


def code(folder: Path, name: str = "mine:pick") -> str | None:
    with new_process(folder):
        return strategy_code(name)


def test_code_of_agcd_has_no_digest_however_it_is_named() -> None:
    assert strategy_code("widest_reach") is None
    assert strategy_code("agcd.strategies.reach:widest_reach") is None
    assert trainer_code("simgcd") is None
    assert trainer_code("agcd.training.simgcd:SimGCD") is None


def test_a_file_that_is_not_edited_has_the_same_digest_wherever_it_lies(tmp_path: Path) -> None:
    for place in ("here", "there"):
        write(tmp_path / place, {"mine": STRATEGY.format(helper="helper"), "helper": FIRST})
    found = code(tmp_path / "here")
    assert found is not None
    assert code(tmp_path / "here") == found == code(tmp_path / "there")


Edit = Callable[[Path], None]
EDITS: dict[str, tuple[dict[str, str], str, Edit]] = {
    "the function": (
        {"mine": STRATEGY.format(helper="helper"), "helper": FIRST},
        "mine:pick",
        lambda folder: write(folder, {"mine": STRATEGY.format(helper="helper").replace("[:budget]", "[-budget:]")}),
    ),
    "a helper in the same folder": (
        {"mine": STRATEGY.format(helper="helper"), "helper": FIRST},
        "mine:pick",
        lambda folder: write(folder, {"helper": LAST}),
    ),
    "a helper in the same package": (
        {"pack/mine": STRATEGY.format(helper=".sub.helper"), "pack/sub/helper": FIRST},
        "pack.mine:pick",
        lambda folder: write(folder, {"pack/sub/helper": LAST}),
    ),
    "a helper of a helper, imported inside a function": (
        {
            "pack/__init__": "",
            "pack/mine": STRATEGY.format(helper="pack.near"),
            "pack/near": "def ordered(rows):\n    from . import far\n    return far.ordered(rows)\n",
            "pack/far": FIRST,
        },
        "pack.mine:pick",
        lambda folder: write(folder, {"pack/far": LAST}),
    ),
    "what the package does when it is imported": (
        {"pack/__init__": "", "pack/mine": STRATEGY.format(helper="helper"), "helper": FIRST},
        "pack.mine:pick",
        lambda folder: write(folder, {"pack/__init__": "import helper\nhelper.ordered = sorted\n"}),
    ),
    "what a name stands for": (
        {"mine": "from helper import ordered as pick\n", "helper": FIRST},
        "mine:pick",
        lambda folder: write(folder, {"mine": "import functools, helper\npick = functools.partial(helper.ordered)\n"}),
    ),
}


@pytest.mark.parametrize("what", EDITS)
def test_an_edit_of_what_runs_makes_a_new_digest(what: str, tmp_path: Path) -> None:
    sources, name, edit = EDITS[what]
    write(tmp_path, sources)
    before = code(tmp_path, name)
    assert code(tmp_path, name) == before
    edit(tmp_path)
    assert code(tmp_path, name) != before


def test_what_is_not_imported_and_what_is_installed_beside_it_do_not_count(tmp_path: Path) -> None:
    write(tmp_path, {"pack/mine": STRATEGY.format(helper="helper"), "helper": FIRST, "other": ""})
    before = code(tmp_path, "pack.mine:pick")
    write(tmp_path, {"other": "changed = True\n", "pack/unused": "changed = True\n"})
    assert code(tmp_path, "pack.mine:pick") == before
    (tmp_path / "helper-1.0.dist-info").mkdir()  # a folder of installed packages: each has an author of its own
    before = code(tmp_path, "pack.mine:pick")
    write(tmp_path, {"helper": LAST})
    assert code(tmp_path, "pack.mine:pick") == before


def test_a_neighbour_that_nobody_could_import_counts_by_its_content(tmp_path: Path) -> None:
    guarded = "try:\n    import broken\nexcept SyntaxError:\n    pass\n\n\ndef pick(view, budget, rng): ...\n"
    write(tmp_path, {"mine": guarded, "broken": "def :\n"})
    before = code(tmp_path)
    write(tmp_path, {"broken": "still no Python\n"})
    assert code(tmp_path) != before


def test_a_strategy_may_be_anything_that_can_be_called(tmp_path: Path) -> None:
    kinds = [
        "import numpy\npick = numpy.random.default_rng(0).permutation\n",
        "class Pick:\n    def __call__(self): ...\n",
    ]
    write(tmp_path, {"first": kinds[0], "second": f"{kinds[1]}\n\npick = Pick()\n"})
    for name in ("first:pick", "second:pick", "second:Pick"):
        assert code(tmp_path, name) == code(tmp_path, name) is not None


def test_running_code_is_known_by_its_source_as_it_was_loaded(tmp_path: Path) -> None:
    write(tmp_path, {"mine": STRATEGY.format(helper="helper"), "helper": FIRST})
    with new_process(tmp_path):
        before = strategy_code("mine:pick")
        write(tmp_path, {"helper": LAST})
        assert strategy_code("mine:pick") == before, "the edited helper does not run here"
        importlib.reload(sys.modules["helper"])
        assert strategy_code("mine:pick") != before


def test_code_without_a_file_is_never_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = types.ModuleType("typed")
    exec("def pick(view, budget, rng):\n    return view.rows[:budget]", typed.__dict__)
    monkeypatch.setitem(sys.modules, "typed", typed)
    assert strategy_code("typed:pick") != strategy_code("typed:pick")
    assert source_digest("agcd.io", "typed") is not None


@pytest.mark.parametrize("name", ["mine:pick", "announced"])
def test_an_edited_strategy_asks_anew_and_an_unchanged_one_does_not(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = [EntryPoint("announced", "mine:pick", "agcd.strategies")]
    monkeypatch.setattr("agcd.plugins.entry_points", lambda group: points)
    write(tmp_path, {"mine": STRATEGY.format(helper="helper"), "helper": FIRST})
    blobs, config = make_blobs(), fast_config(query={"strategy": name})
    make_session(blobs, tmp_path / "project", config).train()
    cell = Cell("toy", name, 0)

    def asked() -> tuple[list[int], int, str]:
        with new_process(tmp_path):
            session = make_session(blobs, tmp_path / "project", config)
            session.train()
            rows = session.ask(4).rows.tolist()
            stored = (tmp_path / "project" / "runs" / "001" / "query.json").stat().st_mtime_ns
            return rows, stored, cell_dir(cell, tmp_path).name

    first = asked()
    assert asked() == first
    write(tmp_path, {"helper": LAST})
    again = asked()
    assert again[0] == sorted(again[0], reverse=True) != first[0]
    assert again[2] != first[2]


@pytest.mark.parametrize("name", ["mine:Mine", "announced"])
def test_an_edited_trainer_trains_anew_and_an_unchanged_one_does_not(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = [EntryPoint("announced", "mine:Mine", "agcd.trainers")]
    monkeypatch.setattr("agcd.plugins.entry_points", lambda group: points)
    blobs, config = make_blobs(), fast_config(trainer=name)
    write(tmp_path, {"mine": TRAINER})
    settings = {"train": {"trainer": name}}

    def keys() -> set[str]:
        with new_process(tmp_path):
            runs = {run_key(blobs.features, blobs.labels, config, 6, parent) for parent in (None, "parent")}
            return runs | {
                cell_dir(Cell("toy", strategy, 0, settings), tmp_path).name for strategy in ("none", "random")
            }

    first = keys()
    assert len(first) == 4
    assert keys() == first
    write(tmp_path, {"mine": TRAINER + "    # edited\n"})
    assert not keys() & first


def test_a_trainer_that_was_edited_since_a_job_was_sent_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"mine": TRAINER})
    config = fast_config(trainer="mine:Mine").train
    with new_process(tmp_path):
        write_job(tmp_path / "run" / "torchrun", config, job(make_blobs(), tmp_path / "run"))
    with new_process(tmp_path):
        assert read_job(tmp_path / "run" / "torchrun", SINGLE_PROCESS)[0] == config
    write(tmp_path, {"mine": TRAINER + "    # edited\n"})
    with new_process(tmp_path), pytest.raises(EngineError, match="'mine:Mine' was edited since the command began"):
        read_job(tmp_path / "run" / "torchrun", SINGLE_PROCESS)


def test_a_trainer_from_outside_trains_in_memory_also_without_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = types.ModuleType("typed")
    exec(TRAINER, typed.__dict__)
    monkeypatch.setitem(sys.modules, "typed", typed)
    blobs = make_blobs()
    done = Session(blobs.features, blobs.labels, fast_config(trainer="typed:Mine"), 6).train()
    plain = Session(blobs.features, blobs.labels, fast_config(), 6).train()
    assert done.prediction is not None
    assert plain.prediction is not None
    np.testing.assert_array_equal(done.prediction.probs, plain.prediction.probs)


def test_a_benchmark_of_an_edited_strategy_prints_no_table_of_yesterday(tmp_path: Path) -> None:
    """On the command line, in processes of their own, as in CONTRIBUTING."""
    write(tmp_path, {"mine": STRATEGY.format(helper="helper"), "helper": FIRST})
    quick = ["train.base_epochs=2", "train.round_epochs=1", "train.projector_width=16", "train.projector_dim=8"]
    grid = ["--data", "toy", "--strategies", "mine:pick", "--seeds", "1", "--rounds", "1", "--jobs", "1"]
    places = ["--out", "out", "--cache", "cache", "--budget", "6", *(f"--set={setting}" for setting in quick)]
    found = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]), "PYTHONDONTWRITEBYTECODE": "1"}

    def table() -> tuple[str, set[str]]:
        command = [sys.executable, "-m", "agcd.cli", "bench", "run", *grid, *places]
        done = subprocess.run(command, cwd=tmp_path, env=found, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout[done.stdout.index("**toy**") :], {
            path.name for path in (tmp_path / "out" / "runs").iterdir()
        }

    text, runs = table()
    assert table() == (text, runs), "an unchanged strategy is not run again"
    write(tmp_path, {"helper": LAST})
    edited_text, edited_runs = table()
    assert edited_text != text
    assert len(edited_runs) == len(runs) + 1, "base training is shared, the round is new"
