"""The records: nothing is changed or lost, saying it twice counts once, and two people get two questions."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agcd.app.label_log import LabelLog
from agcd.app.questions import QueryLog, claim
from agcd.app.store import schema
from agcd.app.store.classes import MAX_NAME, Registry, clean_class_name
from agcd.app.store.events import LabelEvent
from agcd.app.store.store import Store
from agcd.errors import DataError, StorageError
from support.events import create, label, merge, open_log, open_store, rename, void


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with open_store(tmp_path / "project.db") as opened:
        yield opened


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("UPDATE events SET who = 'eve'", "never changed"),
        ("DELETE FROM events", "never deleted"),
        ("DELETE FROM events WHERE id = 1", "never deleted"),
    ],
)
def test_the_database_itself_refuses_to_change_events(store: Store, statement: str, sentence: str) -> None:
    before = store.events()
    with sqlite3.connect(store.path) as stranger, pytest.raises(sqlite3.IntegrityError, match=sentence):
        stranger.execute(statement)
    stranger.close()
    assert store.events() == before


def test_not_even_insert_or_replace_changes_an_event(store: Store) -> None:
    stored = store.append([label(0)])[0]
    values = f"{stored.id}, 'other', 'now', 'skip', 1, NULL, 'eve', 'human', NULL, 0, NULL, '{{}}', NULL"
    store.connection.execute(f"INSERT OR REPLACE INTO events VALUES ({values})")
    store.connection.execute(f"INSERT OR REPLACE INTO events VALUES ({values.replace('other', stored.uid)})")
    assert store.events()[-1] == stored


def test_the_file_is_safe_against_loss_of_power(store: Store) -> None:
    asked = ("journal_mode", "synchronous", "foreign_keys")
    assert [store.select(f"PRAGMA {name}")[0][0] for name in asked] == ["wal", 2, 1]


def test_a_repeated_request_counts_once_and_returns_what_is_stored(store: Store) -> None:
    event = label(0)
    first = store.append([event])
    again = store.append([replace(event, at="later", group="another try")])
    assert first == again
    assert sum(e.kind == "label" for e in store.events()) == 1


def test_the_same_uid_with_other_content_is_refused_and_nothing_of_its_batch_is_stored(store: Store) -> None:
    event = store.append([label(0)])[0]
    with pytest.raises(DataError, match="other content"):
        store.append([label(1), replace(event, row=2)])
    assert [e.row for e in store.events() if e.kind == "label"] == [0]


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        (label(99), "no row 99"),
        (label(5), "for testing"),
        (label(0, "dog"), "no class with id"),
        (LabelEvent("skip", "ann", "human"), "names no row"),
        (void("nothing"), "to undo"),
        (merge("cat", "dog"), "no class with id"),
        (merge("cat", "cat"), "into itself"),
        (create(" dog"), "clean form"),
        (create("CAT", "other id"), "two classes called"),
        (LabelEvent("shout", "ann", "human"), "CHECK"),  # type: ignore[arg-type]
        (label(0, query_id="no such query"), "FOREIGN KEY"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(store: Store, event: LabelEvent, sentence: str) -> None:
    before = store.events()
    with pytest.raises(DataError, match=sentence) as refused:
        open_log().append(store, [event])
    assert len(str(refused.value).splitlines()) == 1
    assert store.events() == before


def registry_of(store: Store) -> Registry:
    return open_log().view(store).registry


def test_rename_merge_and_retire_are_undone_like_answers(store: Store) -> None:
    log = open_log()
    log.append(store, [create("dog")])
    log.append(store, [rename("dog", "hound")])
    merged = log.append(store, [merge("dog", "cat")])[0]
    registry = log.view(store).registry
    found = registry.find("HOUND")
    assert found is not None
    assert found.name == "cat"
    assert registry.classes["id of dog"].status == "merged"
    undone = log.append(store, [void(merged.uid)])[0]
    assert [info.name for info in log.view(store).registry.infos if info.status == "novel"] == ["cat", "hound"]
    log.append(store, [void(undone.uid), LabelEvent("retire", "ann", "human", class_id="id of cat")])
    assert [info.status for info in log.view(store).registry.infos] == ["retired", "merged"]
    assert registry_of(store) == log.view(store).registry


def test_undoing_a_rename_never_makes_twins(store: Store) -> None:
    log = open_log()
    renamed = log.append(store, [rename("cat", "lynx")])[0]
    log.append(store, [create("Cat", "second")])
    with pytest.raises(DataError, match="two classes called"):
        log.append(store, [void(renamed.uid)])
    assert [info.name for info in registry_of(store).infos] == ["lynx", "Cat"]


def test_merging_two_classes_into_each_other_ends() -> None:
    registry = Registry().after([create("a"), create("b"), merge("a", "b"), merge("b", "a")])
    assert registry.resolve("id of a").id == registry.resolve("id of b").id == "id of b"


def test_what_is_rolled_back_was_never_said(store: Store) -> None:
    log = open_log()
    before = log.view(store)

    def fail_after_writing() -> None:
        with store.transaction():
            log.append(store, [create("dog")])
            assert "id of dog" in log.view(store).registry.classes, "inside, it is seen"
            raise RuntimeError("broken off")

    with pytest.raises(RuntimeError, match="broken off"):
        fail_after_writing()
    assert log.view(store) is before
    log.append(store, [create("bird")])
    assert [info.name for info in log.view(store).registry.infos] == ["cat", "bird"]


def test_earlier_views_are_what_was_known_then(store: Store) -> None:
    log = open_log()
    for row in range(4):
        log.append(store, [label(row)])
    now = log.view(store)
    for event, view in log.at(now, {2, 3, 5}).items():
        assert view.last_event == event
        assert view.n_answers == event - 1


def test_a_log_that_is_read_late_stops_at_the_rounds_on_the_way(store: Store) -> None:
    store.append([label(0)])
    known = store.begin_run(0)
    store.append([label(1)])
    log = open_log()
    now = log.view(store)
    assert [view.n_answers for view in (now, log.at(now, {known})[known])] == [2, 1]


@pytest.mark.parametrize("name", ["", "  ", "a\x00b", "a\nb", "tab\there", "x" * (MAX_NAME + 1), "\u202egpj", "Skip"])
def test_unusable_names_are_refused(name: str) -> None:
    with pytest.raises(DataError):
        clean_class_name(name)


@pytest.mark.parametrize(
    ("name", "clean"),
    [(" red kite ", "red kite"), ("e\u0301", "é"), ("👩‍🔬", "👩‍🔬"), ("x" * MAX_NAME, "x" * MAX_NAME)],
)
def test_usable_names_are_cleaned(name: str, clean: str) -> None:
    assert clean_class_name(name) == clean


def test_a_run_learns_the_events_known_when_it_was_first_begun(store: Store) -> None:
    store.append([label(0)])
    known = store.begin_run(0)
    store.append([label(1)])
    assert store.begin_run(0) == known == 2
    assert store.begin_run(1) == 3
    assert store.runs() == {0: 2, 1: 3}


def test_migrations_run_once_each_and_are_recorded(tmp_path: Path) -> None:
    def m999_more(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE more (x)")

    path = tmp_path / "project.db"
    open_store(path).close()
    connection = sqlite3.connect(path, isolation_level=None)
    for _ in range(2):
        schema.migrate(connection, path, (*schema.MIGRATIONS, m999_more))
    recorded = connection.execute("SELECT * FROM migrations").fetchall()
    connection.close()
    known = [(number, made.__name__) for number, made in enumerate(schema.MIGRATIONS, start=1)]
    assert recorded == [*known, (len(known) + 1, "m999_more")]
    with pytest.raises(StorageError, match=r"newer version of agcd \(schema 7; this one knows 6\)"):
        Store(path)


def test_records_of_the_first_version_are_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "project.db"
    connection = sqlite3.connect(path, isolation_level=None)
    schema.migrate(connection, path, schema.MIGRATIONS[:1])
    connection.execute("INSERT INTO rows VALUES (0, 'key', 'path', 0)")
    connection.execute("INSERT INTO queries VALUES ('q', 1, 1, 'margin', 'model')")
    connection.execute("INSERT INTO questions VALUES ('q', 0, 0, 'why', 0.5, 3)")
    connection.execute("INSERT INTO leases VALUES ('q', 0, 'ann', 9e9)")
    connection.close()
    with Store(path) as store:
        store.append([create("cat"), label(0)])
        assert [event.kind for event in store.events()] == ["create", "label"]
        query = QueryLog().asked(store).query
        assert query is not None
        assert claim(store, LabelLog(np.zeros(1, bool)), query, "bob", overlap=2) == 0


def test_a_migration_that_fails_leaves_no_trace(tmp_path: Path) -> None:
    def m002_broken(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE half (x)")
        raise RuntimeError("broken")

    path = tmp_path / "project.db"
    open_store(path).close()
    connection = sqlite3.connect(path, isolation_level=None)
    with pytest.raises(RuntimeError, match="broken"):
        schema.migrate(connection, path, (*schema.MIGRATIONS, m002_broken))
    tables = {found[0] for found in connection.execute("SELECT name FROM sqlite_master")}
    connection.close()
    assert "half" not in tables
    Store(path).close()


def test_a_file_that_is_no_database_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "project.db").write_text("this is not a database, but it is long enough to look at" * 20)
    with pytest.raises(StorageError, match="not a database"):
        Store(tmp_path / "project.db")
    with pytest.raises(StorageError, match="no records"):
        Store(tmp_path / "gone.db")
