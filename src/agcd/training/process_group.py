"""Processes that train one model together: every one holds all of it and sees its share of the rows.

All draw the same batches from the same seeds. Each passes its own share of the rows through the model; what comes out
is gathered, so that every process computes the loss of the whole batch, and gradients are summed. That is the
arithmetic of one process, in another order of summation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from torch import Tensor

from agcd.types import IntArray


class Team(Protocol):
    """What the processes do together; all of them call the same methods in the same order."""

    @property
    def size(self) -> int: ...

    @property
    def rank(self) -> int:
        """This process's number in [0, size); number 0 writes the files."""
        ...

    def gather(self, own: Tensor, n: int) -> Tensor:
        """The shares (…, *shape) of ``n`` rows put together in order, (n, *shape); gradients go back to ``own``."""
        ...

    def add_up(self, tensors: Iterable[Tensor]) -> None:
        """Replace every tensor by its sum over the processes."""
        ...

    def follow(self, tensors: Iterable[Tensor]) -> None:
        """Replace every tensor by that of process 0."""
        ...

    def wait(self) -> None:
        """Go on when all have come here."""
        ...


class Alone:
    """One process: nothing to gather, nobody to wait for."""

    size = 1
    rank = 0

    def gather(self, own: Tensor, n: int) -> Tensor:
        return own

    def add_up(self, tensors: Iterable[Tensor]) -> None:
        pass

    def follow(self, tensors: Iterable[Tensor]) -> None:
        pass

    def wait(self) -> None:
        pass


ALONE = Alone()


def share(team: Team, n: int) -> slice:
    """The part of ``n`` rows that is this process's; shares differ by one row at most and may be empty."""
    return shares(team.size, n)[team.rank]


def shares(size: int, n: int) -> list[slice]:
    """The parts of all processes: every row is in exactly one."""
    return [slice(n * rank // size, n * (rank + 1) // size) for rank in range(size)]


def worked(own: slice) -> slice:
    """The rows to compute for a share: the first row of all where it is empty, as tails need not take no rows."""
    return own if own.stop > own.start else slice(0, 1)


def together(team: Team, rows: IntArray, compute: Callable[[IntArray], Tensor]) -> Tensor:
    """``compute`` (n, …) of all ``rows`` (n,), to which every process adds its share."""
    own = share(team, len(rows))
    return team.gather(compute(rows[worked(own)])[: own.stop - own.start], len(rows))
