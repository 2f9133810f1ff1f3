"""Cached features on disk: immutable shards, found by the content they hold.

    <root>/<digest of the spec>/spec.json
                                <name>.json   the items (content key, view) of one shard and the digest of its
                                              features, written first
                                <name>.npy    their features, float16, renamed into place when whole
                                bad/          content that no decoder can read, with the reason

A shard is named after its items, so two processes that fill one store may compute something twice but never
disturb each other. A ``.npy`` that exists is whole and listed; a ``.json`` without one counts for nothing. Digests are
compared once, when a process opens a store: what it is about to read comes into memory that way.
"""

from __future__ import annotations

import logging
import mmap
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agcd.io import BAD_ARRAY, atomic_write, digest, digest_bytes, read_json, write_json
from agcd.types import IntArray

log = logging.getLogger("agcd")

Item = tuple[str, int]
"""Content key and view number."""
Half = NDArray[np.float16]
Allocate = Callable[[tuple[int, ...], Any], NDArray[Any]]
"""Gives an array of a shape and dtype, not filled."""
SHARD_BYTES = 32 * 2**20
"""What a kill loses at most."""
_WORTH_THREADS = 4 * 2**20
"""Fewer bytes are copied before threads have woken."""


class FeatureStore:
    """The features of one backbone and one way to make views.

    Parameters
    ----------
    root : folder that holds one folder per spec
    spec : JSON-like facts that decide the numbers; equal specs share their features
    shape : shape of one item
    """

    def __init__(self, root: Path, spec: Any, shape: tuple[int, ...]) -> None:
        self.folder = root / digest([spec, list(shape)])
        self.shape = shape
        if not (self.folder / "spec.json").exists():
            write_json(self.folder / "spec.json", {"spec": spec, "shape": list(shape), "dtype": "float16"})
        self._shards: list[Half] = []
        self._first_byte: list[int] = []
        self._threads: tuple[int, ThreadPoolExecutor] | None = None
        self._place: dict[Item, tuple[int, int]] = {}
        self._known: set[str] = set()
        self.refresh()

    @classmethod
    def existing(cls, root: Path, spec: Any, shape: tuple[int, ...]) -> FeatureStore | None:
        """The store of that spec if there is one; nothing is made by the look."""
        return cls(root, spec, shape) if (root / digest([spec, list(shape)])).is_dir() else None

    @property
    def item_bytes(self) -> int:
        return 2 * int(np.prod(self.shape, dtype=np.int64))

    def __len__(self) -> int:
        return len(self._place)

    def refresh(self) -> None:
        """Take up the shards that have appeared since the last look, also those of other processes."""
        for path in sorted(self.folder.glob("*.npy")):
            if path.stem not in self._known:
                self._take(path)

    def missing(self, items: Iterable[Item]) -> list[Item]:
        """Those items that are not stored, in their order, each once."""
        return [item for item in dict.fromkeys(items) if item not in self._place]

    def add(self, items: Sequence[Item], values: Half) -> None:
        """Store ``values`` (len(items), *shape) as one shard; it is visible at once and to all."""
        if values.shape != (len(items), *self.shape) or values.dtype != np.float16:
            raise ValueError(f"expected {(len(items), *self.shape)} float16, got {values.shape} {values.dtype}")
        name = digest([list(item) for item in items])
        facts = {"items": [list(item) for item in items], "digest": _digest(values)}
        write_json(self.folder / f"{name}.json", facts)
        path = self.folder / f"{name}.npy"
        with atomic_write(path) as aside, aside.open("wb") as handle:
            np.save(handle, values, allow_pickle=False)
        self._take(path)

    def locate(self, items: Sequence[Item]) -> IntArray:
        """Shard and position (len(items), 2) of stored items."""
        return np.array([self._place[item] for item in items], dtype=np.int64).reshape(-1, 2)

    def gather(self, places: IntArray, allocate: Allocate = np.empty, n_threads: int = 1) -> Half:
        """Values (n, *shape) at ``places`` (n, 2); a negative shard gives zeros."""
        # np.empty asks for huge pages where torch.empty does not: 3x less time for 100 MB
        values: Half = allocate((len(places), *self.shape), np.float16)

        def copy(items: IntArray) -> None:
            for i in items.tolist():
                shard, position = int(places[i, 0]), int(places[i, 1])
                values[i] = self._shards[shard][position] if shard >= 0 else 0

        order = np.lexsort((places[:, 1], places[:, 0]))  # that of the disk
        if n_threads == 1 or values.nbytes < _WORTH_THREADS:
            copy(order)
        else:
            if self._threads is None or self._threads[0] < n_threads:
                self._threads = n_threads, ThreadPoolExecutor(n_threads, thread_name_prefix="agcd-gather")
            list(self._threads[1].map(copy, np.array_split(order, n_threads)))
        return values

    def announce(self, places: IntArray) -> None:
        """Let the disk fetch what will be gathered next; it costs no thread and nothing that is in memory already."""
        if not hasattr(mmap, "MADV_WILLNEED"):
            return
        for shard, position in places[places[:, 0] >= 0].tolist():
            mapped = self._shards[shard].base
            assert isinstance(mapped, mmap.mmap)
            start = self._first_byte[shard] + position * self.item_bytes
            page = start - start % mmap.PAGESIZE
            mapped.madvise(mmap.MADV_WILLNEED, page, start + self.item_bytes - page)

    def mark_bad(self, key: str, reason: str) -> None:
        """Remember that the content ``key`` cannot be decoded, so that it is not tried again."""
        write_json(self._bad_path(key), {"key": key, "reason": reason})

    def bad(self, keys: Iterable[str]) -> dict[str, str]:
        """The reasons of those ``keys`` that are marked bad."""
        marked = {path.stem for path in (self.folder / "bad").glob("*.json")}
        if not marked:
            return {}
        paths = {key: self._bad_path(key) for key in dict.fromkeys(keys)}
        return {key: reason for key, path in paths.items() if path.stem in marked and (reason := _reason(path))}

    def _bad_path(self, key: str) -> Path:
        return self.folder / "bad" / f"{digest_bytes(key.encode())}.json"

    def _take(self, path: Path) -> None:
        """Map a shard and index its items; a damaged one is removed, and its items are missing again."""
        self._known.add(path.stem)
        try:
            items, values = _read_shard(path)
            if values.shape[1:] != self.shape:
                raise ValueError(f"it holds {values.shape[1:]}")
        except ValueError as error:
            self._drop(path, str(error))
            return
        for position, item in enumerate(items):
            self._place.setdefault(item, (len(self._shards), position))
        self._shards.append(values)
        self._first_byte.append(values.offset)

    def _drop(self, path: Path, reason: str) -> None:
        log.warning("Cached features in %s are damaged (%s) and will be computed again.", path, reason)
        with suppress(OSError):  # nothing may be written here
            path.unlink(missing_ok=True)
            self._known.discard(path.stem)


