"""``ActiveDiscovery``: the whole loop behind the face of a scikit-learn clusterer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from agcd.config import BackboneConfig, Config, make_config
from agcd.data.arrays import from_arrays
from agcd.data.items import Item, image_dataset
from agcd.errors import ConfigError, DataError
from agcd.features import open_features
from agcd.features.rows import RowFeatures
from agcd.io import default_cache
from agcd.session import Session
from agcd.types import Dataset, FloatArray, IntArray, LabelState, Prediction

_N_CLASSES_WITHOUT_LABELS = 8
"""As scikit-learn's k-means, which also has to start somewhere."""


class ActiveDiscovery(ClusterMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Discover the classes of a partly labelled pool, and ask for the labels that help most.

    Parameters
    ----------
    n_classes : number of classes, old and novel together. None: twice the labelled classes, or 8 without labels.
    strategy : which samples ``query`` picks; ``agcd strategies`` lists them. None: that of the protocol.
    protocol : "quick", "short", "paper" or "official"; chooses the defaults of everything else.
    trainer : how it learns: "simgcd", "mugcd", "pim", "gcd", "logistic" or "label_spreading". None: what ``settings``
        say, else "simgcd".
    settings : more settings as nested values, for example ``{"train": {"base_epochs": 50}}``.
    cache_dir : where features of images are kept. None: the folder AGCD_CACHE names, else ~/.cache/agcd.
    random_state : int, RandomState or None.

    Attributes
    ----------
    labels_ : (n_samples,) label of each training sample: the known one, else the predicted one; −1 (None where labels
        are strings) for an image that cannot be decoded.
    classes_ : (n_slots,) the label that each column of ``predict_proba`` stands for. Columns that nobody has named
        carry new numbers, or "unnamed #17" where labels are strings.
    n_classes_ : number of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from agcd import ActiveDiscovery
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(centre, 0.3, (40, 4)) for centre in 3 * np.eye(4)])
    >>> truth = np.repeat([0, 1, 2, 3], 40)
    >>> y = np.where((truth < 2) & (rng.random(160) < 0.3), truth, -1)   # two classes are known, two are hidden
    >>> model = ActiveDiscovery(n_classes=4, random_state=0).fit(X, y)
    >>> rows = model.query(4)
    >>> model = model.teach(rows, truth[rows])                           # the answers; then it trains again
    >>> float((model.predict(X) == truth).mean()) > 0.9
    True
    """

    def __init__(
        self,
        n_classes: int | None = None,
        *,
        strategy: str | None = None,
        protocol: str = "quick",
        trainer: str | None = None,
        settings: dict[str, Any] | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        random_state: Any = None,
    ):
        self.n_classes = n_classes
        self.strategy = strategy
        self.protocol = protocol
        self.trainer = trainer
        self.settings = settings
        self.cache_dir = cache_dir
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike | Sequence[Any] | None = None) -> Self:
        """Train on ``X``: embeddings (n_samples, n_features) or image paths; ``y`` is −1, None or NaN if unlabelled."""
        dataset = self._dataset(X, fit=True)
        known, y_class = _known_labels(y, dataset.n_rows)
        n_slots = self.n_classes or (2 * len(known) if len(known) else _N_CLASSES_WITHOUT_LABELS)
        config = self._config()
        features = self._open(dataset, config.backbone)
        state = LabelState(
            tuple(map(str, known)),
            len(known),
            y_class,
            np.where(y_class >= 0, 0, -1),
            np.zeros(dataset.n_rows, bool),
            np.zeros(dataset.n_rows, bool),
        )
        self._names: list[Any] = list(known)
        self._session = Session(features, state, config, n_slots)
        return self._train()

    def query(self, n: int = 1) -> IntArray:
        """Positions in the training ``X`` of the ``n`` samples whose labels would help most."""
        check_is_fitted(self)
        return self._session.ask(n).rows

    def teach(self, rows: ArrayLike, labels: Sequence[Any] | NDArray[Any]) -> Self:
        """Take the labels of the training samples at ``rows`` and train one more round."""
        check_is_fitted(self)
        rows = np.asarray(rows, np.int64)
        if len(rows) != len(labels):
            raise DataError(f"{len(rows)} rows came with {len(labels)} labels; one label per row is expected.")
        if len(rows) and not (rows.min() >= 0 and rows.max() < self._session.features.n_rows):
            raise DataError(f"Rows must lie in 0 to {self._session.features.n_rows - 1}.")
        told = [_plain(label) for label in labels]
        heard = {str(name) for name in self._names}
        self._names += [label for label in dict.fromkeys(told) if str(label) not in heard]
        self._session.tell(rows, [str(label) for label in told])
        return self._train()

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each sample: a known one, or that of an unnamed class."""
        y_slot = self.predict_proba(X).argmax(1)
        return np.asarray(self.classes_[y_slot])

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities (n_samples, n_classes_); column k belongs to ``classes_[k]``."""
        return self._predict(X).probs

    def transform(self, X: Any) -> FloatArray:
        """Unit-length features (n_samples, n_features_out) in which classes are told apart."""
        return self._predict(X).features

    def _train(self) -> Self:
        session, last = self._session, self._session.train()
        self.n_classes_ = last.n_slots
        self.classes_ = _slot_labels(self._names, last.last.slot_of_class, self.n_classes_)
        assert last.prediction is not None
        y_slot = np.zeros(session.features.n_rows, np.int64)
        y_slot[last.prediction.rows] = last.prediction.y_slot
        known = session.labels.y_class >= 0
        y_slot[known] = last.last.slot_of_class[session.labels.y_class[known]]
        self.labels_ = self.classes_[y_slot]
        unread = [row for row in session.features.bad_rows if not known[row]]
        self.labels_[unread] = -1 if self.labels_.dtype.kind == "i" else None
        return self

    def _predict(self, X: Any) -> Prediction:
        check_is_fitted(self)
        dataset = self._dataset(X, fit=False)
        # New samples are looked at once: their features are not worth a place on the disk.
        features = self._open(dataset, self._session.config.backbone.model_copy(update={"cache": "off"}))
        return self._session.latest.fitted.predict(features, np.arange(dataset.n_rows))

    def _dataset(self, X: Any, *, fit: bool) -> Dataset:
        if is_paths(X):
            return _image_rows([Path(path) for path in X])
        X = validate_data(self, X, reset=fit, dtype=np.float32, ensure_min_samples=2 if fit else 1)
        return from_arrays(X, None, name="X")

    def _open(self, dataset: Dataset, backbone: BackboneConfig) -> RowFeatures:
        return open_features(dataset, backbone, Path(self.cache_dir) if self.cache_dir else default_cache())

    def _config(self) -> Config:
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        values = dict(self.settings or {})
        query = {**({} if self.strategy is None else {"strategy": self.strategy}), **values.pop("query", {})}
        config = make_config({"protocol": self.protocol, "seed": seed, **values, "query": query})
        return config if self.trainer is None else _with_trainer(config, self.trainer)


def _with_trainer(config: Config, trainer: str) -> Config:
    """The settings with that trainer; settings that name another one contradict it."""
    if "trainer" in config.train.model_fields_set and config.train.trainer != trainer:
        raise ConfigError(
            f"trainer={trainer!r} contradicts the setting train.trainer, which is {config.train.trainer!r}: give one."
        )
    return config.model_copy(update={"train": config.train.model_copy(update={"trainer": trainer})})


def _image_rows(paths: list[Path]) -> Dataset:
    """Every path as a row, in order; one that cannot be used is an error, because positions must stay."""
    items = [Item(path, str(path), None) for path in paths]
    dataset = image_dataset("X", items, otherwise="None of the given paths is a usable image")
    if dataset.quarantine:
        first = dataset.quarantine[0]
        raise DataError(f"{len(dataset.quarantine)} images cannot be used; the first is {first.path}: {first.reason}.")
    return dataset


def is_paths(X: Any) -> bool:
    """Whether ``X`` is a sequence of image paths rather than an array of numbers."""
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and X.dtype.kind in "UO" and len(X) > 0 and isinstance(X[0], str | os.PathLike)
    return isinstance(X, list | tuple) and len(X) > 0 and all(isinstance(item, str | os.PathLike) for item in X)


def _known_labels(y: ArrayLike | Sequence[Any] | None, n_rows: int) -> tuple[list[Any], IntArray]:
    """The distinct labels in sorted order, and the number of each row's label, −1 for unlabelled."""
    if y is None:
        return [], np.full(n_rows, -1, np.int64)
    values = np.asarray(y, dtype=object).ravel()
    if len(values) != n_rows:
        raise DataError(f"y has {len(values)} labels for {n_rows} samples; one per sample is expected.")
    plain = [_plain(value) for value in values]
    labelled = [not (v is None or v == -1 or v != v) for v in plain]
    known = sorted({v for v, keep in zip(plain, labelled, strict=True) if keep}, key=lambda v: (str(type(v)), v))
    number = {value: i for i, value in enumerate(known)}
    return known, np.asarray([number[v] if keep else -1 for v, keep in zip(plain, labelled, strict=True)], np.int64)


def _plain(value: Any) -> Any:
    """A label as a Python value; a column of numbers with NaN in it has made whole numbers floats."""
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _slot_labels(names: Sequence[Any], slot_of_class: IntArray, n_slots: int) -> NDArray[Any]:
    """The label of every slot: the name of its class, or a new one for slots without."""
    named = {int(slot): names[c] for c, slot in enumerate(slot_of_class)}
    if all(isinstance(name, int | np.integer) for name in names):
        fresh = iter(range(max([int(n) for n in names], default=-1) + 1, 2**62))
        return np.asarray([named[s] if s in named else next(fresh) for s in range(n_slots)], np.int64)
    return np.asarray([named.get(s, f"unnamed #{s}") for s in range(n_slots)], dtype=object)
