"""Backbones: a name becomes a frozen prefix, computed once per crop, and a trainable tail.

Where the cut runs depends on the network; ``_cut`` says which way was taken, and a log line repeats it.
"""

from __future__ import annotations

import difflib
import logging
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from agcd.config import BackboneConfig
from agcd.errors import ConfigError, WeightsError
from agcd.features.cuts import Cut, cut
from agcd.features.torchvision_compat import import_timm
from agcd.features.views import ViewSpec
from agcd.features.weights import load_lite0, load_weights
from agcd.files import digest

log = logging.getLogger("agcd")

LITE0 = "efficientnet_lite0"
TOYS = ("toy", "toy_conv")
_TOY_SEED = 7
_CROPS_PER_PASS = 4
"""On a CPU more crops at once are slower: their activations no longer fit the allocator's reused memory."""
_RULE = 1
"""Raise when the meaning of cached numbers changes, so that old caches are not read as new ones."""


@dataclass(frozen=True)
class Backbone:
    """A network cut in two. Equal fingerprints mean equal cached numbers and equal fresh tails.

    ``mean`` and ``std`` are for pixels in [0, 1]; ``token_shape`` is the shape of one cached crop and ``dim`` the
    size of the tail's output.
    """

    name: str
    fingerprint: str
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    view_spec: ViewSpec
    token_shape: tuple[int, ...]
    dim: int
    path: str
    device: torch.device = field(repr=False)
    network: nn.Module = field(repr=False)
    """The frozen prefix: normalised pixels (n, 3, size, size) to the tail's input."""
    _tail: nn.Module = field(repr=False)

    @property
    def image_size(self) -> int:
        return self.view_spec.image_size

    def prefix(self, crops: NDArray[np.uint8]) -> Tensor:
        """Cached input of the tail, (n, *token_shape) float32, of crops (n, size, size, 3)."""
        step = _CROPS_PER_PASS if self.device.type == "cpu" else max(len(crops), 1)
        parts = [self._pass(crops[i : i + step]) for i in range(0, len(crops), step)]
        return torch.cat(parts) if parts else torch.empty((0, *self.token_shape))

    def new_tail(self) -> nn.Module:
        """A fresh copy of the pretrained tail."""
        return deepcopy(self._tail)

    @torch.inference_mode()
    def _pass(self, crops: NDArray[np.uint8]) -> Tensor:
        # (n, 3, size, size) in memory order n, y, x, channel: what convolutions on a CPU like best
        images = torch.from_numpy(np.ascontiguousarray(crops)).to(self.device).permute(0, 3, 1, 2).float()
        mean, std = (images.new_tensor(v).mul(255).view(3, 1, 1) for v in (self.mean, self.std))
        cached: Tensor = self.network(images.sub_(mean).div_(std))
        return cached.float().cpu()


def load_backbone(config: BackboneConfig, device: str | torch.device | None = None) -> Backbone:
    """The named network with its weights, cut for training; every mistake is one sentence."""
    model, weights, (mean, std) = _build(config)
    model.eval().requires_grad_(False)
    parts = cut(model, config.trainable_blocks, config.image_size)
    log.info("backbone %s: %s", config.name, parts.path)
    place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    shape, dim = _shapes(parts, config.image_size)
    facts = [_RULE, config.name, weights, config.image_size, mean, std, parts.path, shape]
    return Backbone(
        name=config.name,
        fingerprint=digest(facts),
        mean=mean,
        std=std,
        view_spec=ViewSpec(config.image_size),
        token_shape=shape,
        dim=dim,
        path=parts.path,
        device=place,
        network=parts.prefix.to(place),
        _tail=parts.tail,
    )


Pixels = tuple[tuple[float, float, float], tuple[float, float, float]]


def _build(config: BackboneConfig) -> tuple[nn.Module, str, Pixels]:
    """The whole network, a name for its weights, and its pixel mean and deviation."""
    timm = import_timm()
    if config.name in TOYS:
        return _toy(config), f"random-{_TOY_SEED}", ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    if config.name == LITE0 and config.weights is None:
        model = timm.create_model("tf_efficientnet_lite0", num_classes=0)
        return model, load_lite0(model), ((127 / 255,) * 3, (128 / 255,) * 3)
    if not timm.is_model(config.name):
        close = difflib.get_close_matches(config.name, [LITE0, *TOYS, *timm.list_models()], n=1)
        guess = f" Did you mean {close[0]!r}?" if close else ""
        raise ConfigError(f"There is no backbone {config.name!r}.{guess} Any model name of timm will do.")
    if config.weights is None:
        raise WeightsError(f"Backbone {config.name!r} needs a local file: name it in backbone.weights.")
    facts = timm.get_pretrained_cfg(config.name)
    sizes = {"img_size": config.image_size} if facts.fixed_input_size else {}
    model = _created(timm, config, sizes)
    return model, load_weights(model, config.weights), (tuple(facts.mean), tuple(facts.std))


def _created(timm: Any, config: BackboneConfig, sizes: dict[str, int]) -> nn.Module:
    try:
        model: nn.Module = timm.create_model(config.name, pretrained=False, num_classes=0, **sizes)
    except (TypeError, AssertionError, RuntimeError) as error:
        raise ConfigError(f"Backbone {config.name!r} cannot be built for size {config.image_size}: {error}.") from None
    patch = getattr(getattr(model, "patch_embed", None), "patch_size", (1, 1))[0]
    if config.image_size % patch:
        raise ConfigError(f"Setting 'backbone.image_size' is {config.image_size}: not a multiple of {patch}.")
    return model


def _toy(config: BackboneConfig) -> nn.Module:
    """A tiny network with fixed random weights, for tests and examples that must be quick."""
    if config.image_size % 8:
        raise ConfigError(f"Setting 'backbone.image_size' is {config.image_size}: the toys need a multiple of 8.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_TOY_SEED)
        model = _toy_vit(config.image_size) if config.name == "toy" else _toy_conv()
        for parameter in model.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=parameter[0].numel() ** -0.5)
    return model


def _toy_vit(image_size: int) -> nn.Module:
    from timm.models.vision_transformer import VisionTransformer

    patch = image_size // 4
    model: nn.Module = VisionTransformer(
        img_size=image_size, patch_size=patch, embed_dim=32, depth=2, num_heads=2, num_classes=0
    )
    return model


def _toy_conv() -> nn.Module:
    from timm.models._efficientnet_builder import decode_arch_def
    from timm.models.efficientnet import EfficientNet

    stages = decode_arch_def([["ds_r1_k3_s2_e1_c8"], ["ir_r2_k3_s2_e2_c16"]])  # type: ignore[no-untyped-call]
    model: nn.Module = EfficientNet(
        stages, num_classes=0, num_features=32, stem_size=8, pad_type="same", act_layer=nn.ReLU6
    )
    return model


@torch.inference_mode()
def _shapes(parts: Cut, image_size: int) -> tuple[tuple[int, ...], int]:
    """Shape of one cached crop and size of the tail's output, by trying one empty image."""
    blank = torch.zeros(1, 3, image_size, image_size).contiguous(memory_format=torch.channels_last)
    cached = parts.prefix(blank)
    return tuple(cached.shape[1:]), int(parts.tail(cached).shape[1])
