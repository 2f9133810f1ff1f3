"""Features that are not here any more: what a stored model must know of its training rows to be used again."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, NoReturn

from torch import nn

from agcd.config import BackboneConfig
from agcd.errors import DataError, WeightsError
from agcd.features.backbones import load_backbone
from agcd.features.rows import OnlineRows, RowFeatures, StoredRows
from agcd.features.tails import ResidualAdapter
from agcd.features.text_encoders import load_encoder, made_by


class RememberedRows:
    """The shape, the name and the tail of features; their numbers cannot be read."""

    n_views = 1

    def __init__(self, facts: Mapping[str, Any], tail: nn.Module) -> None:
        self.fingerprint: str = facts["fingerprint"]
        self.backbone: str | None = facts["backbone"]
        self.encoder: str | None = facts.get("encoder")  # files of 0.2 have none
        self.n_rows, self.dim = int(facts["n_rows"]), int(facts["dim"])
        self.bad_rows: Mapping[int, str] = {int(row): str(reason) for row, reason in facts["bad_rows"]}
        self._tail = tail

    def read(self, *_: Any) -> NoReturn:
        raise DataError("The training samples are not here.")

    announce = read

    def new_tail(self) -> nn.Module:
        return deepcopy(self._tail)


def remember(features: RowFeatures) -> dict[str, Any]:
    """What ``remembered`` needs, as plain values."""
    if isinstance(features, RememberedRows):
        backbone = features.backbone
    else:
        backbone = features._backbone.fingerprint if isinstance(features, StoredRows | OnlineRows) else None
    return {
        "fingerprint": features.fingerprint,
        "backbone": backbone,
        "encoder": getattr(features, "encoder", None),
        "n_rows": features.n_rows,
        "dim": features.dim,
        "bad_rows": sorted(features.bad_rows.items()),
    }


def remembered(facts: Mapping[str, Any], config: BackboneConfig) -> RememberedRows:
    """The features that ``remember`` described, on the backbone or encoder of ``config`` if they were computed; on
    whichever kind of device that was."""
    if facts.get("encoder") is not None and not made_by(load_encoder(config, "cpu"), facts["encoder"]):
        raise WeightsError("The model was trained with another encoder of texts, or with other weights of it.")
    if facts["backbone"] is None:
        return RememberedRows(facts, ResidualAdapter(facts["dim"], dropout=config.dropout))
    backbone = load_backbone(config, "cpu")
    if facts["backbone"] not in {one.fingerprint for one in (backbone, *backbone.elsewhere())}:
        raise WeightsError(f"The model was trained on another version of the backbone {config.name!r} or its weights.")
    return RememberedRows(facts, backbone.new_tail())
