"""The review in a real browser: from the first page to "All checked", by keyboard alone and by touch."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from support.browsers import NOTHING_BEING_SAVED, Site, toast, visited
from support.projects import truth
from support.servers import trained_project

PHONE = {"width": 390, "height": 844}
DESKTOPS = [(1280, 800), (1440, 900), (1920, 1080)]


def project_named_by_the_model(folder: Path) -> Path:
    """Without the view that answers are followed by, pictures keep the model's names, of which the tests know some."""
    project = trained_project(folder)
    shutil.rmtree(project / "cache" / "rounds" / "start")
    return project


@pytest.fixture
def site(browser: Browser, tmp_path: Path) -> Iterator[Site]:
    with visited(browser, project_named_by_the_model(tmp_path)) as site:
        yield site


@pytest.fixture
def named_site(browser: Browser, tmp_path: Path) -> Iterator[Site]:
    """A project in which every picture without a label has a name; one class has a page of 24."""
    with visited(browser, project_named_by_the_model(tmp_path)) as site:
        named = {one["row"] for one in site.server.get("review", n=100)["pictures"]}
        rest = [one for one in site.server.pictures(show="unlabelled") if one["row"] not in named]
        said = [{"row": one["row"], "kind": "label", "name": truth(one["path"])} for one in rest]
        site.server.do("answers", answers=said)
        yield site


class Keys:
    """Presses keys and counts them."""

    def __init__(self, page: Page) -> None:
        self.page, self.n = page, 0

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
            self.n += 1


def go(site: Site, path: str = "review") -> Page:
    site.page.goto(f"{site.server.url}/{path}")
    return site.page


def tiles(page: Page) -> list[int]:
    return [int(row) for row in page.locator(".review-tile").evaluate_all("all => all.map(one => one.dataset.row)")]


def key_of(page: Page, row: int) -> str:
    return page.locator(f".review-tile[data-row='{row}'] kbd").inner_text().lower()


def is_stored(page: Page) -> None:
    page.evaluate(NOTHING_BEING_SAVED)


def test_a_page_of_24_with_two_wrong_ones_costs_at_most_seven_keys(named_site: Site) -> None:
    page, server = go(named_site), named_site.server
    expect(page.locator(".review-title")).to_have_text("These are shown as orange-circle. Tick the wrong ones.")
    rows, keys = tiles(page), Keys(page)
    assert len(rows) == 24
    labels, wrong = server.labels(), [rows[3], rows[20]]
    for row in wrong:
        keys.press(key_of(page, row))
    expect(page.locator(".review-tile[aria-selected=true]")).to_have_count(2)
    keys.press("Enter")
    expect(page.locator(".review-name")).to_have_text("Not orange-circle. What is it?")
    page.keyboard.press("Enter")  # a second one by mistake does not call them right
    expect(page.locator(".review-note")).to_have_text("1 of 2 wrong ones")
    first = page.locator(".review-other strong").first.inner_text()
    with page.expect_response("**/api/v1/review/confirm"):
        keys.press("1", "1")
    assert keys.n <= 7
    is_stored(page)
    found = {row: name for row, name in server.labels().items() if row not in labels}
    assert found.keys() == set(wrong)
    assert found[rows[3]] == first
    accepted = {one["row"]: one["name"] for one in server.pictures(show="accepted")}
    assert accepted == dict.fromkeys(set(rows) - set(wrong), "orange-circle")
    page.keyboard.press("z")
    toast(page, "Undone: 22 accepted, 2 labels")
    assert server.labels() == labels
    assert server.pictures(show="accepted") == []
    expect(page.locator(".review-tile")).to_have_count(24)


def test_the_review_goes_to_the_end_by_keyboard_alone(named_site: Site) -> None:
    page, server = go(named_site), named_site.server
    line = page.locator(".review-line")
    expect(line).to_contain_text("10 of 41 checked · about 2 wrong among the rest · this page is likely to mend")
    # The arrows and Space tick as well; both wrong ones get one name that nobody has used.
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    expect(page.locator(".review-tile[aria-selected=true]")).to_have_count(2)
    page.keyboard.press("Enter")
    page.keyboard.press("a")
    page.keyboard.press("n")
    page.keyboard.type("a late find")
    with page.expect_response("**/api/v1/review/confirm"):
        page.keyboard.press("Enter")
    is_stored(page)
    assert list(server.labels().values()).count("a late find") == 2
    expect(line).to_contain_text("34 of 41 checked")
    page.keyboard.press("g")
    expect(page.locator(".review-name")).to_have_text(re.compile(r"^.+\?$"))
    shown = page.locator(".review-name").inner_text()[:-1]
    known = server.labels()
    for key in ("Enter", "x"):
        with page.expect_response("**/api/v1/review/confirm"):
            page.keyboard.press(key)
        is_stored(page)
    new = {row: name for row, name in server.labels().items() if row not in known}
    assert list(new.values()) == [shown]
    assert server.get("state")["n_junk"] == 1
    expect(line).to_contain_text("36 of 41 checked")
    left = server.get("review")["left"]
    assert left["n_left"] == 5
    expect(page.get_by_role("button", name="Accept the remaining 5")).to_be_visible()
    page.keyboard.press("r")
    expect(page.get_by_role("dialog")).to_contain_text("5 pictures keep the name shown now")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="All 41 have a name")).to_be_visible()
    expect(page.locator(".review-done")).to_contain_text("5 pictures were accepted without a look")
    page.reload()  # that nobody looked is no matter of this tab
    expect(page.locator(".review-done")).to_contain_text("5 pictures were accepted without a look")
    expect(line).to_have_text("36 of 41 checked · 5 accepted without a look")
    expect(page.locator("a[download='labels.csv']")).to_be_visible()
    page.keyboard.press("z")
    expect(line).to_contain_text("36 of 41 checked")
    while not page.get_by_role("heading", name="All 41 checked").is_visible():
        page.keyboard.press("Enter")
        is_stored(page)
        page.wait_for_timeout(50)
    assert server.get("review")["left"]["n_left"] == 0


