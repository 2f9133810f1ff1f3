"""Questions and leases: two people never get the same one, unless they should."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agcd.app.questions import QueryLog, claim, n_open, open_rows
from agcd.app.store.queries import (
    AUDIT,
    Question,
    StoredQuery,
    add_query,
    add_questions,
    asked,
    leases,
)
from agcd.app.store.store import Store
from support import TESTS
from support.events import label, open_log, open_store, void


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with open_store(tmp_path / "project.db") as opened:
        yield opened


def take(store: Store, query: StoredQuery, who: str, **options: Any) -> int | None:
    return claim(store, open_log(), query, who, **options)


def questions(rows: list[int]) -> list[Question]:
    return [Question(row, rank, f"why {row}", 0.5, 3) for rank, row in enumerate(rows)]


def test_a_query_is_stored_once_and_the_last_one_is_found(store: Store) -> None:
    first = add_query(store, 1, "margin", "model", questions([3, 1]))
    second = add_query(store, 1, "margin", "model", questions([1, 2]))
    assert add_query(store, 1, "margin", "model", questions([3, 1])) == first
    assert QueryLog().asked(store).query == second
    assert asked(store, [3, 1, 0]) == ({3: (first.id, 1, "why 3"), 1: (second.id, 1, "why 1")}, 0)


def test_a_lease_runs_out_and_an_undone_answer_opens_the_question(store: Store) -> None:
    query = add_query(store, 1, "margin", "model", questions([3, 1]))
    assert take(store, query, "ann", now=0, seconds=10) == 3
    assert take(store, query, "ann", now=5, seconds=10) == 3  # renewed
    assert take(store, query, "bob", now=14, seconds=10) == 1
    assert take(store, query, "eve", now=14, seconds=10) is None
    assert take(store, query, "eve", now=15, seconds=10) == 3
    answer = store.append([label(3, who="eve", query_id=query.id)])[0]
    assert take(store, query, "eve", now=100) == 1
    store.append([void(answer.uid)])
    assert take(store, query, "ann", now=100) == 3


def test_with_overlap_each_question_goes_to_that_many_people(store: Store) -> None:
    query = add_query(store, 1, "margin", "model", questions([3]))
    got = [take(store, query, who, overlap=2) for who in ("ann", "bob", "eve")]
    assert got == [3, 3, None]
    store.append([label(3, who="ann")])
    assert take(store, query, "ann", overlap=2) is None
    assert take(store, query, "bob", overlap=2) == 3


def test_two_browsers_of_one_person_never_get_the_same_question(store: Store) -> None:
    query = add_query(store, 1, "margin", "model", questions([3, 1]))
    got = [take(store, query, "ann", holder=holder, overlap=2) for holder in ("one", "two", "three", "one")]
    assert got == [3, 1, None, 3]
    assert take(store, query, "bob", holder="four", overlap=2) == 3


def test_questions_can_be_added_at_the_end_and_looked_at_without_a_lease(store: Store) -> None:
    query = add_query(store, 1, "margin", "model", questions([3, 1]))
    log, queries = open_log(), QueryLog()
    assert queries.asked(store).query == query
    assert add_questions(store, query.id, questions([1, 0, 2])) == 2
    longer = queries.asked(store).query
    assert longer is not None

    def open_to(who: str) -> list[int]:
        return list(open_rows(log.view(store), longer, leases(store, longer.id, who), who))

    assert open_to("ann") == [3, 1, 0, 2]
    assert take(store, longer, "ann") == 3
    assert open_to("bob") == [1, 0, 2]
    assert open_to("ann") == [3, 1, 0, 2]
    store.append([label(3, query_id=query.id)])
    assert n_open(log.view(store), longer) == 3


def test_an_audit_is_no_query_of_the_round(store: Store) -> None:
    query = add_query(store, 1, "margin", "model", questions([3]))
    audit = add_query(store, 1, AUDIT, "model", questions([1]))
    found = QueryLog().asked(store)
    assert (found.query, found.audit) == (query, audit)


CLAIMER = """
import sys
from pathlib import Path
from agcd.app.questions import QueryLog, claim
from agcd.app.store.events import LabelEvent
from agcd.app.store.store import Store
from support.events import open_log
with Store(Path(sys.argv[1])) as store:
    query, log = QueryLog().asked(store).query, open_log(61)
    while (row := claim(store, log, query, sys.argv[2])) is not None:
        store.append([LabelEvent("skip", sys.argv[2], "human", row=row)])
        print(row)
"""


def test_processes_never_get_the_same_question(tmp_path: Path) -> None:
    path = tmp_path / "project.db"
    with open_store(path, 61) as store:
        add_query(store, 1, "margin", "model", questions(list(range(60))))
    people = [
        subprocess.Popen([sys.executable, "-c", CLAIMER, str(path), who], stdout=subprocess.PIPE, text=True, cwd=TESTS)
        for who in ("ann", "bob", "eve")
    ]
    got = [[int(line) for line in person.communicate(timeout=60)[0].split()] for person in people]
    assert sorted(row for rows in got for row in rows) == list(range(60))


def test_threads_that_claim_at_once_never_get_the_same_question(tmp_path: Path) -> None:
    path = tmp_path / "project.db"
    with open_store(path, 41) as store:
        query = add_query(store, 1, "margin", "model", questions(list(range(40))))

    def one_claim(number: int) -> int | None:
        with Store(path) as own:
            return claim(own, open_log(41), query, f"person {number}")

    with ThreadPoolExecutor(8) as threads:
        got = list(threads.map(one_claim, range(50)))
    assert sorted(row for row in got if row is not None) == list(range(40))


def test_threads_that_say_the_same_thing_store_it_once(tmp_path: Path) -> None:
    path = tmp_path / "project.db"
    open_store(path).close()
    event = label(0)

    def say(_: int) -> int:
        with Store(path) as own:
            return own.append([event])[0].id

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(say, range(24)))) == 1


def test_a_lease_from_before_the_clock_was_set_back_has_run_out(store: Store) -> None:
    query = add_query(store, 1, "margin", "model", questions([3, 1]))
    assert take(store, query, "ann", now=7200) == 3
    assert take(store, query, "bob", now=7201) == 1
    assert take(store, query, "eve", now=0) == 3
