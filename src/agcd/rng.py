"""One seed drives everything: each use derives its own generator from the seed and a path of words.

A generator depends only on its path, never on what was drawn before it, so a resumed run draws what an
unbroken run would have drawn.
"""

from __future__ import annotations

import hashlib

import numpy as np


def derive_seed(seed: int, *path: str | int) -> int:
    """A 63-bit seed that depends on ``seed`` and every part of ``path``."""
    text = "/".join([str(seed), *map(str, path)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def generator(seed: int, *path: str | int) -> np.random.Generator:
    """The NumPy generator for one named use of ``seed``."""
    return np.random.default_rng(derive_seed(seed, *path))
