"""This version against an earlier one, each as a process of its own, in turns: what users wait for.

    git worktree add ../earlier v0.2.0
    python benchmarks/versions.py ../earlier --embeddings banking77.npz --data ../shared/data/grocery81 ...

``fit``, ``query`` and ``teach`` of ``ActiveDiscovery`` on embeddings, one cell of ``agcd bench run`` (base training and
a round) for each data set, and ``agcd demo`` from an empty folder. Processor seconds of all processes, as other work on
the machine hardly changes them, and seconds by the clock. Both versions have the dependencies of this environment.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parents[1]
LOOP = """
import sys, time
import numpy as np
from agcd import ActiveDiscovery
data = np.load(sys.argv[1])
x, truth = data["x_train"].astype(np.float32), data["y_train"]
rng = np.random.default_rng(0)
n_classes = int(truth.max()) + 1
known = (truth < n_classes // 2) & (rng.random(len(truth)) < 0.2)
model = ActiveDiscovery(n_classes=n_classes, random_state=0)
def timed(name, work):
    clock, processor = time.perf_counter(), time.process_time()
    done = work()
    print(name, time.perf_counter() - clock, time.process_time() - processor, flush=True)
    return done
timed("fit", lambda: model.fit(x, np.where(known, truth, -1)))
rows = timed("query", lambda: model.query(40))
timed("teach", lambda: model.teach(rows, truth[rows]))
"""


class Took(NamedTuple):
    clock: float
    processor: float


def run(source: Path, arguments: Sequence[str], folder: Path) -> tuple[str, Took]:
    """What a Python process printed that imports agcd from ``source``, and what it took with its children."""
    environment = os.environ | {"PYTHONPATH": str(source / "src")}
    before, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout, Took(time.perf_counter() - clock, processor)


def loop(embeddings: Path, source: Path, folder: Path) -> dict[str, Took]:
    printed, _ = run(source, ["-c", LOOP, str(embeddings)], folder)
    found = re.findall(r"^(fit|query|teach) (\S+) (\S+)$", printed, re.MULTILINE)
    return {f"{name}, {embeddings.stem}": Took(float(clock), float(processor)) for name, clock, processor in found}


def cell(data: str, cache: Path, source: Path, folder: Path) -> dict[str, Took]:
    """Of a cell whose features are stored: a short one before it computes what is missing."""
    command = ["-m", "agcd.cli", "bench", "run", "--data", data, "--strategies", "propagation_herding", "--seeds", "1"]
    command += ["--rounds", "1", "--jobs", "1", "--set", "backbone.trainable_blocks=0", "--cache", str(cache)]
    run(source, [*command, "--set", "train.base_epochs=0", "--set", "train.round_epochs=1", "--out", "first"], folder)
    _, took = run(source, [*command, "--out", "cell"], folder)
    return {f"bench cell, {Path(data).stem}": took}


def demo(source: Path, folder: Path) -> dict[str, Took]:
    _, took = run(source, ["-m", "agcd.cli", "demo", "--out", "demo"], folder)
    return {"demo": took}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("earlier", type=Path, help="a checkout of the earlier version")
    parser.add_argument("--embeddings", type=Path, action="append", default=[], help=".npz with x_train and y_train")
    parser.add_argument("--data", action="append", default=[], help="as of agcd bench run")
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args(argv)
    data = [str(Path(name).resolve()) if Path(name).exists() else name for name in options.data]
    jobs: list[Callable[[Path, Path], dict[str, Took]]] = [partial(loop, path.resolve()) for path in options.embeddings]
    cache = tempfile.TemporaryDirectory()
    jobs += [partial(cell, name, Path(cache.name)) for name in data] + ([demo] if options.demo else [])
    versions = {"earlier": options.earlier.resolve(), "now": HERE}
    print("| | earlier, processor s (clock) | now, processor s (clock) | processor | clock |\n|---|---|---|---|---|")
    for job in jobs:
        found: dict[str, dict[str, list[Took]]] = {}
        for turn in range(options.repeats):
            for version in list(versions) if turn % 2 == 0 else reversed(versions):
                with tempfile.TemporaryDirectory() as folder:
                    for name, took in job(versions[version], Path(folder)).items():
                        found.setdefault(name, {}).setdefault(version, []).append(took)
        for name, both in found.items():
            told(name, both)


def told(name: str, both: dict[str, list[Took]]) -> None:
    middle = {version: Took(*map(statistics.median, zip(*took, strict=True))) for version, took in both.items()}
    was, is_now = middle["earlier"], middle["now"]
    words = [f"{took.processor:.2f} ({took.clock:.2f})" for took in (was, is_now)]
    ratios = [
        f"{a / b:.2f}×" for a, b in zip((was.processor, was.clock), (is_now.processor, is_now.clock), strict=True)
    ]
    print(f"| {name} | {' | '.join(words + ratios)} |", flush=True)


if __name__ == "__main__":
    main()
