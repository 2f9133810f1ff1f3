"""What a study's features come from, in words, and whether the paper's numbers may stand beside its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agcd.config import make_config, merged
from agcd.lab.paper.study import QUICK, Study
from agcd.lab.published import parse_spec, with_preset
from agcd.lab.starts import PUBLISHED

PAPER_BACKBONE = "vit_base_patch16_224.dino"
PAPER_BLOCKS, PAPER_IMAGE_SIZE = 1, 224
PAPER_PROTOCOLS = ("paper", "official")
NETWORKS = {"efficientnet_lite0": "EfficientNet-Lite0", PAPER_BACKBONE: "ViT-B/16 DINO"}
"""Names that the literature uses; any other network is called what timm calls it."""
EMBEDDINGS = {"texts": "sentence embeddings, an adapter trained", "embeddings": "given embeddings, an adapter trained"}
"""What stands in a heading where the features are not those of images."""
_FREE = {"device", "backbone", "train.precision", "train.compile", "train.deterministic", "query.stability"}
"""Settings that a study may change and still be the paper's: where and how precisely it is computed, how the backbone
is read (what matters of it is looked at one by one), and by which of the two readings a mapping is stable."""


def network_words(study: Study) -> str:
    """What was trained, as a heading says it: the network and how much of it learns."""
    if study.made_of in EMBEDDINGS:
        return EMBEDDINGS[study.made_of]
    backbone = study.config.backbone
    n_blocks = backbone.trainable_blocks
    name = NETWORKS.get(backbone.name, backbone.name)
    if n_blocks == 0:
        return f"{name}, frozen, an adapter trained"
    return f"{name}, {n_blocks} trainable block{'s' * (n_blocks > 1)}"


def why_withheld(study: Study) -> str | None:
    """Why the paper's numbers must not stand beside those of ``study``, as a sentence; None if they may."""
    known = parse_spec(study.data)
    if known is None:
        return f"The paper's numbers are withheld: {study.title} is not one of its data sets."
    reasons = list(_differences(study))
    return f"The paper's numbers are withheld: {'; '.join(reasons)}." if reasons else None


def _differences(study: Study) -> Iterator[str]:
    """What is not as in the paper, though the data set is one of its own."""
    backbone = study.config.backbone
    if backbone.name != PAPER_BACKBONE:
        name = NETWORKS.get(backbone.name, backbone.name)
        yield f"the backbone is {name}, the paper's {NETWORKS[PAPER_BACKBONE]} ({PAPER_BACKBONE})"
    if backbone.trainable_blocks != PAPER_BLOCKS:
        yield f"backbone.trainable_blocks is {backbone.trainable_blocks}, the paper trains {PAPER_BLOCKS}"
    if backbone.image_size != PAPER_IMAGE_SIZE:
        yield f"backbone.image_size is {backbone.image_size}, the paper's {PAPER_IMAGE_SIZE}"
    if study.protocol not in PAPER_PROTOCOLS:
        yield f"protocol {study.protocol} is none of {' and '.join(PAPER_PROTOCOLS)}"
    if study.quick:
        yield "--quick is too short"
    if study.split.get("classes", PUBLISHED) != PUBLISHED or set(study.split) - {"classes"}:
        yield "the split is not the paper's"
    if changed := changed_settings(study):
        yield f"settings of the protocol were changed ({', '.join(changed)})"


def changed_settings(study: Study) -> list[str]:
    """The settings, by their full names, that decide a run and are not those of the protocol on this data set."""
    of_protocol = merged(with_preset(study.data, {"protocol": study.protocol}), QUICK if study.quick else {})
    ours, theirs = (flat(config.model_dump(mode="json")) for config in (study.config, make_config(of_protocol)))
    changed = [name for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name)]
    return [name for name in changed if not {name, name.partition(".")[0]} & _FREE]


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings under dotted names."""
    result: dict[str, Any] = {}
    for name, value in settings.items():
        result |= flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return result
