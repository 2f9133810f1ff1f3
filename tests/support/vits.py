"""Small vision transformers with random weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from agcd.features.torchvision_compat import import_timm

import_timm()

from timm.models.vision_transformer import VisionTransformer  # noqa: E402


def random_vit(seed: int = 0, **options: Any) -> Any:
    """A transformer whose every parameter, LayerNorm affine and LayerScale included, is away from its start."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = VisionTransformer(num_classes=0, **options).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.05)
    return model


def relative(a: Tensor, b: Tensor) -> float:
    return float((a - b).detach().norm() / b.detach().norm())
