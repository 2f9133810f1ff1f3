"""Processes that train one model together: every one holds all of it and sees its share of the rows.

All draw the same batches from the same seeds. Each passes its own share of the rows through the model; what comes out
is gathered, so that every process computes the loss of the whole batch, and gradients are summed. That is the
arithmetic of one process, in another order of summation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import torch
from torch import Tensor

from agcd.types import IntArray


class ProcessGroup(Protocol):
    """The collective operations of training; all processes call the same ones in the same order."""

    @property
    def size(self) -> int: ...

    @property
    def rank(self) -> int:
        """This process's number in [0, size); rank 0 writes the files."""
        ...

    @property
    def device(self) -> torch.device:
        """Where the tensors are that the processes exchange."""
        ...

    def gather(self, own: Tensor, n: int) -> Tensor:
        """The shares (…, *shape) of ``n`` rows put together in order, (n, *shape); gradients go back to ``own``."""
        ...

    def all_reduce(self, tensors: Iterable[Tensor]) -> None:
        """Replace every tensor by its sum over the processes."""
        ...

    def broadcast(self, tensors: Iterable[Tensor]) -> None:
        """Replace every tensor by that of rank 0."""
        ...

    def barrier(self) -> None:
        """Return when all processes have called it."""
        ...


class SingleProcess:
    """The group of one process: nothing to gather, nobody to wait for."""

    size = 1
    rank = 0
    device = torch.device("cpu")

    def gather(self, own: Tensor, n: int) -> Tensor:
        return own

    def all_reduce(self, tensors: Iterable[Tensor]) -> None:
        pass

    def broadcast(self, tensors: Iterable[Tensor]) -> None:
        pass

    def barrier(self) -> None:
        pass


SINGLE_PROCESS = SingleProcess()


def share(group: ProcessGroup, n: int) -> slice:
    """The part of ``n`` rows that is this process's; shares differ by one row at most and may be empty."""
    return shares(group.size, n)[group.rank]


def shares(size: int, n: int) -> list[slice]:
    """The parts of all processes: every row is in exactly one."""
    return [slice(n * rank // size, n * (rank + 1) // size) for rank in range(size)]


def at_least_one(own: slice) -> slice:
    """The rows to pass through the model for a share: the first row of all if it is empty, as tails may refuse none."""
    return own if own.stop > own.start else slice(0, 1)


def gather_rows(group: ProcessGroup, rows: IntArray, compute: Callable[[IntArray], Tensor]) -> Tensor:
    """``compute`` (n, …) of all ``rows`` (n,), each process computing its share."""
    own = share(group, len(rows))
    return group.gather(compute(rows[at_least_one(own)])[: own.stop - own.start], len(rows))
