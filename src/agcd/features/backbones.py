"""Backbones: a name becomes a frozen prefix, computed once per crop, and a trainable tail.

Where the cut runs depends on the network; ``cut`` says which way was taken, and a log line repeats it.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from agcd.config import BackboneConfig
from agcd.errors import ConfigError, WeightsError
from agcd.features.cuts import Cut, cut, cut_any
from agcd.features.devices import OutOfMemory, find_device, in_smaller_passes, sent
from agcd.features.onnx_graph import has_onnx, one_core_session, to_onnx
from agcd.features.products import with_our_products
from agcd.features.torchvision_compat import import_timm
from agcd.features.views import ViewSpec
from agcd.features.weights import load_lite0, load_weights
from agcd.io import digest, digest_bytes, file_sha256
from agcd.plugins import Registry

log = logging.getLogger("agcd")

LITE0 = "efficientnet_lite0"
TOYS = ("toy", "toy_conv")
Triple = tuple[float, float, float]
Make = Callable[[BackboneConfig], nn.Module | Cut]
"""A network from normalised pixels (n, 3, size, size) to features (n, d), or one that is cut already. It may say the
``mean`` and ``std`` of its pixels; they are those of ImageNet where it does not."""
Run = Callable[[NDArray[np.uint8]], Tensor]
Pixels = tuple[Triple, Triple]
IMAGENET_MEAN: Triple = (0.485, 0.456, 0.406)
IMAGENET_STD: Triple = (0.229, 0.224, 0.225)
_TOY_SEED = 7
"""Of the toys' weights; their fingerprints hold it."""
_CROPS_PER_PASS = 4
"""On a CPU more crops at once are slower: their activations no longer fit the allocator's reused memory."""
_SMALL_CROPS_PER_PASS = 32
"""Below 224 pixels a layer of four crops takes less time than its call does."""
_CROPS_ON_GPU = 256
"""A pass of a few crops leaves most of a GPU idle."""
_PLACE_FACTS: dict[str, list[str]] = {"cpu": [], "cuda": ["cuda", "float16"], "mps": ["mps", "float32"]}
"""The part of a fingerprint that a kind of device has; a CPU has none, so that older caches stay valid."""
_RULE = 1
"""Raise when the meaning of cached numbers changes, so that old caches are not read as new ones."""


