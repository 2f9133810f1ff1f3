"""Where work runs: in this process, in several that train together (torchrun), or on the workers of a Ray cluster.

An engine changes where and how fast, never what: stores have the same bytes, runs the same folders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from agcd.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from agcd.config import TrainConfig
    from agcd.features.rows import Fill
    from agcd.training.job import Outcome, TrainingJob

ENGINES = ("local", "torchrun", "ray")


class Engine(Protocol):
    """The kinds of work that may run elsewhere."""

    @property
    def fill(self) -> Fill:
        """What computes the features that a store lacks."""
        ...

    def fit(self, config: TrainConfig, job: TrainingJob) -> Outcome:
        """Train one run to its end, from wherever its folder says it stands."""
        ...

    def run(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
        """``function(*task)`` of every task, as they finish: its position and its result."""
        ...

    def map_chunks(self, make: Callable[[], Callable[[Any], Any]], chunks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """``make()`` once per worker, then what it made on every chunk, as they finish: position and result.

        It keeps what is expensive to open, such as a model, from chunk to chunk. Chunks and results are JSON-like.
        """
        ...


def open_engine(
    name: str = "local",
    *,
    address: str | None = None,
    processes: int | None = None,
    nodes: int = 1,
    rendezvous: str | None = None,
) -> Engine:
    """The engine of that name.

    Parameters
    ----------
    address : where a Ray cluster listens; None starts one on this machine
    processes : how many processes work at a time; None is one per core, or what the cluster has
    nodes, rendezvous : how many machines train together with torchrun, and ``HOST:PORT`` where they find each other
    """
    if name not in ENGINES:
        raise ConfigError(f"Unknown engine {name!r}.{did_you_mean(name, ENGINES)} There are {', '.join(ENGINES)}.")
    if address is not None and name != "ray":
        raise ConfigError(f"--address is for the engine ray, not for {name}.")
    if (nodes > 1 or rendezvous is not None) and name != "torchrun":
        raise ConfigError(f"--nodes and --rendezvous are for the engine torchrun, not for {name}.")
    if name == "ray":
        from agcd.engine.ray import RayEngine

        return RayEngine(address, processes)
    if name == "torchrun":
        from agcd.engine.torchrun import TorchrunEngine

        return TorchrunEngine(processes, nodes, rendezvous)
    from agcd.engine.local import LocalEngine

    return LocalEngine(processes)
