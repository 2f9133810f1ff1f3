"""Whether the paper's numbers may stand beside a study's own, and what its headings call the features."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agcd.config import merged
from agcd.known_weights import KnownWeights, keep
from agcd.lab.datasets import load_data
from agcd.lab.paper.comparable import PAPER_BACKBONE, changed_settings, network_words, why_withheld
from agcd.lab.paper.run_paper import headline
from agcd.lab.paper.study import QUICK, Study, made_of
from agcd.lab.published import PUBLISHED, with_preset
from support.datasets import toy_images

VIT: dict[str, Any] = {"backbone": {"name": PAPER_BACKBONE, "weights": "any.pth"}}


def study(data: str = "cub=x", values: dict[str, Any] | None = None, **changes: Any) -> Study:
    """A study as ``open_study`` would make it, of what is nowhere."""
    settings = with_preset(data, merged({"protocol": "paper"}, VIT, values or {}))
    return replace(Study(data, 3, settings, {}, 100, 100, 100), **changes)


@pytest.mark.parametrize("name", sorted(PUBLISHED))
@pytest.mark.parametrize("protocol", ["paper", "official"])
def test_every_data_set_of_the_paper_may_be_compared_in_its_setting(name: str, protocol: str) -> None:
    assert why_withheld(study(f"{name}=somewhere", {"protocol": protocol})) is None


def test_weights_that_have_a_name_bring_the_backbone_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGCD_WEIGHTS", str(tmp_path))
    facts: dict[str, Any] = {"image_size": 224, "patch_size": 16, "licence": None, "source": None, "added": "today"}
    for name, backbone in (("mine", PAPER_BACKBONE), ("other", "vit_base_patch16_224")):
        keep(KnownWeights(name, backbone, "/weights/whatever.bin", "0" * 64, 1, **facts))
    named, other = (replace(study(), settings=of_weights(name)) for name in ("mine", "other"))
    assert why_withheld(named) is None
    assert network_words(named) == "ViT-B/16 DINO, 1 trainable block"
    assert "the backbone is vit_base_patch16_224, the paper's ViT-B/16 DINO" in str(why_withheld(other))


def of_weights(name: str) -> dict[str, Any]:
    return with_preset("cub=x", {"protocol": "paper", "backbone": {"weights": name}})


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"backbone": {"name": "efficientnet_lite0"}}, "the backbone is EfficientNet-Lite0, the paper's ViT-B/16 DINO"),
        ({"backbone": {"name": "vit_base_patch16_224"}}, "the backbone is vit_base_patch16_224,"),
        ({"backbone": {"trainable_blocks": 2}}, "backbone.trainable_blocks is 2, the paper trains 1"),
        ({"backbone": {"trainable_blocks": 0}}, "backbone.trainable_blocks is 0, the paper trains 1"),
        ({"backbone": {"image_size": 192}}, "backbone.image_size is 192, the paper's 224"),
        ({"protocol": "short"}, "protocol short is none of paper and official"),
        ({"protocol": "quick"}, "protocol quick is none of paper and official"),
        ({"train": {"base_epochs": 100}}, "settings of the protocol were changed (train.base_epochs)"),
        ({"train": {"pim": {"steps": 5}}, "n_slots": 150}, "changed (n_slots, train.pim.steps)"),
        ({"query": {"switch_round": 4}}, "settings of the protocol were changed (query.switch_round)"),
    ],
)
def test_each_difference_from_the_papers_setting_is_the_reason_alone(values: dict[str, Any], reason: str) -> None:
    said = str(why_withheld(study(values=values)))
    assert said.startswith("The paper's numbers are withheld: ")
    assert said.endswith(".")
    assert reason in said
    assert ";" not in said


def test_another_split_a_quick_run_and_other_data_are_reasons() -> None:
    quick = replace(study(), quick=True, settings=merged(study().settings, QUICK))
    assert why_withheld(quick) == "The paper's numbers are withheld: --quick is too short."
    for split in ({"classes": "seeded"}, {"classes": "mine.json"}, {"validation": 0.3}):
        assert why_withheld(study(split=split)) == "The paper's numbers are withheld: the split is not the paper's."
    assert why_withheld(study(split={"classes": "published"})) is None
    assert why_withheld(study("birds")) == "The paper's numbers are withheld: birds is not one of its data sets."


def test_all_reasons_are_said_together() -> None:
    said = str(why_withheld(study(values={"protocol": "short", "backbone": {"name": "resnet50"}})))
    assert "the backbone is resnet50" in said
    assert "; protocol short is none of paper and official." in said


def test_where_and_how_it_is_computed_makes_no_other_setting_of_it() -> None:
    values = {
        "device": "cuda:1",
        "backbone": {"views": 16, "cache": "off", "runner": "onnx"},
        "train": {"precision": "bfloat16", "compile": True, "base_epochs": 200},
        "query": {"stability": "literal"},
    }
    assert changed_settings(study(values=values)) == []
    assert why_withheld(study(values=values)) is None


@pytest.mark.parametrize(
    ("backbone", "words"),
    [
        ({}, "ViT-B/16 DINO, 1 trainable block"),
        ({"trainable_blocks": 2}, "ViT-B/16 DINO, 2 trainable blocks"),
        ({"name": "efficientnet_lite0"}, "EfficientNet-Lite0, 1 trainable block"),
        ({"name": "efficientnet_lite0", "trainable_blocks": 0}, "EfficientNet-Lite0, frozen, an adapter trained"),
        ({"name": "vit_small_patch14_dinov2"}, "vit_small_patch14_dinov2, 1 trainable block"),
    ],
)
def test_a_heading_names_the_network_and_how_much_of_it_learns(backbone: dict[str, Any], words: str) -> None:
    assert network_words(study(values={"backbone": backbone})) == words


def test_embeddings_have_no_network_to_name() -> None:
    assert network_words(study(made_of="embeddings")) == "given embeddings, an adapter trained"
    assert network_words(study(made_of="texts")) == "sentence embeddings, an adapter trained"


def test_what_a_data_set_is_made_of_follows_from_what_it_holds(tmp_path: Path) -> None:
    images = load_data(str(toy_images(tmp_path / "images")), tmp_path)
    assert made_of(images) == "images"
    assert made_of(load_data("banking20", tmp_path)) == "texts"
    assert made_of(load_data("toy", tmp_path)) == "embeddings"


def test_a_figure_says_once_what_is_the_same_for_all_its_data_sets() -> None:
    photographs, vectors = study(), study("x.npz", made_of="embeddings")
    assert headline([photographs, study("stanford_cars=x")]) == "ViT-B/16 DINO, 1 trainable block, protocol paper"
    assert headline([photographs, vectors]).splitlines() == [
        "CUB-200-2011: ViT-B/16 DINO, 1 trainable block, protocol paper",
        "x: given embeddings, an adapter trained, protocol paper",
    ]
