"""Import timm even where torchvision lacks its native part.

Registries serve a torchvision built for CUDA. Beside a CPU torch its extension does not load, and then plain
``import torchvision`` fails because it describes two operators, ``nms`` and ``qnms``, that nobody declared. We
need neither, so declaring their signatures is enough; a healthy torchvision is left alone.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

import torch

_OPERATORS = ("nms", "qnms")
_SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


@cache
def _declare_operators() -> torch.library.Library:
    """Declare what is missing. It lasts as long as the returned object, which the cache keeps for good."""
    library = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for name in _OPERATORS:
        if not hasattr(torch.ops.torchvision, name):
            library.define(name + _SIGNATURE)  # type: ignore[no-untyped-call]
    return library


def import_timm() -> Any:
    """The timm package; the operators are declared only after torchvision itself failed for want of them."""
    try:
        return importlib.import_module("timm")
    except RuntimeError as error:
        if "operator torchvision::" not in str(error):
            raise
    _declare_operators()
    return importlib.import_module("timm")
