"""The health of a data set: what a person should know before spending an hour on it, or trusting figures on it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image

from agcd.data.decoding import Decoder
from agcd.data.images import Header, ImageError, decode, header
from agcd.types import BoolArray, Dataset, FloatArray, IntArray
from agcd.words import count, printable

TINY_SIDE = 32
"""Pixels: the side of a CIFAR image; below it a photograph shows little to a person."""
HUGE_PIXELS = 20_000_000
"""More than most cameras take; such images slow the decoding without adding detail at 224 pixels."""
MAX_HASHED = 20_000
"""Images up to which near duplicates are looked for: every image must be decoded for it."""
_NEAR_BITS = 4
"""Of 64. Among 200 photographs of groceries14 no two were closer than 14, while half of their copies at two thirds of
the size and JPEG quality 60 lay within 4: what is reported is a copy, though not every copy is reported."""
_HASHED_SIDE = 32
"""Pixels that a JPEG is decoded to before it is made a hash."""
_BLOCK = 2000
"""Rows compared with all others at a time: 160 MB for the largest number hashed."""
_SHOWN, _SHOWN_CLASSES = 5, 50
"""So many findings of a kind, and classes, are listed; the rest is counted."""


def health_report(dataset: Dataset) -> list[str]:
    """One sentence per finding, counts first."""
    lines = [*_counts(dataset), *_set_aside(dataset)]
    groups = duplicate_rows(dataset)
    if groups:
        lines.append(f"{count(sum(map(len, groups)) - len(groups), 'exact duplicate')} of other images")
    if len(leaked := leaked_rows(dataset)):
        lines.append(f"{count(len(leaked), 'training image')} also for testing: accuracy on them is flattered")
    for rows in contradictory_rows(dataset)[:_SHOWN]:
        said = sorted({dataset.classes[c] for c in dataset.y_class[rows].tolist() if c >= 0})
        lines.append(f"the same image is labelled {' and '.join(map(repr, said))}: {_path(dataset, int(rows[0]))}")
    return lines + _looks(dataset)


def _counts(dataset: Dataset) -> list[str]:
    train = dataset.y_class[~dataset.is_test]
    n_test = int(dataset.is_test.sum())
    tested = f", {n_test} test" if n_test else ""
    lines = [f"{dataset.n_rows} images: {(train >= 0).sum()} labelled, {(train < 0).sum()} unlabelled{tested}"]
    labels = Counter(train[train >= 0].tolist())
    lines += [f"  {printable(dataset.classes[c])}: {labels[c]} labelled" for c in sorted(labels)[:_SHOWN_CLASSES]]
    more = len(labels) - _SHOWN_CLASSES
    return lines + ([f"  and {more} more {'class' if more == 1 else 'classes'}"] if more > 0 else [])


def _set_aside(dataset: Dataset) -> list[str]:
    refused = dataset.quarantine
    lines = [f"{count(len(refused), 'file')} set aside"] if refused else []
    lines += [printable(f"  {q.path}: {q.reason}") for q in refused[:_SHOWN]]
    return lines + ([f"  and {len(refused) - _SHOWN} more"] if len(refused) > _SHOWN else [])


def _looks(dataset: Dataset) -> list[str]:
    """Sizes and depth from the headers of all images; near duplicates where there are not too many."""
    paths = dataset.paths or ()
    with ThreadPoolExecutor(4) as threads:
        headers = [found for found in threads.map(_header, paths) if found is not None]
        hashes = _hashes(threads, paths) if len(paths) <= MAX_HASHED else None
    lines = []
    if n_tiny := sum(min(found.size) < TINY_SIDE for found in headers):
        lines.append(f"{count(n_tiny, 'tiny image')}, less than {TINY_SIDE} pixels wide or high")
    if n_huge := sum(found.size[0] * found.size[1] > HUGE_PIXELS for found in headers):
        lines.append(f"{count(n_huge, 'huge image')}, more than {HUGE_PIXELS // 10**6} million pixels")
    if n_deep := sum(found.is_deep for found in headers):
        lines.append(
            f"{count(n_deep, 'grey image')} of 16 or more bits: shown and learned with the range of values stretched, "
            "each by itself"
        )
    if hashes is None:
        lines.append(f"near duplicates were not looked for: more than {MAX_HASHED} images")
    elif n_near := _n_near(hashes, dataset.keys):
        lines.append(f"{count(n_near, 'image')} nearly the same as another one")
    return lines


def _header(path: Path) -> Header | None:
    """None for a file that was usable a moment ago: whatever happened since, a report must not stop for it."""
    try:
        return header(path)
    except ImageError:
        return None


def _hashes(threads: ThreadPoolExecutor, paths: Sequence[Path]) -> list[BoolArray | None]:
    decoder = Decoder()

    def hashed(path: Path) -> BoolArray | None:
        try:
            found: BoolArray | None = decoder(path, _HASHED_SIDE, difference_hash, path)
            return found
        except ImageError:
            return None

    try:
        return list(threads.map(hashed, paths))
    finally:
        decoder.close()


def difference_hash(path: Path) -> BoolArray | None:
    """64 bits: whether each of 8 × 8 grey cells is brighter than its right neighbour; None where it is flat."""
    grey = decode(path, draft_size=_HASHED_SIDE).convert("L").resize((9, 8), Image.Resampling.BOX)
    cells = np.asarray(grey, dtype=np.int16)
    bits = np.asarray(cells[:, :-1] > cells[:, 1:]).ravel()
    return bits if 8 <= bits.sum() <= 56 else None  # plain backgrounds all hash alike and say nothing


def _n_near(hashes: Sequence[BoolArray | None], keys: Sequence[str]) -> int:
    """Images with another of different content at most four bits away."""
    hashed = [(key, one) for key, one in zip(keys, hashes, strict=True) if one is not None]
    if not hashed:
        return 0
    bits = np.stack([one for _, one in hashed]).astype(np.float32)
    content = np.unique([key for key, _ in hashed], return_inverse=True)[1]
    ones = bits.sum(1)
    n_near = 0
    for start in range(0, len(hashed), _BLOCK):
        block = slice(start, start + _BLOCK)
        distance: FloatArray = ones[block, None] + ones[None, :] - 2 * (bits[block] @ bits.T)
        close = (distance <= _NEAR_BITS) & (content[block, None] != content[None, :])
        n_near += int(close.any(1).sum())
    return n_near


def _path(dataset: Dataset, row: int) -> str:
    return printable(str(dataset.paths[row])) if dataset.paths else f"row {row}"


def describe_health(dataset: Dataset) -> list[str]:
    """What a user should know before trusting figures on this data, one sentence each; often nothing."""
    lines = []
    if dataset.quarantine:
        first, files = dataset.quarantine[0], count(len(dataset.quarantine), "file")
        lines.append(
            f"{dataset.name}: {files} set aside, the first is {printable(first.path)}: {printable(first.reason)}."
        )
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
