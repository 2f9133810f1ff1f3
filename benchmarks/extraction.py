"""How much faster features are extracted than in the plain way, stage by stage, and how far that is from the limit.

    python benchmarks/extraction.py [--quick]

Plain: one process that decodes every JPEG in full, and timm's layers over batches in NCHW with torch's own threads.
Ours: decoding at reduced scale in a worker process, and the prefix with merged norms, channels last, few crops per
pass and one thread per pass; with onnxruntime too where it is installed. Both compute the same part of the network.
The images are synthetic JPEGs of 640 × 480. Output is Markdown.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

# isort: split

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from agcd.config import BackboneConfig
from agcd.features.backbones import LITE0, Backbone, load_backbone
from agcd.features.cuts import cut
from agcd.features.decoding import decoded
from agcd.features.extract import computed, fill
from agcd.features.onnx_graph import has_onnx
from agcd.features.store import FeatureStore
from agcd.features.torchvision_compat import import_timm
from agcd.features.views import ViewJob, ViewSpec, load_views, render
from agcd.features.weights import load_lite0
from agcd.io import digest_bytes
from agcd.rng import generator

N_VIEWS = 4
SETTINGS = [(LITE0, 224, 0.25), (LITE0, 64, 1.0), ("vit_small_patch16_224", 224, 0.1)]
"""Network, size of its images, and the share of the JPEGs that it is given."""

Crops = NDArray[np.uint8]
Ways = dict[str, Callable[[], object]]


class Subject(NamedTuple):
    """One network in every form that is measured."""

    plain: nn.Module
    torch: Backbone
    onnx: Backbone | None
    export_seconds: float


def medians(ways: Ways, repeats: int) -> dict[str, float]:
    """Median seconds of every way after one warm-up; they take turns, so that a busy minute hurts them all."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeats + 1):
        for name in ways if turn % 2 else reversed(ways):
            start = time.perf_counter()
            ways[name]()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found[1:]) for name, found in times.items()}


def write_jpegs(folder: Path, n: int) -> list[ViewJob]:
    """Clouds of colour with some grain, about 100 KB each, and the jobs to decode them."""
    jobs = []
    for i in range(n):
        rng = generator(0, "jpeg", i)
        clouds = Image.fromarray(rng.integers(0, 256, (30, 40, 3), dtype=np.uint8)).resize((640, 480))
        grain = rng.integers(-12, 13, (480, 640, 3))
        buffer = BytesIO()
        pixels = np.clip(np.asarray(clouds) + grain, 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(buffer, "JPEG", quality=90)
        path = folder / f"{i:04d}.jpg"
        path.write_bytes(buffer.getvalue())
        jobs.append(ViewJob(str(path), digest_bytes(buffer.getvalue()), tuple(range(N_VIEWS))))
    return jobs


def subject(name: str, size: int, folder: Path) -> Subject:
    """The default network with its weights, any other with random ones."""
    timm = import_timm()
    torch.manual_seed(0)
    if name == LITE0:
        model = timm.create_model("tf_efficientnet_lite0", num_classes=0).eval().requires_grad_(False)
        load_lite0(model)
        plain: nn.Module = nn.Sequential(model.conv_stem, model.bn1, model.blocks, nn.Flatten(2))
        config = BackboneConfig(image_size=size)
    else:
        model = timm.create_model(name, num_classes=0).eval().requires_grad_(False)
        safetensors.torch.save_file(model.state_dict(), folder / "weights.safetensors")
        plain = cut(model, 1, size).prefix
        config = BackboneConfig(name=name, image_size=size, weights=folder / "weights.safetensors")
    onnx = load_backbone(config.model_copy(update={"runner": "onnx"}), "cpu") if has_onnx() else None
    start = time.perf_counter()
    if onnx is not None:
        onnx.opened()
    return Subject(plain, load_backbone(config, "cpu"), onnx, time.perf_counter() - start)


@torch.inference_mode()
def plain_features(one: Subject, crops: Crops, batch: int) -> Tensor:
    """The cached input of the tail, in the order that the plain layers give it."""
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (one.torch.mean, one.torch.std))
    parts = []
    for start in range(0, len(crops), batch):
        images = torch.from_numpy(crops[start : start + batch]).permute(0, 3, 1, 2).contiguous().float().div(255)
        parts.append(one.plain((images - mean) / std))
    features = torch.cat(parts)
    return features.transpose(1, 2) if one.torch.name == LITE0 else features


def plain_decode(jobs: Sequence[ViewJob], spec: ViewSpec) -> Iterator[Crops]:
    for job in jobs:
        with Image.open(job.path) as image:
            yield render(image.convert("RGB"), job.key, job.views, spec)


def plain_fill(one: Subject, jobs: Sequence[ViewJob], file: Path) -> None:
    crops = np.concatenate(list(plain_decode(jobs, one.torch.view_spec)))
    np.save(file, plain_features(one, crops, 32).numpy().astype(np.float16))


