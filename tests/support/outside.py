"""Code that is not agcd's own: modules that a test writes, loads, edits and loads again as a new process would."""

from __future__ import annotations

import importlib
import re
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


def contributing_example(first_words: str) -> str:
    """The example of CONTRIBUTING.md that begins so, as it stands there."""
    page = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found: list[str] = [
        code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if code.startswith(first_words)
    ]
    assert len(found) == 1, f"{len(found)} examples of CONTRIBUTING.md begin with {first_words!r}"
    return found[0]


def make_package(folder: Path, name: str, sources: Mapping[str, str], points: Mapping[str, Mapping[str, str]]) -> None:
    """An installed package: its modules, and beside them what pip writes about it, with its entry points by group."""
    write(folder, {f"{name}/__init__": "", **{f"{name}/{module}": source for module, source in sources.items()}})
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir(exist_ok=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    groups = [
        "\n".join([f"[{group}]", *(f"{key} = {value}" for key, value in named.items())])
        for group, named in points.items()
    ]
    (about / "entry_points.txt").write_text("\n\n".join(groups) + "\n")
