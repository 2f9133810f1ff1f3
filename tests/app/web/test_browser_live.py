"""The live questions by thumb on a phone, and training in the background while somebody looks at one."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from support.browsers import NOTHING_BEING_SAVED, PHONE, TRAINING_MS, Site, answer, asked, toast

STICKS_OUT = "() => document.documentElement.scrollWidth - innerWidth"


def test_three_questions_are_answered_by_thumb(site: Site) -> None:
    site.page.context.close()  # it would hold a question
    page = site.visitor(**PHONE)
    page.goto(f"{site.server.url}/label")
    rows = [tap_suggestion(page), tap_new_class(page, "purple-cross"), tap_suggestion(page)]
    asked(page)
    assert rows[1] in site.server.labels()
    assert site.server.labels()[rows[1]] == "purple-cross"
    assert set(rows) <= set(site.server.labels())
    assert len(set(rows)) == 3
    figure = page.locator("#strip-figure")
    expect(figure).to_be_in_viewport()
    expect(figure).to_have_text("Not checked yet")
    expect(page.locator("#strip-answers")).to_have_text("3")
    assert page.evaluate(STICKS_OUT) <= 0


def tap_suggestion(page: Page) -> int:
    """Take the first suggestion that has a name."""
    named = page.locator(".candidate:has(.candidate-name:not(.unnamed))")
    return answer(page, lambda page: named.first.tap())


def tap_new_class(page: Page, name: str) -> int:
    row = asked(page)
    page.locator("[data-action=create]").tap()
    page.locator("dialog input").fill(name)
    with page.expect_response("**/api/answers"):
        page.locator("dialog .option[aria-selected=true]").tap()
    page.evaluate(NOTHING_BEING_SAVED)
    return row


def test_training_leaves_the_question_on_the_screen_alone(site: Site) -> None:
    page = site.page
    answer(page, "Enter")
    row = asked(page)
    before = page.locator(".card").inner_text()
    page.evaluate("document.querySelector('.card .viewer img').dataset.isSame = 'yes'")
    page.keyboard.press("l")
    toast(page, "The model has learned from your answers.", timeout=TRAINING_MS)
    assert asked(page) == row
    assert page.locator(".card .viewer img").get_attribute("data-is-same") == "yes"
    assert page.locator(".card").inner_text() == before
    assert answer(page, "Enter") == row
