"""Ours in rounds, through the page's own code: ``agcd init``, ``agcd serve`` and HTTP, with real training.

What the page asks of a person now: start, wait for base training, answer the questions, start a round and wait again.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np

from agcd.data.tables import write_table
from agcd.errors import StorageError
from agcd.io import read_json
from agcd.lab.person.annotator import Annotator, served
from agcd.lab.person.pool import Pool
from agcd.lab.person.simulated import Person
from agcd.types import UNLABELLED, IntArray

READING = "reading pictures"
"""The stage of a job in which features are computed."""
N_TICKS = 12
"""Pictures of the screen "which of these are also it?" (``N_ASKED`` of the page)."""


def by_rounds(pool: Pool, person: Person, folder: Path, settings: tuple[str, ...]) -> Generator[IntArray, None, None]:
    """Label in rounds at a project served in ``folder``; what all rows are called after every answer and round."""
    make_project(pool, folder, settings)
    with served(folder) as (address, secret):
        clock = time.perf_counter if person.clock is time.perf_counter else JobClock(folder / "cache" / "job")
        page = _Page(pool, person, Annotator(address, secret, nobody, "person", clock))
        page.start()
        yield page.names()
        while (card := page.http.question())["row"] is not None:
            while card["row"] is not None:
                page.answer(card)
                yield page.names()
                card = page.http.question()
            person.press(1)
            person.wait(sum(page.http.run_job("round").values()))
            yield page.names()


class _Page:
    """The page as the person uses it. Rows of the project become rows of the pool by the names of the files."""

    def __init__(self, pool: Pool, person: Person, http: Annotator):
        self.pool, self.person, self.http = pool, person, http
        self.row_of: dict[int, int] = {}
        self.class_of = {name: c for c, name in enumerate(person.names)}

    def start(self) -> None:
        """Read the images, which counts for no way, and wait for base training."""
        self.person.click()
        for kind in ("prepare", "round"):
            stages = self.http.run_job(kind)
            self.person.prepare(stages.pop(READING, 0.0))
            self.person.wait(sum(stages.values()))
        self.row_of = {int(line["row"]): row_of(line["path"]) for line in self._predictions()}

    def answer(self, card: Any) -> None:
        """Say what the card shows; after a new name also which of the nearest are it, as the page asks."""
        row, known = card["row"], set(self.person.known)
        shown = [found["name"] for found in card["candidates"] if found["is_named"]]
        shown += [found["name"] for found in card["labelled_neighbours"][:1]]
        said = self.person.name_on_card(self.row_of[row], {self.class_of[name] for name in shown})
        rows = [row]
        if said not in known:
            near = [found["row"] for found in self.http.call(f"/api/v1/rows/{row}/neighbours", n=str(N_TICKS))]
            ticked = set(self.person.tick([self.row_of[other] for other in near], said)) if near else set()
            rows += [other for other in near if self.row_of[other] in ticked]
        self.http.label(rows, self.person.names[said])

    def names(self) -> IntArray:
        """What the exported predictions call every row; a group without a name gives none."""
        y_class = np.full(len(self.pool.y_start), UNLABELLED, np.int64)
        for line in self._predictions():
            y_class[row_of(line["path"])] = self.class_of.get(line["class"], UNLABELLED)
        return y_class

    def _predictions(self) -> list[dict[str, str]]:
        text = self.http.fetch("/api/v1/export/predictions.csv").decode("utf-8")
        return list(csv.DictReader(io.StringIO(text)))


class JobClock:
    """Seconds of a core that the jobs of a project have used, by Linux's count of processes.

    On a machine that others work on as well, it tells how long a job would take that has a core for itself.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.seconds: dict[int, float] = {}
        """Of each process, when it was last seen."""

    def __call__(self) -> float:
        try:
            pid = int(read_json(self.folder / "progress.json")["pid"])
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # no job has begun, or its process has left
            return sum(self.seconds.values())
        # After the name and the state: user and system time of the process and of its children that have ended.
        self.seconds[pid] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        return sum(self.seconds.values())


def nobody(row: int) -> str:
    raise AssertionError("the person answers, not the script")


def row_of(path: str) -> int:
    return int(Path(path).stem)


def _clear(folder: Path) -> None:
    """Remove what a run that was broken off left there, but for the features, which do not depend on it."""
    for path in [*folder.glob("*"), *folder.glob("cache/*")]:
        if path.name not in ("cache", "features"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def make_project(pool: Pool, folder: Path, settings: tuple[str, ...]) -> None:
    """Write the items under names that are numbers, and the known labels, and call ``agcd init``."""
    _clear(folder)
    source = _write_texts(pool, folder) if pool.texts is not None else _write_images(pool, folder)
    overrides = [part for setting in settings for part in ("--set", setting)]
    command = ["init", str(folder), *source, *overrides]
    done = subprocess.run([sys.executable, "-m", "agcd.cli", *command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise StorageError(f"agcd init failed: {done.stderr.strip()}")


def _write_texts(pool: Pool, folder: Path) -> list[str]:
    assert pool.texts is not None
    labels = ["" if c < 0 else pool.known[c] for c in pool.y_start.tolist()]
    ids = [f"{row:06d}" for row in range(len(labels))]
    write_table(folder / "texts.csv", {"id": ids, "text": list(pool.texts), "label": labels})
    return ["--texts", str(folder / "texts.csv")]


def _write_images(pool: Pool, folder: Path) -> list[str]:
    assert pool.paths is not None
    images = folder / "images"
    (images / "unlabelled").mkdir(parents=True)
    names = [f"unlabelled/{row:06d}{path.suffix.lower()}" for row, path in enumerate(pool.paths)]
    for path, name in zip(pool.paths, names, strict=True):
        shutil.copyfile(path, images / name)
    labelled = np.flatnonzero(pool.y_start >= 0).tolist()
    labels = [pool.known[pool.y_start[row]] for row in labelled]
    write_table(folder / "labels.csv", {"path": [names[row] for row in labelled], "label": labels})
    return ["--images", str(images), "--labels", str(folder / "labels.csv")]
