"""The health of a data set: what a person should know before spending an hour on it, or trusting figures on it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agcd.data.looks import hash_bits
from agcd.types import Dataset, FloatArray, IntArray, Looks
from agcd.words import count, printable

TINY_SIDE = 32
"""Pixels: the side of a CIFAR image; below it a photograph shows little to a person."""
HUGE_PIXELS = 20_000_000
"""More than most cameras take; such images slow the decoding without adding detail at 224 pixels."""
MAX_HASHED = 20_000
"""Images up to which near duplicates are looked for: each is compared with all others."""
_NEAR_BITS = 4
"""Of 64. Among 200 photographs of groceries14 no two were closer than 14, while half of their copies at two thirds of
the size and JPEG quality 60 lay within 4: what is reported is a copy, though not every copy is reported."""
_BLOCK = 2000
"""Rows compared with all others at a time: 160 MB for the largest number hashed."""
_SHOWN, _SHOWN_CLASSES = 5, 50
"""So many findings of a kind, and classes, are listed; the rest is counted."""


def health_report(dataset: Dataset, root: Path | None = None) -> list[str]:
    """One sentence per finding, counts first; paths are shown as they lie below ``root``."""
    lines = common_findings(dataset, "image", lambda row: _path(dataset, row, root))
    if dataset.looks is None:
        return lines
    return [*lines, *_sizes(dataset.looks), *_near_duplicates(dataset, dataset.looks, root)]


def common_findings(dataset: Dataset, noun: str, place: Callable[[int], str]) -> list[str]:
    """What is told of any data set: counts, what was set aside, duplicates, leaks and contradictions.

    ``noun`` is what a row is called, ``place`` tells where one is from.
    """
    lines = [*_counts(dataset, noun), *_set_aside(dataset)]
    if groups := duplicate_rows(dataset):
        lines.append(f"{count(sum(map(len, groups)) - len(groups), 'exact duplicate')} of other {noun}s")
    if len(leaked := leaked_rows(dataset)):
        lines.append(f"{count(len(leaked), f'training {noun}')} also for testing: accuracy on them is flattered")
    for rows in contradictory_rows(dataset)[:_SHOWN]:
        said = sorted({dataset.classes[c] for c in dataset.y_class[rows].tolist() if c >= 0})
        lines.append(f"the same {noun} is labelled {' and '.join(map(repr, said))}: {place(int(rows[0]))}")
    return lines


def _counts(dataset: Dataset, noun: str) -> list[str]:
    train = dataset.y_class[~dataset.is_test]
    n_test = int(dataset.is_test.sum())
    tested = f", {n_test} test" if n_test else ""
    lines = [f"{dataset.n_rows} {noun}s: {(train >= 0).sum()} labelled, {(train < 0).sum()} unlabelled{tested}"]
    labels = Counter(train[train >= 0].tolist())
    lines += [f"  {printable(dataset.classes[c])}: {labels[c]} labelled" for c in sorted(labels)[:_SHOWN_CLASSES]]
    more = len(labels) - _SHOWN_CLASSES
    return lines + ([f"  and {more} more {'class' if more == 1 else 'classes'}"] if more > 0 else [])


def _set_aside(dataset: Dataset) -> list[str]:
    refused = dataset.quarantine
    lines = [f"{_refused(dataset)} set aside"] if refused else []
    lines += [printable(f"  {q.path}: {q.reason}") for q in refused[:_SHOWN]]
    return lines + ([f"  and {len(refused) - _SHOWN} more"] if len(refused) > _SHOWN else [])


def _refused(dataset: Dataset) -> str:
    """How many were set aside, of what."""
    return count(len(dataset.quarantine), "text" if dataset.texts else "record" if dataset.records else "file")


def _sizes(looks: Looks) -> list[str]:
    lines = []
    if n_tiny := int((np.minimum(looks.width, looks.height) < TINY_SIDE).sum()):
        lines.append(f"{count(n_tiny, 'tiny image')}, less than {TINY_SIDE} pixels wide or high")
    if n_huge := int((looks.width * looks.height > HUGE_PIXELS).sum()):
        lines.append(f"{count(n_huge, 'huge image')}, more than {HUGE_PIXELS // 10**6} million pixels")
    if n_deep := int(looks.is_deep.sum()):
        lines.append(
            f"{count(n_deep, 'grey image')} of 16 or more bits: shown and learned with the range of values stretched, "
            "each by itself"
        )
    if n_paged := int(looks.has_pages.sum()):
        lines.append(f"{count(n_paged, 'image')} of several pages: the first page is read")
    return lines


def _near_duplicates(dataset: Dataset, looks: Looks, root: Path | None) -> list[str]:
    if dataset.n_rows > MAX_HASHED:
        return [f"near duplicates were not looked for: more than {MAX_HASHED} images"]
    pairs, n_near = near_pairs(looks.hash, dataset.keys)
    if not n_near:
        return []
    return tell_pairs(count(n_near, "image"), pairs, lambda row: _path(dataset, row, root))


def tell_pairs(how_many: str, pairs: Sequence[tuple[int, int]], place: Callable[[int], str]) -> list[str]:
    """Near duplicates: how many there are, and the first few pairs by where they are from."""
    lines = [f"{how_many} nearly the same as another one"]
    lines += [f"  {place(one)} and {place(other)}" for one, other in pairs[:_SHOWN]]
    return lines + ([f"  and {count(len(pairs) - _SHOWN, 'more pair')}"] if len(pairs) > _SHOWN else [])


def near_pairs(hashes: NDArray[np.uint64], keys: Sequence[str]) -> tuple[list[tuple[int, int]], int]:
    """Each image with the first before it that is of other content and at most four bits away; how many images have
    such another one."""
    rows = np.flatnonzero(hashes)
    bits = hash_bits(hashes[rows]).astype(np.float32)
    content = np.unique(np.array(keys, dtype=object)[rows].astype(str), return_inverse=True)[1]
    ones = bits.sum(1)
    pairs: list[tuple[int, int]] = []
    n_near = 0
    for start in range(0, len(rows), _BLOCK):
        block = slice(start, start + _BLOCK)
        distance: FloatArray = ones[block, None] + ones[None, :] - 2 * (bits[block] @ bits.T)
        close = (distance <= _NEAR_BITS) & (content[block, None] != content[None, :])
        n_near += int(close.any(1).sum())
        first = close.argmax(1)
        for i in np.flatnonzero(close.any(1) & (first < np.arange(start, start + len(close)))).tolist():
            pairs.append((int(rows[first[i]]), int(rows[start + i])))
    return pairs, n_near


def _path(dataset: Dataset, row: int, root: Path | None) -> str:
    if dataset.paths is None:
        return f"row {row}"
    path = dataset.paths[row]
    return printable(path.relative_to(root).as_posix() if root and path.is_relative_to(root) else str(path))


def describe_health(dataset: Dataset) -> list[str]:
    """What a user should know before trusting figures on this data, one sentence each; often nothing."""
    lines = []
    if dataset.quarantine:
        first = printable(f"{dataset.quarantine[0].path}: {dataset.quarantine[0].reason}")
        lines.append(f"{dataset.name}: {_refused(dataset)} set aside, the first is {first}.")
    if len(leaked := leaked_rows(dataset)):
        lines.append(f"{dataset.name}: {count(len(leaked), 'train row')} also for testing; test accuracy is flattered.")
    if contradictory := contradictory_rows(dataset):
        lines.append(f"{dataset.name}: {count(len(contradictory), 'item')} in several rows with different labels.")
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
