"""Draws the small set of texts that the package brings (``agcd demo --texts``) from the whole of BANKING77.

    python tools/make_banking20.py PATH/banking77.csv

The CSV has the columns ``text``, ``label`` and ``split``. Nothing is drawn by a random generator, so that the rule says
everything: the 20 classes, and of each class the 60 train and 20 test sentences, whose SHA-256 comes first.
"""

from __future__ import annotations

import csv
import hashlib
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

TARGET = Path(__file__).parent.parent / "src" / "agcd" / "lab" / "banking20" / "banking20.csv"
N_CLASSES = 20
N_TEXTS = {"train": 60, "test": 20}
"""Of each class; a class with fewer gives what it has."""
SEED = "banking20"


def first(words: Iterable[str], n: int) -> list[str]:
    """The ``n`` words whose SHA-256, after ``SEED`` and a space, comes first."""
    return sorted(set(words), key=lambda word: hashlib.sha256(f"{SEED} {word}".encode()).hexdigest())[:n]


def drawn(rows: Iterable[dict[str, str]]) -> list[tuple[str, str, str]]:
    """The lines of the small set, by split (train before test) and class."""
    texts: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows:
        texts[row["split"], row["label"]].append(row["text"].strip())
    classes = sorted(first((label for _, label in texts), N_CLASSES))
    return [
        (text, label, split)
        for split, n in N_TEXTS.items()
        for label in classes
        for text in sorted(first(texts[split, label], n))
    ]


def main(source: Path) -> None:
    with source.open(encoding="utf-8", newline="") as file:
        lines = drawn(csv.DictReader(file))
    with TARGET.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["text", "label", "split"])
        writer.writerows(lines)
    print(f"{TARGET}: {len(lines)} sentences, {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
