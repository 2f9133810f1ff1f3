"""What scikit-activeml asks about, and what agcd does, from the same start and the same frozen features.

    python benchmarks/rivals_ask.py --data banking77.npz --data flowers102 [--seeds 3] [--classes 20] [--known 8]

A collection as a practitioner has it (``agcd.lab.person.pool``): some classes known by five labels each, the rest
hidden. Everybody asks as many questions a round as there are hidden classes, five rounds, and hears the truth. After
each round the rows without a label are named in three ways, whoever asked: by label propagation, which is how agcd
reads answers, and by the classifier of scikit-activeml's paper, a logistic regression, as it is there (C = 1) and with
C = 100, which suits features of unit length better. Printed is the share that is right: mean ± deviation over seeds.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from skactiveml.classifier import SklearnClassifier
from skactiveml.pool import Badge, CoreSet, MaxHerding, RandomSampling, TypiClust, UncertaintySampling
from sklearn.linear_model import LogisticRegression

from agcd.asking import Asking, Neighbours
from agcd.config import make_config
from agcd.io import default_cache
from agcd.lab.datasets import load_data
from agcd.lab.person.pool import Drawn, Pool, Start, draw_pool
from agcd.lab.results import markdown_table, mean_std, name_of
from agcd.types import IntArray

N_ROUNDS = 5
ONE_BY_ONE, IN_BATCHES = "agcd, one by one", "agcd, in batches"
PROPAGATION = "label propagation"
LOGISTIC = {"logistic regression, C = 1": 1.0, "logistic regression, C = 100": 100.0}
THEIRS: dict[str, tuple[Callable[..., Any], bool]] = {
    "RandomSampling": (RandomSampling, False),
    "UncertaintySampling, margin": (partial(UncertaintySampling, method="margin_sampling"), True),
    "CoreSet": (CoreSet, False),
    "TypiClust": (TypiClust, False),
    "Badge": (Badge, True),
    "MaxHerding": (MaxHerding, False),
}
"""Each strategy, and whether it wants a classifier."""
Found = dict[tuple[str, str, int], list[float]]
"""(who asked, how it was read, round) → the share that is right, by seed."""


def classifier(y_class: IntArray, c: float) -> SklearnClassifier:
    """The classifier of scikit-activeml's paper; it knows of the classes that somebody has named."""
    named = np.unique(y_class[y_class >= 0])
    return SklearnClassifier(LogisticRegression(C=c, max_iter=1000), classes=named, missing_label=-1, random_state=0)


def names_by(reading: str, pool: Pool, near: Neighbours, y_class: IntArray) -> IntArray:
    """(n,): what each row is called."""
    if reading == PROPAGATION:
        return Asking(near, y_class).belief.y_class
    fitted = classifier(y_class, LOGISTIC[reading]).fit(pool.x, y_class)
    return np.asarray(fitted.predict(pool.x), np.int64)


def theirs(name: str, pool: Pool, truth: IntArray, budget: int) -> Iterator[IntArray]:
    """The labels (n,) after each round of a strategy of scikit-activeml."""
    y_class, (strategy, wants_classifier) = pool.y_start.copy(), THEIRS[name]
    query = strategy(missing_label=-1, random_state=pool.seed)
    for _ in range(N_ROUNDS):
        more = {"clf": classifier(y_class, 1.0)} if wants_classifier else {}
        rows = query.query(pool.x, y_class, batch_size=budget, **more)
        y_class[rows] = truth[rows]
        yield y_class


def ours(near: Neighbours, pool: Pool, truth: IntArray, budget: int, *, one_by_one: bool) -> Iterator[IntArray]:
    """The same of agcd's rule; in batches answers count after the last question of a round."""
    asking = Asking(near, pool.y_start)
    for _ in range(N_ROUNDS):
        asked: list[int] = []
        for _ in range(budget):
            asked.append(asking.next())
            if one_by_one:
                asking.tell(asked[-1], int(truth[asked[-1]]))
            else:
                asking.cover(asked[-1:])
        for row in [] if one_by_one else asked:
            asking.tell(row, int(truth[row]))
        yield asking.y_class


def compare(drawn: Drawn, found: Found) -> None:
    """Let everybody ask about one drawn collection."""
    pool, truth = drawn.pool, drawn.truth
    near, budget = Neighbours.of(pool.x), pool.n_classes - len(pool.known)
    who = {name: theirs(name, pool, truth, budget) for name in THEIRS}
    who[IN_BATCHES] = ours(near, pool, truth, budget, one_by_one=False)
    who[ONE_BY_ONE] = ours(near, pool, truth, budget, one_by_one=True)
    for name, rounds in who.items():
        for number, y_class in enumerate(rounds, 1):
            left = y_class < 0
            for reading in (PROPAGATION, *LOGISTIC):
                right = names_by(reading, pool, near, y_class) == truth
                found[name, reading, number].append(float(right[left].mean()))


def tables(found: Found, budget: int) -> str:
    """One table for each way of reading."""
    blocks = []
    for reading in (PROPAGATION, *LOGISTIC):
        lines = [
            [name, *(mean_std(found[name, reading, n], percent=True) for n in range(1, N_ROUNDS + 1))]
            for name in (*THEIRS, IN_BATCHES, ONE_BY_ONE)
        ]
        heads = [f"read by {reading}", *(f"{budget * n} answers" for n in range(1, N_ROUNDS + 1))]
        blocks.append(markdown_table(heads, lines))
    return "\n\n".join(blocks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", action="append", required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--classes", type=int, default=20)
    parser.add_argument("--known", type=int, default=8)
    parser.add_argument("--cache", type=Path, default=default_cache())
    options = parser.parse_args()
    start = Start(options.classes, options.known, 5)
    backbone = make_config({"backbone": {"trainable_blocks": 0}}).backbone
    for data in options.data:
        dataset, found, n_rows = load_data(data, options.cache), defaultdict[Any, list[float]](list), []
        for seed in range(options.seeds):
            drawn = draw_pool(dataset, start, seed, backbone, options.cache)
            n_rows.append(int(drawn.is_hidden.sum()))
            compare(drawn, found)
        hidden = ", ".join(map(str, n_rows))
        print(f"**{name_of(data)}**, {hidden} rows without a label at the start (seeds 0 to {options.seeds - 1})\n")
        print(tables(found, options.classes - options.known), "\n", flush=True)


if __name__ == "__main__":
    main()
