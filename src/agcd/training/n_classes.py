"""How many classes there are, old and novel: Max-ACC (Vaze et al., GCD, CVPR 2022).

Plain k-means, blind to the labels, is run with several numbers of clusters; the estimate is where the labelled rows
fall best into clusters of their own. Novel classes that share a cluster cost the labelled rows nothing, so with
enough labels it is more often too low than too high.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
import torch.nn.functional as F
from scipy.optimize import minimize_scalar
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from agcd.errors import ConfigError, did_you_mean
from agcd.features.devices import in_memory
from agcd.features.rows import RowFeatures
from agcd.metrics import accuracy
from agcd.rng import derive_seed, generator
from agcd.training.fitted import embed_rows
from agcd.types import FloatArray, IntArray, LabelState, NumberOfClasses

Say = Callable[[int, int], None]

RUNS = 5
"""k-means runs for each number of classes. The mean of their accuracies led nearer to the truth than the best run."""
DIMS = 128
"""Principal components that k-means works on: of 1280 features they cluster nearly as well, some eight times faster."""
MAX_UNLABELLED = 20_000
"""Unlabelled rows that k-means is given at most: its time grows with them, and only labelled ones are counted."""
_COARSE = 1.2
"""The ratio of neighbouring numbers on the first grid: 10 to 1000 in 26 steps."""
_BISECTIONS = 2
"""How often both ends of the range are moved half-way out afterwards."""
_MOST_CLASSES = 1000
"""The largest number tried unless asked for: the time of k-means grows with it."""
PUBLISHED_STARTS = 10
"""Of each k-means, the best of which counted: what scikit-learn did by default when the method was published."""


def prefix_features(features: RowFeatures, rows: IntArray) -> FloatArray:
    """What the pretrained tail makes of the test view of ``rows``: (n, d) float32, unit length, not centred.

    The quick protocol centres them before its head sees them. Here it makes k-means no better and the number no
    nearer to the truth, so this is the published way.
    """
    tail = features.new_tail().eval()
    return in_memory(F.normalize(embed_rows(tail, features, rows), dim=1))


def look_for_classes(
    features: RowFeatures, labels: LabelState, *, seed: int, max_acc: str = "fast", say: Say | None = None
) -> NumberOfClasses:
    """How many classes the training rows seem to have, from the pretrained features and the labels known so far, by
    the rule that ``max_acc`` (``Config.max_acc``) names.

    Where no class is known there is nothing to explain: the root of the number of rows is looked for. Slots that turn
    out to be too many are switched off later, and a name that has none gets a new one.
    """
    rows = labels.train_rows[labels.train_rows < features.n_rows]  # a project may have taken more meanwhile
    if labels.n_old == 0:
        n = max(2, round(len(rows) ** 0.5))
        return NumberOfClasses(n, n, n, ())
    x = prefix_features(features, rows)
    method = "published" if max_acc == "published" else "grid"
    return estimate_n_classes(x, labels.y_class[rows], labels.n_old, method=method, seed=seed, say=say)


def estimate_n_classes(
    x: FloatArray,
    y_class: IntArray,
    n_old: int,
    *,
    max_classes: int | None = None,
    method: str = "grid",
    seed: int = 0,
    say: Say | None = None,
) -> NumberOfClasses:
    """The number of classes under which k-means agrees best with the labels.

    Parameters
    ----------
    x : (n, d) features of all training rows, as ``prefix_features`` gives them.
    y_class : (n,) class of labelled rows, −1 elsewhere. Novel classes that somebody has named count as known.
    n_old : number of old classes, at least 1. The estimate is no less than the known classes, and no less than 2.
    max_classes : the largest number to try. None: four times the known classes, at least 20 more than those, but no
        more than 1000 and no more than one for every two rows; "published" tries up to 1000 if there are as many rows.
    method : "grid" looks for the range of numbers that explain the labels about as well as the best, and takes its
        middle. "brent" is the search of the paper for the best alone, which can stop at a local optimum. "published" is
        that search over k-means as it was published: all rows, all features, the best of ten starts. The seed plays no
        part in it, as there.
    say : called with (numbers tried, numbers to try).

    Notes
    -----
    Where the accuracy hardly differs the best is a matter of luck; the middle of the range was nearer to the truth on
    average, though not everywhere.
    "brent" takes the middle one of numbers that are equally good. Above 20,000 unlabelled rows a sample of them serves.
    """
    if method not in _METHODS:
        raise ConfigError(f"Unknown method {method!r}.{did_you_mean(method, _METHODS)}")
    is_published = method == "published"
    if not is_published:
        rows = _sample(y_class, seed)
        x, y_class = x[rows], y_class[rows]
    low, high = _bounds(y_class, n_old, max_classes, up_to_the_rows=is_published)
    with threadpool_limits(1):  # sums over threads come out in any order; one thread gives the same answer every time
        x = np.asarray(x, np.float32) if is_published else _reduced(x, seed)

        def accuracy_of(n: int) -> float:
            if is_published:
                return cluster_accuracy(y_class, _cluster(x, n, 0, PUBLISHED_STARTS), n_old)
            return _mean_accuracy(x, y_class, n_old, n, seed)

        tried = _Tried(accuracy_of, int((y_class >= 0).sum()), say)
        best = _METHODS[method](tried, low, high)
    return NumberOfClasses(best, *tried.span, tuple(sorted(tried.curve.items())))


def cluster_accuracy(y_class: IntArray, y_cluster: IntArray, n_old: int) -> float:
    """Share of *labelled* rows that are in the cluster of their class, under the best one-to-one assignment."""
    labelled = y_class >= 0
    return accuracy(y_class[labelled], y_cluster[labelled], n_old)["acc_all"]


class _Tried:
    """Accuracy by number of classes, computed once for each number."""

    def __init__(self, accuracy_of: Callable[[int], float], n_labelled: int, say: Say | None):
        self._accuracy_of, self._n_labelled, self._say, self._total = accuracy_of, n_labelled, say, 0
        self.curve: dict[int, float] = {}

    @property
    def best(self) -> int:
        """The number with the best accuracy; the middle one of equals, the upper one of two middle ones."""
        top = max(self.curve.values())
        equals = sorted(n for n, hits in self.curve.items() if hits == top)
        return equals[len(equals) // 2]

    @property
    def span(self) -> tuple[int, int]:
        """The smallest and the largest number whose accuracy is within one standard error of the best."""
        top = max(self.curve.values())
        # one more hit and one more miss: ten hits out of ten do not make it certain
        share = (top * self._n_labelled + 1) / (self._n_labelled + 2)
        error = math.sqrt(share * (1 - share) / self._n_labelled)
        near = [n for n, hits in self.curve.items() if hits >= top - error]
        return min(near), max(near)

    def expect(self, total: int) -> None:
        self._total = total

    def at(self, n_classes: int) -> float:
        if n_classes not in self.curve:
            self.curve[n_classes] = self._accuracy_of(n_classes)
            self._report(min(len(self.curve), self._total))
        return self.curve[n_classes]

    def finish(self) -> None:
        if len(self.curve) < self._total:
            self._report(self._total)

    def _report(self, done: int) -> None:
        if self._say:
            self._say(done, self._total)


def _grid(tried: _Tried, low: int, high: int) -> int:
    """The middle of the range: a geometric grid, then twice the middle of the gaps beyond both its ends."""
    coarse = _geometric(low, high)
    tried.expect(len(coarse) + 2 * _BISECTIONS + 1)
    for n in coarse:
        tried.at(n)
    for _ in range(_BISECTIONS):
        first, last = tried.span
        below = max((n for n in tried.curve if n < first), default=first)
        above = min((n for n in tried.curve if n > last), default=last)
        tried.at(_middle(below, first))
        tried.at(_middle(last, above))
    middle = _middle(*tried.span)
    tried.at(middle)  # so that the curve shows it
    tried.finish()
    return middle


def _middle(low: int, high: int) -> int:
    return round(math.sqrt(low * high))


def _geometric(low: int, high: int) -> list[int]:
    """``low`` to ``high`` in about equal ratios of at most ``_COARSE``, rounded."""
    n_steps = math.ceil(math.log(high / low) / math.log(_COARSE))
    return np.unique(np.rint(np.geomspace(low, high, n_steps + 1)).astype(int)).tolist() if n_steps else [low]


def _brent(tried: _Tried, low: int, high: int) -> int:
    """Brent's bounded search as in the paper; a tolerance below one class would only repeat itself."""
    tried.expect(_most_fits(low, high))
    if low < high:
        minimize_scalar(lambda n: -tried.at(round(n)), bounds=(low, high), method="bounded", options={"xatol": 0.5})
    else:
        tried.at(low)
    tried.finish()
    return tried.best


