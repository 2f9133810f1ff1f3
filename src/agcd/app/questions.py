"""Which questions are open, and to whom: two people never get the same one unless they should."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from agcd.app.label_log import LabelLog
from agcd.app.labels import How, LabelView
from agcd.app.store.queries import LEASE_SECONDS, StoredQuery, latest_ids, lease, leases, read_query
from agcd.app.store.store import Store


@dataclass(frozen=True)
class Asked:
    """The query that was asked last, and the last blind audit; audits are a line of their own."""

    query: StoredQuery | None = None
    audit: StoredQuery | None = None


class QueryLog:
    """Follows the queries of one project: questions are read when there are new ones. Several threads may ask it."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], StoredQuery] = {}
        """By id and number of questions, because questions may be added to a query."""
        self._lock = threading.Lock()

    def asked(self, store: Store) -> Asked:
        """What is asked now."""
        with self._lock:
            latest = latest_ids(store)
            self._known = {
                key: self._known[key] if key in self._known else read_query(store, key[0]) for key in latest.values()
            }
            found = {is_audit: self._known[key] for is_audit, key in latest.items()}
        return Asked(found.get(False), found.get(True))


def n_open(view: LabelView, query: StoredQuery | None) -> int:
    """How many questions of a query nobody has answered or settled otherwise."""
    if query is None:
        return 0
    rows = np.array([question.row for question in query.questions], np.int64)
    return int((view.how(rows) == How.NOTHING).sum())


def open_rows(
    view: LabelView,
    query: StoredQuery,
    held: Mapping[int, set[str]],
    who: str,
    *,
    overlap: int = 1,
    except_rows: Collection[int] = (),
) -> Iterator[int]:
    """The rows of the questions that ``who`` may answer, the best first.

    A question is open while fewer than ``overlap`` people have answered it or look at it (``held``), and none of them
    is ``who``. What was accepted by page or removed is not asked any more.
    """
    for question in query.questions:
        row = question.row
        if row not in except_rows and not view.is_closed(row):
            busy = view.people_who_answered(row) | held.get(row, set())
            if who not in busy and len(busy) < overlap:
                yield row


def claim(
    store: Store,
    log: LabelLog,
    query: StoredQuery,
    who: str,
    *,
    holder: str | None = None,
    overlap: int = 1,
    except_rows: Collection[int] = (),
    seconds: float = LEASE_SECONDS,
    now: float | None = None,
) -> int | None:
    """Lease the best open question to ``who``: its row, or None when there is none.

    Nobody else writes between the look and the lease, so that two people who ask at the same moment get two questions.
    ``holder`` tells two browsers of one person apart; ``except_rows`` have answers that are still on their way.
    """
    holder, now = holder or who, time.time() if now is None else now
    with store.transaction():
        held = leases(store, query.id, holder, now)
        rows = open_rows(log.view(store), query, held, who, overlap=overlap, except_rows=except_rows)
        row = next(rows, None)
        if row is not None:
            lease(store, query.id, row, holder, who, now + seconds)
    return row