@dataclass(frozen=True)
class Backbone:
    """A network cut in two. Equal fingerprints mean equal cached numbers and equal fresh tails.

    On a GPU the prefix runs in mixed precision: there numbers are equal to about three digits, and the last bits may
    depend on what else is in the pass. onnxruntime adds up in another order than torch. So the fingerprint knows the
    kind of device and the runner.

    ``mean`` and ``std`` are for pixels in [0, 1]; ``token_shape`` is the shape of one cached crop and ``dim`` the
    size of the tail's output.
    """

    name: str
    facts: tuple[Any, ...] = field(repr=False)
    """What decides the numbers beside runner and kind of device."""
    made_on: str
    """The kind of device whose numbers these are."""
    runner: str
    """What computes them for a store: torch or onnx."""
    runners: tuple[str, ...]
    """On a CPU, all by which they may be computed; elsewhere the first one."""
    mean: Triple
    std: Triple
    view_spec: ViewSpec
    token_shape: tuple[int, ...]
    dim: int
    path: str
    config: BackboneConfig = field(repr=False)
    """What ``load_backbone`` makes the same one of."""
    device: torch.device = field(repr=False)
    network: nn.Module = field(repr=False)
    """The frozen prefix: normalised pixels (n, 3, size, size) to the tail's input."""
    _tail: nn.Module = field(repr=False)
    _largest: list[int] = field(default_factory=lambda: [_CROPS_ON_GPU], repr=False)
    """How many crops a pass on a GPU may have: fewer after one was too many."""

    @cached_property
    def fingerprint(self) -> str:
        runner = [] if self.runner == "torch" else [self.runner]
        step = crops_per_pass(self.image_size)
        steps = [] if step == _CROPS_PER_PASS else [step]
        return digest([*self.facts, *runner, *steps, *_PLACE_FACTS.get(self.made_on, [self.made_on])])

    def elsewhere(self) -> Iterator[Backbone]:
        """The same network as other kinds of devices compute it, and, where nobody chose one, another runner: what they
        have stored can be read, not added to."""
        for kind in _PLACE_FACTS:
            for runner in self.runners if kind == "cpu" else self.runners[:1]:
                if (kind, runner) != (self.made_on, self.runner):
                    yield replace(self, made_on=kind, runner=runner)

    @property
    def image_size(self) -> int:
        return self.view_spec.image_size

    def prefix(self, crops: NDArray[np.uint8]) -> Tensor:
        """Cached input of the tail, (n, *token_shape) float32 on the device, of crops (n, size, size, 3)."""
        return self._in_passes(self._pass, crops)

    def opened(self) -> Run:
        """``prefix`` as its runner computes it, for many calls from any thread, each on one core.

        It cannot be sent to other processes, a backbone can.
        """
        if self.runner == "torch" or self.device.type != "cpu":
            return self.prefix
        run = one_core_session(self._graph)
        return lambda crops: self._in_passes(run, crops)

    @cached_property
    def _graph(self) -> bytes:
        """The prefix as an ONNX file; it takes seconds to write, so only those who fill a store do."""
        crops = torch.zeros(2, self.image_size, self.image_size, 3, dtype=torch.uint8)
        network = deepcopy(self.network)
        layer: Any
        for layer in network.modules():
            if hasattr(layer, "inplace"):  # the graph is the same, and takes half the time to write
                layer.inplace = False
        graph = to_onnx(_FromPixels(network, self.mean, self.std), crops, "crops")
        content: bytes = graph.SerializeToString()
        return content

    @property
    def crops_together(self) -> int:
        """How many crops of several images may share a pass; 1 if every image has passes of its own."""
        if self.device.type != "cpu":
            return _CROPS_ON_GPU
        return crops_per_pass(self.image_size) if self._fills_passes else 1

    @property
    def _fills_passes(self) -> bool:
        """Whether crops are so small that those of several images share a pass, always of the same length."""
        return crops_per_pass(self.image_size) > _CROPS_PER_PASS

    def _in_passes(self, run: Run, crops: NDArray[np.uint8]) -> Tensor:
        """``run`` over the crops, on a CPU a few at a time; on a GPU as many as its memory takes."""
        if len(crops) == 0:
            return torch.empty((0, *self.token_shape), device=self.device)
        if self.device.type != "cpu":
            return self._on_gpu(run, crops)
        length = crops_per_pass(self.image_size)
        passes = [crops[start : start + length] for start in range(0, len(crops), length)]
        if self._fills_passes:
            return torch.cat([_padded_pass(run, part, length) for part in passes])
        return torch.cat([run(part) for part in passes])

    def _on_gpu(self, run: Run, crops: NDArray[np.uint8]) -> Tensor:
        parts: list[Tensor] = []
        start = 0
        while start < len(crops):
            part = crops[start : start + self._largest[0]]
            try:
                parts.append(run(part))
            except OutOfMemory:
                self._largest[0] = in_smaller_passes(self.device, "extraction", len(part))
            else:
                start += len(part)
        return torch.cat(parts)

    def new_tail(self) -> nn.Module:
        """A fresh copy of the pretrained tail."""
        return deepcopy(self._tail)

    @torch.inference_mode()
    def _pass(self, crops: NDArray[np.uint8]) -> Tensor:
        images = _normalised(sent(np.ascontiguousarray(crops), self.device), self.mean, self.std)
        with mixed_precision(self.device):
            cached: Tensor = self.network(images)
        if self.device.type == "cuda" and not cached.isfinite().all():  # beyond the range of float16
            cached = self.network(images)
        return cached.float()


