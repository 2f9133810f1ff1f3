"""Tails against slow twins: timm's own blocks, a plain convolution, and the identity."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from agcd.features.cuts import cut
from agcd.features.fused import attend, clipped_mean
from agcd.features.tails import ClassTokenTail, ExactClassTokenTail, PointwiseConvTail, ResidualAdapter
from agcd.features.torchvision_compat import import_timm
from support.vits import random_vit, relative

import_timm()

VIT_S = {"embed_dim": 384, "num_heads": 6, "depth": 1, "patch_size": 16}
VIT_B = {"embed_dim": 768, "num_heads": 12, "depth": 1, "patch_size": 16}
DINOV2 = {
    "embed_dim": 384,
    "num_heads": 6,
    "depth": 1,
    "patch_size": 14,
    "reg_tokens": 4,
    "init_values": 1e-5,
    "no_embed_class": True,
}
SHAPES: dict[str, dict[str, Any]] = {
    "vit_s": VIT_S,
    "vit_b": VIT_B,
    "dinov2": DINOV2,
    "no_qkv_bias": {**VIT_S, "qkv_bias": False},
}


def random_tokens(model: Any, n: int = 2) -> Tensor:
    """Input (n, T, d) of the last block with uneven scale and a class token unlike the rest."""
    draw = torch.Generator().manual_seed(1)
    n_tokens = model.patch_embed.num_patches + model.num_prefix_tokens
    x = torch.randn(n, n_tokens, model.embed_dim, generator=draw) * 2 + 0.3
    x[:, 0] += 3
    return x


def packed(model: Any, x: Tensor) -> Tensor:
    x_hat = F.layer_norm(x, x.shape[-1:], eps=model.blocks[-1].norm1.eps)
    return torch.cat([x_hat, x[:, :1]], dim=1)


def gradients(module: nn.Module, features: Tensor) -> dict[str, Tensor]:
    weights = torch.randn(features.shape, generator=torch.Generator().manual_seed(2))
    module.zero_grad()
    (features * weights).sum().backward()  # type: ignore[no-untyped-call]
    return {name: p.grad for name, p in module.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("shape", SHAPES)
def test_exact_tail_has_the_values_and_every_gradient_of_the_plain_block(shape: str) -> None:
    model = random_vit(**SHAPES[shape])
    block, x = model.blocks[-1], random_tokens(model)
    tail = ExactClassTokenTail(block, model.norm)
    assert {n: p.shape for n, p in tail.block.named_parameters()} == {n: p.shape for n, p in block.named_parameters()}

    plain = model.norm(block(x))[:, 0]
    exact = tail(packed(model, x))
    assert relative(exact, plain) < 1e-5
    expected, found = gradients(block, plain), gradients(tail, exact)
    assert set(found) == {f"block.{name}" for name in expected}
    for name, gradient in expected.items():
        assert relative(found[f"block.{name}"], gradient) < 1e-5, name


def test_queries_keys_and_values_each_have_their_own_exact_gradient() -> None:
    model = random_vit(**VIT_S)
    block, x = model.blocks[-1], random_tokens(model)
    tail = ExactClassTokenTail(block, model.norm)
    expected = gradients(block, model.norm(block(x))[:, 0])["attn.qkv.weight"].view(3, -1)
    found = gradients(tail, tail(packed(model, x)))
    for part in range(3):
        assert relative(found["block.attn.qkv.weight"].view(3, -1)[part], expected[part]) < 1e-5
    assert found["block.attn.qkv.bias"].view(3, -1)[1].abs().max() == 0, "softmax drops the key bias"


def test_float16_tokens_change_features_by_less_than_a_thousandth() -> None:
    model = random_vit(**VIT_S)
    tail, tokens = ExactClassTokenTail(model.blocks[-1], model.norm), packed(model, random_tokens(model))
    with torch.no_grad():
        assert relative(tail(tokens.half()), tail(tokens)) < 1e-3


def test_exact_tail_does_not_depend_on_the_rest_of_the_batch() -> None:
    model = random_vit(embed_dim=32, num_heads=2, depth=1, img_size=32, patch_size=8)
    tail, tokens = ExactClassTokenTail(model.blocks[-1], model.norm), packed(model, random_tokens(model, n=9))
    with torch.no_grad():
        assert torch.allclose(tail(tokens)[4:6], tail(tokens[4:6]), atol=1e-6)
        assert tail(tokens[:0]).shape == (0, 32)


def test_only_the_final_norm_stays_frozen() -> None:
    model = random_vit(embed_dim=32, num_heads=2, depth=2, img_size=32, patch_size=8).requires_grad_(False)
    for blocks in (1, 2):
        frozen = {name for name, p in cut(model, blocks).tail.named_parameters() if not p.requires_grad}
        assert frozen == {"norm.weight", "norm.bias"}


def test_class_token_tail_equals_the_plain_block_with_qk_norm() -> None:
    model = random_vit(embed_dim=64, num_heads=4, depth=1, img_size=32, patch_size=8, qk_norm=True, init_values=0.1)
    block, x = model.blocks[-1], random_tokens(model)
    tail = ClassTokenTail(block, model.norm)
    plain, short = model.norm(block(x))[:, 0], tail(x)
    assert relative(short, plain) < 1e-5
    expected, found = gradients(block, plain), gradients(tail, short)
    for name, gradient in expected.items():
        if name not in ("attn.k_norm.bias", "attn.qkv.bias"):  # their key part is zero but for rounding
            assert relative(found[f"block.{name}"], gradient) < 1e-5, name
    assert (found["block.attn.qkv.bias"] - expected["attn.qkv.bias"]).abs().max() < 1e-4


@pytest.mark.parametrize("act", [nn.ReLU6(inplace=True), nn.ReLU(), nn.SiLU()], ids=lambda act: type(act).__name__)
def test_pointwise_tail_equals_convolution_frozen_norm_activation_and_mean(act: nn.Module) -> None:
    draw = torch.Generator().manual_seed(3)
    conv, norm = nn.Conv2d(16, 24, 1, bias=False), nn.BatchNorm2d(24, eps=1e-3).eval()
    with torch.no_grad():
        for tensor in (conv.weight, norm.weight, norm.bias, norm.running_mean):
            assert tensor is not None
            tensor.copy_(torch.randn(tensor.shape, generator=draw) * 1.5)
        assert norm.running_var is not None
        norm.running_var.uniform_(0.5, 2, generator=draw)
    images = torch.randn(11, 16, 5, 5, generator=draw)
    tail = PointwiseConvTail(conv, norm, act)
    plain = act(norm(conv(images))).mean((2, 3))
    quick = tail(images.flatten(2).transpose(1, 2))
    assert relative(quick, plain) < 1e-5
    found, twin = gradients(tail, quick), gradients(nn.Sequential(conv, norm), plain)
    for mine, theirs in (("weight", "0.weight"), ("norm_weight", "1.weight"), ("norm_bias", "1.bias")):
        assert relative(found[mine], twin[theirs].flatten(1) if mine == "weight" else twin[theirs]) < 1e-5, mine


def test_pointwise_tail_never_changes_its_running_statistics() -> None:
    tail = PointwiseConvTail(nn.Conv2d(4, 6, 1, bias=False), nn.BatchNorm2d(6), nn.ReLU6())
    before = {name: value.clone() for name, value in tail.named_buffers()}
    tail.train()(torch.randn(8, 9, 4, generator=torch.Generator().manual_seed(0)))
    assert all(torch.equal(value, before[name]) for name, value in tail.named_buffers())


def test_adapter_starts_as_the_identity_and_every_new_one_is_equal() -> None:
    x = torch.randn(5, 12, generator=torch.Generator().manual_seed(0))
    first, second = ResidualAdapter(12, dropout=0.3), ResidualAdapter(12, dropout=0.3)
    assert torch.equal(first.eval()(x), x)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_adapter_shakes_its_input_in_training_only_with_the_variance_of_dropout() -> None:
    x = torch.ones(40, 200)
    adapter = ResidualAdapter(200, dropout=0.2)
    shaken = adapter.train()(x)
    assert float(shaken.detach().mean()) == pytest.approx(1, abs=0.05)
    assert float(shaken.detach().var()) == pytest.approx(0.2 / 0.8, rel=0.1)
    assert torch.equal(adapter.eval()(x), x)


@pytest.mark.parametrize("n", [1, 7, 40])
def test_attend_in_pieces_equals_the_plain_product(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agcd.features.fused._PIECE_BYTES", 3 * 4 * 6 * 8)
    draw = torch.Generator().manual_seed(n)
    u = torch.randn(n, 2, 8, generator=draw, requires_grad=True)
    x = torch.randn(n, 6, 8, generator=draw)
    out = attend(u, x)
    plain = torch.bmm(torch.bmm(u, x.transpose(1, 2)).softmax(-1), x)
    assert torch.allclose(out, plain, atol=1e-6)
    found, expected = (torch.autograd.grad(y.square().sum(), u)[0] for y in (out, plain))
    assert torch.allclose(found, expected, atol=1e-5)


def test_fused_products_have_the_gradients_of_finite_differences() -> None:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(3, 5, 4, generator=draw)
    weight = torch.randn(6, 4, generator=draw, requires_grad=True)
    bias = torch.randn(6, generator=draw, requires_grad=True)
    direction = torch.randn(6, 4, generator=draw)
    (gradient,) = torch.autograd.grad(clipped_mean(x, weight, bias, 6.0).sum(), weight)
    with torch.no_grad():
        step = 1e-3
        up = clipped_mean(x, weight + step * direction, bias, 6.0).sum()
        down = clipped_mean(x, weight - step * direction, bias, 6.0).sum()
    assert float((gradient * direction).sum()) == pytest.approx(float(up - down) / (2 * step), rel=2e-2)


def test_exact_tail_exports_with_a_free_batch_size() -> None:
    model = random_vit(embed_dim=32, num_heads=2, depth=1, img_size=32, patch_size=8)
    tail, tokens = ExactClassTokenTail(model.blocks[-1], model.norm).eval(), packed(model, random_tokens(model, n=5))
    exported = torch.export.export(tail, (tokens[:2],), dynamic_shapes=({0: torch.export.Dim("n")},))
    with torch.no_grad():
        assert torch.allclose(exported.module()(tokens), tail(tokens), atol=1e-6)
