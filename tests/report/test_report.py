"""The report: whole, self-contained, readable without truth or images, and safe against any class name."""

from __future__ import annotations

import base64
import dataclasses
import io
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import agcd.report.page as page
from agcd.errors import StorageError
from agcd.report import Confidence, Confusion, Disputed, Doubt, Story, write_report
from agcd.report.numbers import cards, summary
from agcd.report.strips import SIDE, Thumbnails
from agcd.words import percent
from support.stories import (
    HOSTILE,
    PER_CLASS,
    toy_map,
    toy_rounds,
    toy_story,
    toy_strips,
    toy_thumbnail,
    without_truth,
)


class _Page(HTMLParser):
    """The tags, image addresses and visible text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.images: list[str] = []
        self.addresses: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), f"a handler slipped in: {name}={value}"
            if name == "src" and tag == "img":
                self.images.append(value or "")
            elif name in ("src", "href"):
                self.addresses.append(value or "")

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def _read(path: Path) -> _Page:
    return _Page(path.read_text(encoding="utf-8"))


def _hostile_story() -> Story:
    story = toy_story()
    rounds = tuple(dataclasses.replace(facts, mapping_changes=HOSTILE, phase=HOSTILE[0]) for facts in story.rounds)
    return dataclasses.replace(
        story,
        title=HOSTILE[0] + HOSTILE[6],
        subtitle=HOSTILE[4],
        facts=tuple((text, text) for text in HOSTILE),
        rounds=rounds,
        rivals={text: toy_rounds(gain=0.05) for text in HOSTILE},
        confidence=tuple(
            Confidence(text, c.old, c.new) for text, c in zip(HOSTILE[2:], story.confidence, strict=False)
        ),
        maps=tuple(dataclasses.replace(each, title=HOSTILE[2], names=HOSTILE) for each in story.maps),
        classes=tuple(dataclasses.replace(s, name=n) for s, n in zip(story.classes, HOSTILE, strict=True)),
        settings=tuple((text, text) for text in HOSTILE),
        confusions=tuple(
            Confusion(text, text, np.arange(4), np.arange(4, 8), 1, (Disputed(9, text, text),)) for text in HOSTILE
        ),
        doubts=tuple(Doubt(row, text, 0.5) for row, text in enumerate(HOSTILE)),
        paths=[HOSTILE[row % len(HOSTILE)] for row in range(PER_CLASS * len(HOSTILE))],
        commands=HOSTILE,
        name=HOSTILE[2],
        measured_on=HOSTILE[0],
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the whole toy story, written once."""
    return write_report(toy_story(), tmp_path_factory.mktemp("report"))


def test_report_holds_every_figure_and_the_same_figures_lie_beside_it(report: Path) -> None:
    assert report.name == "report.html"
    names = sorted(file.name for file in (report.parent / "figures").iterdir())
    assert names == ["accuracy.png", "balance.png", "classes-01.png", "confidence.png", "map.png"]
    images = _read(report).images
    for name in ("accuracy", "balance", "confidence", "map"):
        png = (report.parent / "figures" / f"{name}.png").read_bytes()
        assert "data:image/png;base64," + base64.b64encode(png).decode() in images


def test_figures_are_large_enough_to_read_and_not_blank(report: Path) -> None:
    for file in (report.parent / "figures").iterdir():
        with Image.open(file) as image:
            assert image.format == "PNG"
            assert 900 <= image.width <= 2000
            assert 500 <= image.height <= 1700
            assert len(image.convert("RGB").resize((200, 200)).getcolors(40000) or []) > 20


def test_report_needs_no_network_and_no_script(report: Path) -> None:
    found = _read(report)
    assert all(address.startswith("data:image/") for address in found.images)
    assert found.addresses == []
    assert not {"script", "link", "iframe", "object"} & set(found.tags)


def test_headline_tells_before_and_after(report: Path) -> None:
    text = _read(report).text
    first, last = toy_rounds()[0], toy_rounds()[-1]
    assert first.acc_new is not None
    assert last.acc_new is not None
    assert f"{100 * first.acc_new:.1f} % → {100 * last.acc_new:.1f} %" in text
    assert "Classes found 14 7 of them novel" in text
    assert "Answers given 35 in 5 rounds" in text


def test_best_on_test_is_marked_and_never_in_the_headline(report: Path) -> None:
    story = toy_story()
    best = percent(story.rounds[-1].best_on_test)
    assert not any(best in (card.value, card.before) for card in cards(story))
    assert best not in summary(story)
    assert "never the headline" in _read(report).text


