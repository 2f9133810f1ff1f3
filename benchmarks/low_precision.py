"""What frozen transformers would gain from int8 and bfloat16, in speed, and what it would cost.

    python benchmarks/low_precision.py [--quick]

ViT-S/16 and ViT-B/16 at 224 pixels with random weights, as no trained ones come with agcd, on photographs of
groceries14; and the sentence encoder MiniLM-L6-v2 with its own weights on the texts of banking20, where accuracy
means something. Linear layers in int8: weights per channel, activations as each batch needs (torch's dynamic
quantisation, and onnxruntime's). Compared with what agcd computes, float32. Output is Markdown.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

# isort: split

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from agcd.arrays import unit
from agcd.config import BackboneConfig
from agcd.data.decoding import Decoder
from agcd.features.backbones import Backbone, load_backbone
from agcd.features.decoding import decoded_now
from agcd.features.onnx_graph import one_core_session
from agcd.features.products import Linear
from agcd.features.text_encoders import BertEncoder, load_encoder
from agcd.features.torchvision_compat import import_timm
from agcd.features.views import Bad, ViewJob
from agcd.lab.datasets import banking20, load_data
from agcd.propagation import nearest
from agcd.types import Dataset, FloatArray

N_NEIGHBOURS = 10
CROPS_A_PASS = 4
"""As agcd takes them on a CPU."""

Way = Callable[[], FloatArray]


def in_int8(network: nn.Module) -> nn.Module:
    """A copy whose linear layers multiply in int8."""
    copy = deepcopy(network)
    for layer in copy.modules():
        if type(layer) is Linear:
            layer.__class__ = nn.Linear  # type: ignore[assignment]  # by this type torch finds them
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch moves quantisation into a package of its own
        torch.backends.quantized.engine = "x86"
        quantised: nn.Module = torch.ao.quantization.quantize_dynamic(copy, {nn.Linear}, torch.qint8)  # type: ignore[no-untyped-call]
    return quantised


def in_int8_graph(graph: bytes, folder: Path) -> bytes:
    """The graph with products of weights in int8."""
    from onnxruntime.quantization import QuantType, quantize_dynamic  # type: ignore[import-untyped]

    (folder / "float.onnx").write_bytes(graph)
    quantize_dynamic(folder / "float.onnx", folder / "int8.onnx", per_channel=True, weight_type=QuantType.QInt8)
    return (folder / "int8.onnx").read_bytes()


def in_bfloat16(run: Callable[[Any], Tensor]) -> Callable[[Any], Tensor]:
    def lower(inputs: Any) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return run(inputs).float()

    return lower


def measured(ways: dict[str, Way], repeats: int) -> tuple[dict[str, float], dict[str, FloatArray]]:
    """Median processor seconds of every way after one warm-up, in turns, and what each gives."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    found = {name: way() for name, way in ways.items()}
    for turn in range(repeats):
        for name in ways if turn % 2 else reversed(ways):
            start = time.process_time()
            ways[name]()
            times[name].append(time.process_time() - start)
    return {name: statistics.median(seconds) for name, seconds in times.items()}, found


def kept_neighbours(expected: FloatArray, found: FloatArray) -> float:
    """The share of every row's nearest neighbours that are the same ones."""
    near, other = (nearest(unit(x), N_NEIGHBOURS)[0] for x in (expected, found))
    return float(np.mean([len(np.intersect1d(a, b)) / N_NEIGHBOURS for a, b in zip(near, other, strict=True)]))


