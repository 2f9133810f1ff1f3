"""A practitioner's whole job in a real browser, by keyboard alone: how many keys and seconds, and what is right then.

    python benchmarks/browser_trial.py --data DIR|texts.csv [--seeds 1] [--answers 60] [--classes 20] [--pictures 464]

``agcd init`` and ``agcd serve`` on a flat folder (8 known classes by 5 labels each, as `agcd bench person` draws them),
then Chromium: live questions, then the review, page by page, to "All … checked". Every key is one that a person would
press: a suggestion's digit, letters of a known name until it is the first in the list, a new name in full. *Waiting* is
the time from the last key of an answer until the next question can be answered. Times are printed, never asserted.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import Browser, Page, Response, expect, sync_playwright

from agcd.config import make_config
from agcd.io import default_cache
from agcd.lab.datasets import load_data
from agcd.lab.person.annotator import Annotator, served
from agcd.lab.person.costs import Costs
from agcd.lab.person.page import Page as OverHttp
from agcd.lab.person.pool import Drawn, Start, draw_pool
from agcd.lab.person.rounds import make_project, nobody, row_of
from agcd.lab.person.run_person import make_person

N_KNOWN, N_LABELS = 8, 5
FIRST_MS, NEXT_MS = 600_000, 60_000
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


class Trial:
    """One browser, one person who knows the truth, and the keys and seconds so far."""

    def __init__(self, page: Page, drawn: Drawn) -> None:
        self.page, self.drawn = page, drawn
        self.n_keys = self.n_answers = 0
        self.waits: list[float] = []
        self.known = set(drawn.pool.known)
        self.card: dict[str, Any] = {}
        self.path_of: dict[int, str] = {}
        is_text = drawn.pool.texts is not None
        self.shown, self.words = (".viewer", "aria-label") if is_text else (".viewer img", "alt")
        page.on("response", self._hear)

    def _hear(self, response: Response) -> None:
        """What the page has just been told to show."""
        if response.status == 200 and "/api/v1/question?" in response.url:
            self.card = response.json()
        elif response.status == 200 and "/api/v1/review?" in response.url:
            self.path_of |= {one["row"]: one["path"] for one in response.json()["pictures"]}

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
            self.n_keys += 1

    def truth(self, path: str) -> str:
        return self.drawn.names[int(self.drawn.truth[row_of(path)])]

    def wait_for_question(self, timeout: float = NEXT_MS) -> int:
        """The row of the question, once it can be answered."""
        shown = self.page.locator(f".card:not(.is-waiting) {self.shown}")
        expect(shown).to_have_attribute(self.words, re.compile(r"^\w+ \d+: which"), timeout=timeout)
        return int(re.findall(r"\d+", shown.get_attribute(self.words) or "")[0])

    def answer(self) -> None:
        row = self.wait_for_question()
        assert row == self.card["row"], "the card is the one that was told"
        name, suggested = self.truth(self.card["path"]), [one["name"] for one in self.card["candidates"]]
        if name in suggested:
            self.press(str(suggested.index(name) + 1))
        else:
            self.type_name(name, "/" if name in self.known else "n")
        began = time.perf_counter()
        self.page.wait_for_function(
            "([row, what, words]) => { const shown = document.querySelector(`.card:not(.is-waiting) ${what}`);"
            " const said = shown?.getAttribute(words) ?? '';"
            " return said.includes('which class') && !said.includes(` ${row}:`); }",
            arg=[row, self.shown, self.words],
            timeout=NEXT_MS,
        )
        self.waits.append(time.perf_counter() - began)
        self.n_answers += 1

    def type_name(self, name: str, key: str) -> None:
        """Open the field for names and type: a known name until it is the first of the list, a new one in full."""
        is_known = name in self.known
        self.press(key)
        expect(self.page.get_by_role("combobox")).to_be_focused()
        for letter in name:
            self.press(letter)
            chosen = self.page.locator(".options [aria-selected=true] strong")
            if is_known and chosen.count() and chosen.inner_text() == name:
                break
        self.press("Enter")
        self.known.add(name)

    def look_over(self) -> bool:
        """Look over a page of the review; False when everything is checked."""
        end = self.page.locator(".review-done h2")
        expect(self.page.locator(".review-tile").first.or_(end)).to_be_visible()
        if end.is_visible():
            return False
        shown = self._shown_name()
        rows = self.page.locator(".review-tile").evaluate_all("all => all.map(one => Number(one.dataset.row))")
        wrong = [row for row in rows if self.truth(self.path_of[row]) != shown]
        for row in wrong:
            self.press(self.page.locator(f".review-tile[data-row='{row}'] kbd").inner_text().lower())
        self.press("Enter")
        for number, row in enumerate(wrong, start=1):
            if len(wrong) > 1:
                expect(self.page.locator(".review-note")).to_have_text(f"{number} of {len(wrong)} wrong ones")
            expect(self.page.locator(".review-name")).to_contain_text("What is it?")
            name, others = self.truth(self.path_of[row]), self.page.locator(".review-other strong").all_inner_texts()
            if name in others:
                self.press(str(others.index(name) + 1))
            else:
                self.type_name(name, "n")
        began = time.perf_counter()
        self.page.wait_for_function(
            "row => document.querySelector('.review-done')"
            " || (document.querySelector('.review-tile')?.dataset.row ?? row) !== row",
            arg=str(rows[0]),
            timeout=NEXT_MS,
        )
        self.waits.append(time.perf_counter() - began)
        return True

    def _shown_name(self) -> str:
        found = re.search(r"shown as (.*)\. Tick", self.page.locator(".review-title").inner_text())
        assert found, self.page.locator(".review-title").inner_text()
        return found[1]


def run(browser: Browser, drawn: Drawn, folder: Path, n_answers: int, seed: int) -> None:
    make_project(drawn.pool, folder, ())
    began = time.perf_counter()
    with served(folder, by_hand=False) as (address, secret):
        http = OverHttp(drawn.pool, make_person(drawn, Costs(), 0.0, seed), Annotator(address, secret, nobody))
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        trial = Trial(page, drawn)
        page.goto(f"{address}/login?token={secret}")
        trial.wait_for_question(FIRST_MS)
        first = time.perf_counter() - began
        began, moments = time.perf_counter(), []
        while trial.n_answers < n_answers:
            trial.answer()
            if trial.n_answers % 10 == 0:
                right = (http.names() == drawn.truth)[drawn.is_hidden].mean()
                moments.append(f"{trial.n_answers} answers, {trial.n_keys} keys: {100 * right:.1f} %")
        n_waits = len(trial.waits)
        page.goto(f"{address}/review")
        while trial.look_over():
            pass
        right = (http.names() == drawn.truth)[drawn.is_hidden].mean()
        said = page.locator(".review-done h2").inner_text()
        http.http.call("/api/v1/job", method="DELETE")
    print(f"seed {seed}: first question {first:.0f} s after `agcd serve`; " + "; ".join(moments))
    _say_waits("from an answer to the next question", trial.waits[:n_waits])
    _say_waits("from a page of the review to the next", trial.waits[n_waits:])
    minutes = (time.perf_counter() - began) / 60
    print(f"  end: “{said}”, {trial.n_keys} keys, {100 * right:.1f} % right, {minutes:.1f} min", flush=True)


def _say_waits(what: str, waits: list[float]) -> None:
    middle, most = 1e3 * statistics.median(waits or [0]), 1e3 * max(waits or [0])
    print(f"  {what}: {middle:.0f} ms in the middle, {most:.0f} ms at most, of {len(waits)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--answers", type=int, default=60)
    parser.add_argument("--classes", type=int, default=20)
    parser.add_argument("--pictures", type=int, default=464, help="rows that are drawn, whatever they are")
    given = parser.parse_args()
    backbone = make_config({}).backbone.model_copy(update={"trainable_blocks": 0, "views": 1})
    start = Start(given.classes, N_KNOWN, N_LABELS, given.pictures)
    dataset = load_data(given.data, default_cache())
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        for seed in range(given.seeds):
            drawn = draw_pool(dataset, start, seed, backbone, default_cache())
            with TemporaryDirectory(prefix="agcd-trial-", ignore_cleanup_errors=True) as folder:
                run(browser, drawn, Path(folder) / "project", given.answers, seed)


if __name__ == "__main__":
    main()
