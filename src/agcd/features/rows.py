"""Features by row: what the trainer reads, whether it comes from memory, from a store or is computed now."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from agcd.config import BackboneConfig
from agcd.data.decoding import Decoder
from agcd.errors import ConfigError, StorageError
from agcd.features.backbones import Backbone, load_backbone
from agcd.features.decoding import decoded_now
from agcd.features.devices import sent
from agcd.features.extract import fill as fill_here
from agcd.features.extract import missing_jobs
from agcd.features.store import Allocate, FeatureStore
from agcd.features.tails import ResidualAdapter
from agcd.features.views import Bad, ViewJob
from agcd.io import digest, digest_bytes, read_json, write_json
from agcd.types import UNLABELLED, Dataset, FloatArray, IntArray
from agcd.words import printable

DECODING_THREADS = 4
"""Where features are computed at every read: a batch is soon decoded, and the network waits for it."""

log = logging.getLogger("agcd")


class Fill(Protocol):
    """Stores the first n views of every (content key, path, n); returns the unusable keys with their reasons."""

    def __call__(
        self,
        store: FeatureStore,
        backbone: Backbone,
        wanted: Sequence[tuple[str, Path, int]],
        *,
        workers: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, str]: ...


class RowFeatures(Protocol):
    """The cached input of a trainable tail, by row and view; view 0 is the test view."""

    @property
    def n_rows(self) -> int: ...

    @property
    def n_views(self) -> int:
        """Views are numbered in [0, n_views); test rows have view 0 only."""
        ...

    @property
    def dim(self) -> int:
        """Size of the tail's output."""
        ...

    @property
    def fingerprint(self) -> str:
        """Equal for equal features: backbone, weights, views and the content of every row."""
        ...

    @property
    def bad_rows(self) -> Mapping[int, str]:
        """Rows without usable content, with the reason; they read as zeros."""
        ...

    def read(self, rows: IntArray, views: IntArray, allocate: Allocate = np.empty) -> Tensor:
        """The tail's input (len(rows), *shape): float16 from a store, else float32; tails take both.

        ``allocate`` may be asked for the memory of the result (see ``reading.read_in_turn``).
        """
        ...

    def announce(self, rows: IntArray, views: IntArray) -> None:
        """Say what will be read soon, so that a disk may fetch it meanwhile."""
        ...

    def new_tail(self) -> nn.Module:
        """A fresh copy of the pretrained tail: ``read`` output to features (n, dim)."""
        ...


class EmbeddingRows:
    """Embeddings from elsewhere, in memory. Two reads are equal; the tail's noise makes views differ.

    Parameters
    ----------
    x : embeddings of shape (n_rows, dim)
    dropout : strength of that noise, as a dropout rate
    encoder : the fingerprint of what made them of texts, if that is known
    """

    n_views = 1

    def __init__(self, x: FloatArray, dropout: float = 0.0, encoder: str | None = None) -> None:
        self.encoder = encoder
        values = np.array(x, dtype=np.float32)
        finite = np.isfinite(values).all(1)
        values[~finite] = 0.0
        self.bad_rows: Mapping[int, str] = {
            int(row): "the embedding holds NaN or infinite numbers" for row in np.flatnonzero(~finite)
        }
        self.n_rows, self.dim = values.shape
        self.fingerprint = digest(["embedding", list(values.shape), dropout, digest_bytes(values.tobytes())])
        self._x = torch.from_numpy(values)
        self._dropout = dropout

    def read(self, rows: IntArray, views: IntArray, allocate: Allocate = np.empty) -> Tensor:
        return self._x[torch.from_numpy(np.asarray(rows, dtype=np.int64))]

    @property
    def item_bytes(self) -> int:
        return 4 * int(self.dim)

    def held(self) -> tuple[IntArray, IntArray]:
        """Row and view of everything that can be read."""
        return np.arange(self.n_rows), np.zeros(self.n_rows, np.int64)

    def announce(self, rows: IntArray, views: IntArray) -> None:
        """They are in memory."""

    def new_tail(self) -> nn.Module:
        return ResidualAdapter(self.dim, dropout=self._dropout)


def open_stored(
    dataset: Dataset,
    backbone: Backbone,
    n_views: int,
    cache_dir: Path,
    *,
    progress: Callable[[int, int], None] | None = None,
    workers: int | None = None,
    fill: Fill | None = None,
) -> StoredRows:
    """Compute what is missing in the store below ``cache_dir``, then read from it."""
    assert dataset.paths is not None
    counts = np.where(dataset.is_test, 1, n_views).tolist()
    wanted = list(zip(dataset.keys, dataset.paths, counts, strict=True))
    backbone = _made_elsewhere(backbone, wanted, cache_dir) or backbone
    store = FeatureStore(cache_dir / "features", _spec(backbone), backbone.token_shape)
    bad = (fill or fill_here)(store, backbone, wanted, workers=workers, progress=progress)
    return StoredRows(dataset, backbone, store, n_views, bad)


