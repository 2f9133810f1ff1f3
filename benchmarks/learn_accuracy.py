"""Learn the constants of ``agcd.signs`` from simulated projects, and print them.

    python benchmarks/learn_accuracy.py --data banking77.npz --data grocery81 --data blobs --projects 80

``blobs`` are data sets made up on the spot. Every data set counts alike, whatever its number of projects. Only train
rows are read. A data set that the figure is to be checked on must not be among them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from agcd.accuracy import DRAWN_EVERY
from agcd.io import default_cache
from agcd.lab.accuracy.judge import STOPS, train_rows
from agcd.lab.accuracy.learn import checked_with_pool, learn_prior, learn_weights
from agcd.lab.accuracy.projects import draw_blobs, draw_project
from agcd.lab.accuracy.simulate import Moment, simulate
from agcd.lab.cells import Cell
from agcd.rng import generator

BLOBS = "blobs"


def moments_of(data: str, n_projects: int, cache_dir: Path) -> list[Moment]:
    """What is seen of the simulated projects of one data set."""
    cell = Cell(data, "propagation_herding", 0, {"backbone": {"trainable_blocks": 0}})
    rows = None if data == BLOBS else train_rows(cell, cache_dir)
    moments: list[Moment] = []
    for seed in range(n_projects):
        rng = generator(seed, "learn", Path(data).name)
        x, truth = rows or draw_blobs(rng)
        moments += simulate(draw_project(x, truth, rng), rng, STOPS, DRAWN_EVERY)
    return moments


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", action="append", required=True)
    parser.add_argument("--projects", type=int, default=80)
    parser.add_argument("--cache", type=Path, default=default_cache())
    args = parser.parse_args()
    found = [moments_of(data, args.projects, args.cache) for data in args.data]
    moments = [moment for own in found for moment in own]
    counts = np.array([1 / len(own) for own in found for _ in own])
    weights = learn_weights(moments)
    prior = learn_prior([checked_with_pool(moment, weights) for moment in moments], counts)
    for name, values in (("WEIGHTS", weights), ("mean", prior.mean), ("spread", prior.spread)):
        print(name, np.array2string(values, precision=3, separator=", ", suppress_small=True))


if __name__ == "__main__":
    main()
