"""Settings: typed, frozen, with limits beside each; unknown keys are refused with a guess at what was meant.

``protocol`` is the one dial most people need. It chooses the defaults of everything else:

* ``quick``: short training from k-means prototypes on centred features, and what we ask and make of the answers
  (docs/beyond.md); the practitioner's default.
* ``short``: the same short training with what the paper asks and makes of the answers.
* ``paper``: the method as the paper describes it, under the decisions of docs/method.md.
* ``official``: ``paper`` with the published code's schedule, fill rule and unpinned mapping.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agcd.errors import ConfigError, did_you_mean
from agcd.known_weights import with_known_weights

Protocol = Literal["quick", "short", "paper", "official"]


class Settings(BaseModel):
    """Settings of one kind; a trainer from outside derives a class of its own from it."""

    model_config = ConfigDict(frozen=True, extra="forbid")


S = TypeVar("S", bound=Settings)


class BackboneConfig(Settings):
    """Where features come from; embeddings need none of it but ``dropout``."""

    name: str = "efficientnet_lite0"
    """The network: agcd's own, a model of timm, an encoder of texts, or ``package.module:name``."""
    weights: Path | None = None
    """A file, or what ``agcd weights`` calls one: then ``name`` and ``weights_sha256`` follow."""
    weights_sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$")
    """What the file must be; one that has changed is refused."""
    image_size: int = Field(224, ge=32, le=1024)
    """Pixels a side that the network sees."""
    trainable_blocks: int = Field(1, ge=0, le=48)
    """How much of the network is trained; 0 = nothing but a small adapter on its pooled features: many times faster."""
    views: int = Field(4, ge=1, le=256)
    """Crops of each training picture that are computed and kept; training draws from them."""
    cache: Literal["store", "off"] = "store"
    """Keep what the frozen blocks give, or compute it anew for every batch, from fresh crops."""
    runner: Literal["auto", "torch", "onnx"] = "auto"
    """What computes features for a store; auto: onnxruntime for convolutional networks on a CPU, where it is installed,
    as it is faster there, else torch."""
    dropout: float = Field(0.2, ge=0.0, lt=1.0)
    """Feature-space (Gaussian) dropout: what makes two views of an embedding differ."""


class MuGCDConfig(Settings):
    """What the trainer ``mugcd`` needs beside the shared settings."""

    representation_share: float = Field(0.5, ge=0, lt=1)
    """Share of the base epochs that train the representation alone, before the teacher comes in."""
    teacher_decay_start: float = Field(0.7, ge=0.5, le=1)
    """What the teacher keeps of itself at the first step of base training with it (ω_base of the paper)."""
    teacher_decay_end: float = Field(0.999, ge=0.5, lt=1)
    """What it keeps at the last one (ω_T)."""


class PIMConfig(Settings):
    """What the trainer ``pim`` needs; of the shared settings it reads ``center`` and ``pin_old`` alone."""

    scale: float = Field(25.0, gt=0)
    """What products of weights and features are multiplied by before the softmax."""
    lr: float = Field(1e-3, gt=0)
    """Learning rate."""
    weight_decay: float = Field(1e-2, ge=0)
    """Weight decay."""
    n_init: int = Field(10, ge=1, le=1000)
    """Runs of k-means, of which the best one gives the first weights."""
    steps: int = Field(1000, ge=0, le=1_000_000)
    """Steps of base training."""
    round_steps: int = Field(300, ge=1, le=1_000_000)
    """Steps of a round."""
    entropy_weights: tuple[Annotated[float, Field(ge=0)], ...] = Field(
        (0.1, 0.3, 0.5, 0.7, 1.0), min_length=1, max_length=1000
    )
    """Weights of the conditional entropy to choose from, by the accuracy on the labelled rows."""
    search_steps: int = Field(200, ge=1, le=1_000_000)
    """Steps of training per weight tried."""


class GCDConfig(Settings):
    """What ``gcd`` needs beside the shared settings; those of head, EMA and queried phase it does not read."""

    n_init: int = Field(10, ge=1, le=1000)
    """Runs of k-means at the end of base training, of which the best one counts."""


class SimGCDNNConfig(Settings):
    """What ``simgcd_nn`` needs beside the shared settings."""

    n_neighbours: int = Field(5, ge=1, le=1000)
    """Nearest neighbours of a row that may stand in for it in base training, one at a time."""


class AnswersConfig(Settings):
    """What active rounds of ``simgcd``, ``simgcd_nn`` and ``mugcd`` make of the answers; all off is the paper
    (docs/beyond.md)."""

    mapping: Literal["labels", "evidence"] = "labels"
    """Who votes on the slot of a class: its labelled rows, or also the rows that evidence settles most."""
    repair: bool = False
    """Move prototypes, before a round, to classes that their slot misses."""
    restart: bool = False
    """Start every round from the base model with all answers so far, and not from the round before."""
    spread_weight: float = Field(0.0, ge=0)
    """Weight of the classes that labels spread to unlabelled rows over the neighbour graph."""
    unnamed: Literal["keep", "drop"] = "keep"
    """What becomes, before a round, of slots without a class whose rows labels explain."""
    page_weight: float = Field(0.5, ge=0, le=1)
    """What a row that was accepted by page counts for, where an answer has 1; 0: it is as unlabelled as others."""


