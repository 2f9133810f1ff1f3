"""Kill −9 at any moment: no confirmed label is lost, none is doubled, and the round goes on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from agcd.app.project import Project
from support import TESTS
from support.projects import make_project, predictions, work_through

HERE = str(TESTS)
BATCH = 3
LABEL = """
import sys
from pathlib import Path
from agcd.app.answers import Answer, write_answers
from agcd.app.project import Project
with Project.open(Path(sys.argv[1])) as project:
    rows = [row for row, path in enumerate(project.paths) if path.startswith("unlabelled")]
    for start in range(0, 36, 3):
        write_answers(project, [Answer(row, f"class {row}") for row in rows[start : start + 3]])
        print(*rows[start : start + 3], flush=True)
"""
LOOP = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from support.projects import work_through
work_through(Path(sys.argv[1]))
"""


def start(script: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, str(folder), HERE]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


def kill(process: subprocess.Popen[str]) -> bool:
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return process.returncode == -signal.SIGKILL


def labels_per_row(folder: Path) -> Counter[int]:
    with Project.open(folder) as project:
        events = project.store.events()
    return Counter(e.row for e in events if e.kind == "label" and e.source == "import" and e.row is not None)


def test_kills_while_labelling_lose_and_double_nothing(tmp_path: Path) -> None:
    make_project(tmp_path).close()
    folder, rng, kills = tmp_path / "project", np.random.default_rng(0), 0
    confirmed: set[int] = set()
    for attempt in range(6):
        process = start(LABEL, folder)
        assert process.stdout is not None
        for _ in range(1 + 2 * attempt):  # each attempt gets a little further
            confirmed |= set(map(int, process.stdout.readline().split()))
        time.sleep(float(rng.uniform(0, 0.01)))
        kills += kill(process)
        stored = labels_per_row(folder)
        assert confirmed <= set(stored)
        assert set(stored.values()) == {1}
        assert len(stored) % BATCH == 0, "a batch is stored whole or not at all"
    assert kills >= 4
    process = start(LABEL, folder)
    process.communicate(timeout=120)
    assert process.returncode == 0
    stored = labels_per_row(folder)
    assert len(stored) == 36
    assert set(stored.values()) == {1}
    with Project.open(folder) as project:
        assert len(project.labels().registry.classes) == 3 + 36


@pytest.mark.usefixtures("one_thread")
def test_kills_during_the_loop_change_nothing(tmp_path: Path) -> None:
    make_project(tmp_path).close()
    unbroken, broken, kills = tmp_path / "unbroken", tmp_path / "project", 0
    shutil.copytree(broken, unbroken)
    work_through(unbroken)
    for wanted in ("runs/000/log.jsonl", "runs/001/query.json", "runs/001/log.jsonl", "runs/002"):
        process = start(LOOP, broken)
        while process.poll() is None and not (broken / wanted).exists():
            time.sleep(0.002)
        kills += kill(process)
        assert set(labels_per_row(broken).values()) <= {1}
    assert kills >= 3
    work_through(broken)
    assert labels_per_row(broken) == labels_per_row(unbroken)
    assert sum(labels_per_row(broken).values()) == 8
    with Project.open(broken) as project, Project.open(unbroken) as other:
        assert predictions(project) == predictions(other)
