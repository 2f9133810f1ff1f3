"""The classifier of a round as two files that need no project: ``model.safetensors`` and ``model.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from agcd import __version__
from agcd.config import BackboneConfig, make_config
from agcd.data.images import decode, read_file
from agcd.errors import WeightsError
from agcd.features import views
from agcd.features.backbones import Backbone, load_backbone
from agcd.features.views import ViewSpec, render
from agcd.io import file_sha256, read_json, write_json
from agcd.training.heads import DiscoveryModel, HeadKind
from agcd.training.loop import load_tensors, save_tensors


def preprocess(path: Path, image_size: int) -> NDArray[np.uint8]:
    """The test view (image_size, image_size, 3) of an image file, RGB: what the exported classifiers take."""
    spec = ViewSpec(image_size)
    image = decode(read_file(path), draft_size=spec.resize)
    return np.asarray(render(image, "", (0,), spec)[0])


def preprocessing_facts(
    image_size: int, mean: tuple[float, float, float], std: tuple[float, float, float]
) -> dict[str, Any]:
    """The same in words and numbers, for programs that do not use agcd."""
    resize = ViewSpec(image_size).resize
    return {
        "steps": [
            "decode to RGB with 8 bits, turned upright by its EXIF orientation, transparency laid on white, "
            "grey of 16 bits stretched from its darkest to its brightest thousandth, of 32 from end to end; "
            f"a JPEG may be decoded at 1/2, 1/4 or 1/8 scale while both sides stay at least {resize}",
            f"cut the middle out of images more than {views.MAX_ASPECT} times as long as wide",
            f"resize with bicubic interpolation and antialiasing (Pillow) so that the short side is {resize}",
            f"cut out the {image_size} × {image_size} pixels in the middle, rounding left and top down",
            "divide by 255, subtract mean, divide by std, each per channel (inside the exported model)",
        ],
        "resize_short_side": resize,
        "interpolation": "bicubic",
        "crop": image_size,
        "channels": "RGB",
        "mean": list(mean),
        "std": list(std),
    }


WEIGHTS, FACTS = "model.safetensors", "model.json"
FORMAT = 2
"""Raise when older programs could no longer read what is written. 1 said ``kind`` ("old", "new") for ``known``."""
_HOW_TO_LOAD = (
    "from agcd.app.export.classifier import load_classifier; from agcd.app.export.classifier import preprocess; "
    "classifier = load_classifier(folder); "
    "probabilities = classifier(torch.from_numpy(preprocess(image, classifier.image_size))[None]); "
    "name = classifier.slots[int(probabilities.argmax())].name"
)


@dataclass(frozen=True)
class NamedSlot:
    """One output of a classifier: the name of its class or "unnamed #17", and whether the class is an old one."""

    name: str
    is_old: bool
    is_named: bool = True


class Classifier(nn.Module):
    """Test views (n, size, size, 3), uint8 RGB, to probabilities (n, K): one column per slot.

    Two slots may bear one name after a merge; then their probabilities add up to that of the class.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        config: BackboneConfig,
        tensors: Mapping[str, Tensor],
        slots: Sequence[NamedSlot],
        student_temp: float,
        model_id: str,
    ) -> None:
        super().__init__()
        backbone = load_backbone(config, "cpu")
        self.config, self.slots, self.student_temp, self.model_id = config, tuple(slots), student_temp, model_id
        self.fingerprint, self.image_size = backbone.fingerprint, backbone.image_size
        self.preprocessing = preprocessing_facts(backbone.image_size, backbone.mean, backbone.std)
        self.prefix = backbone.network
        self.head = _head(backbone, tensors)
        if self.head.n_slots != len(self.slots):
            raise WeightsError(f"The stored model has {self.head.n_slots} slots, but {len(self.slots)} are named.")
        for name, values in (("mean", backbone.mean), ("std", backbone.std)):
            self.register_buffer(name, torch.tensor(values).mul(255).view(3, 1, 1), persistent=False)
        self.eval().requires_grad_(False)

    def forward(self, image: Tensor) -> Tensor:
        """Probabilities of the slots, exactly as in ``Fitted.predict``."""
        pixels = image.permute(0, 3, 1, 2).float()
        features = F.normalize(self.head.embed(self.prefix((pixels - self.mean) / self.std)), dim=1)
        return (self.head.classify(features) / self.student_temp).softmax(1)


def classifier_of_run(model_file: Path, config: BackboneConfig, slots: Sequence[NamedSlot]) -> Classifier:
    """The classifier in a round's own ``model.safetensors``: of its two models the averaged one, without projector."""
    tensors, facts = load_tensors(model_file)
    averaged = {name.removeprefix("ema."): tensor for name, tensor in tensors.items() if name.startswith("ema.")}
    needed = {name: tensor for name, tensor in averaged.items() if not name.startswith("projector.")}
    return Classifier(config, needed, slots, facts["student_temp"], facts["model_id"])


