"""The files of a finished run: damaged or missing ones are one sentence, and never another result."""

from __future__ import annotations

from pathlib import Path

import pytest

from agcd.errors import StorageError
from agcd.io import read_json, write_json
from agcd.run_files import DONE, LOG, METRICS, MODEL, RESULTS, checked
from support.blobs import make_blobs, make_session


@pytest.fixture
def run(tmp_path: Path) -> Path:
    make_session(make_blobs(), tmp_path).train()
    return tmp_path / "runs" / "000"


def test_a_finished_run_lists_the_digest_of_every_result(run: Path) -> None:
    assert read_json(run / DONE)["digests"].keys() == {*RESULTS, LOG}
    for name in RESULTS:
        assert checked(run, name) == run / name


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "delete"])
def test_every_damage_is_noticed(run: Path, name: str, damage: str) -> None:
    path = run / name
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 0x01
    path.write_bytes(bytes(content[: {"flip": len(content), "truncate": len(content) - 3}.get(damage, 0)]))
    if damage == "delete":
        path.unlink()
    with pytest.raises(StorageError, match="training makes that round again"):
        checked(run, name)


@pytest.mark.parametrize("content", ["", "{", "\x00\x00", '{"key": "other", "digest": "b2-0"}'])
def test_a_damaged_marker_is_one_sentence(run: Path, content: str) -> None:
    (run / DONE).write_text(content)
    with pytest.raises(StorageError, match=r"done\.json is damaged"):
        checked(run, METRICS)


def test_runs_of_versions_without_digests_are_read(run: Path) -> None:
    done = read_json(run / DONE)
    write_json(run / DONE, {"key": done["key"], "version": "0.2.0"})
    assert checked(run, MODEL).exists()


def test_a_round_that_is_moved_away_is_made_again_as_it_was(tmp_path: Path) -> None:
    blobs = make_blobs()
    make_session(blobs, tmp_path).train()
    model = (tmp_path / "runs" / "000" / MODEL).read_bytes()
    (tmp_path / "runs" / "000").rename(tmp_path / "away")
    make_session(blobs, tmp_path).train()
    assert (tmp_path / "runs" / "000" / MODEL).read_bytes() == model