class TrainConfig(Settings):
    """Base training and active rounds (docs/method.md has the formulas); trainers have sections of their own."""

    trainer: str = "simgcd"
    """A name that ``agcd plugins`` lists, or ``package.module:Class``."""
    base_epochs: int = Field(20, ge=0, le=2000)
    """Epochs before the first question."""
    round_epochs: int = Field(8, ge=1, le=2000)
    """Epochs of every round after that."""
    batch_size: int = Field(128, ge=2, le=65536)
    """Rows of a step, each in two views; half of them are labelled, in expectation."""
    query_batch_size: int = Field(8, ge=1, le=4096)
    """Rows of a step of the queried phase of a round."""
    lr: float = Field(0.1, gt=0, le=10)
    """Learning rate at the first step."""
    lr_schedule: Literal["cosine", "official"] = "cosine"
    """By a cosine, or by one of which every epoch takes two steps, as in the published code."""
    momentum: float = Field(0.9, ge=0, lt=1)
    """Of stochastic gradient descent."""
    weight_decay: float = Field(5e-5, ge=0)
    """On matrices only."""
    sup_weight: float = Field(0.35, ge=0, le=1)
    """Share of the supervised losses; the unsupervised ones have the rest."""
    entropy_weight: float = Field(2.0, ge=0)
    """Weight of the entropy of a batch's mean prediction, which keeps few classes from taking all rows."""
    student_temp: float = Field(0.1, gt=0)
    """Temperature of the softmax of the student."""
    teacher_temp: float = Field(0.04, gt=0)
    """Temperature of the targets it learns, after the warm-up."""
    warmup_teacher_temp: float = Field(0.07, gt=0)
    """The same at the first epoch."""
    warmup_epochs: int = Field(30, ge=0)
    """Epochs from the one to the other."""
    contrast_temp: float = Field(1.0, gt=0)
    """Temperature of the contrast between views."""
    supcon_temp: float = Field(0.07, gt=0)
    """Temperature of the contrast between classes."""
    ema_decay: float = Field(0.9, ge=0, lt=1)
    """What the averaged model keeps of itself at each step of a round."""
    projector_width: int = Field(512, ge=1)
    """Width of the projector that the contrast sees."""
    projector_dim: int = Field(128, ge=1)
    """Numbers that it gives."""
    init: Literal["random", "kmeans"] = "kmeans"
    """The first prototypes: drawn at random, or by semi-supervised k-means on the frozen features."""
    center: bool = True
    """Subtract the mean frozen feature before normalising, so that cosines use their whole range."""
    keep_queried_unlabelled: bool = False
    """Rows that were answered also stay among the unlabelled ones."""
    queried_unsupervised: bool = False
    """Answers are also learned by the unsupervised losses, in their own batches: the paper's appendix."""
    pin_old: bool = True
    """Classes that were known at the start keep the slots they have."""
    first_mapping: Literal["trained", "start"] = "trained"
    """What a round's last mapping is compared with: the one that its first epoch translates answers by, after its
    original phase as in the published code, or that of the model as the round begins, as in Algorithm 1."""
    map_every: int = Field(0, ge=0)
    """Refresh the mapping every so many steps of the queried phase; 0 = once per epoch."""
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    """In which the tail and the projector are computed while training; classifier, losses and weights stay float32."""
    compile: bool = False
    """Have torch compile the student: minutes at the start of every run, for a GPU that has hours of training."""
    deterministic: bool = True
    """On a GPU, take the forms of operations that give the same bits every time, where there are such."""
    answers: AnswersConfig = AnswersConfig()
    mugcd: MuGCDConfig = MuGCDConfig()
    pim: PIMConfig = PIMConfig()
    gcd: GCDConfig = GCDConfig()
    simgcd_nn: SimGCDNNConfig = SimGCDNNConfig()
    options: dict[str, Any] = Field(default_factory=dict)
    """Settings of a trainer from outside, checked by the class that it declares for them."""

    def unread(self, reads: Collection[str]) -> set[str]:
        """What plays no part in a run of a trainer that reads the sections ``reads``, so that neither its record nor
        its key knows it: the other sections, and that of answers where it is all off."""
        return set(SECTIONS.difference(reads)) | ({"answers"} if self.answers == AnswersConfig() else set())


SECTIONS = frozenset(
    name
    for name, field in TrainConfig.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, Settings)
)
"""The sections of ``train``; a trainer declares which of them it reads (``agcd.training.sections_read``)."""
ROUND_SETTINGS = {
    "round_epochs",
    "query_batch_size",
    "keep_queried_unlabelled",
    "queried_unsupervised",
    "first_mapping",
    "map_every",
    "answers",
}
"""Settings that base training does not read, so that runs differing only in them share their base."""


