"""What the page reads of a round, as arrays on disk, so that showing never needs the model.

    cache/atlas/003/  top_slots.npy top_probs.npy features.npy xy.npy order.npy starts.npy  facts.json (last)

It can be made again from the round at any time. ``order`` lists the train rows slot by slot, in each slot the most
probable first; ``starts[k]`` is where slot k begins.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agcd.io import atomic_write, read_json, write_json
from agcd.layout import Plane, lay_out
from agcd.types import BoolArray, FloatArray, IntArray

N_TOP = 5
NO_SLOT = -1
SEARCH_ROWS = 20_000
"""Neighbours are looked for among so many rows at most: all of them, or else the members of the likeliest slots."""


@dataclass(frozen=True)
class Atlas:
    """One round as the page sees it; rows that cannot be read have slot −1."""

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

    @property
    def n_slots(self) -> int:
        return len(self.starts) - 1

    @property
    def n_old(self) -> int:
        return int(self.facts["n_old"])

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
    def least_certain(self) -> IntArray:
        """All rows, the smallest margin first."""
        return np.argsort(self._margins, kind="stable")

    @cached_property
    def most_certain(self) -> IntArray:
        """All rows, the largest margin first."""
        return np.argsort(-self._margins, kind="stable")

    @cached_property
    def slot_by_slot(self) -> IntArray:
        """All rows by slot, in each the most probable first."""
        return np.lexsort((-self.top_probs[:, 0].astype(np.float32), self.top_slots[:, 0]))

    def border(self, slot: int, n: int) -> IntArray:
        """The ``n`` members of a slot that could most easily belong elsewhere."""
        members = self.members(slot)
        return members[np.argsort(self.margin(members), kind="stable")[:n]]

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


def atlas_folder(project_folder: Path, number: int) -> Path:
    return project_folder / "cache" / "atlas" / f"{number:03d}"


def has_atlas(project_folder: Path, number: int) -> bool:
    return (atlas_folder(project_folder, number) / "facts.json").exists()


def open_atlas(project_folder: Path, number: int) -> Atlas | None:
    """The atlas of a round, memory-mapped, or None where it has to be made again."""
    folder = atlas_folder(project_folder, number)
    if not (folder / "facts.json").exists():
        return None
    arrays = {name: _read(folder, name) for name in ("top_slots", "top_probs", "xy", "order", "starts")}
    has_features = (folder / "features.npy").exists()
    return Atlas(
        number,
        read_json(folder / "facts.json"),
        features=_read(folder, "features") if has_features else None,
        **arrays,
    )


def write_atlas(
    project_folder: Path,
    number: int,
    top_slots: NDArray[np.int32],
    top_probs: NDArray[np.float16],
    features: NDArray[np.float16],
    is_train: BoolArray,
    facts: dict[str, Any],
) -> Atlas:
    """Lay out and store what a round says of every row. ``facts`` holds n_old, n_slots and class_ids, by slot."""
    before = open_atlas(project_folder, number - 1) if number else None
    order, starts = _in_order(top_slots, top_probs, is_train, facts["n_slots"])
    xy = lay_out(features, np.sort(order), before.xy if before else None)
    arrays: dict[str, NDArray[Any]] = {"top_slots": top_slots, "top_probs": top_probs, "features": features, "xy": xy}
    arrays |= {"order": order, "starts": starts}
    folder = atlas_folder(project_folder, number)
    shutil.rmtree(folder, ignore_errors=True)
    for name, array in arrays.items():
        with atomic_write(folder / f"{name}.npy") as aside, aside.open("wb") as handle:
            np.save(handle, array, allow_pickle=False)
    write_json(folder / "facts.json", facts | _against_the_round_before(top_slots, order, starts, before))
    _forget_features_before(project_folder, number)
    opened = open_atlas(project_folder, number)
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
    top_slots: NDArray[np.int32], order: IntArray, starts: IntArray, before: Atlas | None
) -> dict[str, Any]:
    """By slot, the largest share of its members that were together before; and the share of all rows that moved."""
    n_slots = len(starts) - 1
    if before is None or not len(order):
        return {"stability": [None] * n_slots, "moved_share": None}
    then = before.top_slots[order, 0]
    stability: list[float | None] = []
    for slot in range(n_slots):
        known = then[starts[slot] : starts[slot + 1]]
        known = known[known != NO_SLOT]
        stability.append(float(np.bincount(known).max() / len(known)) if len(known) else None)
    return {"stability": stability, "moved_share": float((then != top_slots[order, 0]).mean())}


def _forget_features_before(project_folder: Path, number: int) -> None:
    """Features are the bulk of an atlas, and only the last round's are looked at."""
    for earlier in range(number):
        (atlas_folder(project_folder, earlier) / "features.npy").unlink(missing_ok=True)


def _read(folder: Path, name: str) -> Any:
    return np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
