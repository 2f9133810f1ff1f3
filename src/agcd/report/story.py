"""What a report tells, as frozen dataclasses. Everything that needs the truth may be None or empty."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from PIL.Image import Image

from agcd.types import BoolArray, FloatArray, IntArray
from agcd.words import is_known

Thumbnail = Callable[[int], Image]
Excerpt = Callable[[int], str]


@dataclass(frozen=True)
class Estimate:
    """A share found on ``n`` samples drawn at random or checked, and the interval that holds the true one so often."""

    n: int
    share: float
    low: float
    high: float
    level: float = 0.95


@dataclass(frozen=True)
class RoundFacts:
    """The state after one round; shares run from 0 to 1 and ``n_labels`` counts the answers so far."""

    number: int
    n_labels: int
    acc_all: float | None = None
    acc_old: float | None = None
    acc_new: float | None = None
    nov_coverage: float | None = None
    nov_ratio: float | None = None
    nov_uniformity: float | None = None
    nov_information: float | None = None
    phase: str | None = None
    mapping_diff: float | None = None
    """Share of the classes whose slot moved in this round."""
    mapping_changes: tuple[str, ...] = ()
    best_on_test: float | None = None
    """Highest test accuracy over the epochs: chosen with the truth, so never the headline."""
    agreement: float | None = None
    """Share of the labelled rows that the model predicts as the person did; needs no ground truth."""
    n_taught: int | None = None
    """Labels that the round learned from, those known at the start included."""
    n_classes: int | None = None
    """Classes that had a name."""
    named: float | None = None
    """Share of the samples that lie in a group with a name."""
    regrouped: float | None = None
    """Share of the samples that lie in another group than in the round before."""
    audit: Estimate | None = None
    """What a blind audit finds: the nearest thing to an accuracy where there is no ground truth."""


@dataclass(frozen=True)
class Confidence:
    """The highest probability of each measured sample, (n_old,) and (n_new,), at one moment.

    Without ground truth, old and new are what the model itself predicts.
    """

    title: str
    old: FloatArray
    new: FloatArray


@dataclass(frozen=True)
class FeatureMap:
    """Features laid out on a plane at one moment: ``xy`` is (n, 2), all else (n,); ``names`` by class number.

    Maps of one story share their class numbers; −1 means that the class is not known.
    """

    title: str
    xy: FloatArray
    y_class: IntArray
    is_new: BoolArray
    queried: BoolArray
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        n = len(self.y_class)
        if self.xy.shape != (n, 2) or len(self.is_new) != n or len(self.queried) != n:
            found = f"xy {self.xy.shape}, is_new {self.is_new.shape}, queried {self.queried.shape}"
            raise ValueError(f"a feature map of {n} classes needs xy ({n}, 2) and masks ({n},), but has {found}")


@dataclass(frozen=True)
class ClassStrip:
    """One class as the model sees it: how large it is, its most typical rows, and those with an answer."""

    name: str
    is_new: bool
    size: int
    typical_rows: IntArray
    queried_rows: IntArray
    purity: float | None = None
    n_checked: int | None = None
    """On how many members the purity was measured; None: on all of them."""
    is_named: bool = True


@dataclass(frozen=True)
class Disputed:
    """A row that people call otherwise than the model."""

    row: int
    said: str
    predicted: str


@dataclass(frozen=True)
class Confusion:
    """Two classes that people and the model do not tell apart alike, with a few typical rows of each."""

    one: str
    other: str
    one_rows: IntArray
    other_rows: IntArray
    n: int
    """How many rows they call differently."""
    disputed: tuple[Disputed, ...]
    """The first of them."""


@dataclass(frozen=True)
class Doubt:
    """A row that nobody has checked, what it is called, and the chance that this is right."""

    row: int
    name: str
    certainty: float


@dataclass(frozen=True)
class Kinds:
    """What a report calls classes known from the start, those found since, and groups without a name."""

    known: str
    found: str
    unnamed: str | None = None
    """None: a group without a name is called like one with a name."""

    def of(self, strip: ClassStrip) -> str:
        if self.unnamed and not strip.is_named:
            return self.unnamed
        return self.found if strip.is_new else self.known


RESEARCHERS = Kinds("old", "novel")
PERSONS = Kinds("known", "found by you", "group")
"""Where there is no ground truth, somebody reads about own data."""


@dataclass(frozen=True)
class Story:
    """All that a report tells. ``rounds[0]`` is "before" and ``rounds[-1]`` is "after"."""

    title: str
    subtitle: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    """What only experts want to know, folded away at the end."""
    accuracy: Estimate | None = None
    """The share of names that are right, where somebody has worked it out."""
    rounds: tuple[RoundFacts, ...] = ()
    rivals: Mapping[str, tuple[RoundFacts, ...]] = field(default_factory=dict)
    """Other ways of asking on the same data, by name."""
    confidence: tuple[Confidence, ...] = ()
    maps: tuple[FeatureMap, ...] = ()
    classes: tuple[ClassStrip, ...] = ()
    confusions: tuple[Confusion, ...] = ()
    """The most frequent first."""
    doubts: tuple[Doubt, ...] = ()
    """The most doubtful first."""
    thumbnail: Thumbnail | None = None
    """Row → image; None where rows are not images."""
    excerpt: Excerpt | None = None
    """Row → what it says; None where rows are not texts."""
    noun: str = "picture"
    """What one row is called."""
    paths: Sequence[str] | None = None
    """The file of each row; None where rows have none."""
    commands: tuple[str, ...] = ()
    commands_note: str = ""
    """A sentence before the commands."""
    name: str = "This run"
    """What the legend calls our own rounds."""
    measured_on: str = "the test split"
    """Which rows the accuracies were measured on, to be read after "on"."""

    @property
    def has_truth(self) -> bool:
        """Whether any accuracy is known."""
        return any(is_known(facts.acc_all) for facts in self.rounds)

    @property
    def kinds(self) -> Kinds:
        return RESEARCHERS if self.has_truth else PERSONS

    def file(self, row: int) -> str:
        """What a row is called: its file, or else its number."""
        return self.paths[row] if self.paths is not None else f"row {row}"

    def in_order(self) -> tuple[ClassStrip, ...]:
        """The classes as they are shown: novel first, then by size."""
        return tuple(sorted(self.classes, key=lambda strip: (not strip.is_new, -strip.size, strip.name)))
