"""Trackers: what is told of every training run, beside the JSON lines in its folder, which are always there.

A tracker is a class that is made with a folder for its files and has three methods: ``start``, ``log``, ``finish``. It
hears of a run's epochs while it trains and of a cell's rounds when they are done. A process that goes on with a run
tells it from its first step again, under the same name, so that a tracker can begin that run anew: no step is missing
and none is there twice.

Whatever a tracker does, the run goes on as it would: it is given copies, and one that fails is heard of in one line.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from math import isfinite
from numbers import Real
from pathlib import Path
from typing import Any, Protocol

from agcd.config import Config
from agcd.errors import InstallError
from agcd.plugins import Registry
from agcd.tracking.mlflow import MLflow
from agcd.tracking.tensorboard import TensorBoard
from agcd.tracking.wandb import WandB
from agcd.training import settings_record
from agcd.training.loop import Log, read_log

log = logging.getLogger("agcd")

_NOT_NUMBERS = frozenset({"epoch", "n_epochs", "round", "seed"})
"""What says where a line belongs."""


class Tracker(Protocol):
    """Made with the folder where its files belong."""

    def start(self, name: str, settings: Mapping[str, Any]) -> None:
        """A run begins, or is told from its first step again: its name is the same one then, and no other run's."""

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """The numbers of one step (an epoch of a run, a round of a cell); steps rise."""

    def finish(self) -> None:
        """Nothing more comes of this run in this process."""


TRACKERS: Registry[Callable[[Path], Tracker]] = Registry(
    "Tracker", "agcd.tracking", {"tensorboard": TensorBoard, "mlflow": MLflow, "wandb": WandB}
)
"""Every tracker that can be named; agcd's own are called as the package and the extra that they need."""


@dataclass(frozen=True)
class Tracking:
    """Which tracker is told, where its files belong, and what the runs are about."""

    tracker: str
    folder: Path
    title: str = ""

    def about(self, title: str) -> Tracking:
        """The same, for runs of which the title says what they are about."""
        return replace(self, title=title)

    def tell_all(self, name: str, settings: Mapping[str, Any], lines: Mapping[int, Mapping[str, Any]]) -> None:
        """Tell of something whose steps are all known."""
        tracked = _Careful(self, name, settings)
        for step, line in lines.items():
            tracked.log(step, line)
        tracked.finish()


def open_tracking(tracker: str | None, folder: Path) -> Tracking | None:
    """Tracking by the tracker of that name; what is missing for it is said before anything runs."""
    if tracker is None:
        return None
    TRACKERS.get(tracker)
    if tracker in TRACKERS.built_in and find_spec(tracker) is None:
        raise InstallError(f"The tracker {tracker!r} is not installed here: pip install 'agcd[{tracker}]'.")
    return Tracking(tracker, folder.absolute())


class TrackedRun:
    """A training run, of which a tracker is told if there is one."""

    def __init__(self, tracked: _Careful | None, log_file: Path | None, echo: Log | None) -> None:
        self._tracked, self._log_file, self._echo = tracked, log_file, echo
        self._next = 0

    def tell_epoch(self, line: dict[str, Any]) -> None:
        """A line of the log, as soon as it is written."""
        if self._echo:
            self._echo(line)
        if self._tracked:
            self._catch_up(line["epoch"])
            self._tell(line)

    def tell_end(self, metrics: dict[str, Any]) -> None:
        """The figures of the finished round, as one step after the last epoch."""
        if self._tracked:
            self._catch_up(None)
            self._tracked.log(self._next, {"round": metrics})

    def _catch_up(self, epoch: int | None) -> None:
        """Tell what earlier processes have logged of epochs before this one."""
        if self._next == 0 and self._log_file is not None and epoch != 0:
            for line in read_log(self._log_file):
                if epoch is None or line["epoch"] < epoch:
                    self._tell(line)

    def _tell(self, line: dict[str, Any]) -> None:
        assert self._tracked is not None
        self._tracked.log(line["epoch"], line)
        self._next = line["epoch"] + 1


@contextmanager
def tracked_run(
    tracking: Tracking | None, number: int, key: str, config: Config, log_file: Path | None, echo: Log | None
) -> Iterator[TrackedRun]:
    """Round ``number`` under ``key`` while it trains; ``echo`` hears of its epochs first."""
    if tracking is None:
        yield TrackedRun(None, log_file, echo)
        return
    name = f"{tracking.title} round {number} {key[-8:]}".strip()
    tracked = _Careful(tracking, name, settings_record(config))
    try:
        yield TrackedRun(tracked, log_file, echo)
    finally:
        tracked.finish()


class _Careful:
    """A tracker that is started when there is something to tell; the first fault of it is the last that is heard."""

    def __init__(self, tracking: Tracking, name: str, settings: Mapping[str, Any]) -> None:
        self._tracking, self._name, self._settings = tracking, name, settings
        self._tracker: Tracker | None = None
        self._is_broken = False

    def log(self, step: int, line: Mapping[str, Any]) -> None:
        def tell() -> None:
            if self._tracker is None:
                self._tracker = TRACKERS.get(self._tracking.tracker)(self._tracking.folder)
                self._tracker.start(self._name, dict(self._settings))
            self._tracker.log(step, dict(_numbers(line)))

        self._try(tell)

    def finish(self) -> None:
        if self._tracker is not None:
            self._try(self._tracker.finish)

    def _try(self, act: Callable[[], None]) -> None:
        if self._is_broken:
            return
        try:
            act()
        except (Exception, SystemExit) as error:
            self._is_broken = True
            words = " ".join(f"{type(error).__name__}: {error}".split())
            log.warning(
                "The tracker %r failed and hears no more of %r: %.200s", self._tracking.tracker, self._name, words
            )


def _numbers(line: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, float]]:
    """The finite numbers of a line by name: those of a part as ``part/name``."""
    for name, value in line.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{above}{name}/")
        elif isinstance(value, Real) and not isinstance(value, bool) and name not in _NOT_NUMBERS and isfinite(value):
            yield f"{above}{name}", float(value)