def test_enter_pressed_quickly_answers_each_picture_once(named_site: Site) -> None:
    page, server = go(named_site, "review?mode=single"), named_site.server
    expect(page.locator(".review-name")).to_have_text(re.compile(r"\?$"))
    page.wait_for_load_state("networkidle")  # the pictures that come next are there
    before = server.get("state")["n_answers"]
    for _ in range(8):
        page.keyboard.press("Enter")
    expect(page.locator(".review-line")).to_contain_text("18 of 41 checked")
    is_stored(page)
    assert server.get("state")["n_answers"] == before + 8


def test_pictures_without_a_name_are_said_at_the_end(site: Site) -> None:
    page = go(site)
    expect(page.locator(".review-tile")).to_have_count(24)
    page.keyboard.press("r")
    page.keyboard.press("Enter")
    expect(page.locator(".review-done")).to_contain_text("10 pictures have no name yet: label them.")
    expect(page.locator(".review-done h2")).to_have_text("31 of 41 have a name")
    expect(page.locator(".review-line")).to_contain_text("0 of 41 checked")


def test_before_the_first_training_there_is_nothing_to_check(new_site: Site) -> None:
    page = go(new_site)
    expect(page.locator(".review-done")).to_contain_text("41 pictures have no name yet: label them.")
    expect(page.locator(".review-done h2")).to_have_text("Nothing to check yet")


def test_the_review_goes_to_the_end_by_touch(named_site: Site) -> None:
    context = named_site.browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True, reduced_motion="reduce")  # type: ignore[arg-type]
    page, server = context.new_page(), named_site.server
    page.goto(server.link)
    page.wait_for_url(re.compile("/(label|start)$"))
    page.goto(f"{server.url}/review")
    expect(page.locator(".review-tile")).to_have_count(24)
    assert overflow(page) == 0
    assert small_targets(page) == []
    row = tiles(page)[0]
    page.locator(f".review-tile[data-row='{row}']").tap()
    page.get_by_role("button", name="1 is wrong").tap()
    expect(page.locator(".review-name")).to_be_visible()
    assert overflow(page) == 0
    assert small_targets(page) == []
    with page.expect_response("**/api/v1/review/confirm"):
        page.locator(".review-other").first.tap()
    expect(page.get_by_role("button", name="All 7 are right")).to_be_visible()
    page.get_by_role("button", name="One by one").tap()
    expect(page.locator(".review-name")).to_have_text(re.compile(r"\?$"))
    page.get_by_role("button", name="Right", exact=True).tap()
    expect(page.locator(".review-line")).to_contain_text("35 of 41 checked")
    page.get_by_role("button", name=re.compile("^Accept the remaining 6")).tap()
    page.get_by_role("button", name="Accept them").tap()
    expect(page.get_by_role("heading", name="All 41 have a name")).to_be_visible()
    expect(page.locator(".folder-ways").first).to_have_css("display", "flex")  # styled here as on the progress page
    assert overflow(page) == 0
    assert row in server.labels()


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than the window."""
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def small_targets(page: Page) -> list[str]:
    """What can be touched in the page's own part and is smaller than 40 pixels."""
    found: list[str] = page.locator("main :is(button, a, select, [role=option])").evaluate_all(
        "all => all.filter(one => one.offsetParent && one.getBoundingClientRect().height < 40)"
        ".map(one => one.textContent)"
    )
    return found


@pytest.mark.parametrize(("width", "height"), DESKTOPS)
def test_a_page_of_24_fits_the_window(named_site: Site, width: int, height: int) -> None:
    page = go(named_site)
    page.set_viewport_size({"width": width, "height": height})
    expect(page.locator(".review-tile")).to_have_count(24)
    assert overflow(page) == 0
    assert page.evaluate("document.documentElement.scrollHeight - innerHeight") <= 0
    page.keyboard.press("g")
    expect(page.locator(".review-name")).to_be_visible()
    assert overflow(page) == 0
    assert page.evaluate("document.documentElement.scrollHeight - innerHeight") <= 0
