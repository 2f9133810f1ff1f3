"""The engine of this process alone: for work that no other process could do, and for little of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from agcd.engine.local import LocalEngine


class HereEngine(LocalEngine):
    """One task after the other, with one thread each as in workers, and so with the same result."""

    def run(
        self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], device: str = "cpu"
    ) -> Iterator[tuple[int, Any]]:
        for position, task in enumerate(tasks):
            before = torch.get_num_threads()
            torch.set_num_threads(1)
            try:
                result = function(*task)
            finally:
                torch.set_num_threads(before)
            yield position, result
