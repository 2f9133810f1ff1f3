"""Training in several processes that torchrun starts: this one hands over the job, follows the log and takes the model.

With features in a store, every process maps the same files and reads its share of each batch.
"""

from __future__ import annotations

import logging
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from agcd.config import TrainConfig
from agcd.engine import Fit
from agcd.engine.agents import NOBODY_CAME, Meeting, started
from agcd.engine.job_files import OUTPUT, has_outcome, read_error, read_outcome, write_job
from agcd.engine.local import LocalEngine, default_processes
from agcd.engine.rank import check_devices
from agcd.errors import AgcdError, EngineError
from agcd.features.rows import RowFeatures
from agcd.run_files import LOG
from agcd.training.job import Outcome, TrainingJob
from agcd.training.loop import Log, continue_log, epochs_done, read_log, rewrite_log

log = logging.getLogger("agcd")

_ALL_ROWS_AT_ONCE = {"pim", "logistic", "label_spreading"}
"""Trainers without batches that could be shared."""
_LOOK_SECONDS = 0.2
"""How often the log is read: seldom enough to cost nothing beside an epoch, often enough for a progress bar."""


class TorchrunEngine(LocalEngine):
    """Training shared by processes on this machine, or on several; all other work as ``LocalEngine`` does it.

    Parameters
    ----------
    processes : how many per machine; None is one per GPU where these train, else one per core
    nodes : how many machines; on each other one somebody starts ``agcd join``, once
    rendezvous : ``HOST:PORT`` where machines find each other, HOST being this one
    """

    def __init__(self, processes: int | None = None, nodes: int = 1, rendezvous: str | None = None) -> None:
        super().__init__(processes)
        self.nodes, self._is_told = nodes, False
        self._meeting = Meeting.at(nodes, rendezvous) if nodes > 1 or rendezvous is not None else None

    def fit(self, config: TrainConfig, job: TrainingJob) -> Outcome:
        """As one process would, to float tolerance.

        ``job.evaluate`` measures the final model alone, since nobody here has those of the epochs before it; what it
        finds joins the last line of the log.
        """
        if config.trainer in _ALL_ROWS_AT_ONCE:
            log.info("the trainer %s takes all rows at once: it runs in one process", config.trainer)
            return super().fit(config, job)
        if self.nodes * self._processes_here(job.device) == 1:
            return super().fit(config, job)
        check_devices(job.device, self._processes_here(job.device))
        if job.run_dir:
            return self._fit_in(job.run_dir, config, job)
        with tempfile.TemporaryDirectory() as folder:  # processes are handed their job by files
            return self._fit_in(Path(folder), config, job)

    @property
    def fit_in_task(self) -> Fit:
        return self.fit

    def run(
        self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], device: str = "cpu"
    ) -> Iterator[tuple[int, Any]]:
        """One after the other in this process, as the processes share the training of each."""
        yield from ((i, function(*task)) for i, task in enumerate(tasks))

    def _fit_in(self, run_dir: Path, config: TrainConfig, job: TrainingJob) -> Outcome:
        folder = (run_dir / "torchrun").resolve()
        shutil.rmtree(folder, ignore_errors=True)
        write_job(folder, config, job)
        n_done = epochs_done(run_dir)
        continue_log(run_dir / LOG, n_done)
        n_processes = self._processes_here(job.device)
        self._tell(n_processes)
        with started(n_processes, folder, folder / OUTPUT, self._meeting, folder) as torchrun:
            _follow(torchrun, run_dir / LOG, n_done, job.echo)
        outcome = _outcome(folder, job.features, job.device, torchrun.returncode)
        shutil.rmtree(folder)
        if job.evaluate:
            log.info("torchrun measures the final model only: the log has no figures of earlier epochs")
            _log_evaluation(run_dir / LOG, job.evaluate(outcome.fitted))
        return outcome

    def _processes_here(self, device: torch.device) -> int:
        return self.processes or default_processes(device.type)

    def _tell(self, n_processes: int) -> None:
        """What to do on the other machines; once is enough for all runs."""
        if self._meeting and not self._is_told:
            words = "agcd join %s --nodes %d --processes %d"
            log.warning(f"Start this on each other machine: {words}", self._meeting.place, self.nodes, n_processes)
            self._is_told = True


def _follow(torchrun: subprocess.Popen[bytes], path: Path, n_seen: int, echo: Log | None) -> None:
    """Echo the lines of the run's log behind the first ``n_seen`` as they appear, until torchrun ends."""
    ended = False
    while not ended:
        ended = torchrun.poll() is not None  # before the look, so that the last lines are seen
        lines = read_log(path)
        for line in lines[n_seen:]:
            if echo:
                echo(line)
        n_seen = len(lines)
        if not ended:
            time.sleep(_LOOK_SECONDS)


def _outcome(folder: Path, features: RowFeatures, device: torch.device, code: int) -> Outcome:
    """What the processes left behind. A whole outcome counts, however they ended after it was written."""
    if not has_outcome(folder):
        raise _failure(folder, code)
    if code:
        log.warning("A training process ended with an error after the model was complete; nothing is lost.")
    return read_outcome(folder, features, device)


def _log_evaluation(path: Path, figures: dict[str, Any]) -> None:
    lines = read_log(path)
    if lines:  # training of no epochs has no line to add to
        lines[-1]["evaluation"] = figures
        rewrite_log(path, lines)


def _failure(folder: Path, code: int) -> AgcdError:
    """What to tell about processes that ended before the training did."""
    told = read_error(folder)
    if told:
        return told
    printed = (folder / OUTPUT).read_text(encoding="utf-8", errors="replace")
    if NOBODY_CAME in printed:
        return EngineError("The other machines did not come in time: start what this command says on each of them.")
    codes = [int(found) for found in re.findall(r"exitcode\s*: (-?\d+)", printed)]
    # Whoever lost its partner fails as well, and torchrun ends the rest by SIGTERM.
    killed = [found for found in codes if found < 0 and found != -signal.SIGTERM]
    return EngineError(
        f"A training process died (exit code {[*killed, *codes, code][0]}) {_where(folder.parent)}: run the same "
        f"command again, and it goes on from there ({folder / OUTPUT} holds what was printed)."
    )


def _where(run_dir: Path) -> str:
    done, lines = epochs_done(run_dir), read_log(run_dir / LOG)
    if not lines:
        return "in the first epoch"
    n_epochs = lines[-1]["n_epochs"]
    return f"in epoch {done + 1} of {n_epochs}" if done < n_epochs else "after the last epoch"
