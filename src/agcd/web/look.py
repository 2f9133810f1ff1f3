"""One moment of a project as every page sees it: what people said, what the last model says, and what to call it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from agcd.errors import DataError
from agcd.project.atlas import NO_SLOT, Atlas
from agcd.records.classes import ClassInfo
from agcd.records.standing import Standing
from agcd.types import BoolArray, IntArray
from agcd.web.images import Pictures
from agcd.web.shapes import Thumb


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
            rows = [row for rows in self.rows_of_class.values() for row in rows]
            slots = self.atlas.top_slots[rows, 0].tolist() if rows else []
            classes = [class_id for class_id, rows in self.rows_of_class.items() for _ in rows]
            for slot, class_id in zip(slots, classes, strict=True):
                if slot != NO_SLOT:
                    votes[slot][class_id] += 1
        return votes

    @cached_property
    def rows_of_class(self) -> dict[str, list[int]]:
        """The rows that people labelled, by class; the newest label first, those known from the start last."""
        rows: defaultdict[str, list[int]] = defaultdict(list)
        said = sorted(self.standing.answers.items(), key=lambda item: (item[1].source == "seed", -item[1].id))
        for row, event in said:
            if event.class_id is not None:
                rows[self.standing.registry.resolve(event.class_id).id].append(row)
        return rows

    @cached_property
    def accepted_of_class(self) -> dict[str, list[int]]:
        rows: defaultdict[str, list[int]] = defaultdict(list)
        for row in self.standing.accepted:
            class_id = self.standing.accepted_class(row)
            if class_id is not None:
                rows[class_id].append(row)
        return rows

    @cached_property
    def groups(self) -> dict[str, Group]:
        """Every card by its key: classes in the order they were made, then unnamed slots."""
        slots: defaultdict[str | None, list[int]] = defaultdict(list)
        for slot, owner in enumerate(self.owner_of_slot):
            slots[owner].append(slot)
        groups = {}
        for info in self.standing.registry.classes.values():
            if info.merged_into is None and (slots[info.id] or self.rows_of_class.get(info.id) or not info.retired):
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
        return len(self.rows_of_class.get(group.info.id, ())) if group.info else 0

    def members(self, group: Group) -> IntArray:
        """The rows that the model gives to it, the most probable first."""
        if self.atlas is None or not group.slots:
            return np.empty(0, np.int64)
        rows = np.concatenate([self.atlas.members(slot) for slot in group.slots])
        if len(group.slots) > 1:
            rows = rows[np.argsort(-self.atlas.top_probs[rows, 0].astype(np.float32), kind="stable")]
        return rows

    def labelled(self, group: Group) -> list[int]:
        return self.rows_of_class.get(group.info.id, []) if group.info else []

    @cached_property
    def settled(self) -> BoolArray:
        """Rows that need no answer: test rows, and those that somebody labelled, threw out or accepted."""
        mask = self.is_test.copy()
        mask[[row for row, event in self.standing.answers.items() if event.kind in ("label", "junk")]] = True
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
