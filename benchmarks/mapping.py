"""Label mapping and accuracy for many classes: the sparse way against the table of all cells.

    python benchmarks/mapping.py [--quick]

A million rows, 90 % of which are predicted as the slot of their class. Both ways must give the same hits and kept
slots. Memory is the most held on top of the rows, and is taken in a run of its own; the largest table takes 2.5 GB.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

from agcd import mapping, metrics
from agcd.assignment import DENSE_CELLS
from agcd.types import IntArray, LabelMapping

SHARE_RIGHT = 0.9


class Case(NamedTuple):
    """Rows (n,), (n,), the number of classes and slots, and the mapping before."""

    y_class: IntArray
    y_slot: IntArray
    k: int
    previous: LabelMapping


class Cost(NamedTuple):
    seconds: float
    n_bytes: int


def make_case(k: int, n: int, seed: int = 0) -> Case:
    rng = np.random.default_rng(seed)
    y_class, slot_of_class = rng.integers(0, k, n), rng.permutation(k)
    right = rng.random(n) < SHARE_RIGHT
    y_slot = np.where(right, slot_of_class[y_class], rng.integers(0, k, n))
    return Case(y_class, y_slot, k, LabelMapping(rng.permutation(k), np.ones(k, dtype=bool), 1.0))


def cost_of(call: Callable[[], object]) -> Cost:
    start = time.perf_counter()
    call()
    seconds = time.perf_counter() - start
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return Cost(seconds, peak)


def map_case(case: Case, limit: int) -> tuple[int, int]:
    """Hits and kept slots of the mapping, with tables of up to ``limit`` cells kept whole."""
    with patch.object(mapping, "DENSE_CELLS", limit):
        found = mapping.map_labels(case.y_class, case.y_slot, case.k, case.k, n_old=0, previous=case.previous)
    kept = found.slot_of_class == case.previous.slot_of_class
    return round(found.agreement * len(case.y_class)), int(kept.sum())


def measure_case(case: Case, limit: int) -> dict[str, float]:
    with patch.object(metrics, "DENSE_CELLS", limit):
        return metrics.accuracy(case.y_class, case.y_slot, case.k // 2)


def compare(case: Case, name: str, call: Callable[[Case, int], object]) -> str:
    sparse = cost_of(lambda: call(case, -1))
    ours = f"{sparse.seconds * 1e3:.0f} ms | {sparse.n_bytes / 1e6:.0f} MB"
    assert call(case, case.k**2) == call(case, -1), f"{name} of {case.k} classes differs"
    dense = cost_of(lambda: call(case, case.k**2))
    plain = f"{dense.seconds * 1e3:,.0f} ms | {dense.n_bytes / 1e6:,.0f} MB"
    ratios = f"{dense.seconds / sparse.seconds:.1f}× | {dense.n_bytes / sparse.n_bytes:.1f}×"
    return f"| {case.k:,} | {name} | {plain} | {ours} | {ratios} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to 1,000 classes and 100,000 rows")
    args = parser.parse_args()
    n, sizes = (100_000, (100, 1_000)) if args.quick else (1_000_000, (100, 1_000, 3_000, 10_000))
    print(f"## Mapping and accuracy, {n:,} rows, {SHARE_RIGHT:.0%} of them right\n")
    print("| classes | step | whole table | memory | sparse | memory | time ratio | memory ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for k in sizes:
        case = make_case(k, n)
        print(compare(case, "`map_labels`", map_case), flush=True)
        print(compare(case, "`accuracy`", measure_case), flush=True)
    print(f"\nUp to {DENSE_CELLS:,} cells the whole table is kept, beyond it the sparse way is taken.")


if __name__ == "__main__":
    main()
