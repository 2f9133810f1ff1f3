"""Somebody who may read a folder and not write into it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NOBODY = 65534


@contextmanager
def only_readable(folder: Path) -> Iterator[None]:
    """Take away the right to write into ``folder`` and all below it; every folder above it can be passed."""
    for parent in folder.parents:
        if parent.stat().st_uid == os.getuid():
            parent.chmod(parent.stat().st_mode | 0o011)
    below = [folder, *folder.rglob("*")]
    modes = {path: path.stat().st_mode for path in below}
    for path in below:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


def become_reader() -> None:
    """Give up this process's own rights where they would let it write anywhere; what it needs is loaded before."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)
