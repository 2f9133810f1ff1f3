"""How fast the labelling page is with a million rows: the real server as a process of its own, asked over HTTP.

    python benchmarks/page.py [--rows 1000000] [--texts] [--requests 200] [--folder KEPT]

Every page is asked for right after an answer, so that nothing can be left over from the request before. CPU is what
the server's threads spent on a request of the single client, which other work on the machine does not change much.
Times are printed, never asserted; Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import statistics
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from agcd.app.round_files import open_round_view
from agcd.app.store.events import new_uid
from page_project import fresh_project
from page_server import Client, Served, serving

LABEL_GOAL, PAGE_GOAL = 0.05, 1.0
"""Seconds."""
LIVE_GOALS = {10_000: 0.1, 1_000_000: 0.25}
"""Seconds to the next live question, by rows up to which it holds."""
N_CLIENTS = 4
BOARD_SORTS = ("size", "name", "agreement", "conflicts", "new")
GRID_SHOWS = ("all", "unlabelled", "labelled", "accepted", "junk", "passed", "disagree")
GRID_ORDERS = ("uncertain", "confident", "class")


@dataclass
class Task:
    """One thing to measure, and the times it took, by number of clients."""

    name: str
    call: Callable[[Client], object]
    goal: float = PAGE_GOAL
    is_frequent: bool = False
    """Asked for ten times as often as other pages."""
    times: dict[int, list[float]] = field(default_factory=dict)
    cpu: list[float] = field(default_factory=list)

    def line(self) -> str:
        columns, reached = [f"{1e3 * statistics.median(self.cpu):.0f}"], True
        for times in self.times.values():
            median, high = np.quantile(times, [0.5, 0.95])
            columns += [f"{1e3 * value:.0f}" for value in (median, high, max(times))]
            reached &= bool(high <= self.goal)
        goal = f"{1e3 * self.goal:.0f}"
        return f"| {self.name} | {' | '.join(columns)} | {goal} | {'yes' if reached else 'no'} |"


def tasks(n_rows: int, *, texts: bool) -> list[Task]:
    """Everything that a labelling page asks for."""
    live_goal = next((goal for most_rows, goal in LIVE_GOALS.items() if n_rows <= most_rows), max(LIVE_GOALS.values()))
    found = [
        Task("store a label", Client.label, LABEL_GOAL, is_frequent=True),
        Task("state", lambda c: c.get("/api/v1/state"), is_frequent=True),
        Task("query card", lambda c: c.get("/api/v1/question", who=c.name, holder=c.holder), is_frequent=True),
        Task("answer, and the next live question", Client.answer_live, live_goal, is_frequent=True),
        Task("figures", lambda c: c.get("/api/v1/figures")),
        Task("review", lambda c: c.get("/api/v1/review", mode="class")),
        _item() if texts else _thumbnail(),
        Task("undo", lambda c: c.change("/api/v1/undo")),
        Task("names", lambda c: c.get("/api/v1/names")),
    ]
    found += [_get(f"board by {sort}", "/api/v1/board", sort=sort) for sort in BOARD_SORTS]
    found += [
        Task("members, border", lambda c: c.get("/api/v1/members", key=c.keys[0], order="border")),
        Task("split preview", lambda c: c.get("/api/v1/classes/split-preview", key=c.keys[0])),
        Task("merge preview", lambda c: c.get("/api/v1/classes/merge-preview", one=c.keys[0], into=c.keys[1])),
        Task("grow, first page", lambda c: c.get("/api/v1/grow", key=c.keys[0], order=c.holder)),
        Task("grow, later page", lambda c: c.get("/api/v1/grow", key=c.keys[0], order=c.holder, page=3)),
        Task("neighbours", lambda c: c.get(f"/api/v1/rows/{next(c.rows)}/neighbours")),
    ]
    found += [_get(f"grid, {show}", "/api/v1/grid", show=show) for show in GRID_SHOWS]
    found += [_get(f"grid, all, {order}", "/api/v1/grid", order=order, page=n_rows // 200) for order in GRID_ORDERS]
    found += [
        _get(f"grid, unlabelled, {order}", "/api/v1/grid", show="unlabelled", order=order) for order in GRID_ORDERS
    ]
    found += [
        Task("grid, one class, uncertain", lambda c: c.get("/api/v1/grid", key=c.keys[0], order="uncertain")),
        Task("grid, chosen on the map", _selection),
        _get("grid, a word searched", "/api/v1/grid", text="ea 1"),
        _get("map", "/api/v1/map"),
        _get("rounds", "/api/v1/rounds"),
    ]
    return found


def _thumbnail() -> Task:
    return Task("thumbnail", lambda c: c.send("GET", f"/image/{next(c.rows)}?size=160"), is_frequent=True)


def _item() -> Task:
    return Task("text at full length", lambda c: c.get(f"/api/v1/items/{next(c.rows)}"), is_frequent=True)


def _get(name: str, path: str, **params: Any) -> Task:
    return Task(name, lambda client: client.get(path, **params))


def _selection(client: Client) -> None:
    rows = [next(client.rows) for _ in range(100)]
    made = json.loads(client.send("POST", "/api/v1/selections", {"rows": rows}))
    client.get("/api/v1/grid", show="selection", selection=made["id"], order="uncertain")


def measure(served: Served, clients: list[Client], task: Task, n: int) -> None:
    """Let every client ask ``n`` times, all at once; each request comes after an answer."""
    times: list[float] = []

    def work(client: Client) -> None:
        client.http.close()  # the server may have done so while others were measured; the next request opens it anew
        for _ in range(n):
            if task.call not in (Client.label, Client.answer_live):
                client.label()
            before, start = served.cpu() if len(clients) == 1 else 0.0, time.perf_counter()
            task.call(client)
            times.append(time.perf_counter() - start)
            if len(clients) == 1:
                task.cpu.append(served.cpu() - before)

    threads = [threading.Thread(target=work, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(times) == n * len(clients), "a client failed"
    task.times[len(clients)] = times


def label_among_others(served: Served, clients: list[Client], pages: list[Task], n: int) -> Task:
    """One person labels while the others turn pages without a pause."""
    is_over = threading.Event()

    def turn(client: Client, first: int) -> None:
        number = first
        client.http.close()
        while not is_over.is_set():
            pages[number % len(pages)].call(client)
            number += 1

    threads = [threading.Thread(target=turn, args=(client, 7 * i)) for i, client in enumerate(clients[1:])]
    for thread in threads:
        thread.start()
    label = Task(f"store a label while {len(threads)} turn pages", Client.label, LABEL_GOAL)
    measure(served, clients[:1], label, n)
    is_over.set()
    for thread in threads:
        thread.join()
    return label


def bare_commit(folder: Path, n: int) -> float:
    """The plain way to keep an answer: median seconds of one insert and its commit, as safe as in our records."""
    with TemporaryDirectory(dir=folder) as place:
        connection = sqlite3.connect(Path(place) / "bare.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE said (row INTEGER, class_id TEXT)")
        times = []
        for row in range(n):
            start = time.perf_counter()
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO said VALUES (?, ?)", (row, new_uid()))
            connection.execute("COMMIT")
            times.append(time.perf_counter() - start)
        connection.close()
    return statistics.median(times)


def run(folder: Path, n_rows: int, n_requests: int, *, texts: bool) -> None:
    """Measure everything with one client and with several, and print it."""
    atlas = open_round_view(folder, 0)
    assert atlas is not None
    rows = np.random.default_rng(1).permutation(atlas.order).tolist()
    found = tasks(n_rows, texts=texts)
    with serving(folder) as served:
        names = ("cat", "dan", "eve", "fay")[:N_CLIENTS]
        clients = [Client(served, name, iter(rows[i::N_CLIENTS])) for i, name in enumerate(names)]
        commit = bare_commit(folder, n_requests)
        for task in found:
            n = n_requests if task.is_frequent else max(5, n_requests // 10)
            measure(served, clients[:1], task, n)
            measure(served, clients, task, max(2, n // N_CLIENTS))
            print(f"{task.name}: {1e3 * statistics.median(task.times[1]):.0f} ms", file=sys.stderr)
        pages = [task for task in found if not (task.is_frequent or task.name == "undo")]
        among = label_among_others(served, clients, pages, n_requests)
        peak, own = served.memory("VmHWM"), served.memory("RssAnon")
        assert not served.has_loaded("libtorch"), "the server must never load torch"
    print(f"{n_rows:,} rows; milliseconds; reached: the 95 % quantiles are within the goal")
    print(f"other work on this machine: load {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores\n")
    print_table(found, among)
    ratio = statistics.median(found[0].times[1]) / commit
    print(f"a bare SQLite commit: {1e3 * commit:.2f} ms; a label over HTTP takes {ratio:.0f} times as long")
    print(f"start: {served.seconds:.1f} s; memory: at most {peak:.2f} GB resident, {own:.2f} GB its own at the end")
    print("torch was not loaded")


def print_table(found: list[Task], among: Task) -> None:
    print(f"| | CPU | 1 client p50 | p95 | max | {N_CLIENTS} clients p50 | p95 | max | goal | reached |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for task in found:
        print(task.line())
    median, high = 1e3 * np.quantile(among.times[1], [0.5, 0.95])
    print(f"\n{among.name}: p50 {median:.0f} ms, p95 {high:.0f} ms, max {1e3 * max(among.times[1]):.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--texts", action="store_true", help="sentences in place of pictures")
    parser.add_argument("--requests", type=int, default=200, help="labels stored; a tenth for most pages")
    parser.add_argument("--folder", type=Path, help="keep the project here for the next run; default: deleted")
    given = parser.parse_args()
    with TemporaryDirectory(prefix="agcd-page-") as temporary:
        kept = given.folder.resolve() if given.folder else Path(temporary)
        folder = fresh_project(kept, given.rows, partial(print, file=sys.stderr), texts=given.texts)
        run(folder, given.rows, given.requests, texts=given.texts)


if __name__ == "__main__":
    main()
