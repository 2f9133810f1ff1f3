"""Live questions: each is decided after all answers so far, stored before it is shown, and leased to one browser."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from agcd.app.label_log import LabelLog
from agcd.app.labels import How, LabelView
from agcd.app.live import LiveLog
from agcd.app.rounds import RoundView
from agcd.app.store.queries import (
    DRAWN,
    LEASE_SECONDS,
    LIVE,
    AskedRow,
    Question,
    add_questions,
    lease,
    live_query,
    live_rows_asked,
    n_live_questions,
)
from agcd.app.store.store import Store
from agcd.types import IntArray


@dataclass(frozen=True)
class LiveQuestion:
    """One row that somebody is asked about."""

    query_id: str
    row: int
    number: int
    """How many live questions were asked before it."""
    is_drawn: bool
    """Whether it was drawn at random."""


def claim_live(
    store: Store,
    log: LabelLog,
    live: LiveLog,
    seen: RoundView,
    who: str,
    *,
    holder: str | None = None,
    except_rows: Collection[int] = (),
    seconds: float = LEASE_SECONDS,
    now: float | None = None,
) -> LiveQuestion | None:
    """Lease the next question to ``who``; None when every row has an answer or is asked about.

    A browser that asks again gets the question it has; one that somebody left behind comes before a new one. Nobody
    else writes between the look and the lease, so that no row is asked twice. ``except_rows`` have answers that are
    still on their way.
    """
    holder, now = holder or who, time.time() if now is None else now
    with store.transaction():
        labels, asked = log.view(store), live_rows_asked(store, holder, now)
        rows = np.array([question.row for question in asked], np.int64)
        is_open = (labels.how(rows) == How.NOTHING) & ~np.isin(rows, list(except_rows))
        waiting = [question for question, is_waiting in zip(asked, is_open.tolist(), strict=True) if is_waiting]
        mine = next((q for q in waiting if q.by == "me"), None) or next((q for q in waiting if q.by == ""), None)
        mine = mine or _ask_anew(store, live, labels, seen, rows)
        if mine is None:
            return None
        lease(store, mine.query_id, mine.row, holder, who, now + seconds)
        return LiveQuestion(mine.query_id, mine.row, n_live_questions(store) - 1, mine.reason == DRAWN)


def _ask_anew(store: Store, live: LiveLog, labels: LabelView, seen: RoundView, asked: IntArray) -> AskedRow | None:
    """Decide on the next question and store it; None when nothing is left to ask."""
    found = live.question(labels, seen, asked, n_live_questions(store))
    if found is None:
        return None
    row, is_drawn, gain = found
    query_id, reason = live_query(store, len(store.runs()), seen.facts["model_id"]), DRAWN if is_drawn else LIVE
    add_questions(store, query_id, [Question(row, 0, reason, gain, 0)])
    return AskedRow(query_id, row, reason, "")
