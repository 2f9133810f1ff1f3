"""The default engine: this process, and parallel ones for work that comes in independent tasks."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from agcd.config import TrainConfig
from agcd.data.decoding import end_with_parent
from agcd.engine import Fit
from agcd.features.devices import LOCAL_RANK, count_devices
from agcd.features.extract import fill
from agcd.training import fit
from agcd.training.job import Outcome, TrainingJob
from agcd.training.loop import use_one_thread


class LocalEngine:
    """Everything on this machine, without help."""

    fill = staticmethod(fill)

    def __init__(self, processes: int | None = None) -> None:
        self.processes = processes

    @property
    def fit_in_task(self) -> Fit | None:
        return None

    def fit(self, config: TrainConfig, job: TrainingJob) -> Outcome:
        return fit(config, job)

    def run(
        self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], device: str = "cpu"
    ) -> Iterator[tuple[int, Any]]:
        """One process per device, or per core, unless told otherwise; the first failure stops what has not begun.

        Each takes a number of its own as LOCAL_RANK, by which they are dealt out to all devices of the kind.
        """
        n = min(self.processes or default_processes(device), max(1, len(tasks)))
        context = multiprocessing.get_context("spawn")
        numbers = context.Value("i", 0)
        with ProcessPoolExecutor(n, mp_context=context, initializer=_prepare_worker, initargs=(numbers,)) as pool:
            futures = {pool.submit(function, *task): i for i, task in enumerate(tasks)}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def map_chunks(
        self, make: Callable[[], Callable[[Any], Any]], chunks: Sequence[Any], device: str = "cpu"
    ) -> Iterator[tuple[int, Any]]:
        """In this process, whose threads share each chunk."""
        if chunks:
            answer = make()
            yield from ((i, answer(chunk)) for i, chunk in enumerate(chunks))


def default_processes(kind: str) -> int:
    """One per device of that kind, or else per core."""
    return (os.cpu_count() if kind == "cpu" else count_devices(kind)) or 1


def _prepare_worker(numbers: Any) -> None:
    with numbers.get_lock():
        os.environ[LOCAL_RANK] = str(numbers.value)
        numbers.value += 1
    use_one_thread()
    end_with_parent()
