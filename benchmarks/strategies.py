"""BADGE and CoreSet without large arrays, against plain dense implementations, and alone on a large pool.

    python benchmarks/strategies.py [--quick]

The first table checks that both ways give the same distances (to 1e-6), CoreSet the same picks too, and prints the
times of the same run. The second gives the time on a large pool and the most memory held on top of the input.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from agcd.strategies import diversity, select
from agcd.types import FloatArray, PoolView

N_SLOTS, WIDTH, BUDGET = 100, 384, 100
T = TypeVar("T")


def make_view(n: int, n_labelled: int, seed: int = 0) -> PoolView:
    """A pool in float32 around 100 directions, with top probabilities of about 0.3 to 0.7."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((N_SLOTS, WIDTH), dtype=np.float32)
    features = _around(centres, n, rng)
    probs = features @ centres.T / 3
    np.exp(probs, out=probs)
    probs /= probs.sum(1, keepdims=True)
    slots = rng.integers(0, N_SLOTS // 2, n_labelled)
    return PoolView(np.arange(n), probs, features, _around(centres, n_labelled, rng), slots, N_SLOTS // 2)


def _around(centres: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    x = rng.standard_normal((n, WIDTH), dtype=np.float32)
    x += centres[rng.integers(0, N_SLOTS, n)]
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x


def timed(call: Callable[[], T]) -> tuple[T, float]:
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def dense_gradients(view: PoolView) -> FloatArray:
    """All gradient embeddings, n × (K·d) in float64, as the reference keeps them."""
    a = view.probs.astype(np.float64)
    a[np.arange(len(a)), a.argmax(1)] -= 1
    return np.asarray((a[:, :, None] * view.features[:, None, :]).reshape(len(a), -1))


def dense_coreset(view: PoolView, budget: int) -> tuple[list[int], FloatArray]:
    """Picks from the full matrix of squared distances, and that matrix."""
    x = np.concatenate([view.labelled_features, view.features]).astype(np.float64)
    norms = (x**2).sum(1)
    square = np.maximum(norms[:, None] + norms[None, :] - 2 * x @ x.T, 0)
    n_labelled, picks = len(view.labelled_features), list(range(len(view.labelled_features)))
    for _ in range(budget):
        nearest = square[:, picks].min(1)
        nearest[picks] = -1
        picks.append(int(nearest.argmax()))
    return [p - n_labelled for p in picks[n_labelled:]], square


def compare_badge(n: int) -> str:
    view = make_view(n, n_labelled=0)
    norms = diversity.gradient_norms(view.probs, view.features)
    g, build = timed(lambda: dense_gradients(view))
    error, one_centre = 0.0, np.inf
    for j in range(3):
        dense, seconds = timed(lambda j=j: ((g - g[j]) ** 2).sum(1))  # type: ignore[misc]
        factored = diversity.gradient_distances(view.probs, view.features, norms, j)
        assert dense.max() > 0.1, "a check of tiny numbers would prove nothing"
        error, one_centre = max(error, float(np.abs(dense - factored).max())), min(one_centre, seconds)
    assert error < 1e-6, error
    _, ours = timed(lambda: select(view, "badge", BUDGET, np.random.default_rng(0)))
    plain = build + BUDGET * one_centre
    size = f"{g.nbytes / 1e6:,.0f} MB"
    return f"| badge | {n:,} | {plain:.1f} s ¹ | {size} | {ours:.2f} s | {plain / ours:.0f}× | {error:.0e} |"


def compare_coreset(n: int) -> str:
    view = make_view(n, n_labelled=500)
    (picks, square), plain = timed(lambda: dense_coreset(view, BUDGET))
    rows, ours = timed(lambda: select(view, "coreset", BUDGET, np.random.default_rng(0)))
    nearest = diversity.nearest_labelled(view.features, view.labelled_features)
    error = float(np.abs(square[500:, :500].min(1) - nearest).max())
    assert error < 1e-6, error
    assert rows.tolist() == picks
    size = f"{square.nbytes / 1e6:,.0f} MB"
    return f"| coreset | {n:,} | {plain:.1f} s | {size} | {ours:.2f} s | {plain / ours:.1f}× | {error:.0e} |"


def large(name: str, n: int) -> str:
    """One call on a large pool with 5,000 labelled rows."""
    view = make_view(n, n_labelled=5000)
    tracemalloc.start()
    _, seconds = timed(lambda: select(view, name, BUDGET, np.random.default_rng(0)))
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    arrays = (view.probs.nbytes + view.features.nbytes + view.labelled_features.nbytes) / 1e6
    return f"| {name} | {n:,} | {seconds:.1f} s | {arrays:,.0f} MB | {peak:,.0f} MB |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    scale = 10 if parser.parse_args().quick else 1
    print(f"K = {N_SLOTS}, d = {WIDTH}, b = {BUDGET}, float32 input\n")
    print("| strategy | N | dense | its array | ours | ratio | largest difference |\n|---|---|---|---|---|---|---|")
    print(compare_badge(2000 // scale))
    print(compare_coreset(2000 // scale))
    print("\n¹ building the array, plus b times the fastest of three centres (so extrapolated).\n")
    print("| strategy | N | time | input arrays | peak above them |\n|---|---|---|---|---|")
    for name in ("badge", "coreset"):
        print(large(name, 100_000 // scale), flush=True)


if __name__ == "__main__":
    main()
