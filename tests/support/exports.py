"""Small classifiers for tests of the exports."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from agcd.app.export.classifier import NamedSlot
from agcd.config import BackboneConfig
from agcd.features.backbones import load_backbone
from agcd.training.fitted import Fitted
from agcd.training.heads import DiscoveryModel

SLOTS = (
    NamedSlot('Ärger, "quoted" & <b>', is_old=True),
    NamedSlot("猫", is_old=True),
    NamedSlot("=cmd|calc", is_old=False),
    NamedSlot("unnamed #3", is_old=False, is_named=False),
)


def random_fitted(config: BackboneConfig, n_slots: int = len(SLOTS)) -> Fitted:
    """A model as training leaves it: student and average differ, and nothing is where it started."""
    backbone = load_backbone(config, "cpu")
    models = [DiscoveryModel(backbone.new_tail(), backbone.dim, n_slots, (8, 4), seed=seed) for seed in (1, 2)]
    draw = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for model in models:
            for parameter in model.trainable():
                parameter.add_(torch.randn(parameter.shape, generator=draw) * 0.02)
            model.center.copy_(torch.randn(model.center.shape, generator=draw) * 0.1)
            model.scale.fill_(1.7)
    return Fitted(models[0], models[1], 2, 0.1)


def saved_run(folder: Path, config: BackboneConfig) -> Path:
    random_fitted(config).save(folder / "run.safetensors")
    return folder / "run.safetensors"


def random_pixels(n: int, size: int, seed: int = 0) -> NDArray[np.uint8]:
    """Images with structure: noise alone would make all of them look alike to a network."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (n, 4, 4, 3), dtype=np.uint8)
    return np.repeat(np.repeat(coarse, size // 4, axis=1), size // 4, axis=2)


def saved_linear_run(folder: Path, config: BackboneConfig) -> Path:
    """The run of ``saved_run`` with a linear head in place of the cosine one."""
    fitted = random_fitted(config)
    backbone = load_backbone(config, "cpu")
    models = []
    for seed, cosine in enumerate((fitted.student, fitted.ema)):
        linear = DiscoveryModel(backbone.new_tail(), backbone.dim, len(SLOTS), (8, 4), 0, "linear")
        biases = torch.randn(len(SLOTS), generator=torch.Generator().manual_seed(seed))
        linear.load_state_dict(cosine.state_dict() | {"biases": biases})
        models.append(linear)
    Fitted(models[0], models[1], 2, 0.5).save(folder / "linear.safetensors")
    return folder / "linear.safetensors"
