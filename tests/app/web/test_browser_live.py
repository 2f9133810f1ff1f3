"""The live questions by thumb on a phone, and training in the background while somebody looks at one."""

from __future__ import annotations

from playwright.sync_api import Page, Route, expect

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
    named = page.locator(".candidate:not(.candidate-other):has(.candidate-name:not(.unnamed))")
    return answer(page, lambda page: named.first.tap())


def tap_new_class(page: Page, name: str) -> int:
    row = asked(page)
    page.locator("[data-action=create]").tap()
    page.locator("dialog input").fill(name)
    with page.expect_response("**/api/v1/answers"):
        page.locator("dialog .option[aria-selected=true]").tap()
    page.evaluate(NOTHING_BEING_SAVED)
    return row


def test_training_leaves_the_question_on_the_screen_alone(site: Site) -> None:
    page = site.page
    answer(page, "1")
    row = asked(page)
    before = page.locator(".card").inner_text()
    page.evaluate("document.querySelector('.card .viewer img').dataset.isSame = 'yes'")
    page.keyboard.press("l")
    toast(page, "The model has learned from your answers.", timeout=TRAINING_MS)
    assert asked(page) == row
    assert page.locator(".card .viewer img").get_attribute("data-is-same") == "yes"
    assert page.locator(".card").inner_text() == before
    assert answer(page, "1") == row


# ------------------------------------------------------------------------------------- a kind that nobody has named


def seem_new(page: Page) -> None:
    """Let every question be about a picture that no class explains."""

    def change(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, json=response.json() | {"seems_new": True})

    page.route("**/api/v1/question*", change)


def test_enter_never_gives_the_name_of_another_class_to_a_new_kind(site: Site) -> None:
    page, server = site.page, site.server
    seem_new(page)
    page.reload()
    row, known = asked(page), server.labels()
    expect(page.locator(".candidate").first).to_contain_text("Give it a name")
    expect(page.locator("[data-action=accept]")).to_contain_text("Name it")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="New class")).to_be_visible()
    page.keyboard.press("Enter")  # pressed twice by mistake: nothing is typed, so nothing is said
    assert server.labels() == known
    page.keyboard.type("kite")
    with page.expect_response("**/api/v1/answers"):
        page.keyboard.press("Enter")
    page.evaluate(NOTHING_BEING_SAVED)
    assert server.labels() == known | {row: "kite"}
    page.unroute_all(behavior="wait")


def test_a_new_kind_is_named_by_thumb(site: Site) -> None:
    site.page.context.close()  # it would hold a question
    page = site.visitor(**PHONE)
    seem_new(page)
    page.goto(f"{site.server.url}/label")
    row = asked(page)
    page.locator(".candidate-other").tap()
    page.locator("dialog input").fill("kite")
    with page.expect_response("**/api/v1/answers"):
        page.locator("dialog .option[aria-selected=true]").tap()
    page.evaluate(NOTHING_BEING_SAVED)
    assert site.server.labels()[row] == "kite"
    assert page.evaluate(STICKS_OUT) <= 0
    page.unroute_all(behavior="wait")
