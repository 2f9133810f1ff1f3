"""Records that are not what was written: noticed when they are read, and told in one sentence."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from agcd.app.store.seals import LostRecords, forget_last_event, read_last_event
from agcd.app.store.store import Store
from agcd.errors import StorageError
from support.damage import DAMAGES, Damage, damage
from support.events import create, label, open_store
from support.readers import only_readable

TESTS = Path(__file__).parents[2]
ANSWERS_AND_DIES = """
import os, sys
from pathlib import Path
from agcd.app.store.store import Store
from support.events import label
store = Store(Path(sys.argv[1]))
for row in range(4):
    store.append([label(row, uid=f"answer-{row}")])
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    open_store(tmp_path / "project.db").close()
    return tmp_path / "project.db"


def answered_and_killed(path: Path) -> Path:
    """Four answers, confirmed and then killed: they are in the file beside the records alone."""
    subprocess.run([sys.executable, "-c", ANSWERS_AND_DIES, str(path)], cwd=TESTS, check=False)
    wal = path.with_name("project.db-wal")
    assert wal.stat().st_size
    return wal


def tamper(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for trigger in ("events_never_change", "events_never_vanish"):
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.execute(statement)
    connection.close()


def test_answers_that_were_never_moved_into_the_file_are_read_after_a_kill(path: Path) -> None:
    answered_and_killed(path)
    with Store(path) as store:
        assert [event.uid for event in store.events()][1:] == [f"answer-{row}" for row in range(4)]
    assert read_last_event(path) == 5


@pytest.mark.parametrize("how", DAMAGES)
def test_lost_answers_are_noticed(path: Path, how: Damage) -> None:
    damage(answered_and_killed(path), how)
    with pytest.raises(LostRecords, match=r"has lost its last [1-4] records: project\.db-wal.*agcd check"):
        Store(path)
    forget_last_event(path)
    with Store(path) as store:
        store.append([label(5)])
    assert read_last_event(path) == max(e.id for e in Store(path).events())


def test_answers_that_were_moved_into_the_file_need_nothing_beside_it(path: Path) -> None:
    with Store(path) as store:
        store.append([label(0), label(1)])
        store.checkpoint()
        copy = path.with_name("copy.db")
        shutil.copyfile(path, copy)
    with Store(copy) as store:
        assert len(store.events()) == 3


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("UPDATE events SET row = 3 WHERE id = 2", 2),
        ("UPDATE events SET class_id = 'dog' WHERE id = 3", 3),
        ("UPDATE events SET payload = '{\"audit\": true}' WHERE id = 2", 2),
        ("UPDATE events SET payload = '{oops' WHERE id = 2", 2),
        ("DELETE FROM events WHERE id = 2", 3),
    ],
)
def test_a_record_that_was_changed_or_removed_is_named(path: Path, statement: str, number: int) -> None:
    with Store(path) as store:
        store.append([label(0), label(1), label(2)])
    tamper(path, statement)
    with Store(path) as store, pytest.raises(StorageError, match=rf"damaged \(record {number} .*agcd restore"):
        store.events()
    with Store(path) as store, pytest.raises(StorageError, match=rf"damaged \(record {number} "):
        store.events(after=1)


def test_json_of_an_earlier_version_that_does_not_parse_is_named(path: Path) -> None:
    tamper(path, "UPDATE events SET payload = '" + "[" * 100_000 + "', seal = NULL WHERE id = 1")
    with Store(path) as store, pytest.raises(StorageError, match=r"damaged \(record 1 "):
        store.events()


def test_events_without_digests_come_from_earlier_versions(path: Path) -> None:
    tamper(path, "UPDATE events SET seal = NULL")
    with Store(path) as store:
        store.append([label(0), create("dog")])
        assert [event.kind for event in store.events()] == ["create", "label", "create"]
        assert [event.kind for event in store.events(after=2)] == ["create"]


@pytest.mark.parametrize("statement", ["UPDATE rows SET path = 'x' WHERE row = 1", "UPDATE rows SET is_test = 1"])
def test_a_changed_list_of_pictures_is_noticed(path: Path, statement: str) -> None:
    tamper(path, statement)
    with Store(path) as store, pytest.raises(StorageError, match="the list of pictures is not what was stored"):
        store.rows()


def test_a_changed_round_is_noticed(path: Path) -> None:
    with Store(path) as store:
        store.begin_run(0)
        store.append([label(0)])
    tamper(path, "UPDATE runs SET last_event = 2")
    with Store(path) as store, pytest.raises(StorageError, match="round 0 is not what was stored"):
        store.runs()


@pytest.mark.parametrize("foreign", [False, True])
def test_an_empty_or_foreign_database_is_refused_and_left_alone(tmp_path: Path, foreign: bool) -> None:
    path = tmp_path / "project.db"
    path.touch()
    if foreign:
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE bookmarks (id INTEGER)")
        connection.close()
    before = path.read_bytes()
    with pytest.raises(StorageError, match="empty database, or that of another program"):
        Store(path)
    assert path.read_bytes() == before


READS = """
import sys
from pathlib import Path
from agcd.app.store.store import Store
from agcd.errors import StorageError
from support.readers import become_reader
become_reader()
with Store(Path(sys.argv[1])) as store:
    assert store.is_read_only
    print(len(store.events()), len(store.rows()[0]))
    try:
        store.begin_run(0)
    except StorageError as error:
        print(error)
"""


@pytest.mark.parametrize("killed", [False, True])
def test_a_read_only_project_can_be_read(path: Path, killed: bool) -> None:
    if killed:
        answered_and_killed(path)
    before = sorted(path.parent.iterdir())
    with only_readable(path.parent):
        done = subprocess.run(
            [sys.executable, "-c", READS, str(path)], cwd=TESTS, capture_output=True, text=True, check=False
        )
    assert done.stdout.splitlines()[:1] == ["5 6" if killed else "1 6"], done.stderr
    assert "can only be read here" in done.stdout
    assert sorted(path.parent.iterdir()) == before
