"""Trainable tails: what stands between the cached input of a frozen prefix and the features.

Every tail maps ``read()`` output of shape (n, tokens, width) or (n, dim), float16 or float32, to float32 features
of shape (n, dim). Cached input never needs a gradient. A tail that ends in a norm of the backbone keeps that norm
frozen, as the method trains nothing behind the last block.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from agcd.features.fused import attend, clipped_mean
from agcd.features.products import Linear, linear, with_our_products

ADAPTER_SEED = 20240229
"""A constant, so that every ``new_tail`` of every process starts from the same weights."""


class ExactClassTokenTail(nn.Module):
    """The last transformer block for its class token alone, without forming the other keys and values.

    The score of token t is q·(W_k(γ⊙x̂_t + β) + b_k) = u·x̂_t + constant with u = γ⊙(W_kᵀq), and softmax drops
    the constant; likewise Σ_t a_t W_v(γ⊙x̂_t + β) + b_v = W_v(γ⊙Σ_t a_t x̂_t + β) + b_v. So x̂ is read by two
    small products per head and never projected. Values and gradients are those of the plain block.

    Parameters
    ----------
    block : a timm ``Block`` with LayerNorm, without q/k norm, gate or rotary positions (see ``is_exact``)
    final_norm : the backbone's last norm, kept frozen
    """

    def __init__(self, block: nn.Module, final_norm: nn.Module) -> None:
        super().__init__()
        self.block: Any = with_our_products(deepcopy(block))
        self.norm = deepcopy(final_norm).requires_grad_(False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (n, T + 1, d), the last row holding the raw class token x₀, to features (n, d)."""
        x_hat, x = tokens[:, :-1], tokens[:, -1].float()
        block = self.block
        x = x + block.ls1(self._attend(x_hat))
        x = x + block.ls2(block.mlp(block.norm2(x)))
        return self._features(x)

    def _attend(self, x_hat: Tensor) -> Tensor:
        """Attention output (n, d) of the class token; x_hat (n, T, d) is normalised without affine part."""
        norm, attn = self.block.norm1, self.block.attn
        heads, size, width = attn.num_heads, attn.head_dim, x_hat.shape[2]
        w_q, w_k, w_v = attn.qkv.weight.view(3, heads * size, width)
        b_q, _, b_v = (None, None, None) if attn.qkv.bias is None else attn.qkv.bias.view(3, heads * size)
        q = linear(norm.weight * x_hat[:, 0].float() + norm.bias, w_q, b_q) * attn.scale
        # γ goes into the weights, which are smaller than the n × heads × d numbers they act on
        u = torch.bmm(q.view(-1, heads, size).transpose(0, 1), (w_k * norm.weight).view(heads, size, width))
        mix = attend(u.transpose(0, 1), x_hat)
        values = torch.bmm(mix.transpose(0, 1), (w_v * norm.weight).view(heads, size, width).transpose(1, 2))
        out = values.transpose(0, 1).flatten(1) + F.linear(norm.bias, w_v, b_v)
        projected: Tensor = attn.proj(attn.norm(out))
        return projected

    def _features(self, x: Tensor) -> Tensor:
        features: Tensor = self.norm(x)
        return features


