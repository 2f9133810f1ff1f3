"""The classifier of a round as two files that need no project: ``model.safetensors`` and ``model.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from agcd import __version__
from agcd.config import BackboneConfig, make_config
from agcd.data.images import decode, read_file
from agcd.data.text_items import MAX_CHARS
from agcd.data.texts import from_texts
from agcd.errors import WeightsError
from agcd.features import views
from agcd.features.backbones import load_backbone
from agcd.features.tails import ResidualAdapter
from agcd.features.text_encoders import TextEncoder, encoder_name, load_encoder, made_by
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
FORMAT = 3
"""Raise when older programs could no longer read what is written. 1 said ``kind`` ("old", "new") for ``known``; 2 knows
pictures alone, and is what is written of them; 3 says what the ``input`` is, "text" or "embedding"."""
_CLEANED = (
    "Unicode's composed form, line breaks as \\n, other control and direction characters as spaces, no spaces at the "
    f"ends, cut at a word where a text is longer than {MAX_CHARS:,} characters"
)
"""What is done to every text before its encoder sees it (``agcd.data.text_items.clean_text``)."""
_PREFIX = {"image": "backbone", "text": "encoder", "embedding": None}
"""What the head stands on, by what is put in."""
_LOAD = "from agcd.app.export.classifier import load_classifier; "
_NAME = "name = classifier.slots[int(probabilities.argmax())].name"


@dataclass(frozen=True)
class NamedSlot:
    """One output of a classifier: the name of its class or "unnamed #17", and whether the class is an old one."""

    name: str
    is_old: bool
    is_named: bool = True


@dataclass(frozen=True)
class Learned:
    """What training has left of a classifier: the weights of its head, the name of each slot, and its temperature."""

    tensors: Mapping[str, Tensor]
    slots: Sequence[NamedSlot]
    student_temp: float
    model_id: str


class SlotClassifier(nn.Module):
    """What all classifiers share: a trained head, from the output of a frozen prefix to probabilities (n, K).

    Two slots may bear one name after a merge; then their probabilities add up to that of the class.
    """

    format: ClassVar[int] = FORMAT
    input_name: ClassVar[str]
    """What an ONNX file calls the input."""
    how_to_load: ClassVar[str]

    def __init__(self, learned: Learned, tail: nn.Module, dim: int, prefix: nn.Module | None = None) -> None:
        super().__init__()
        self.prefix = prefix  # before the head, whose weights an ONNX file names after it where both share some
        self.slots, self.student_temp, self.model_id = tuple(learned.slots), learned.student_temp, learned.model_id
        self.head = _head(tail, dim, learned.tensors)
        if self.head.n_slots != len(self.slots):
            raise WeightsError(f"The stored model has {self.head.n_slots} slots, but {len(self.slots)} are named.")

    def probabilities(self, inputs: Tensor) -> Tensor:
        """Probabilities of the slots, exactly as in ``Fitted.predict``."""
        features = F.normalize(self.head.embed(inputs), dim=1)
        return (self.head.classify(features) / self.student_temp).softmax(1)

    def sample(self, n: int) -> Tensor:
        """``n`` inputs drawn at random, of the right shape and type."""
        raise NotImplementedError

    def source_facts(self) -> dict[str, Any]:
        """What the head stands on, as plain values."""
        raise NotImplementedError

    def preprocessing(self) -> dict[str, Any]:
        """How an input is made, in words and numbers for programs that do not use agcd."""
        raise NotImplementedError


class Classifier(SlotClassifier):
    """Test views (n, size, size, 3), uint8 RGB, to probabilities (n, K): one column per slot."""

    format, input_name = 2, "image"
    how_to_load = (
        f"{_LOAD}from agcd.app.export.classifier import preprocess; "
        "classifier = load_classifier(folder); "
        "probabilities = classifier(torch.from_numpy(preprocess(image, classifier.image_size))[None]); " + _NAME
    )
    mean: Tensor
    std: Tensor

    def __init__(self, config: BackboneConfig, learned: Learned) -> None:
        backbone = load_backbone(config, "cpu")
        super().__init__(learned, backbone.new_tail(), backbone.dim, backbone.network)
        self.config = config
        self.fingerprint, self.image_size = backbone.fingerprint, backbone.image_size
        self.fingerprints = {backbone.fingerprint, *(other.fingerprint for other in backbone.elsewhere())}
        self._channels = backbone.mean, backbone.std
        for name, values in zip(("mean", "std"), self._channels, strict=True):
            self.register_buffer(name, torch.tensor(values).mul(255).view(3, 1, 1), persistent=False)
        self.eval().requires_grad_(False)

    def forward(self, image: Tensor) -> Tensor:
        """Probabilities of the slots."""
        assert self.prefix is not None
        pixels = image.permute(0, 3, 1, 2).float()
        return self.probabilities(self.prefix((pixels - self.mean) / self.std))

    def sample(self, n: int) -> Tensor:
        shape = (n, self.image_size, self.image_size, 3)
        return torch.from_numpy(np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8))

    def source_facts(self) -> dict[str, Any]:
        config = self.config
        return {
            "backbone": {
                "name": config.name,
                "image_size": config.image_size,
                "trainable_blocks": config.trainable_blocks,
                "weights": config.weights.name if config.weights else None,
                "weights_sha256": file_sha256(config.weights) if config.weights else None,
                "fingerprint": self.fingerprint,
            }
        }

    def preprocessing(self) -> dict[str, Any]:
        return preprocessing_facts(self.image_size, *self._channels)


class EmbeddingClassifier(SlotClassifier):
    """Embeddings (n, dim), float32, to probabilities (n, K): one column per slot."""

    input_name = "embedding"
    how_to_load = (
        f"{_LOAD}classifier = load_classifier(folder); "
        f"probabilities = classifier(torch.from_numpy(embeddings)); {_NAME}"
    )

    def __init__(self, learned: Learned) -> None:
        self.dim = len(learned.tensors.get("center", ()))
        super().__init__(learned, ResidualAdapter(max(1, self.dim)), self.dim)
        self.eval().requires_grad_(False)

    def forward(self, embedding: Tensor) -> Tensor:
        """Probabilities of the slots."""
        return self.probabilities(embedding)

    def sample(self, n: int) -> Tensor:
        return torch.randn(n, self.dim, generator=torch.Generator().manual_seed(0))

    def source_facts(self) -> dict[str, Any]:
        return {"input": "embedding", "dim": self.dim}

    def preprocessing(self) -> dict[str, Any]:
        return {"steps": [f"float32 embeddings of {self.dim} numbers, unchanged, from what made those of the project"]}


class TextClassifier(EmbeddingClassifier):
    """Texts, or their embeddings, to probabilities (n, K); the encoder is opened when the first text comes.

    Parameters
    ----------
    fingerprint : that of the encoder which the head was trained on; None takes the one there is now
    """

    how_to_load = f"{_LOAD}classifier = load_classifier(folder); probabilities = classifier.of_texts([text]); {_NAME}"

    def __init__(self, config: BackboneConfig, learned: Learned, fingerprint: str | None = None) -> None:
        super().__init__(learned)
        self.config, self.fingerprint = config, fingerprint
        self._encoder: TextEncoder | None = None

    def of_texts(self, texts: Sequence[str]) -> Tensor:
        """Probabilities of the slots for texts as people write them; one that cannot be used is a ``DataError``."""
        return self.forward(torch.from_numpy(self.encoder()(from_texts(texts).texts or ())))

    def encoder(self) -> TextEncoder:
        """What makes the embeddings; it must be the one that the head was trained on."""
        if self._encoder is None:
            found = load_encoder(self.config, "cpu")
            if found.dim != self.dim or not (self.fingerprint is None or made_by(found, self.fingerprint)):
                raise WeightsError(
                    f"The classifier was trained on another version of the encoder {encoder_name(self.config)!r} or "
                    "its weights."
                )
            self._encoder = found
        return self._encoder

    def source_facts(self) -> dict[str, Any]:
        encoder, weights = self.encoder(), self.config.weights
        return {
            "input": "text",
            "dim": self.dim,
            "encoder": {
                "name": encoder_name(self.config),
                "weights": weights.name if weights else None,
                "weights_sha256": getattr(encoder, "sha256", None),
                "max_tokens": getattr(encoder, "max_tokens", None),
                "fingerprint": encoder.fingerprint,
            },
        }

    def preprocessing(self) -> dict[str, Any]:
        rules = getattr(self.encoder(), "rules", None)  # encoders of other packages need have none
        return {"steps": [_CLEANED, *(rules() if rules else ["the encoder of this name and fingerprint"])]}


def classifier_of_run(model_file: Path, config: BackboneConfig, slots: Sequence[NamedSlot]) -> Classifier:
    """The classifier in a round's own ``model.safetensors``, of pictures."""
    return Classifier(config, _learned(model_file, slots))


