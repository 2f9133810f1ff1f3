"""Wrong labels that are put in on purpose: how many of them cleanlab finds, and how many agcd's second look.

    python benchmarks/rivals_errors.py --data banking77.npz --data flowers102 [--seeds 5] [--labelled 300] [--wrong 0.1]

Rows of twenty classes are drawn; so many of them (0: all) have labels, and a share of these is changed to another class
at random. Both sides have the frozen features and the labels, and order the labelled rows by how much they suspect
them. Printed is the share of the wrong labels among the first so many looks, and the same with the looks as multiples
of the number of wrong labels: mean ± deviation over seeds.

- cleanlab: ``get_label_quality_scores`` of a logistic regression's probabilities out of sample (5 folds), as its
  documentation does it.
- agcd: the order of the *second look* of ``agcd report``, whose code is run here: pairs of classes by how often people
  and the answers around a row differ, of each pair up to eight rows. And the same rows, the surest contradiction first.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from cleanlab.rank import get_label_quality_scores
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from agcd.accuracy import CHOSEN
from agcd.app.second_look import SecondLook
from agcd.app.snapshot import SOURCES, Says
from agcd.asking import Asking, Neighbours
from agcd.config import make_config
from agcd.evidence import NO_CLASS
from agcd.io import default_cache
from agcd.lab.datasets import load_data
from agcd.lab.person.pool import Drawn, Start, draw_pool
from agcd.lab.results import markdown_table, mean_std, name_of
from agcd.rng import generator
from agcd.signs import judge
from agcd.types import IntArray

MULTIPLES = (0.5, 1.0, 2.0)
CHANCE, SECOND_LOOK, SUREST = "at random", "agcd, second look of the report", "agcd, the surest contradiction first"
CLEANLAB = {"cleanlab, C = 1": 1.0, "cleanlab, C = 100": 100.0}
"""The penalty of the classifier whose probabilities cleanlab is given: scikit-learn's default, and one that suits
features of unit length."""
FOLDS = 5


def with_wrong_labels(drawn: Drawn, n_labelled: int, share: float, seed: int) -> tuple[IntArray, IntArray]:
    """The labels (n,), −1 where there is none, and the rows whose label is wrong."""
    rng, n = generator(seed, "rivals", "errors"), len(drawn.truth)
    rows = rng.permutation(n)[: n_labelled or n]
    y_class = np.full(n, NO_CLASS)
    y_class[rows] = drawn.truth[rows]
    wrong = rows[: round(share * len(rows))]
    n_classes = len(drawn.names)
    y_class[wrong] = (drawn.truth[wrong] + rng.integers(1, n_classes, len(wrong))) % n_classes
    return y_class, wrong


def by_cleanlab(drawn: Drawn, y_class: IntArray, c: float) -> IntArray:
    """The labelled rows, the most suspicious first."""
    rows = np.flatnonzero(y_class != NO_CLASS)
    _, labels, sizes = np.unique(y_class[rows], return_inverse=True, return_counts=True)
    folds = StratifiedKFold(min(FOLDS, int(sizes.min())), shuffle=True, random_state=0)
    model = LogisticRegression(C=c, max_iter=1000)
    probs = cross_val_predict(model, drawn.pool.x[rows], labels, cv=folds, method="predict_proba")
    return np.asarray(rows[np.argsort(get_label_quality_scores(labels, probs), kind="stable")])


def by_second_look(drawn: Drawn, y_class: IntArray) -> tuple[IntArray, IntArray]:
    """The rows that the report would show, in its order; and all that are contradicted, the surest first."""
    asking = Asking(Neighbours.of(drawn.pool.x), y_class)
    judged = judge(asking, y_class, np.where(y_class == NO_CLASS, 0, CHOSEN))
    rows, believed, n_classes = judged.labelled_rows, judged.believed, len(drawn.names)
    shown = SecondLook(_as_snapshot(drawn, y_class, rows, np.where(believed == NO_CLASS, n_classes, believed)))
    pairs = shown.confusions(n_classes**2)
    differ = rows[(believed != y_class[rows]) & (believed != NO_CLASS)]
    sureness = asking.beliefs.without_own(differ, y_class[differ]).margin
    in_report = [disputed.row for pair in pairs for disputed in pair.disputed]
    return np.array(in_report, np.int64), differ[np.argsort(-sureness, kind="stable")]


def _as_snapshot(drawn: Drawn, y_class: IntArray, rows: IntArray, believed: IntArray) -> Any:
    """What the second look reads of a project at one moment."""
    labels = SimpleNamespace(n_rows=len(y_class), registry=SimpleNamespace(infos=drawn.names))
    return SimpleNamespace(
        labels=labels,
        names=list(drawn.names),
        checks=(rows, believed),
        says=lambda rows: Says(y_class[rows], np.full(len(rows), SOURCES.index("human"), np.int8)),
        p_right=lambda rows: np.zeros(len(rows), np.float32),
    )


def found_among(order: IntArray, wrong: IntArray, n_looks: int) -> float:
    """The share of the wrong labels among the first looks."""
    return float(np.isin(wrong, order[:n_looks]).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", action="append", required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--labelled", type=int, default=300)
    parser.add_argument("--wrong", type=float, default=0.1)
    parser.add_argument("--classes", type=int, default=20)
    parser.add_argument("--cache", type=Path, default=default_cache())
    options = parser.parse_args()
    backbone = make_config({"backbone": {"trainable_blocks": 0}}).backbone
    for data in options.data:
        dataset, found = load_data(data, options.cache), defaultdict[Any, list[float]](list)
        n_labelled, n_contradicted = [], []
        for seed in range(options.seeds):
            drawn = draw_pool(dataset, Start(options.classes, options.classes, 5), seed, backbone, options.cache)
            y_class, wrong = with_wrong_labels(drawn, options.labelled, options.wrong, seed)
            in_report, surest = by_second_look(drawn, y_class)
            rows = np.flatnonzero(y_class != NO_CLASS)
            chance = generator(seed, "rivals", "chance").permutation(rows)
            orders = {CHANCE: chance, **{name: by_cleanlab(drawn, y_class, c) for name, c in CLEANLAB.items()}}
            orders |= {SECOND_LOOK: in_report, SUREST: surest}
            n_labelled.append(len(rows))
            n_contradicted.append(len(surest))
            for name, order in orders.items():
                for multiple in MULTIPLES:
                    found[name, multiple].append(found_among(order, wrong, round(multiple * len(wrong))))
        lines = [[name, *(mean_std(found[name, m], percent=True) for m in MULTIPLES)] for name in orders]
        print(
            f"**{name_of(data)}**, {', '.join(map(str, n_labelled))} labels, {options.wrong:.0%} of them wrong; "
            f"agcd contradicts {', '.join(map(str, n_contradicted))} of them\n"
        )
        print(markdown_table(["wrong labels found", *(f"{m:g} × as many looks" for m in MULTIPLES)], lines), flush=True)


if __name__ == "__main__":
    main()
