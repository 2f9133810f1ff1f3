"""A full disk at random points of init, extraction, training, labelling, export and backup: one sentence, nothing is
lost, and it goes on once there is room."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import TESTS

MOUNT = 'mount -t tmpfs -o size=24m none "$1" && shift && exec "$@"'
UNSHARE = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", MOUNT, "sh"]
"""A disk of 24 MB that only the command sees."""


def can_mount(folder: Path) -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*UNSHARE, str(folder), "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("n", [6, pytest.param(50, marks=pytest.mark.slow)])
def test_a_full_disk_is_one_sentence_and_nothing_is_lost(tmp_path: Path, n: int) -> None:
    disk, scratch = tmp_path / "disk", tmp_path / "scratch"
    disk.mkdir()
    scratch.mkdir()
    if not can_mount(disk):
        pytest.skip("no file system can be mounted here")
    command = [*UNSHARE, str(disk), sys.executable, "-m", "support.full_disk", str(disk), "1", str(n)]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "AGCD_SCRATCH": str(scratch)}
    done = subprocess.run(command, cwd=TESTS, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    full = ast.literal_eval(done.stdout.splitlines()[-1])
    assert sum(full.values()) >= n
