"""The classes and unnamed slots of a round, numbered, and which of them each row belongs to by whose word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from agcd.app.rounds import Atlas
from agcd.app.store.classes import Registry
from agcd.app.store.events import LabelEvent
from agcd.app.store.standing import Standing
from agcd.types import BoolArray, IntArray

NO_GROUP = -1


@dataclass(frozen=True)
class Group:
    """A class that people named, with the slots it has after merges, or one slot that nobody has named."""

    name: str
    is_new: bool
    slots: tuple[int, ...]
    class_id: str | None


@dataclass(frozen=True)
class Groups:
    """All groups of a round. The arrays (n,) hold a row's group number, or −1."""

    groups: tuple[Group, ...]
    by_people: IntArray
    """What the label says that counts for the row."""
    now: IntArray
    """By people, else as accepted by page, else by the model; −1 for junk and for what cannot be read."""
    is_junk: BoolArray

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(group.name for group in self.groups)

    def members(self, number: int, atlas: Atlas) -> IntArray:
        """The rows that the model gives to a group, the most probable first; junk is left out."""
        slots = self.groups[number].slots
        rows: IntArray = np.concatenate([np.empty(0, np.int64), *(atlas.members(slot) for slot in slots)])
        rows = rows[~self.is_junk[rows]]
        return rows[np.argsort(-atlas.top_probs[rows, 0].astype(np.float32), kind="stable")]


def groups_of(standing: Standing, atlas: Atlas) -> Groups:
    """The groups of a round under the names that stand now."""
    groups = _list_groups(standing, atlas)
    number = {group.class_id: g for g, group in enumerate(groups) if group.class_id}
    n_rows = len(atlas.top_slots)
    # One entry more: unreadable rows have slot −1, and find "no group" at the end.
    group_of_slot = np.full(atlas.n_slots + 1, NO_GROUP, np.int64)
    for g, group in enumerate(groups):
        group_of_slot[list(group.slots)] = g
    by_model = group_of_slot[atlas.top_slots[:, 0]]
    by_people = _said(standing.answers, standing.registry, number, n_rows)
    by_page = _said(standing.accepted, standing.registry, number, n_rows)
    is_junk = np.zeros(n_rows, np.bool_)
    is_junk[[row for row, event in standing.answers.items() if event.kind == "junk"]] = True
    now = np.where(by_people >= 0, by_people, np.where(by_page >= 0, by_page, by_model))
    return Groups(groups, by_people, np.where(is_junk, NO_GROUP, now), is_junk)


def novel_slots(registry: Registry, atlas: Atlas) -> BoolArray:
    """(K,) whether a slot is novel: as its class says, and by its place where it has none."""
    novel = np.arange(atlas.n_slots) >= atlas.n_old
    for slot, class_id in enumerate(atlas.facts["class_ids"]):
        if class_id in registry.classes:
            novel[slot] = not registry.resolve(class_id).is_old
    return novel


def _list_groups(standing: Standing, atlas: Atlas) -> tuple[Group, ...]:
    """Classes that own a slot or carry a label, in the order they were made, then the slots without a name."""
    registry = standing.registry
    owners = [registry.resolve(c).id if c in registry.classes else None for c in atlas.facts["class_ids"]]
    used = {event.class_id for said in (standing.answers, standing.accepted) for event in said.values()}
    listed = {*owners} | {registry.resolve(class_id).id for class_id in used if class_id}
    named = [
        Group(info.name, not info.is_old, tuple(s for s, owner in enumerate(owners) if owner == info.id), info.id)
        for info in registry.classes.values()
        if info.id in listed
    ]
    unnamed = [slot for slot, owner in enumerate(owners) if owner is None]
    return (*named, *(Group(f"unnamed #{slot}", slot >= atlas.n_old, (slot,), None) for slot in unnamed))


def _said(events: Mapping[int, LabelEvent], registry: Registry, number: Mapping[str, int], n_rows: int) -> IntArray:
    """The group of the class that each event names."""
    said = np.full(n_rows, NO_GROUP, np.int64)
    for row, event in events.items():
        if event.class_id is not None:
            said[row] = number[registry.resolve(event.class_id).id]
    return said
