"""The small data on which the blocks of the documentation run: what a page takes for granted lies in its folder."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = ("Orange", "Royal-Gala", "Kaiser", "Anjou")
TOPICS = {
    "card": "My card has not arrived in week",
    "transfer": "Why did the transfer fail for invoice",
    "top up": "How do I top up by cheque number",
    "rate": "What is the exchange rate for currency",
}


def make_scene(folder: Path) -> None:
    """Everything that any page speaks of, small."""
    rng = np.random.default_rng(0)
    for number, name in enumerate(CLASSES):
        known = number < 2
        for n in range(10):
            place = name if known and n < 5 else "unlabelled"
            _picture(folder / "photos" / place / f"{name}-{n}.png", number, rng)
        _picture(folder / "new-photos" / f"{name}.png", number, rng)
    _pictures_beside(folder, rng)
    _texts(folder)
    _records(folder, rng)
    _sequences(folder, rng)


def _pictures_beside(folder: Path, rng: np.random.Generator) -> None:
    _picture(folder / "more" / "a.jpg", 2, rng)
    _picture(folder / "photos" / "unlabelled" / "blurred.png", 0, rng)
    _picture(folder / "photos" / "drafts" / "d.png", 1, rng)
    _picture(folder / "card" / "DCIM" / "1.jpg", 3, rng)
    _picture(folder / "zipped" / "2.jpg", 1, rng)
    shutil.make_archive(str(folder / "more"), "zip", folder / "zipped")
    shutil.rmtree(folder / "zipped")


def _picture(path: Path, number: int, rng: np.random.Generator) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = rng.integers(0, 60, (40, 40, 3))
    pixels[..., number % 3] += 150
    if number == 3:
        pixels[:, ::4] = 20
    Image.fromarray(pixels.astype(np.uint8)).save(path)


def _texts(folder: Path) -> None:
    lines = [(f"{text} {n}", topic) for topic, text in TOPICS.items() for n in range(8)]
    known = [
        (text, topic if n % 8 < 3 and topic in ("card", "transfer") else "") for n, (text, topic) in enumerate(lines)
    ]
    _table(folder / "questions.csv", ("text", "label"), known)
    _table(folder / "more.csv", ("text", "label"), [("Is there a fee for cash", ""), ("My wallet is gone", "")])
    _table(folder / "monday.csv", ("text",), [("Where is my card?",)])
    shutil.copy(folder / "questions.csv", folder / "texts.csv")
    (folder / "app.log").write_text("INFO started\nERROR the transfer failed\n")


def _records(folder: Path, rng: np.random.Generator) -> None:
    x = rng.normal(0, 0.3, (40, 6)) + 3 * np.eye(6)[np.arange(40) % 4]
    rows = [(f"M{n}", n * 7, "ABCD"[n % 4] if n < 12 and n % 4 < 2 else "") for n in range(40)]
    for name in ("compounds", "table"):
        _table(folder / f"{name}.csv", ("id", "mass", "label"), rows)
        np.savez(folder / f"{name}.npz", x=x.astype(np.float32), ids=np.array([row[0] for row in rows]))
    shutil.copy(folder / "table.npz", folder / "x.npz")
    np.savez(folder / "new.npz", x=x[:4].astype(np.float32), ids=np.array(list("abcd")))
    shutil.copy(folder / "new.npz", folder / "new-trees.npz")
    _table(folder / "new.csv", ("id", "mass", "text"), [(id_, n, f"Is it {n}?") for n, id_ in enumerate("abcd")])
    cats = [{"vector": vector.tolist(), "label": "abcd"[n % 4]} for n, vector in enumerate(x)]
    (folder / "cats.json").write_text(json.dumps(cats))


def _sequences(folder: Path, rng: np.random.Generator) -> None:
    lines = []
    for n in range(24):
        bases = rng.choice(list("ACGT"), 60, p=(0.4, 0.1, 0.1, 0.4) if n % 2 else (0.1, 0.4, 0.4, 0.1))
        lines.append(f">S{n} {('at', 'gc')[n % 2] if n < 8 else ''}\n{''.join(bases)}\n")
    (folder / "genes.fasta").write_text("".join(lines), encoding="utf-8")


def _table(path: Path, head: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *rows])


def fill_in(questions: Path) -> None:
    """Say what is asked, as somebody does in a spreadsheet; pictures are called as their files are."""
    with questions.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    for line in lines:
        line["label"] = line["label"] or Path(line["path"]).stem.rpartition("-")[0]
    with questions.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)


ARRAYS = """
import numpy as np
rng = np.random.default_rng(0)
truth = np.repeat(np.array(["a", "b", "c", "d"], object), 20)
X = np.concatenate([rng.normal(3 * np.eye(4)[n], 0.3, (20, 4)) for n in range(4)])
y = np.array([name if name in "ab" and rng.random() < 0.4 else None for name in truth], object)
X_new, answers = X[::7], truth[:20]
def labels_for(rows):
    return truth[rows]
"""
PRELUDES = {"README.md": ARRAYS, "docs/estimator.md": ARRAYS}
"""What the blocks of Python of a page take for granted: their reader's data."""
_SHAPES = "agcd init shapes --images photos; agcd train shapes\n"
BEFORE = {
    "docs/project.md": "agcd init tickets --texts texts.csv; agcd init trees --records table.csv --embeddings x.npz\n"
    "agcd train tickets; agcd train trees\n",
    "docs/containers.md": "agcd init fruit --images photos\n",
    "docs/howto/team.md": "agcd init fruit --images photos; agcd people fruit add zoe\n",
    "docs/howto/backup.md": _SHAPES,
    "docs/howto/move.md": _SHAPES,
}
"""What was done before the first block of a page: the projects that it speaks of."""
