"""Base training of an adapter on embeddings: our products against torch's, and how near arithmetic allows.

    python benchmarks/adapter.py [--quick]

``fit`` of 10,000 made-up embeddings of 384 numbers, 100 slots and 20 epochs on one thread, as a bench cell trains: with
the products that linear layers take from oneDNN, and with those that torch takes by itself. The limit is the time that
all its products would take at the rate of a large one, measured in the same run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import torch

from agcd.config import Config, make_config
from agcd.features import products
from agcd.features.products import product
from agcd.features.rows import EmbeddingRows
from agcd.training import fit
from agcd.training.job import TrainingJob
from agcd.types import LabelState

N_OLD, N_SLOTS, DIM = 50, 100, 384


def blobs(n_rows: int) -> tuple[EmbeddingRows, LabelState]:
    """Embeddings around a hundred centres; a fifth of the rows of the old classes have labels."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, N_SLOTS, n_rows)
    x = rng.normal(size=(N_SLOTS, DIM))[truth] + 1.5 * rng.normal(size=(n_rows, DIM))
    y_class = np.where((truth < N_OLD) & (rng.random(n_rows) < 0.2), truth, -1)
    nowhere = np.zeros(n_rows, bool)
    names = tuple(map(str, range(N_OLD)))
    return EmbeddingRows(x.astype(np.float32), dropout=0.2), LabelState(
        names, N_OLD, y_class, np.where(y_class >= 0, 0, -1), nowhere, nowhere
    )


def seconds(config: Config, features: EmbeddingRows, labels: LabelState) -> float:
    """Of base training, on the clock of this process alone."""
    start = time.process_time()
    fit(config.train, TrainingJob(features, labels, N_SLOTS, 0, 0))
    return time.process_time() - start


def flops_a_step(config: Config) -> int:
    """Of all products: forward, and twice that on the way back."""
    width, out, n = config.train.projector_width, config.train.projector_dim, 2 * config.train.batch_size
    weights = DIM * (DIM // 2) * 2 + DIM * width + width * width + width * out + DIM * N_SLOTS
    return 3 * 2 * n * (weights + n * out)


def best_rate() -> float:
    """Operations a second of a product of large matrices that stay in the cache."""
    a, b = torch.randn(512, 512), torch.randn(512, 512)
    best = np.inf
    for _ in range(200):
        start = time.perf_counter()
        product(a, b)
        best = min(best, time.perf_counter() - start)
    return float(2 * 512**3 / best)


def compare(n_rows: int, n_epochs: int) -> None:
    torch.set_num_threads(1)
    features, labels = blobs(n_rows)
    config = make_config({"train": {"base_epochs": n_epochs}})
    seconds(make_config({"train": {"base_epochs": 1}}), features, labels)  # imports, and kernels made for their shapes
    ours = seconds(config, features, labels)
    with patch.object(products, "_HAS_ONE_DNN", False):
        plain = seconds(config, features, labels)
    steps = n_epochs * (n_rows // config.train.batch_size)
    limit = steps * flops_a_step(config) / best_rate()
    print(f"{n_rows:,} embeddings of {DIM} numbers, {N_SLOTS} slots, {n_epochs} epochs, {steps} steps, one thread.\n")
    print("| products by | s | ratio | of the arithmetic limit |\n|---|---|---|---|")
    print(f"| torch's choice | {plain:.1f} | 1.00× | {limit / plain:.0%} |")
    print(f"| oneDNN | {ours:.1f} | {plain / ours:.2f}× | {limit / ours:.0%} |")
    print(f"\nThe products alone would take {limit:.1f} s at {best_rate() / 1e9:.0f} GFLOP/s.", flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, two epochs")
    options = parser.parse_args(argv)
    compare(1000 if options.quick else 10_000, 2 if options.quick else 20)


if __name__ == "__main__":
    main()
