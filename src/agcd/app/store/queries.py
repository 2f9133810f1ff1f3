"""Questions as they were asked, and who is looking at which: two people never get the same one unless they should."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agcd.app.store.events import ANSWERS
from agcd.app.store.store import Store
from agcd.io import digest

LEASE_SECONDS = 300.0
AUDIT = "audit"
"""The strategy of queries that are drawn at random and answered blind, to measure the model."""
_ANSWER_KINDS = ", ".join(f"'{kind}'" for kind in ANSWERS)
_ANSWERED = f"""SELECT who FROM events WHERE events.row = questions.row AND kind IN ({_ANSWER_KINDS})
    AND source != 'seed' AND id NOT IN (SELECT event_id FROM dead)"""
_LEASED = "SELECT who FROM leases WHERE leases.row = questions.row AND until > :now AND holder != :holder"
_OPEN = f"""
    row NOT IN (SELECT value FROM json_each(:except_rows)) AND :who NOT IN ({_ANSWERED}) AND :who NOT IN ({_LEASED})
    AND (SELECT count(*) FROM ({_ANSWERED} UNION {_LEASED})) < :overlap
"""
_CLAIM = f"""
    INSERT INTO leases
    SELECT query_id, row, :holder, :who, :until FROM questions
    WHERE query_id = :query_id AND {_OPEN}
    ORDER BY rank LIMIT 1
    ON CONFLICT (query_id, row, holder) DO UPDATE SET until = excluded.until
    RETURNING row
"""


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


def latest_query(store: Store, *, audit: bool = False) -> StoredQuery | None:
    """The query that was asked last; blind audits are a line of their own."""
    found = store.select(
        "SELECT id, round, strategy, model_id FROM queries WHERE (strategy = ?) = ? ORDER BY number DESC LIMIT 1",
        (AUDIT, audit),
    )
    if not found:
        return None
    statement = "SELECT row, rank, reason, score, slot FROM questions WHERE query_id = ? ORDER BY rank"
    questions = tuple(Question(*values) for values in store.select(statement, (found[0][0],)))
    query_id, round_, strategy, model_id = found[0]
    return StoredQuery(query_id, round_, strategy, model_id, questions)


def query_of_row(store: Store, row: int) -> tuple[str, int] | None:
    """The id and round of the last query that asked about ``row``."""
    statement = """SELECT id, round FROM queries JOIN questions ON id = query_id
        WHERE row = ? ORDER BY number DESC LIMIT 1"""
    return next(iter(store.select(statement, (row,))), None)


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


def claim(
    store: Store,
    query_id: str,
    who: str,
    *,
    holder: str | None = None,
    overlap: int = 1,
    except_rows: Sequence[int] = (),
    seconds: float = LEASE_SECONDS,
    now: float | None = None,
) -> int | None:
    """Lease the best open question to ``who``: its row, or None when there is none.

    A question is open while fewer than ``overlap`` people have answered it or hold a lease on it. Asking again
    renews one's own lease. It is one statement, so that two people who ask at the same moment get two questions.
    ``holder`` tells two browsers of one person apart; ``except_rows`` have answers that are still on their way.
    """
    now = time.time() if now is None else now
    values = _open_values(query_id, who, holder, overlap, except_rows, now) | {"until": now + seconds}
    with store.transaction():
        found = store.connection.execute(_CLAIM, values).fetchall()
    return found[0][0] if found else None


def open_rows(
    store: Store,
    query_id: str,
    who: str,
    *,
    holder: str | None = None,
    overlap: int = 1,
    except_rows: Sequence[int] = (),
    limit: int = 10,
) -> list[int]:
    """The rows of the questions that ``who`` would be handed next; nothing is leased."""
    statement = f"SELECT row FROM questions WHERE query_id = :query_id AND {_OPEN} ORDER BY rank LIMIT :limit"
    values = _open_values(query_id, who, holder, overlap, except_rows, time.time()) | {"limit": limit}
    return [row for (row,) in store.select(statement, values)]


def n_unanswered(store: Store, query_id: str) -> int:
    """How many questions of a query nobody has answered yet."""
    statement = f"SELECT count(*) FROM questions WHERE query_id = ? AND NOT EXISTS ({_ANSWERED})"
    return int(store.select(statement, (query_id,))[0][0])


def strategy_of_round(store: Store) -> dict[int, str]:
    """How the questions that led to each round were chosen; audits are left out."""
    return dict(store.select("SELECT round, strategy FROM queries WHERE strategy != ? ORDER BY number", (AUDIT,)))


def _open_values(
    query_id: str, who: str, holder: str | None, overlap: int, except_rows: Sequence[int], now: float
) -> dict[str, Any]:
    values = {"query_id": query_id, "who": who, "holder": holder or who, "overlap": overlap, "now": now}
    return values | {"except_rows": json.dumps(list(except_rows))}