def crops_per_pass(image_size: int) -> int:
    """Four at 224 pixels and above; below, as many as have the same number of pixels, within limits."""
    return max(_CROPS_PER_PASS, min(_SMALL_CROPS_PER_PASS, _CROPS_PER_PASS * 224**2 // image_size**2))


def _padded_pass(run: Run, crops: NDArray[np.uint8], length: int) -> Tensor:
    """``run`` over the crops, with blank ones behind them up to ``length``.

    Kernels are chosen by the shape of the whole pass. With one shape for all, the numbers of a crop depend neither on
    its place in the pass nor on the others in it.
    """
    blank = np.zeros((length - len(crops), *crops.shape[1:]), np.uint8)
    return run(np.concatenate([crops, blank]))[: len(crops)]


def _normalised(pixels: Tensor, mean: Triple, std: Triple) -> Tensor:
    """Float32 (n, 3, size, size) of pixels (n, size, size, 3), channels last in memory: what convolutions like best."""
    images = pixels.permute(0, 3, 1, 2).float()
    shift, scale = (sent(torch.tensor(v).mul(255).view(3, 1, 1), images.device) for v in (mean, std))
    return images.sub_(shift).div_(scale)


def mixed_precision(device: torch.device) -> AbstractContextManager[object]:
    """Float16, as in the store, where it is faster: on a GPU."""
    return torch.autocast("cuda", dtype=torch.float16) if device.type == "cuda" else nullcontext()


def load_backbone(config: BackboneConfig, device: str = "auto") -> Backbone:
    """The named network with its weights, cut for training, on the device that ``find_device`` makes of ``device``;
    every mistake is one sentence."""
    if config.runner == "onnx" and not has_onnx():
        raise ConfigError("The runner 'onnx' needs onnxruntime: install agcd[onnx], or choose 'torch'.")
    parts, weights, (mean, std) = _cut_network(config)
    log.info("backbone %s: %s", config.name, parts.path)
    place = find_device(device)
    shape, dim = _shapes(parts, config.image_size)
    # Of a network from outside nobody knows whether ONNX can say it.
    unchosen = "torch" if config.runner == "auto" and is_from_outside(config.name) else config.runner
    runners = _runners(unchosen, parts.prefix)
    return Backbone(
        name=config.name,
        facts=(_RULE, config.name, weights, config.image_size, mean, std, parts.path, shape),
        made_on=place.type,
        runner=runners[-1] if place.type == "cpu" and has_onnx() else runners[0],
        runners=runners,
        mean=mean,
        std=std,
        view_spec=ViewSpec(config.image_size),
        token_shape=shape,
        dim=dim,
        path=parts.path,
        config=config,
        device=place,
        network=with_our_products(parts.prefix).to(place),
        _tail=parts.tail,
    )


def _cut_network(config: BackboneConfig) -> tuple[Cut, str, Pixels]:
    """The named network in two parts, a name for its weights, and its pixel mean and deviation."""
    if is_from_outside(config.name):
        return _from_outside(config)
    model, weights, pixels = _build(config)
    return cut(model.eval().requires_grad_(False), config.trainable_blocks, config.image_size), weights, pixels


def is_from_outside(name: str) -> bool:
    """Whether the name is neither agcd's nor timm's: no package can take theirs."""
    if name in BACKBONES.built_in:
        return False
    return ":" in name or (name in BACKBONES.installed() and not import_timm().is_model(name))


def _from_outside(config: BackboneConfig) -> tuple[Cut, str, Pixels]:
    """What somebody else's function makes; its weights are known by their numbers, wherever it has them from."""
    make = BACKBONES.get(config.name)
    if config.weights is not None and config.weights_sha256 not in (None, file_sha256(config.weights)):
        raise WeightsError(f"{config.weights} has changed: its SHA-256 is not {config.weights_sha256}.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # weights that are drawn are the same ones everywhere
        made: object = make(config)
    if not isinstance(made, nn.Module | Cut):
        raise ConfigError(f"Backbone {config.name!r} made a {type(made).__name__}; a torch.nn.Module is expected.")
    if isinstance(made, nn.Module):
        parts = cut_any(made.eval().requires_grad_(False), config.trainable_blocks, config.image_size)
    else:
        parts = made
        parts.prefix.eval().requires_grad_(False)
    pixels = _triple(made, "mean", IMAGENET_MEAN), _triple(made, "std", IMAGENET_STD)
    state = [*parts.prefix.state_dict().items(), *parts.tail.state_dict().items()]
    numbers = [
        [name, digest_bytes(value.contiguous().reshape(-1).view(torch.uint8).numpy().data)] for name, value in state
    ]
    return parts, digest([numbers, BACKBONES.code(config.name)]), pixels


def _triple(made: object, name: str, otherwise: Triple) -> Triple:
    red, green, blue = map(float, getattr(made, name, otherwise))
    return red, green, blue


def _runners(chosen: str, prefix: nn.Module) -> tuple[str, ...]:
    """What may compute the prefix on a CPU, the fastest last: where nobody chose, onnxruntime is for convolutions."""
    if chosen != "auto":
        return (chosen,)
    layers = [layer for layer in prefix.modules() if isinstance(layer, nn.Conv2d | nn.Linear)]
    is_convolutional = sum(isinstance(layer, nn.Conv2d) for layer in layers) > len(layers) / 2
    return ("torch", "onnx") if is_convolutional else ("torch",)


class _FromPixels(nn.Module):
    """A prefix that takes crops (n, size, size, 3) as they come, uint8."""

    def __init__(self, network: nn.Module, mean: Triple, std: Triple) -> None:
        super().__init__()
        self.network = network
        self.mean, self.std = mean, std

    def forward(self, crops: Tensor) -> Tensor:
        cached: Tensor = self.network(_normalised(crops, self.mean, self.std))
        return cached


def _build(config: BackboneConfig) -> tuple[nn.Module, str, Pixels]:
    """The whole network, a name for its weights, and its pixel mean and deviation."""
    timm = import_timm()
    if config.name in TOYS:
        return _toy(config), f"random-{_TOY_SEED}", ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    if config.name == LITE0 and config.weights is None:
        model = timm.create_model("tf_efficientnet_lite0", num_classes=0)
        return model, load_lite0(model), ((127 / 255,) * 3, (128 / 255,) * 3)
    if not timm.is_model(config.name):
        raise _no_backbone(timm, config.name)
    if config.weights is None:
        raise WeightsError(f"Backbone {config.name!r} needs a local file: name it in backbone.weights.")
    facts, model = timm.get_pretrained_cfg(config.name), _created(timm, config)
    return model, load_weights(model, config.weights, config.weights_sha256), (tuple(facts.mean), tuple(facts.std))


def network_facts(name: str, weights: Path) -> tuple[int, int | None]:
    """The image size that a timm model was pretrained on, and its patches, if the file fills it."""
    timm = import_timm()
    if not timm.is_model(name):
        raise _no_backbone(timm, name)
    size = int(timm.get_pretrained_cfg(name).input_size[-1])
    model, _, _ = _build(BackboneConfig(name=name, weights=weights, image_size=size))
    patch = getattr(getattr(model, "patch_embed", None), "patch_size", None)
    return size, patch[0] if patch else None


def _no_backbone(timm: Any, name: str) -> ConfigError:
    close = difflib.get_close_matches(name, [*BACKBONES.names(), *timm.list_models()], n=1)
    guess = f" Did you mean {close[0]!r}?" if close else ""
    return ConfigError(f"There is no backbone {name!r}.{guess} Any model name of timm will do.")


def _own(config: BackboneConfig) -> nn.Module:
    return _build(config)[0]


BACKBONES: Registry[Make] = Registry("Backbone", "agcd.backbones", dict.fromkeys((LITE0, *TOYS), _own))
"""Every backbone that is not timm's and can be named in ``backbone.name``."""


def blank_network(config: BackboneConfig) -> Cut:
    """The network cut as ``load_backbone`` cuts it, without its weights, so that what it does can be counted."""
    timm = import_timm()
    if is_from_outside(config.name):
        return _from_outside(config)[0]
    if config.name in TOYS:
        model = _toy(config)
    elif config.name == LITE0:
        model = timm.create_model("tf_efficientnet_lite0", num_classes=0)
    elif timm.is_model(config.name):
        model = _created(timm, config)
    else:
        raise _no_backbone(timm, config.name)
    return cut(model.eval().requires_grad_(False), config.trainable_blocks, config.image_size)


def _created(timm: Any, config: BackboneConfig) -> nn.Module:
    sizes = {"img_size": config.image_size} if timm.get_pretrained_cfg(config.name).fixed_input_size else {}
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
