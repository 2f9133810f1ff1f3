"""Epochs that survive a kill: after each one the whole state goes to disk, whole or not at all.

Every random draw of an epoch comes from a generator named by the epoch, so an epoch depends only on the state
it starts from. That makes a resumed run equal to an unbroken one, bit for bit, on one machine and thread count.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from agcd.errors import StorageError, TrainingError
from agcd.features.devices import in_memory
from agcd.io import atomic_write, digest, digest_bytes, storage_error
from agcd.rng import derive_seed
from agcd.run_files import LOG
from agcd.training.process_group import SINGLE_PROCESS, ProcessGroup

Log = Callable[[dict[str, Any]], None]
CHECKPOINT = "checkpoint.safetensors"
log = logging.getLogger("agcd")


class Resumable(Protocol):
    """Something that learns epoch by epoch and can put its whole state into tensors and JSON values."""

    def run_epoch(self, epoch: int) -> dict[str, Any]: ...
    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]: ...
    def restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None: ...


def run_epochs(
    resumable: Resumable,
    n_epochs: int,
    run_dir: Path | None,
    seed: int,
    echo: Log | None = None,
    group: ProcessGroup = SINGLE_PROCESS,
) -> None:
    """Train to ``n_epochs``, continuing from the last whole epoch that ``run_dir`` holds; without one, in memory.

    ``log.jsonl`` gets one line per epoch; ``echo`` sees the same line. In a process group rank 0 alone writes, and
    nobody begins an epoch before the one before it is on the disk.
    """
    first = _resume(resumable, run_dir, group) if run_dir else 0
    for epoch in range(first, n_epochs):
        try:
            facts = _run_epoch(resumable, epoch, seed)
        except TrainingError:
            if run_dir is None or epoch == 0 or group.size > 1:  # where only one of them failed, the others would wait
                raise
            # Once more from the last good epoch: whatever the disk or the memory did may be over.
            resumable.restore(*load_tensors(run_dir / CHECKPOINT))
            facts = _run_epoch(resumable, epoch, seed)
        if group.rank == 0:
            _record_epoch(resumable, run_dir, {"epoch": epoch, "n_epochs": n_epochs, **facts}, echo)
        group.barrier()


def _run_epoch(resumable: Resumable, epoch: int, seed: int) -> dict[str, Any]:
    """One epoch, whose numbers must be finite at its end."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "epoch", epoch))  # of every device
        facts = resumable.run_epoch(epoch)
    tensors, _ = resumable.state()
    # Looked at together: a device is asked, and waited for, once.
    device = next(iter(tensors.values())).device
    are_finite = torch.stack([tensor.isfinite().all().to(device) for tensor in tensors.values()])
    for name, is_finite in zip(tensors, in_memory(are_finite), strict=True):
        if not is_finite:
            raise not_finite(f"{name} after epoch {epoch + 1}")
    return facts


def not_finite(what: str) -> TrainingError:
    """What to say, and to do, where training has left the finite numbers."""
    return TrainingError(
        f"Training broke off, and no label is lost: not all numbers of {what} are finite. Lower train.lr; if that is "
        "as it always was, delete cache/features: they are computed again."
    )


def _record_epoch(resumable: Resumable, run_dir: Path | None, line: dict[str, Any], echo: Log | None) -> None:
    """The checkpoint comes last: an epoch whose checkpoint is missing runs again, and its line is dropped then."""
    if run_dir:
        try:
            with (run_dir / LOG).open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            raise storage_error(run_dir / LOG, error) from error
    if echo:
        echo(line)
    if run_dir:
        tensors, facts = resumable.state()
        save_tensors(run_dir / CHECKPOINT, tensors, {"epoch": line["epoch"], **facts})


def use_one_thread() -> None:
    """One thread for this process: sums then do not depend on how many processes share the machine."""
    torch.set_num_threads(1)


def _resume(resumable: Resumable, run_dir: Path, group: ProcessGroup) -> int:
    """Restore the state after the last whole epoch, the same one in every process; how many epochs that makes."""
    first = epochs_done(run_dir)
    agreed = torch.tensor(first).to(group.device)  # NCCL sends nothing from the memory of the CPU
    group.broadcast([agreed])
    if int(agreed) != first:
        raise StorageError(f"Processes see different states of {run_dir}: it must lie on a disk that all share.")
    if first:
        resumable.restore(*load_tensors(run_dir / CHECKPOINT))
    if group.rank == 0:
        continue_log(run_dir / LOG, first)
    return first


def epochs_done(run_dir: Path) -> int:
    """How many epochs the checkpoint of ``run_dir`` holds; a damaged one is dropped, and training starts again."""
    checkpoint = run_dir / CHECKPOINT
    if not checkpoint.exists():
        return 0
    try:
        return int(load_tensors(checkpoint)[1]["epoch"]) + 1
    except StorageError as error:
        log.warning("%s That round is trained from its start.", error)
        checkpoint.unlink(missing_ok=True)
        return 0


def save_tensors(path: Path, tensors: Mapping[str, Tensor | NDArray[Any]], facts: dict[str, Any]) -> None:
    """Tensors and their facts in one safetensors file, so that neither travels without the other."""
    whole = {name: torch.as_tensor(tensor).detach().cpu().contiguous() for name, tensor in tensors.items()}
    # In one entry: safetensors writes several in an order that changes from run to run.
    metadata = {"facts": json.dumps({**facts, "digest": _digest(whole, facts)})}
    # By our own hand: on a full disk save_file raises an error of its own kind.
    with atomic_write(path) as aside:
        aside.write_bytes(save(whole, metadata))


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What ``save_tensors`` stored, unchanged since; files of version 0.2 hold no digest."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            facts: dict[str, Any] = json.loads(file.metadata()["facts"])
        is_whole = facts.pop("digest", None) in (None, _digest(tensors, facts))
    except Exception as error:  # safetensors raises its own untyped errors for every kind of damage
        raise StorageError(f"{path} is damaged ({error}).") from error
    if not is_whole:
        raise StorageError(f"{path} is damaged (its numbers are not those that were stored).")
    return tensors, facts


def _digest(tensors: dict[str, Tensor], facts: dict[str, Any]) -> str:
    """Of the numbers by name, and of what is said about them."""
    each = [[name, digest_bytes(t.reshape(-1).view(torch.uint8).numpy().data)] for name, t in tensors.items()]
    return digest([sorted(each), facts])


def read_log(path: Path) -> list[dict[str, Any]]:
    """The lines of a JSON-lines log; one torn by a kill is left out."""
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            continue
    return lines


def continue_log(path: Path, first: int) -> None:
    """Drop what was logged after the last checkpoint: those epochs run again."""
    rewrite_log(path, [line for line in read_log(path) if line["epoch"] < first])


def rewrite_log(path: Path, lines: Sequence[dict[str, Any]]) -> None:
    """Replace a JSON-lines log, whole or not at all."""
    with atomic_write(path) as aside:
        aside.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
