"""What the labels say about every row now, kept up to date label by label.

``propagation.propagate_labels`` computes the evidence of all classes at all rows anew. ``Beliefs`` holds the same
evidence and changes only what one label changes: evidence is linear in the labels, so a label adds its own flow along
the graph to the column of its class, taking it back subtracts the same flow, and merging two classes adds their
columns. The flow of one label is followed only where it is worth mentioning, so its cost does not grow with the number
of rows.
"""

from __future__ import annotations

import copy
import threading
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.sparse import csr_array

from agcd.arrays import entries_of
from agcd.evidence import NO_CLASS, Columns, Evidence, Floats, Ranked, Strongest, ranked
from agcd.propagation import FADING, N_STEPS
from agcd.types import IntArray

TOLERANCE = 1e-7
"""Flow that is weaker than this is not followed. A row of the label's own neighbourhood gets 1e-4 to 1e-2; on banking77
the suggested class is that of the full computation for 99.9 % of the rows, and the margin of the others is near 0."""
MOST_ROWS = 3000
"""Rows from which a step is followed at most, so that one label costs the same in any pool. Graphs of up to some 20,000
rows are never cut: there a step over so many rows is one over all."""
DENSE_SHARE = 1 / 24
"""When the flow stands on rows with this share of all edges, one product with the whole graph is faster."""
WHOLE_SHARE = 1 / 8
"""When it stands on rows with this share, it is followed from all of them."""
TABLE_NUMBERS = 1 << 25
"""Evidence kept at most, if every row keeps that of all classes; beyond, every row keeps its ``WIDTH`` largest."""
WIDTH = 16
"""Classes whose evidence a row of a large pool keeps; others hardly ever reach it."""
UNNAMED_EVIDENCE = 0.1
"""Evidence that speaks for a class nobody has named, everywhere, as a multiple of what the middle row has of all
others. Where little else has arrived it wins. 0.03 to 0.3 came out alike (docs/LOG.md)."""
SMALLEST_REST = 1e-6
"""What is left when a label's own evidence is subtracted and is smaller than this is rounding, not evidence."""
N_MEASURED = 20_000
"""Rows by which the middle amount of evidence is measured."""


@dataclass(frozen=True)
class Belief:
    """What the labels say about some rows."""

    y_class: IntArray
    """(n,): the class with the most evidence; −1 where none has arrived."""
    margin: Floats
    """(n,): its share of the evidence, less that of the next class or of the unnamed one; never below 0."""
    unnamed: Floats
    """(n,): the share of the evidence that speaks for a class nobody has named."""

    def at(self, rows: IntArray) -> Belief:
        """The same for some of these rows."""
        return Belief(self.y_class[rows], self.margin[rows], self.unnamed[rows])


