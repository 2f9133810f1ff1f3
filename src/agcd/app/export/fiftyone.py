"""Labels as FiftyOne's FiftyOneImageClassificationDataset: ``labels.json`` beside a folder of pictures.

An image is known there by its path below the folder without its ending, whatever folders it lies in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any


def to_fiftyone(
    images: Mapping[int, str], labels: Mapping[str, Sequence[Any]], classes: Sequence[str]
) -> dict[str, Any]:
    """The classes, and of every image the number of its class, or null where nobody has named one.

    Images that differ in their ending alone cannot be told apart in this format, and are left out.

    Parameters
    ----------
    images : the path of each image by row
    labels : columns as in ``labels.csv``
    """
    number_of = {name: number for number, name in enumerate(classes)}
    said = {row: number_of[name] for row, name in zip(labels["row"], labels["class"], strict=True) if name is not None}
    ids = {row: PurePosixPath(path).with_suffix("").as_posix() for row, path in images.items()}
    n_of = Counter(ids.values())
    return {
        "classes": list(classes),
        "labels": {name: said.get(row) for row, name in ids.items() if n_of[name] == 1},
    }
