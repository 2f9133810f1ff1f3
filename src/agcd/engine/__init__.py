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


Fit = Callable[["TrainConfig", "TrainingJob"], "Outcome"]


class Engine(Protocol):
    """The kinds of work that may run elsewhere."""

    @property
    def fill(self) -> Fill:
        """What computes the features that a store lacks."""
        ...

    def fit(self, config: TrainConfig, job: TrainingJob) -> Outcome:
        """Train one run to its end, from wherever its folder says it stands."""
        ...

    @property
    def fit_in_task(self) -> Fit | None:
        """What trains where a task of ``run`` asks for it; None: the task's own process does."""
        ...

    def run(
        self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], device: str = "cpu"
    ) -> Iterator[tuple[int, Any]]:
        """``function(*task)`` of every task, as they finish: its position and its result.

        ``device`` is the kind that tasks compute on, as ``cuda``: they are dealt out to all of these, or else to cores.
        """
        ...

    def map_chunks(
        self, make: Callable[[], Callable[[Any], Any]], chunks: Sequence[Any], device: str = "cpu"
    ) -> Iterator[tuple[int, Any]]:
        """``make()`` once per worker, then what it made on every chunk, as they finish: position and result.

        It keeps what is expensive to open, such as a model, from chunk to chunk. Chunks and results are JSON-like;
        ``device`` is as for ``run``.
        """
        ...


def open_engine(
    name: str = "local",
    *,
    address: str | None = None,
    processes: int | None = None,
    nodes: int = 1,
    rendezvous: str | None = None,
    gpus: float | None = None,
) -> Engine:
    """The engine of that name.

    Parameters
    ----------
    address : where a Ray cluster listens; None starts one on this machine
    processes : how many processes work at a time; None is one per core, or per GPU for what computes there, or what
        the cluster has
    nodes, rendezvous : how many machines train together with torchrun, and ``HOST:PORT`` where they find each other,
        HOST being this one
    gpus : how many GPUs of a Ray cluster each of its workers has for itself, or which part of one, if its work is for
        GPUs; None is one, or an equal part if there are more workers than GPUs
    """
    if name not in ENGINES:
        raise ConfigError(f"Unknown engine {name!r}.{did_you_mean(name, ENGINES)} There are {', '.join(ENGINES)}.")
    if address is not None and name != "ray":
        raise ConfigError(f"--address is for the engine ray, not for {name}.")
    if (nodes > 1 or rendezvous is not None) and name != "torchrun":
        raise ConfigError(f"--nodes and --rendezvous are for the engine torchrun, not for {name}.")
    if gpus is not None and name != "ray":
        raise ConfigError(f"--gpus is for the engine ray, not for {name}.")
    if name == "ray":
        from agcd.engine.ray import RayEngine

        return RayEngine(address, processes, gpus)
    if name == "torchrun":
        from agcd.engine.torchrun import TorchrunEngine

        return TorchrunEngine(processes, nodes, rendezvous)
    from agcd.engine.local import LocalEngine

    return LocalEngine(processes)
