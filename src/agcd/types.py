"""The nouns that every part shares: frozen dataclasses of arrays.

A *row* is one item. A *class* is what a person calls it. A *slot* is one output of the classifier head.
A suffix says which numbering a number lives in; −1 means unlabelled. Rows number the whole data set, train
and test alike, so that no function ever speaks of a position inside a subset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.floating[Any]]
BoolArray = NDArray[np.bool_]
Phase = Literal["confident", "informative"]
Growth = Literal["slots", "features", "picks", "pairs"]
"""What the work of a strategy grows with, beside the rows of the pool; see ``grows_with``."""

UNLABELLED = -1
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Quarantined:
    """A file that was found but cannot be used, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Looks:
    """What decoding every picture of a data set once has told, by row."""

    width: IntArray
    height: IntArray
    is_deep: BoolArray
    """Values are stretched to the 256 that are shown."""
    has_pages: BoolArray
    """Only the first of several pages is read."""
    hash: NDArray[np.uint64]
    """Alike for pictures that look alike; 0 where a picture shows too little."""


@dataclass(frozen=True)
class Dataset:
    """What a source found: items, the labels that are known, and which rows are for testing only.

    Items are images (``paths``), ``texts``, ``records`` or nothing but embeddings. Where ``x`` (n × d) is given, those
    are the features, else they are computed from the items; records have no features of their own. ``keys`` identify
    the content of each row, so that features are computed once per content whatever the file is called.
    """

    name: str
    classes: tuple[str, ...]
    y_class: IntArray
    is_test: BoolArray
    keys: tuple[str, ...]
    paths: tuple[Path, ...] | None = None
    x: FloatArray | None = None
    quarantine: tuple[Quarantined, ...] = ()
    looks: Looks | None = None
    """None where pictures were not decoded yet."""
    texts: tuple[str, ...] | None = None
    records: tuple[str, ...] | None = None
    """Each a JSON object (``agcd.data.records``)."""
    where: tuple[str, ...] | None = None
    """Where each text or record comes from, unique: ``file.csv:17``, an id, or a path."""

    @property
    def n_rows(self) -> int:
        return len(self.y_class)

    def only(self, rows: IntArray) -> Dataset:
        """Some rows, as a data set of their own; how pictures look is not kept."""

        def taken(values: tuple[_Value, ...] | None) -> tuple[_Value, ...] | None:
            return None if values is None else tuple(values[row] for row in rows.tolist())

        return replace(
            self,
            y_class=self.y_class[rows],
            is_test=self.is_test[rows],
            keys=taken(self.keys) or (),
            paths=taken(self.paths),
            texts=taken(self.texts),
            records=taken(self.records),
            where=taken(self.where),
            x=None if self.x is None else self.x[rows],
            looks=None,
        )


@dataclass(frozen=True)
class Split:
    """Which classes are old and which train rows carry a label at the start."""

    old_classes: tuple[str, ...]
    novel_classes: tuple[str, ...]
    labelled_rows: IntArray
    unused_rows: IntArray
    """Train rows dropped by a long-tail profile."""
    seed: int
    label_ratio: float


@dataclass(frozen=True)
class LabelState:
    """All that the person has said so far, folded into arrays over rows.

    ``classes`` lists the old classes first (``n_old`` of them), then novel ones in the order they were named.
    ``asked_round`` is −1 for rows never answered, 0 for labels known from the start, t for answers of round t.
    ``held_out`` rows (test, junk, unreadable) are neither trained on nor asked about; ``passed`` rows (skipped,
    unsure) stay unlabelled training data but are not asked again. ``accepted`` is the class that a row was accepted as,
    looked over with a page of others, and −1 elsewhere: no label, but more than nothing. None: no row was.
    """

    classes: tuple[str, ...]
    n_old: int
    y_class: IntArray
    asked_round: IntArray
    held_out: BoolArray
    passed: BoolArray
    last_event: int = 0
    accepted: IntArray | None = None

    @property
    def train_rows(self) -> IntArray:
        return np.flatnonzero(~self.held_out)

    @property
    def labelled_rows(self) -> IntArray:
        return np.flatnonzero((self.y_class >= 0) & ~self.held_out)

    @property
    def seed_rows(self) -> IntArray:
        """Rows labelled before the first question."""
        return np.flatnonzero((self.y_class >= 0) & (self.asked_round == 0) & ~self.held_out)

    @property
    def queried_rows(self) -> IntArray:
        """Rows labelled by answers to questions."""
        return np.flatnonzero((self.y_class >= 0) & (self.asked_round > 0) & ~self.held_out)

    @property
    def accepted_classes(self) -> IntArray:
        """(n,): ``accepted``, or −1 everywhere."""
        return np.full_like(self.y_class, UNLABELLED) if self.accepted is None else self.accepted

    @property
    def accepted_rows(self) -> IntArray:
        """Rows accepted by page that have no label."""
        return np.flatnonzero((self.accepted_classes >= 0) & (self.y_class < 0) & ~self.held_out)

    @property
    def pool_rows(self) -> IntArray:
        """Rows that may be asked about."""
        return np.flatnonzero((self.y_class < 0) & ~self.held_out & ~self.passed)

    def tell(self, rows: IntArray, names: Sequence[str], round_: int) -> LabelState:
        """The state after answers; a name not heard before becomes a new class."""
        classes = list(self.classes)
        known = {name: i for i, name in enumerate(classes)}
        y_class, asked_round = self.y_class.copy(), self.asked_round.copy()
        for row, name in zip(rows.tolist(), names, strict=True):
            if name not in known:
                known[name] = len(classes)
                classes.append(name)
            y_class[row], asked_round[row] = known[name], round_
        return replace(self, classes=tuple(classes), y_class=y_class, asked_round=asked_round)


