"""What answers say beyond their own rows: votes for the mapping, repaired slots, and classes to learn from.

All of it rests on the labels propagated over the neighbour graph of the features a round starts from
(``agcd.propagation``), so it depends on the round's job alone and comes out the same when a broken round is resumed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array

from agcd.arrays import rank_within
from agcd.propagation import N_NEIGHBOURS, normalised_graph, propagate_labels, widest_reach
from agcd.training.fitted import Fitted
from agcd.training.job import TrainingJob, predicted_slots, train_features
from agcd.training.nearest import nearest_rows
from agcd.types import BoolArray, FloatArray, IntArray, LabelMapping

VOTES_PER_CLASS = 20
"""Unlabelled rows of each class that vote on its slot beside the labelled ones: some, so that one or two answers do
not decide alone, and few, so that the least certain ones never do."""
MEMBER_CERTAINTY = 0.3
"""Rows at least so certain count as members of their class when slots are repaired."""
MISSED_SHARE = 0.5
"""A slot misses its class when it holds less than this share of the class's members."""
EXPLAINED_EVIDENCE = 0.5
"""Labels explain a slot when its middle row has more evidence than this, as a multiple of what the middle one of all
rows has. Certainty would not do: between two classes nobody is certain, and yet nothing is missing there."""


@dataclass(frozen=True)
class PropagatedLabels:
    """The training rows of a round with what its labels say about each."""

    rows: IntArray
    y_class: IntArray
    """(n,): the class that a person gave or accepted, else the propagated one; −1 where there is neither."""
    certainty: FloatArray
    """(n,): 1 for labelled rows, ``page_weight`` for accepted ones, else the certainty of the propagated class."""
    amount: FloatArray
    """(n,): the evidence that has arrived, as ``propagation.Propagation`` counts it."""
    labelled: BoolArray
    graph: csr_array

    def by_row(self, n_rows: int) -> tuple[IntArray, FloatArray]:
        """Class and certainty by row number: (n_rows,), (n_rows,); −1 and 0 for rows outside training."""
        y_class, certainty = np.full(n_rows, -1, np.int64), np.zeros(n_rows, np.float32)
        y_class[self.rows], certainty[self.rows] = self.y_class, self.certainty
        return y_class, certainty

    def voters(self) -> IntArray:
        """Positions of the labelled rows and of the most certain others of each class."""
        place = rank_within(self.y_class, np.where(self.labelled, np.inf, -self.certainty))
        may_vote = (self.y_class >= 0) & (self.certainty > 0) & (place < VOTES_PER_CLASS)
        return np.flatnonzero(self.labelled | may_vote)


def propagate_answers(job: TrainingJob, page_weight: float = 0.0) -> PropagatedLabels:
    """Propagate the labels of a job over the features of the model it starts from; ``page_weight`` is the certainty of
    rows that were accepted by page."""
    assert job.start is not None
    rows = job.labels.train_rows
    said = job.labels.y_class[rows]
    graph = normalised_graph(*nearest_rows(train_features(job, job.start), N_NEIGHBOURS))
    found = propagate_labels(graph, said, len(job.labels.classes))
    labelled = said >= 0
    y_class, certainty = np.where(labelled, said, found.y_class), np.where(labelled, 1, found.certainty)
    if page_weight:
        accepted = job.labels.accepted_classes[rows]
        by_page = (accepted >= 0) & ~labelled
        y_class, certainty = np.where(by_page, accepted, y_class), np.where(by_page, page_weight, certainty)
    return PropagatedLabels(rows, y_class, certainty.astype(np.float32), found.amount, labelled, graph)


def repair(fitted: Fitted, job: TrainingJob, known: PropagatedLabels, mapping: LabelMapping) -> None:
    """Move the slots of novel classes that miss their class to the mean of its members, in both models."""
    y_slot = predicted_slots(job, fitted, known.rows)
    member = known.certainty >= MEMBER_CERTAINTY
    for c in np.flatnonzero(mapping.observed).tolist():
        slot, own = int(mapping.slot_of_class[c]), np.flatnonzero(member & (known.y_class == c))
        if c >= job.labels.n_old and len(own) and (y_slot[own] == slot).mean() < MISSED_SHARE:
            _place(fitted, job, slot, known.rows[own])


def drop_explained(fitted: Fitted, job: TrainingJob, known: PropagatedLabels, mapping: LabelMapping) -> None:
    """Use no more the slots without a class whose rows labels explain, in both models.

    They would take rows from the classes: the loss wants all slots used alike. One without a class always stays; if
    labels explain them all, it goes where labels say least, around the row of the widest reach.
    """
    y_slot = predicted_slots(job, fitted, known.rows)
    unnamed = np.setdiff1d(np.arange(fitted.n_old, fitted.n_slots), mapping.slot_of_class).tolist()
    explained = [s for s in unnamed if _middle(known.amount[y_slot == s]) > EXPLAINED_EVIDENCE]
    spare = explained.pop(0) if unnamed and len(explained) == len(unnamed) else None
    for model in (fitted.student, fitted.ema):
        model.disuse(explained)
    if spare is not None:
        for row in widest_reach(known.graph, 1 - known.certainty, ~known.labelled, 1):  # none if all are labelled
            _place(fitted, job, spare, known.rows[[row, *known.graph[[row]].indices]])


def _middle(amount: FloatArray) -> float:
    """Of no rows at all: without bounds, since a slot nobody is in says nothing new."""
    return float(np.median(amount)) if len(amount) else float("inf")


def _place(fitted: Fitted, job: TrainingJob, slot: int, rows: IntArray) -> None:
    """Put the prototype of a slot on the mean feature of ``rows``, in both models."""
    student = fitted.predict(job.features, rows, "student").features.mean(0)
    ema = fitted.predict(job.features, rows, "ema").features.mean(0)
    fitted.student.place_prototypes([slot], torch.from_numpy(student[None]))
    fitted.ema.place_prototypes([slot], torch.from_numpy(ema[None]))
