"""agcd check, backup and restore as commands, and commands on a project that may only be read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner, Result

from agcd.cli import app
from support import TESTS
from support.damage import damage
from support.readers import only_readable
from support.servers import trained_project


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_whole_project_is_called_whole(tmp_path: Path) -> None:
    done = invoke("check", trained_project(tmp_path))
    assert (done.exit_code, done.stdout) == (0, "the project is whole\n")


def test_damage_is_told_and_repaired(tmp_path: Path) -> None:
    project = trained_project(tmp_path)
    damage(project / "runs" / "000" / "model.safetensors", "flip")
    damage(project / "cache" / "rounds" / "000" / "xy.npy", "delete")
    told = invoke("check", project)
    assert told.exit_code == 1
    lines = told.stdout.splitlines()
    assert lines[0].startswith("runs/000/model.safetensors is damaged: repair moves 000 away, and agcd train makes")
    assert lines[1].startswith("cache/rounds/000 is damaged (xy.npy is missing)")
    assert lines[2] == f"next: agcd check {project} --repair"
    repaired = invoke("check", project, "--repair")
    assert (repaired.exit_code, repaired.stdout.splitlines()[-2:]) == (
        0,
        ["repaired: 2 of 2 findings", "the project is whole"],
    )
    assert [path.name[-3:] for path in (project / "damaged").iterdir()] == ["000"]
    assert invoke("train", project).exit_code == 0
    assert invoke("check", project).exit_code == 0


def test_a_lost_tail_of_answers_can_be_given_up(tmp_path: Path) -> None:
    project = trained_project(tmp_path)
    (project / "project.db-last").write_text('{"event": 40}')
    told = invoke("check", project)
    assert "project.db has lost its last 28 records" in told.stdout
    assert invoke("status", project).exit_code == 1  # an error that main() turns into one sentence
    assert invoke("check", project, "--repair").exit_code == 0
    assert invoke("status", project).exit_code == 0


def test_backup_and_restore(tmp_path: Path) -> None:
    project, file = trained_project(tmp_path), tmp_path / "birds.zip"
    assert f"{file}: " in invoke("backup", project, file).stdout
    restored = invoke("restore", file, tmp_path / "again")
    assert restored.stdout == f"next: agcd serve {tmp_path / 'again'}\n"
    said = invoke("status", tmp_path / "again").stdout
    assert "what the page shows of the last one is lost: training makes it again" in said
    assert invoke("train", tmp_path / "again").exit_code == 0
    assert invoke("status", tmp_path / "again").stdout == invoke("status", project).stdout


READS = """
import sys
import agcd.app.export.files, agcd.app.figures, agcd.app.model, agcd.app.report, agcd.app.status
import encodings.idna, sklearn.manifold, scipy.linalg
from agcd.cli import main
from support.readers import become_reader
become_reader()
sys.argv = ["agcd", *sys.argv[1:]]
main()
"""


def test_a_project_that_may_only_be_read_is_read(tmp_path: Path) -> None:
    project = trained_project(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in project.rglob("*")}
    expected = invoke("status", project).stdout

    def read(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", READS, *arguments]
        env = {**os.environ, "AGCD_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
        return subprocess.run(command, cwd=TESTS, env=env, capture_output=True, text=True, check=False)

    with only_readable(project):
        status, label = read("status", str(project)), read("rename", str(project), "blue-triangle", "kite")
    assert status.stdout == expected, status.stderr
    assert label.returncode == 2
    assert "can only be read here" in label.stderr
    assert {path: path.stat().st_mtime_ns for path in project.rglob("*") if path in before} == before
