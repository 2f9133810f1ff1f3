"""Where a network is cut: a frozen prefix whose output is cached, and the trainable tail behind it.

Four ways, from the cheapest tail to the most general: the exact class-token tail, the class-token tail, plain
blocks, and an adapter on pooled features; convolutional networks with a last 1×1 convolution have their own.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.fusion import fuse_conv_bn_eval

from agcd.errors import ConfigError
from agcd.features.tails import BlocksTail, ClassTokenTail, ExactClassTokenTail, PointwiseConvTail, ResidualAdapter

_MERGE_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Cut:
    """``prefix``: normalised images (n, 3, size, size) to cached input; ``tail``: cached input to features."""

    prefix: nn.Module
    tail: nn.Module
    path: str


def cut(model: nn.Module, trainable_blocks: int, image_size: int | None = None) -> Cut:
    """Cut a timm model built without classifier, in evaluation mode; a known ``image_size`` makes it faster.

    Without trainable blocks the whole network is the prefix, and an adapter on its pooled features is trained.
    """
    from timm.models.efficientnet import EfficientNet
    from timm.models.eva import Eva
    from timm.models.vision_transformer import VisionTransformer

    if trainable_blocks == 0:
        return _cut_pooled(model, image_size)
    if type(model) is Eva and not model.rope_mixed and image_size is not None:
        return _cut_rotary(model, trainable_blocks, image_size)
    if type(model) is VisionTransformer:
        return _cut_transformer(model, trainable_blocks)
    if type(model) is EfficientNet and _ends_in_pointwise(model):
        return _cut_convolutional(model, image_size)
    return _cut_pooled(model, image_size)


@torch.no_grad()
def cut_any(model: nn.Module, trainable_blocks: int, image_size: int) -> Cut:
    """As ``cut`` where the model is built like timm's; any other network is the prefix, an adapter is trained."""
    if hasattr(model, "forward_features") and hasattr(model, "forward_head"):
        return cut(model, trainable_blocks, image_size)
    shape = model(torch.zeros(1, 3, image_size, image_size)).shape
    if len(shape) != 2:
        raise ConfigError(f"The backbone gives features of shape {tuple(shape)} for one image; (1, d) is expected.")
    return Cut(model, ResidualAdapter(int(shape[1])), "a network from outside, residual adapter")


def _first_trainable(model: Any, trainable_blocks: int) -> int:
    if trainable_blocks > len(model.blocks):
        raise ConfigError(
            f"Setting 'backbone.trainable_blocks' is {trainable_blocks}: the model has {len(model.blocks)} blocks."
        )
    return len(model.blocks) - trainable_blocks


def _cut_transformer(model: Any, trainable_blocks: int) -> Cut:
    first = _first_trainable(model, trainable_blocks)
    block = model.blocks[-1]
    if trainable_blocks == 1 and _reads_class_token(model) and _is_plain(block):
        if _is_exact(block):
            tail: nn.Module = _trainable(ExactClassTokenTail(block, model.norm))
            return Cut(_Tokens(model, first, block.norm1.eps), tail, "one trainable block, exact class-token tail")
        tail = _trainable(ClassTokenTail(block, model.norm))
        return Cut(_Tokens(model, first), tail, "one trainable block, class-token tail (q/k norm or another norm)")
    tail = _trainable(BlocksTail(model.blocks[first:], model.norm, _Head(model)))
    return Cut(_Tokens(model, first), tail, f"{trainable_blocks} trainable block(s), evaluated in full")


def _reads_class_token(model: Any) -> bool:
    """Only the class token leaves the last block, and nothing but ``norm`` touches it afterwards."""
    return bool(
        model.global_pool == "token"
        and model.has_class_token
        and model.attn_pool is None
        and isinstance(model.fc_norm, nn.Identity)
    )


def _is_plain(block: Any) -> bool:
    """timm's standard block and attention, whose parts the class-token tails use by name."""
    from timm.layers.attention import Attention
    from timm.models.vision_transformer import Block

    gate = getattr(block.attn, "gate", None)  # timm before 1.0.28 knows none
    return type(block) is Block and type(block.attn) is Attention and gate is None


