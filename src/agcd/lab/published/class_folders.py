"""Data sets given out as one folder per class: ImageNet-100 and Herbarium-19."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from agcd.data.items import Item
from agcd.data.tables import read_table
from agcd.errors import DataError
from agcd.lab.published.listing import (
    Listing,
    MissingPieces,
    find_root,
    folder_items,
    folder_names,
    listed_path,
    read_pairs,
)

_IMAGENET_CLASSES, _CHOSEN = 1000, 100
_KAGGLE = "ILSVRC/Data/CLS-LOC"


def imagenet100_ids() -> tuple[int, ...]:
    """The 100 of 1000 class ids, as the published code draws them: legacy NumPy, seed 0, then sorted."""
    return tuple(sorted(np.random.RandomState(0).choice(_IMAGENET_CLASSES, _CHOSEN, replace=False).tolist()))


def read_imagenet100(path: Path, cache_dir: Path) -> Listing:
    """ImageNet-100: only the folders of its classes are looked into; ids count the sorted wnids of train/."""
    root = find_root(path, ("train", "val"), (_KAGGLE, "Data/CLS-LOC"))
    folders = folder_names(root / "train")
    if len(folders) != _IMAGENET_CLASSES:
        raise DataError(
            f"{root / 'train'} has {len(folders)} class folders; all {_IMAGENET_CLASSES} are expected, "
            "because the published 100 are chosen by their place among them."
        )
    wnids = [folders[i] for i in imagenet100_ids()]
    beside = [path, root, *root.parents[:3]]
    label_of = _readable(wnids, beside)
    items = [item for wnid in wnids for item in folder_items(root, "train", wnid, label_of[wnid], is_test=False)]
    items += _validation(root, label_of, beside)
    return Listing(tuple(label_of.values()), tuple(items))


def _readable(wnids: list[str], places: list[Path]) -> dict[str, str]:
    """The class name of every wnid: with its first English word where the synset list is there.

    The wnid stays in the name, since two classes are called "crane" and two "maillot".
    """
    for place in places:
        if (place / "LOC_synset_mapping.txt").is_file():
            words = read_pairs(place / "LOC_synset_mapping.txt")
            return {wnid: f"{wnid} {words[wnid].partition(',')[0]}" if wnid in words else wnid for wnid in wnids}
    return {wnid: wnid for wnid in wnids}


def _validation(root: Path, label_of: dict[str, str], places: list[Path]) -> Iterator[Item]:
    """The test rows: from val/<wnid>/, or from a flat val/ by its solution file."""
    if folders := set(folder_names(root / "val")):
        if missing := [f"val/{wnid}" for wnid in label_of if wnid not in folders]:
            raise MissingPieces(root, missing)
        for wnid, label in label_of.items():
            yield from folder_items(root, "val", wnid, label, is_test=True)
        return
    for place in places:
        if (place / "LOC_val_solution.csv").is_file():
            yield from _solved(root, place / "LOC_val_solution.csv", label_of)
            return
    raise MissingPieces(root, ["val/<wnid>", "LOC_val_solution.csv"])


def _solved(root: Path, solution: Path, label_of: dict[str, str]) -> Iterator[Item]:
    for _, cells in sorted(read_table(solution, ("imageid", "predictionstring")), key=lambda line: line[1]["imageid"]):
        wnid = cells["predictionstring"].partition(" ")[0]
        if wnid in label_of:
            name = f"{cells['imageid']}.JPEG"
            yield Item(listed_path(root / "val", name, solution), f"val/{name}", label_of[wnid], is_test=True)


def read_herbarium19(path: Path, cache_dir: Path) -> Listing:
    """Herbarium-19, small version; small-validation is the test set, as in the literature on category discovery.

    The published ids count the class folders sorted as text (0, 1, 10, 100, …), so that is the order here.
    """
    root = find_root(path, ("small-train", "small-validation"))
    classes = folder_names(root / "small-train")
    if missing := sorted(set(folder_names(root / "small-validation")) - set(classes)):
        raise DataError(f"small-validation has the class {missing[0]!r}, which {root / 'small-train'} does not have.")
    items: list[Item] = []
    for part in ("small-train", "small-validation"):
        for name in folder_names(root / part):
            items += folder_items(root, part, name, name, is_test=part == "small-validation")
    return Listing(tuple(classes), tuple(items))