def compare_vit(name: str, n_photographs: int, repeats: int, folder: Path) -> None:
    timm = import_timm()
    torch.manual_seed(0)
    weights = folder / f"{name}.safetensors"
    safetensors.torch.save_file(timm.create_model(name, num_classes=0).state_dict(), weights)
    backbone = load_backbone(BackboneConfig(name=name, weights=weights), "cpu")
    crops = photographs(backbone, n_photographs, folder)
    eight = load_backbone(BackboneConfig(name=name, weights=weights), "cpu")
    object.__setattr__(eight, "network", in_int8(eight.network))
    graph = load_backbone(BackboneConfig(name=name, weights=weights, runner="onnx"), "cpu")._graph
    runs: dict[str, Callable[[Any], Tensor]] = {
        "float32 by torch, as agcd computes": backbone.prefix,
        "float32 by onnxruntime": one_core_session(graph),
        "bfloat16 by torch": in_bfloat16(backbone.prefix),
        "int8 by torch": eight.prefix,
        "int8 by onnxruntime": one_core_session(in_int8_graph(graph, folder)),
    }
    tail = backbone.new_tail().eval()

    def tokens(run: Callable[[Any], Tensor]) -> Way:
        passes = [crops[start : start + CROPS_A_PASS] for start in range(0, len(crops), CROPS_A_PASS)]
        return lambda: torch.cat([run(part) for part in passes]).numpy()

    seconds, found = measured({way: tokens(run) for way, run in runs.items()}, repeats)
    with torch.inference_mode():
        features = {way: tail(torch.from_numpy(values)).numpy() for way, values in found.items()}
    first = next(iter(runs))
    print(f"\n### {name}, {len(crops)} photographs\n")
    print("| way | crops/s | ratio | error of tokens | neighbours kept |\n|---|---|---|---|---|")
    for way, values in found.items():
        error = np.linalg.norm(values - found[first]) / np.linalg.norm(found[first])
        kept = kept_neighbours(features[first], features[way])
        row = f"{len(crops) / seconds[way]:.1f} | {seconds[first] / seconds[way]:.2f}× | {error:.1e} | {kept:.0%}"
        print(f"| {way} | {row} |", flush=True)


def photographs(backbone: Backbone, n: int, folder: Path) -> NDArray[np.uint8]:
    """Test views (n, size, size, 3) of photographs that come with agcd."""
    dataset, decoder, crops = load_data("groceries14", folder), Decoder(), []
    assert dataset.paths is not None
    step = dataset.n_rows // n
    for row in range(0, n * step, step):
        found = decoded_now(decoder, ViewJob(str(dataset.paths[row]), dataset.keys[row], (0,)), backbone.view_spec)
        assert not isinstance(found, Bad)
        crops.append(found[0])
    return np.stack(crops)


def compare_texts(n_texts: int, repeats: int, folder: Path) -> None:
    dataset = banking20(folder)
    assert dataset.texts is not None
    rows = np.random.default_rng(0).permutation(dataset.n_rows)[:n_texts]
    texts = [dataset.texts[row] for row in rows]
    plain, lower, eight = (opened() for _ in range(3))
    for encoder, change in ((lower, _Lower), (eight, in_int8)):
        assert encoder._opened is not None
        tokenizer, network = encoder._opened
        encoder._opened = (tokenizer, change(network))
    encoders = {"float32, as agcd computes": plain, "bfloat16": lower, "int8": eight}
    seconds, found = measured({way: partial(encoder, texts) for way, encoder in encoders.items()}, repeats)
    first = next(iter(encoders))
    print(f"\n### MiniLM-L6-v2, {len(texts):,} texts\n")
    print("| way | texts/s | ratio | mean cosine | neighbours kept | 1-NN accuracy |\n|---|---|---|---|---|---|")
    for way, x in found.items():
        cosine, right = (x * found[first]).sum(1).mean(), one_nn(x, dataset, rows)
        row = f"{len(texts) / seconds[way]:.0f} | {seconds[first] / seconds[way]:.2f}× | {cosine:.5f}"
        print(f"| {way} | {row} | {kept_neighbours(found[first], x):.0%} | {right:.1%} |", flush=True)


class _Lower(nn.Module):
    """A network whose products are of bfloat16."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.run = in_bfloat16(network)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.run(tokens)


def opened() -> BertEncoder:
    """The default encoder with its network read."""
    encoder = load_encoder(BackboneConfig(), "cpu")
    assert isinstance(encoder, BertEncoder)
    encoder(["a word"])
    return encoder


def one_nn(x: FloatArray, dataset: Dataset, rows: NDArray[np.int64]) -> float:
    """Share of the test rows whose nearest train row is of their class."""
    y, is_test = dataset.y_class[rows], dataset.is_test[rows]
    near = (unit(x[is_test]) @ unit(x[~is_test]).T).argmax(1)
    return float((y[~is_test][near] == y[is_test]).mean())


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer photographs, texts and repeats; ViT-S only")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    n, repeats = (24, 1) if options.quick else (120, 3)
    print(f"One thread, processor seconds; medians of {repeats}. Ratios, errors: against each table's first line.")
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("vit_small_patch16_224", "vit_base_patch16_224")[: 1 if options.quick else 2]:
            compare_vit(name, n, repeats, Path(scratch))
        compare_texts(200 if options.quick else 1600, repeats, Path(scratch))


if __name__ == "__main__":
    main()
