"""A finished round: ``RoundView``, the one reading of what its model says, as arrays that need no model.

    cache/rounds/003/    top_slots.npy top_probs.npy features.npy xy.npy order.npy starts.npy  facts.json (last)
    cache/rounds/start/  the same, and near.npy cosine.npy live_rows.npy stand_in.npy cluster.npy

It can be made again from the round at any time: where a file is missing or damaged (``facts.json`` holds the digests),
the whole view counts as absent. ``order`` lists the train rows slot by slot, in each slot the most
probable first; ``starts[k]`` is where slot k begins. The view before any training (``START``) lies in
``cache/rounds/start``: its slots are clusters of the pretrained features. Its neighbours serve all rounds: among
features that were trained on the answers, no answer could tell how good the others are (docs/LOG.md).
"""

from __future__ import annotations

import logging
import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from agcd.accuracy import wilson
from agcd.app.labels import How, LabelView
from agcd.app.store.classes import NO_CLASS, Registry
from agcd.asking import Neighbours
from agcd.io import atomic_write, digest_file, read_sealed, write_sealed
from agcd.layout import Plane, lay_out
from agcd.mapping import describe_change
from agcd.run_files import MAPPING, METRICS, PREDICTIONS, checked, read_checked
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


FACTS, _DIGESTS = "facts.json", "digests"
_ALWAYS = ("top_slots", "top_probs", "xy", "order", "starts")
"""The files that every view has; the last round's also has its features."""
_LIVE = ("near", "cosine", "live_rows", "stand_in", "cluster")
"""The files of ``LiveRows``."""
log = logging.getLogger("agcd")
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


def round_folder(project_folder: Path, number: int) -> Path:
    return project_folder / "cache" / "rounds" / ("start" if number == START else f"{number:03d}")


def adopt_old_cache(project_folder: Path) -> None:
    """Up to version 0.1 the folder was called ``cache/atlas``; its content is the same."""
    old, new = (project_folder / "cache" / name for name in ("atlas", "rounds"))
    if old.is_dir() and not new.exists():
        with suppress(OSError):  # another process was faster, or nothing may be written here
            old.rename(new)


def has_round_view(project_folder: Path, number: int) -> bool:
    """Whether there is a whole view of a round."""
    return _facts_of(round_folder(project_folder, number)) is not None


def open_round_view(project_folder: Path, number: int) -> RoundView | None:
    """The view of a round, memory-mapped, or None where it has to be made again."""
    folder = round_folder(project_folder, number)
    facts = _facts_of(folder)
    if facts is None:
        return None
    try:
        arrays = {name: _read(folder, name) for name in _ALWAYS}
        features = _read(folder, "features") if _has_features(folder, facts) else None
        live = _read_live(round_folder(project_folder, START))
    except (OSError, ValueError):  # another process makes it again at this moment
        return None
    return RoundView(number, facts, features=features, live=live, **arrays)


def _read_live(folder: Path) -> LiveRows | None:
    facts = _facts_of(folder)
    if facts is None or "sigma2" not in facts:
        return None
    near, cosine, rows, stand_in, cluster = (np.asarray(_read(folder, name)) for name in _LIVE)
    return LiveRows(rows, stand_in, Neighbours(near, cosine, facts["sigma2"]), cluster, facts["model_id"])


def _facts_of(folder: Path) -> dict[str, Any] | None:
    """The facts of a view that is whole, else None. Files are compared with their digests once a process, and again
    when the view has been written anew."""
    try:
        found = (folder / FACTS).stat()
    except FileNotFoundError:
        return None
    return _whole_facts(folder, (found.st_mtime_ns, found.st_ino, found.st_size))


@lru_cache(maxsize=1024)
def _whole_facts(folder: Path, _version: tuple[int, int, int]) -> dict[str, Any] | None:
    problem = problem_of_view(folder)
    if problem is None:
        return read_sealed(folder / FACTS)
    log.warning("%s is damaged (%s) and will be made again.", folder, problem)
    return None


def problem_of_view(folder: Path) -> str | None:
    """What is missing or damaged in the folder of a view, if anything; views of version 0.2 hold no digests."""
    try:
        facts = read_sealed(folder / FACTS)
    except FileNotFoundError:
        return f"{FACTS} is missing"
    except ValueError:
        return f"{FACTS} is damaged"
    without_digests = dict.fromkeys([*_ALWAYS, *(_LIVE if "sigma2" in facts else ())])
    expected: dict[str, str | None] = facts.get(_DIGESTS) or without_digests
    for name, digest in expected.items():
        path = folder / f"{name}.npy"
        if not path.is_file():
            return f"{path.name} is missing"
        if digest is not None and digest_file(path) != digest:
            return f"{path.name} is damaged"
    return None


def _has_features(folder: Path, facts: Mapping[str, Any]) -> bool:
    return "features" in facts[_DIGESTS] if _DIGESTS in facts else (folder / "features.npy").exists()


def round_view_of_run(
    run_folder: Path, number: int, class_ids: Sequence[str], n_old: int, is_test: BoolArray
) -> RoundView:
    """What ``predictions.parquet`` of a finished run says, where the cache has gone: enough for names and exports, with
    neither features nor a map."""
    stored = pq.read_table(checked(run_folder, PREDICTIONS), columns=["row", "slot", "probability"])
    top_slots = np.full((len(is_test), 1), NO_SLOT, np.int32)
    top_probs = np.zeros((len(is_test), 1), np.float16)
    rows = stored["row"].to_numpy()
    top_slots[rows, 0], top_probs[rows, 0] = stored["slot"].to_numpy(), stored["probability"].to_numpy()
    facts = {"n_old": n_old, "n_slots": read_checked(run_folder, METRICS)["n_slots"]}
    facts |= {"class_ids": ids_by_slot(run_folder, class_ids, facts["n_slots"])}
    order, starts = _in_order(top_slots, top_probs, ~is_test, facts["n_slots"])
    nowhere = np.full((len(is_test), 2), np.nan, np.float32)
    return RoundView(number, facts, top_slots, top_probs, nowhere, order, starts, None)


