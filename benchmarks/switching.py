"""When each rule of stability lets Adaptive-Novel switch, on embeddings made as hard as one likes.

    python benchmarks/switching.py DATA [--per-class N] [--noise S …] [--slots F …] [--protocol short] [--rounds 5]
                                   [--seeds 3] [--set train.base_epochs=5 …] [--jobs N] [--out FOLDER]

DATA is an .npz of embeddings (``x``, ``y``, ``x_test``, ``y_test``) or ``digits``. The embeddings get unit length and
Gaussian noise whose length is ``S`` times theirs; ``F`` is the number of slots over that of classes. Every condition is
run under both rules (query.stability), which share their runs until they ask different questions. The table has both
diffs of every round, seed by seed, and beside the one that decides All after the last round and the first informative
round; ``never`` is none of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agcd.cli.options import with_overrides
from agcd.engine import open_engine
from agcd.lab.bench import make_cells, run_bench
from agcd.lab.datasets import load_data
from agcd.types import BoolArray, FloatArray, IntArray

RULES = ("mapping", "literal")
STRATEGY = "adaptive_novel"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--per-class", type=int, default=40, metavar="N", help="train rows of each class at most")
    parser.add_argument("--noise", type=float, nargs="+", default=[0.0, 1.0, 2.0], metavar="S")
    parser.add_argument("--slots", type=float, nargs="+", default=[1.0], metavar="F")
    parser.add_argument("--protocol", default="short")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--out", type=Path, default=Path("bench-runs/switching"))
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    rounds = [f"round {n}" for n in range(1, options.rounds + 1)]
    print("| noise | slots | rule | diff | " + " | ".join(rounds) + " | All | informative from round |")
    print("|---|---|---|---|" + "---|" * len(rounds) + "---|---|")
    for noise in options.noise:
        data, n_classes = noisy(options.data, noise, options.per_class, options.out)
        for factor in options.slots:
            n_slots = round(factor * n_classes)
            for rule in RULES:
                seeds = run(data, rule, n_slots, options)
                for line in lines_of(seeds, rule):
                    print(f"| {noise:g} | {n_slots} of {n_classes} | {rule} | {line} |", flush=True)


def noisy(data: str, noise: float, per_class: int, folder: Path) -> tuple[Path, int]:
    """The first rows of every class with noise of that length added, as a file, and the number of classes."""
    dataset, rng = load_data(data, folder), np.random.default_rng(0)
    assert dataset.x is not None
    rows = np.flatnonzero(dataset.is_test | (rank_in_class(dataset.y_class, ~dataset.is_test) < per_class))
    dataset = dataset.only(rows)
    assert dataset.x is not None
    x = dataset.x / np.linalg.norm(dataset.x, axis=1, keepdims=True)
    x = x + noise * rng.standard_normal(x.shape) / np.sqrt(x.shape[1])
    path = folder / f"{Path(data).stem}-{per_class}-{noise:g}.npz"
    train, test = ~dataset.is_test, dataset.is_test
    arrays: dict[str, FloatArray | IntArray] = {"x": x[train].astype(np.float32), "y": dataset.y_class[train]}
    if test.any():
        arrays |= {"x_test": x[test].astype(np.float32), "y_test": dataset.y_class[test]}
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path, len(dataset.classes)


def rank_in_class(y_class: IntArray, counted: BoolArray) -> IntArray:
    """Of every counted row how many of its class stand before it; 0 for the others."""
    rank = np.zeros(len(y_class), np.int64)
    for c in np.unique(y_class):
        own = np.flatnonzero((y_class == c) & counted)
        rank[own] = np.arange(len(own))
    return rank


def run(data: Path, rule: str, n_slots: int, options: argparse.Namespace) -> list[list[dict[str, Any]]]:
    """The records of every round, for each seed."""
    fixed = {
        "protocol": options.protocol,
        "n_slots": n_slots,
        "query": {"stability": rule, "rounds": options.rounds},
    }
    settings = with_overrides(fixed, options.set)
    cells = make_cells([str(data)], [STRATEGY], options.seeds, settings, {})
    records = run_bench(
        cells, options.out, options.out, engine=open_engine(processes=options.jobs), progress=lambda line: None
    )
    return [[record for record in records if record["seed"] == seed] for seed in range(options.seeds)]


def lines_of(seeds: Sequence[Sequence[dict[str, Any]]], rule: str) -> list[str]:
    """Both diffs by round, seeds side by side; accuracy and the switch beside the one that decides."""
    lines = []
    for name in ("mapping_diff", "literal_diff"):
        n_rounds = len(seeds[0]) - 1
        diffs = [" / ".join(f"{records[n][name]:.3f}" for records in seeds) for n in range(1, n_rounds + 1)]
        decides = name.startswith(rule)
        accuracy = " / ".join(f"{100 * records[-1]['acc_all']:.1f}" for records in seeds) if decides else ""
        switch = " / ".join(first_informative(records) for records in seeds) if decides else ""
        lines.append(" | ".join([f"`{name}`", *diffs, accuracy, switch]))
    return lines


def first_informative(records: Sequence[dict[str, Any]]) -> str:
    return next((str(record["round"]) for record in records if record["phase"] == "informative"), "never")


if __name__ == "__main__":
    main()