def test_same_story_gives_the_same_bytes(report: Path, tmp_path: Path) -> None:
    assert write_report(toy_story(), tmp_path).read_bytes() == report.read_bytes()


def test_hostile_strings_are_shown_as_text_and_cut(tmp_path: Path) -> None:
    path = write_report(_hostile_story(), tmp_path)
    source, found = path.read_text(encoding="utf-8"), _read(path)
    assert "script" not in found.tags
    assert found.addresses == []
    assert '<script>alert("x")</script>' in found.text
    assert "{{ 7 * 7 }} %s" in found.text
    assert "(no name)" in found.text
    assert "\u202e" not in source
    assert "\x00" not in source
    body = re.sub(r"<pre>.*?</pre>", "", source, flags=re.DOTALL)
    assert "x" * 401 not in body, "a long name must be cut everywhere but in a command"


def test_report_without_truth_tells_classes_answers_and_agreement(tmp_path: Path) -> None:
    path = write_report(without_truth(), tmp_path)
    text = _read(path).text
    assert [card.label for card in cards(without_truth())] == [
        "Agreement with your answers",
        "Classes",
        "Answers given",
    ]
    assert "There is no ground truth" in text
    assert "Nov-C" not in text
    assert "never the headline" not in text
    assert not (tmp_path / "figures" / "accuracy.png").exists()
    assert (tmp_path / "figures" / "agreement.png").exists()
    assert (tmp_path / "figures" / "map.png").exists()


def test_report_without_images_lists_rows_instead(tmp_path: Path) -> None:
    path = write_report(toy_story(thumbnail=None), tmp_path)
    found = _read(path)
    assert not any(address.startswith("data:image/jpeg") for address in found.images)
    assert "most typical: row 0, row 1, row 2, row 3" in found.text
    assert not list((tmp_path / "figures").glob("classes-*"))


def test_report_of_one_round_shows_plain_values_and_no_empty_charts(tmp_path: Path) -> None:
    story = toy_story(rounds=toy_rounds(1), rivals={})
    text = _read(write_report(story, tmp_path)).text
    assert "All classes 66.0 %" in text
    assert "Before the first answer" in text
    assert not (tmp_path / "figures" / "accuracy.png").exists()
    assert (tmp_path / "figures" / "confidence.png").exists()


def test_few_confused_pairs_are_open_and_the_others_folded(tmp_path: Path) -> None:
    pair = Confusion("ape", "bear", np.arange(3), np.arange(3, 6), 12, (Disputed(7, "ape", "bear"),))
    story = dataclasses.replace(without_truth(), confusions=(pair,) * 6, doubts=(Doubt(8, "cat", 0.123),))
    text = _read(write_report(story, tmp_path)).text
    assert text.count("People and the model differ on 12 pictures.") == 6
    assert text.count("called differently, and 11 more") == 6
    assert "2 more, less often confused" in text
    assert "people: ape model: bear row 7" in text
    assert "cat 12 % sure row 8" in text


def test_empty_story_still_makes_a_page(tmp_path: Path) -> None:
    found = _read(write_report(Story("nothing yet"), tmp_path))
    assert "nothing yet" in found.text
    assert found.images == []


def test_two_hundred_classes_fit_in_a_page_of_moderate_size(tmp_path: Path) -> None:
    maps = (toy_map("before", 1.0, 200, 5),)
    one = toy_thumbnail(0)
    path = write_report(toy_story(classes=toy_strips(200, 100), maps=maps, thumbnail=lambda row: one), tmp_path)
    assert len(re.findall(r"\d members", _read(path).text)) == 200
    assert path.stat().st_size < 12e6
    assert len(list((tmp_path / "figures").glob("classes-*.png"))) == 15
    with Image.open(tmp_path / "figures" / "map.png") as image:
        assert image.width < 2000


def test_classes_beyond_the_pictured_ones_are_still_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MAX_STRIPS", 3)
    found = _read(write_report(toy_story(), tmp_path))
    assert "11 further classes" in found.text
    assert all(strip.name in found.text for strip in toy_strips())


