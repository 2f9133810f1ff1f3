"""torchrun on one machine: it starts the processes there that train together, and watches them.

Several machines find each other at an address of the one where the command was given; the others ``join``.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from agcd.engine.local import default_processes
from agcd.engine.rank import UNTIL_CLOSED
from agcd.errors import ConfigError
from agcd.features.devices import count_devices
from agcd.processes import APART, ENDINGS

log = logging.getLogger("agcd")

RANK = "agcd.engine.rank"
"""The module that each process runs."""
NOBODY_CAME = "RendezvousTimeoutError"
"""What torchrun ends with when machines are missing for too long."""
_COMING_SECONDS = 3600
"""How long machines wait for each other: somebody has to start a command on each."""
_LOOK_SECONDS = 1.0
_END_SECONDS = 30.0
"""How long processes may take to end when asked, before they are killed."""
_ADDRESS_OF_INTERFACE = 0x8915


@dataclass(frozen=True)
class Meeting:
    """How many machines train together, and where they find each other: at an address of the first one."""

    nodes: int
    host: str
    port: int

    @classmethod
    def at(cls, nodes: int, rendezvous: str | None) -> Meeting:
        """The meeting at ``HOST:PORT``."""
        if rendezvous is None:
            raise ConfigError(f"{nodes} machines need an address where they find each other: --rendezvous HOST:PORT.")
        host, _, port = rendezvous.rpartition(":")
        if not host or not re.fullmatch(r"\d{1,5}", port):
            raise ConfigError(f"The address where machines find each other is HOST:PORT, not {rendezvous!r}.")
        if nodes == 1:
            raise ConfigError(f"{rendezvous} is where machines find each other: say with --nodes how many they are.")
        return cls(nodes, host, int(port))

    @property
    def place(self) -> str:
        return f"{self.host}:{self.port}"

    def arguments(self, *, is_first: bool) -> list[str]:
        """Of torchrun. It is told addresses, as a machine's own name may not resolve on the others."""
        how = f"is_host={int(is_first)},join_timeout={_COMING_SECONDS}"
        return [
            *("--nnodes", str(self.nodes), "--rdzv-backend", "c10d", "--rdzv-endpoint", self.place),
            *("--rdzv-conf", how, "--local-addr", self.own_address()),
        ]

    def environment(self) -> dict[str, str]:
        """Names gloo the network that leads to the others, which it takes from the machine's own name else."""
        name = interface_of(self.own_address())
        return {} if name is None or "GLOO_SOCKET_IFNAME" in os.environ else {"GLOO_SOCKET_IFNAME": name}

    def own_address(self) -> str:
        """The address by which this machine reaches the first one."""
        try:
            family, kind, _, _, place = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, kind) as probe:
                probe.connect(place)  # by which nothing is sent
                return str(probe.getsockname()[0])
        except OSError as error:
            raise ConfigError(
                f"No way leads to {self.host!r} ({error}): HOST is where the command was given."
            ) from None

    def is_open(self) -> bool:
        """Whether the first machine is there with a run."""
        try:
            socket.create_connection((self.host, self.port), _END_SECONDS).close()
        except OSError:
            return False
        return True


def interface_of(address: str) -> str | None:
    """The network interface with this IPv4 address; None where the system does not tell."""
    try:
        import fcntl
    except ImportError:
        return None
    for _, name in socket.if_nameindex():
        with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            told = fcntl.ioctl(probe, _ADDRESS_OF_INTERFACE, struct.pack("256s", name.encode()))
            if socket.inet_ntoa(told[20:24]) == address:
                return name
    return None


@contextmanager
def started(
    n_processes: int, folder: Path, output: Path, meeting: Meeting | None, job: Path | None
) -> Iterator[subprocess.Popen[bytes]]:
    """torchrun with its processes, which are gone at the end: by themselves, or because nobody waits for them.

    Parameters
    ----------
    folder, output : for torchrun's own files, and for what the processes print
    meeting : with other machines; None: this one is alone
    job : the folder of the job; None where another machine tells it
    """
    if meeting is None:
        where = ["--standalone", "--local-addr", "127.0.0.1"]  # the machine's own name may not resolve
    else:
        where = meeting.arguments(is_first=job is not None)
    logs = ["--log-dir", str(folder / "logs")]  # else every run leaves an empty folder among temporary files
    command = [*logs, *where, "--nproc-per-node", str(n_processes), "--max-restarts", "0", "-m", RANK]
    threads = {"OMP_NUM_THREADS": str(max(1, torch.get_num_threads() // n_processes)), "PYTHONSAFEPATH": "1"}
    with output.open("wb") as printed:
        torchrun = subprocess.Popen(
            [sys.executable, "-m", "torch.distributed.run", *command, *([str(job)] if job else []), UNTIL_CLOSED],
            stdin=subprocess.PIPE,
            stdout=printed,
            stderr=printed,
            env=os.environ | threads | (meeting.environment() if meeting else {}),
            **APART,
        )
    try:
        yield torchrun
    finally:
        _end(torchrun)


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


def join(rendezvous: str, nodes: int, processes: int | None = None) -> None:
    """Take this machine's part in every run of the command that was given at ``rendezvous``, until interrupted."""
    meeting = Meeting.at(nodes, rendezvous)
    n_processes = processes or default_processes("cuda" if count_devices("cuda") else "cpu")
    log.info("waiting at %s for runs, until Ctrl-C", meeting.place)
    while True:
        if meeting.is_open():
            _take_part(meeting, n_processes)
        time.sleep(_LOOK_SECONDS)


def _take_part(meeting: Meeting, n_processes: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        output = folder / "output.txt"
        with started(n_processes, folder, output, meeting, None) as torchrun:
            code = torchrun.wait()
        printed = output.read_text(encoding="utf-8", errors="replace")
    if code == 0:
        log.info("took part in a run")
    elif not re.search(r"Rendezvous(Closed|Connection)Error", printed):  # the end of a run that is over
        log.warning("%s\nA run broke off; waiting for the next one.", printed.rstrip())
