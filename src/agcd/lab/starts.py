"""Where a cell starts: a split (published, drawn with the seed, or the user's own), and a validation part if wanted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from agcd.data.splits import make_split, read_old_classes
from agcd.errors import ConfigError, DataError
from agcd.lab.published import parse_spec, published_old_classes
from agcd.rng import generator
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


def validation_part(dataset: Dataset, share: float) -> Dataset:
    """The train rows alone, of which a ``share`` of each class takes the place of the test rows.

    It is something to decide on that no test row has ever touched. Every class with at least two rows gives one or
    more and keeps one or more. The draw knows no seed, so that all seeds of a benchmark are measured on the same rows.
    """
    if not 0 < share < 1:
        raise ConfigError(f"validation is {share}; a share of the train rows between 0 and 1 is expected.")
    train_rows = np.flatnonzero(~dataset.is_test)
    y_class = dataset.y_class[train_rows]
    rng, is_test = generator(0, "validation"), np.zeros(len(train_rows), np.bool_)
    for c in np.unique(y_class[y_class >= 0]):
        own = np.flatnonzero(y_class == c)
        n_held_out = min(max(1, round(share * len(own))), len(own) - 1)
        is_test[rng.permutation(own)[:n_held_out]] = True
    if not is_test.any():
        raise DataError(f"{dataset.name} has no class with two train rows, so none can be held out for validation.")
    return replace(dataset.only(train_rows), is_test=is_test)


def split_settings(
    classes: str | None, n_old: int | None, label_ratio: float, long_tail: float | None, validation: float | None
) -> dict[str, Any]:
    """How the data is split, as cells store it: the keys that are always there are part of every stored cell's name."""
    how = {"classes": classes, "n_old": n_old, "label_ratio": label_ratio, "long_tail": long_tail}
    return how | ({} if validation is None else {"validation": validation})
