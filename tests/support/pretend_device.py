"""A device that computes on the CPU and behaves like a GPU, so that what a GPU would refuse fails where there is none.

It is registered with torch on import, under the name "pretend", and there within ``pretend_device()``. Its tensors hold
others on the CPU. What mixes both is refused, as are ``.numpy()`` and results written over a tensor of another place;
copies and whatever makes the caller wait are counted; a copy begun on another stream may not be read before the stream
that reads it has waited; and results beyond ``TRAFFIC.limits`` raise what a full memory raises.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing

from agcd.features import products

NAME = "pretend"
_MAY_MIX = {"aten::_to_copy", "aten::copy_"}
_WAITS = {"aten::_local_scalar_dense", "aten::nonzero", "aten::equal", "aten::is_nonzero", "aten::masked_select"}
_INDEXED = {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_", "aten::_unsafe_index_put"}


@dataclass
class Traffic:
    """What went between the device and the rest since it was last set back."""

    to_device: int = 0
    to_cpu: int = 0
    waits: int = 0
    limits: dict[str, int] = field(default_factory=dict)
    """Bytes that the result of an operation may have, by the operation's name."""
    free: int = 2**40
    """What the device says of its memory."""
    n_devices: int = 2
    stream: int = 0
    pending: dict[int, list[weakref.ref[Tensor]]] = field(default_factory=dict)
    """Tensors that were copied on each stream and for which nobody has waited."""

    def forget(self) -> None:
        self.to_device = self.to_cpu = self.waits = 0


TRAFFIC = Traffic()