class QueryConfig(Settings):
    """What is asked, and how much of it."""

    strategy: str = "adaptive_novel"
    """A name that ``agcd strategies`` lists, or ``package.module:function``."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the strategy."""
    fill: Literal["slots", "official"] = "slots"
    """How strategies with a share per novel slot spend what is left over: slot by slot, or class-blind."""
    budget: int | None = Field(None, ge=1)
    """Questions per round; None = as ``Config.budget`` says."""
    one_by_one: bool = False
    """Decide every question of a benchmark's round after the answer to the last, as a person at the page is asked."""
    rounds: int = Field(5, ge=1, le=1000)
    """Rounds of questions in a benchmark."""
    switch_round: int | None = Field(None, ge=1)
    """First informative round, by hand; None = when the mapping is stable."""
    stability: Literal["mapping", "literal"] = "mapping"
    """Whose change over a round tells: the mapping that answers are translated by, or the paper's free assignment."""
    stable_threshold: float = Field(0.1, gt=0, le=1)
    """Share of the slots that may change over a round for the mapping to be stable."""


class Config(Settings):
    """Everything that decides a run, apart from the data."""

    protocol: Protocol = "quick"
    """Chooses the defaults of everything else."""
    seed: int = Field(0, ge=0)
    """Everything that is drawn at random follows from it."""
    device: str = Field("auto", pattern=r"^[a-z]+(:\d+)?$")
    """Where features, training and predictions are computed: cpu, cuda, cuda:1, mps; auto: cuda where there is one."""
    n_slots: int | None = Field(None, ge=1)
    """Number of classes, old and novel; None = what the data set or the estimate says."""
    max_acc: Literal["fast", "published"] = "fast"
    """How the number of classes is estimated: in seconds, or by the search and the k-means that were published."""
    backbone: BackboneConfig = BackboneConfig()
    train: TrainConfig = TrainConfig()
    query: QueryConfig = QueryConfig()

    def budget(self, n_pool: int, n_novel_slots: int) -> int:
        """Questions per round: as set, else by ``quick`` the square root of the pool, else one per novel slot.

        The number of slots is a guess until everything is named, and a low one would ask next to nothing.
        """
        if self.query.budget is not None:
            return self.query.budget
        return max(1, math.isqrt(n_pool) if self.protocol == "quick" else n_novel_slots)


OUR_ANSWERS: dict[str, Any] = {
    "mapping": "evidence",
    "repair": True,
    "restart": True,
    "spread_weight": 2.0,
    "unnamed": "drop",
}
OUR_STRATEGY = "propagation_herding"
"""What the default protocol asks and makes of answers; ``AnswersConfig()`` is what the paper makes of them."""
_PAPER_TRAIN: dict[str, Any] = {
    "base_epochs": 200,
    "round_epochs": 15,
    "projector_width": 2048,
    "projector_dim": 256,
    "init": "random",
    "center": False,
    "pim": {"n_init": 100, "entropy_weights": [step / 20 for step in range(1, 21)], "search_steps": 1000},
    "gcd": {"n_init": 100},
}
PRESETS: dict[str, dict[str, Any]] = {
    "quick": {"train": {"answers": OUR_ANSWERS}, "query": {"strategy": OUR_STRATEGY}},
    "short": {},
    "paper": {
        "max_acc": "published",
        "train": _PAPER_TRAIN | {"queried_unsupervised": True, "first_mapping": "start"},
    },
    "official": {
        "max_acc": "published",
        "train": _PAPER_TRAIN | {"lr_schedule": "official", "pin_old": False, "keep_queried_unlabelled": True},
        "query": {"switch_round": 2, "fill": "official"},
    },
}


def make_config(values: dict[str, Any] | None = None) -> Config:
    """Settings from plain values over the defaults of their protocol; every mistake is one sentence."""
    values = values or {}
    protocol = values.get("protocol", "quick")
    if protocol not in PRESETS:
        raise ConfigError(f"Unknown protocol {protocol!r}.{did_you_mean(str(protocol), PRESETS)}")
    backbone = values.get("backbone")
    if isinstance(backbone, Mapping):
        values = {**values, "backbone": with_known_weights(backbone)}
    return checked(Config, merged(PRESETS[protocol], values))


def checked(model: type[S], values: Mapping[str, Any], section: str = "") -> S:
    """``values`` as settings of this kind; every mistake is one sentence, which says the ``section`` they stand in."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_one_sentence(error, model, section)) from None


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Plain settings of later layers over those of earlier ones, section by section."""
    result: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            old = result.get(key)
            result[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result


def read_toml(path: Path) -> dict[str, Any]:
    """The plain values of a settings file, not yet checked."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"There is no settings file at {path}.") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read as settings: {error.strerror or error}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read as settings: it is not valid TOML ({error}).") from None
    except RecursionError:
        raise ConfigError(f"{path} cannot be read as settings: its values are nested too deep.") from None


def _one_sentence(error: ValidationError, model: Any, section: str) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in (*([section] if section else []), *first["loc"]))
    if first["type"] == "extra_forbidden":
        for part in first["loc"][:-1]:
            model = model.model_fields[str(part)].annotation
        return f"Unknown setting {where!r}.{did_you_mean(str(first['loc'][-1]), model.model_fields)}"
    return f"Setting {where!r} is {first['input']!r}: {first['msg']}."
