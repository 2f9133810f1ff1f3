"""Small projects of sentences and of records: classes that are known, and some that nobody has named."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agcd.app.project import Project

WORDS = {
    "card": ("Where is my new card", "My card has not arrived", "When will the card come", "I wait for my card"),
    "top up": ("How do I top up", "Can I top up by bank transfer", "My top up failed", "Is there a top up limit"),
    "theft": ("My phone was stolen", "A thief took my wallet", "Somebody robbed me", "They stole my bag"),
    "weather": ("Will it rain tomorrow", "Is it sunny outside", "How cold is it today", "It snows a lot here"),
}
ENDINGS = ("", " today?", " please", " in Paris", " since Monday", ", can you help?")
KNOWN = ("card", "top up")
SETTINGS: dict[str, Any] = {
    "train": {"base_epochs": 2, "round_epochs": 2, "batch_size": 32, "projector_width": 16, "projector_dim": 8},
}


def sentences() -> list[tuple[str, str]]:
    """Texts and their classes, class by class in turn."""
    made = [[(start + ending, name) for start in starts for ending in ENDINGS] for name, starts in WORDS.items()]
    return [row for rows in zip(*made, strict=True) for row in rows]


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def text_table(folder: Path) -> Path:
    """``bank.csv``: the first eight rows of known classes carry their label."""
    rows = [
        {"id": f"Q{row}", "text": text, "label": name if name in KNOWN and row < 16 else ""}
        for row, (text, name) in enumerate(sentences())
    ]
    return write_csv(folder / "bank.csv", rows)


def truth(project: Project) -> list[str]:
    """The class of every row."""
    of_text = dict(sentences())
    return [of_text[text] for text in project.contents()]


def text_project(folder: Path, settings: dict[str, Any] = SETTINGS) -> Project:
    return Project.create(folder / "project", text_table(folder), settings=settings, kind="text")


def record_files(folder: Path, n: int = 48) -> tuple[Path, Path]:
    """A table of compounds of four families, and their embeddings by id, in another order."""
    rng = np.random.default_rng(0)
    family = np.arange(n) % 4
    x = (3 * rng.normal(size=(4, 8)))[family] + rng.normal(size=(n, 8))
    rows = [
        {
            "id": f"M{row:03d}",
            "Mass": round(100 + 50 * float(x[row, 0]), 1),
            "formula": f"C{row}H{2 * row}",
            "url": f"https://example.org/{row}" if row % 2 else "javascript:alert(1)",
            "family": f"f{family[row]}" if row < 12 and family[row] < 2 else "",
        }
        for row in range(n)
    ]
    order = rng.permutation(n)
    np.savez(folder / "x.npz", x=x[order].astype(np.float32), ids=np.array([rows[row]["id"] for row in order]))
    return write_csv(folder / "compounds.csv", rows), folder / "x.npz"
