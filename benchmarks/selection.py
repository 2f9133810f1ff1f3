"""Selection on large pools: time against one matrix product, memory, exact against faster, ours against others.

    python benchmarks/selection.py [--quick] [--plots DIR]

The inputs, 1,000,000 × 384 features and probabilities of 200 slots, are made as memory maps in a temporary folder
(2.3 GB, deleted at the end). Each line of the first table is measured in a process of its own after the maps were
read once, so that files are in the page cache. Output is Markdown.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import numpy as np

from agcd.arrays import confidence_and_slot, each_block, lowest, thread_count
from agcd.strategies import select
from agcd.strategies.novelty import first_of_equal_share
from agcd.types import PoolView
from linear_head import Head, judge_features
from selection_data import PeakMemory, in_memory, make_inputs, open_view, timed
from selection_rivals import (
    Match,
    check_against_dense,
    compare_with_scikit_activeml,
    inertia,
    potential,
    radius,
    uncovered,
)

PRODUCT = "features @ prototypes.T"
QUICK_ONES = ("margin", "least_confidence", "entropy", "novel_informative", "confident_novel", "informative_novel")
SLOW_ONES = (
    *("badge", "coreset", "kmeans", "typiclust", "probcover", "max_herding", "uncertainty_herding"),
    *("alfa_mix", "lfosa", "conal", "mq_net"),
)
GROWTH = ("margin", "adaptive_novel", "coreset", "badge")


@dataclass(frozen=True)
class Scale:
    """How large everything is."""

    n: int
    n_slots: int
    width: int
    budget: int
    n_loss: int
    loss_budget: int
    n_kmeans: int
    n_herding: int
    n_dense: int
    matches: tuple[Match, ...]
    n_small: int
    growth: dict[str, tuple[int, ...]]


FULL = Scale(
    n=1_000_000,
    n_slots=200,
    width=384,
    budget=1000,
    n_loss=200_000,
    loss_budget=1000,
    n_kmeans=50_000,
    n_herding=20_000,
    n_dense=2000,
    matches=(
        Match("badge", 5000, 100, 100),
        Match("coreset", 100_000, 20, 500),
        Match("coreset", 100_000, 20, 500, n_labelled=100),
        Match("typiclust", 20_000, 20, 100),
    ),
    n_small=1000,
    growth={"N": (10_000, 100_000, 1_000_000), "K": (50, 200, 800), "d": (96, 384, 1536), "b": (100, 1000, 4000)},
)
QUICK = Scale(
    n=50_000,
    n_slots=50,
    width=64,
    budget=100,
    n_loss=20_000,
    loss_budget=100,
    n_kmeans=5000,
    n_herding=2000,
    n_dense=200,
    matches=(
        Match("badge", 300, 20, 20),
        Match("coreset", 3000, 10, 50),
        Match("coreset", 3000, 10, 50, n_labelled=20),
        Match("typiclust", 1000, 10, 20),
    ),
    n_small=300,
    growth={"N": (5000, 50_000), "K": (10, 50), "d": (16, 64), "b": (10, 100)},
)


# --- one large pool ----------------------------------------------------------------------------------------------


def tasks(folder: Path, budget: int) -> dict[str, Callable[[], object]]:
    """What is measured on the mapped pool, by name."""
    view = open_view(folder)
    head = Head(np.load(folder / "prototypes.npy"))

    def product() -> None:
        def work(part: slice) -> None:
            view.features[part] @ head.weights.T

        each_block(len(view.features), view.features.shape[1], work)

    def share() -> None:
        rng = np.random.default_rng(0)
        first_of_equal_share(rng.random(len(view.rows)), rng.integers(0, 100, len(view.rows)), None, budget)

    found: dict[str, Callable[[], object]] = {
        PRODUCT: product,
        "product, softmax and margin in one pass": lambda: lowest(judge_features(view.features, head)[0], budget),
        "part: checks of the inputs (`random`)": lambda: ask(view, "random", budget),
        "part: margin and slot of each row": lambda: confidence_and_slot(view.probs, "margin"),
        "part: slots take turns": share,
        "adaptive_novel, confident": lambda: ask(replace(view, phase="confident"), "adaptive_novel", budget),
        "adaptive_novel, informative": lambda: ask(view, "adaptive_novel", budget),
    }
    for name in (*QUICK_ONES, *SLOW_ONES):
        found[name] = lambda name=name: ask(view, name, budget)  # type: ignore[misc]
    return found


def ask(view: PoolView, name: str, budget: int, **options: Any) -> Any:
    return select(view, name, budget, np.random.default_rng(0), options)


def measure(folder: Path, name: str, budget: int) -> tuple[float, int]:
    """Seconds (the best of three for what is quick) and peak memory above the inputs, in this process."""
    task = tasks(folder, budget)[name]
    if name in SLOW_ONES:
        ask(in_memory(100, 4, 8, n_labelled=10), name, 5)  # loads what is loaded late
    ask(open_view(folder), "random", 1)  # reads the maps once
    with PeakMemory() as memory:
        seconds = min(timed(task)[1] for _ in range(1 if name in SLOW_ONES else 3))
    return seconds, memory.peak


def print_large(folder: Path, scale: Scale) -> None:
    print(f"## {scale.n:,} × {scale.width} features, {scale.n_slots} slots, b = {scale.budget:,}\n")
    print(f"{thread_count()} threads, float32 memory maps in the page cache, 2,000 labelled rows.\n")
    print("| | seconds | ratio to the product | peak memory above the inputs |\n|---|---|---|---|")
    of_product = 0.0
    for name in tasks(folder, scale.budget):
        with multiprocessing.get_context("spawn").Pool(1) as process:
            seconds, peak = process.apply(measure, (folder, name, scale.budget))
        of_product = of_product or seconds
        print(f"| {name} | {seconds:.2f} | {seconds / of_product:.2f} | {peak / 1e6:,.0f} MB |", flush=True)


# --- faster modes ------------------------------------------------------------------------------------------------


def print_losses(folder: Path, scale: Scale) -> None:
    print("\n## What the faster modes lose\n")
    print(
        "`max_candidates` rows are drawn at random and the picks are among them; objectives are over the whole pool.\n"
    )
    print("| strategy | N | b | mode | seconds | speed-up | objective (smaller is better) | value | loss |")
    print("|---|---|---|---|---|---|---|---|---|")
    part, small = open_view(folder, scale.n_loss), open_view(folder, scale.n_kmeans)
    thinner: list[dict[str, Any]] = [{"max_candidates": scale.n_loss // k} for k in (4, 20)]
    few: list[dict[str, Any]] = [{"max_candidates": scale.n_kmeans // 5}, {"minibatch": True}]
    _print_loss(part, "coreset", scale.loss_budget, thinner, radius, "covering radius")
    _print_loss(part, "badge", scale.loss_budget, thinner, potential, "mean squared gradient distance")
    _print_loss(small, "kmeans", scale.loss_budget // 4, few, inertia, "mean squared distance to a pick")
    covered = open_view(folder, scale.n_herding)
    whole: dict[str, Any] = {"max_candidates": scale.n_herding}
    half: list[dict[str, Any]] = [{"max_candidates": scale.n_herding // k} for k in (2, 4, 10)]
    _print_loss(covered, "max_herding", scale.loss_budget // 4, half, uncovered, "1 − generalised coverage", whole)


def _print_loss(
    view: PoolView,
    name: str,
    budget: int,
    modes: list[dict[str, Any]],
    objective: Callable[[PoolView, Any], float],
    unit: str,
    whole: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """One line for the exact mode, with the options ``whole``, and for each of the faster ones."""
    exact = exact_seconds = None
    for options in (whole, *modes):
        rows, seconds = timed(lambda o=options: ask(view, name, budget, **o))  # type: ignore[misc]
        value = objective(view, rows)
        exact, exact_seconds = exact or value, exact_seconds or seconds
        mode = "exact" if options is whole else ", ".join(f"`{key}={value}`" for key, value in options.items())
        print(
            f"| {name} | {len(view.rows):,} | {budget:,} | {mode} | {seconds:.2f} | {exact_seconds / seconds:.1f}× "
            f"| {unit} | {value:.4f} | {100 * (value / exact - 1):+.1f} % |",
            flush=True,
        )


# --- growth ------------------------------------------------------------------------------------------------------


def measure_growth(folder: Path, scale: Scale) -> dict[str, dict[str, list[float]]]:
    """Seconds by what grows and by strategy; what does not grow is a tenth of the large pool with b = 100."""
    n, budget = scale.n // 10, min(100, scale.budget)
    seconds: dict[str, dict[str, list[float]]] = {}
    for what, values in scale.growth.items():
        seconds[what] = {name: [] for name in GROWTH}
        for value in values:
            if what == "K":
                view = in_memory(n, value, scale.width)
            elif what == "d":
                view = in_memory(n, scale.n_slots, value)
            else:
                view = open_view(folder, value if what == "N" else n, n_labelled=0)
            for name in GROWTH:
                questions = value if what == "b" else budget
                repeats = 3 if name in ("margin", "adaptive_novel") else 1
                runs = [timed(lambda v=view, s=name, b=questions: ask(v, s, b))[1] for _ in range(repeats)]  # type: ignore[misc]
                seconds[what][name].append(min(runs))
    return seconds


def print_growth(seconds: dict[str, dict[str, list[float]]], scale: Scale) -> None:
    print(
        f"\n## Growth\n\nSeconds; what does not grow is N = {scale.n // 10:,}, K = {scale.n_slots}, d = {scale.width},"
    )
    print(f"b = {min(100, scale.budget)}.\n\n| | {' | '.join(GROWTH)} |\n|---|{'---|' * len(GROWTH)}")
    for what, values in scale.growth.items():
        for i, value in enumerate(values):
            cells = " | ".join(f"{seconds[what][name][i]:.3f}" for name in GROWTH)
            print(f"| {what} = {value:,} | {cells} |")


def plot_growth(seconds: dict[str, dict[str, list[float]]], scale: Scale, folder: Path) -> None:
    """Writes ``selection-growth.png``: one panel per quantity that grows, both axes logarithmic."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, len(scale.growth), figsize=(13, 3.4), sharey=True, layout="constrained")
    for axes, (what, values) in zip(panels, scale.growth.items(), strict=True):
        for name in GROWTH:
            axes.loglog(values, seconds[what][name], marker="o", label=name)
        axes.set_xlabel(what)
        axes.set_xticks(values, [f"{value:,}" for value in values])
        axes.tick_params(axis="x", which="minor", labelbottom=False)
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("seconds")
    panels[0].legend()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "selection-growth.png", dpi=120)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small arrays, under a minute")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="write selection-growth.png there")
    options = parser.parse_args(argv)
    scale = QUICK if options.quick else FULL
    with TemporaryDirectory() as name:
        folder = Path(name)
        make_inputs(folder, scale.n, scale.n_slots, scale.width)
        print_large(folder, scale)
        print_losses(folder, scale)
        print("\n## Against others\n")
        print(check_against_dense(scale.n_dense, min(100, scale.budget)) + "\n")
        print("\n".join(compare_with_scikit_activeml(scale.matches, scale.n_small, n_seeds=10)), flush=True)
        seconds = measure_growth(folder, scale)
        print_growth(seconds, scale)
        if options.plots:
            plot_growth(seconds, scale, options.plots)


if __name__ == "__main__":
    main()
