"""Whether the page says the truth while somebody labels: recorded runs over HTTP, compared with the truth.

    python benchmarks/honest_page.py --data DIR [--data DIR …] [--seeds 3] [--answers 100] [--classes 20] [--pictures N]

Every run draws classes with its seed (8 known by 5 labels each) and answers live questions by the truth. After every
answer the figure in the strip, the names of all pictures and the board are recorded. *Inside*: the share of moments
with a figure at which the true share of right names lies in its interval. *Contradicted*: groups shown under a name
although most of the answered pictures that are shown in them carry another; *without own*: the same for the answered
pictures that would be in the group if their own answer were not known; *mostly wrong*: names that at least five
pictures carry, most of which truly are something else. Nothing trains meanwhile. Markdown.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from agcd.config import make_config
from agcd.io import default_cache
from agcd.lab.datasets import load_data
from agcd.lab.person.annotator import Annotator, served
from agcd.lab.person.costs import Costs
from agcd.lab.person.page import Page
from agcd.lab.person.pool import Drawn, Start, draw_pool
from agcd.lab.person.rounds import make_project, nobody
from agcd.lab.person.run_person import make_person

N_KNOWN, N_LABELS = 8, 5
FEWEST_PICTURES = 5


class Recorder:
    """Counts what is seen after every answer of one run."""

    def __init__(self, page: Page, drawn: Drawn) -> None:
        self.page, self.drawn = page, drawn
        self.n_figures = self.n_inside = self.n_better = 0
        self.n_groups = self.n_contradicted = self.n_without_own = self.n_mostly_wrong = 0
        self.widths: list[float] = []

    def look(self) -> None:
        names, hidden = self.page.names(), self.drawn.is_hidden
        right = float((names == self.drawn.truth)[hidden].mean())
        figure = self.page.http.call("/api/v1/figures")["accuracy"]
        if figure is not None:
            self.n_figures += 1
            self.n_inside += figure["low"] <= right <= figure["high"]
            self.n_better += right > figure["high"]
            self.widths.append((figure["high"] - figure["low"]) / 2)
        for name in np.unique(names[hidden & (names >= 0)]).tolist():
            own = hidden & (names == name)
            self.n_mostly_wrong += bool(own.sum() >= FEWEST_PICTURES and (self.drawn.truth[own] == name).mean() < 0.5)
        self._look_at_groups()

    def _look_at_groups(self) -> None:
        page, n_pages = 0, 1
        while page < n_pages:
            board = self.page.http.call("/api/v1/board", page=str(page))
            for card in board["cards"]:
                if card["is_named"]:
                    self.n_groups += 1
                    self.n_contradicted += 2 * self._n_others(card) > card["n_labels"]
                    self.n_without_own += 2 * card["n_agree"] < card["n_said"]
            page, n_pages = page + 1, board["n_pages"]

    def _n_others(self, card: dict[str, str]) -> int:
        """Answered pictures that are shown in a group and carry another name."""
        shown = self.page.http.call("/api/v1/grid", show="labelled", key=card["key"])
        return sum(thumb["name"] != card["name"] for thumb in shown["thumbs"])


def record(drawn: Drawn, folder: Path, n_answers: int, seed: int) -> Recorder:
    make_project(drawn.pool, folder, ())
    with served(folder) as (address, secret):
        person = make_person(drawn, Costs(), 0.0, seed)
        page = Page(drawn.pool, person, Annotator(address, secret, nobody, "person"))
        page.http.call("/api/v1/job", {"kind": "start"})
        page.wait_for_the_first_question()
        page.http.call("/api/v1/job", method="DELETE")
        recorder = Recorder(page, drawn)
        for _ in range(n_answers):
            if not page.answer():
                break
            recorder.look()
    return recorder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", action="append", required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--answers", type=int, default=100)
    parser.add_argument("--classes", type=int, default=20)
    parser.add_argument("--pictures", type=int)
    given = parser.parse_args()
    backbone = make_config({}).backbone.model_copy(update={"trainable_blocks": 0, "views": 1})
    start = Start(given.classes, N_KNOWN, N_LABELS, given.pictures)
    heads = (
        "data",
        "seed",
        "moments with a figure",
        "inside",
        "better than said",
        "half-width",
        "named groups seen",
        "contradicted",
        "without own",
        "mostly wrong",
    )
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    total = np.zeros(2)
    for data in given.data:
        dataset = load_data(data, default_cache())
        for seed in range(given.seeds):
            drawn = draw_pool(dataset, start, seed, backbone, default_cache())
            with TemporaryDirectory(prefix="agcd-honest-") as folder:
                found = record(drawn, Path(folder) / "project", given.answers, seed)
            total += found.n_inside, found.n_figures
            share = f"{100 * found.n_inside / max(1, found.n_figures):.0f} %"
            width = f"{100 * float(np.mean(found.widths or [np.nan])):.1f}"
            counts = f"{found.n_groups} | {found.n_contradicted} | {found.n_without_own} | {found.n_mostly_wrong}"
            inside = f"{found.n_figures} | {share} | {found.n_better} | {width}"
            print(f"| {Path(data).name} | {seed} | {inside} | {counts} |", flush=True)
    print(f"\nInside in all: {100 * total[0] / max(1, total[1]):.1f} % of {total[1]:.0f} moments")


if __name__ == "__main__":
    main()