def vector_classifier_of_run(
    model_file: Path, config: BackboneConfig | None, slots: Sequence[NamedSlot]
) -> EmbeddingClassifier:
    """The same of texts, whose encoder ``config`` names, or without one of embeddings from elsewhere."""
    learned = _learned(model_file, slots)
    return EmbeddingClassifier(learned) if config is None else TextClassifier(config, learned)


def _learned(model_file: Path, slots: Sequence[NamedSlot]) -> Learned:
    """What a round has learned: of its two models the averaged one, without projector."""
    tensors, facts = load_tensors(model_file)
    averaged = {name.removeprefix("ema."): tensor for name, tensor in tensors.items() if name.startswith("ema.")}
    needed = {name: tensor for name, tensor in averaged.items() if not name.startswith("projector.")}
    return Learned(needed, slots, facts["student_temp"], facts["model_id"])


def write_classifier(folder: Path, classifier: SlotClassifier) -> list[Path]:
    """Write ``model.safetensors`` and ``model.json``; the weights of a backbone or encoder are named, not copied."""
    weights, facts = folder / WEIGHTS, folder / FACTS
    save_tensors(weights, classifier.head.state_dict(), {"model_id": classifier.model_id})
    write_json(facts, describe(classifier) | {"weights": {"file": WEIGHTS, "sha256": file_sha256(weights)}})
    return [weights, facts]


