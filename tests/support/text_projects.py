"""Small projects of texts and of records: known classes, hidden ones, and what strangers write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from agcd.app.project import Project
from agcd.data.tables import write_table

TRAINING: dict[str, Any] = {
    "train": {"base_epochs": 3, "round_epochs": 2, "batch_size": 32, "projector_width": 16, "projector_dim": 8}
}
TOPICS = {
    "card": "my {} card was declined in the shop",
    "rate": "what is the exchange rate for {} today",
    "pin": "how do I change the {} pin of my account",
    "refund": "I want my {} money back from the seller",
}
"""The last one is known to nobody."""
WORDS = ("new", "old", "blue", "lost", "second", "first", "other", "good", "bad", "small", "large", "cheap", "good old")
HOSTILE = (
    '=HYPERLINK("http://example.org")',
    "<script>alert(1)</script> & <b>",
    "two\nlines, with a comma",
    '\'@quoted; "twice"',
    "http://169.254.169.254/latest",
)
N_TEXTS = len(TOPICS) * len(WORDS) + len(HOSTILE)
DIM = 16


def text_rows() -> list[dict[str, str]]:
    """Three labels of each class that is known; ids that begin like formulas or hold slashes are among them."""
    rows = [
        {"id": f"{topic}/{i}", "text": words.format(word), "label": topic if i < 3 and topic != "refund" else ""}
        for topic, words in TOPICS.items()
        for i, word in enumerate(WORDS)
    ]
    return rows + [{"id": f"=odd {i}", "text": text, "label": ""} for i, text in enumerate(HOSTILE)]


def write_rows(path: Path, rows: list[dict[str, str]]) -> Path:
    write_table(path, {name: [row[name] for row in rows] for name in rows[0]})
    return path


def make_text_project(folder: Path, name: str = "project") -> Project:
    table = write_rows(folder / "texts.csv", text_rows())
    return Project.create(folder / name, table, n_classes=4, settings=TRAINING, kind="text")


def vectors(seed: int = 0) -> np.ndarray[Any, Any]:
    """An embedding per row of ``record_rows``: near the centre of its class."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(1).normal(size=(4, DIM))
    return (np.repeat(centres, 10, axis=0) + 0.1 * rng.normal(size=(40, DIM))).astype(np.float32)


def record_rows() -> list[dict[str, str]]:
    names = ("ash", "elm", "fir", "oak")
    return [
        {
            "id": f"{name}-{i}",
            "height": str(i),
            "note": "=1+1" if i == 4 else f"<i>{name}</i>",
            "text": f"a tree called {name}",
            "label": name if i < 3 and name != "oak" else "",
        }
        for name in names
        for i in range(10)
    ]


def make_record_project(folder: Path) -> Project:
    table = write_rows(folder / "records.csv", record_rows())
    np.save(folder / "x.npy", vectors())
    return Project.create(
        folder / "records", table, n_classes=4, settings=TRAINING, kind="record", embeddings=folder / "x.npy"
    )