def test_vanished_images_become_grey_placeholders(tmp_path: Path) -> None:
    def thumbnail(row: int) -> Image.Image:
        if row % 3 == 0:
            raise FileNotFoundError(row)
        return toy_thumbnail(row)

    path = write_report(toy_story(thumbnail=thumbnail), tmp_path)
    assert "row 0 (typical, image not readable)" in path.read_text(encoding="utf-8")
    grey = np.asarray(Thumbnails(thumbnail).square(0))
    assert grey[2, 2].tolist() == [238, 240, 243]


def test_each_thumbnail_is_fetched_once(tmp_path: Path) -> None:
    fetched: list[int] = []

    def thumbnail(row: int) -> Image.Image:
        fetched.append(row)
        return toy_thumbnail(row)

    write_report(toy_story(thumbnail=thumbnail), tmp_path)
    assert len(fetched) == len(set(fetched)) > 100


def test_thumbnails_on_the_page_are_small_jpegs(report: Path) -> None:
    found = _read(report)
    uris = [address for address in found.images if address.startswith("data:image/jpeg;base64,")]
    assert len(uris) == 14 * 8 + 7 * 5
    with Image.open(io.BytesIO(base64.b64decode(uris[0].partition(",")[2]))) as image:
        assert (image.format, image.size) == ("JPEG", (SIDE, SIDE))


def test_a_second_report_replaces_the_first_and_its_figures(tmp_path: Path) -> None:
    write_report(toy_story(), tmp_path)
    (tmp_path / "figures" / "mine.png").write_bytes(b"a person's own file")
    write_report(toy_story(thumbnail=None, confidence=()), tmp_path)
    left = sorted(file.name for file in (tmp_path / "figures").iterdir())
    assert left == ["accuracy.png", "balance.png", "map.png", "mine.png"]


def test_a_page_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(StorageError, match=r"report\.html could not be written"):
        write_report(Story("x"), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"], "nothing half-written stays"


def _text_story() -> Story:
    return dataclasses.replace(toy_story(), thumbnail=None, noun="text", excerpt=lambda row: f"what row {row} says")


def test_texts_are_quoted_where_pictures_would_be_shown(tmp_path: Path) -> None:
    found = _read(write_report(dataclasses.replace(_text_story(), facts=()), tmp_path))
    strip = toy_strips()[-2]
    assert f"what row {strip.typical_rows[0]} says" in found.text
    assert f"what row {strip.queried_rows[0]} says" in found.text
    assert "picture" not in found.text.casefold()
    assert "Texts with a black frame" in found.text
    assert len(found.images) == 4  # the figures alone
    assert not list((tmp_path / "figures").glob("classes-*.png"))


def test_texts_without_truth_are_called_texts_everywhere(tmp_path: Path) -> None:
    pair = Confusion("a", "b", np.arange(4), np.arange(4, 8), 1, (Disputed(9, "a", "b"),))
    story = dataclasses.replace(
        without_truth(),
        thumbnail=None,
        noun="text",
        excerpt=lambda row: f"what row {row} says",
        confusions=(pair,),
        doubts=(Doubt(11, "a", 0.5),),
    )
    text = _read(write_report(dataclasses.replace(story, facts=()), tmp_path)).text
    assert "picture" not in text.casefold()
    assert "differ on 1 text." in text
    assert "Doubtful texts" in text
    assert "what row 9 says" in text
    assert "what row 11 says" in text


def test_hostile_texts_stay_text_and_long_ones_are_cut(tmp_path: Path) -> None:
    story = _hostile_story()
    story = dataclasses.replace(story, thumbnail=None, noun="text", excerpt=lambda row: HOSTILE[row % len(HOSTILE)])
    path = write_report(story, tmp_path)
    found = _read(path)
    assert not {"script", "iframe"} & set(found.tags)
    assert all(address.startswith("data:image/") for address in found.images)
    assert '<script>alert("x")</script>' in found.text
    quoted = re.findall(r'<li title="([^"]*)"><bdi>([^<]*)</bdi>', path.read_text(encoding="utf-8"))
    assert {"x" * 179 + "…", "日本語の名前"} <= {text for _, text in quoted}
    assert max(len(whole) for whole, _ in quoted) == 1000


def test_long_class_names_may_break_after_an_underscore(tmp_path: Path) -> None:
    strips = tuple(dataclasses.replace(strip, name="lost_or_<b>_phone") for strip in toy_strips()[:1])
    page = write_report(dataclasses.replace(_text_story(), classes=strips), tmp_path).read_text(encoding="utf-8")
    assert "lost_<wbr>or_<wbr>&lt;b&gt;_<wbr>phone" in page
