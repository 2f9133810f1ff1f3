"""An engine's work in the process that asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from agcd.engine.local import LocalEngine


def run_here(
    _: LocalEngine, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], device: str = "cpu"
) -> Iterator[Any]:
    """In place of ``LocalEngine.run``: the tasks one after the other."""
    yield from ((position, function(*task)) for position, task in enumerate(tasks))
