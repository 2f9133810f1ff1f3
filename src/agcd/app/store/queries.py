"""Questions as they were asked, and who is looking at which."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

from agcd.app.store.store import Store
from agcd.io import digest

LEASE_SECONDS = 300.0
_LONGEST_LEASE = LEASE_SECONDS + 60.0
"""A lease that ends later than so many seconds from now is from before the clock was set back, and has run out. Whoever
waited for a turn to write looks with a clock that is a little behind."""
AUDIT = "audit"
"""The strategy of queries that are drawn at random and answered blind, to measure the model."""
LIVE = "live"
"""The strategy of queries that grow question by question, each decided after all answers so far."""
DRAWN = "drawn"
"""The reason of a live question that was drawn at random."""


@dataclass(frozen=True)
class Question:
    """One row of a query: its rank, why it was chosen, its score, and the slot that the model predicts."""

    row: int
    rank: int
    reason: str
    score: float
    slot: int


@dataclass(frozen=True)
class StoredQuery:
    """A query of one round with its questions in the order of rank."""

    id: str
    round: int
    strategy: str
    model_id: str
    questions: tuple[Question, ...]


def add_query(store: Store, round_: int, strategy: str, model_id: str, questions: Sequence[Question]) -> StoredQuery:
    """Store a query; the same one again is the one that is stored."""
    query_id = digest([round_, strategy, model_id, [question.row for question in questions]])
    with store.transaction():
        if not store.select("SELECT 1 FROM queries WHERE id = ?", (query_id,)):
            store.connection.execute(
                "INSERT INTO queries SELECT ?, coalesce(max(number), 0) + 1, ?, ?, ? FROM queries",
                (query_id, round_, strategy, model_id),
            )
            store.connection.executemany(
                "INSERT INTO questions VALUES (?, ?, ?, ?, ?, ?)",
                [(query_id, q.row, q.rank, q.reason, q.score, q.slot) for q in questions],
            )
    return StoredQuery(query_id, round_, strategy, model_id, tuple(questions))


def latest_ids(store: Store) -> dict[bool, tuple[str, int]]:
    """The id of the query that was asked last and how many questions it has; under True those of the last audit. Live
    ones are left out."""
    statement = """SELECT strategy = ?1, id, (SELECT count(*) FROM questions WHERE query_id = id) FROM queries
        WHERE number IN (SELECT max(number) FROM queries WHERE strategy != ?2 GROUP BY strategy = ?1)"""
    return {bool(audit): (query_id, n) for audit, query_id, n in store.select(statement, (AUDIT, LIVE))}


def live_query(store: Store, round_: int, model_id: str) -> str:
    """The id of the live query of a round over the features of a model, made where there is none."""
    return add_query(store, round_, LIVE, model_id, []).id


def n_live_questions(store: Store) -> int:
    """How many live questions were ever asked."""
    return int(
        store.select("SELECT count(*) FROM questions JOIN queries ON id = query_id WHERE strategy = ?", (LIVE,))[0][0]
    )


@dataclass(frozen=True)
class AskedRow:
    """A live question: its row, why it was chosen, and who looks at it now: "me", "other" or "" (nobody)."""

    query_id: str
    row: int
    reason: str
    by: str


def live_rows_asked(store: Store, holder: str, now: float) -> list[AskedRow]:
    """All live questions in the order they were asked; ``holder`` is "me"."""
    statement = """SELECT q.query_id, q.row, q.reason,
        CASE WHEN max(l.holder = ?2) THEN 'me' WHEN max(l.row) IS NULL THEN '' ELSE 'other' END
        FROM queries JOIN questions q ON q.query_id = id
        LEFT JOIN leases l ON l.query_id = q.query_id AND l.row = q.row AND l.until > ?3 AND l.until <= ?4
        WHERE strategy = ?1 GROUP BY q.query_id, q.row ORDER BY number, q.rank"""
    return [AskedRow(*found) for found in store.select(statement, (LIVE, holder, now, now + _LONGEST_LEASE))]


def read_query(store: Store, query_id: str) -> StoredQuery:
    """A query with all its questions."""
    head = "SELECT id, round, strategy, model_id FROM queries WHERE id = ?"
    body = "SELECT row, rank, reason, score, slot FROM questions WHERE query_id = ? ORDER BY rank"
    questions = tuple(Question(*values) for values in store.select(body, (query_id,)))
    found_id, round_, strategy, model_id = store.select(head, (query_id,))[0]
    return StoredQuery(found_id, round_, strategy, model_id, questions)


def asked(store: Store, rows: Sequence[int]) -> tuple[dict[int, tuple[str, int, str]], int]:
    """The id, round and reason of the last query that asked about each of ``rows``, and how many rounds have begun."""
    statement = """SELECT row, id, round, reason, number FROM queries JOIN questions ON id = query_id
        WHERE row IN (SELECT value FROM json_each(?))
        UNION ALL SELECT -1, '', count(*), '', 0 FROM runs ORDER BY number"""
    rows_asked = store.select(statement, (json.dumps(list(rows)),))
    found = {row: (query_id, round_, reason) for row, query_id, round_, reason, _ in rows_asked}
    _, n_begun, _ = found.pop(-1)
    return found, n_begun


def add_questions(store: Store, query_id: str, questions: Sequence[Question]) -> int:
    """Put more questions at the end of a query; those that are in it already stay as they are. How many were added."""
    with store.transaction():
        statement = "SELECT count(*), coalesce(max(rank), -1) FROM questions WHERE query_id = ?"
        before, last = store.select(statement, (query_id,))[0]
        store.connection.executemany(
            "INSERT OR IGNORE INTO questions VALUES (?, ?, ?, ?, ?, ?)",
            [(query_id, q.row, last + 1 + q.rank, q.reason, q.score, q.slot) for q in questions],
        )
        return int(store.select(statement, (query_id,))[0][0]) - int(before)


def leases(store: Store, query_id: str, holder: str, now: float | None = None) -> dict[int, set[str]]:
    """Who looks at which row of a query now; ``holder``'s own leases are left out."""
    statement = "SELECT row, who FROM leases WHERE query_id = ? AND holder != ? AND until > ? AND until <= ?"
    held: dict[int, set[str]] = {}
    now = time.time() if now is None else now
    for row, who in store.select(statement, (query_id, holder, now, now + _LONGEST_LEASE)):
        held.setdefault(row, set()).add(who)
    return held


def lease(store: Store, query_id: str, row: int, holder: str, who: str, until: float) -> None:
    """Let ``holder``, a browser of ``who``, look at a question alone until then; asking again renews."""
    statement = """INSERT INTO leases (query_id, row, holder, who, until) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (query_id, row, holder) DO UPDATE SET until = excluded.until"""
    with store.transaction():
        store.connection.execute(statement, (query_id, row, holder, who, until))


def strategy_of_round(store: Store) -> dict[int, str]:
    """How the questions that led to each round were chosen; audits are left out."""
    return dict(store.select("SELECT round, strategy FROM queries WHERE strategy != ? ORDER BY number", (AUDIT,)))
