"""What one answer costs: new beliefs and the next question, beside computing everything anew.

    python benchmarks/one_answer.py [--quick] [--rows N …]

Unit embeddings around 200 directions, every tenth row of half of them labelled from the start. *Answer* adds a label to
the beliefs over all rows; *question* takes the answer in and finds the next row among at most 10,000 of them; *anew*
propagates all labels over the whole graph. *Same class* is the share of the rows that the labels make clear (certainty
of at least ¼) for which both say the same. In a pool of more than 20,000 rows the neighbours of a row are drawn from
its own direction, as looking for them is not what is measured. Milliseconds, medians; Markdown.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array

from agcd.asking import Asking
from agcd.beliefs import Beliefs
from agcd.propagation import EXACT_ROWS, N_NEIGHBOURS, neighbour_graph, normalised_graph, propagate_labels
from agcd.types import FloatArray, IntArray

N_CLASSES, N_OLD, WIDTH = 200, 100, 64
N_ASKED = 10_000
"""Rows among which the next question is looked for, as the strategy does by default."""
N_ANSWERS = 30
CLEAR = 0.25
"""Rows of this certainty are compared; of the others it is chance which class has a little more."""


def make_pool(n: int) -> tuple[FloatArray, IntArray, csr_array]:
    """Features, classes and neighbour graph."""
    rng = np.random.default_rng(0)
    y_class = rng.integers(N_CLASSES, size=n)
    x = 2 * rng.normal(size=(N_CLASSES, WIDTH))[y_class] + rng.normal(size=(n, WIDTH))
    if n <= EXACT_ROWS:
        return x, y_class, neighbour_graph(x)
    members = np.argsort(y_class, kind="stable")
    place = np.argsort(members)
    steps = np.maximum(1, rng.geometric(0.05, size=(n, N_NEIGHBOURS))) * rng.choice([-1, 1], size=(n, N_NEIGHBOURS))
    near = members[(place[:, None] + steps) % n]
    return x, y_class, normalised_graph(near, rng.uniform(0.5, 1, size=near.shape).astype(np.float32))


def timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - start)


def measure(n: int) -> str:
    """A line of the table."""
    x, truth, graph = make_pool(n)
    labelled = np.flatnonzero((truth < N_OLD) & (np.arange(n) % 10 == 0))
    y_class = np.full(n, -1)
    y_class[labelled] = truth[labelled]
    beliefs = Beliefs(graph, N_CLASSES)
    beliefs.add_all(y_class)
    sample = np.random.default_rng(1).permutation(n)[:N_ASKED]
    asking = Asking(x[sample], y_class[sample])
    answers, questions = [], []

    def next_question() -> int:
        found.append(asking.next())
        return found[-1]

    for _ in range(N_ANSWERS):
        found: list[int] = []
        questions.append(timed(next_question))
        row = int(sample[found[0]])
        y_class[row] = truth[row]
        questions[-1] += timed(lambda place=found[0], y=int(truth[row]): asking.tell(place, y))  # type: ignore[misc]
        answers.append(timed(lambda r=row: beliefs.add(np.array([r]), int(truth[r]))))  # type: ignore[misc]
    start = time.perf_counter()
    anew = propagate_labels(graph, y_class, N_CLASSES)
    whole = 1e3 * (time.perf_counter() - start)
    clear = anew.certainty >= CLEAR
    same = float((beliefs.at().y_class == anew.y_class)[clear].mean())
    answer, question = np.median(answers), np.median(questions)
    figures = f"{answer:.0f} | {question:.0f} | {answer + question:.0f} | {whole:.0f} | {whole / answer:.0f}×"
    return f"| {n:,} | {figures} | {100 * same:.1f} % |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--quick", action="store_true", help="small pools only")
    arguments = parser.parse_args()
    print("| rows | answer | question | both | anew | anew / answer | same class |")
    print("|---|---|---|---|---|---|---|")
    for n in [2_000, 30_000] if arguments.quick else arguments.rows:
        print(measure(n), flush=True)


if __name__ == "__main__":
    main()