def _is_exact(block: Any) -> bool:
    attn, norm = block.attn, block.norm1
    without_qk_norm = isinstance(attn.q_norm, nn.Identity) and isinstance(attn.k_norm, nn.Identity)
    return without_qk_norm and isinstance(norm, nn.LayerNorm) and norm.weight is not None and norm.bias is not None


def _trainable(tail: nn.Module) -> nn.Module:
    """The copied parameters train again, but for what the tail keeps frozen (norm and head behind the blocks)."""
    for name, parameter in tail.named_parameters():
        parameter.requires_grad_(name.partition(".")[0] not in ("norm", "head"))
    return tail


class _Tokens(nn.Module):
    """Everything before the trainable blocks.

    Given ``eps``, tokens (n, T, d) leave normalised without affine part, and the raw class token follows as row
    T: the input of ``ExactClassTokenTail``.
    """

    def __init__(self, model: Any, n_blocks: int, eps: float | None = None) -> None:
        super().__init__()
        self.model = model
        self.n_blocks = n_blocks
        self.eps = eps

    def forward(self, images: Tensor) -> Tensor:
        model = self.model
        x: Tensor = model.norm_pre(model.patch_drop(model._pos_embed(model.patch_embed(images))))
        for block in model.blocks[: self.n_blocks]:
            x = block(x)
        if self.eps is None:
            return x
        return torch.cat([F.layer_norm(x, x.shape[-1:], eps=self.eps), x[:, :1]], dim=1)


class _Head(nn.Module):
    """timm's pooling of tokens that went through the final norm, with what belongs to it and nothing more."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.attn_pool, self.fc_norm = model.attn_pool, model.fc_norm
        self.kind, self.n_prefix = model.global_pool, model.num_prefix_tokens
        self.include_prefix = getattr(model, "pool_include_prefix", model.attn_pool is not None)

    def forward(self, x: Tensor) -> Tensor:
        from timm.models.vision_transformer import global_pool_nlc

        if self.attn_pool is not None:
            pooled = self.attn_pool(x if self.include_prefix else x[:, self.n_prefix :])
        else:
            pooled = global_pool_nlc(x, self.kind, self.n_prefix, self.include_prefix)
        features: Tensor = self.fc_norm(pooled)
        return features


def _cut_rotary(model: Any, trainable_blocks: int, image_size: int) -> Cut:
    """Transformers whose blocks need rotary positions (DINOv3, EVA-02): these are constant for one image size."""
    first = _first_trainable(model, trainable_blocks)
    with torch.no_grad():
        _, rope = model._pos_embed(model.patch_embed(torch.zeros(1, 3, image_size, image_size)))
    prefix = nn.Sequential(_Embedding(model), _RotaryBlocks(model.blocks[:first], rope))
    tail = BlocksTail(_RotaryBlocks(model.blocks[first:], rope), model.norm, _Head(model))
    path = f"{trainable_blocks} trainable block(s) with rotary positions, evaluated in full"
    return Cut(prefix, _trainable(tail), path)


class _Embedding(nn.Module):
    """Images to tokens, for models that hand out rotary positions along with them."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        tokens, _ = self.model._pos_embed(self.model.patch_embed(images))
        embedded: Tensor = self.model.norm_pre(tokens)
        return embedded


class _RotaryBlocks(nn.Module):
    """Blocks that are given the same rotary positions at every call."""

    def __init__(self, blocks: Any, rope: Tensor | None) -> None:
        super().__init__()
        self.blocks = blocks
        self.register_buffer("rope", rope, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x, rope=self.rope)
        return x


def _ends_in_pointwise(model: Any) -> bool:
    conv, norm, pool = model.conv_head, model.bn2, model.global_pool
    return (
        isinstance(conv, nn.Conv2d)
        and conv.kernel_size == (1, 1)
        and conv.bias is None
        and isinstance(norm, nn.BatchNorm2d)
        and norm.affine
        and getattr(pool, "pool_type", "") == "avg"
    )


def _cut_convolutional(model: Any, image_size: int | None) -> Cut:
    tail = PointwiseConvTail(model.conv_head, model.bn2, getattr(model.bn2, "act", nn.Identity()))
    reduction = model.feature_info[-1]["reduction"]
    halves_evenly = image_size is not None and image_size % reduction == 0
    return Cut(_Map(model, halves_evenly), tail, "last 1×1 convolution and its norm trainable")


