"""One moment of a project: what people say, what the last round says, and what to call every row, group and slot.

The order in which words count is written here and nowhere else: a person said it, a person accepted it by page, the
answers so far say it, the last model says it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from agcd.app.labels import NOWHERE, SAID, SETTLED, How, LabelView, among
from agcd.app.live import LiveLog, LiveView
from agcd.app.questions import Asked, n_open
from agcd.app.rounds import NO_SLOT, RoundView, Votes, slot_owners, slot_votes
from agcd.app.store.classes import NO_CLASS, ClassInfo
from agcd.arrays import entries_of
from agcd.errors import DataError
from agcd.types import BoolArray, FloatArray, IntArray

NO_GROUP = -1
SOURCES = ("", "human", "page", "answers", "model")
"""Who says what a row is, by the number in ``Says.by``."""
_NO_ROWS = np.empty(0, np.int64)


@dataclass(frozen=True)
class Group:
    """A class that people named, with the slots that carry its name, or one cluster without a name."""

    info: ClassInfo | None
    slots: tuple[int, ...]
    """Of the model, where the model names its rows; else the one cluster of a group without a name."""
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


def _live_group(info: ClassInfo | None, cluster: int = NO_CLASS) -> Group:
    """A class, or a cluster without a name, where the answers name rows."""
    return Group(None, (cluster,), True) if info is None else Group(info, (), not info.is_old)


def unnamed(cluster: int) -> str:
    """What a cluster without a name is called."""
    return f"unnamed #{cluster}"


@dataclass(frozen=True)
class Says:
    """For some rows the number of their group, or −1, and who says so (a number of ``SOURCES``)."""

    group: IntArray
    by: NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Never changed; made anew when somebody says something or a round ends.

    Groups have numbers: a class its place in the registry, a cluster without a name the number of classes more than its
    own. Where the view has neighbours, rows are called what the answers say, and clusters are its own; otherwise the
    model's slots are the clusters, and their names those of their owners.
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
    live_log: LiveLog | None = field(default=None, repr=False)
    noun: str = "picture"
    """What a row is called (``agcd.app.kinds``)."""
    _labelled: dict[int, IntArray] = field(default_factory=dict, repr=False)
    """What ``labelled`` has found so far."""

    # ----------------------------------------------------------------------------------------- what is left to do

    @property
    def in_training(self) -> bool:
        """Whether a round was begun and is not finished."""
        return self.n_finished in self.runs

    @cached_property
    def is_due(self) -> bool:
        """Whether there is something to train: a first or broken-off round, new labels, or a view that was deleted."""
        if self.learned is None or self.in_training or self.lacks_view:
            return True
        return self.labels.teaches_more_than(self.learned)

    @property
    def lacks_view(self) -> bool:
        """Whether cache/ has lost what the page shows of the last finished round: training makes it again."""
        return self.n_finished > 0 and (self.round is None or self.round.number < self.n_finished - 1)

    @property
    def n_new_labels(self) -> int:
        """Labels that no round has learned from yet."""
        return self.labels.n_labels_after(self.learned.last_event) if self.learned else 0

    @property
    def n_new_accepted(self) -> int:
        """Rows accepted by page that no round has learned from yet."""
        return self.labels.n_accepted_after(self.learned.last_event) if self.learned else 0

    @property
    def n_open(self) -> int:
        """Questions of the present query that wait for an answer."""
        return n_open(self.labels, self.asked.query)

    @property
    def n_audit_open(self) -> int:
        return n_open(self.labels, self.asked.audit)

    # ------------------------------------------------------------------------------------- what the answers say

    @cached_property
    def live(self) -> LiveView | None:
        """What the labels say about rows without one; None where the view has no neighbours."""
        return self.live_log.view(self.labels, self.round) if self.live_log and self.round else None

    @cached_property
    def _live_numbers(self) -> IntArray:
        """(m + 1,) by place of a live row the number of its group; the last entry is for rows that cannot be read."""
        assert self.live is not None
        believed, n_classes = self.live.belief.y_class, len(self.labels.registry.classes)
        nameless = self.live.is_unclaimed | (believed == NO_CLASS)
        return np.append(np.where(nameless, n_classes + self.live.rows.cluster, believed), NO_GROUP)

    def machine_numbers(self, rows: IntArray) -> IntArray:
        """The group that answers, or else the model, give to each of ``rows``, whatever people say of it."""
        if self.live is not None:
            return self._live_numbers[self.live.rows.stand_in[rows]]
        return self.group_of_slot[self.slots(rows)]

    @cached_property
    def _sureness(self) -> FloatArray:
        """(m + 1,) by place of a live row, the chance that its name is right; 0 for groups without a name."""
        assert self.live is not None
        chance, judged = np.zeros(len(self._live_numbers), np.float32), self.live.judgement
        chance[judged.pool_rows] = judged.p_right
        chance[self._live_numbers >= len(self.labels.registry.classes)] = 0
        return chance

    def p_right(self, rows: IntArray) -> FloatArray:
        """The chance that each of ``rows`` is called what it is: 1 where a person looked and said so."""
        settled = among(self.labels.how(rows), SETTLED) & ~np.isin(rows, self.labels.unseen)
        if self.round is None:
            return settled.astype(np.float32)
        if self.live is not None:
            chance = self._sureness[self.live.rows.stand_in[rows]]
        else:
            chance = self.round.top_probs[rows, 0].astype(np.float32)
        return np.where(settled, np.float32(1), chance)

    def likely_classes(self, rows: IntArray) -> list[list[int]]:
        """The classes for which most speaks at each of ``rows``, as places, the likeliest first."""
        if self.live is not None:
            return [[place for place, _ in shares] for shares in self.live.suggested(rows)]
        if self.round is None:
            return [[] for _ in rows]
        numbers = self.group_of_slot[self.round.top_slots[rows]].tolist()
        return [[n for n in line if 0 <= n < len(self.labels.registry.classes)] for line in numbers]

    def margin(self, rows: IntArray) -> FloatArray:
        """How clear it is what each of ``rows`` is, from 0 to 1."""
        if self.round is None:
            return np.zeros(len(rows), np.float32)
        if self.live is None:
            return self.round.margin(rows)
        return np.append(self.live.belief.margin, np.float32(0))[self.live.rows.stand_in[rows]]

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
        in_use = {info.id for info in self.labels.classes_in_use}
        infos = self.labels.registry.infos
        if self.live is not None:
            groups = [_live_group(info) for info in infos if info.id in in_use]
            groups += [_live_group(None, cluster) for cluster in self.live.rows.clusters]
            return {group.key: group for group in groups}
        slots: defaultdict[int, list[int]] = defaultdict(list)
        for slot, owner in enumerate(self.owner_of_slot.tolist()):
            slots[owner].append(slot)
        named = [
            Group(info, tuple(slots[place]), not info.is_old)
            for place, info in enumerate(infos)
            if info.id in in_use or slots[place]
        ]
        groups = [*named, *(Group(None, (slot,), slot >= self._n_old) for slot in slots[NO_CLASS])]
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

    def group_by_number(self, number: int) -> Group:
        """The group with a number."""
        infos = self.labels.registry.infos
        if self.live is not None:  # these need not be looked for among all
            return _live_group(infos[number] if number < len(infos) else None, number - len(infos))
        return self.groups[f"c-{infos[number].id}" if number < len(infos) else f"s-{number - len(infos)}"]

    @cached_property
    def names(self) -> list[str]:
        """The name of each group, by number."""
        classes = [info.name for info in self.labels.registry.infos]
        return [*classes, *(unnamed(cluster) for cluster in range(self._n_clusters))]

    @property
    def _n_clusters(self) -> int:
        return self.round.n_clusters if self.round else 0

    @property
    def _n_old(self) -> int:
        """The first clusters, which belong to classes known from the start: slots are in that order, clusters not."""
        return self.round.n_old if self.round and self.live is None else 0

    @cached_property
    def slot_names(self) -> list[tuple[str, bool]]:
        """The name of each slot of the model, and whether its class is new."""
        infos, n_old = self.labels.registry.infos, self.round.n_old if self.round else 0
        return [
            (infos[place].name, not infos[place].is_old) if place != NO_CLASS else (unnamed(slot), slot >= n_old)
            for slot, place in enumerate(self.owner_of_slot.tolist())
        ]

    @cached_property
    def is_new(self) -> list[bool]:
        """Whether each group is no class known from the start, by number; without a name its slot's place decides."""
        classes = [not info.is_old for info in self.labels.registry.infos]
        return [*classes, *(cluster >= self._n_old for cluster in range(self._n_clusters))]

    def number(self, group: Group) -> int:
        """The number of a group."""
        registry = self.labels.registry
        return registry.place_of[group.info.id] if group.info else len(registry.classes) + group.slots[0]

    # --------------------------------------------------------------------------------------------------- rows

    def says(self, rows: IntArray) -> Says:
        """What each of ``rows`` is, and who says so; junk, what was removed and what cannot be read belong nowhere."""
        how, said = self.labels.how(rows), self.labels.classes_of(rows)
        found = self.machine_numbers(rows)
        is_said, is_accepted, is_out = among(how, SAID), how == How.ACCEPTED, among(how, NOWHERE)
        machine = SOURCES.index("model" if self.live is None else "answers")
        by = np.select([is_out, is_said, is_accepted, found != NO_GROUP], [0, 1, 2, machine], 0)
        return Says(np.select([by == 0, by == machine], [np.int64(NO_GROUP), found], said), by.astype(np.int8))

    def slots(self, rows: IntArray) -> IntArray:
        """The slot that the last model gives to each of ``rows``, or −1."""
        if self.round is None:
            return np.full(len(rows), NO_SLOT, np.int64)
        return np.asarray(self.round.top_slots[rows, 0], np.int64)

    def members(self, group: Group, n: int | None = None) -> IntArray:
        """The train rows that belong to a group, the clearest first, or the first ``n`` of them; without junk and what
        was removed.

        Where answers are followed, these are the rows of which nobody says otherwise, then those that are here because
        people alone say so; else the rows of the model's slots.
        """
        if self.live is not None:
            return self._live_members(self.number(group), n)
        looked_at = None if n is None else n + self.labels.n(*NOWHERE)
        if self.round is None or not group.slots:
            return _NO_ROWS
        rows = np.concatenate([self.round.members(slot)[:looked_at] for slot in group.slots])
        rows = rows[~self._is_out[rows]]
        if len(group.slots) > 1:
            rows = rows[np.argsort(-self.round.top_probs[rows, 0].astype(np.float32), kind="stable")]
        return np.asarray(rows[:n])

    def _live_members(self, number: int, n: int | None) -> IntArray:
        rows, by_machine, by_people = self._said_otherwise
        strangers, own = rows[by_machine == number], rows[by_people == number]
        found = self._believed_members(number, None if n is None else n + len(strangers))
        return np.asarray(np.concatenate([found[~np.isin(found, strangers)], own])[:n])

    @cached_property
    def _said_otherwise(self) -> tuple[IntArray, IntArray, IntArray]:
        """The train rows of which people say something else than the answers around them, the number of the group that
        these give to each, and of the one that people do."""
        rows, by_people = self.labels.settled_rows()
        by_machine = self.machine_numbers(rows)
        differ = (by_machine != by_people) & (by_machine != NO_GROUP)  # what cannot be read is not shown
        return rows[differ], by_machine[differ], by_people[differ]

    def _believed_members(self, number: int, n: int | None) -> IntArray:
        """The train rows that the answers give to a group, the clearest first; at least the first ``n``."""
        assert self.round is not None
        assert self.live is not None
        places, (rows, first) = np.flatnonzero(self._live_numbers[:-1] == number), self.round.by_place
        places = places[np.argsort(-self.live.belief.margin[places], kind="stable")]
        margin, n_rows = self.live.belief.margin[places], first[places + 1] - first[places]
        enough = len(places) if n is None else int(np.searchsorted(np.cumsum(n_rows), n))
        if enough < len(places):  # with all that are as clear as the last, because rows decide among equals
            places, n_rows, margin = (values[margin >= margin[enough]] for values in (places, n_rows, margin))
        found = rows[entries_of(first, places)]
        return found[np.lexsort((found, -np.repeat(margin, n_rows)))]

    @cached_property
    def _is_out(self) -> BoolArray:
        mask = np.zeros(self.labels.n_rows, np.bool_)
        mask[self.labels.rows(NOWHERE)] = True
        return mask

    def labelled(self, group: Group) -> IntArray:
        """The rows that people gave to a class, the newest first, those known from the start last."""
        if group.info is None:
            return _NO_ROWS
        number = self.number(group)
        if number not in self._labelled:
            self._labelled[number] = self.labels.rows_of_class(number)
        return self._labelled[number]

    def size(self, group: Group) -> int:
        """How many train rows count as this group now, whoever says so."""
        return int(self._sizes[self.number(group)])

    @cached_property
    def _sizes(self) -> IntArray:
        """Train rows by number of their group: as the model has them, less those of which people say what they are."""
        said, places = self.labels.settled_rows()
        sizes = np.bincount(places[places != NO_CLASS], minlength=len(self.names))
        if self.round is not None:
            found = self.machine_numbers(said[self.round.is_train[said]])
            sizes += self._machine_sizes(self.round) - np.bincount(found[found != NO_GROUP], minlength=len(sizes))
        return sizes

    def _machine_sizes(self, seen: RoundView) -> IntArray:
        """Train rows by number of the group that answers, or else the model, give to them."""
        if self.live is None:
            found = self.machine_numbers(seen.order)
            return np.bincount(found[found != NO_GROUP], minlength=len(self.names))
        n_rows = np.bincount(self._live_numbers[:-1], np.diff(seen.by_place[1]), len(self.names))
        return n_rows.astype(np.int64)

    def shown_groups(self) -> list[Group]:
        """Every group but slots that are empty and have no name."""
        return [group for group in self.groups.values() if group.info or self.size(group)]

    def stability(self, group: Group) -> float | None:
        """The share of the members of a slot that were together in the round before; clusters begin anew each time."""
        if self.round is None or self.live is not None or not group.slots:
            return None
        share: float | None = self.round.facts["stability"][group.slots[0]]
        return share

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

    def labels_inside(self, group: Group) -> dict[int, int]:
        """How many labels of which class lie in a group, by place of the class; a label's own word does not count."""
        if self.live is not None:
            return dict(self._checks_inside.get(self.number(group), {}))
        inside: Counter[int] = Counter()
        for slot in group.slots:
            inside.update(self._votes_of_slot.get(slot, {}))
        return dict(inside)

    @cached_property
    def _checks_inside(self) -> dict[int, Counter[int]]:
        """``checks`` by number of the group, counted by place of the class that people gave them."""
        rows, numbers = self.checks
        found: defaultdict[int, Counter[int]] = defaultdict(Counter)
        for number, place in zip(numbers.tolist(), self.labels.classes_of(rows).tolist(), strict=True):
            found[number][place] += 1
        return dict(found)

    @cached_property
    def checks(self) -> tuple[IntArray, IntArray]:
        """Labelled rows, and the number of the group that each would be in without its own label."""
        if self.live is None:
            rows: IntArray = np.sort(self.labels.labels["row"])
            numbers = self.group_of_slot[self.slots(rows)]
            return rows[numbers != NO_GROUP], numbers[numbers != NO_GROUP]
        judged = self.live.judgement
        nameless = len(self.labels.registry.classes) + self.live.rows.cluster[judged.labelled_rows]
        return self.live.rows.rows[judged.labelled_rows], np.where(
            judged.believed == NO_CLASS, nameless, judged.believed
        )

    @cached_property
    def _votes_of_slot(self) -> dict[int, dict[int, int]]:
        found: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for (place, slot), n in self.votes.items():
            found[slot][place] = n
        return dict(found)

    def contains(self, group: Group, *, others: bool = False, least: int = 1) -> str:
        """What people call the members of a group, the most frequent first: "dolphin (5), turtle (4)". Names with fewer
        than ``least`` labels are left out."""
        own = self.number(group) if others else NO_CLASS
        counts = [(n, place) for place, n in self.labels_inside(group).items() if place != own and n >= least]
        infos = self.labels.registry.infos
        return ", ".join(f"{infos[place].name} ({n})" for n, place in sorted(counts, key=lambda c: (-c[0], c[1])))

    @cached_property
    def disagreeing(self) -> IntArray:
        """Labelled rows that would be called something else without their own label, rising."""
        rows, numbers = self.checks
        return np.sort(rows[numbers != self.labels.classes_of(rows)])
