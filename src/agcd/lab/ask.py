"""Judges what is asked without any training, in seconds a run.

Labels are propagated over the neighbour graph of the frozen features, and the share of unlabelled train rows with the
right class is measured after each fifth of the answers. What wins here wins after training as well (docs/LOG.md), so
ideas are tried here first.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agcd.beliefs import Beliefs
from agcd.engine import Engine, open_engine
from agcd.lab.bench import Progress, compute_features, print_now, results_of
from agcd.lab.cells import Cell, load, questions_a_round
from agcd.lab.frozen import check_frozen, frozen_train_rows
from agcd.lab.results import Record, markdown_table, mean_std, name_of, unique
from agcd.propagation import neighbour_graph
from agcd.rng import generator
from agcd.session import strategy_settings
from agcd.strategies import open_one_by_one, select
from agcd.types import BoolArray, PoolView

N_PARTS = 5
"""Accuracy is measured after each fifth of the answers."""


def report_asking(
    cells: Sequence[Cell],
    cache_dir: Path,
    *,
    one_by_one: bool = False,
    engine: Engine | None = None,
    progress: Progress = print_now,
) -> str:
    """Judge all cells; Markdown tables of All and New by number of answers, mean ± deviation over seeds."""
    engine = engine or open_engine()
    check_frozen(cells, cache_dir)
    compute_features(cells, cache_dir, engine, progress)
    names = [f"{cell.data} {cell.strategy} seed {cell.seed}" for cell in cells]
    tasks = [(cell, cache_dir.absolute(), one_by_one) for cell in cells]
    records = [record for judged in results_of(engine, judge_asking, tasks, names, progress) for record in judged]
    return "\n".join(_table(records, measure, word) for measure, word in (("acc_all", "All"), ("acc_new", "New")))


def judge_asking(cell: Cell, cache_dir: Path, one_by_one: bool) -> list[Record]:
    """One record for each fifth of the answers; one question per novel class in each unless a budget is set."""
    pool = _Pool(cell, cache_dir)
    records = []
    for part in range(1, N_PARTS + 1):
        pool.ask(cell, part, one_by_one)
        records.append({"data": cell.data, "strategy": cell.strategy, "seed": cell.seed, "part": part} | pool.measure())
    return records


class _Pool:
    """The train rows of a cell, numbered anew, with what is known of them."""

    def __init__(self, cell: Cell, cache_dir: Path):
        loaded = load(cell, cache_dir)
        rows, self.x, self.truth = frozen_train_rows(cell, loaded, cache_dir)
        self.y_class = loaded.labels.y_class[rows].copy()
        self.asked = np.zeros(len(rows), np.int64)
        """The fifth in which a row was asked about; 0 if it never was."""
        self.n_old, self.n_classes = len(loaded.split.old_classes), len(loaded.dataset.classes)
        self.budget = questions_a_round(cell, loaded)
        self.beliefs = Beliefs(neighbour_graph(self.x), self.n_classes)
        self.beliefs.add_all(self.y_class)

    def ask(self, cell: Cell, part: int, one_by_one: bool) -> None:
        """Ask one fifth of the questions and take the true answers."""
        query, rng = cell.config.query, generator(cell.seed, "query", part)
        budget = min(self.budget, int((self.y_class < 0).sum()))
        view, options = self._view(part), strategy_settings(query)
        if not one_by_one:
            for row in select(view, cell.strategy, budget, rng, options).tolist():
                self._tell(row, part)
            return
        asking = open_one_by_one(view, cell.strategy, budget, rng, options)
        for _ in range(budget):
            row = asking.next()
            asking.tell(row, self._tell(row, part))

    def _tell(self, row: int, part: int) -> int:
        self.y_class[row], self.asked[row] = self.truth[row], part
        self.beliefs.add(np.array([row]), int(self.truth[row]))
        return int(self.truth[row])

    def _view(self, part: int) -> PoolView:
        """What a strategy would see if every class had the slot of its number and shares were probabilities."""
        rows, labelled = np.flatnonzero(self.y_class < 0), np.flatnonzero(self.y_class >= 0)
        return PoolView(
            rows,
            self.beliefs.shares(self.n_classes, rows),
            self.x[rows],
            self.x[labelled],
            self.y_class[labelled],
            self.n_old,
            part,
            labelled_rounds=self.asked[labelled],
        )

    def measure(self) -> dict[str, Any]:
        """The share of unlabelled rows with the right class, and how novel the questions were."""
        unlabelled, right = self.y_class < 0, self.beliefs.at().y_class == self.truth
        is_novel, asked = self.truth >= self.n_old, self.asked > 0
        found = len(np.unique(self.truth[asked & is_novel]))
        return {
            "n_answers": int(asked.sum()),
            "acc_all": _share(right, unlabelled),
            "acc_old": _share(right, unlabelled & ~is_novel),
            "acc_new": _share(right, unlabelled & is_novel),
            "nov_ratio": _share(is_novel, asked),
            "nov_coverage": found / max(1, self.n_classes - self.n_old),
        }


def _share(what: BoolArray, among: BoolArray) -> float | None:
    return float(what[among].mean()) if among.any() else None


def _table(records: Sequence[Record], measure: str, word: str) -> str:
    blocks = []
    for data in unique(r["data"] for r in records):
        own = [r for r in records if r["data"] == data]
        counts = unique(r["n_answers"] for r in own)
        lines = []
        for strategy in unique(r["strategy"] for r in own):
            rows = [r for r in own if r["strategy"] == strategy]
            cells = [mean_std([r[measure] for r in rows if r["n_answers"] == n], percent=True) for n in counts]
            last = [r for r in rows if r["part"] == N_PARTS]
            novelty = [mean_std([r[name] for r in last], percent=False) for name in ("nov_ratio", "nov_coverage")]
            lines.append([strategy, *cells, *novelty])
        title = f"**{name_of(data)}**, {word} after so many answers, {len({r['seed'] for r in own})} seeds"
        heads = ["strategy", *map(str, counts), "Nov-R", "Nov-C"]
        blocks.append(f"{title}\n\n{markdown_table(heads, lines)}\n")
    return "\n".join(blocks)
