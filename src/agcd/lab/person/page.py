"""Ours at the page, through its own code: ``agcd init``, ``agcd serve`` and HTTP.

Live questions while training goes on in the background, then the review, class by class, until every picture has been
looked at. The person waits only for the first question.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from agcd.errors import StorageError
from agcd.lab.person.annotator import Annotator, served
from agcd.lab.person.pool import Pool
from agcd.lab.person.rounds import make_project, nobody, row_of
from agcd.lab.person.simulated import Person
from agcd.types import UNLABELLED, IntArray

N_ANSWERS = 60
"""Answers after which the person thinks of going over to the review, and does once ten more are likely to change fewer
than ten names: from then on an answer costs more than finding the wrong name in the review."""
POLL_SECONDS = 0.2
PATIENCE_SECONDS = 1800.0


def at_the_page(pool: Pool, person: Person, folder: Path, settings: tuple[str, ...]) -> Generator[IntArray, None, None]:
    """Label at a project served in ``folder``; what all rows are called after every answer and page."""
    make_project(pool, folder, settings)
    with served(folder, by_hand=False) as (address, secret):
        page = Page(pool, person, Annotator(address, secret, nobody, "person"))
        person.prepare(page.wait_for_the_first_question())
        yield page.names()
        n_answers = 0
        while (n_answers < N_ANSWERS or page.answers_pay()) and page.answer():
            n_answers += 1
            yield page.names()
        person.press(1)  # over to the review
        while page.look_over():
            yield page.names()
        page.http.call("/api/v1/job", method="DELETE")  # a training that is under way would outlive the server


class Page:
    """The page as the person uses it. Rows of the project become rows of the pool by the names of the files."""

    def __init__(self, pool: Pool, person: Person, http: Annotator):
        self.pool, self.person, self.http = pool, person, http
        self.class_of = {name: c for c, name in enumerate(person.names)}

    def wait_for_the_first_question(self) -> float:
        """Seconds from now until there is one."""
        began = time.perf_counter()
        while not self.http.call("/api/v1/state")["is_live"]:
            job = self.http.call("/api/v1/job")
            if job["state"] == "failed" or time.perf_counter() - began > PATIENCE_SECONDS:
                raise StorageError(f"There came no question: {job['error']}")
            time.sleep(POLL_SECONDS)
        return time.perf_counter() - began

    def answer(self) -> bool:
        """Say what the next card shows; False when nothing is left to ask."""
        with self.person.waiting():
            card = self.http.question(live=True)
        if card["row"] is None:
            return False
        said = self.name(card["path"], [found["name"] for found in card["candidates"]])
        self.http.label([card["row"]], said)
        return True

    def answers_pay(self) -> bool:
        """Whether the page expects more answers to change at least as many other names."""
        bought = self.http.call("/api/v1/figures")["bought"]
        return bought is not None and bought["n_next"] >= bought["n_answers"]

    def name(self, path: str, suggested: list[str]) -> str:
        """What the person calls a picture that stands alone."""
        known = {self.class_of[name] for name in suggested if name in self.class_of}
        return self.person.names[self.person.name_on_card(row_of(path), known)]

    def look_over(self) -> bool:
        """Look over a page of the review; False when every picture has been looked at."""
        with self.person.waiting():
            shown = self.http.call("/api/v1/review", mode="class")
        if not shown["pictures"]:
            return self.answer()  # pictures without a name, which the review leaves to the questions
        pictures = {row_of(picture["path"]): picture for picture in shown["pictures"]}
        wrong = self.person.find_wrong(list(pictures), self.class_of[shown["shown"]["name"]])
        changes = [self.change(pictures[row]) for row in wrong]
        right = [
            {"row": picture["row"], "class_id": picture["class_id"]}
            for row, picture in pictures.items()
            if row not in wrong
        ]
        body = {"uid": uuid4().hex, "who": self.http.who, "mode": "class", "right": right, "changes": changes}
        self.http.call("/api/v1/review/confirm", body)
        return True

    def change(self, picture: dict[str, Any]) -> dict[str, Any]:
        """What a picture is that was ticked as wrong."""
        others = [other["name"] for other in picture["others"]]
        return {"row": picture["row"], "name": self.name(picture["path"], others)}

    def names(self) -> IntArray:
        """What the page calls every row; a group without a name gives none."""
        y_class = np.full(len(self.pool.y_start), UNLABELLED, np.int64)
        page, n_pages = 0, 1
        while page < n_pages:
            grid = self.http.call("/api/v1/grid", page=str(page))
            for thumb in grid["thumbs"]:
                y_class[row_of(thumb["path"])] = self.class_of.get(thumb["name"], UNLABELLED)
            page, n_pages = page + 1, grid["n_pages"]
        return y_class
