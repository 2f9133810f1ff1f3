"""Damage to single files, as disks and people do it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

import numpy as np

from agcd.rng import generator

Damage = Literal["flip", "truncate", "empty", "delete"]
DAMAGES: tuple[Damage, ...] = get_args(Damage)


def damage(path: Path, how: Damage, rng: np.random.Generator | None = None) -> None:
    """Damage a file; what is flipped or cut lies in its middle, or is drawn from ``rng``. An empty file is deleted."""
    content = bytearray(path.read_bytes())
    if how == "delete" or not content:
        path.unlink()
        return
    draw = rng or generator(0, "damage")
    if how == "flip":
        where = draw.integers(0, len(content), 8).tolist() if rng else [len(content) // 2]
        for place in where:
            content[place] ^= 1 << int(draw.integers(0, 8))
    kept = {"flip": len(content), "truncate": int(draw.integers(0, len(content))), "empty": 0}[how]
    path.write_bytes(content[:kept])
