"""Every page at every size: nothing sticks out, a thumb can press everything, and axe finds nothing serious."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from support import TESTS
from support.browsers import PHONE, Site, visited
from support.servers import trained_project

PAGES = ("label", "classes", "grid", "map", "rounds", "start")
SIZES = {"1280": (1280, 800), "1440": (1440, 900), "1920": (1920, 1080)}
AXE = TESTS.parent / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
THUMB_PX = 40


@pytest.fixture(scope="module")
def shown(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One project for all looks: none of them changes anything."""
    with visited(browser, trained_project(tmp_path_factory.mktemp("screens"))) as site:
        # Every browser that looks at a question holds it for some minutes: there must be enough.
        site.server.do("queue", rows=[thumb["row"] for thumb in site.server.pictures(show="unlabelled")])
        yield site


def settled(page: Page, site: Site, name: str) -> None:
    page.goto(f"{site.server.url}/{name}")
    page.wait_for_load_state("networkidle")
    expect(page.locator("main > *")).not_to_have_count(0)


def opened_dialogs(page: Page, site: Site) -> Iterator[str]:
    """The dialogs of the board, one after the other."""
    settled(page, site, "classes")
    for name in ("grow", "merge", "split", "look"):
        page.locator(".class-card:not(.is-group)").first.locator(f"[data-do={name}]").click()
        expect(page.get_by_role("dialog")).to_be_visible()
        page.wait_for_load_state("networkidle")
        yield name
        page.keyboard.press("Escape")
    page.locator(".class-card.is-group [data-do=rename]").first.click()
    expect(page.locator("dialog .tick")).not_to_have_count(0)
    yield "name a group"


STICKS_OUT = """() => {
  const isCut = (box) => ["auto", "scroll", "hidden"].includes(getComputedStyle(box).overflowX);
  const scrolls = (box) => box && (isCut(box) || scrolls(box.parentElement));
  const out = [...document.querySelectorAll("body *")].filter((one) => {
    const place = one.getBoundingClientRect();
    return place.width && place.right > innerWidth + 1 && !scrolls(one.parentElement);
  });
  const wide = document.documentElement.scrollWidth - innerWidth;
  return wide > 0 || out.length ? [wide, ...out.slice(0, 5).map((one) => one.className || one.tagName)] : [];
}"""


@pytest.mark.parametrize("size", [*SIZES, "phone"])
def test_no_page_and_no_dialog_overflows_sideways(shown: Site, size: str) -> None:
    options: dict[str, Any] = PHONE if size == "phone" else {}
    if size in SIZES:
        options = {"viewport": dict(zip(("width", "height"), SIZES[size], strict=True))}
    page = shown.visitor(**options)
    found = {}
    for name in PAGES:
        settled(page, shown, name)
        found[name] = page.evaluate(STICKS_OUT)
    for name in opened_dialogs(page, shown):
        found[name] = page.evaluate(STICKS_OUT)
    page.context.close()
    assert {name: out for name, out in found.items() if out} == {}


TOO_SMALL = """(least) => {
  const inside = document.querySelector("dialog[open]") ?? document;
  const targets = inside.querySelectorAll("a[href], button, input, select, summary, textarea, [role=option]");
  return [...targets].filter((one) => {
    // What is pressed of a box or a dot is the words beside it.
    const pressed = one.matches("[type=radio], [type=checkbox]") ? one.closest("label") ?? one : one;
    const place = pressed.getBoundingClientRect();
    if (!place.width || !one.checkVisibility() || one.matches(".skip-link")) return false;
    return Math.min(place.width, place.height) < least - 0.5;
  }).map((one) => `${one.className || one.tagName} ${one.textContent.trim().slice(0, 20)}`);
}"""


def test_what_can_be_pressed_on_a_phone_is_large_enough(shown: Site) -> None:
    page, found = shown.visitor(**PHONE), {}
    for name in PAGES:
        settled(page, shown, name)
        found[name] = page.evaluate(TOO_SMALL, THUMB_PX)
    for name in opened_dialogs(page, shown):
        found[name] = page.evaluate(TOO_SMALL, THUMB_PX)
    page.context.close()
    assert {name: small for name, small in found.items() if small} == {}


def test_the_action_bar_leaves_the_suggestions_of_a_phone_in_sight(shown: Site) -> None:
    page = shown.visitor(**PHONE)
    settled(page, shown, "label")
    bar, first = page.locator(".tools").bounding_box(), page.locator(".candidate").first.bounding_box()
    page.context.close()
    assert bar is not None
    assert first is not None
    assert bar["height"] < 70
    assert first["y"] + first["height"] <= bar["y"]


def axe_source() -> str:
    if AXE.exists():
        return AXE.read_text(encoding="utf-8")
    if os.environ.get("CI"):
        pytest.fail("axe-core is not installed: run npm ci in frontend/ first")
    pytest.skip("axe-core is not installed: run npm ci in frontend/")


FINDINGS = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations.filter(({ impact }) => ["serious", "critical"].includes(impact))
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(shown: Site, scheme: str) -> None:
    source, found = axe_source(), {}
    page = shown.visitor(color_scheme=scheme)
    for name in PAGES:
        settled(page, shown, name)
        page.evaluate(source)
        found[name] = page.evaluate(FINDINGS)
    for name in opened_dialogs(page, shown):
        page.evaluate(source)
        found[name] = page.evaluate(FINDINGS)
    page.context.close()
    assert {name: findings for name, findings in found.items() if findings} == {}