@dataclass(frozen=True)
class Prediction:
    """A model's view of some rows: slot probabilities (n × K) and unit-length features (n × d)."""

    rows: IntArray
    probs: FloatArray
    features: FloatArray
    model_id: str

    @property
    def y_slot(self) -> IntArray:
        return np.asarray(self.probs.argmax(1), dtype=np.int64)


@dataclass(frozen=True)
class LabelMapping:
    """The slot of every known class. ``observed`` classes have labelled rows; the others keep their old slot."""

    slot_of_class: IntArray
    observed: BoolArray
    agreement: float
    """Share of the rows that voted (labelled, or settled by labels) whose predicted slot is the slot of their class."""
    model_id: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "slot_of_class": self.slot_of_class.tolist(),
            "observed": self.observed.tolist(),
            "agreement": self.agreement,
            "model_id": self.model_id,
        }

    @staticmethod
    def from_json(value: dict[str, Any]) -> LabelMapping:
        slots, observed = np.asarray(value["slot_of_class"], np.int64), np.asarray(value["observed"], bool)
        return LabelMapping(slots, observed, value["agreement"], value["model_id"])


@dataclass(frozen=True)
class PoolView:
    """All that a strategy may see. It holds no labels of the pool, so a strategy cannot cheat.

    What is None is not known; every strategy can do without it. A head that is known gives
    ``probs = softmax((features @ slot_weights.T + slot_biases) / temperature)``.
    ``labelled_probs`` costs a pass of every earlier model: it is there for a strategy that declares it (``needs``).
    """

    rows: IntArray
    probs: FloatArray
    features: FloatArray
    labelled_features: FloatArray
    labelled_slots: IntArray
    n_old: int
    round: int = 1
    phase: Phase = "informative"
    labelled_rounds: IntArray | None = None
    """(m,): the round each labelled row was asked about in; 0 = known from the start."""
    labelled_probs: FloatArray | None = None
    """(m, K): each labelled row as the model that asked about it saw it; known from the start: as seen now."""
    slot_weights: FloatArray | None = None
    """(K, d)"""
    slot_biases: FloatArray | None = None
    """(K,)"""
    temperature: float = 0.1


@dataclass(frozen=True)
class NumberOfClasses:
    """How many classes there seem to be, and which numbers explain the labels about as well."""

    n: int
    low: int
    """``low`` to ``high`` spans the numbers tried whose accuracy is within one standard error of the best."""
    high: int
    curve: tuple[tuple[int, float], ...]
    """Numbers that were tried, and the mean accuracy on the labelled rows at each, by rising number."""

    def words(self) -> str:
        return f"about {self.n} classes ({self.low} to {self.high} explain the labels about as well)"

    def to_json(self) -> dict[str, Any]:
        return {"n": self.n, "low": self.low, "high": self.high, "curve": [list(point) for point in self.curve]}

    @staticmethod
    def from_json(value: dict[str, Any]) -> NumberOfClasses:
        """What ``to_json`` gave; older files hold more, which is left alone."""
        curve = tuple((int(n), float(share)) for n, share in value["curve"])
        return NumberOfClasses(value["n"], value["low"], value["high"], curve)


_Function = TypeVar("_Function", bound=Callable[..., Any])


def needs(*fields: str) -> Callable[[_Function], _Function]:
    """Declares that a strategy reads fields of ``PoolView`` that are costly to fill and None otherwise."""

    def declare(strategy: _Function) -> _Function:
        strategy.needs = frozenset(fields)  # type: ignore[attr-defined]
        return strategy

    return declare


def grows_with(growth: Growth) -> Callable[[_Function], _Function]:
    """Declares what a strategy does with each row of the pool, from which ``agcd estimate`` reckons its time.

    ``slots``: reads its probabilities. ``features``: reads its features too, or compares it with the labels.
    ``picks``: compares it with as many rows as are picked. ``pairs``: compares it with all other rows.
    """

    def declare(strategy: _Function) -> _Function:
        strategy.growth = growth  # type: ignore[attr-defined]
        return strategy

    return declare


class OneByOne(Protocol):
    """Questions that are decided one at a time, each after the answers so far."""

    def next(self) -> int:
        """The row to ask about next."""

    def tell(self, row: int, y_slot: int) -> None:
        """The answer, as a slot; classes without one have numbers of their own from the number of slots on."""


def one_by_one(asking: Callable[..., OneByOne]) -> Callable[[_Function], _Function]:
    """Declares what asks one question at a time for a strategy; ``asking`` is called as the strategy is."""

    def declare(strategy: _Function) -> _Function:
        strategy.one_by_one = asking  # type: ignore[attr-defined]
        return strategy

    return declare


@dataclass(frozen=True)
class Query:
    """The rows to ask about, with the reason for each in words; ``facts["slots"]`` are their predicted slots."""

    rows: IntArray
    scores: FloatArray
    reasons: tuple[str, ...]
    strategy: str
    budget: int
    seed: int
    model_id: str
    facts: dict[str, Any] = field(default_factory=dict)
