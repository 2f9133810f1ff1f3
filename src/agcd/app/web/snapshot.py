"""One moment of a project as every page sees it: what people said, what the last model says, and what to call it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agcd.app.rounds import NO_SLOT, Atlas
from agcd.app.store.classes import ClassInfo
from agcd.app.store.fold import DECIDED
from agcd.app.store.standing import NO_CLASS, Standing
from agcd.app.web.images import Pictures
from agcd.app.web.schemas import Thumb
from agcd.errors import DataError
from agcd.types import BoolArray, IntArray

_NO_ROWS = np.empty(0, np.int64)


@dataclass(frozen=True)
class Group:
    """A card of the board: a class that people named, with the slots it has, or one slot that nobody has named."""

    key: str
    info: ClassInfo | None
    slots: tuple[int, ...]
    is_new: bool

    @property
    def name(self) -> str:
        return self.info.name if self.info else f"unnamed #{self.slots[0]}"

    @property
    def slot(self) -> int | None:
        return self.slots[0] if self.slots else None


@dataclass(frozen=True)
class Look:
    """Never changed; made anew when somebody says something or a round ends."""

    standing: Standing
    atlas: Atlas | None
    is_test: BoolArray
    pictures: Pictures

    @cached_property
    def owner_of_slot(self) -> list[str | None]:
        """The class of each slot, after merges; a slot that got its first name since the round is named for now."""
        if self.atlas is None:
            return []
        registry, ids = self.standing.registry, self.atlas.facts["class_ids"]
        owners = [registry.resolve(class_id).id if class_id in registry.classes else None for class_id in ids]
        settled = set(owners)
        for slot, votes in self.votes.items():
            new = [(count, class_id) for class_id, count in votes.items() if class_id not in settled]
            if owners[slot] is None and new:
                owners[slot] = max(new)[1]
        return owners

    @cached_property
    def votes(self) -> dict[int, Counter[str]]:
        """By slot, how many of its rows people gave to which class."""
        votes: defaultdict[int, Counter[str]] = defaultdict(Counter)
        if self.atlas is not None:
            ids = list(self.standing.registry.classes)
            slots = self.atlas.top_slots[self.labels["row"], 0].astype(np.int64)
            pairs = (slots * len(ids) + self.labels["class"])[slots != NO_SLOT]
            for pair, count in zip(*(found.tolist() for found in np.unique(pairs, return_counts=True)), strict=True):
                slot, number = divmod(pair, len(ids))
                votes[slot][ids[number]] = count
        return votes

    @cached_property
    def labels(self) -> NDArray[Any]:
        """The answers that name a class; the newest first, those known from the start last."""
        table = self.standing.table
        return table.take(np.flatnonzero(table["class"] != NO_CLASS))

    @cached_property
    def rows_of_class(self) -> dict[str, IntArray]:
        """The rows that people labelled, by class; the newest label first, those known from the start last."""
        ids = list(self.standing.registry.classes)
        by_class = self.labels.take(np.argsort(self.labels["class"], kind="stable"))
        numbers, starts = np.unique(by_class["class"], return_index=True)
        rows = np.split(by_class["row"], starts[1:])
        return {ids[number]: own for number, own in zip(numbers.tolist(), rows, strict=False)}

    @cached_property
    def n_accepted(self) -> Counter[str]:
        """How many rows were accepted by page, by class."""
        found: Counter[str] = Counter()
        for class_id, count in Counter(event.class_id for event in self.standing.accepted.values()).items():
            if class_id is not None:
                found[self.standing.registry.resolve(class_id).id] += count
        return found

    @cached_property
    def groups(self) -> dict[str, Group]:
        """Every card by its key: classes in the order they were made, then unnamed slots."""
        slots: defaultdict[str | None, list[int]] = defaultdict(list)
        for slot, owner in enumerate(self.owner_of_slot):
            slots[owner].append(slot)
        groups = {}
        for info in self.standing.registry.classes.values():
            if info.merged_into is None and (slots[info.id] or info.id in self.rows_of_class or not info.retired):
                groups[f"c-{info.id}"] = Group(f"c-{info.id}", info, tuple(slots[info.id]), not info.is_old)
        n_old = self.atlas.n_old if self.atlas else 0
        return groups | {f"s-{slot}": Group(f"s-{slot}", None, (slot,), slot >= n_old) for slot in slots[None]}

    @cached_property
    def key_of_slot(self) -> list[str]:
        return [f"c-{owner}" if owner else f"s-{slot}" for slot, owner in enumerate(self.owner_of_slot)]

    def group(self, key: str) -> Group:
        if key not in self.groups:
            raise DataError("There is no such class or group any more.")
        return self.groups[key]

    def group_of_slot(self, slot: int) -> Group:
        return self.groups[self.key_of_slot[slot]]

    def size(self, group: Group) -> int:
        """Its members by the last model; for a class that is newer than that, the rows people labelled."""
        if group.slots and self.atlas is not None:
            return int(self.atlas.sizes[list(group.slots)].sum())
        return len(self.labelled(group))

    def members(self, group: Group) -> IntArray:
        """The rows that the model gives to it, the most probable first."""
        if self.atlas is None or not group.slots:
            return _NO_ROWS
        rows = np.concatenate([self.atlas.members(slot) for slot in group.slots])
        if len(group.slots) > 1:
            rows = rows[np.argsort(-self.atlas.top_probs[rows, 0].astype(np.float32), kind="stable")]
        return rows

    def labelled(self, group: Group) -> IntArray:
        """The rows that people gave to it, the newest first."""
        return self.rows_of_class.get(group.info.id, _NO_ROWS) if group.info else _NO_ROWS

    @cached_property
    def settled(self) -> BoolArray:
        """Rows that need no answer: test rows, and those that somebody labelled, threw out or accepted."""
        mask = self.is_test.copy()
        mask[self.standing.rows_with(DECIDED)] = True
        mask[list(self.standing.accepted)] = True
        return mask

    def thumb(self, row: int) -> Thumb:
        """One picture with what it counts as now."""
        said, registry = self.standing.class_of(row), self.standing.registry
        probability = float(self.atlas.top_probs[row, 0]) if self.atlas else None
        slot = int(self.atlas.top_slots[row, 0]) if self.atlas else NO_SLOT
        thumb = Thumb(row=row, v=self.pictures.version(row), probability=probability)
        if said is not None:
            return thumb.model_copy(update={"name": registry.classes[said].name, "by": "human"})
        accepted = self.standing.accepted_class(row)
        if accepted is not None:
            return thumb.model_copy(update={"name": registry.classes[accepted].name, "by": "page"})
        if slot == NO_SLOT:
            return thumb
        return thumb.model_copy(update={"name": self.group_of_slot(slot).name, "by": "model"})

    def thumbs(self, rows: Iterable[int]) -> list[Thumb]:
        return [self.thumb(int(row)) for row in rows]
