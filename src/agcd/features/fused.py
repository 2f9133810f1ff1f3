"""Two products over cached tokens, taken in pieces that stay in the processor's cache.

Both read float16 or float32 tokens that need no gradient. Widening float16 piece by piece reads half the bytes
and touches no fresh memory; done for a whole batch it costs more than the products themselves. For
``torch.export`` and ``torch.compile`` the same arithmetic is written plainly, so that graphs hold ordinary operators;
under autocast too, which then chooses the precision of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from agcd.features.products import linear, product

_PIECE_BYTES = 1_250_000
"""Float32 tokens per thread and piece: a share of an L2 cache; 2 to 4 images was fastest for widths 384 and 768."""
_MAP_IMAGES = 8
"""Images per piece of a convolution's map; fixed, so that sums do not depend on the number of threads."""


def attend(u: Tensor, x: Tensor) -> Tensor:
    """softmax(u·xᵀ)·x per image: u (n, heads, d) and tokens x (n, T, d) to (n, heads, d)."""
    if _is_plain(x):
        x = x.to(u.dtype)
        return torch.bmm(torch.bmm(u, x.transpose(1, 2)).softmax(-1), x)
    mixed: Tensor = _Attend.apply(u, x)  # type: ignore[no-untyped-call]
    return mixed


def clipped_mean(x: Tensor, weight: Tensor, bias: Tensor, top: float) -> Tensor:
    """Mean over places of clamp(x·weightᵀ + bias, 0, top): x (n, places, c), weight (o, c) to (n, o)."""
    if _is_plain(x):
        return F.linear(x.to(weight.dtype), weight, bias).clamp(0.0, top).mean(1, dtype=torch.float32)
    mean: Tensor = _ClippedMean.apply(x, weight, bias, top)  # type: ignore[no-untyped-call]
    return mean


def _is_plain(x: Tensor) -> bool:
    return torch.compiler.is_compiling() or torch.is_autocast_enabled(x.device.type)


def _pieces(x: Tensor, images: int) -> Iterator[tuple[slice, Tensor]]:
    """Slices of the batch with their tokens as contiguous float32; one buffer serves all."""
    if x.device.type != "cpu":
        images = len(x)
    buffer = x.new_empty((min(images, len(x)), *x.shape[1:]), dtype=torch.float32)
    for start in range(0, len(x), max(images, 1)):
        part = slice(start, min(start + images, len(x)))
        yield part, buffer[: part.stop - start].copy_(x[part])


def _images_per_piece(x: Tensor) -> int:
    return max(1, _PIECE_BYTES * torch.get_num_threads() // (4 * x.shape[1:].numel()))


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, x: Tensor) -> Tensor:
        weights = u.new_empty((*u.shape[:2], x.shape[1]))
        mix = torch.empty_like(u, memory_format=torch.contiguous_format)
        for part, tokens in _pieces(x, _images_per_piece(x)):
            scores = torch.bmm(u[part], tokens.transpose(1, 2))
            torch.softmax(scores, -1, out=weights[part])
            torch.bmm(weights[part], tokens, out=mix[part])
        ctx.save_for_backward(weights, x)
        return mix

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        weights, x = ctx.saved_tensors
        grad_u = torch.empty_like(grad, memory_format=torch.contiguous_format)
        for part, tokens in _pieces(x, _images_per_piece(x)):
            grad_weights = torch.bmm(grad[part], tokens.transpose(1, 2))
            grad_scores = torch._softmax_backward_data(grad_weights, weights[part], -1, torch.float32)
            torch.bmm(grad_scores, tokens, out=grad_u[part])
        return grad_u, None


class _ClippedMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, top: float) -> Tensor:
        n, places, channels = x.shape
        inside = torch.empty((n, places, len(weight)), dtype=torch.bool, device=x.device)
        out = weight.new_empty((n, len(weight)))
        for part, tokens in _pieces(x, _MAP_IMAGES):
            value = linear(tokens.view(-1, channels), weight, bias).view(-1, places, len(weight))
            clipped = value.clamp(0, top)
            if ctx.needs_input_grad[1]:
                torch.eq(value, clipped, out=inside[part])
            torch.mean(clipped, 1, out=out[part])
        ctx.save_for_backward(x, inside)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, Tensor, None]:
        x, inside = ctx.saved_tensors
        _, places, channels = x.shape
        grad = grad / places
        grad_weight, grad_bias = grad.new_zeros((grad.shape[1], channels)), grad.new_zeros(grad.shape[1])
        for part, tokens in _pieces(x, _MAP_IMAGES):
            value = (inside[part] * grad[part, None]).view(-1, grad.shape[1])
            grad_weight += product(value.t(), tokens.view(-1, channels).t())
            grad_bias += value.sum(0)
        return None, grad_weight, grad_bias, None
