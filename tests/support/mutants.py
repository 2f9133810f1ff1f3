"""Damaged copies of valid files: bits flipped, bytes overwritten, cut, doubled and spliced, from a seed."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Sequence

_EXTREMES = [
    struct.pack(f"{order}{kind}", value)
    for order in "<>"
    for kind, value in (
        ("H", 0),
        ("H", 2**16 - 1),
        ("I", 0),
        ("I", 1),
        ("I", 2**31 - 1),
        ("I", 2**31),
        ("I", 2**32 - 1),
        ("H", 2**15),
    )
]
"""Numbers that lengths, offsets and counts are not prepared for."""


def mutants(valid: Sequence[bytes], seed: int) -> Iterator[bytes]:
    """One after the other, without an end; the same for the same seed."""
    rng = random.Random(seed)
    while True:
        content = bytearray(rng.choice(valid))
        for _ in range(rng.choice((1, 1, 2, 3, 8))):
            rng.choice(_WAYS)(content, rng, valid)
        yield bytes(content)


def _place(content: bytearray, rng: random.Random) -> int:
    """Rather near the beginning, where headers are."""
    return int(len(content) * rng.random() ** rng.choice((1, 4)))


def _flip(content: bytearray, rng: random.Random, valid: Sequence[bytes]) -> None:
    if content:
        content[min(_place(content, rng), len(content) - 1)] ^= 1 << rng.randrange(8)


def _extreme(content: bytearray, rng: random.Random, valid: Sequence[bytes]) -> None:
    at, value = _place(content, rng), rng.choice(_EXTREMES)
    content[at : at + len(value)] = value


def _noise(content: bytearray, rng: random.Random, valid: Sequence[bytes]) -> None:
    at = _place(content, rng)
    content[at : at + rng.randrange(16)] = rng.randbytes(rng.randrange(16))


def _cut(content: bytearray, rng: random.Random, valid: Sequence[bytes]) -> None:
    del content[_place(content, rng) :]


def _drop(content: bytearray, rng: random.Random, valid: Sequence[bytes]) -> None:
    at = _place(content, rng)
    del content[at : at + rng.randrange(64)]


def _double(content: bytearray, rng: random.Random, valid: Sequence[bytes]) -> None:
    at = _place(content, rng)
    content[at:at] = content[at : at + rng.randrange(256)] * rng.choice((1, 2, 50))


def _splice(content: bytearray, rng: random.Random, valid: Sequence[bytes]) -> None:
    other = bytearray(rng.choice(valid))
    content[_place(content, rng) :] = other[_place(other, rng) :]


_WAYS: tuple[Callable[[bytearray, random.Random, Sequence[bytes]], None], ...] = (
    _flip, _flip, _extreme, _extreme, _noise, _cut, _drop, _double, _splice,
)  # fmt: skip