class Beliefs:
    """The evidence of every class at every row of a neighbour graph.

    Parameters
    ----------
    graph : (n, n), of ``propagation.neighbour_graph``.
    n_classes : the classes to expect; more may come, they only cost time.
    """

    def __init__(self, graph: csr_array, n_classes: int = 0, *, tolerance: float = TOLERANCE):
        n = graph.shape[0]
        self._flow = Flow(graph, tolerance)
        self._n_labels = np.zeros(max(n_classes, 1), np.int64)
        self._evidence: Evidence = Columns(n)
        """Summed over the labels of each class."""
        self._widen()
        self._returned: dict[int, np.float32] = {}
        self._sample = np.unique(np.linspace(0, n - 1, min(n, N_MEASURED)).astype(np.int64))

    def copy(self) -> Self:
        """The same beliefs, which later labels do not change."""
        other = copy.copy(self)
        other._evidence, other._n_labels = self._evidence.copy(), self._n_labels.copy()
        return other

    @property
    def n_labels(self) -> IntArray:
        """(C,): the labels of each class."""
        return self._n_labels

    def add_all(self, y_class: IntArray) -> None:
        """Every row got its class (n,); −1 is none."""
        self.follow(np.full(len(y_class), NO_CLASS), y_class)

    def follow(self, before: IntArray, y_class: IntArray) -> None:
        """Labels that were ``before`` (n,) are ``y_class`` (n,) now; −1 is none."""
        changed = np.flatnonzero(before != y_class)
        for c in np.unique(before[changed]).tolist():
            if c != NO_CLASS:
                self.remove(changed[before[changed] == c], c)
        for c in np.unique(y_class[changed]).tolist():
            if c != NO_CLASS:
                self.add(changed[y_class[changed] == c], c)

    def add(self, rows: IntArray, y_class: int) -> None:
        """These rows got this class."""
        self._expect(y_class)
        self._n_labels[y_class] += len(rows)
        reached, evidence = self._flow.of(rows)
        self._evidence.add(reached, y_class, evidence)

    def remove(self, rows: IntArray, y_class: int) -> None:
        """These rows had this class and have it no longer."""
        self._n_labels[y_class] -= len(rows)
        if self._n_labels[y_class]:
            reached, evidence = self._flow.of(rows)
            self._evidence.add(reached, y_class, -evidence)
        else:  # nothing may be left over, however small
            self._evidence.forget(y_class)

    def merge(self, source: int, target: int) -> None:
        """Everything that was class ``source`` is class ``target`` from now on."""
        self._expect(max(source, target))
        self._n_labels[target] += self._n_labels[source]
        self._n_labels[source] = 0
        rows, evidence = self._evidence.of_class(source)
        self._evidence.forget(source)
        self._evidence.add(rows, target, evidence)

    def at(self, rows: IntArray | None = None) -> Belief:
        """What the labels say about ``rows``; about all of them if None."""
        return _judged(self._evidence.ranked(self._weights, rows), self._unnamed())

    def without_own(self, rows: IntArray, y_class: IntArray) -> Belief:
        """What all labels but a row's own say about labelled rows: (m,), (m,) → (m,).

        ``y_class`` is their own class. A class that has no other label is not heard of. The evidence for a class that
        nobody has named is that of the present moment, the row's own label included.
        """
        classes, evidence = self._evidence.lines(rows)
        own, n_others = classes == y_class[:, None], (self._n_labels[y_class] - 1)[:, None]
        rest = evidence - np.array([self._returns(row) for row in rows.tolist()], np.float32).reshape(-1, 1)
        rest[(rest < SMALLEST_REST) | (n_others < 1)] = 0
        weighed = np.where(own, rest / np.maximum(n_others, 1), evidence * self._weights[classes]).astype(np.float32)
        return _judged(ranked(classes, weighed), self._unnamed())

    def _returns(self, row: int) -> np.float32:
        """What a label of ``row`` adds to the evidence at the row itself; computed once."""
        if row not in self._returned:
            self._returned[row] = self._flow.returns(row)
        return self._returned[row]

    def shares(self, n_classes: int, rows: IntArray | None = None) -> Floats:
        """(n, n_classes): the share of each class in the evidence of each row; all alike where none has arrived."""
        classes, evidence = self._evidence.lines(np.arange(self._flow.graph.shape[0]) if rows is None else rows)
        out = np.zeros((len(evidence), n_classes), np.float32)
        kept = (classes != NO_CLASS) & (classes < n_classes)
        out[np.nonzero(kept)[0], classes[kept]] = (evidence * self._weights[classes])[kept]
        total = out.sum(1, keepdims=True)
        return np.where(total > 0, out / np.maximum(total, np.float32(1e-30)), np.float32(1 / max(n_classes, 1)))

    @property
    def _weights(self) -> Floats:
        """(C,): what makes every class count alike, however many labels it has."""
        return (1 / np.maximum(self._n_labels, 1)).astype(np.float32)

    def _unnamed(self) -> np.float32:
        """The evidence for a class that nobody has named."""
        total = self._evidence.ranked(self._weights, self._sample).total
        reached = total[total > 0]
        return np.float32(UNNAMED_EVIDENCE * (np.median(reached) if len(reached) else 1.0))

    def _expect(self, y_class: int) -> None:
        """Make room for a class that was not heard of yet."""
        if y_class >= len(self._n_labels):
            more = max(y_class + 1, 2 * len(self._n_labels)) - len(self._n_labels)
            self._n_labels = np.append(self._n_labels, np.zeros(more, np.int64))
            self._widen()

    def _widen(self) -> None:
        """Let every row keep the evidence of all classes, or of as many as there is room for."""
        if isinstance(self._evidence, Columns) and self._evidence.n * len(self._n_labels) > TABLE_NUMBERS:
            self._evidence = Strongest.of(self._evidence, WIDTH)


