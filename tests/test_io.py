"""Files that are whole or absent, readable as the umask says, and sealed where they hold results."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agcd.io import aside_of, atomic_write, leftovers, read_sealed, remove_leftovers, write_json, write_sealed
from support.damage import damage

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
WRITES = """
import os, sys
os.umask(int(sys.argv[2], 8))
from pathlib import Path
from agcd.io import atomic_write, write_json
write_json(Path(sys.argv[1]) / "plain.json", {})
with atomic_write(Path(sys.argv[1]) / "model") as aside:
    os.close(os.open(aside, os.O_CREAT | os.O_WRONLY, 0o600))
with atomic_write(Path(sys.argv[1]) / "secret", private=True) as aside:
    aside.write_text("secret")
"""


@pytest.mark.parametrize(("umask", "mode"), [("022", 0o644), ("077", 0o600), ("002", 0o664)])
def test_modes_follow_the_umask_and_secrets_are_private(tmp_path: Path, umask: str, mode: int) -> None:
    subprocess.run([sys.executable, "-c", WRITES, str(tmp_path), umask], check=True)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"plain.json": mode, "model": mode, "secret": 0o600}


@given(st.dictionaries(st.text(), JSON))
def test_what_is_sealed_comes_back(tmp_path_factory: pytest.TempPathFactory, value: dict[str, object]) -> None:
    value.pop("digest", None)
    path = tmp_path_factory.mktemp("sealed") / "a.json"
    write_sealed(path, value)
    assert read_sealed(path) == value


def test_what_was_changed_is_noticed(tmp_path: Path) -> None:
    write_sealed(tmp_path / "a.json", {"n": 7})
    text = (tmp_path / "a.json").read_text()
    (tmp_path / "a.json").write_text(text.replace("7", "8"))
    with pytest.raises(ValueError, match="not what was stored"):
        read_sealed(tmp_path / "a.json")
    damage(tmp_path / "a.json", "truncate")
    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        read_sealed(tmp_path / "a.json")
    write_json(tmp_path / "a.json", {"n": 7})
    assert read_sealed(tmp_path / "a.json") == {"n": 7}, "earlier versions had no seal"


def test_files_of_killed_writers_go_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    died = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    pid = died.stdout.decode().strip()
    dead, folder, fresh = (tmp_path / f".{name}.{pid}.0123abcd.tmp" for name in ("model", "folder", "fresh"))
    mine, other = aside_of(tmp_path / "mine"), tmp_path / ".notes.tmp"
    folder.mkdir()
    for path in (dead, fresh, mine, other, folder / "inside"):
        path.write_text("half")
    hours_ago = time.time() - 7200
    for path in (dead, mine, other, folder):
        os.utime(path, (hours_ago, hours_ago))
    assert set(leftovers(tmp_path)) == {dead, folder}
    remove_leftovers(tmp_path)
    assert set(tmp_path.iterdir()) == {fresh, mine, other}
    remove_leftovers(tmp_path, older_than=0)
    assert set(tmp_path.iterdir()) == {mine, other}


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    with pytest.raises(RuntimeError), atomic_write(tmp_path / "a") as aside:  # noqa: PT012
        aside.write_text("new")
        raise RuntimeError
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "old")]