def write_classifier(folder: Path, classifier: Classifier) -> list[Path]:
    """Write ``model.safetensors`` and ``model.json``; the backbone's own weights are named, not copied."""
    weights, facts = folder / WEIGHTS, folder / FACTS
    save_tensors(weights, classifier.head.state_dict(), {"model_id": classifier.model_id})
    write_json(facts, describe(classifier) | {"weights": {"file": WEIGHTS, "sha256": file_sha256(weights)}})
    return [weights, facts]


def describe(classifier: Classifier) -> dict[str, Any]:
    """All that must be known to use the classifier, as plain values."""
    config = classifier.config
    return {
        "format": FORMAT,
        "agcd_version": __version__,
        "model_id": classifier.model_id,
        "backbone": {
            "name": config.name,
            "image_size": config.image_size,
            "trainable_blocks": config.trainable_blocks,
            "weights": config.weights.name if config.weights else None,
            "weights_sha256": file_sha256(config.weights) if config.weights else None,
            "fingerprint": classifier.fingerprint,
        },
        "head": classifier.head.kind,
        "student_temp": classifier.student_temp,
        "preprocessing": classifier.preprocessing,
        "classes": [
            {"slot": number, "name": slot.name, "known": slot.is_old, "named": slot.is_named}
            for number, slot in enumerate(classifier.slots)
        ],
        "how_to_load": _HOW_TO_LOAD,
    }


def load_classifier(folder: Path, weights: Path | None = None) -> Classifier:
    """What ``write_classifier`` wrote; every fault of the files is one sentence, and nothing in them is executed.

    Parameters
    ----------
    weights : the backbone's weights file, where it has one and it does not lie in ``folder``
    """
    facts = _read_facts(folder / FACTS)
    try:
        config = _backbone_config(folder, facts["backbone"], weights)
        slots = [NamedSlot(str(c["name"]), _is_known(c), bool(c["named"])) for c in facts["classes"]]
        temperature, model_id = float(facts["student_temp"]), str(facts["model_id"])
        sha256, fingerprint = facts["weights"]["sha256"], facts["backbone"]["fingerprint"]
    except (KeyError, TypeError, ValueError) as error:
        raise WeightsError(f"{folder / FACTS} does not describe a classifier ({error!r:.100}).") from None
    tensors = _read_tensors(folder / WEIGHTS, sha256)
    classifier = Classifier(config, tensors, slots, temperature, model_id)
    if classifier.fingerprint != fingerprint:
        raise WeightsError(f"{folder} was trained on another version of the backbone {config.name!r} or its weights.")
    return classifier


def _read_facts(path: Path) -> dict[str, Any]:
    try:
        facts = read_json(path)
    except (OSError, ValueError, RecursionError) as error:
        raise WeightsError(f"{path} cannot be read: {error!s:.200}.") from None
    if not isinstance(facts, dict) or facts.get("format") not in (1, FORMAT):
        found = facts.get("format") if isinstance(facts, dict) else None
        raise WeightsError(f"{path} has format {found!r}; this version of agcd reads formats 1 and {FORMAT}.")
    return facts


def _is_known(facts: dict[str, Any]) -> bool:
    return bool(facts["known"]) if "known" in facts else facts["kind"] == "old"


def _backbone_config(folder: Path, facts: dict[str, Any], weights: Path | None) -> BackboneConfig:
    values = {name: facts[name] for name in ("name", "image_size", "trainable_blocks")}
    if facts["weights"] is not None:
        found = weights or folder / Path(facts["weights"]).name
        if not found.is_file():
            raise WeightsError(
                f"The classifier stands on {Path(facts['weights']).name}: put that file into {folder}, "
                "or give its path to load_classifier."
            )
        values["weights"] = found
    return make_config({"backbone": values}).backbone


def _read_tensors(path: Path, sha256: str) -> dict[str, Tensor]:
    if not path.is_file() or file_sha256(path) != sha256:
        raise WeightsError(f"{path} is missing, or is not the file that {FACTS} describes.")
    try:
        tensors = safetensors.torch.load_file(path)
    except Exception as error:  # safetensors raises its own untyped errors for every kind of damage
        raise WeightsError(f"{path} cannot be read as plain weights: {error!s:.200}.") from None
    for name, tensor in tensors.items():
        if not bool(tensor.isfinite().all()):
            raise WeightsError(f"{path}: {name} holds NaN or infinite numbers.")
    return tensors


def _head(backbone: Backbone, tensors: Mapping[str, Tensor]) -> DiscoveryModel:
    n_slots = len(tensors.get("prototypes", ()))
    kind: HeadKind = "linear" if "biases" in tensors else "cosine"
    head = DiscoveryModel(backbone.new_tail(), backbone.dim, n_slots, (1, 1), 0, kind)
    head.projector = nn.Sequential()  # it serves training only, and is not stored
    try:
        head.load_state_dict(dict(tensors))
    except RuntimeError as error:
        last = str(error).splitlines()[-1].strip()
        raise WeightsError(f"The stored model does not fit the backbone: {last}") from None
    return head
