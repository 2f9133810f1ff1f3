"""What a question of ``widest_reach`` costs beside one of ``adaptive_novel``.

    python benchmarks/query.py [--quick] [--rows N]

A pool of unit embeddings around 200 directions, half of them old, beside 10,000 rows labelled from the start and 200
answers. The model is the adapter over embeddings with its prototypes on the directions; nothing is trained. *Strategy*
is ``agcd.strategies.select`` alone. *Whole question* is ``Session.ask``, what a person waits for: it predicts pool and
labelled rows first. Each is measured in a process of its own. Output is Markdown.
"""

from __future__ import annotations

import argparse
import copy
import multiprocessing
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np
import torch

from agcd import propagation
from agcd.arrays import thread_count
from agcd.config import TrainConfig, make_config
from agcd.features.rows import EmbeddingRows
from agcd.rng import generator
from agcd.run_store import NumberedRuns
from agcd.session import Session, strategy_settings
from agcd.strategies import select
from agcd.training.fitted import Fitted
from agcd.training.heads import DiscoveryModel
from agcd.training.job import Outcome, TrainingJob, embedded, standardise
from agcd.types import IntArray, LabelMapping, LabelState
from selection_data import PeakMemory, around, timed

N_SLOTS, N_OLD, WIDTH, BUDGET = 200, 100, 384, 100
N_KNOWN, N_ANSWERS = 10_000, 200
REPEATS = 3
OURS = "widest_reach"
CASES: dict[str, dict[str, Any]] = {
    "adaptive_novel, confident": {"strategy": "adaptive_novel", "switch_round": 3},
    "adaptive_novel, informative": {"strategy": "adaptive_novel", "switch_round": 1},
    OURS: {"strategy": OURS},
}
PARTS = {
    "neighbour_graph": "neighbours",
    "propagate_labels": "propagating labels",
    "widest_reach": f"picking {BUDGET} rows",
}
"""What the functions of ``agcd.propagation`` do."""


@dataclass(frozen=True)
class Cost:
    """The best seconds and the peak memory above the inputs, in bytes, and the rows that were picked."""

    seconds: float
    peak: int
    rows: IntArray


# --- a session without training ------------------------------------------------------------------------------------


def make_inputs(folder: Path, n_pool: int) -> None:
    """Writes directions (K, d), embeddings (n, d) and their classes (n,): the pool, known rows, then answers."""
    rng = np.random.default_rng(0)
    directions = around(np.zeros((1, WIDTH), np.float32), N_SLOTS, rng)
    truth = rng.integers(0, N_SLOTS, n_pool + N_KNOWN + N_ANSWERS)
    truth[n_pool : n_pool + N_KNOWN] %= N_OLD
    x = np.empty((len(truth), WIDTH), np.float32)
    for slot in range(N_SLOTS):
        x[truth == slot] = around(directions[[slot]], int((truth == slot).sum()), rng)
    for name, array in {"directions": directions, "x": x, "truth": truth}.items():
        np.save(folder / f"{name}.npy", array)


def open_session(folder: Path, query: dict[str, Any]) -> Session:
    """A session about to ask its second question; its two rounds are made by the first call and loaded by others."""
    x, truth = np.load(folder / "x.npy"), np.load(folder / "truth.npy")
    row = np.arange(len(x))
    answers = row[len(x) - N_ANSWERS :]
    known = (row >= len(x) - N_ANSWERS - N_KNOWN) & (row < answers[0])
    nothing = np.zeros(len(x), bool)
    old_classes = tuple(str(slot) for slot in range(N_OLD))
    labels = LabelState(old_classes, N_OLD, np.where(known, truth, -1), np.where(known, 0, -1), nothing, nothing)
    directions = torch.from_numpy(np.load(folder / "directions.npy"))

    def fit(config: TrainConfig, job: TrainingJob) -> Outcome:
        return untrained(config, job, directions)

    config = make_config({"query": {"budget": BUDGET, **query}})
    session = Session(EmbeddingRows(x), labels, config, N_SLOTS, NumberedRuns(folder), fit=fit)
    session.train()
    session.tell(answers, [str(slot) for slot in truth[answers]])
    session.train()
    return session


