"""How much faster a training step is over cached tokens than through the whole network.

    python benchmarks/tail.py [--quick] [--threads 1 2]

Plain: timm's forward of the whole ViT and a backward through its last block. Ours: the exact class-token tail over
float16 tokens in a feature store on disk, read ahead as in training. Both end in the same SGD step over the same
parameters of the last block; weights and inputs are random. A second table gives the error that storing tokens in
fewer bits causes. Output is Markdown.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stored_tokens import StoredTokens  # before torch: it says how OpenMP threads wait

# isort: split
import torch
from torch import Tensor, nn

from agcd.features.cuts import cut
from agcd.features.reading import read_in_turn
from agcd.features.rows import RowFeatures
from agcd.features.torchvision_compat import import_timm
from agcd.types import IntArray

CROPS = 256
"""A batch of 128 images with two views each."""
MODELS = {"ViT-S/16": ("vit_small_patch16_224", 250), "ViT-B/16": ("vit_base_patch16_224", 300)}
"""Architecture, and the ratio that is wanted with two threads."""
N_STORED = 3 * CROPS
LIMIT = """
Reading tokens does not limit a step, arithmetic does: of the 3.7 GFLOP of a step over 256 ViT-S crops the weights of
the block take three quarters (12 d² numbers, three products each), attention over the tokens a quarter, in products
with as few lines as there are heads. Half of the memory bandwidth would need 0.9 times (ViT-S) and 1.7 times (ViT-B)
the rate that a plain matrix product reaches here with two threads."""


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


def random_batches(n: int) -> Iterator[tuple[IntArray, IntArray]]:
    draw = np.random.default_rng(1)
    for _ in range(n):
        yield draw.permutation(N_STORED)[:CROPS], np.zeros(CROPS, np.int64)


def cached_step(model: Any, repeats: int) -> tuple[float, Step]:
    """Seconds of a step with reading ahead, and median parts of one without."""
    tail, width = cut(model, 1).tail, model.embed_dim
    optimiser, direction = optimiser_of(tail), torch.randn(CROPS, width)
    with tempfile.TemporaryDirectory() as folder:
        tokens = StoredTokens(Path(folder), model, N_STORED)
        parts = [_one_step(tail, tokens, request, optimiser, direction) for request in random_batches(repeats + 1)]
        whole = statistics.median(_epoch(tail, tokens, optimiser, direction) for _ in range(max(3, repeats // 2)))
    return whole, Step(*(statistics.median(part) for part in zip(*parts[1:], strict=True)))


def _epoch(tail: nn.Module, tokens: RowFeatures, optimiser: torch.optim.SGD, direction: Tensor) -> float:
    """Seconds per step of ten steps."""
    start = time.perf_counter()
    for inputs in read_in_turn(tokens, random_batches(10)):
        optimiser.zero_grad(set_to_none=True)
        tail(inputs).backward(direction)
        optimiser.step()
    return (time.perf_counter() - start) / 10


def _one_step(
    tail: nn.Module,
    tokens: RowFeatures,
    request: tuple[IntArray, IntArray],
    optimiser: torch.optim.SGD,
    direction: Tensor,
) -> tuple[float, ...]:
    marks = [time.perf_counter()]
    inputs = tokens.read(*request)
    marks.append(time.perf_counter())
    optimiser.zero_grad(set_to_none=True)
    features = tail(inputs)
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
    total, step = cached_step(model, repeats)
    ratio = plain * CROPS / total
    token_bytes = 2 * CROPS * (model.patch_embed.num_patches + 2) * model.embed_dim
    # gather reads and writes all tokens, the forward and the backward pass read them
    reached = 4 * token_bytes / total / 1e9
    arithmetic = gigaflop(model) / total
    parts = ", ".join(f"{part} {100 * value / sum(step):.0f} %" for part, value in step._asdict().items())
    return (
        f"| {name} | {threads} | {plain * 1e3:.1f} | {total / CROPS * 1e3:.3f} | **{ratio:.0f}×** | {goal}× | "
        f"{reached:.1f} of {machine.read_gb_s:.1f} GB/s ({100 * reached / machine.read_gb_s:.0f} %) | "
        f"{arithmetic:.0f} of {machine.gemm_gflop_s:.0f} GFLOP/s ({100 * arithmetic / machine.gemm_gflop_s:.0f} %) | "
        f"{parts} |"
    )


def as_stored(tokens: Tensor, kind: str) -> Tensor:
    """Tokens (n, T, d) as they come back from a store of that kind; int8 has one scale per token."""
    if kind != "int8":
        return tokens.to(getattr(torch, kind)).float()
    scale = tokens.abs().amax(-1, keepdim=True).clamp_min(1e-9) / 127
    return (tokens / scale).round().clamp(-127, 127) * scale


def precision(name: str, n_crops: int) -> Iterator[str]:
    """Errors against float32 tokens of features and gradients, relative to their length, of real forward passes."""
    torch.manual_seed(0)
    model = import_timm().create_model(MODELS[name][0], num_classes=0).eval()
    parts = cut(model, 1)
    with torch.no_grad():
        tokens = parts.prefix(torch.randn(n_crops, 3, 224, 224))
    direction = torch.randn(n_crops, model.embed_dim)

    def outcome(kind: str) -> tuple[Tensor, Tensor]:
        parts.tail.zero_grad()
        features = parts.tail(as_stored(tokens, kind))
        features.backward(direction)
        gradients = [p.grad.flatten() for p in parts.tail.parameters() if p.grad is not None]
        return features.detach(), torch.cat(gradients)

    exact = outcome("float32")
    for kind, n_bytes in (("float16", 2), ("bfloat16", 2), ("int8", 1)):
        errors = [float((a - b).norm() / b.norm()) for a, b in zip(outcome(kind), exact, strict=True)]
        size = n_bytes * tokens[0].numel() / 1e3
        yield f"| {name} | {kind} | {size:.0f} | {errors[0]:.1e} | {errors[1]:.1e} |"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer crops and repeats")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], metavar="N")
    options = parser.parse_args(argv)
    n_plain, repeats = (4, 3) if options.quick else (16, 7)
    print(f"A step over {CROPS} crops (128 images × 2 views). The plain way is measured on {n_plain} crops and scaled")
    print("linearly. Times are medians; parts are those of a step without reading ahead.\n")
    print("| model | threads | plain, ms/crop | cached, ms/crop | ratio | goal | token reading | arithmetic | parts |")
    print("|---|---|---|---|---|---|---|---|---|")
    for threads in options.threads:
        torch.set_num_threads(threads)
        for name in MODELS:
            print(report(name, threads, n_plain, repeats), flush=True)
    print(LIMIT)
    print("\nWhat tokens in fewer bits cost, against float32:\n")
    print("| model | tokens | kB a crop | error of features | error of gradients |\n|---|---|---|---|---|")
    for name in MODELS:
        for line in precision(name, 2 if options.quick else 8):
            print(line, flush=True)


if __name__ == "__main__":
    main()
