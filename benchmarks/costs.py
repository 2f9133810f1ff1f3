"""The cost model against real runs: predicted and measured disk, memory and seconds, and their ratio.

    python benchmarks/costs.py [--quick]

Made-up photographs are extracted, trained on, asked about and trained on again, once with the default tail and once
with nothing but an adapter, and embeddings likewise. The machine is measured right before each. Every run has a process
of its own, so that memory is its own. Other work on the machine shows in the ratios, and below a second what happens
once outweighs what the model counts.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from agcd.config import Config, make_config
from agcd.engine.costs import Costs, Machine, Size, bytes_in_words, estimate, seconds_in_words
from agcd.types import Dataset, LabelState

T = TypeVar("T")
N_CLASSES, LABELLED_SHARE, DIM = 20, 0.2, 512
SHORT_TRAINING = {"base_epochs": 10, "round_epochs": 5}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer images")
    args = parser.parse_args()
    n_images, n_embeddings = (120, 2_000) if args.quick else (600, 20_000)
    print("## Cost model against real runs\n")
    print("| run | what | predicted | measured | ratio |\n|---|---|---|---|---|")
    cases: list[tuple[str, int, int | None, dict[str, Any]]] = [
        (f"{n_images} images, default tail", n_images, None, {}),
        (f"{n_images} images, adapter", n_images, None, {"backbone": {"trainable_blocks": 0}}),
        (f"{n_embeddings:,} embeddings", n_embeddings, DIM, {}),
    ]
    for name, n, dim, values in cases:
        config = make_config(values | {"train": SHORT_TRAINING, "query": {"rounds": 1}})
        with tempfile.TemporaryDirectory() as folder:
            machine = in_own_process(measured_machine, config, Path(folder) / "machine", dim)
            real = in_own_process(real_costs, config, Path(folder) / "run", n, dim)
        print_case(name, estimate(size(n), config, machine), real)


def in_own_process(call: Callable[..., T], *values: Any) -> T:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(call, *values).result()


def size(n: int) -> Size:
    return Size(n, 0, N_CLASSES, int((start_labels(n)[0].y_class >= 0).sum()))


def measured_machine(config: Config, folder: Path, dim: int | None) -> Machine:
    from agcd.engine.machine import this_machine

    return this_machine(config, folder, dim=dim)


def start_labels(n: int, seed: int = 0) -> tuple[LabelState, list[str]]:
    """The first half of the classes is old and partly labelled; and the true names."""
    rng = np.random.default_rng(seed)
    truth, n_old = rng.integers(0, N_CLASSES, n), N_CLASSES // 2
    known = (truth < n_old) & (rng.random(n) < LABELLED_SHARE)
    names = [f"class {c:02d}" for c in range(N_CLASSES)]
    nothing = np.zeros(n, dtype=bool)
    labels = LabelState(
        tuple(names[:n_old]), n_old, np.where(known, truth, -1), np.where(known, 0, -1), nothing, nothing
    )
    return labels, [names[c] for c in truth]


def make_data(folder: Path, n: int, dim: int | None) -> Dataset:
    from agcd.data.arrays import from_arrays
    from agcd.engine.measure import make_images

    if dim is None:
        return make_images(folder / "images", n, size=(320, 240), seed=1)
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((N_CLASSES, dim))
    return from_arrays(centres[rng.integers(0, N_CLASSES, n)] + rng.standard_normal((n, dim)))


def real_costs(config: Config, folder: Path, n: int, dim: int | None) -> Costs:
    """The same figures from a real session: base training, a query, its true answers, a round."""
    from agcd.features import open_features
    from agcd.run_store import NumberedRuns
    from agcd.session import Session

    dataset = make_data(folder, n, dim)
    (folder / "out").mkdir(parents=True)
    features, extraction_s = timed(lambda: open_features(dataset, config.backbone, folder / "out"))
    labels, names = start_labels(n)
    session = Session(features, labels, config, N_CLASSES, NumberedRuns(folder / "out"))
    _, base_s = timed(session.train)
    query, query_s = timed(session.ask)
    session.tell(query.rows, [names[row] for row in query.rows])
    _, round_s = timed(session.train)
    disk = sum(path.stat().st_size for path in (folder / "out").rglob("*") if path.is_file())
    mapped = sum(path.stat().st_size for path in (folder / "out" / "features").rglob("*.npy"))
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Costs(disk, peak - mapped, extraction_s, base_s, round_s, query_s, config.query.rounds)


def timed(call: Callable[[], T]) -> tuple[T, float]:
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def print_case(name: str, predicted: Costs, measured: Costs) -> None:
    for what in ("disk_bytes", "memory_bytes", "extraction_s", "base_s", "round_s", "query_s", "total_s"):
        guess, real = getattr(predicted, what), getattr(measured, what)
        if what == "extraction_s" and guess == 0:
            continue
        words = bytes_in_words if what.endswith("bytes") else seconds_in_words
        label = what.removesuffix("_s").removesuffix("_bytes")
        print(f"| {name} | {label} | {words(guess)} | {words(real)} | {guess / real:.2f} |", flush=True)


if __name__ == "__main__":
    main()
