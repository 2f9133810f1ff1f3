"""A finished round: ``RoundView``, the one reading of what its model says, as arrays that need no model; and the rule
by which its slots get names. ``round_files.py`` keeps views on disk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agcd.accuracy import wilson
from agcd.app.labels import How, LabelView
from agcd.app.store.classes import NO_CLASS, Registry
from agcd.asking import Neighbours
from agcd.layout import Plane
from agcd.mapping import describe_change
from agcd.types import BoolArray, FloatArray, IntArray
from agcd.words import count, shown

N_TOP = 5
NO_SLOT = -1
START = -1
"""The number of the view that there is before any training."""
SEARCH_ROWS = 20_000
"""Neighbours are looked for among so many rows at most: all of them, or else the members of the likeliest slots."""


@dataclass(frozen=True)
class LiveRows:
    """The train rows among which labels are propagated while people answer: all, or a sample of a large pool."""

    rows: IntArray
    """(m,), rising."""
    stand_in: IntArray
    """(n,): the place in ``rows`` of each row, or of the row most like it; −1 for rows that cannot be read."""
    neighbours: Neighbours
    """Among ``rows``, by place."""
    cluster: IntArray
    """(m,): more clusters than there are likely classes, so that one nobody has named is seen as a group."""
    key: str = ""
    """Equal for equal neighbours."""

    def over(self, n_rows: int) -> LiveRows:
        """The same over more rows, which nobody has looked at yet."""
        return replace(self, stand_in=_longer(self.stand_in, n_rows, -1))

    @cached_property
    def n_clusters(self) -> int:
        return int(self.cluster.max(initial=-1)) + 1

    @cached_property
    def clusters(self) -> list[int]:
        """The clusters that have rows."""
        return [int(cluster) for cluster in np.unique(self.cluster)]


@dataclass(frozen=True)
class RoundView:
    """One round; rows that cannot be read have slot −1. ``facts`` are ``model_id``, ``n_old``, ``n_slots``, by slot
    ``class_ids`` (the class that the mapping gave it) and ``stability``, and ``moved_share``."""

    number: int
    facts: dict[str, Any]
    top_slots: NDArray[np.int32]
    """(n, up to 5), the most probable first."""
    top_probs: NDArray[np.float16]
    xy: Plane
    order: IntArray
    starts: IntArray
    features: NDArray[np.float16] | None
    """(n, d), unit length; only the last round keeps them."""
    live: LiveRows | None = None
    """What live answers need; None where the pictures were never looked at without training (version 0.1)."""
    version: tuple[int, ...] | None = None
    """Equal for views that were written at the same time."""
    n_unseen: int = 0
    """Rows that were added since, of which it says nothing."""

    def over(self, n_rows: int) -> RoundView:
        """The same over more rows, of which it says nothing."""
        n_known = min(self.n_rows - self.n_unseen, *([len(self.live.stand_in)] if self.live else ()), n_rows)
        lengths = {self.n_rows, len(self.live.stand_in) if self.live else n_rows}
        if lengths == {n_rows}:
            return self
        return replace(
            self,
            top_slots=_longer(self.top_slots, n_rows, NO_SLOT),
            top_probs=_longer(self.top_probs, n_rows, 0),
            xy=_longer(self.xy, n_rows, np.nan),
            features=None if self.features is None else _longer(self.features, n_rows, 0),
            live=self.live and self.live.over(n_rows),
            n_unseen=n_rows - n_known,
        )

    @property
    def n_rows(self) -> int:
        return len(self.top_slots)

    @property
    def n_slots(self) -> int:
        return len(self.starts) - 1

    @property
    def n_clusters(self) -> int:
        """Groups that stay without a name until people name them: clusters, or slots in a view of version 0.1."""
        return self.live.n_clusters if self.live else self.n_slots

    @property
    def n_old(self) -> int:
        return int(self.facts["n_old"])

    @property
    def class_ids(self) -> list[str | None]:
        """By slot, the id of the class that the mapping gave it when the round ended."""
        ids: list[str | None] = self.facts["class_ids"]
        return ids

    @property
    def named_ids(self) -> list[str | None]:
        """By slot, the id of the class whose name it took when the round ended (``slot_owners``)."""
        ids: list[str | None] = self.facts.get("named_ids", self.class_ids)  # up to version 0.1 the mapping's word
        return ids

    @property
    def n_named(self) -> int:
        """Slots that had a name when the round ended."""
        return sum(class_id is not None for class_id in self.named_ids)

    @property
    def named_share(self) -> float:
        """The share of train rows in them."""
        named = [slot for slot, class_id in enumerate(self.named_ids) if class_id is not None]
        return float(self.sizes[named].sum() / max(1, len(self.order)))

    @property
    def sizes(self) -> IntArray:
        """Train rows per slot."""
        return np.diff(self.starts)

    def members(self, slot: int) -> IntArray:
        """The train rows of a slot, the most probable first."""
        return np.asarray(self.order[self.starts[slot] : self.starts[slot + 1]])

    def margin(self, rows: IntArray) -> FloatArray:
        """The gap between the two highest probabilities of ``rows``."""
        return self._margins[rows]

    @cached_property
    def _margins(self) -> NDArray[np.float32]:
        probs = self.top_probs[:, :2].astype(np.float32)
        return probs[:, 0] - (probs[:, 1] if probs.shape[1] > 1 else 0.0)

    @cached_property
    def train_rows(self) -> IntArray:
        """All train rows that can be read."""
        return np.sort(self.order)

    @cached_property
    def is_train(self) -> BoolArray:
        """(n,) whether each row is one of them."""
        mask = np.zeros(len(self.top_slots), np.bool_)
        mask[self.order] = True
        return mask

    @cached_property
    def by_place(self) -> tuple[IntArray, IntArray]:
        """The train rows by the place of the live row that stands for each, in each place rising; and where each place
        begins."""
        assert self.live is not None
        place = self.live.stand_in[self.train_rows]
        order = np.argsort(place, kind="stable")
        return self.train_rows[order], np.searchsorted(place[order], np.arange(len(self.live.rows) + 1))

    @cached_property
    def slot_by_slot(self) -> IntArray:
        """All rows by slot, in each the most probable first."""
        return np.lexsort((-self.top_probs[:, 0].astype(np.float32), self.top_slots[:, 0]))

    def vectors(self, rows: IntArray) -> NDArray[np.float32]:
        """Unit-length features of ``rows``; none where the cache has gone."""
        if self.features is None:
            return np.zeros((len(rows), 0), np.float32)
        return np.asarray(self.features[rows], np.float32)

    def near(self, row: int) -> IntArray:
        """The train rows to search for neighbours of ``row``."""
        if len(self.order) <= SEARCH_ROWS:
            return np.asarray(self.order)
        slots = [slot for slot in self.top_slots[row].tolist() if slot != NO_SLOT]
        members = np.concatenate([self.members(slot) for slot in slots]) if slots else np.asarray(self.order)
        return members[:: 1 + len(members) // SEARCH_ROWS]

    def most_similar(self, centre: FloatArray, rows: IntArray, n: int) -> tuple[IntArray, FloatArray]:
        """The ``n`` of ``rows`` most similar to ``centre`` (d,), and their cosines, falling."""
        similarity = self.vectors(rows) @ np.asarray(centre, np.float32)
        best = np.argsort(-similarity, kind="stable")[:n]
        return rows[best], similarity[best]


Votes = dict[tuple[int, int], int]
"""How many labels of the class at a place lie in a slot, by (place, slot)."""


def slot_owners(view: LabelView, round_view: RoundView, votes: Votes | None = None) -> IntArray:
    """(K,) the place of the class that each slot is named after, or −1: the one rule by which groups get names.

    A slot takes a class's name only if that class holds most of the slot's labels *and* the slot holds most of that
    class's labels. Most is more than any other; where two are level, the mapping of the round decides, or nobody. So
    one label that strayed into a group names nothing, and a disputed group stays without a name. Labels count for the
    class that they were given to, so that a class that was merged into another brings its slot along. ``votes`` are
    those of ``slot_votes``, where they are known already.
    """
    registry, counts = view.registry, slot_votes(view, round_view) if votes is None else votes
    owners = np.full(round_view.n_slots, NO_CLASS, np.int64)
    mapped = {
        registry.place_of.get(class_id or "", NO_CLASS): slot for slot, class_id in enumerate(round_view.class_ids)
    }
    slot_of, class_of = _most(counts, 0, mapped), _most(counts, 1, {slot: place for place, slot in mapped.items()})
    for place, slot in slot_of.items():
        if class_of.get(slot) == place:
            owners[slot] = registry.merged_place[place]
    return owners


def places(registry: Registry, class_ids: Iterable[str | None]) -> list[int]:
    """The place of each class id; −1 for none, and for one that is not known here."""
    return [registry.place_of.get(class_id or "", NO_CLASS) for class_id in class_ids]


def slot_votes(view: LabelView, round_view: RoundView) -> Votes:
    """What people say of the members of each slot, by the labels that training learns, before merges."""
    rows, places_said = view.learned_as_said()
    is_known = rows < round_view.n_rows
    rows, places_said = rows[is_known], places_said[is_known]
    slots = round_view.top_slots[rows, 0].astype(np.int64)
    pairs = (places_said * round_view.n_slots + slots)[slots != NO_SLOT]
    found, n = np.unique(pairs, return_counts=True)  # one number for a pair sorts many times faster than two columns
    place, slot = np.divmod(found, round_view.n_slots)
    return dict(zip(zip(place.tolist(), slot.tolist(), strict=True), n.tolist(), strict=True))


def _most(votes: Votes, side: int, mapped: Mapping[int, int]) -> dict[int, int]:
    """By class (``side`` 0) or slot (1), its counterpart with most votes; level ones are settled by ``mapped``."""
    ranked: dict[int, list[tuple[int, bool, int]]] = defaultdict(list)
    for pair, n in votes.items():
        key, other = pair[side], pair[1 - side]
        ranked[key].append((n, mapped.get(key) == other, other))
    best = {key: sorted(others)[-2:] for key, others in ranked.items()}
    return {key: others[-1][2] for key, others in best.items() if len(others) == 1 or others[-1][:2] != others[0][:2]}


def top_of(probs: FloatArray) -> tuple[NDArray[np.int32], NDArray[np.float16]]:
    """The slots of the highest probabilities of each row of ``probs`` (n, K), and these, falling."""
    k = min(N_TOP, probs.shape[1])
    best = np.argpartition(-probs, k - 1, axis=1)[:, :k]
    values = np.take_along_axis(probs, best, 1)
    falling = np.argsort(-values, axis=1, kind="stable")
    slots = np.take_along_axis(best, falling, 1).astype(np.int32)
    return slots, np.take_along_axis(values, falling, 1).astype(np.float16)


def _longer(values: NDArray[Any], n_rows: int, filling: float) -> NDArray[Any]:
    """``values`` with as many rows as ``n_rows``."""
    more = n_rows - len(values)
    if more <= 0:
        return values
    return np.concatenate([values, np.full((more, *values.shape[1:]), filling, values.dtype)])


_NAME_WIDTH = 40
"""Columns that a name takes in a sentence at most; a person may give one of 200 characters."""


@dataclass(frozen=True)
class Audit:
    """What a blind sample says about the model of a round: right answers, and the 95 % interval of their share."""

    n: int
    n_right: int
    share: float
    low: float
    high: float


def audit_of(view: LabelView, round_view: RoundView) -> Audit | None:
    """How many of the blind answers the model of a round would have given; it never learned from them."""
    rows = view.rows((How.HELD,))
    slots = round_view.top_slots[rows, 0]
    rows, slots = rows[slots != NO_SLOT], slots[slots != NO_SLOT]
    if not len(rows):
        return None
    owners = view.registry.merged_place[places(view.registry, round_view.named_ids)]
    right = int((owners[slots] == view.classes_of(rows)).sum())
    low, high = wilson(right, len(rows))
    return Audit(len(rows), right, right / len(rows), low, high)


def mapping_changes(registry: Registry, before: RoundView, after: RoundView) -> list[str]:
    """Which classes came, went or changed their group, in words."""
    names = {info.id: shown(info.name, _NAME_WIDTH) for info in registry.infos}
    then, now = (
        {names[class_id]: slot for slot, class_id in enumerate(seen.named_ids) if class_id in names}
        for seen in (before, after)
    )
    sentences = [f"{change[0].upper()}{change[1:]}." for change in describe_change(then, now, noun="group")]
    n_kept = sum(then.get(name) == slot for name, slot in now.items())
    return [*sentences, f"{count(n_kept, 'class')} kept {'its' if n_kept == 1 else 'their'} group."]