def _judged(found: Ranked, unnamed: np.float32) -> Belief:
    """The belief that a ranking of weighed evidence amounts to."""
    total = found.total.astype(np.float32)
    everything = np.maximum(total + unnamed, np.float32(1e-30))
    rival = np.maximum(found.second, unnamed)
    return Belief(
        found.winner,
        np.asarray(np.maximum(found.best - rival, 0) / everything, np.float32),
        np.asarray(np.where(total > 0, unnamed / everything, 1), np.float32),
    )


class Flow:
    """Evidence flowing from labelled rows along a graph, as ``propagation`` computes it, without looking at all rows.

    A step over few rows touches only their neighbours; one over many is a product with the whole graph. Flow below
    ``tolerance`` is dropped, and of a step over few rows only the ``most_rows`` strongest are followed.
    """

    def __init__(self, graph: csr_array, tolerance: float = TOLERANCE, most_rows: int = MOST_ROWS):
        n = graph.shape[0]
        self.graph, self.tolerance, self.most_rows = graph, np.float32(tolerance), most_rows
        self._sum, self._total = np.zeros(n, np.float32), np.zeros(n, np.float32)
        """Room to add up in, zero between two uses."""
        self._last = np.zeros(n, np.int64)
        self._lock = threading.Lock()
        """For that room: copies of beliefs share a flow, and several threads may ask them."""

    def of(self, labelled: IntArray) -> tuple[IntArray, Floats]:
        """The rows that evidence of the labelled rows reaches, and how much of it: (m,) → (r,), (r,)."""
        rows, n_labels = np.unique(labelled, return_counts=True)
        flow = n_labels.astype(np.float32)
        visited = [rows]
        with self._lock:
            for _ in range(N_STEPS):
                self._total[rows] += np.float32(1 - FADING) * flow
                rows, flow = self._step(rows, flow)
                visited.append(rows)
            self._total[rows] += flow
            reached = np.sort(self._distinct(np.concatenate(visited)))
            return reached, self._taken(self._total, reached)

    def returns(self, row: int) -> np.float32:
        """How much of the evidence of a label is at its own row. The graph is symmetric, so what is back there after
        2 s steps is the square of what has gone s steps: half the way is enough."""
        rows, flow, back = np.array([row]), np.ones(1, np.float32), [1.0]
        with self._lock:
            for _ in range(N_STEPS // 2):
                rows_before, before = rows, flow
                rows, flow = self._step(rows, flow)
                self._sum[rows] = flow
                back += [float(before @ self._sum[rows_before]), float(flow @ flow)]
                self._sum[rows] = 0
        return np.float32((1 - FADING) * sum(back[:-1]) + back[-1])

    def _step(self, rows: IntArray, flow: Floats) -> tuple[IntArray, Floats]:
        """Where the flow that stands on ``rows`` goes next, and how much of it arrives there."""
        n_edges = self.graph.indptr[rows + 1] - self.graph.indptr[rows]
        n_all = n_edges.sum()
        if n_all > DENSE_SHARE * self.graph.nnz:
            self._sum[rows] = flow
            arrived = np.asarray(FADING * (self.graph @ self._sum), np.float32)
            self._sum[rows] = 0
            rows = np.flatnonzero(arrived > self.tolerance)
            flow = arrived[rows]
        else:
            edges = entries_of(self.graph.indptr, rows)
            ends = self.graph.indices[edges].astype(np.int64)
            np.add.at(self._sum, ends, np.float32(FADING) * self.graph.data[edges] * np.repeat(flow, n_edges))
            rows = self._distinct(ends)
            flow = self._taken(self._sum, rows)
            kept = np.flatnonzero(flow > self.tolerance)
            rows, flow = rows[kept], flow[kept]
        if len(rows) > self.most_rows and n_all <= WHOLE_SHARE * self.graph.nnz:
            kept = np.argpartition(-flow, self.most_rows)[: self.most_rows]
            rows, flow = rows[kept], flow[kept]
        return rows, flow

    def _distinct(self, rows: IntArray) -> IntArray:
        """Each of ``rows`` once, in no order; without sorting, which would take most of the time."""
        place = np.arange(len(rows))
        self._last[rows] = place
        return np.asarray(rows[self._last[rows] == place])

    @staticmethod
    def _taken(room: Floats, rows: IntArray) -> Floats:
        values = room[rows]
        room[rows] = 0
        return values
