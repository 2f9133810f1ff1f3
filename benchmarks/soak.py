"""Many people at one server for long, with two trainings meanwhile: do memory, descriptors and threads stay flat?

    python benchmarks/soak.py --data DIR [--minutes 30] [--people 8] [--pictures 464]

Everybody answers live questions, takes back, looks at every page and fetches pictures, with pauses of a second in the
middle; the first training starts at once, the second after half the time. Prints what the server takes minute by
minute, and the middle of the first and of the last third.
"""

from __future__ import annotations

import argparse
import random
import statistics
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from agcd.config import make_config
from agcd.io import default_cache
from agcd.lab.datasets import load_data
from agcd.lab.person.pool import Drawn, Start, draw_pool
from agcd.lab.person.rounds import make_project, row_of
from page_server import Client, Served, serving

PAGES = ("state", "figures", "board", "grid", "map", "rounds", "names", "job", "classes/alike", "export")
PAUSE = 1.0


@dataclass(frozen=True)
class Taken:
    """What the server takes at one moment."""

    minute: float
    megabytes: float
    descriptors: int
    threads: int
    job: str

    def line(self) -> str:
        numbers = f"{self.minute:.0f} | {self.megabytes:.0f} | {self.descriptors} | {self.threads}"
        return f"| {numbers} | {self.job} |"


class Person(threading.Thread):
    """One person: mostly answers by the truth, and otherwise looks around."""

    def __init__(self, served: Served, number: int, drawn: Drawn, end: threading.Event) -> None:
        super().__init__(name=f"person {number}")
        self.client, self.drawn, self._finish = Client(served, f"person-{number}", iter(())), drawn, end
        self.draw, self.n_requests = random.Random(number), 0
        self.seconds: list[float] = []
        """From an answer to the next question."""

    def run(self) -> None:
        while not self._finish.wait(self.draw.expovariate(1 / PAUSE)):
            if self.draw.random() < 0.7:
                self.answer()
            else:
                self.look()
            self.n_requests += 1

    def answer(self) -> None:
        began = time.perf_counter()
        asked = self.client.get("/api/v1/question", who=self.client.name, holder=self.client.holder, live="true")
        if asked["row"] is None:
            self.client.change("/api/v1/undo")
            return
        name = self.drawn.names[int(self.drawn.truth[row_of(asked["path"])])]
        self.client.change("/api/v1/answers", answers=[{"row": asked["row"], "kind": "label", "name": name}])
        self.seconds.append(time.perf_counter() - began)

    def look(self) -> None:
        if self.draw.random() < 0.5:
            self.client.send("GET", f"/api/v1/{self.draw.choice(PAGES)}")
        else:
            row, size = self.draw.randrange(len(self.drawn.truth)), self.draw.choice((96, 160, 320, 1024))
            self.client.send("GET", f"/image/{row}?size={size}")


def measured(served: Served, client: Client, began: float) -> Taken:
    place = Path(f"/proc/{served.pid}")
    client.http.close()  # the server has closed it, after half a minute without a word
    job = client.get("/api/v1/job")
    assert job["state"] != "failed", job
    n_open, n_threads = (sum(1 for _ in (place / name).iterdir()) for name in ("fd", "task"))
    minute, megabytes = (time.monotonic() - began) / 60, 1024 * served.memory("VmRSS")
    return Taken(minute, megabytes, n_open, n_threads, f"{job['state']} {job['stage']}")


def soak(served: Served, drawn: Drawn, minutes: float, n_people: int) -> None:
    client, end = Client(served, "observer", iter(())), threading.Event()
    client.send("POST", "/api/v1/job", {"kind": "start"})
    while not client.get("/api/v1/state")["is_live"]:
        time.sleep(1)
    people = [Person(served, number, drawn, end) for number in range(n_people)]
    for person in people:
        person.start()
    began, taken, is_second = time.monotonic(), list[Taken](), False
    print("| minute | MB | descriptors | threads | training |\n|---|---|---|---|---|")
    while time.monotonic() - began < 60 * minutes:
        time.sleep(min(60.0, 60 * minutes / 10))
        taken.append(measured(served, client, began))
        print(taken[-1].line(), flush=True)
        assert all(person.is_alive() for person in people), "somebody was refused"
        if not is_second and taken[-1].minute > minutes / 2 and not taken[-1].job.startswith("running"):
            client.send("POST", "/api/v1/job", {"kind": "train"})
            is_second = True
    end.set()
    for person in people:
        person.join()
    seconds = sorted(second for person in people for second in person.seconds)
    n_done = sum(person.n_requests for person in people)
    p95 = 1e3 * seconds[int(0.95 * len(seconds))]
    print(f"\n{n_done:,} things done, {len(seconds):,} of them answers, none refused; second training: {is_second}")
    print(f"a question and its answer took {p95:.0f} ms at p95")
    third = len(taken) // 3
    for what in ("megabytes", "descriptors", "threads"):
        first, last = (
            statistics.median(getattr(one, what) for one in part) for part in (taken[:third], taken[-third:])
        )
        print(f"{what}: {first:.0f} in the first third, {last:.0f} in the last: ratio {last / first:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--people", type=int, default=8)
    parser.add_argument("--pictures", type=int, default=464)
    given = parser.parse_args()
    backbone = make_config({}).backbone.model_copy(update={"trainable_blocks": 0, "views": 1})
    drawn = draw_pool(
        load_data(given.data, default_cache()), Start(20, 8, 5, given.pictures), 0, backbone, default_cache()
    )
    with TemporaryDirectory(prefix="agcd-soak-", ignore_cleanup_errors=True) as folder:
        make_project(drawn.pool, Path(folder) / "project", ())
        with serving(Path(folder) / "project") as served:
            soak(served, drawn, given.minutes, given.people)


if __name__ == "__main__":
    main()
