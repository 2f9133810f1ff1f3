"""Kill −9 in the middle of init, train, export, sort, backup, restore and repair: the same command goes on, nothing is
lost."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import TESTS


@pytest.mark.parametrize("n", [7, pytest.param(200, marks=pytest.mark.slow)])
def test_commands_that_are_killed_lose_nothing(tmp_path: Path, n: int) -> None:
    command = [sys.executable, "-m", "support.command_kills", str(tmp_path), "1", str(n)]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "AGCD_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=TESTS, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    kills = ast.literal_eval(done.stdout.splitlines()[-1])
    assert sum(kills.values()) == n
    assert min(kills.values()) >= n // 7
