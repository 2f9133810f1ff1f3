"""Products with the weights of linear layers, by whichever library of torch's is fast on this processor.

For float32 torch calls MKL, which on processors that are not Intel's leaves half of what they can do; oneDNN does not,
and where MKL is fast it is as fast. Nothing in torch's own settings chooses between them for float32.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``F.linear``: x (…, d), weight (o, d), bias (o,) or None to (…, o)."""
    if not _is_ours(x, weight):
        return F.linear(x, weight, bias)
    found: Tensor = _Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return found


def product(a: Tensor, b: Tensor) -> Tensor:
    """a (n, d) times the transpose of b (o, d), without gradient; either may be a transposed view."""
    if not _is_ours(a, b):
        return a @ b.t()
    return _one_dnn(a, b, None)


class Linear(nn.Linear):
    """torch's linear layer, with products of its own."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


def with_our_products(module: nn.Module) -> nn.Module:
    """The module, in which every plain linear layer has become one of ours."""
    for layer in module.modules():
        if type(layer) is nn.Linear:
            layer.__class__ = Linear
    return module


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _one_dnn(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        wants_x, wants_weight, wants_bias = ctx.needs_input_grad
        rows = grad.flatten(0, -2)
        return (
            product(rows, weight.t()).view_as(x) if wants_x else None,
            product(rows.t(), x.flatten(0, -2).t()) if wants_weight else None,
            rows.sum(0) if wants_bias else None,
        )


def _is_ours(x: Tensor, weight: Tensor) -> bool:
    """Whether oneDNN takes them: float32 in the memory of the CPU, outside of graphs that torch makes itself."""
    return (
        _HAS_ONE_DNN
        and x.device.type == "cpu"
        and x.dtype == weight.dtype == torch.float32
        and x.dim() > 1
        and x.numel() > 0
        and weight.numel() > 0
        and not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled("cpu")
    )


def _find_one_dnn() -> bool:
    """Whether this build of torch has the operator, which its compiler calls for linear layers."""
    has_one_dnn: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return has_one_dnn and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def _one_dnn(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    found: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return found


_HAS_ONE_DNN = _find_one_dnn()