def _spec(backbone: Backbone) -> dict[str, Any]:
    return {"backbone": backbone.fingerprint, "name": backbone.name, "view_seed": backbone.view_spec.seed}


def _made_elsewhere(backbone: Backbone, wanted: Sequence[tuple[str, Path, int]], cache_dir: Path) -> Backbone | None:
    """The backbone as another kind of device or another runner computes it, where that has left all that is wanted and
    this one has not.

    So a cache that was filled on a machine with a GPU, or without onnxruntime, is read on any.
    """
    if not _lacks(backbone, wanted, cache_dir):
        return None
    for other in backbone.elsewhere():
        if not _lacks(other, wanted, cache_dir):
            log.info("features are read that were computed on %s by %s", other.made_on, other.runner)
            return other
    return None


def _lacks(backbone: Backbone, wanted: Sequence[tuple[str, Path, int]], cache_dir: Path) -> bool:
    """Whether anything wanted is neither stored nor known to be unusable."""
    store = FeatureStore.existing(cache_dir / "features", _spec(backbone), backbone.token_shape)
    return store is None or bool(missing_jobs(store, wanted, store.bad(key for key, _, _ in wanted)))


class StoredRows:
    """Features from a memory-mapped store; test rows hold view 0 only."""

    def __init__(
        self, dataset: Dataset, backbone: Backbone, store: FeatureStore, n_views: int, bad: Mapping[str, str]
    ) -> None:
        self.n_rows, self.n_views, self.dim = dataset.n_rows, n_views, backbone.dim
        self.bad_rows: Mapping[int, str] = {row: bad[key] for row, key in enumerate(dataset.keys) if key in bad}
        self.fingerprint = _fingerprint("stored", dataset, backbone, n_views)
        self._backbone, self._store = backbone, store
        self._keys, self._is_test = dataset.keys, dataset.is_test
        self._places = np.full((self.n_rows, n_views, 2), -1, dtype=np.int64)
        for row, key in enumerate(dataset.keys):
            if key not in bad:
                count = 1 if dataset.is_test[row] else n_views
                self._places[row, :count] = store.locate([(key, view) for view in range(count)])

    def read(self, rows: IntArray, views: IntArray, allocate: Allocate = np.empty) -> Tensor:
        if (views[self._is_test[rows]] > 0).any():
            raise IndexError("test rows hold view 0 only")
        places = self._places[rows, views]
        return torch.from_numpy(self._store.gather(places, allocate, torch.get_num_threads()))

    @property
    def item_bytes(self) -> int:
        return self._store.item_bytes

    def held(self) -> tuple[IntArray, IntArray]:
        """Row and view of everything that is stored."""
        rows, views = np.nonzero(self._places[:, :, 0] >= 0)
        return rows, views

    def announce(self, rows: IntArray, views: IntArray) -> None:
        self._store.announce(self._places[rows, views])

    def new_tail(self) -> nn.Module:
        return self._backbone.new_tail()


