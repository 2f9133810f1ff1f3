"""The tables, as a list of small functions: each is run once, in one transaction with the note that it was run."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from agcd.app.store.seals import digest_of_rows
from agcd.errors import StorageError

Migration = Callable[[sqlite3.Connection], None]


def m001_initial(connection: sqlite3.Connection) -> None:
    """Rows, events, queries, leases, runs."""
    for statement in _INITIAL:
        connection.execute(statement)


_GUARDS_OF_EVENTS = (
    "CREATE INDEX events_by_row ON events(row)",
    "CREATE INDEX events_by_group ON events(group_id)",
    "CREATE INDEX events_by_kind ON events(kind, class_id)",
    """CREATE TRIGGER events_never_change BEFORE UPDATE ON events
        BEGIN SELECT RAISE(ABORT, 'label events are never changed'); END""",
    """CREATE TRIGGER events_never_vanish BEFORE DELETE ON events
        BEGIN SELECT RAISE(ABORT, 'label events are never deleted'); END""",
    # Without this, INSERT OR REPLACE would delete an event and no trigger would notice.
    """CREATE TRIGGER events_come_once BEFORE INSERT ON events
        WHEN EXISTS (SELECT 1 FROM events WHERE uid = NEW.uid OR id = NEW.id)
        BEGIN SELECT RAISE(IGNORE); END""",
)
"""The indices and triggers of the table of events."""
_INITIAL = (
    """CREATE TABLE rows (
        row INTEGER PRIMARY KEY, key TEXT NOT NULL, path TEXT NOT NULL UNIQUE, is_test INTEGER NOT NULL
    )""",
    "CREATE TABLE quarantine (path TEXT NOT NULL, reason TEXT NOT NULL)",
    """CREATE TABLE queries (
        id TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, round INTEGER NOT NULL, strategy TEXT NOT NULL,
        model_id TEXT NOT NULL
    )""",
    """CREATE TABLE questions (
        query_id TEXT NOT NULL REFERENCES queries(id), row INTEGER NOT NULL REFERENCES rows(row),
        rank INTEGER NOT NULL, reason TEXT NOT NULL, score REAL NOT NULL, slot INTEGER NOT NULL,
        PRIMARY KEY (query_id, row)
    )""",
    "CREATE INDEX questions_by_row ON questions(row)",
    """CREATE TABLE events (
        id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL UNIQUE, at TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN (
            'label', 'skip', 'unsure', 'junk', 'accept', 'void', 'create', 'rename', 'merge', 'retire')),
        row INTEGER REFERENCES rows(row), class_id TEXT, who TEXT NOT NULL,
        source TEXT NOT NULL CHECK (source IN ('seed', 'oracle', 'human', 'import')),
        query_id TEXT REFERENCES queries(id), round INTEGER NOT NULL, group_id TEXT, payload TEXT NOT NULL
    )""",
    *_GUARDS_OF_EVENTS,
    "CREATE TABLE dead (event_id INTEGER PRIMARY KEY REFERENCES events(id))",
    """CREATE TABLE leases (
        query_id TEXT NOT NULL, row INTEGER NOT NULL, who TEXT NOT NULL, until REAL NOT NULL,
        PRIMARY KEY (query_id, row, who), FOREIGN KEY (query_id, row) REFERENCES questions(query_id, row)
    )""",
    "CREATE INDEX leases_by_row ON leases(row)",
    "CREATE TABLE runs (number INTEGER PRIMARY KEY, last_event INTEGER NOT NULL)",
)


def m002_leases_by_browser(connection: sqlite3.Connection) -> None:
    """One person may have two tabs open: a lease belongs to a holder, not only to a person. Leases last minutes."""
    connection.execute("DROP TABLE leases")
    connection.execute(
        """CREATE TABLE leases (
            query_id TEXT NOT NULL, row INTEGER NOT NULL, holder TEXT NOT NULL, who TEXT NOT NULL, until REAL NOT NULL,
            PRIMARY KEY (query_id, row, holder), FOREIGN KEY (query_id, row) REFERENCES questions(query_id, row)
        )"""
    )
    connection.execute("CREATE INDEX leases_by_row ON leases(row)")


def m003_no_note_of_voided_events(connection: sqlite3.Connection) -> None:
    """``LabelView`` alone says what is taken back; a second note of it in the database could disagree one day."""
    connection.execute("DROP TABLE dead")


def m004_digests(connection: sqlite3.Connection) -> None:
    """Digests of events, runs and rows. Events and runs of earlier versions have none: events are never changed."""
    connection.execute("ALTER TABLE events ADD COLUMN seal TEXT")
    connection.execute("ALTER TABLE runs ADD COLUMN seal TEXT")
    connection.execute("CREATE TABLE digests (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
    rows = connection.execute("SELECT key, path, is_test FROM rows ORDER BY row").fetchall()
    if rows:
        connection.execute("INSERT INTO digests VALUES ('rows', ?)", (digest_of_rows(*zip(*rows, strict=True)),))


def m005_growing_projects(connection: sqlite3.Connection) -> None:
    """Events that add rows and remove them. SQLite cannot change a CHECK: the table is written anew, as it was."""
    columns = "id, uid, at, kind, row, class_id, who, source, query_id, round, group_id, payload, seal"
    connection.execute(
        """CREATE TABLE events_now (
            id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL UNIQUE, at TEXT NOT NULL,
            kind TEXT NOT NULL CHECK (kind IN (
                'label', 'skip', 'unsure', 'junk', 'accept', 'void', 'create', 'rename', 'merge', 'retire', 'add',
                'remove')),
            row INTEGER REFERENCES rows(row), class_id TEXT, who TEXT NOT NULL,
            source TEXT NOT NULL CHECK (source IN ('seed', 'oracle', 'human', 'import')),
            query_id TEXT REFERENCES queries(id), round INTEGER NOT NULL, group_id TEXT, payload TEXT NOT NULL,
            seal TEXT
        )"""
    )
    connection.execute(f"INSERT INTO events_now ({columns}) SELECT {columns} FROM events ORDER BY id")
    connection.execute("DROP TABLE events")
    connection.execute("ALTER TABLE events_now RENAME TO events")
    for statement in _GUARDS_OF_EVENTS:
        connection.execute(statement)


def m006_contents(connection: sqlite3.Connection) -> None:
    """What rows hold that are no files: texts, records."""
    connection.execute("CREATE TABLE contents (row INTEGER PRIMARY KEY REFERENCES rows(row), content TEXT NOT NULL)")


MIGRATIONS: tuple[Migration, ...] = (
    m001_initial,
    m002_leases_by_browser,
    m003_no_note_of_voided_events,
    m004_digests,
    m005_growing_projects,
    m006_contents,
)
TABLES = frozenset({"migrations", "rows", "events", "runs"})
"""What makes a database the records of a project, whatever its version."""


def is_records(connection: sqlite3.Connection) -> bool:
    """Whether a database holds the records of a project: an empty file is an empty database to SQLite."""
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")} >= TABLES


def is_current(connection: sqlite3.Connection) -> bool:
    """Whether nothing has to be changed before this version can use it."""
    return _version(connection) == len(MIGRATIONS)


def migrate(connection: sqlite3.Connection, path: Path, migrations: tuple[Migration, ...] = MIGRATIONS) -> None:
    """Bring the database up to date; one from a newer version is refused."""
    if _version(connection) == len(migrations):
        return
    for number, migration in enumerate(migrations, start=1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Asked again under the lock: another process may have migrated meanwhile.
            if _version(connection) < number:
                connection.execute("CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT)")
                migration(connection)
                connection.execute("INSERT INTO migrations VALUES (?, ?)", (number, migration.__name__))
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
    if (found := _version(connection)) > len(migrations):
        raise StorageError(
            f"{path} was written by a newer version of agcd (schema {found}; this one knows {len(migrations)}): "
            "update agcd."
        )


def _version(connection: sqlite3.Connection) -> int:
    known = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'migrations'").fetchone()
    return connection.execute("SELECT coalesce(max(number), 0) FROM migrations").fetchone()[0] if known else 0
