"""Measures models against the truth. It sees the truth of the pool; what it measures is only written down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from agcd import metrics
from agcd.arrays import calibration_error
from agcd.features.rows import RowFeatures
from agcd.mapping import consistency, map_labels
from agcd.training.fitted import Fitted
from agcd.types import Dataset, IntArray, LabelMapping, LabelState, Split


@dataclass(frozen=True)
class Evaluator:
    """The truth of every row, as class numbers with the old classes first, and the rows to measure on."""

    features: RowFeatures
    names: tuple[str, ...]
    truth: IntArray
    rows: IntArray
    n_old: int
    on_test: bool

    def __call__(self, fitted: Fitted) -> dict[str, Any]:
        """All/Old/New accuracy of the EMA model: cheap enough for every epoch."""
        prediction = fitted.predict(self.features, self.rows, "ema")
        return rounded(metrics.accuracy(self.truth[self.rows], prediction.y_slot, self.n_old))

    def answer(self, rows: IntArray) -> list[str]:
        """What a perfect annotator would say."""
        return [self.names[c] for c in self.truth[rows]]

    def full(self, fitted: Fitted, mapping: LabelMapping, labels: LabelState) -> dict[str, Any]:
        """Everything we report about a finished round."""
        prediction = fitted.predict(self.features, self.rows, "ema")
        truth, y_slot = self.truth[self.rows], prediction.y_slot
        by_test = map_labels(truth, y_slot, len(self.names), fitted.n_slots, n_old=self.n_old, pin_old=False)
        own_class = self._to_own_numbering(labels)
        mapped = np.full(len(self.names), -1, np.int64)
        mapped[own_class] = mapping.slot_of_class
        correct = y_slot == by_test.slot_of_class[truth]
        known = LabelMapping(by_test.slot_of_class[own_class], mapping.observed, by_test.agreement)
        return rounded(
            metrics.accuracy(truth, y_slot, self.n_old)
            | metrics.balanced_accuracy(truth, y_slot, self.n_old)
            | metrics.mapped_accuracy(truth, y_slot, mapped, self.n_old)
            | metrics.confidence(prediction.probs, truth >= self.n_old)
            | metrics.novelty(self.truth[labels.queried_rows], self.n_old, len(self.names) - self.n_old)
            | {
                "calibration_error": calibration_error(prediction.probs, correct),
                "mapping_consistency": consistency(mapping, known),
            }
        )

    def _to_own_numbering(self, labels: LabelState) -> IntArray:
        """The truth's number of every class that ``labels`` knows."""
        number = {name: i for i, name in enumerate(self.names)}
        return np.asarray([number[name] for name in labels.classes], np.int64)


def make_evaluator(dataset: Dataset, split: Split, truth: IntArray, features: RowFeatures) -> Evaluator:
    """Measure on the test rows; where there are none, on the unlabelled training rows, and say so."""
    usable = np.ones(dataset.n_rows, bool)
    usable[list(features.bad_rows)] = False
    usable &= truth >= 0
    on_test = bool((dataset.is_test & usable).any())
    if on_test:
        rows = np.flatnonzero(dataset.is_test & usable)
    else:
        usable[split.labelled_rows] = usable[split.unused_rows] = False
        rows = np.flatnonzero(usable)
    names = split.old_classes + split.novel_classes
    return Evaluator(features, names, truth, rows, len(split.old_classes), on_test)


def rounded(values: dict[str, float]) -> dict[str, Any]:
    """Six digits, and None where a figure does not exist, so that the values are plain JSON."""
    return {name: None if np.isnan(value) else round(float(value), 6) for name, value in values.items()}
