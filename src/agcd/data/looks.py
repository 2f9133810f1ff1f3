"""One look at every picture of a source: its content key, what its header says, a hash of what it shows.

A picture is read and decoded once; whatever its decoder refuses is a reason to set it aside. JPEGs are decoded at an
eighth of their size, which still reads them to the end.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agcd.data.decoding import Decoder
from agcd.data.images import ImageError, decode, header, probe, read_file
from agcd.io import digest_bytes
from agcd.types import Looks

HASHED_SIDE = 32
"""Pixels that a JPEG is decoded to before it is made a hash."""
_THREADS = 4
_log = logging.getLogger(__name__)


class Look(NamedTuple):
    """What one look at a picture tells."""

    key: str
    size: tuple[int, int]
    is_deep: bool
    has_pages: bool
    hash: int


def look_at(path: Path) -> Look:
    """Read, check and decode a picture; an ``ImageError`` says why it cannot be used."""
    content = read_file(path)
    reason = probe(content)
    if reason is not None:
        raise ImageError(reason, path)
    facts = header(content)
    key = digest_bytes(content)
    return Look(
        key, facts.size, facts.is_deep, facts.has_pages, difference_hash(decode(content, draft_size=HASHED_SIDE))
    )


def difference_hash(image: Image.Image) -> int:
    """64 bits: whether each of 8 × 8 grey cells is brighter than its right neighbour; 0 where it is flat."""
    cells = np.asarray(image.convert("L").resize((9, 8), Image.Resampling.BOX), dtype=np.int16)
    bits = np.asarray(cells[:, :-1] > cells[:, 1:]).ravel()
    if not 8 <= bits.sum() <= 56:  # plain backgrounds all hash alike and say nothing
        return 0
    return int.from_bytes(np.packbits(bits).tobytes(), "big")


def look_at_all(paths: Sequence[Path]) -> Iterator[Look | ImageError]:
    """One look, or the reason against it, for every path, in order."""
    decoder = Decoder()

    def tried(path: Path) -> Look | ImageError:
        try:
            found: Look = decoder(path, HASHED_SIDE, look_at, path)
            return found
        except ImageError as error:
            return error

    told = time.monotonic()
    try:
        with ThreadPoolExecutor(_THREADS) as threads:
            for done, look in enumerate(threads.map(tried, paths), start=1):
                yield look
                if time.monotonic() - told >= 2:
                    told = time.monotonic()
                    _log.info("%s of %s pictures looked at", f"{done:,}", f"{len(paths):,}")
    finally:
        decoder.close()


def as_arrays(looks: Sequence[Look]) -> Looks:
    sizes = np.array([look.size for look in looks], dtype=np.int64).reshape(-1, 2)
    return Looks(
        width=sizes[:, 0],
        height=sizes[:, 1],
        is_deep=np.array([look.is_deep for look in looks], dtype=np.bool_),
        has_pages=np.array([look.has_pages for look in looks], dtype=np.bool_),
        hash=np.array([look.hash for look in looks], dtype=np.uint64),
    )


def hash_bits(hashes: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """(n, 64): the bits of each hash."""
    return np.unpackbits(hashes.astype(">u8").view(np.uint8).reshape(-1, 8), axis=1)