class _Map(nn.Module):
    """Stem and blocks, each convolution merged with the frozen norm behind it, as a map (n, places, channels)."""

    def __init__(self, model: Any, halves_evenly: bool) -> None:
        super().__init__()
        layers = nn.Sequential()
        layers.add_module("conv_stem", model.conv_stem)
        layers.add_module("bn1", model.bn1)
        layers.add_module("blocks", model.blocks)
        _merge_norms(layers)
        if halves_evenly:
            _pad_in_place(layers)
        self.layers = layers.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images).flatten(2).transpose(1, 2)  # type: ignore[no-any-return]


def _merge_norms(module: nn.Module) -> None:
    """Fold each norm into the convolution listed right before it; what remains of it is its activation."""
    children = list(module.named_children())
    for (conv_name, conv), (norm_name, norm) in pairwise(children):
        if isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d) and conv.out_channels == norm.num_features:
            setattr(module, conv_name, fuse_conv_bn_eval(conv, norm))
            setattr(module, norm_name, getattr(norm, "act", nn.Identity()))
    for child in module.children():
        _merge_norms(child)


def _pad_in_place(module: nn.Module) -> None:
    """Replace stride-2 convolutions that copy their input to pad it by TensorFlow's rule.

    On an even side that rule pads one more behind than in front. A kernel with a zero row and column in front, padded
    alike on both sides, gives the same numbers without the copy, which cost a third of Lite0's time.
    """
    from timm.layers.conv2d_same import Conv2dSame

    for name, conv in module.named_children():
        if isinstance(conv, Conv2dSame) and conv.stride == (2, 2) and conv.dilation == (1, 1):
            setattr(module, name, _evenly_padded(conv))
        else:
            _pad_in_place(conv)


def _evenly_padded(conv: nn.Conv2d) -> nn.Conv2d:
    height, width = conv.kernel_size
    wider = nn.Conv2d(
        conv.in_channels,
        conv.out_channels,
        (height + 1, width + 1),
        stride=2,
        padding=(height // 2, width // 2),
        groups=conv.groups,
        bias=conv.bias is not None,
    )
    wider.weight = nn.Parameter(F.pad(conv.weight.detach(), (1, 0, 1, 0)), requires_grad=False)
    wider.bias = conv.bias
    return wider


def _cut_pooled(model: Any, image_size: int | None) -> Cut:
    from timm.models.efficientnet import EfficientNet

    prefix: nn.Module = _Pooled(model)
    size = getattr(model, "head_hidden_size", None) or model.num_features
    if type(model) is EfficientNet and _ends_in_pointwise(model):  # the same numbers, from faster parts
        parts = _cut_convolutional(model, image_size)
        prefix = nn.Sequential(parts.prefix, parts.tail.requires_grad_(False))
    elif image_size is not None and (merged := _merged_if_equal(prefix, image_size)) is not None:
        return Cut(merged, ResidualAdapter(int(size)), "pooled features with merged norms, residual adapter")
    return Cut(prefix, ResidualAdapter(int(size)), "pooled features, residual adapter")


@torch.no_grad()
def _merged_if_equal(network: nn.Module, image_size: int) -> nn.Module | None:
    """The network with its norms merged, or None if it has none or does not run its layers in the order it lists them.

    A network of timm's many may do so; that it gives the same numbers is therefore tried.
    """
    if not any(isinstance(module, nn.BatchNorm2d) for module in network.modules()):
        return None
    merged = deepcopy(network)
    _merge_norms(merged)
    image = torch.randn(1, 3, image_size, image_size, generator=torch.Generator().manual_seed(0))
    expected = network(image)
    worst = (merged(image) - expected).abs().max()
    return merged if worst <= _MERGE_TOLERANCE * expected.abs().max() else None


class _Pooled(nn.Module):
    """The whole network up to its classifier: features (n, dim)."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        pooled: Tensor = self.model.forward_head(self.model.forward_features(images), pre_logits=True)
        return pooled