def untrained(config: TrainConfig, job: TrainingJob, directions: torch.Tensor) -> Outcome:
    """A model with its prototypes on the directions (K, d); the name of a class is its slot."""
    shape = (config.projector_width, config.projector_dim)
    model = DiscoveryModel(job.features.new_tail(), job.features.dim, job.n_slots, shape, job.seed)
    fitted = Fitted(model, model, job.labels.n_old, config.student_temp)
    standardise(model, embedded(job, fitted))
    model.place_prototypes(list(range(job.n_slots)), directions - model.center)
    fitted.ema = copy.deepcopy(model)
    slot_of_class = np.array([int(name) for name in job.labels.classes])
    mapping = LabelMapping(slot_of_class, np.ones(len(slot_of_class), bool), 1.0)
    return Outcome(fitted, mapping, mapping)


# --- measurements, each in a process of its own ----------------------------------------------------------------------


def strategy_cost(folder: Path, case: str) -> Cost:
    session = open_session(folder, CASES[case])
    view, query = session.pool_view(), session.config.query
    options = strategy_settings(query)

    def run() -> IntArray:
        return select(
            view, query.strategy, BUDGET, generator(session.config.seed, "query", len(session.rounds)), options
        )

    with PeakMemory() as memory:
        runs = [timed(run) for _ in range(REPEATS)]
    return Cost(min(seconds for _, seconds in runs), memory.peak, runs[0][0])


def question_cost(folder: Path, case: str) -> Cost:
    session = open_session(folder, CASES[case])
    assert session.store is not None
    stored = session.store.query_file(len(session.rounds))
    seconds = []
    with PeakMemory() as memory:
        for _ in range(REPEATS):
            stored.unlink(missing_ok=True)  # the same question is never computed twice
            query, took = timed(session.ask)
            seconds.append(took)
    return Cost(min(seconds), memory.peak, query.rows)


def parts_of_ours(folder: Path) -> dict[str, float]:
    """Best seconds of each function of ``agcd.propagation`` that the strategy calls, and of all it does besides."""
    session = open_session(folder, CASES[OURS])
    view, runs = session.pool_view(), []
    for _ in range(REPEATS):
        took = dict.fromkeys(PARTS.values(), 0.0)
        with ExitStack() as patches:
            for function, part in PARTS.items():
                watched = stopwatch(getattr(propagation, function), took, part)
                patches.enter_context(mock.patch.object(propagation, function, watched))
            rng = generator(session.config.seed, "query", len(session.rounds))
            _, total = timed(partial(select, view, OURS, BUDGET, rng))
        assert all(took.values()), "the strategy does not call these functions any more"
        runs.append(took | {"checking and drawing rows": total - sum(took.values())})
    return {part: min(run[part] for run in runs) for part in runs[0]}


def stopwatch(function: Callable[..., Any], took: dict[str, float], part: str) -> Callable[..., Any]:
    """The function, adding the seconds of each call to ``took[part]``."""

    def watched(*arguments: Any) -> Any:
        result, seconds = timed(partial(function, *arguments))
        took[part] += seconds
        return result

    return watched


def alone(task: Any, *arguments: Any) -> Any:
    """The result of ``task`` in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as process:
        return process.apply(task, arguments)


def print_costs(title: str, costs: dict[str, Cost]) -> None:
    print(f"## {title}\n\n| | seconds | ours takes | peak memory above the inputs |\n|---|---|---|---|")
    ours = costs[OURS].seconds
    for case, cost in costs.items():
        ratio = "" if case == OURS else f"{ours / cost.seconds:.1f}×"
        print(f"| {case} | {cost.seconds:.2f} | {ratio} | {cost.peak / 1e6:,.0f} MB |")
    print(flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a pool of 10,000 rows")
    parser.add_argument("--rows", type=int, default=100_000, metavar="N", help="rows of the pool")
    options = parser.parse_args(argv)
    n_pool = 10_000 if options.quick else options.rows
    print(f"A pool of {n_pool:,} × {WIDTH}, {N_SLOTS} slots ({N_OLD} old), {N_KNOWN:,} labelled rows and {N_ANSWERS}")
    print(f"answers, b = {BUDGET}, {thread_count()} threads, best of {REPEATS}.\n")
    with TemporaryDirectory() as name:
        folder = Path(name)
        make_inputs(folder, n_pool)
        strategy = {case: alone(strategy_cost, folder, case) for case in CASES}
        print_costs("Strategy", strategy)
        question = {case: alone(question_cost, folder, case) for case in CASES}
        print_costs("Whole question", question)
        print(f"## Parts of `{OURS}`\n\n| | seconds |\n|---|---|")
        for part, seconds in alone(parts_of_ours, folder).items():
            print(f"| {part} | {seconds:.2f} |")
    for case in CASES:
        assert np.array_equal(strategy[case].rows, question[case].rows), f"{case}: both ways ask about the same rows"


if __name__ == "__main__":
    main()
