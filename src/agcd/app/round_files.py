"""Views of rounds on disk: written aside, checked by their digests, opened as memory maps.

    cache/rounds/003/    top_slots.npy top_probs.npy features.npy xy.npy order.npy starts.npy  facts.json (last)
    cache/rounds/start/  the same, and near.npy cosine.npy live_rows.npy stand_in.npy cluster.npy

It can be made again from the round at any time: where a file is missing or damaged (``facts.json`` holds the digests),
the whole view counts as absent. A view that is written again, because rows were added, has files of other names
(``top_slots.1.npy``) until ``facts.json`` names them: at every moment there is one whole view. ``order`` lists the
train rows slot by slot, in each slot the most probable first; ``starts[k]`` is where slot k begins. The view before
any training (``START``) lies in ``cache/rounds/start``: its slots are clusters of the pretrained features. Its
neighbours serve all rounds: among features that were trained on the answers, no answer could tell how good the others
are (docs/LOG.md).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agcd.app.labels import LabelView
from agcd.app.rounds import NO_SLOT, START, LiveRows, RoundView, slot_owners
from agcd.app.store.classes import NO_CLASS
from agcd.asking import Neighbours
from agcd.io import atomic_write, digest_file, read_sealed, write_sealed
from agcd.layout import Plane, lay_out
from agcd.run_files import MAPPING, METRICS, PREDICTIONS, checked, read_checked
from agcd.types import BoolArray, IntArray

FACTS, _DIGESTS, _GENERATION = "facts.json", "digests", "generation"
_TRIES = 3
"""To open a view that another process replaces meanwhile."""
_ALWAYS = ("top_slots", "top_probs", "xy", "order", "starts")
"""The files that every view has; the last round's also has its features."""
_LIVE = ("near", "cosine", "live_rows", "stand_in", "cluster")
"""The files of ``LiveRows``."""
log = logging.getLogger("agcd")


def round_folder(project_folder: Path, number: int) -> Path:
    return project_folder / "cache" / "rounds" / ("start" if number == START else f"{number:03d}")


def adopt_old_cache(project_folder: Path) -> None:
    """Up to version 0.1 the folder was called ``cache/atlas``; its content is the same."""
    old, new = (project_folder / "cache" / name for name in ("atlas", "rounds"))
    if old.is_dir() and not new.exists():
        with suppress(OSError):  # another process was faster, or nothing may be written here
            old.rename(new)


def round_version(project_folder: Path, number: int) -> tuple[int, ...] | None:
    """Changes when the view of a round is written; None where there is no whole one."""
    own, start = (_version_of(round_folder(project_folder, n)) for n in (number, START))
    if own is None or _facts_of(round_folder(project_folder, number)) is None:
        return None
    return (number, *own, *(start or ()))


def open_round_view(project_folder: Path, number: int) -> RoundView | None:
    """The view of a round, memory-mapped, or None where it has to be made again."""
    for _ in range(_TRIES):
        version = round_version(project_folder, number)
        folder, start = round_folder(project_folder, number), round_folder(project_folder, START)
        facts = _facts_of(folder) if version else None
        if facts is None:
            return None
        try:
            arrays = {name: _read(folder, name, facts) for name in _ALWAYS}
            features = _read(folder, "features", facts) if _has_features(folder, facts) else None
            found = RoundView(number, facts, features=features, live=_read_live(start), version=version, **arrays)
            return found.over(max(found.n_rows, len(found.live.stand_in) if found.live else 0))
        except (OSError, ValueError):  # another process writes it at this moment
            continue
    return None


def _read_live(folder: Path) -> LiveRows | None:
    facts = _facts_of(folder)
    if facts is None or "sigma2" not in facts:
        return None
    near, cosine, rows, stand_in, cluster = (np.asarray(_read(folder, name, facts)) for name in _LIVE)
    return LiveRows(rows, stand_in, Neighbours(near, cosine, facts["sigma2"]), cluster, facts["model_id"])


def _facts_of(folder: Path) -> dict[str, Any] | None:
    """The facts of a view that is whole, else None. Files are compared with their digests once a process, and again
    when the view has been written anew."""
    version = _version_of(folder)
    return _whole_facts(folder, version) if version else None


def _version_of(folder: Path) -> tuple[int, int, int] | None:
    try:
        found = (folder / FACTS).stat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


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
        path = _file(folder, name, facts)
        if not path.is_file():
            return f"{path.name} is missing"
        if digest is not None and digest_file(path) != digest:
            return f"{path.name} is damaged"
    return None