class Pretend(torch.Tensor):
    """A tensor of one of the devices; ``held`` is one on the CPU with its numbers."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor, device: torch.device) -> Pretend:
        made: Pretend = torch.Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=device,
        )
        return made

    def __init__(self, held: Tensor, device: torch.device) -> None:
        self.held = held

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"Pretend({self.held!r})"

    def numpy(self, *, force: bool = False) -> Any:
        raise TypeError(f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() first.")

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _run(func, args, kwargs or {})


class _Mode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees what makes tensors on the device, or copies to it, while no argument is there yet."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        target = kwargs.get("device")
        is_ours = target is not None and torch.device(target).type == NAME
        if is_ours or any(isinstance(leaf, Pretend) for leaf in pytree.tree_leaves((args, kwargs))):
            return _run(func, args, kwargs)
        return func(*args, **kwargs)


def _run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    leaves = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    ours = [leaf for leaf in leaves if isinstance(leaf, Pretend)]
    name, target = func._schema.name, kwargs.get("device")
    target = ours[0].device if target is None else torch.device(target)
    to = target.type
    _check_arrived(ours)
    _count(name, to, bool(ours), args)
    _check_one_place(func, name, leaves, ours, kwargs.get("out"))
    if name == "aten::copy_":
        _held(args[0]).copy_(_held(args[1]))
        return args[0]
    found = func(*pytree.tree_map(_held, args), **_on_cpu(pytree.tree_map(_held, kwargs)))
    if to != NAME:
        return found
    place = torch.device(NAME, target.index or 0)
    found = pytree.tree_map(lambda leaf: _placed(leaf, name, place) if isinstance(leaf, Tensor) else leaf, found)
    return return_and_correct_aliasing(func, args, kwargs, found) if ours else found  # type: ignore[no-untyped-call]


def _held(leaf: Any) -> Any:
    return leaf.held if isinstance(leaf, Pretend) else leaf


def _on_cpu(kwargs: dict[str, Any]) -> dict[str, Any]:
    if kwargs.get("device") is not None:
        kwargs = kwargs | {"device": torch.device("cpu")}
    return kwargs | ({"pin_memory": False} if kwargs.get("pin_memory") else {})


def _placed(found: Tensor, name: str, place: torch.device) -> Pretend:
    n_bytes = found.numel() * found.element_size()
    if n_bytes > TRAFFIC.limits.get(name, n_bytes):
        raise torch.OutOfMemoryError(f"{place} is out of memory: {n_bytes} bytes were asked for by {name}")
    with torch.inference_mode(False):  # what is made in that mode may be no view of what was not
        placed = Pretend(found, place)
    if TRAFFIC.stream and name == "aten::_to_copy":
        TRAFFIC.pending.setdefault(TRAFFIC.stream, []).append(weakref.ref(placed))
    return placed


def _check_arrived(ours: list[Pretend]) -> None:
    for stream, waiting in TRAFFIC.pending.items():
        if stream != TRAFFIC.stream and any(one is leaf() for one in ours for leaf in waiting):
            raise RuntimeError("a tensor is read whose copy on another stream nobody has waited for")


def _count(name: str, to: str | None, has_ours: bool, args: Any) -> None:
    if name == "aten::_to_copy":
        TRAFFIC.to_cpu += to == "cpu" and has_ours
        TRAFFIC.to_device += to == NAME and not has_ours
    elif name == "aten::copy_":
        TRAFFIC.to_cpu += isinstance(args[1], Pretend) and not isinstance(args[0], Pretend)
        TRAFFIC.to_device += isinstance(args[0], Pretend) and not isinstance(args[1], Pretend)
    elif name in _WAITS:
        TRAFFIC.waits += has_ours
    elif name in _INDEXED:  # how many a mask lets through must be known before there is a place for them
        places = [place for place in args[1] if isinstance(place, Tensor)]
        TRAFFIC.waits += any(isinstance(place, Pretend) and place.dtype == torch.bool for place in places)


def _check_one_place(func: Any, name: str, leaves: list[Tensor], ours: list[Pretend], out: Any) -> None:
    if not ours or name in _MAY_MIX:
        return
    for leaf in leaves:
        # A number in a tensor of its own may lie on the CPU; positions may as well, and are copied, which is refused.
        is_number = leaf.device.type == "cpu" and leaf.dim() == 0 and leaf is not out
        if leaf.device != ours[0].device and not is_number:
            raise RuntimeError(f"{func}: expected all tensors on one device, found {ours[0].device} and {leaf.device}!")


class _Stream:
    _last = 0

    def __init__(self, device: Any = None, number: int | None = None) -> None:
        if number is None:
            _Stream._last += 1
        self.number = _Stream._last if number is None else number

    def wait_stream(self, other: _Stream) -> None:
        TRAFFIC.pending.pop(other.number, None)


class _Module:
    """``torch.pretend``."""

    Stream = _Stream

    def is_initialized(self) -> bool:
        return True

    def is_available(self) -> bool:
        return True

    def current_device(self) -> int:
        return 0

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        """Its numbers are drawn by the generator of the CPU."""

    def device_count(self) -> int:
        return TRAFFIC.n_devices

    def mem_get_info(self, device: Any) -> tuple[int, int]:
        return TRAFFIC.free, 2**40

    def current_stream(self, device: Any) -> _Stream:
        return _Stream(number=TRAFFIC.stream)

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16]

    @contextmanager
    def stream(self, stream: _Stream) -> Iterator[None]:
        before, TRAFFIC.stream = TRAFFIC.stream, stream.number
        try:
            yield
        finally:
            TRAFFIC.stream = before


backend_registration._setup_privateuseone_for_python_backend(NAME, backend_module=_Module())
Pretend.record_stream = lambda self, stream: None  # type: ignore[method-assign, assignment]
DEVICE = torch.device(NAME, 0)


@contextmanager
def pretend_device() -> Iterator[Traffic]:
    """The device, for this thread and those that it starts, with nothing counted yet and no limit.

    Products are those of one library on both sides meanwhile, so that results can be equal.
    """
    TRAFFIC.__init__()  # type: ignore[misc]
    run = threading.Thread.run

    def run_there(thread: threading.Thread) -> None:
        with _Mode():  # type: ignore[no-untyped-call]
            run(thread)

    one_library = patch.object(products, "_HAS_ONE_DNN", False)
    with _Mode(), patch.object(threading.Thread, "run", run_there), one_library:  # type: ignore[no-untyped-call]
        yield TRAFFIC


def counted(work: Callable[[], object]) -> Traffic:
    """What went to and fro while ``work`` was done."""
    TRAFFIC.forget()
    work()
    return Traffic(TRAFFIC.to_device, TRAFFIC.to_cpu, TRAFFIC.waits)
