"""Code that is not agcd's own: modules that a test writes, loads, edits and loads again as a new process would."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

STRATEGY = '''
"""A strategy of somebody else."""
from {helper} import ordered


def pick(view, budget, rng):
    """Picks the rows that the helper puts first."""
    return ordered(view.rows)[:budget]
'''
FIRST, LAST = (f"def ordered(rows):\n    return rows[::{step}]\n" for step in (1, -1))
"""Two versions of the helper."""
TRAINER = '''
"""A trainer of somebody else."""
from agcd.training.simgcd import SimGCD


class Mine(SimGCD):
    reads = frozenset({"answers"})
'''


def write(folder: Path, sources: Mapping[str, str]) -> None:
    """Modules by their place in the folder, as ``package/module``."""
    for place, source in sources.items():
        path = folder / f"{place}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)


@contextmanager
def new_process(folder: Path) -> Iterator[None]:
    """Modules of ``folder`` are found, and loaded anew: what an earlier block loaded is gone."""
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in [
            name for name in sys.modules if name.partition(".")[0] in {path.stem for path in folder.iterdir()}
        ]:
            del sys.modules[name]
