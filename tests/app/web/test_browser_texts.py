"""Texts and records in a real browser: labelled by keys, reviewed, searched, and nothing in them executed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from agcd.app.model import train
from agcd.app.project import Project
from agcd.data.reading import SourceOptions
from support.browsers import NOTHING_BEING_SAVED, Site, visited
from support.texts import SETTINGS, record_files, sentences, text_project, write_csv

STICKS_OUT = "() => document.documentElement.scrollWidth - innerWidth"
HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script> & "quotes" \u05e9\u05dc\u05d5\u05dd'


@pytest.fixture
def texts(browser: Browser, tmp_path: Path) -> Iterator[Site]:
    """A project of 96 sentences, trained once."""
    with text_project(tmp_path) as project:
        train(project)
    with visited(browser, tmp_path / "project") as site:
        yield site


def asked(page: Page) -> int:
    """The row of the question, once it can be answered."""
    viewer = page.locator(".card:not(.is-waiting) .viewer")
    expect(viewer).to_have_attribute("aria-label", re.compile(r"^(Text|Record) \d+: which class is it"))
    found = re.search(r"\d+", viewer.get_attribute("aria-label") or "")
    assert found
    return int(found[0])


def say(page: Page, name: str) -> int:
    """Name the text of the question, typing as little as the page lets one."""
    row = asked(page)
    page.keyboard.press("/")
    page.locator("dialog input").fill(name)
    with page.expect_response("**/api/v1/answers"):
        page.keyboard.press("Enter")
    page.evaluate(NOTHING_BEING_SAVED)
    dialog = page.locator("dialog[open]")
    if dialog.count():  # which others are it too? none
        page.keyboard.press("Escape")
    return row


def test_sentences_are_labelled_by_keys_and_leave_with_their_names(texts: Site) -> None:
    page, truth = texts.page, dict(sentences())
    row = asked(page)
    whole = texts.server.get(f"items/{row}")["text"]
    expect(page.locator(".card .viewer-text")).to_have_text(whole)
    assert page.locator(".card img").count() == 0, "nothing is asked for as a picture"
    for _ in range(4):
        row = asked(page)
        say(page, truth[texts.server.get(f"items/{row}")["text"]])
    said = texts.server.labels()
    assert len(said) == 16 // 2 + 4
    assert all(truth[texts.server.get(f"items/{row}")["text"]] == name for row, name in said.items())
    exported = texts.server.http.get("/api/v1/export/labels.csv").text
    assert whole in exported
    expect(page.get_by_role("contentinfo").or_(page.locator("body"))).not_to_contain_text("picture")


def test_every_page_speaks_of_texts_fits_a_phone_and_marks_what_is_searched(texts: Site) -> None:
    page = texts.page
    for page_name in ("review", "classes", "grid", "map", "rounds", "start"):
        page.goto(f"{texts.server.url}/{page_name}")
        expect(page.locator("main").get_by_role("heading").first).to_be_visible()
        page.wait_for_load_state("networkidle")
        for width, height in ((390, 844), (1280, 800)):
            page.set_viewport_size({"width": width, "height": height})
            assert "picture" not in page.locator("main").inner_text().lower(), page_name
            assert page.evaluate(STICKS_OUT) <= 0, page_name
    page.goto(f"{texts.server.url}/grid?text=stolen")
    expect(page.locator("main .thumb").first).to_be_visible()
    n = sum("stolen" in text for text, _ in sentences())
    expect(page.locator("main .thumb")).to_have_count(n)
    expect(page.locator("main .thumb mark")).to_have_count(n)


def test_what_a_text_holds_is_shown_and_never_run(browser: Browser, tmp_path: Path) -> None:
    rows = [{"text": f"{HOSTILE} {n}", "label": "a" if n < 3 else ""} for n in range(12)]
    table = write_csv(tmp_path / "t.csv", rows)
    with Project.create(tmp_path / "project", table, settings=SETTINGS, kind="text", n_classes=2) as project:
        train(project)
    with visited(browser, tmp_path / "project") as site:
        for page_name in ("review", "classes", "grid"):
            site.page.goto(f"{site.server.url}/{page_name}")
            site.page.wait_for_load_state("networkidle")
            assert site.page.locator("main img, main script").count() == 0
            assert site.page.title() not in ("1", "2")
        site.page.goto(f"{site.server.url}/label")
        asked(site.page)
        expect(site.page.locator(".card .viewer-text")).to_contain_text('<img src=x onerror="document.title=1">')


def test_records_are_labelled_from_their_table(browser: Browser, tmp_path: Path) -> None:
    table, x = record_files(tmp_path)
    options = SourceOptions(label_column="family")
    folder = tmp_path / "project"
    with Project.create(folder, table, settings=SETTINGS, options=options, kind="record", embeddings=x) as project:
        train(project)
    with visited(browser, folder) as site:
        page = site.page
        row = asked(page)
        cells = {cell["name"]: cell["value"] for cell in site.server.get(f"items/{row}")["cells"]}
        for name, value in cells.items():
            line = page.locator(".card .viewer-cells tr", has=page.get_by_role("rowheader", name=name, exact=True))
            expect(line).to_contain_text(value)
        assert page.locator(".card a").count() == (row % 2), "addresses of the web alone are links"
        assert say(page, "my family") == row
        assert site.server.labels()[row] == "my family"
        assert cells["formula"] in site.server.http.get("/api/v1/export/labels.csv").text