def describe(classifier: SlotClassifier) -> dict[str, Any]:
    """All that must be known to use the classifier, as plain values."""
    return {
        "format": classifier.format,
        "agcd_version": __version__,
        "model_id": classifier.model_id,
        **classifier.source_facts(),
        "head": classifier.head.kind,
        "student_temp": classifier.student_temp,
        "preprocessing": classifier.preprocessing(),
        "classes": [
            {"slot": number, "name": slot.name, "known": slot.is_old, "named": slot.is_named}
            for number, slot in enumerate(classifier.slots)
        ],
        "how_to_load": classifier.how_to_load,
    }


def load_classifier(folder: Path, weights: Path | None = None) -> Any:
    """What ``write_classifier`` wrote, a ``Classifier``, ``TextClassifier`` or ``EmbeddingClassifier``; every fault of
    the files is one sentence, and nothing in them is executed.

    Parameters
    ----------
    weights : the weights of the backbone or encoder, where it has some and they do not lie in ``folder``
    """
    facts = _read_facts(folder / FACTS)
    try:
        prefix = _prefix(facts)
        config = _config(folder, prefix, weights) if prefix is not None else None
        slots = [NamedSlot(str(c["name"]), _is_known(c), bool(c["named"])) for c in facts["classes"]]
        temperature, model_id = float(facts["student_temp"]), str(facts["model_id"])
        sha256, fingerprint = facts["weights"]["sha256"], str(prefix["fingerprint"]) if prefix is not None else ""
    except (KeyError, TypeError, ValueError) as error:
        raise WeightsError(f"{folder / FACTS} does not describe a classifier ({error!r:.100}).") from None
    learned = Learned(_read_tensors(folder / WEIGHTS, sha256), slots, temperature, model_id)
    if config is None:
        return EmbeddingClassifier(learned)
    if facts.get("input") == "text":
        return TextClassifier(config, learned, fingerprint)
    classifier = Classifier(config, learned)
    if fingerprint not in classifier.fingerprints:
        raise WeightsError(f"{folder} was trained on another version of the backbone {config.name!r} or its weights.")
    return classifier


def _read_facts(path: Path) -> dict[str, Any]:
    try:
        facts = read_json(path)
    except (OSError, ValueError, RecursionError) as error:
        raise WeightsError(f"{path} cannot be read: {error!s:.200}.") from None
    if not isinstance(facts, dict) or facts.get("format") not in range(1, FORMAT + 1):
        found = facts.get("format") if isinstance(facts, dict) else None
        raise WeightsError(f"{path} has format {found!r}; this version of agcd reads formats 1 to {FORMAT}.")
    return facts


def _is_known(facts: dict[str, Any]) -> bool:
    return bool(facts["known"]) if "known" in facts else facts["kind"] == "old"


def _prefix(facts: dict[str, Any]) -> dict[str, Any] | None:
    """What the facts say of the backbone or encoder; None where there is none."""
    name = _PREFIX[facts.get("input", "image")]
    return facts[name] if name else None


def _config(folder: Path, facts: dict[str, Any], weights: Path | None) -> BackboneConfig:
    """The backbone or encoder that the facts name, with its weights."""
    values: dict[str, Any] = {name: facts[name] for name in ("name", "image_size", "trainable_blocks") if name in facts}
    if facts["weights"] is not None:
        found = weights or folder / Path(facts["weights"]).name
        if not found.exists():
            what = "file" if "image_size" in facts else "folder"
            raise WeightsError(
                f"The classifier stands on {Path(facts['weights']).name}: put that {what} into {folder}, "
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


def _head(tail: nn.Module, dim: int, tensors: Mapping[str, Tensor]) -> DiscoveryModel:
    n_slots = len(tensors.get("prototypes", ()))
    kind: HeadKind = "linear" if "biases" in tensors else "cosine"
    head = DiscoveryModel(tail, dim, n_slots, (1, 1), 0, kind)
    head.projector = nn.Sequential()  # it serves training only, and is not stored
    try:
        head.load_state_dict(dict(tensors))
    except RuntimeError as error:
        last = str(error).splitlines()[-1].strip()
        raise WeightsError(f"The stored model does not fit the backbone: {last}") from None
    return head
