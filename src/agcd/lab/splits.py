"""Which split a cell starts from: the published one, one drawn with the seed, or the user's own; and how to say so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agcd.data.splits import make_split, read_old_classes
from agcd.errors import ConfigError
from agcd.lab.published import parse_spec, published_old_classes
from agcd.types import Dataset, Split

PUBLISHED, SEEDED = "published", "seeded"


def split_of(data: str, dataset: Dataset, seed: int, protocol: str, options: dict[str, Any]) -> tuple[Split, str]:
    """The split, and in words where its old classes and its labelled rows come from.

    ``options`` are those of ``make_split``, and ``classes``: "published" (the default for the paper's data sets),
    "seeded" (the default for all other data), or the path of a file that lists the old classes. The ``official``
    protocol also draws the labelled rows as the published code does: the same ones for every seed.
    """
    options = {key: value for key, value in options.items() if value is not None}
    known = parse_spec(data)
    classes = options.pop("classes", PUBLISHED if known else SEEDED)
    words = "classes and labels drawn with the seed"
    if classes == PUBLISHED:
        if known is None:
            raise ConfigError(
                f"{data} has no published split; use --split seeded, or a file that lists the old classes."
            )
        options["old_classes"] = published_old_classes(known[0].name, dataset)
        words = "published classes, labels drawn with the seed"
        if protocol == "official":
            options["draw"] = PUBLISHED
            words = "published classes and labels"
    elif classes != SEEDED:
        options["old_classes"] = read_old_classes(Path(classes))
        words = f"classes of {Path(classes).name}, labels drawn with the seed"
    return make_split(dataset, seed=seed, **options), words
