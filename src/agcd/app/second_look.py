"""Which pictures of a project deserve a second look: those that people and the model call differently, and those whose
name is least likely to be right."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from agcd.app.snapshot import NO_GROUP, SOURCES, Says, Snapshot
from agcd.report.story import Confusion, Disputed, Doubt
from agcd.types import FloatArray, IntArray

N_PAIRS, N_DOUBTS = 8, 24
"""What a report shows."""
_PER_SIDE, _DISPUTED = 4, 8
_GUESSED = (SOURCES.index("answers"), SOURCES.index("model"))


@dataclass(frozen=True, eq=False)
class SecondLook:
    """A project at one moment, row by row."""

    snapshot: Snapshot

    @cached_property
    def _rows(self) -> IntArray:
        return np.arange(self.snapshot.labels.n_rows)

    @cached_property
    def _says(self) -> Says:
        return self.snapshot.says(self._rows)

    @cached_property
    def _p_right(self) -> FloatArray:
        return self.snapshot.p_right(self._rows)

    @property
    def _n_classes(self) -> int:
        return len(self.snapshot.labels.registry.infos)

    def doubts(self, n: int = N_DOUBTS) -> tuple[Doubt, ...]:
        """The rows in named classes that nobody has checked, the most doubtful first."""
        is_named = (self._says.group != NO_GROUP) & (self._says.group < self._n_classes)
        rows = self._rows[is_named & np.isin(self._says.by, _GUESSED)]
        rows = rows[np.argsort(self._p_right[rows], kind="stable")][:n]
        names = self.snapshot.names
        return tuple(Doubt(row, names[self._says.group[row]], float(self._p_right[row])) for row in rows.tolist())

    def confusions(self, n: int = N_PAIRS) -> tuple[Confusion, ...]:
        """The pairs of classes that are confused, the most frequent first: rows that would be called otherwise without
        what people said of them."""
        rows, by_model = self.snapshot.checks
        said = self._says.group[rows]
        differs = (by_model < self._n_classes) & (said != by_model) & (said != NO_GROUP)
        pairs: defaultdict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
        for row, one, other in np.stack([rows, said, by_model], 1)[differs].tolist():
            pairs[min(one, other), max(one, other)].append((row, one, other))
        ranked = sorted(pairs.items(), key=lambda item: (-len(item[1]), item[0]))
        return tuple(self._confusion(*pair, found) for pair, found in ranked[:n])

    def _confusion(self, one: int, other: int, found: list[tuple[int, int, int]]) -> Confusion:
        names, disputed = self.snapshot.names, np.array([row for row, _, _ in found])
        return Confusion(
            names[one],
            names[other],
            self._typical(one, disputed),
            self._typical(other, disputed),
            len(found),
            tuple(Disputed(row, names[said], names[predicted]) for row, said, predicted in found[:_DISPUTED]),
        )

    def _typical(self, group: int, disputed: IntArray) -> IntArray:
        """The surest rows of a group that are not in dispute."""
        rows = self._rows[self._says.group == group]
        rows = rows[~np.isin(rows, disputed)]
        return np.asarray(rows[np.argsort(-self._p_right[rows], kind="stable")][:_PER_SIDE])
