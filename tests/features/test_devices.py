"""Features and tails on a device, in half precision, and what the names of devices mean."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from agcd.config import BackboneConfig
from agcd.data.folder import from_folder
from agcd.data.texts import from_texts
from agcd.errors import ConfigError
from agcd.features import open_features
from agcd.features.backbones import load_backbone
from agcd.features.devices import count_devices, find_device, free_bytes, in_memory, sent
from agcd.features.fused import attend, clipped_mean
from agcd.features.reading import read_in_turn
from agcd.features.rows import EmbeddingRows, OnlineRows, StoredRows, open_stored
from agcd.features.tails import ClassTokenTail, ExactClassTokenTail, PointwiseConvTail, ResidualAdapter
from agcd.features.text_encoders import load_encoder
from agcd.training.runs import autocast
from support.datasets import toy_images
from support.pretend_device import DEVICE, NAME, TRAFFIC, counted, pretend_device
from support.vits import random_vit, relative

TOY = BackboneConfig(name="toy", image_size=32, views=2)
CPU = torch.device("cpu")
TAILS = ("exact", "class token", "clipped", "smooth", "adapter")


@pytest.fixture
def device() -> Iterator[None]:
    with pretend_device():
        yield


class TestThePretendedDevice:
    """It must refuse what a GPU refuses, else tests on it show nothing."""

    @pytest.fixture(autouse=True)
    def here(self, device: None) -> None:
        pass

    def test_tensors_of_two_places_do_not_mix(self) -> None:
        there, here = torch.ones(3, device=DEVICE), torch.ones(3)
        for mixed in (
            lambda: there + here,
            lambda: there[torch.tensor([0, 1])],
            lambda: there.index_select(0, torch.tensor([0])),
            lambda: torch.cat([there, here]),
            lambda: torch.add(there, there, out=here),
            lambda: there + torch.ones(3, device=f"{NAME}:1"),
        ):
            with pytest.raises(RuntimeError, match="expected all tensors on one device"):
                mixed()  # type: ignore[no-untyped-call]
        assert (there + torch.tensor(1.0)).cpu().tolist() == [2, 2, 2], "a number may come from anywhere"

    def test_numpy_is_refused_and_copies_and_waits_are_counted(self) -> None:
        there = torch.arange(4.0, device=DEVICE)
        with pytest.raises(TypeError, match="can't convert pretend:0 device type tensor to numpy"):
            there.numpy()
        assert counted(lambda: torch.ones(2).to(DEVICE)).to_device == 1
        assert counted(lambda: there.cpu()).to_cpu == 1
        for waits in (
            lambda: float(there[0]),
            lambda: there[there > 1],
            lambda: (there > 1).nonzero(),
            lambda: bool((there > 1).any()),
        ):
            assert counted(waits).waits == 1

    def test_a_copy_on_another_stream_may_not_be_read_before_somebody_waited(self) -> None:
        module: Any = torch.get_device_module(NAME)
        stream = module.Stream()
        with module.stream(stream):
            coming = torch.ones(3).to(DEVICE)
        with pytest.raises(RuntimeError, match="nobody has waited for"):
            coming + 1
        module.current_stream(DEVICE).wait_stream(stream)
        assert (coming + 1).cpu().tolist() == [2, 2, 2]


def test_names_of_devices(device: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_device("cpu") == CPU
    assert find_device("auto") == torch.device("cuda" if torch.cuda.is_available() else "cpu", 0) or CPU
    assert find_device(NAME) == DEVICE
    assert find_device(f"{NAME}:1") == torch.device(NAME, 1)
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert find_device(NAME) == torch.device(NAME, 1), "processes are dealt out to what there is"
    assert find_device(f"{NAME}:0") == DEVICE, "who names one gets it"
    assert count_devices("cuda") == torch.cuda.device_count()
    assert free_bytes(DEVICE) == TRAFFIC.free


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("gpu", r"Unknown device 'gpu': auto, cpu, cuda, cuda:1 or mps is expected\."),
        (f"{NAME}:2", r"Device 'pretend:2' is not here: there are 2, counted from 0\. Set device to one that is, or"),
        ("xpu", r"Device 'xpu' is not here: torch finds none of its kind\."),
    ],
)
def test_a_device_that_is_not_here_is_one_sentence(device: None, name: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        find_device(name)


def test_numbers_go_there_and_come_back(device: None) -> None:
    there = sent(np.arange(3), DEVICE)
    assert there.device == DEVICE
    assert sent(there, DEVICE) is there
    np.testing.assert_array_equal(in_memory(there.requires_grad_(False)), np.arange(3))


def test_batches_come_in_order_and_one_ahead(device: None) -> None:
    x = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    seen: list[int] = []

    class Noted(EmbeddingRows):
        def read(self, rows: Any, views: Any, *rest: Any) -> Tensor:
            seen.append(int(rows[0]))
            return super().read(rows, views, *rest)

    features = Noted(x, dropout=0.0)
    requests = [(np.arange(n, n + 10), np.zeros(10, np.int64)) for n in (0, 10, 20, 30)]
    for number, batch in enumerate(read_in_turn(features, requests, DEVICE)):
        assert seen[-1] == min(10 * number + 10, 30), "the next batch is on its way while this one is used"
        np.testing.assert_array_equal(batch.cpu().numpy(), features._x[10 * number : 10 * number + 10].numpy())


def gradients(tail: nn.Module, inputs: Tensor, precision: str = "float32") -> dict[str, Tensor]:
    """Of the sum of the outputs, weighted; and the outputs themselves."""
    tail.zero_grad()
    with autocast(inputs.device, precision):
        outputs = tail(inputs)
    weights = torch.randn(outputs.shape, generator=torch.Generator().manual_seed(2)).to(inputs.device)
    (outputs.float() * weights).sum().backward()
    found = {name: p.grad.clone() for name, p in tail.named_parameters() if p.grad is not None}
    return found | {"outputs": outputs.detach().float()}


def tails() -> dict[str, tuple[nn.Module, Tensor]]:
    """Every tail with an input of 40 samples: more than a piece of the fused products."""
    draw = torch.Generator().manual_seed(0)
    vit = random_vit(embed_dim=32, num_heads=2, depth=1, img_size=32, patch_size=8)
    x = torch.randn(40, 17, 32, generator=draw)
    conv = nn.Conv2d(6, 10, 1, bias=False)
    places = torch.randn(40, 9, 6, generator=draw)
    adapter = ResidualAdapter(8)
    with torch.no_grad():
        conv.weight.copy_(torch.randn(conv.weight.shape, generator=draw))
        adapter.fc2.weight.copy_(torch.randn(adapter.fc2.weight.shape, generator=draw))
    return {
        "exact": (ExactClassTokenTail(vit.blocks[-1], vit.norm), torch.cat([x, x[:, :1]], 1).half()),
        "class token": (ClassTokenTail(vit.blocks[-1], vit.norm), x.half()),
        "clipped": (PointwiseConvTail(conv, nn.BatchNorm2d(10).eval(), nn.ReLU6()), places.half()),
        "smooth": (PointwiseConvTail(conv, nn.BatchNorm2d(10).eval(), nn.SiLU()), places.half()),
        "adapter": (adapter, torch.randn(40, 8, generator=draw)),
    }


@pytest.mark.parametrize("name", TAILS)
def test_a_tail_has_the_cpus_gradients_on_a_device_and_nobody_waits(name: str, device: None) -> None:
    tail, inputs = tails()[name]
    here = gradients(tail, inputs)
    tail.to(DEVICE)
    there_inputs = inputs.to(DEVICE)
    found: dict[str, Tensor] = {}
    traffic = counted(lambda: found.update(gradients(tail, there_inputs)))
    assert (traffic.to_device, traffic.to_cpu, traffic.waits) == (1, 0, 0), "but for the weights that the test sends"
    assert found.keys() == here.keys()
    for key, expected in here.items():
        torch.testing.assert_close(found[key].cpu(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("precision", "bound"), [("bfloat16", 3e-2), ("float16", 5e-3)])
@pytest.mark.parametrize("name", TAILS)
def test_a_tail_in_half_precision_has_nearly_the_same_gradients(name: str, precision: str, bound: float) -> None:
    tail, inputs = tails()[name]
    exact, rounded = gradients(tail, inputs), gradients(tail, inputs, precision)
    assert exact.keys() == rounded.keys()
    for key, expected in exact.items():
        assert rounded[key].dtype == torch.float32, "weights and their gradients stay float32"
        if expected.norm() > 1e-3:
            assert 0 < relative(rounded[key], expected) < bound, key


def test_fused_products_are_written_plainly_under_autocast() -> None:
    """Else they would compute in float32 whatever the precision: their gradients are their own."""
    draw = torch.Generator().manual_seed(0)
    u, x = torch.randn(3, 2, 8, generator=draw), torch.randn(3, 5, 8, generator=draw).half()
    weight, bias = torch.randn(4, 8, generator=draw, requires_grad=True), torch.zeros(4)
    with autocast(CPU, "bfloat16"):
        assert attend(u, x).dtype == torch.bfloat16
        assert "Clipped" not in repr(clipped_mean(x, weight, bias, 6.0).grad_fn)
    assert attend(u, x).dtype == torch.float32
    assert "Clipped" in repr(clipped_mean(x, weight, bias, 6.0).grad_fn)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return from_folder(toy_images(tmp_path_factory.mktemp("pictures"), n_per_class=4))


@pytest.mark.parametrize("name", ["toy", "toy_conv"])
@pytest.mark.parametrize("blocks", [0, 1])
def test_features_are_computed_on_the_device_and_kept_apart(
    name: str, blocks: int, device: None, pictures: Any, tmp_path: Path
) -> None:
    config = TOY.model_copy(update={"name": name, "trainable_blocks": blocks})
    here, there = load_backbone(config, "cpu"), load_backbone(config, NAME)
    assert {here.device.type, there.device.type} == {"cpu", NAME}
    assert here.fingerprint != there.fingerprint, "the last bits differ between devices"
    stores = [open_stored(pictures, b, 2, tmp_path / b.made_on, workers=0) for b in (here, there)]
    rows, views = np.arange(pictures.n_rows), np.zeros(pictures.n_rows, np.int64)
    torch.testing.assert_close(stores[1].read(rows, views), stores[0].read(rows, views), rtol=1e-3, atol=1e-3)


def test_a_cache_that_a_gpu_has_filled_is_read_without_one(
    pictures: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    elsewhere = next(iter(load_backbone(TOY, "cpu").elsewhere()))
    assert elsewhere.made_on == "cuda"
    filled = open_stored(pictures, elsewhere, 2, tmp_path, workers=0)
    caplog.set_level(logging.INFO)
    features = open_features(pictures, TOY, tmp_path, device="cpu", workers=0)
    assert features.fingerprint == filled.fingerprint
    told = "features are read that were computed on cuda by torch"
    assert caplog.messages.count(told) == 1
    open_features(pictures, TOY.model_copy(update={"views": 3}), tmp_path, device="cpu", workers=0)
    assert caplog.messages.count(told) == 1, "where one view is missing all are computed here: none are mixed"


def test_extraction_goes_on_in_smaller_passes(
    device: None, pictures: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = open_stored(pictures, load_backbone(TOY, NAME), 2, tmp_path / "whole", workers=0)
    TRAFFIC.limits = {"aten::gelu": 5 * 17 * 128 * 4}  # what the toy's first block makes of five crops
    small = open_stored(pictures, load_backbone(TOY, NAME), 2, tmp_path / "small", workers=0)
    told = [message for message in caplog.messages if "extraction goes on in passes" in message]
    assert told
    assert len(told) < 8, "what was learned of one pass is kept for the next"
    rows, views = np.arange(pictures.n_rows), np.ones(pictures.n_rows, np.int64)
    torch.testing.assert_close(small.read(rows, views), whole.read(rows, views), rtol=2e-3, atol=2e-3)


def test_features_computed_at_every_read_stay_on_the_device(device: None, pictures: Any) -> None:
    here, there = (OnlineRows(pictures, load_backbone(TOY, place)) for place in ("cpu", NAME))
    rows, views = np.array([0, 3, 5, 0]), np.array([0, 2, 0, 0])
    for read_views in (views, np.zeros_like(views), np.zeros_like(views)):
        found = there.read(rows, read_views)
        assert found.device == DEVICE
        torch.testing.assert_close(found.cpu(), here.read(rows, read_views), rtol=1e-4, atol=1e-5)
    again = counted(lambda: there.read(rows, np.zeros_like(views)))
    assert again.to_device == 1, "test views are kept there"


def test_texts_are_embedded_on_the_device(device: None, tmp_path: Path) -> None:
    texts = ["Where is my card?", "How do I top up?", "Where is my card? " * 80]
    config = BackboneConfig()
    here, there = load_encoder(config, "cpu"), load_encoder(config, NAME)
    np.testing.assert_allclose(here(texts), there(texts), atol=1e-5)
    assert here.fingerprint != there.fingerprint
    dataset = from_texts(texts)
    stored = open_features(dataset, config, tmp_path, device=NAME)
    assert isinstance(stored, EmbeddingRows | StoredRows)
