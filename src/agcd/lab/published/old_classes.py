"""Which classes are old in the published benchmarks, and in which order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources

from agcd.errors import DataError
from agcd.lab.published.facts import Published, find_published
from agcd.types import Dataset


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
