"""The ONNX file: pixels in, named classes out, the same numbers as torch, nothing beside it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from agcd.app.export.classifier import Classifier, classifier_of_run
from agcd.app.export.onnx import write_onnx
from agcd.config import BackboneConfig
from agcd.errors import AgcdError, ConfigError
from agcd.features.onnx_graph import to_onnx
from support.exports import SLOTS, random_pixels, saved_linear_run, saved_run
from support.vits import random_vit

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")


def tiny_vit(folder: Path) -> BackboneConfig:
    """A timm transformer with random weights, which gets the exact class-token tail."""
    file = folder / "vit.safetensors"
    vit = random_vit(img_size=32, patch_size=16, embed_dim=64, num_heads=2, depth=6, mlp_ratio=3)
    safetensors.torch.save_file(vit.state_dict(), file)
    return BackboneConfig(name="test_vit", weights=file, image_size=32)


def config_of(name: str, folder: Path) -> BackboneConfig:
    if name == "vit":
        return tiny_vit(folder)
    return BackboneConfig(name=name, image_size=64 if name == "efficientnet_lite0" else 32)


def exported(folder: Path, config: BackboneConfig) -> tuple[Classifier, Any]:
    classifier = classifier_of_run(saved_run(folder, config), config, SLOTS)
    write_onnx(folder / "out" / "model.onnx", classifier)
    return classifier, onnxruntime.InferenceSession(folder / "out" / "model.onnx", providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("name", ["toy", "toy_conv", "efficientnet_lite0", "vit"])
def test_onnxruntime_and_torch_agree(name: str, tmp_path: Path) -> None:
    classifier, session = exported(tmp_path, config_of(name, tmp_path))
    for n in (9, 1):
        images = random_pixels(n, classifier.image_size, seed=n)
        probabilities, slots, classes = session.run(["probabilities", "slot", "class"], {"image": images})
        expected = classifier(torch.from_numpy(images)).numpy()
        np.testing.assert_allclose(probabilities, expected, atol=1e-4)
        np.testing.assert_array_equal(slots, expected.argmax(1))
        assert classes.tolist() == [SLOTS[slot].name for slot in slots]
        if n > 1:
            assert probabilities.std(0).max() > 1e-3, "the images must not all look alike"


def test_onnxruntime_and_torch_agree_on_a_linear_head(tmp_path: Path) -> None:
    config = config_of("toy_conv", tmp_path)
    classifier = classifier_of_run(saved_linear_run(tmp_path, config), config, SLOTS)
    write_onnx(tmp_path / "model.onnx", classifier)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    images = random_pixels(9, classifier.image_size)
    (found,) = session.run(["probabilities"], {"image": images})
    np.testing.assert_allclose(found, classifier(torch.from_numpy(images)).numpy(), atol=1e-4)


@pytest.fixture(scope="module")
def toy_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    exported(folder, BackboneConfig(name="toy_conv", image_size=32))
    (file,) = (folder / "out").iterdir()
    return file


def test_the_file_stands_alone_and_describes_itself(toy_file: Path) -> None:
    model = onnx.load(toy_file, load_external_data=False)
    onnx.checker.check_model(model, full_check=True)
    assert not any(tensor.external_data for tensor in model.graph.initializer)
    session = onnxruntime.InferenceSession(toy_file, providers=["CPUExecutionProvider"])
    shapes = [(value.name, value.type, value.shape) for value in (*session.get_inputs(), *session.get_outputs())]
    assert shapes == [
        ("image", "tensor(uint8)", ["n", 32, 32, 3]),
        ("probabilities", "tensor(float)", ["n", len(SLOTS)]),
        ("slot", "tensor(int64)", ["n"]),
        ("class", "tensor(string)", ["n"]),
    ]
    facts = session.get_modelmeta().custom_metadata_map
    classes = json.loads(facts["agcd.classes"])
    assert [(c["name"], c["known"]) for c in classes] == [(s.name, s.is_old) for s in SLOTS]
    assert json.loads(facts["agcd.preprocessing"])["resize_short_side"] == 37
    assert facts["agcd.backbone"] == "toy_conv"


def test_the_file_names_no_file_of_this_machine(toy_file: Path) -> None:
    content = toy_file.read_bytes()
    for piece in (b"site-packages", b"stack_trace", str(Path.cwd()).encode(), str(toy_file.parent).encode(), b".py"):
        assert piece not in content


@pytest.mark.parametrize("missing", ["onnx", "onnxruntime", "onnxscript"])
def test_a_missing_library_is_one_sentence(missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = BackboneConfig(name="toy_conv", image_size=32)
    classifier = classifier_of_run(saved_run(tmp_path, config), config, SLOTS)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ConfigError, match=r"^Install agcd\[onnx\] to write ONNX files\.$"):
        write_onnx(tmp_path / "model.onnx", classifier)


def test_a_file_that_would_predict_otherwise_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = BackboneConfig(name="toy_conv", image_size=32)
    classifier = classifier_of_run(saved_run(tmp_path, config), config, SLOTS)

    def build_wrongly(wanted: Classifier, *how: Any) -> Any:
        model = to_onnx(wanted, *how)
        wanted.head.prototypes.copy_(wanted.head.prototypes.flip(0))
        return model

    monkeypatch.setattr("agcd.app.export.onnx.to_onnx", build_wrongly)
    with pytest.raises(AgcdError, match="was not written"):
        write_onnx(tmp_path / "model.onnx", classifier)
    assert not (tmp_path / "model.onnx").exists()