def _has_features(folder: Path, facts: Mapping[str, Any]) -> bool:
    return "features" in facts[_DIGESTS] if _DIGESTS in facts else _file(folder, "features", facts).exists()


def _file(folder: Path, name: str, facts: Mapping[str, Any]) -> Path:
    """Where an array of a view lies."""
    generation = facts.get(_GENERATION, 0)
    return folder / (f"{name}.{generation}.npy" if generation else f"{name}.npy")


def round_view_of_run(
    run_folder: Path, number: int, class_ids: Sequence[str], n_old: int, is_test: BoolArray
) -> RoundView:
    """What ``predictions.parquet`` of a finished run says, where the cache has gone: enough for names and exports, with
    neither features nor a map."""
    import pyarrow.parquet as pq  # here, because labelling can do without it

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
    xy: Plane | None = None,
) -> RoundView:
    """Lay out and store what a round says of every row.

    ``labels`` is what the round learned from; ``facts`` holds model_id, n_old, n_slots and, by slot, class_ids.
    ``with_map``: without it, rows have no positions; the map of a round that nobody looks at is not worth its seconds.
    ``xy`` are the positions, where they are known.
    """
    before = open_round_view(project_folder, number - 1) if number > START else None
    before = before.over(len(top_slots)) if before else None
    order, starts = _in_order(top_slots, top_probs, ~labels.is_test, facts["n_slots"])
    if xy is None and with_map:
        xy = lay_out(features, np.sort(order), before.xy[: len(features)] if before else None)
    elif xy is None:
        xy = np.full((len(features), 2), np.nan, np.float32)
    arrays: dict[str, NDArray[Any]] = {"top_slots": top_slots, "top_probs": top_probs, "features": features, "xy": xy}
    arrays |= {"order": order, "starts": starts}
    if live is not None:
        near = live.neighbours
        arrays |= dict(zip(_LIVE, (near.near, near.cosine, live.rows, live.stand_in, live.cluster), strict=True))
        facts = facts | {"sigma2": near.sigma2}
    folder = round_folder(project_folder, number)
    known = _facts_of(folder)
    facts = facts | _against_the_round_before(top_slots, order, starts, before)
    if known is not None:  # people look at it meanwhile
        facts |= {_GENERATION: known.get(_GENERATION, 0) + 1}
    for name, array in arrays.items():
        with atomic_write(_file(folder, name, facts)) as aside, aside.open("wb") as handle:
            np.save(handle, array, allow_pickle=False)
    facts[_DIGESTS] = {name: digest_file(_file(folder, name, facts)) for name in arrays}
    ids = [info.id for info in labels.registry.infos]
    made = RoundView(number, facts, top_slots, top_probs, xy, order, starts, features)
    named = [ids[place] if place != NO_CLASS else None for place in slot_owners(labels, made).tolist()]
    write_sealed(folder / FACTS, facts | {"named_ids": named})
    _remove_arrays(folder, {_file(folder, name, facts) for name in arrays})
    _forget_features_before(project_folder, number)
    opened = open_round_view(project_folder, number)
    assert opened is not None
    return opened


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
    was_there = then != NO_SLOT
    stability: list[float | None] = []
    for slot in range(n_slots):
        known = then[starts[slot] : starts[slot + 1]]
        known = known[known != NO_SLOT]
        stability.append(float(np.bincount(known).max() / len(known)) if len(known) else None)
    moved = (then != top_slots[order, 0])[was_there]
    return {"stability": stability, "moved_share": float(moved.mean()) if len(moved) else None}


def _forget_features_before(project_folder: Path, number: int) -> None:
    """Features are the bulk of a view, and only the last round's are looked at."""
    for earlier in range(START, number):
        folder = round_folder(project_folder, earlier)
        facts = _facts_of(folder)
        if facts and "features" in facts.get(_DIGESTS, ()):
            kept = {name: digest for name, digest in facts[_DIGESTS].items() if name != "features"}
            write_sealed(folder / FACTS, facts | {_DIGESTS: kept})
        for path in folder.glob("features*.npy"):
            _remove(path)


def _remove_arrays(folder: Path, kept: set[Path]) -> None:
    for path in set(folder.glob("*.npy")) - kept:
        _remove(path)


def _remove(path: Path) -> None:
    with suppress(OSError):  # Windows keeps what somebody looks at; the next writing removes it
        path.unlink(missing_ok=True)


def _read(folder: Path, name: str, facts: Mapping[str, Any]) -> Any:
    return np.load(_file(folder, name, facts), mmap_mode="r", allow_pickle=False)
