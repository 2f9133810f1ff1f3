"""Writes the report: one HTML file that needs nothing else, and its figures as PNG files beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from matplotlib.figure import Figure

from agcd.io import atomic_write
from agcd.plotting import png_bytes
from agcd.report.figures import (
    MAX_CLASSES,
    PERSONS_HEADS,
    RESEARCHERS_HEADS,
    accuracy_figure,
    agreement_figure,
    balance_figure,
    confidence_figure,
    map_figure,
    progress_figure,
)
from agcd.report.numbers import cards, round_table, summary
from agcd.report.second_look import doubt_looks, excerpt, pair_cards
from agcd.report.story import ClassStrip, Story
from agcd.report.strips import Thumbnails, contact_sheets, data_uri, first_rows
from agcd.words import clean, count, is_known, percent, shown

MAX_STRIPS = 200
"""Classes shown with pictures; the rest are listed by name."""
_EXCERPTS = 5
"""Texts of a class that are shown of each kind: they take more room than pictures."""
_TOOLTIP = 1000
"""Columns of a text for whoever points at its excerpt."""
_OPEN_PAIRS = 4
"""Pairs of confused classes that are shown at once; the others are folded away."""
_CAPTIONS = {
    "accuracy": "How often the model is right after each round, on all classes and on the novel ones alone.",
    "balance": "Each step is one round: a good run climbs toward the dotted line, where novel classes are "
    "recognised as well as old ones.",
    "agreement": "How often the model gives a {noun} the class that people gave it; labelled {noun}s are those that "
    "it has learnt from.",
    "progress": "How many of the {noun}s lie in a group with a name, and how many changed their group in each round: "
    "once the first are many and the second few, further answers change little.",
    "confidence": "How sure the model is of its answers: the closer the two colours lie, the less it treats novel "
    "classes as strangers.",
    "map": "Samples that the model finds alike lie close together; each class has a colour and a number, and black "
    "outlines mark the samples that were answered.",
}
"""What stands under each figure; ``{noun}`` is what a row is called."""
_CAPTIONS_WITHOUT_TRUTH = {
    "confidence": "How sure the model is of {noun}s that nobody has labelled, split by what it takes them for.",
    "map": "{Noun}s that the model finds alike lie close together. Colours and numbers are the classes as they stand "
    "now, by people's answers or else by the last model, in every panel; black outlines mark the {noun}s that were "
    "answered.",
}


@dataclass(frozen=True)
class Picture:
    """A finished figure, for the folder and for the page."""

    name: str
    png: bytes
    caption: str
    wide: bool

    @property
    def uri(self) -> str:
        return data_uri(self.png, "image/png")


@dataclass(frozen=True)
class Image:
    """One thumbnail on the page, or an excerpt of a text, which has no address."""

    uri: str
    text: str
    """What the thumbnail shows; or the excerpt."""
    whole: str = ""
    """The text as far as a tooltip takes it."""


@dataclass(frozen=True)
class ClassCard:
    """One class on the page; ``typical`` and ``queried`` are pictures or excerpts, ``rows`` stands in for both."""

    name: str
    full_name: str
    is_new: bool
    kind: str
    facts: tuple[str, ...]
    typical: tuple[Image, ...] = ()
    queried: tuple[Image, ...] = ()
    rows: str = ""


def write_report(story: Story, folder: Path) -> Path:
    """Write ``folder/figures/*.png``, then ``folder/report.html``, each whole or absent; returns the page's path.

    Figures that an earlier report left and this one does not have are removed.
    """
    thumbnails = Thumbnails(story.thumbnail) if story.thumbnail else None
    pictures = _pictures(story)
    sheets = _sheet_pngs(story, thumbnails)
    files = {f"{picture.name}.png": picture.png for picture in pictures} | sheets
    for name, png in files.items():
        _write(folder / "figures" / name, png)
    _remove_stale(folder / "figures", set(files))
    path = folder / "report.html"
    _write(path, _render(story, pictures, thumbnails).encode("utf-8"))
    return path


def _write(path: Path, data: bytes) -> None:
    with atomic_write(path) as aside:
        aside.write_bytes(data)


def _remove_stale(folder: Path, kept: set[str]) -> None:
    """Only files that a report can have made: a person's own pictures in the folder stay."""
    ours = {f"{name}.png" for name in _CAPTIONS} | {path.name for path in folder.glob("classes-[0-9][0-9].png")}
    for name in ours - kept:
        (folder / name).unlink(missing_ok=True)


def _pictures(story: Story) -> list[Picture]:
    accuracy = accuracy_figure(story.rounds, story.rivals, story.name)
    figures: dict[str, Figure | None] = {
        "accuracy": accuracy,
        "balance": balance_figure(story.rounds, story.rivals, story.name),
        "agreement": None if accuracy else agreement_figure(story.rounds, story.noun),
        "progress": None if accuracy else progress_figure(story.rounds, story.noun),
        "confidence": confidence_figure(story.confidence, predicted=not story.has_truth, noun=story.noun),
        "map": map_figure(story.maps, RESEARCHERS_HEADS if story.has_truth else PERSONS_HEADS),
    }
    captions = _CAPTIONS if story.has_truth else _CAPTIONS | _CAPTIONS_WITHOUT_TRUTH
    return [
        Picture(
            name,
            png_bytes(figure),
            captions[name].format(noun=story.noun, Noun=story.noun.capitalize()),
            name in ("confidence", "map"),
        )
        for name, figure in figures.items()
        if figure
    ]


def _sheet_pngs(story: Story, thumbnails: Thumbnails | None) -> dict[str, bytes]:
    if thumbnails is None:
        return {}
    sheets = contact_sheets(story.in_order()[:MAX_STRIPS], thumbnails, story.kinds)
    return {f"classes-{i:02d}.png": png_bytes(sheet) for i, sheet in enumerate(sheets, start=1)}


def _render(story: Story, pictures: list[Picture], thumbnails: Thumbnails | None) -> str:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2").render(_view(story, pictures, thumbnails))


def _view(story: Story, pictures: list[Picture], thumbnails: Thumbnails | None) -> dict[str, Any]:
    """All that the template shows, as text that is already short enough; escaping is the template's work."""
    strips = story.in_order()
    table = round_table(story.name, story.rounds, story.noun)
    return {
        "title": shown(story.title, 120),
        "subtitle": shown(story.subtitle, 300) if story.subtitle else "",
        "facts": _pairs(story.facts),
        "settings": _pairs(story.settings),
        "cards": cards(story),
        "summary": summary(story),
        "table": table,
        "rivals": [round_table(name, rounds, story.noun) for name, rounds in story.rivals.items() if rounds],
        "pictures": pictures,
        "confusions": pair_cards(story, thumbnails),
        "open_pairs": _OPEN_PAIRS,
        "doubts": doubt_looks(story, thumbnails),
        "classes": [_class_card(story, strip, thumbnails) for strip in strips[:MAX_STRIPS]],
        "unpictured": [_class_card(story, strip, None) for strip in strips[MAX_STRIPS:]],
        "commands": [clean(command) for command in story.commands],
        "commands_note": clean(story.commands_note),
        "noun": story.noun,
        "Noun": story.noun.capitalize(),
        "has_truth": story.has_truth,
        "accuracy": story.accuracy,
        "has_audit": any(column.field == "audit" for column in table.columns),
        "has_purity": any(is_known(strip.purity) for strip in strips),
        "has_best": any(column.field == "best_on_test" for column in table.columns),
        "has_map": any(picture.name == "map" for picture in pictures),
        "max_map_classes": MAX_CLASSES,
        "measured_on": shown(story.measured_on, 120),
    }


def _pairs(facts: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    return [(shown(key, 60), shown(value, 300)) for key, value in facts]


def _class_card(story: Story, strip: ClassStrip, thumbnails: Thumbnails | None) -> ClassCard:
    facts = (count(strip.size, "member" if story.has_truth else story.noun), *_checked_facts(strip))
    card = ClassCard(shown(strip.name), shown(strip.name, 400), strip.is_new, story.kinds.of(strip), facts)
    typical, queried = first_rows(strip, len(story.classes))
    if story.excerpt is not None:
        return replace(
            card,
            typical=tuple(_quoted(story.excerpt(row)) for row in typical.tolist()[:_EXCERPTS]),
            queried=tuple(_quoted(story.excerpt(row)) for row in queried.tolist()[:_EXCERPTS]),
        )
    if thumbnails is None:
        return replace(card, rows=", ".join(shown(story.file(row), 80) for row in typical.tolist()))
    return replace(
        card,
        typical=tuple(_image(story, row, thumbnails, "typical") for row in typical.tolist()),
        queried=tuple(_image(story, row, thumbnails, "answered") for row in queried.tolist()),
    )


def _checked_facts(strip: ClassStrip) -> list[str]:
    """How many members people have answered, and how pure the class is by what is known."""
    facts = [f"{len(strip.queried_rows):,} answered"] if len(strip.queried_rows) else []
    if is_known(strip.purity):
        if strip.n_checked is None:
            facts.append(f"purity {percent(strip.purity)}")
        else:
            facts.append(f"{round(strip.purity * strip.n_checked):,} of {strip.n_checked:,} checked are right")
    return facts


def _quoted(text: str) -> Image:
    return Image("", excerpt(text), shown(text, _TOOLTIP))


def _image(story: Story, row: int, thumbnails: Thumbnails, role: str) -> Image:
    state = ", image not readable" if thumbnails.is_missing(row) else ""
    return Image(thumbnails.uri(row), f"{shown(story.file(row), 300)} ({role}{state})")
