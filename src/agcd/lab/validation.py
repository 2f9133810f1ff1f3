"""A validation part of the train rows: something to decide on that no test row has ever touched."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from agcd.errors import ConfigError, DataError
from agcd.rng import generator
from agcd.types import Dataset


def validation_part(dataset: Dataset, share: float) -> Dataset:
    """The train rows alone, of which a ``share`` of each class takes the place of the test rows.

    Every class with at least two rows gives one or more and keeps one or more. The draw knows no seed, so that all
    seeds of a benchmark are measured on the same rows.
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
    return replace(
        dataset,
        y_class=y_class,
        is_test=is_test,
        keys=tuple(dataset.keys[row] for row in train_rows),
        paths=None if dataset.paths is None else tuple(dataset.paths[row] for row in train_rows),
        x=None if dataset.x is None else dataset.x[train_rows],
    )
