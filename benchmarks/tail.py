"""How much faster a training step is over cached tokens than through the whole network.

    python benchmarks/tail.py [--quick] [--threads 1 2]

Plain: timm's forward of the whole ViT and a backward through its last block. Ours: the exact class-token tail over
cached float16 tokens. Both end in the same SGD step over the same parameters of the last block; weights and inputs
are random. Output is Markdown.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

# Threads that spin while they wait make torch up to 30x slower on a machine that does something else as well.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
from torch import Tensor, nn

from agcd.features.cuts import cut
from agcd.features.torchvision_compat import import_timm

CROPS = 256
"""A batch of 128 images with two views each."""
MODELS = {"ViT-S/16": ("vit_small_patch16_224", 200), "ViT-B/16": ("vit_base_patch16_224", 250)}


class Machine(NamedTuple):
    """What this machine does at best with the threads in use."""

    read_gb_s: float
    gemm_gflop_s: float


class Step(NamedTuple):
    """Seconds of the parts of one training step over cached tokens."""

    gather: float
    forward: float
    backward: float
    optimiser: float


def seconds(run: Callable[[], object], repeats: int) -> float:
    """Median time of ``run`` after one warm-up."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def measure_machine(repeats: int) -> Machine:
    """Speed of summing 512 MB, and of a product of two 2048 × 2048 matrices, both float32."""
    large, square = torch.ones(128 * 2**20), torch.ones(2048, 2048)
    read = large.numel() * 4 / seconds(large.sum, repeats)
    gemm = 2 * 2048**3 / seconds(lambda: square @ square, repeats)
    return Machine(read / 1e9, gemm / 1e9)


def optimiser_of(module: nn.Module) -> torch.optim.SGD:
    trained = [p for p in module.parameters() if p.requires_grad]
    return torch.optim.SGD(trained, lr=1e-4, momentum=0.9, weight_decay=5e-5)


def plain_step(model: Any, n_crops: int, repeats: int) -> float:
    """Seconds per crop of forward, backward through the last block, and SGD."""
    model.requires_grad_(False)
    model.blocks[-1].requires_grad_(True)
    images, optimiser = torch.randn(n_crops, 3, 224, 224), optimiser_of(model)
    direction = torch.randn(n_crops, model.embed_dim)

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        model(images).backward(direction)
        optimiser.step()

    return seconds(step, repeats) / n_crops


def cached_step(model: Any, repeats: int) -> Step:
    """Median parts of a step over ``CROPS`` cached crops: gather, forward, backward, SGD."""
    tail = cut(model, 1).tail
    n_tokens, width = model.patch_embed.num_patches + 2, model.embed_dim
    draw = np.random.default_rng(0)
    stored = draw.standard_normal((CROPS, n_tokens, width), dtype=np.float32).astype(np.float16)
    optimiser, direction = optimiser_of(tail), torch.randn(CROPS, width)
    rounds = [_one_step(tail, stored, draw.permutation(CROPS), optimiser, direction) for _ in range(repeats + 1)]
    return Step(*(statistics.median(part) for part in zip(*rounds[1:], strict=True)))


def _one_step(
    tail: nn.Module, stored: Any, order: Any, optimiser: torch.optim.SGD, direction: Tensor
) -> tuple[float, ...]:
    marks = [time.perf_counter()]
    batch = np.empty_like(stored)
    for i, row in enumerate(order):
        batch[i] = stored[row]
    tokens = torch.from_numpy(batch)
    marks.append(time.perf_counter())
    optimiser.zero_grad(set_to_none=True)
    features = tail(tokens)
    marks.append(time.perf_counter())
    features.backward(direction)
    marks.append(time.perf_counter())
    optimiser.step()
    marks.append(time.perf_counter())
    return tuple(b - a for a, b in pairwise(marks))


def gigaflop(model: Any) -> float:
    """Arithmetic of one cached step: 12 d² weights three times over, and four products of u or a with x̂."""
    width, heads, n_tokens = model.embed_dim, model.blocks[-1].attn.num_heads, model.patch_embed.num_patches + 1
    per_crop = 3 * 12 * width**2 + 4 * heads * n_tokens * width
    return float(2 * per_crop * CROPS / 1e9)


def report(name: str, threads: int, n_plain: int, repeats: int) -> str:
    """One table row and the sentence below it."""
    timm = import_timm()
    architecture, goal = MODELS[name]
    model = timm.create_model(architecture, num_classes=0)
    machine = measure_machine(repeats)
    plain = plain_step(model, n_plain, max(2, repeats // 2))
    step = cached_step(model, repeats)
    total = sum(step)
    ratio = plain * CROPS / total
    token_bytes = 2 * CROPS * (model.patch_embed.num_patches + 2) * model.embed_dim
    reached = 2 * token_bytes / (step.forward + step.backward) / 1e9
    arithmetic = gigaflop(model) / (step.forward + step.backward)
    parts = ", ".join(f"{part} {100 * value / total:.0f} %" for part, value in step._asdict().items())
    return (
        f"| {name} | {threads} | {plain * 1e3:.1f} | {total / CROPS * 1e3:.3f} | **{ratio:.0f}×** | {goal}× | "
        f"{reached:.1f} of {machine.read_gb_s:.1f} GB/s ({100 * reached / machine.read_gb_s:.0f} %) | "
        f"{arithmetic:.0f} of {machine.gemm_gflop_s:.0f} GFLOP/s ({100 * arithmetic / machine.gemm_gflop_s:.0f} %) | "
        f"{parts} |"
    )


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer crops and repeats")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], metavar="N")
    options = parser.parse_args(argv)
    n_plain, repeats = (4, 3) if options.quick else (16, 7)
    print(f"A step over {CROPS} crops (128 images × 2 views). The plain way is measured on {n_plain} crops and scaled")
    print("linearly. Token bytes are read once forward and once backward, as float16; times are medians.\n")
    print("| model | threads | plain, ms/crop | cached, ms/crop | ratio | goal | token reading | arithmetic | parts |")
    print("|---|---|---|---|---|---|---|---|---|")
    for threads in options.threads:
        torch.set_num_threads(threads)
        for name in MODELS:
            print(report(name, threads, n_plain, repeats), flush=True)


if __name__ == "__main__":
    main()