class OnlineRows:
    """Features computed at every read, on no disk and left on the device: every view number is its own random crop.

    Test views, which every evaluation reads again, stay in memory if they are not too many. A file that cannot be
    decoded reads as zeros and joins ``bad_rows`` when it is first met.
    """

    n_views = 2**31 - 1
    kept_bytes = 2 * 2**30
    """What all test views together may take."""

    def __init__(self, dataset: Dataset, backbone: Backbone) -> None:
        assert dataset.paths is not None
        self.n_rows, self.dim = dataset.n_rows, backbone.dim
        self.bad_rows: dict[int, str] = {}
        self.fingerprint = _fingerprint("online", dataset, backbone, self.n_views)
        self._backbone, self._paths, self._keys = backbone, dataset.paths, dataset.keys
        shape = (self.n_rows, *backbone.token_shape)
        keeps = 4 * np.prod(shape, dtype=np.int64) <= self.kept_bytes
        self._test_views = torch.empty(shape if keeps else (0,), device=backbone.device)
        self._is_kept = np.zeros(self.n_rows, dtype=bool)
        self._threads = ThreadPoolExecutor(max_workers=DECODING_THREADS, thread_name_prefix="agcd-decode")
        self._decoder = Decoder()

    def read(self, rows: IntArray, views: IntArray, allocate: Allocate = np.empty) -> Tensor:
        if len(self._test_views) == 0 or views.any():
            return self._computed(rows, views)
        new = np.unique(rows[~self._is_kept[rows]])
        device = self._backbone.device
        if len(new):
            self._test_views.index_copy_(0, sent(new, device), self._computed(new, np.zeros_like(new)))
            self._is_kept[new] = True
        return self._test_views.index_select(0, sent(rows, device))

    def _computed(self, rows: IntArray, views: IntArray) -> Tensor:
        jobs = [
            ViewJob(str(self._paths[row]), self._keys[row], (view,))
            for row, view in zip(rows.tolist(), views.tolist(), strict=True)
        ]
        spec = self._backbone.view_spec
        size = spec.image_size
        crops = np.zeros((len(jobs), size, size, 3), dtype=np.uint8)
        usable = np.ones(len(jobs), dtype=bool)
        for i, found in enumerate(self._threads.map(lambda job: decoded_now(self._decoder, job, spec), jobs)):
            if isinstance(found, Bad):
                usable[i] = False
                self._note(int(rows[i]), found.reason)
            else:
                crops[i] = found[0]
        is_read = sent(usable, self._backbone.device).view(-1, *[1] * len(self._backbone.token_shape))
        return self._backbone.prefix(crops) * is_read

    def new_tail(self) -> nn.Module:
        return self._backbone.new_tail()

    def announce(self, rows: IntArray, views: IntArray) -> None:
        """They are computed when they are read: all cores are at work meanwhile."""

    def _note(self, row: int, reason: str) -> None:
        if row not in self.bad_rows:
            log.warning("%s has no features: %s.", printable(str(self._paths[row])), reason)
            self.bad_rows[row] = reason


def describe(features: RowFeatures, folder: Path) -> None:
    """Write down in ``folder`` how another process opens the same features; a store stays where it is."""
    facts: dict[str, Any] = {"fingerprint": features.fingerprint}
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(features, EmbeddingRows):
        facts["dropout"] = features._dropout
        x = features._x.numpy().copy()
        x[list(features.bad_rows)] = np.nan
        np.save(folder / "embeddings.npy", x, allow_pickle=False)
    elif isinstance(features, StoredRows):
        config = features._backbone.config
        weights = config.weights.resolve() if config.weights else None
        facts |= {
            "backbone": config.model_copy(update={"weights": weights}).model_dump(mode="json"),
            "made_on": features._backbone.made_on,
            "runner": features._backbone.runner,
            "store": str(features._store.folder.resolve()),
            "n_views": features.n_views,
            "keys": features._keys,
            "is_test": features._is_test.tolist(),
            "bad": {features._keys[row]: reason for row, reason in features.bad_rows.items()},
        }
    else:
        raise ConfigError('Only stored features can be read by several processes: set backbone.cache to "store".')
    write_json(folder / "features.json", facts)


def reopen(folder: Path) -> RowFeatures:
    """The features that ``describe`` wrote down; nothing is computed."""
    facts = read_json(folder / "features.json")
    features: RowFeatures
    if "store" in facts:
        features = _reopen_stored(facts)
    else:
        features = EmbeddingRows(np.load(folder / "embeddings.npy", allow_pickle=False), facts["dropout"])
    if features.fingerprint != facts["fingerprint"]:
        raise StorageError(f"The features described in {folder} have changed since: run the command again.")
    return features


def _reopen_stored(facts: dict[str, Any]) -> StoredRows:
    is_test, unknown = np.array(facts["is_test"], dtype=bool), np.full(len(facts["keys"]), UNLABELLED, dtype=np.int64)
    dataset = Dataset("reopened", (), unknown, is_test, tuple(facts["keys"]))
    backbone = load_backbone(BackboneConfig.model_validate(facts["backbone"]), "cpu")
    backbone = replace(backbone, made_on=facts["made_on"], runner=facts["runner"])
    folder = Path(facts["store"])
    try:
        made = read_json(folder / "spec.json")
        store = FeatureStore(folder.parent, made["spec"], tuple(made["shape"]))
        return StoredRows(dataset, backbone, store, facts["n_views"], facts["bad"])
    except (FileNotFoundError, KeyError):
        raise StorageError(f"{folder} lacks features: it must lie on a disk that all processes share.") from None


def _fingerprint(kind: str, dataset: Dataset, backbone: Backbone, n_views: int) -> str:
    return digest([kind, backbone.fingerprint, n_views, list(dataset.keys), dataset.is_test.tolist()])
