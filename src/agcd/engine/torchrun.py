"""Training in several processes that torchrun starts: this one hands over the job, follows the log and takes the model.

With features in a store, every process maps the same files and reads its share of each batch.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from agcd.config import TrainConfig
from agcd.engine import Fit
from agcd.engine.job_files import OUTPUT, has_outcome, read_error, read_outcome, write_job
from agcd.engine.local import LocalEngine, default_processes
from agcd.engine.rank import UNTIL_CLOSED, check_devices
from agcd.errors import AgcdError, ConfigError, EngineError
from agcd.features.rows import RowFeatures
from agcd.processes import APART, ENDINGS
from agcd.run_files import LOG
from agcd.training.job import Outcome, TrainingJob
from agcd.training.loop import Log, continue_log, epochs_done, read_log, rewrite_log

log = logging.getLogger("agcd")

_ALL_ROWS_AT_ONCE = {"pim", "logistic", "label_spreading"}
"""Trainers without batches that could be shared."""
_LOOK_SECONDS = 0.2
"""How often the log is read: seldom enough to cost nothing beside an epoch, often enough for a progress bar."""
_END_SECONDS = 30.0
"""How long processes may take to end when asked, before they are killed."""


class TorchrunEngine(LocalEngine):
    """Training shared by processes on this machine, or on several; all other work as ``LocalEngine`` does it.

    Parameters
    ----------
    processes : how many per machine; None is one per GPU where these train, else one per core
    nodes : how many machines; on each other one somebody starts the command that the log tells, once
    rendezvous : ``HOST:PORT`` where machines find each other, HOST being one of them
    """

    def __init__(self, processes: int | None = None, nodes: int = 1, rendezvous: str | None = None) -> None:
        super().__init__(processes)
        if nodes > 1 and rendezvous is None:
            raise ConfigError(f"{nodes} machines need an address where they find each other: --rendezvous HOST:PORT.")
        if rendezvous is not None and not re.fullmatch(r".+:\d+", rendezvous):
            raise ConfigError(f"The address where machines find each other is HOST:PORT, not {rendezvous!r}.")
        if rendezvous is not None and nodes == 1:
            raise ConfigError(f"{rendezvous} is where machines find each other: say with --nodes how many they are.")
        self.nodes, self.rendezvous = nodes, rendezvous
        self._told = False

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
        with self._started(folder, job.device) as torchrun:
            _follow(torchrun, run_dir / LOG, n_done, job.echo)
        outcome = _outcome(folder, job.features, job.device, torchrun.returncode)
        shutil.rmtree(folder)
        if job.evaluate:
            log.info("torchrun measures the final model only: the log has no figures of earlier epochs")
            _log_evaluation(run_dir / LOG, job.evaluate(outcome.fitted))
        return outcome

    @contextmanager
    def _started(self, folder: Path, device: torch.device) -> Iterator[subprocess.Popen[bytes]]:
        """torchrun with its processes, which are gone at the end: by themselves, or because nobody waits for them."""
        threads = max(1, torch.get_num_threads() // self._processes_here(device))
        logs = ["--log-dir", str(folder / "logs")]  # else every run leaves an empty folder among temporary files
        if self.nodes > 1 and not self._told:  # it does not name the run, and so does for all of them
            command = shlex.join(["torchrun", *self._options(device)])
            log.warning("Start this on each other machine, until all is done: while sleep 1; do %s; done", command)
            self._told = True
        with (folder / OUTPUT).open("wb") as output:
            torchrun = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "torch.distributed.run",
                    *logs,
                    *self._options(device),
                    str(folder),
                    UNTIL_CLOSED,
                ],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=os.environ | {"OMP_NUM_THREADS": str(threads), "PYTHONSAFEPATH": "1"},
                **APART,
            )
        try:
            yield torchrun
        finally:
            _end(torchrun)

    def _options(self, device: torch.device) -> list[str]:
        here = ["--standalone", "--local-addr", "127.0.0.1"]  # the machine's own name may not resolve
        there = ["--rdzv-backend", "c10d", "--rdzv-endpoint", str(self.rendezvous)]
        n_processes = ["--nnodes", str(self.nodes), "--nproc-per-node", str(self._processes_here(device))]
        return [*n_processes, *(here if self.nodes == 1 else there), "--max-restarts", "0", "-m", "agcd.engine.rank"]

    def _processes_here(self, device: torch.device) -> int:
        return self.processes or default_processes(device.type)


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


def _end(torchrun: subprocess.Popen[bytes]) -> None:
    assert torchrun.stdin is not None
    torchrun.stdin.close()  # what ends its processes
    for number in ENDINGS:
        if torchrun.poll() is None:
            torchrun.send_signal(number)
            try:
                torchrun.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                continue


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
    codes = [int(found) for found in re.findall(rb"exitcode\s*: (-?\d+)", (folder / OUTPUT).read_bytes())]
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
