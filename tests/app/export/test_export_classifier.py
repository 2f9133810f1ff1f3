"""The exported classifier: two files without pickles that predict as the model they came from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from agcd.app.export.classifier import Classifier, classifier_of_run, load_classifier, preprocess, write_classifier
from agcd.config import BackboneConfig
from agcd.data.sources import from_folder
from agcd.errors import AgcdError, WeightsError
from agcd.features import open_features
from agcd.training.fitted import Fitted
from support.datasets import toy_images
from support.exports import SLOTS, random_pixels, saved_linear_run, saved_run
from support.vits import random_vit

TOY = BackboneConfig(name="toy", image_size=32, cache="off")
CONV = BackboneConfig(name="toy_conv", image_size=32, cache="off")


def written(folder: Path, config: BackboneConfig = TOY) -> Classifier:
    classifier = classifier_of_run(saved_run(folder, config), config, SLOTS)
    write_classifier(folder / "out", classifier)
    return classifier


@pytest.mark.parametrize("config", [TOY, CONV], ids=lambda config: config.name)
def test_a_loaded_classifier_predicts_as_the_model_it_came_from(config: BackboneConfig, tmp_path: Path) -> None:
    written(tmp_path, config)
    dataset = from_folder(toy_images(tmp_path / "images", size=75))
    features = open_features(dataset, config, tmp_path)
    expected = Fitted.load(tmp_path / "run.safetensors", features).predict(features, np.arange(dataset.n_rows))
    classifier = load_classifier(tmp_path / "out")
    views = np.stack([preprocess(path, classifier.image_size) for path in dataset.paths or ()])
    found = torch.cat([classifier(torch.from_numpy(views[i : i + 4])) for i in range(0, len(views), 4)])
    np.testing.assert_allclose(found.numpy(), expected.probs, atol=1e-6)
    assert not found.requires_grad
    assert classifier.slots == SLOTS
    assert classifier.model_id == expected.model_id


def test_a_linear_head_is_exported_with_its_biases(tmp_path: Path) -> None:
    run = saved_linear_run(tmp_path, CONV)
    write_classifier(tmp_path / "out", classifier_of_run(run, CONV, SLOTS))
    dataset = from_folder(toy_images(tmp_path / "images", size=75))
    features = open_features(dataset, CONV, tmp_path)
    expected = Fitted.load(run, features).predict(features, np.arange(dataset.n_rows))
    classifier = load_classifier(tmp_path / "out")
    views = np.stack([preprocess(path, classifier.image_size) for path in dataset.paths or ()])
    np.testing.assert_allclose(classifier(torch.from_numpy(views)).numpy(), expected.probs, atol=1e-6)
    weights, biases = classifier.head.linear_weights()
    assert biases.abs().min() > 0
    by_hand = ((torch.from_numpy(expected.features) @ weights.T + biases) / 0.5).softmax(1)
    np.testing.assert_allclose(by_hand.numpy(), expected.probs, atol=1e-6)
    assert json.loads((tmp_path / "out" / "model.json").read_text())["head"] == "linear"


def test_only_what_prediction_needs_is_written(tmp_path: Path) -> None:
    written(tmp_path)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"model.safetensors", "model.json"}
    names = set(safetensors.torch.load_file(tmp_path / "out" / "model.safetensors"))
    assert {"prototypes", "center", "scale"} <= names
    assert {name.partition(".")[0] for name in names} == {"prototypes", "center", "scale", "tail"}


def test_the_facts_tell_how_to_use_the_model(tmp_path: Path) -> None:
    written(tmp_path)
    facts = json.loads((tmp_path / "out" / "model.json").read_text())
    assert facts["backbone"]["name"] == "toy"
    assert facts["head"] == "cosine"
    assert [c["name"] for c in facts["classes"]] == [slot.name for slot in SLOTS]
    assert [c["known"] for c in facts["classes"]] == [True, True, False, False]
    assert [c["named"] for c in facts["classes"]] == [True, True, True, False]
    assert (facts["preprocessing"]["resize_short_side"], facts["preprocessing"]["crop"]) == (37, 32)
    assert facts["preprocessing"]["mean"] == [0.5, 0.5, 0.5]
    assert "load_classifier" in facts["how_to_load"]
    assert str(tmp_path) not in json.dumps(facts)


def test_classifiers_of_the_first_format_can_be_read(tmp_path: Path) -> None:
    classifier, path = written(tmp_path), tmp_path / "out" / "model.json"
    facts = json.loads(path.read_text())
    for found in facts["classes"]:
        found["kind"] = "old" if found.pop("known") else "new"
    path.write_text(json.dumps(facts | {"format": 1}))
    assert load_classifier(tmp_path / "out").slots == classifier.slots


def test_weights_of_a_backbone_are_looked_for_beside_the_classifier_or_named(tmp_path: Path) -> None:
    file = tmp_path / "vit.safetensors"
    vit = random_vit(img_size=32, patch_size=16, embed_dim=64, num_heads=2, depth=6, mlp_ratio=3)
    safetensors.torch.save_file(vit.state_dict(), file)
    config = BackboneConfig(name="test_vit", weights=file, image_size=32)
    classifier = written(tmp_path, config)
    images = torch.from_numpy(random_pixels(2, 32))
    with pytest.raises(WeightsError, match=r"vit\.safetensors"):
        load_classifier(tmp_path / "out")
    torch.testing.assert_close(load_classifier(tmp_path / "out", file)(images), classifier(images))
    moved = file.rename(tmp_path / "out" / file.name)
    torch.testing.assert_close(load_classifier(tmp_path / "out")(images), classifier(images))
    vit.cls_token.data.add_(1)
    safetensors.torch.save_file(vit.state_dict(), moved)
    with pytest.raises(WeightsError, match="another version of the backbone"):
        load_classifier(tmp_path / "out")


def change(**values: Any) -> Any:
    return lambda facts: facts.update(values)


DAMAGE: dict[str, tuple[Any, str]] = {
    "a newer format": (change(format=4), "format 4"),
    "no classes": (lambda facts: facts.pop("classes"), "does not describe a classifier"),
    "classes of another kind": (change(classes=[1]), "does not describe a classifier"),
    "too few classes": (lambda facts: facts["classes"].pop(), "3 are named"),
    "a temperature that is none": (change(student_temp="hot"), "does not describe a classifier"),
    "a huge image": (lambda facts: facts["backbone"].update(image_size=10**9), "does not describe a classifier"),
    "an unknown backbone": (lambda facts: facts["backbone"].update(name="toi"), "There is no backbone"),
    "another backbone": (lambda facts: facts["backbone"].update(name="toy_conv"), "does not fit the backbone"),
    "another digest": (lambda facts: facts["weights"].update(sha256="0"), "not the file"),
    "no facts at all": (lambda facts: facts.clear(), "format None"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_facts_are_one_sentence(name: str, tmp_path: Path) -> None:
    written(tmp_path)
    path = tmp_path / "out" / "model.json"
    facts = json.loads(path.read_text())
    damage, piece = DAMAGE[name]
    damage(facts)
    path.write_text(json.dumps(facts))
    with pytest.raises(AgcdError, match=piece) as refused:
        load_classifier(tmp_path / "out")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, '{"format": NaN}'])
def test_facts_that_are_no_facts_are_one_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(text)
    with pytest.raises(WeightsError):
        load_classifier(tmp_path)
    with pytest.raises(WeightsError, match="cannot be read"):
        load_classifier(tmp_path / "nowhere")


def test_weights_that_are_not_numbers_or_no_weights_are_refused(tmp_path: Path) -> None:
    classifier = written(tmp_path)
    classifier.head.prototypes[0, 0] = torch.nan
    write_classifier(tmp_path / "out", classifier)
    with pytest.raises(WeightsError, match="prototypes holds NaN"):
        load_classifier(tmp_path / "out")
    (tmp_path / "out" / "model.safetensors").write_bytes(b"\x80\x04pickle")
    with pytest.raises(WeightsError, match="not the file"):
        load_classifier(tmp_path / "out")
