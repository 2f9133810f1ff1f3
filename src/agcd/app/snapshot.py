"""One moment of a project: what people say, what the last round says, and what to call every row, group and slot.

The order in which words count is written here and nowhere else: a person said it, a person accepted it by page, the
last model says it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from agcd.app.labels import SAID, SETTLED, How, LabelView
from agcd.app.questions import Asked, n_open
from agcd.app.rounds import NO_SLOT, RoundView, Votes, slot_owners, slot_votes
from agcd.app.store.classes import NO_CLASS, ClassInfo
from agcd.errors import DataError
from agcd.types import BoolArray, IntArray

NO_GROUP = -1
SOURCES = ("", "human", "page", "model")
"""Who says what a row is, by the number in ``Says.by``."""
_NO_ROWS = np.empty(0, np.int64)


@dataclass(frozen=True)
class Group:
    """A class that people named, with the slots that carry its name, or one slot without a name."""

    info: ClassInfo | None
    slots: tuple[int, ...]
    is_new: bool

    @property
    def key(self) -> str:
        return f"c-{self.info.id}" if self.info else f"s-{self.slots[0]}"

    @property
    def name(self) -> str:
        return self.info.name if self.info else unnamed(self.slots[0])

    @property
    def slot(self) -> int | None:
        return self.slots[0] if self.slots else None


def unnamed(slot: int) -> str:
    """What a slot without a name is called."""
    return f"unnamed #{slot}"


@dataclass(frozen=True)
class Says:
    """For some rows the number of their group, or −1, and who says so (a number of ``SOURCES``)."""

    group: IntArray
    by: NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Never changed; made anew when somebody says something or a round ends.

    Groups have numbers: a class its place in the registry, a slot without a name the number of classes more than its
    own.
    """

    labels: LabelView
    round: RoundView | None
    """The last finished round; the one before while its view is not there yet."""
    runs: Mapping[int, int] = field(default_factory=dict)
    """The rounds that have begun, each with the last event that it knows of."""
    n_finished: int = 0
    """How many rounds are done, counting base training."""
    learned: LabelView | None = None
    """What the last finished round learned from."""
    asked: Asked = field(default_factory=Asked)
    """The present query, and the present audit."""

    # ----------------------------------------------------------------------------------------- what is left to do

    @property
    def in_training(self) -> bool:
        """Whether a round was begun and is not finished."""
        return self.n_finished in self.runs

    @cached_property
    def is_due(self) -> bool:
        """Whether there is something to train: a first or broken-off round, new labels, or a view that was deleted."""
        if self.learned is None or self.in_training or self.round is None or self.round.number < self.n_finished - 1:
            return True
        return self.labels.teaches_more_than(self.learned)

    @property
    def n_new_labels(self) -> int:
        """Labels that no round has learned from yet."""
        return self.labels.n_labels_after(self.learned.last_event) if self.learned else 0

    @property
    def n_open(self) -> int:
        """Questions of the present query that wait for an answer."""
        return n_open(self.labels, self.asked.query)

    @property
    def n_audit_open(self) -> int:
        return n_open(self.labels, self.asked.audit)

    # ------------------------------------------------------------------------------------------------- names

    @cached_property
    def owner_of_slot(self) -> IntArray:
        """(K,) the place of the class that each slot is named after, or −1."""
        return _NO_ROWS if self.round is None else slot_owners(self.labels, self.round, self._votes_as_said)

    @cached_property
    def _votes_as_said(self) -> Votes:
        return {} if self.round is None else slot_votes(self.labels, self.round)

    @cached_property
    def group_of_slot(self) -> IntArray:
        """(K + 1,) the number of each slot's group; the last entry is for rows without a slot."""
        owners, n_classes = self.owner_of_slot, len(self.labels.registry.classes)
        numbers = np.where(owners == NO_CLASS, n_classes + np.arange(len(owners)), owners)
        return np.append(numbers, NO_GROUP)

    @cached_property
    def groups(self) -> dict[str, Group]:
        """The groups that are shown, by key: classes in use or with a slot, in the order they were made, then slots
        without a name."""
        slots: defaultdict[int, list[int]] = defaultdict(list)
        for slot, owner in enumerate(self.owner_of_slot.tolist()):
            slots[owner].append(slot)
        in_use = {info.id for info in self.labels.classes_in_use}
        named = [
            Group(info, tuple(slots[place]), not info.is_old)
            for place, info in enumerate(self.labels.registry.infos)
            if info.id in in_use or slots[place]
        ]
        n_old = self.round.n_old if self.round else 0
        groups = [*named, *(Group(None, (slot,), slot >= n_old) for slot in slots[NO_CLASS])]
        return {group.key: group for group in groups}

    def group(self, key: str) -> Group:
        """The group that a request names."""
        if key not in self.groups:
            raise DataError("There is no such class or group any more.")
        return self.groups[key]

    def slot_group(self, slot: int) -> Group:
        """The group that a slot belongs to."""
        place = int(self.owner_of_slot[slot])
        return self.groups[f"s-{slot}" if place == NO_CLASS else f"c-{self.labels.registry.infos[place].id}"]

    @cached_property
    def names(self) -> list[str]:
        """The name of each group, by number."""
        classes = [info.name for info in self.labels.registry.infos]
        return [*classes, *(unnamed(slot) for slot in range(len(self.owner_of_slot)))]

    @cached_property
    def slot_names(self) -> list[tuple[str, bool]]:
        """The name of each slot, and whether its group is new."""
        return [(self.names[number], self.is_new[number]) for number in self.group_of_slot[:-1].tolist()]

    @cached_property
    def is_new(self) -> list[bool]:
        """Whether each group is no class known from the start, by number; without a name its slot's place decides."""
        n_old = self.round.n_old if self.round else 0
        classes = [not info.is_old for info in self.labels.registry.infos]
        return [*classes, *(slot >= n_old for slot in range(len(self.owner_of_slot)))]

    def number(self, group: Group) -> int:
        """The number of a group."""
        registry = self.labels.registry
        return registry.place_of[group.info.id] if group.info else len(registry.classes) + group.slots[0]

    # --------------------------------------------------------------------------------------------------- rows

    def says(self, rows: IntArray) -> Says:
        """What each of ``rows`` is, and who says so; junk and what cannot be read belong nowhere."""
        how, said = self.labels.how(rows), self.labels.classes_of(rows)
        by_model = self.group_of_slot[self.slots(rows)]
        is_said, is_accepted, is_junk = np.isin(how, SAID), how == How.ACCEPTED, how == How.JUNK
        by = np.select([is_junk, is_said, is_accepted, by_model != NO_GROUP], [0, 1, 2, 3], 0)
        return Says(np.select([by == 0, by == 3], [np.int64(NO_GROUP), by_model], said), by.astype(np.int8))

    def slots(self, rows: IntArray) -> IntArray:
        """The slot that the last model gives to each of ``rows``, or −1."""
        if self.round is None:
            return np.full(len(rows), NO_SLOT, np.int64)
        return np.asarray(self.round.top_slots[rows, 0], np.int64)

    def members(self, group: Group, n: int | None = None) -> IntArray:
        """The train rows that the model gives to a group, the most probable first, or the first ``n`` of them; junk is
        left out."""
        if self.round is None or not group.slots:
            return _NO_ROWS
        looked_at = None if n is None else n + self.labels.n(How.JUNK)
        rows: IntArray = np.concatenate([self.round.members(slot)[:looked_at] for slot in group.slots])
        rows = rows[~self._is_junk[rows]]
        if len(group.slots) > 1:
            rows = rows[np.argsort(-self.round.top_probs[rows, 0].astype(np.float32), kind="stable")]
        return rows[:n]

    @cached_property
    def _is_junk(self) -> BoolArray:
        mask = np.zeros(len(self.labels.is_test), np.bool_)
        mask[self.labels.rows((How.JUNK,))] = True
        return mask

    def labelled(self, group: Group) -> IntArray:
        """The rows that people gave to a class, the newest first, those known from the start last."""
        return self._rows_of_class.get(self.number(group), _NO_ROWS) if group.info else _NO_ROWS

    @cached_property
    def _rows_of_class(self) -> dict[int, IntArray]:
        labels = self.labels.labels
        merged = self.labels.registry.merged_place[labels["class"]]
        order = np.argsort(merged, kind="stable")
        found, starts = np.unique(merged[order], return_index=True)
        return dict(zip(found.tolist(), np.split(labels["row"][order], starts[1:]), strict=False))

    def size(self, group: Group) -> int:
        """How many train rows count as this group now, whoever says so."""
        return int(self._sizes[self.number(group)])

    @cached_property
    def _sizes(self) -> IntArray:
        """Train rows by number of their group: as the model has them, less those of which people say what they are."""
        sizes = np.zeros(len(self.names), np.int64)
        said = self.labels.rows(SETTLED)
        if self.round is not None:
            np.add.at(sizes, self.group_of_slot[:-1], self.round.sizes)
            slots = self.slots(said)
            np.subtract.at(sizes, self.group_of_slot[slots[slots != NO_SLOT]], 1)
        groups = self.says(said).group
        np.add.at(sizes, groups[groups != NO_GROUP], 1)
        return sizes

    def shown_groups(self) -> list[Group]:
        """Every group but slots that are empty and have no name."""
        return [group for group in self.groups.values() if group.info or self.size(group)]

    def n_accepted(self, group: Group) -> int:
        """How many rows were accepted for a class by page."""
        return int((self._accepted_classes == self.number(group)).sum()) if group.info else 0

    @cached_property
    def _accepted_classes(self) -> IntArray:
        return self.labels.classes_of(self.labels.rows((How.ACCEPTED,)))

    # ------------------------------------------------------------------------------ where people and model differ

    @cached_property
    def votes(self) -> Votes:
        """How many labels of each class lie in each slot, by (place after merges, slot)."""
        merged: defaultdict[tuple[int, int], int] = defaultdict(int)
        place_of = self.labels.registry.merged_place.tolist()
        for (place, slot), n in self._votes_as_said.items():
            merged[place_of[place], slot] += n
        return dict(merged)

    def labels_inside(self, slots: Sequence[int]) -> dict[int, int]:
        """How many labels of which class lie in some slots, by place of the class."""
        inside: Counter[int] = Counter()
        for slot in slots:
            inside.update(self._votes_of_slot.get(slot, {}))
        return dict(inside)

    @cached_property
    def _votes_of_slot(self) -> dict[int, dict[int, int]]:
        found: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for (place, slot), n in self.votes.items():
            found[slot][place] = n
        return dict(found)

    def contains(self, group: Group, *, others: bool = False) -> str:
        """What people call the members of a group, the most frequent first: "dolphin (5), turtle (4)"."""
        own = self.number(group) if others else NO_CLASS
        counts = [(n, place) for place, n in self.labels_inside(group.slots).items() if place != own]
        infos = self.labels.registry.infos
        return ", ".join(f"{infos[place].name} ({n})" for n, place in sorted(counts, key=lambda c: (-c[0], c[1])))

    @cached_property
    def disagreeing(self) -> IntArray:
        """Labelled rows for which the last model would say something else, rising."""
        rows: IntArray = np.sort(self.labels.labels["row"])
        slots = self.slots(rows)
        differs = (slots != NO_SLOT) & (self.group_of_slot[slots] != self.labels.classes_of(rows))
        return np.asarray(rows[differs])