class ClassTokenTail(nn.Module):
    """The last block for its class token alone, with keys and values formed: for blocks with q/k norm."""

    def __init__(self, block: nn.Module, final_norm: nn.Module) -> None:
        super().__init__()
        self.block: Any = with_our_products(deepcopy(block))
        self.norm = deepcopy(final_norm).requires_grad_(False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (n, T, d) as they enter the block to features (n, d)."""
        block, tokens = self.block, tokens.float()
        x = tokens[:, 0]
        x = x + block.ls1(self._attend(block.norm1(tokens)))
        x = x + block.ls2(block.mlp(block.norm2(x)))
        features: Tensor = self.norm(x)
        return features

    def _attend(self, y: Tensor) -> Tensor:
        attn, n, n_tokens = self.block.attn, *y.shape[:2]
        split = attn.num_heads * attn.head_dim
        bias = (None, None) if attn.qkv.bias is None else attn.qkv.bias.split([split, 2 * split])
        w_q, w_kv = attn.qkv.weight.split([split, 2 * split])
        q = linear(y[:, :1], w_q, bias[0]).view(n, 1, attn.num_heads, attn.head_dim).transpose(1, 2)
        kv = linear(y, w_kv, bias[1]).view(n, n_tokens, 2, attn.num_heads, attn.head_dim)
        k, v = kv.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(attn.q_norm(q), attn.k_norm(k), v, scale=attn.scale)
        projected: Tensor = attn.proj(attn.norm(mixed.transpose(1, 2).reshape(n, split)))
        return projected


class BlocksTail(nn.Module):
    """Plain blocks from their cached input, then the backbone's own norm and pooling, both frozen."""

    def __init__(self, blocks: nn.Module, norm: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.blocks = with_our_products(deepcopy(blocks))
        self.norm = deepcopy(norm).requires_grad_(False)
        self.head = deepcopy(head).requires_grad_(False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (n, T, d) as they enter the first trainable block to features (n, dim)."""
        features: Tensor = self.head(self.norm(self.blocks(tokens.float())))
        return features


class PointwiseConvTail(nn.Module):
    """The last 1×1 convolution with its norm, activation and global mean, on the map before it.

    The norm keeps its running statistics, so it is a scale and a shift per channel; both go into the weights
    (a small matrix) instead of the map. Convolution weight and norm affine are trained.
    """

    def __init__(self, conv: nn.Conv2d, norm: Any, act: nn.Module) -> None:
        super().__init__()
        self.weight = nn.Parameter(conv.weight.detach().flatten(1).clone())
        self.norm_weight = nn.Parameter(norm.weight.detach().clone())
        self.norm_bias = nn.Parameter(norm.bias.detach().clone())
        self.mean: Tensor
        self.rstd: Tensor
        self.register_buffer("mean", norm.running_mean.detach().clone())
        self.register_buffer("rstd", (norm.running_var.detach() + norm.eps).rsqrt())
        self.act = deepcopy(act)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map (n, height·width, channels) to features (n, dim)."""
        scale = self.norm_weight * self.rstd
        weight, bias = self.weight * scale[:, None], self.norm_bias - self.mean * scale
        top = _clipped_at(self.act)
        if top is not None:
            return clipped_mean(tokens, weight, bias, top)
        features: Tensor = self.act(linear(tokens.float(), weight, bias)).mean(1)
        return features


class ResidualAdapter(nn.Module):
    """h = x + W₂·GELU(W₁·x) on given embeddings; W₂ starts at zero, so it starts as the identity.

    In training every input number is multiplied by 1 + Gaussian noise with the variance of dropout at that rate
    (Srivastava et al. 2014, section 10): it is what makes two views of one embedding differ. Plain dropout can
    take all that a short embedding has, and the gradient of normalising what is left has no bound.
    """

    def __init__(self, dim: int, *, dropout: float = 0.0, hidden: int | None = None) -> None:
        super().__init__()
        hidden = hidden or max(1, dim // 2)
        self.noise = (dropout / (1 - dropout)) ** 0.5
        self.draw: Callable[[Tensor], Tensor] = torch.randn_like
        """Standard normal numbers in the shape of an input; processes that share a batch share one draw as well."""
        self.fc1 = Linear(dim, hidden)
        self.fc2 = Linear(hidden, dim)
        draw = torch.Generator().manual_seed(ADAPTER_SEED)
        nn.init.trunc_normal_(self.fc1.weight, std=dim**-0.5, generator=draw)
        for zeroed in (self.fc1.bias, self.fc2.weight, self.fc2.bias):
            nn.init.zeros_(zeroed)

    def forward(self, x: Tensor) -> Tensor:
        """Embeddings (n, dim) to features (n, dim)."""
        x = x.float()
        if self.training and self.noise:
            x = x * (1 + self.noise * self.draw(x))
        adapted: Tensor = x + self.fc2(F.gelu(self.fc1(x)))
        return adapted


def _clipped_at(act: nn.Module) -> float | None:
    """The upper bound of a rectifier, infinite for ReLU; None for other activations."""
    if isinstance(act, nn.ReLU6):
        return 6.0
    return float("inf") if isinstance(act, nn.ReLU) else None
