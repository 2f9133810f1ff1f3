"""``--json``: every command that prints facts can print them as one object, which says what the text says."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import save_file
from typer.testing import CliRunner

import agcd
from agcd.app.project import Project
from agcd.cli import app, main
from agcd.cli.options import plain_value, tell
from agcd.features.torchvision_compat import import_timm
from support.commands import command_names
from support.damage import damage
from support.machines import MACHINE
from support.servers import serving, trained_project

EXEMPT = {"agcd serve", "agcd demo", "agcd join", "agcd paper", "agcd weights get"}
"""They open a page, tell a story, wait for others, or print tables of Markdown beside the files they write; so do all
of agcd bench. The last one needs a network: tests/test_weights_by_name.py has one."""
ENDINGS = {"0", "1", "2", "130"}


@dataclass(frozen=True)
class Step:
    """A command, and what of its facts must be in its text."""

    words: str
    told: Callable[[dict[str, Any]], list[str]] = lambda facts: []
    keys: set[str] = field(default_factory=set)
    code: int = 0


STEPS = [
    Step(
        "init OUT/made --images IMAGES --set backbone.name=toy --set backbone.image_size=32",
        lambda f: f["lines"],
        {"folder", "n_images", "n_seeds", "n_classes", "n_test", "n_set_aside"},
    ),
    Step("version", lambda f: [f["version"]], {"version"}),
    Step("strategies", lambda f: [f"{s['name']}" for s in f["strategies"]], {"strategies"}),
    Step("plugins", lambda f: [f"{g['name']}: {', '.join(g['own'])}" for g in f["groups"]], {"groups"}),
    Step("data", lambda f: [s["what"] for s in f["data_sets"]], {"data_sets"}),
    Step("data check cub nowhere", lambda f: f["lines"], {"name", "ok", "lines"}, 1),
    Step("estimate --images 5000 --classes 20", lambda f: list(f["what_if"])),
    Step(
        "status PROJECT",
        lambda f: [
            f"{f['n_images']}, {f['n_test']} of them test",
            f"{f['n_seeds']} from the start, {f['n_answers']} answered; {f['n_passed']} passed",
            *(f"{c['name']} ({c['status']}): {c['n_labels']}" for c in f["classes"]),
            f"open     {f['n_open']} question",
            f["figures"]["headline"],
        ],
        {"is_due", "in_training", "n_slots", "last_event"},
    ),
    Step("check PROJECT", lambda f: ["the project is whole"] * f["is_whole"], {"is_whole", "findings", "n_repaired"}),
    Step("query PROJECT -n 3", lambda f: [f"{q['row']},{q['path']}" for q in f["questions"]], {"n_questions"}),
    Step("query PROJECT -n 3 --out OUT/q.csv", lambda f: [f"q.csv: {f['n_questions']} lines"], {"out"}),
    Step(
        "label PROJECT --from OUT/answers.csv --who ann",
        lambda f: [
            f"ann: stored: {f['told'][0]['stored']['label']} label",
            f"new classes: {f['told'][0]['new_classes'][0]['name']}",
        ],
    ),
    Step("rename PROJECT kite hawk", lambda f: [f"{f['before']} is now called {f['name']}"], {"class_id"}),
    Step("merge PROJECT hawk blue-triangle", lambda f: [f"{f['name']} now counts as {f['into_name']}"], {"into"}),
    Step("undo PROJECT", lambda f: [f"undone: {re.sub(' of .*', '', f['what'])}"], {"row"}),
    Step("retire PROJECT hawk", lambda f: [f"{f['name']} is retired"], {"class_id"}),
    Step("undo PROJECT", lambda f: [f"undone: {re.sub(' of .*', '', f['what'])}"]),
    Step(
        "train PROJECT",
        lambda f: [f"round {f['number']} is trained on {f['n_labels']} labels of {f['n_classes']} classes"],
        {"is_new", "n_answers", "n_slots", "agreement", "seconds", "estimate"},
    ),
    Step("add PROJECT", lambda f: [f"{f['n_new']} pictures added", f"{f['n_known']} were here already"], {"copies"}),
    Step("remove PROJECT unlabelled/red-circle-02.png", lambda f: [f"{f['n']} picture removed"], {"n_before"}),
    Step("predict PROJECT IMAGES", lambda f: [f"{i['path']},{i['class']},true" for i in f["images"] if i["known"]]),
    Step("report PROJECT --out OUT/report", lambda f: [Path(f["out"]).name]),
    Step("export PROJECT --out OUT/export", lambda f: f["files"], {"out"}),
    Step("sort PROJECT OUT/sorted", lambda f: [f["sentence"].partition(":")[0]], {"n_classes", "n_named", "n_junk"}),
    Step("backup PROJECT OUT/b.zip", lambda f: [f"b.zip: {len(f['files'])} files"], {"n_bytes"}),
    Step("restore OUT/b.zip OUT/again", lambda f: [Path(f["folder"]).name], {"notes"}),
    Step("doctor", lambda f: [finding["words"] for finding in f["findings"] if finding["what"] == "agcd"], {"ok"}),
    Step("weights check", lambda f: ["no weights have a name here"] * (not f["problems"])),
    Step("weights add tiny OUT/tiny.safetensors --backbone test_vit.r160_in1k", lambda f: [f["name"], f["sha256"]]),
    Step("weights list", lambda f: [f["weights"][0]["backbone"], Path(f["weights"][0]["file"]).name], {"published"}),
    Step("weights remove tiny", lambda f: [f"{f['name']} is forgotten"], {"file"}),
    Step("people PROJECT", lambda f: ["nobody yet"] * (f["people"] == [])),
    Step(
        "people PROJECT add ann --role view",
        lambda f: [f"{f['name']} may log in with the role {f['role']}"],
        {"password"},
    ),
    Step("people PROJECT role ann manage", lambda f: [f"{f['name']} now has the role {f['role']}"]),
    Step("people PROJECT", lambda f: [f"{p['role']:<6}  {p['name']}" for p in f["people"]]),
    Step("people PROJECT reset ann", lambda f: [f"{f['name']} has a new password"], {"password"}),
    Step("people PROJECT remove ann", lambda f: [f"{f['name']} may no longer log in"]),
]


TOLD = sorted(name for name in command_names(app, "agcd") if name not in EXEMPT and not name.startswith("agcd bench"))


def test_every_command_that_prints_facts_is_walked_through() -> None:
    walked = {f"agcd {step.words.replace(' PROJECT', '')} " for step in STEPS}
    called = {max((name for name in TOLD if words.startswith(f"{name} ")), key=len) for words in walked}
    assert called == set(TOLD)


def test_the_objects_say_what_the_texts_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agcd.engine.machine.this_machine", lambda *_, **__: MACHINE)
    monkeypatch.setenv("AGCD_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("AGCD_PASSWORD", raising=False)
    places, network = {}, import_timm().create_model("test_vit.r160_in1k", num_classes=0)
    for way in ("text", "json"):
        folder = tmp_path / way
        folder.mkdir()
        project = trained_project(folder)
        answers = "path,label\nunlabelled/red-circle-00.png,kite\nunlabelled/red-circle-01.png,blue-triangle\n"
        (folder / "answers.csv").write_text(answers)
        with Project.open(project) as opened:
            images = opened.images / "green-square"
        save_file(network.state_dict(), folder / "tiny.safetensors")
        places[way] = {"PROJECT": str(project), "OUT": str(folder), "IMAGES": str(images)}
    for step in STEPS:
        text, printed = (said(step, places[way], *more) for way, more in (("text", ()), ("json", ("--json",))))
        assert printed.count("\n") == 1, step.words
        assert printed.isascii(), "no console has to know other letters"
        facts = json.loads(printed)
        assert step.keys <= facts.keys(), step.words
        for piece in step.told(facts):
            assert piece in text, step.words


def said(step: Step, places: dict[str, str], *more: str) -> str:
    words = [re.sub("^(PROJECT|OUT|IMAGES)", lambda found: places[found[1]], word) for word in step.words.split()]
    done = CliRunner().invoke(app, [*words, *more], env={"AGCD_WEIGHTS": f"{places['OUT']}/weights"})
    assert done.exit_code == step.code, done.output + repr(done.exception)
    return done.stdout


def test_the_same_fact_has_the_name_it_has_on_the_page(tmp_path: Path) -> None:
    project = trained_project(tmp_path)
    status = json.loads(CliRunner().invoke(app, ["status", str(project), "--json"]).stdout)
    with serving(project) as client:
        state, figures = client.get("/api/v1/state"), client.get("/api/v1/figures")
    for key in (status.keys() & state.keys()) - {"estimate"}:
        assert status[key] == state[key], key
    assert len(status.keys() & state.keys()) > 20
    assert {key: figures[key] for key in status["figures"]} == status["figures"]


def run_main(monkeypatch: pytest.MonkeyPatch, capsys: Any, *words: str) -> tuple[int, str, str]:
    """A whole run of the program: exit code, output, error stream."""
    monkeypatch.setattr(sys, "argv", ["agcd", *words])
    capsys.readouterr()
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0), *capsys.readouterr()


@pytest.mark.parametrize("name", TOLD)
def test_a_mistake_is_an_object_too(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = name.split()[1:]
    if words[0] == "people":
        words.insert(1, "nowhere")
    code, out, err = run_main(monkeypatch, capsys, *words, "--no-such-option", "--json")
    assert code == 2
    error = json.loads(out)["error"]
    assert "--no-such-option" in error
    assert err == f"error: {error}\n"


def test_mistakes_of_users_and_ours_can_be_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run_main(monkeypatch, capsys, "status", str(tmp_path / "nowhere"), "--json")
    assert (code, err) == (2, f"error: {json.loads(out)['error']}\n")
    assert "agcd init" in err
    monkeypatch.setattr("agcd.cli.about.__version__", object())
    monkeypatch.setattr(sys, "argv", ["agcd", "version", "--json"])
    with pytest.raises(TypeError):
        main()
    assert json.loads(capsys.readouterr().out)["error"].startswith("our mistake (TypeError")


def interrupted(*words: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_the_exit_codes_are_those_of_the_documentation(
    more: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = trained_project(tmp_path)
    assert run_main(monkeypatch, capsys, "check", str(project), *more)[0] == 0
    damage(project / "cache" / "rounds" / "000" / "xy.npy", "delete")
    assert run_main(monkeypatch, capsys, "check", str(project), *more)[0] == 1
    assert run_main(monkeypatch, capsys, "rename", str(project), "nobody", "x", *more)[0] == 2
    monkeypatch.setattr("agcd.cli.about.tell", interrupted)
    code, out, err = run_main(monkeypatch, capsys, "version", *more)
    assert (code, err) == (130, "stopped; run the same command again to continue\n")
    assert out == ('{"error": "stopped; run the same command again to continue"}\n' if more else "")
    documented = (Path(agcd.__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| (\d+) \|", documented, re.MULTILINE)) == ENDINGS


@pytest.mark.parametrize(
    "words",
    ["people --json DIR", "people DIR --json", "data --json", "data --json check cub x", "data check cub x --json"],
)
def test_a_group_takes_json_wherever_it_stands(words: str, tmp_path: Path) -> None:
    project = trained_project(tmp_path)
    done = CliRunner().invoke(app, words.replace("DIR", str(project)).split())
    assert set(json.loads(done.stdout)) in ({"people"}, {"data_sets"}, {"name", "ok", "lines"})


def test_values_become_what_json_has(capsys: pytest.CaptureFixture[str]) -> None:
    value: dict[Any, Any] = {
        "path": Path("a"),
        "n": np.int64(3),
        "x": np.float32("nan"),
        7: (True, None),
        "odd": "\udcff\x1b",
    }
    tell(True, value, [])
    assert json.loads(capsys.readouterr().out) == plain_value(value)
    assert plain_value(value) == {"path": "a", "n": 3, "x": None, "7": [True, None], "odd": "\udcff\x1b"}


# ------------------------------------------------------------------------------------------------- new images


def test_paths_of_new_images_may_come_from_the_standard_input(tmp_path: Path) -> None:
    project = trained_project(tmp_path)
    with Project.open(project) as opened:
        places = [opened.images / "green-square", *(opened.images / path for path in opened.paths[-2:])]
    odd = Path(shutil.copy(places[1], tmp_path / "two\nlines.png"))
    listed = "\n".join([*map(str, places), "", str(tmp_path / "gone.png")])
    done = CliRunner().invoke(app, ["predict", str(project), "-", "--format", "jsonl"], input=listed + "\n")
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    inside = [str(path) for path in sorted(places[0].iterdir())]
    assert [line["path"] for line in lines] == [*inside, *map(str, places[1:]), str(tmp_path / "gone.png")]
    assert done.stderr.endswith("1 image could not be used: 'problem' says why\n")
    words = ["predict", str(project), str(places[2]), "-", "-0", "--out", str(tmp_path / "new.jsonl")]
    assert CliRunner().invoke(app, words, input=f"{odd}\0").stdout == f"{tmp_path / 'new.jsonl'}: 2 lines\n"
    written = [json.loads(line) for line in (tmp_path / "new.jsonl").read_text().splitlines()]
    assert [line["path"] for line in written] == [str(places[2]), str(odd)]


@pytest.mark.parametrize(
    ("words", "piece"),
    [
        (["-", "-0"], "The standard input names no image"),
        (["a.png", "-0"], "-0 is about paths that are read"),
    ],
)
def test_a_standard_input_that_says_nothing_is_one_sentence(words: list[str], piece: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["predict", str(trained_project(tmp_path)), *words], input="")
    assert piece in str(done.exception)