def _most_fits(low: int, high: int) -> int:
    """How many numbers a search by the golden section may try until it knows one class from the next."""
    golden = (1 + math.sqrt(5)) / 2
    return 3 + math.ceil(math.log(max(high - low, 1) / 0.5, golden))


def _published(tried: _Tried, low: int, high: int) -> int:
    """The same search as it was published: whole numbers by cutting off, where it stopped, at SciPy's own tolerance."""
    tried.expect(_most_fits(low, high))
    found = low
    if low < high:
        found = int(minimize_scalar(lambda n: -tried.at(int(n)), bounds=(low, high), method="bounded").x)
    tried.at(found)
    tried.finish()
    return found


_METHODS: dict[str, Callable[[_Tried, int, int], int]] = {"grid": _grid, "brent": _brent, "published": _published}


def _bounds(y_class: IntArray, n_old: int, max_classes: int | None, *, up_to_the_rows: bool = False) -> tuple[int, int]:
    """The smallest and the largest number to try."""
    n_rows = len(y_class)
    if n_old < 1 or not (y_class >= 0).any():
        raise ConfigError("Without labels the number of classes cannot be estimated; say how many to look for.")
    n_known = max(n_old, int(y_class.max()) + 1)
    low = max(2, n_known)
    if max_classes is None:
        limits = [n_rows] if up_to_the_rows else [max(4 * n_known, n_known + 20), n_rows // 2]
        max_classes = max(low, min(_MOST_CLASSES, *limits))
    if max_classes < low:
        raise ConfigError(f"max_classes is {max_classes}; with {n_known} known classes it must be at least {low}.")
    if n_rows < low:
        raise ConfigError(f"The number of classes needs at least {low} rows, and there are {n_rows}.")
    return low, min(max_classes, n_rows)


def _sample(y_class: IntArray, seed: int) -> IntArray:
    """All labelled rows and as many unlabelled ones as k-means can cope with, in order."""
    unlabelled = np.flatnonzero(y_class < 0)
    if len(unlabelled) > MAX_UNLABELLED:
        unlabelled = generator(seed, "n_classes", "sample").choice(unlabelled, MAX_UNLABELLED, replace=False)
    return np.sort(np.concatenate([np.flatnonzero(y_class >= 0), unlabelled]))


def _reduced(x: FloatArray, seed: int) -> FloatArray:
    """The principal components of ``x``, if it has more of both rows and columns than we keep."""
    x = np.asarray(x, np.float32)
    if min(x.shape) <= DIMS:
        return x
    from sklearn.decomposition import PCA  # here, because it takes a second to load

    state = derive_seed(seed, "n_classes", "components") % 2**32
    return np.asarray(PCA(DIMS, svd_solver="randomized", random_state=state).fit_transform(x))


def _mean_accuracy(x: FloatArray, y_class: IntArray, n_old: int, n_classes: int, seed: int) -> float:
    seeds = [derive_seed(seed, "n_classes", n_classes, run) % 2**32 for run in range(RUNS)]
    return float(np.mean([cluster_accuracy(y_class, _cluster(x, n_classes, each), n_old) for each in seeds]))


def _cluster(x: FloatArray, n_clusters: int, seed: int, n_init: int = 1) -> IntArray:
    """Plain k-means, the best of ``n_init`` runs: the cluster of every row."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():  # fewer distinct points than clusters is no fault here
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(KMeans(n_clusters, n_init=n_init, random_state=seed).fit_predict(x), np.int64)
