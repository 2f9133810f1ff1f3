"""``ActiveDiscovery``: the whole loop behind the face of a scikit-learn clusterer (docs/estimator.md)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from agcd.config import BackboneConfig, Config, make_config
from agcd.data.arrays import from_arrays
from agcd.errors import ConfigError, DataError
from agcd.estimator.files import plain_parameters, read_saved, write_saved
from agcd.estimator.labels import known_labels, slot_labels, taught_labels
from agcd.estimator.samples import image_or_text_rows, table
from agcd.features import open_features
from agcd.features.remembered import RememberedRows, remembered
from agcd.features.rows import RowFeatures
from agcd.io import default_cache
from agcd.session import Session, strategy_settings, without_bad_rows
from agcd.strategies import check_strategy
from agcd.training import trainer_options
from agcd.training.n_classes import look_for_classes
from agcd.types import UNLABELLED, Dataset, FloatArray, IntArray, LabelState, NumberOfClasses, Prediction, Query

_N_CLASSES_WITHOUT_LABELS = 8
"""As scikit-learn's k-means, which also has to start somewhere."""


class ActiveDiscovery(ClusterMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Discover the classes of a partly labelled pool, and ask for the labels that help most.

    Samples are embeddings (n_samples, n_features), image paths or texts. A label is missing where it is None, NaN,
    pandas' NA or NaT, masked, −1, "" or "-1"; all others are text, whole numbers or truth values, of one kind, and come
    back so.

    Parameters
    ----------
    n_classes : number of classes, old and novel together. "auto": estimated from the labels (Max-ACC), as projects do.
        None: twice the labelled classes, or 8 without labels.
    strategy : which samples ``query`` picks; ``agcd strategies`` lists the names. A function
        ``(view, budget, rng, **options) -> rows`` will do as well. None: that of the protocol.
    protocol : "quick", "short", "paper" or "official"; chooses the defaults of everything else.
    trainer : how it learns: "simgcd", "simgcd_nn", "mugcd", "pim", "gcd", "logistic" or "label_spreading". None: what
        ``settings`` say, else "simgcd".
    settings : more settings as nested values, for example ``{"train": {"base_epochs": 50}}``.
    cache_dir : where features of images and texts are kept. None: the folder AGCD_CACHE names, else ~/.cache/agcd.
    random_state : int, RandomState or None.
    verbose : 1 tells every epoch on the error stream.

    Attributes
    ----------
    labels_ : (n_samples,) label of each training sample: the known one, else the predicted one; −1 (None where labels
        are not numbers) for an image that cannot be decoded.
    classes_ : (n_slots,) the label that each column of ``predict_proba`` stands for. Columns that nobody has named
        carry new numbers, or "unnamed #17" where labels are not numbers.
    n_classes_ : number of columns.
    n_classes_estimate_ : what ``n_classes="auto"`` found, with the range that explains the labels about as well; else
        None.

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
        n_classes: int | Literal["auto"] | None = None,
        *,
        strategy: str | Callable[..., Any] | None = None,
        protocol: str = "quick",
        trainer: str | None = None,
        settings: dict[str, Any] | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.n_classes = n_classes
        self.strategy = strategy
        self.protocol = protocol
        self.trainer = trainer
        self.settings = settings
        self.cache_dir = cache_dir
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: ArrayLike | Sequence[Any] | None = None) -> Self:
        """Train on ``X``, embeddings, image paths or texts; what is missing in ``y`` is unlabelled."""
        config = self._config()
        dataset = self._dataset(X, fit=True)
        known, y_class = known_labels(y, dataset.n_rows)
        self._check_n_classes(len(known))
        features = self._open(dataset, config.backbone, config.device)
        nowhere = np.zeros(dataset.n_rows, bool)
        state = LabelState(tuple(map(str, known)), len(known), y_class, np.where(y_class >= 0, 0, -1), nowhere, nowhere)
        estimate = None
        if self.n_classes == "auto":
            readable = without_bad_rows(state, features)
            estimate = look_for_classes(features, readable, seed=config.seed, max_acc=config.max_acc)
        n_slots = estimate.n if estimate else self.n_classes or 2 * len(known) or _N_CLASSES_WITHOUT_LABELS
        self._session = Session(features, state, config, int(n_slots), echo=self._echo, strategy=self._strategy)
        self._names: list[Any] = known
        self.n_classes_estimate_: NumberOfClasses | None = estimate
        return self._train()

    @overload
    def query(self, n: int = 1, *, return_reasons: Literal[False] = False) -> IntArray: ...

    @overload
    def query(self, n: int = 1, *, return_reasons: Literal[True]) -> Query: ...

    def query(self, n: int = 1, *, return_reasons: bool = False) -> IntArray | Query:
        """Positions in the training ``X`` of the ``n`` samples whose labels would help most, the most wanted first.

        With ``return_reasons`` the whole ``Query``: ``rows``, and for each its ``scores`` (the margin between the two
        likeliest classes) and ``reasons`` (a sentence). Fewer than ``n`` come back when fewer are left to ask.
        """
        session = self._session_with_samples("query")
        if isinstance(n, bool) or not isinstance(n, int | np.integer):
            raise ConfigError(f"n is {n!r}; a whole number of samples is expected.")
        if n > 0 and not len(session.labels.pool_rows):
            raise DataError("There is nothing left to ask: every sample has a label.")
        query = session.ask(int(n))
        return query if return_reasons else query.rows

    def teach(self, rows: ArrayLike, labels: Any) -> Self:
        """Take the labels of the training samples at ``rows`` and train one more round.

        ``rows`` are positions or a Boolean mask over all training samples. Samples whose label is missing stay as they
        were, and may be asked about again.
        """
        session = self._session_with_samples("teach")
        answered, told = taught_labels(rows, labels, session.features.n_rows, self._names)
        self._names += [label for label in dict.fromkeys(told) if label not in self._names]
        session.tell(answered, [str(label) for label in told])
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator into one safetensors file, whole or not at all; a file that is there is replaced.

        Weights, labels and parameters are in it, the training samples are not. A backbone's own weights are named.
        """
        check_is_fitted(self)
        estimate = self.n_classes_estimate_
        facts = {
            "parameters": plain_parameters(self.get_params(deep=False), self._session.config.seed),
            "names": self._names,
            "n_features_in": getattr(self, "n_features_in_", None),
            "feature_names_in": getattr(self, "feature_names_in_", np.empty(0)).tolist(),
            "n_classes_estimate": estimate.to_json() if estimate else None,
        }
        write_saved(Path(path), self._session, self._y_slot, facts)

    @classmethod
    def load(cls, path: str | os.PathLike[str], X: Any = None) -> Self:
        """The estimator that ``save`` wrote; nothing in the file is executed.

        Without ``X`` it predicts and transforms. ``query`` and ``teach`` need the samples that it was fitted on, in the
        same order: give them as ``X``.
        """
        saved = read_saved(Path(path))
        facts, estimate = saved.facts, saved.facts["n_classes_estimate"]
        model = cls(**facts["parameters"])
        model._names = facts["names"]
        model.n_classes_estimate_ = NumberOfClasses.from_json(estimate) if estimate else None
        if facts["n_features_in"] is not None:
            model.n_features_in_ = facts["n_features_in"]
        if facts["feature_names_in"]:
            model.feature_names_in_ = np.asarray(facts["feature_names_in"], dtype=object)
        config, about = saved.config, facts["features"]
        features: RowFeatures
        if X is None:
            features = remembered(about, config.backbone)
        else:
            features = model._open(model._dataset(X, fit=False), config.backbone, config.device)
        if features.fingerprint != about["fingerprint"]:
            raise DataError(
                "X is not what the estimator was fitted on: give the same samples in the same order, or none."
            )
        model._session = saved.session(features, echo=model._echo, strategy=model.strategy)
        return model._describe(saved.y_slot)

    def _train(self) -> Self:
        session, last = self._session, self._session.train()
        assert last.prediction is not None
        known = session.labels.y_class >= 0
        y_slot = np.zeros(session.features.n_rows, np.int64)
        y_slot[last.prediction.rows] = last.prediction.y_slot
        y_slot[known] = last.last.slot_of_class[session.labels.y_class[known]]
        y_slot[[row for row in session.features.bad_rows if not known[row]]] = UNLABELLED
        if self.verbose:
            print(f"round {last.number} is trained on {int(known.sum())} labels", file=sys.stderr)
        return self._describe(y_slot)

    def _describe(self, y_slot: IntArray) -> Self:
        """Set what is told about the last round; ``y_slot`` is −1 where nothing is known."""
        last = self._session.latest
        self.n_classes_ = last.n_slots
        self.classes_ = slot_labels(self._names, last.last.slot_of_class, self.n_classes_)
        self._y_slot, unread = y_slot, y_slot < 0
        self.labels_ = self.classes_[y_slot]
        if unread.any() and self.labels_.dtype.kind != "i":
            self.labels_ = self.labels_.astype(object)
        self.labels_[unread] = UNLABELLED if self.labels_.dtype.kind == "i" else None
        return self

    def _predict(self, X: Any) -> Prediction:
        check_is_fitted(self)
        dataset = self._dataset(X, fit=False)
        # New samples are looked at once: their features are not worth a place on the disk.
        config = self._session.config
        features = self._open(dataset, config.backbone.model_copy(update={"cache": "off"}), config.device)
        return self._session.latest.fitted.predict(features, np.arange(dataset.n_rows))

    def _session_with_samples(self, what: str) -> Session:
        check_is_fitted(self)
        if isinstance(self._session.features, RememberedRows):
            raise DataError(
                f"{what} needs the samples that the estimator was fitted on: load(path, X) with the same X."
            )
        return self._session

    def _dataset(self, X: Any, *, fit: bool) -> Dataset:
        found = image_or_text_rows(X)
        if found is not None:
            return found
        try:
            values = validate_data(
                self,
                table(X),
                reset=fit,
                dtype=np.float32,
                ensure_min_samples=2 if fit else 1,
                ensure_all_finite=False,  # from_arrays says which row it is
            )
        except ValueError as error:
            if str(error).startswith("could not convert"):
                raise DataError(f"X holds something else than numbers: {error}.") from None
            raise
        return from_arrays(values, None, name="X")

    def _open(self, dataset: Dataset, backbone: BackboneConfig, device: str) -> RowFeatures:
        cache = Path(self.cache_dir) if self.cache_dir else default_cache()
        return open_features(dataset, backbone, cache, device=device, progress=None if self.verbose else _say_nothing)

    @property
    def _echo(self) -> Callable[[dict[str, Any]], None] | None:
        return _say_epoch if self.verbose else None

    @property
    def _strategy(self) -> Callable[..., Any] | None:
        """The strategy, where it is given as a function: all others are named in the settings."""
        return self.strategy if callable(self.strategy) else None

    def _check_n_classes(self, n_known: int) -> None:
        n = self.n_classes
        if n is None or (isinstance(n, str) and n == "auto"):
            return
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 2:
            raise ConfigError(f"n_classes is {n!r}; a whole number from 2, 'auto' or None is expected.")
        if n < n_known:
            raise ConfigError(f"n_classes is {n}, but {n_known} classes have labels already.")

    def _config(self) -> Config:
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        values = dict(self.settings or {})
        named = {"strategy": self.strategy} if isinstance(self.strategy, str) else {}
        config = make_config(
            {"protocol": self.protocol, "seed": seed, **values, "query": named | values.get("query", {})}
        )
        config = config if self.trainer is None else _with_trainer(config, self.trainer)
        trainer_options(config.train)  # a wrong name or option is told before anything is computed
        chosen = self._strategy or config.query.strategy
        check_strategy(chosen, strategy_settings(config.query, chosen))
        return config


def _with_trainer(config: Config, trainer: str) -> Config:
    """The settings with that trainer; settings that name another one contradict it."""
    if "trainer" in config.train.model_fields_set and config.train.trainer != trainer:
        raise ConfigError(
            f"trainer={trainer!r} contradicts the setting train.trainer, which is {config.train.trainer!r}: give one."
        )
    return config.model_copy(update={"train": config.train.model_copy(update={"trainer": trainer})})


def _say_epoch(line: dict[str, Any]) -> None:
    print(f"epoch {line['epoch'] + 1} of {line['n_epochs']}", file=sys.stderr)


def _say_nothing(done: int, total: int) -> None:
    """In place of a progress bar."""
