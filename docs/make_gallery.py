"""Make the pictures of docs/gallery.md: ``python docs/make_gallery.py NAME OUT [--data PATH]``.

NAME is groceries, animals, flowers or bank; OUT is the folder of the demo: what it has finished is not run again. Kept
are the accuracy and the map of its report, and what was asked first: as photographs where these may be passed on
(groceries), as lines of a table for texts. Caltech-101 and Flowers-102 hold photographs of many owners, so of these
there are charts alone.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Iterator
from pathlib import Path

from PIL import Image
from rich.console import Console

from agcd.data.images import thumbnail
from agcd.lab.cells import open_session, prepare, rounds_of
from agcd.lab.demo import TEXTS, Demo, run_demo
from agcd.lab.results import markdown_table
from agcd.plotting import house_style, new_figure, png_bytes
from agcd.report.strips import as_square
from agcd.types import Dataset

IMAGES = Path(__file__).parent / "images" / "gallery"
N_QUESTIONS, N_LINES = 14, 10
MOST_BYTES, WIDTHS = 200_000, {"accuracy": 700, "map": 1400, "questions": 1400}
ANIMALS = (
    "ant beaver butterfly crab crocodile dalmatian dolphin dragonfly elephant flamingo hedgehog kangaroo Leopards "
    "llama octopus panda pigeon rooster scorpion starfish"
)
FLOWERS = (
    "artichoke bird_of_paradise bougainvillea californian_poppy camellia carnation common_dandelion corn_poppy "
    "cyclamen daffodil foxglove geranium hibiscus magnolia oxeye_daisy passion_flower rose snapdragon sunflower "
    "yellow_iris"
)
CLASSES = {"groceries": "", "animals": ANIMALS, "flowers": FLOWERS, "bank": ""}


def questions(done: Demo, out: Path) -> Iterator[tuple[int, str]]:
    """The rows that were asked about, in their order, with the answers."""
    prepared = prepare(done.cell, out / "cache")
    for _, query in rounds_of(done.cell, prepared, open_session(done.cell, prepared, out)):
        if query is not None:
            yield from zip(query.rows.tolist(), prepared.evaluator.answer(query.rows), strict=True)


def draw_questions(dataset: Dataset, asked: list[tuple[int, str]]) -> Image.Image:
    """Photographs with their answers below, seven to a line."""
    assert dataset.paths is not None
    with house_style():
        figure = new_figure(9.3, 3.3)
        for number, (row, answer) in enumerate(asked, 1):
            axes = figure.add_subplot(2, 7, number)
            axes.imshow(as_square(thumbnail(dataset.paths[row], 256)))
            axes.set_title(f"{number}", fontsize=8, pad=3, loc="left")
            axes.set_xlabel(answer, fontsize=8)
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
        return Image.open(io.BytesIO(png_bytes(figure)))


def keep(picture: Image.Image, name: str, what: str) -> None:
    """As WebP, small enough for a page that is read."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    picture.thumbnail((WIDTHS[what], WIDTHS[what]))
    path = IMAGES / f"{name}-{what}.webp"
    picture.convert("RGB").save(path, quality=80, method=6)
    assert path.stat().st_size < MOST_BYTES, f"{path} is too large: {path.stat().st_size:,} bytes"
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=list(CLASSES))
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", help="where the animals or flowers are")
    options = parser.parse_args()
    data = TEXTS if options.name == "bank" else options.data
    done = run_demo(options.out, 0, data, classes=CLASSES[options.name].split(), console=Console(width=110))
    for what in ("accuracy", "map"):
        keep(Image.open(options.out / "figures" / f"{what}.png"), options.name, what)
    asked, dataset = list(questions(done, options.out)), done.dataset
    if options.name == "groceries":
        keep(draw_questions(dataset, asked[:N_QUESTIONS]), options.name, "questions")
    if dataset.texts is not None:
        lines = [[str(i), dataset.texts[row], answer] for i, (row, answer) in enumerate(asked[:N_LINES], 1)]
        print(markdown_table(["", "question", "answer"], lines))


if __name__ == "__main__":
    main()
