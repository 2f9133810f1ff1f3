"""What pictures that were accepted by page are worth to training, by ``train.answers.page_weight``.

    python benchmarks/accepted_pages.py --data DIR [--data DIR …] [--seeds 2] [--classes 20] [--answers 60]

Classes are drawn with the seed, 8 known by 5 labels each; the train rows alone, of which two fifths of every class are
kept away from everything. A simulated person answers questions about the rest and then looks over all of it: wrong
names become labels, right ones are accepted, and a share of the wrong ones is overlooked and accepted too. A model is
trained on that with several weights; how many of the rows kept away it names right. *As labels*: accepted rows given
as labels.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from agcd.asking import Asking, Neighbours
from agcd.config import make_config
from agcd.features import open_features
from agcd.features.rows import RowFeatures
from agcd.io import default_cache
from agcd.lab.datasets import load_data
from agcd.lab.person.pool import Start, draw_classes, only_rows, start_labels
from agcd.lab.results import markdown_table, mean_std
from agcd.rng import generator
from agcd.session import Session
from agcd.training.fitted import frozen_features
from agcd.types import UNLABELLED, BoolArray, Dataset, IntArray, LabelState

N_KNOWN, N_LABELS, N_SPARE = 8, 5, 5
KEPT_AWAY = 0.4
PAGE_WEIGHTS = (0.0, 0.3, 0.5, 1.0)
OVERLOOKED = (0.0, 0.3)


@dataclass(frozen=True)
class Reviewed:
    """A collection after questions and review; classes are numbers, the known ones first."""

    truth: IntArray
    y_start: IntArray
    is_away: BoolArray
    y_class: IntArray
    """(n,): labels from the start, by answers, and of wrong names that the review found."""
    accepted: IntArray

    def state(self, *, labels_only: bool = False, pages_as_labels: bool = False) -> LabelState:
        """What training is told."""
        y_class = np.where(self.accepted >= 0, self.accepted, self.y_class) if pages_as_labels else self.y_class
        found = np.setdiff1d(np.unique(y_class[y_class >= N_KNOWN]), [UNLABELLED])
        order = [*range(N_KNOWN), *found.tolist()]
        number = np.full(max(order) + 2, UNLABELLED)
        number[order] = np.arange(len(order))
        told = LabelState(
            tuple(str(c) for c in order),
            N_KNOWN,
            number[y_class],
            np.where(y_class < 0, UNLABELLED, np.where(self.y_start >= 0, 0, 1)),
            self.is_away,
            np.zeros(len(y_class), np.bool_),
        )
        return told if labels_only or pages_as_labels else replace(told, accepted=number[self.accepted])


def review(
    dataset: Dataset, truth: IntArray, y_start: IntArray, is_away: BoolArray, n: int, overlooked: float
) -> Reviewed:
    """Questions about the rows at hand, then a look at each of them."""
    backbone = make_config({}).backbone.model_copy(update={"trainable_blocks": 0, "views": 1})
    at_hand, y_class = np.flatnonzero(~is_away), y_start.copy()
    x = frozen_features(open_features(dataset, backbone, default_cache()), at_hand)
    asking = Asking(Neighbours.of(x.astype(np.float16)), y_class[at_hand])
    for number in range(n):
        place, _ = asking.question(number)
        y_class[at_hand[place]] = truth[at_hand[place]]
        asking.tell(place, int(truth[at_hand[place]]))
    believed = np.full(len(truth), UNLABELLED)
    believed[at_hand] = asking.beliefs.at().y_class
    is_wrong = (believed != truth) & (y_class < 0) & ~is_away
    is_found = is_wrong & (generator(0, "overlooked").random(len(truth)) >= overlooked)
    y_class = np.where(is_found, truth, y_class)
    return Reviewed(truth, y_start, is_away, y_class, np.where((y_class < 0) & ~is_away, believed, UNLABELLED))


def right_away(features: RowFeatures, said: Reviewed, told: LabelState, page_weight: float, n_classes: int) -> float:
    """The share of the rows kept away that a model names right: base training, then one round with what was said."""
    config = make_config({"train": {"answers": {"page_weight": page_weight}}})
    at_start = replace(
        told,
        classes=told.classes[:N_KNOWN],
        y_class=np.where(said.y_start >= 0, told.y_class, UNLABELLED),
        asked_round=np.where(said.y_start >= 0, 0, UNLABELLED),
        accepted=None,
    )
    session = Session(features, at_start, config, n_classes + N_SPARE)
    session.train()
    session.labels = told
    done = session.train()
    rows = np.flatnonzero(said.is_away)
    slots = done.fitted.predict(features, rows, "ema").y_slot
    class_of_slot = {int(slot): int(name) for name, slot in zip(told.classes, done.last.slot_of_class, strict=True)}
    return float(
        np.mean([class_of_slot.get(slot) == c for slot, c in zip(slots.tolist(), said.truth[rows], strict=True)])
    )


def measure(data: str, seed: int, start: Start, n_answers: int, overlooked: float) -> list[float]:
    """Right names with answers and found wrong ones alone, with each weight, and with pages as labels."""
    whole = load_data(data, default_cache())
    rows, truth, classes = draw_classes(whole, start, seed)
    dataset, rng = only_rows(whole, rows), generator(seed, "kept away")
    is_away = np.zeros(len(rows), np.bool_)
    for c in range(len(classes)):
        own = np.flatnonzero(truth == c)
        is_away[rng.permutation(own)[: int(KEPT_AWAY * len(own))]] = True
    y_start = start_labels(np.where(is_away, UNLABELLED, truth), start, seed)
    said = review(dataset, truth, y_start, is_away, n_answers, overlooked)
    features = open_features(dataset, make_config({}).backbone, default_cache())
    found = [right_away(features, said, said.state(labels_only=not w), w, len(classes)) for w in PAGE_WEIGHTS]
    return [*found, right_away(features, said, said.state(pages_as_labels=True), 0.0, len(classes))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", action="append", required=True)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--classes", type=int, default=20)
    parser.add_argument("--answers", type=int, default=60)
    given = parser.parse_args()
    start, lines = Start(given.classes, N_KNOWN, N_LABELS), []
    for data in given.data:
        for overlooked in OVERLOOKED:
            found = [measure(data, seed, start, given.answers, overlooked) for seed in range(given.seeds)]
            shares = [mean_std(list(values), percent=True) for values in zip(*found, strict=True)]
            lines.append([Path(data).name, f"{100 * overlooked:.0f} %", *shares])
    heads = ["data", "overlooked", *(f"weight {w:g}" for w in PAGE_WEIGHTS), "as labels"]
    print(markdown_table(heads, lines))


if __name__ == "__main__":
    main()
