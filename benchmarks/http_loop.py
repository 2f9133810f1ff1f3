"""The page and the benchmark run the same loop: a script labels a served project by the truth, and accuracies agree.

python benchmarks/http_loop.py --data groceries14 --seed 0 --rounds 5
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from agcd import metrics
from agcd.cli.by_hand import make_project
from agcd.lab.cells import Cell, Prepared, prepare, run_cell
from agcd.lab.person.annotator import Annotator, served


def accuracy(prepared: Prepared, folder: Path, number: int) -> float:
    """All-accuracy on the test rows, from the predictions that round ``number`` of the project stored."""
    evaluator = prepared.evaluator
    table = pq.read_table(folder / "runs" / f"{number:03d}" / "predictions.parquet")
    y_slot = np.full(len(evaluator.truth), -1, np.int64)
    y_slot[table["row"].to_numpy()] = table["slot"].to_numpy()
    return metrics.accuracy(evaluator.truth[evaluator.rows], y_slot[evaluator.rows], evaluator.n_old)["acc_all"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="groceries14")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("bench-runs/http-loop"))
    given = parser.parse_args()
    cell = Cell(given.data, "adaptive_novel", given.seed, {"protocol": "short", "query": {"rounds": given.rounds}})
    cache = given.out / "cache"
    records = run_cell(cell, given.out, cache)
    prepared = prepare(cell, cache)
    folder = given.out / f"project-{given.seed}"
    make_project(cell, folder, given.out, cache).close()
    print("Test accuracy (All, per cent) of the same questions and answers:\n")
    print("| round | labels | agcd bench | over HTTP |\n|---|---|---|---|")
    with served(folder) as (address, secret):
        annotator = Annotator(address, secret, lambda row: prepared.evaluator.answer(np.array([row]))[0])
        for number, record in enumerate(records):
            if number:
                annotator.label_round()
                annotator.train_round()
            n_answers = annotator.call("/api/v1/state")["n_answers"]
            ours = 100 * accuracy(prepared, folder, number)
            print(f"| {number} | {n_answers} | {100 * record['acc_all']:.2f} | {ours:.2f} |")


if __name__ == "__main__":
    main()
