"""Networks as ONNX graphs: from crops as they are decoded to the numbers behind them."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

OPSET = 18
_PACKAGES = ("onnx", "onnxruntime", "onnxscript")


def has_onnx() -> bool:
    """Whether all is installed that writes and runs ONNX graphs."""
    return all(find_spec(name) is not None for name in _PACKAGES)


def to_onnx(module: nn.Module, example: Tensor, input_name: str, output_names: Sequence[str] | None = None) -> Any:
    """The graph of a module that takes inputs like the ``example`` of two, any number of them."""
    with _quiet():
        program = torch.export.export(module, (example,), dynamic_shapes=({0: torch.export.Dim("n")},), strict=False)
        exported = torch.onnx.export(
            program,
            input_names=[input_name],
            output_names=output_names,
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    assert exported is not None
    return exported.model_proto


def one_core_session(graph: bytes) -> Callable[[NDArray[np.uint8]], Tensor]:
    """A pass through onnxruntime on the core of the caller, whose only input is the crops."""
    runtime = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    (crops_input,) = session.get_inputs()
    return lambda crops: torch.from_numpy(session.run(None, {crops_input.name: crops})[0])


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep to ourselves what the exporters say about themselves and no user can change."""
    optimiser = logging.getLogger("onnxscript")  # it lists every operator that it did not simplify
    level = optimiser.level
    optimiser.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            # torch copies an object of its own whose class it has deprecated
            warnings.filterwarnings("ignore", r"`isinstance\(treespec, LeafSpec\)` is deprecated", FutureWarning)
            yield
    finally:
        optimiser.setLevel(level)