def ids_by_slot(run_folder: Path, class_ids: Sequence[str], n_slots: int) -> list[str | None]:
    """By slot, the id of the class that the mapping of a run gave it; ``class_ids`` are those of its class numbers."""
    slot_of_class = read_checked(run_folder, MAPPING)["last"]["slot_of_class"]
    owner: list[str | None] = [None] * n_slots
    for class_id, slot in zip(class_ids, slot_of_class, strict=True):
        owner[slot] = class_id
    return owner


def write_round_view(
    project_folder: Path,
    number: int,
    top_slots: NDArray[np.int32],
    top_probs: NDArray[np.float16],
    features: NDArray[np.float16],
    labels: LabelView,
    facts: dict[str, Any],
    live: LiveRows | None = None,
    *,
    with_map: bool = True,
) -> RoundView:
    """Lay out and store what a round says of every row.

    ``labels`` is what the round learned from; ``facts`` holds model_id, n_old, n_slots and, by slot, class_ids.
    ``with_map``: without it, rows have no positions; the map of a round that nobody looks at is not worth its seconds.
    """
    before = open_round_view(project_folder, number - 1) if number > START else None
    order, starts = _in_order(top_slots, top_probs, ~labels.is_test, facts["n_slots"])
    xy: Plane = np.full((len(features), 2), np.nan, np.float32)
    if with_map:
        xy = lay_out(features, np.sort(order), before.xy if before else None)
    arrays: dict[str, NDArray[Any]] = {"top_slots": top_slots, "top_probs": top_probs, "features": features, "xy": xy}
    arrays |= {"order": order, "starts": starts}
    if live is not None:
        near = live.neighbours
        arrays |= dict(zip(_LIVE, (near.near, near.cosine, live.rows, live.stand_in, live.cluster), strict=True))
        facts = facts | {"sigma2": near.sigma2}
    folder = round_folder(project_folder, number)
    shutil.rmtree(folder, ignore_errors=True)
    for name, array in arrays.items():
        with atomic_write(folder / f"{name}.npy") as aside, aside.open("wb") as handle:
            np.save(handle, array, allow_pickle=False)
    facts = facts | _against_the_round_before(top_slots, order, starts, before)
    facts[_DIGESTS] = {name: digest_file(folder / f"{name}.npy") for name in arrays}
    ids = [info.id for info in labels.registry.infos]
    made = RoundView(number, facts, top_slots, top_probs, xy, order, starts, features)
    named = [ids[place] if place != NO_CLASS else None for place in slot_owners(labels, made).tolist()]
    write_sealed(folder / FACTS, facts | {"named_ids": named})
    _forget_features_before(project_folder, number)
    opened = open_round_view(project_folder, number)
    assert opened is not None
    return opened


def top_of(probs: FloatArray) -> tuple[NDArray[np.int32], NDArray[np.float16]]:
    """The slots of the highest probabilities of each row of ``probs`` (n, K), and these, falling."""
    k = min(N_TOP, probs.shape[1])
    best = np.argpartition(-probs, k - 1, axis=1)[:, :k]
    values = np.take_along_axis(probs, best, 1)
    falling = np.argsort(-values, axis=1, kind="stable")
    slots = np.take_along_axis(best, falling, 1).astype(np.int32)
    return slots, np.take_along_axis(values, falling, 1).astype(np.float16)


def _in_order(
    top_slots: NDArray[np.int32], top_probs: NDArray[np.float16], is_train: BoolArray, n_slots: int
) -> tuple[IntArray, IntArray]:
    rows = np.flatnonzero(is_train & (top_slots[:, 0] != NO_SLOT))
    slots = top_slots[rows, 0]
    order = rows[np.lexsort((-top_probs[rows, 0].astype(np.float32), slots))]
    return order, np.concatenate([[0], np.cumsum(np.bincount(slots, minlength=n_slots))]).astype(np.int64)


def _against_the_round_before(
    top_slots: NDArray[np.int32], order: IntArray, starts: IntArray, before: RoundView | None
) -> dict[str, Any]:
    """By slot, the largest share of its members that were together before; and the share of all rows that moved."""
    n_slots = len(starts) - 1
    if before is None or before.number == START or not len(order):
        return {"stability": [None] * n_slots, "moved_share": None}
    then = before.top_slots[order, 0]
    stability: list[float | None] = []
    for slot in range(n_slots):
        known = then[starts[slot] : starts[slot + 1]]
        known = known[known != NO_SLOT]
        stability.append(float(np.bincount(known).max() / len(known)) if len(known) else None)
    return {"stability": stability, "moved_share": float((then != top_slots[order, 0]).mean())}


def _forget_features_before(project_folder: Path, number: int) -> None:
    """Features are the bulk of a view, and only the last round's are looked at."""
    for earlier in range(START, number):
        folder = round_folder(project_folder, earlier)
        facts = _facts_of(folder)
        if facts and "features" in facts.get(_DIGESTS, ()):
            kept = {name: digest for name, digest in facts[_DIGESTS].items() if name != "features"}
            write_sealed(folder / FACTS, facts | {_DIGESTS: kept})
        (folder / "features.npy").unlink(missing_ok=True)


def _read(folder: Path, name: str) -> Any:
    return np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)


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