def _reason(path: Path) -> str | None:
    """Why some content is bad, or None where the note is damaged: then it is tried again."""
    try:
        return str(read_json(path)["reason"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def problem_of_shard(path: Path) -> str | None:
    """What is wrong with a shard, if anything."""
    try:
        _read_shard(path)
    except ValueError as error:
        return str(error)
    return None


def _read_shard(path: Path) -> tuple[list[Item], Any]:
    """The items of a shard and their features, mapped; ValueError with the reason where it is not what was stored."""
    try:
        facts = read_json(path.with_suffix(".json"))
        items = [(str(key), int(view)) for key, view in facts["items"]]
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except BAD_ARRAY as error:
        raise ValueError(str(error)) from None
    if len(values) != len(items) or values.dtype != np.float16:
        raise ValueError(f"it holds {values.shape} {values.dtype}")
    if digest([list(item) for item in items]) != path.stem:
        raise ValueError("its list of items is another one")
    found = path.stat()
    if facts.get("digest", "") not in ("", _digest_of_file(path, found.st_mtime_ns, found.st_size)):  # 0.2 has none
        raise ValueError("its numbers are not those that were stored")
    return items, values


@cache
def _digest_of_file(path: Path, _modified: int, _size: int) -> str:
    """``_digest`` of a shard; once for as long as nobody writes it anew: a job opens its store several times."""
    return _digest(np.load(path, mmap_mode="r", allow_pickle=False))


def _digest(values: Half) -> str:
    """Of the numbers alone, in the order they lie in the file."""
    return digest_bytes(np.ascontiguousarray(values).view(np.uint8).data)
