"""One of the processes that train together: ``torchrun … -m agcd.engine.rank [RUN_DIR/torchrun]``.

Those of the machine where the command was given are told the folder, and tell it to the others.

On GPUs of CUDA, one for each process, they communicate through NCCL, else through gloo. Gradients are summed by one
call per step. DistributedDataParallel would send while the backward pass still goes on, which for a tail of one block
saves little; it would also take means, and search at every step for parameters that no loss reaches (GCD and μGCD have
some).
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import Store
from torch.distributed.rendezvous import rendezvous

from agcd.engine.job_files import JOB, packed_error, read_device, read_job, unpacked_error, write_error, write_outcome
from agcd.errors import AgcdError, ConfigError, EngineError, StorageError
from agcd.features.devices import CPU, OutOfMemory, count_devices, find_device
from agcd.training import fit
from agcd.training.process_group import ProcessGroup, shares

UNTIL_CLOSED = "--until-closed"
"""End when standard input does: whoever started this process has ended then, however suddenly."""
_LEAVE_TIMEOUT = timedelta(minutes=5)
"""Far beyond what a barrier takes on a busy machine; whoever waits longer waits for a process that has died."""


class TorchProcessGroup:
    """Torch's default process group.

    Parameters
    ----------
    device : where the tensors are that are exchanged: with NCCL this process's own GPU
    """

    def __init__(self, device: torch.device = CPU) -> None:
        self.size, self.rank, self.device = dist.get_world_size(), dist.get_rank(), device

    def gather(self, own: Tensor, n: int) -> Tensor:
        whole: Tensor = _Gather.apply(own, shares(self.size, n), self.rank)  # type: ignore[no-untyped-call]
        return whole

    def all_reduce(self, tensors: Iterable[Tensor]) -> None:
        parts = list(tensors)
        if parts:
            flat = torch.cat([part.flatten() for part in parts])
            dist.all_reduce(flat)
            for part, total in zip(parts, torch.split(flat, [part.numel() for part in parts]), strict=True):
                part.copy_(total.view_as(part))

    def broadcast(self, tensors: Iterable[Tensor]) -> None:
        for tensor in tensors:
            if tensor.device == self.device:
                dist.broadcast(tensor, 0)
            else:  # as what an optimiser counts on the CPU
                moved = tensor.to(self.device)
                dist.broadcast(moved, 0)
                tensor.copy_(moved)

    def barrier(self) -> None:
        dist.barrier(device_ids=[self.device.index] if self.device.type == "cuda" else None)


class _Gather(torch.autograd.Function):
    """Shares of rows put together; the gradient of a share is its part of the whole one, which all processes have."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, parts: list[slice], rank: int) -> Tensor:
        ctx.own = parts[rank]
        sizes = [part.stop - part.start for part in parts]
        padded = own.new_zeros(max(sizes), *own.shape[1:])  # gloo gathers equal shapes only
        padded[: len(own)] = own
        gathered = [torch.empty_like(padded) for _ in parts]
        if len(padded):
            dist.all_gather(gathered, padded)
        return torch.cat([values[:size] for values, size in zip(gathered, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return gradients[0][ctx.own], None, None


def train(folder: Path, group: ProcessGroup) -> None:
    """This process's part of the job in ``folder``; rank 0 leaves the outcome there, and nobody goes before it has."""
    config, job = read_job(folder, group)
    outcome = fit(config, job)
    if group.rank == 0:
        write_outcome(folder, outcome)
    group.barrier()


def leave_together(store: Store, size: int) -> None:
    """Return when every process is through with its last collective call, so that all may close their connections.

    The barrier of gloo does not promise that: it lets one process go while another still waits for a message, and
    whoever sees its partner's connection close then fails or aborts, after the work is done. The store is torchrun's
    own process, which outlives all others, and is asked over a connection apart.
    """
    if store.add("agcd/through", 1) == size:
        store.set("agcd/all_through", "")
    store.wait(["agcd/all_through"], _LEAVE_TIMEOUT)


def main(argv: Sequence[str]) -> None:
    if UNTIL_CLOSED in argv:
        threading.Thread(target=_end_with_input, daemon=True).start()
    store, rank, size = next(rendezvous("env://"))
    folder = told_folder(store, [word for word in argv if word != UNTIL_CLOSED])
    try:
        device = begin_together(store, rank, size, folder)
        # Its own device makes NCCL connect at once, so that what keeps it from that shows before any work.
        own = device if device.type == "cuda" else None
        dist.init_process_group(backend_of(device), store=store, rank=rank, world_size=size, device_id=own)
        train(folder, TorchProcessGroup(device))
        leave_together(store, size)
        dist.destroy_process_group()  # but not after an error, where it might wait for processes that wait themselves
    except AgcdError as error:
        _end_with(error, folder)
    except OutOfMemory:
        share = "a process's share of a batch: take more processes, train.batch_size lower or train.precision bfloat16"
        _end_with(EngineError(f"The memory of {device} is too small for {share}."), folder)


def told_folder(store: Store, given: Sequence[str]) -> Path:
    """The folder of the job, by the command line or by a process that has it from there."""
    if given:
        store.set("agcd/folder", given[0])
    return Path(store.get("agcd/folder").decode())


def begin_together(store: Store, rank: int, size: int, folder: Path) -> torch.device:
    """This process's device. What keeps any of them from taking part is told to all, which would wait for it else."""
    device, problem = CPU, None
    try:
        device = own_device(folder)
    except AgcdError as error:
        problem = packed_error(error)
    except RuntimeError as error:  # a driver that is too old, a device that others have locked
        problem = packed_error(EngineError(f"{socket.gethostname()} cannot use its devices: {error}"))
    store.set(f"agcd/problem/{rank}", json.dumps(problem))
    for other in range(size):
        if told := json.loads(store.get(f"agcd/problem/{other}")):
            raise unpacked_error(told)
    return device


def own_device(folder: Path) -> torch.device:
    """Where this process computes its part of the job in ``folder``."""
    if not (folder / JOB).exists():
        raise StorageError(
            f"The machine {socket.gethostname()} does not see {folder}: put it on a disk that all share."
        )
    device = find_device(read_device(folder))
    check_devices(device, int(os.environ["LOCAL_WORLD_SIZE"]))
    return device


def check_devices(device: torch.device, n_processes: int) -> None:
    """Refuse what cannot train together: so many processes on this machine's devices of that kind."""
    n_devices = count_devices(device.type)
    if device.type != "cpu" and n_processes > n_devices:
        raise ConfigError(
            f"{n_processes} processes need a device each, and torch finds {n_devices} of {device.type} on "
            f"{socket.gethostname()}: take as many processes as that, or set device to cpu."
        )
    backend_of(device)


def backend_of(device: torch.device) -> str:
    """What sends tensors of the device; NCCL reads no other memory than that of GPUs."""
    if device.type == "cpu":
        return "gloo"
    if device.type != "cuda":
        raise ConfigError(f"Several processes train together on cuda or cpu, not on {device.type}: set device to cpu.")
    if not dist.is_nccl_available():
        raise ConfigError(
            "This torch has no NCCL, by which GPUs train together: take one process, or set device to cpu."
        )
    return "nccl"


def _end_with(error: AgcdError, folder: Path) -> NoReturn:
    if folder.exists():
        write_error(folder, error)
    sys.exit(str(error))


def _end_with_input() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
