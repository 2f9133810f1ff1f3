"""The health of a data set: the same content in several rows, and what that breaks."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from agcd.types import Dataset, IntArray


def describe_health(dataset: Dataset) -> list[str]:
    """What a user should know before trusting figures on this data, one sentence each; often nothing."""
    lines = []
    if dataset.quarantine:
        first = dataset.quarantine[0]
        count = len(dataset.quarantine)
        lines.append(f"{dataset.name}: {count} file(s) set aside, the first is {first.path}: {first.reason}.")
    if len(leaked := leaked_rows(dataset)):
        lines.append(f"{dataset.name}: {len(leaked)} train row(s) are also test rows; test accuracy is flattered.")
    if contradictory := contradictory_rows(dataset):
        lines.append(f"{dataset.name}: {len(contradictory)} item(s) stand in several rows with different labels.")
    return lines


def leaked_rows(dataset: Dataset) -> IntArray:
    """Train rows whose content is also a test row: training on them makes the test accuracy a lie."""
    test_keys = {dataset.keys[row] for row in np.flatnonzero(dataset.is_test).tolist()}
    train_rows = np.flatnonzero(~dataset.is_test).tolist()
    return np.array([row for row in train_rows if dataset.keys[row] in test_keys], dtype=np.int64)


def duplicate_rows(dataset: Dataset) -> list[IntArray]:
    """Groups of two or more rows with the same content, in row order."""
    groups: dict[str, list[int]] = defaultdict(list)
    for row, key in enumerate(dataset.keys):
        groups[key].append(row)
    return [np.array(rows, dtype=np.int64) for rows in groups.values() if len(rows) > 1]


def contradictory_rows(dataset: Dataset) -> list[IntArray]:
    """Groups of rows with the same content that carry different labels."""
    return [rows for rows in duplicate_rows(dataset) if len(set(dataset.y_class[rows].tolist()) - {-1}) > 1]