def our_fill(backbone: Backbone, jobs: Sequence[ViewJob]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = FeatureStore(Path(folder), backbone.fingerprint, backbone.token_shape)
        bad = fill(store, backbone, [(job.key, Path(job.path), N_VIEWS) for job in jobs], progress=lambda *_: None)
        assert not bad
        assert len(store) == len(jobs) * N_VIEWS


def our_prefix(backbone: Backbone, jobs: Sequence[ViewJob], crops: Sequence[Crops]) -> list[Any]:
    return [values for _, values in computed(backbone, iter(list(zip(jobs, crops, strict=True))))]


def check(one: Subject, jobs: Sequence[ViewJob], crops: Sequence[Crops]) -> None:
    """All ways give the same numbers, up to the order of sums and to float16."""
    expected = plain_features(one, np.concatenate(crops), 4)
    for backbone in filter(None, (one.torch, one.onnx)):
        found = torch.from_numpy(np.concatenate(our_prefix(backbone, jobs, crops))).float()
        worst = float((found - expected).abs().max() / expected.abs().max())
        assert worst < 2e-3, f"{backbone.name} by {backbone.config.runner}: {worst:.2g}"


def gigaflop_per_crop(one: Subject) -> float:
    size = one.torch.image_size
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        one.plain(torch.zeros(1, 3, size, size))
    return float(counter.get_total_flops()) / 1e9


def prefix_ways(one: Subject, jobs: Sequence[ViewJob], crops: Sequence[Crops]) -> Ways:
    together = np.concatenate(crops)
    square = torch.ones(2048, 2048)
    ways: Ways = {
        "product": lambda: square @ square,
        "plain, batches of 4": lambda: plain_features(one, together, 4),
        "plain, batches of 32": lambda: plain_features(one, together, 32),
        "ours, torch": lambda: our_prefix(one.torch, jobs, crops),
    }
    if (onnx := one.onnx) is not None:
        ways["ours, onnxruntime"] = lambda: our_prefix(onnx, jobs, crops)
    return ways


def fill_ways(one: Subject, jobs: Sequence[ViewJob], folder: Path) -> Ways:
    ways: Ways = {
        "plain, batches of 32": lambda: plain_fill(one, jobs, folder / "plain.npy"),
        "ours, torch": lambda: our_fill(one.torch, jobs),
    }
    if (onnx := one.onnx) is not None:
        ways["ours, onnxruntime"] = lambda: our_fill(onnx, jobs)
    return ways


def decode_ways(jobs: Sequence[ViewJob], spec: ViewSpec) -> Ways:
    return {
        "plain, full size": lambda: list(plain_decode(jobs, spec)),
        "ours, same process": lambda: list(decoded(jobs, spec, 0)),
        "ours, one worker": lambda: list(decoded(jobs, spec, 1)),
    }


def print_rows(stage: str, taken: dict[str, float], n_crops: int, limit: Callable[[float], str]) -> None:
    """Rows of the table; ratios are against the best plain way."""
    best = min(seconds for way, seconds in taken.items() if way.startswith("plain"))
    for way, seconds in taken.items():
        speed = n_crops / seconds
        cells = (stage, way, f"{speed / N_VIEWS:.1f}", f"{speed:.0f}", f"{best / seconds:.2f}×", limit(speed))
        print(f"| {' | '.join(cells)} |", flush=True)


def report(name: str, size: int, jobs: Sequence[ViewJob], folder: Path, repeats: int) -> None:
    one, n_crops = subject(name, size, folder), len(jobs) * N_VIEWS
    crops = [views for job in jobs if isinstance(views := load_views(job, one.torch.view_spec), np.ndarray)]
    check(one, jobs, crops)
    work = gigaflop_per_crop(one)
    prefix = medians(prefix_ways(one, jobs, crops), repeats)
    rate = 2 * 2048**3 / prefix.pop("product") / 1e9
    print(f"\n### {name} at {size} px\n")
    print(f"{len(jobs)} images. {work:.2f} GFLOP per crop; a matrix product runs at {rate:.0f} GFLOP/s: ", end="")
    print(f"{rate / work:.0f} crops/s at best.")
    if one.onnx is not None:
        print(f"Writing and opening the graph for onnxruntime takes {one.export_seconds:.1f} s, once per run.")
    print("\n| stage | way | images/s | crops/s | ratio | of the matrix-product rate |\n|---|---|---|---|---|---|")
    print_rows("decode", medians(decode_ways(jobs, one.torch.view_spec), repeats), n_crops, lambda speed: "")
    print_rows("prefix", prefix, n_crops, lambda speed: f"{100 * speed * work / rate:.0f} %")
    whole = medians(fill_ways(one, jobs, folder), repeats)
    print_rows("whole", whole, n_crops, lambda speed: f"{100 * speed * work / rate:.0f} %")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer images and repeats")
    options = parser.parse_args(argv)
    n_images, repeats = (32, 2) if options.quick else (240, 5)
    print(f"{N_VIEWS} crops per image, {torch.get_num_threads()} threads; medians of {repeats}.")
    print("Ratios are against the better plain way.")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        jobs = write_jpegs(folder, n_images)
        start = medians({"start": lambda: list(decoded(jobs[:1], ViewSpec(32), 1))}, repeats)["start"]
        print(f"A worker process takes {start:.1f} s to start, which is part of its lines and of the whole.")
        for name, size, share in SETTINGS:
            report(name, size, jobs[: int(share * n_images)], folder, repeats)


if __name__ == "__main__":
    main()
