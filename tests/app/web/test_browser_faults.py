"""What may go wrong around the page: two people at once, lost answers, a killed server, hostile names, flicker."""

from __future__ import annotations

import re
import threading
from pathlib import Path

from playwright.sync_api import Browser, Route, expect

from agcd.app.answers import Answer, write_answers
from agcd.app.model import ask, train
from agcd.app.project import Project
from agcd.app.snapshot import Snapshot
from support.browsers import (
    TRAINING_MS,
    Server,
    Site,
    answer,
    asked,
    tab_to,
    train_long,
    visited,
)
from support.servers import trained_project

SAVED = "#strip-saved"
WHAT_IS_KNOWN = re.compile("/api/v1/(job|state)$")


def test_browsers_of_one_or_two_people_never_get_the_same_picture(site: Site) -> None:
    pages = [site.page, site.visitor("me"), site.visitor("bob")]
    rows = []
    for _ in range(2):
        shown = [asked(page) for page in pages]
        rows += shown
        for page in pages:  # all ask for the next question at about the same moment
            page.keyboard.press("=")
        for page, row in zip(pages, shown, strict=True):
            expect(page.locator(f".viewer img:not([src^='/image/{row}?'])")).to_be_visible()
    for page in pages:
        expect(page.locator(SAVED)).to_have_text("All saved")
    assert len(set(rows)) == 6
    assert site.server.get("state")["n_answers"] == len(rows)


def test_an_answer_that_is_lost_on_its_way_back_is_sent_again_and_counts_once(site: Site) -> None:
    page, server = site.page, site.server
    site.allow("ERR_FAILED")
    row, sent = asked(page), []

    def lose_the_first_answer(route: Route) -> None:
        sent.append((route.request.post_data_json or {})["uid"])
        if len(sent) == 1:
            assert route.fetch().status == 200  # the server has stored it
            route.abort()
        else:
            route.continue_()

    page.route("**/api/v1/answers", lose_the_first_answer)
    page.keyboard.press("=")
    expect(page.locator(SAVED)).to_have_text("Not saved yet – retrying")
    expect(page.locator(SAVED)).to_have_text("All saved")
    assert len(sent) == 2
    assert len(set(sent)) == 1
    assert server.get("state")["n_answers"] == 1
    assert row in server.labels()
    assert asked(page) != row


def test_a_server_that_is_killed_and_started_again_loses_no_answer(site: Site) -> None:
    page, old = site.page, site.server
    site.allow("net::ERR_|status of 401")
    row = asked(page)
    before = old.labels()
    old.kill()
    page.keyboard.press("=")
    expect(page.locator(SAVED)).to_have_text("Not saved yet – retrying")
    site.server = Server(old.project, old.port)
    expect(page.locator(SAVED)).to_contain_text("open the new link of agcd serve in another tab")
    expect(page.locator(SAVED)).to_contain_text("1 answer not saved yet")
    assert site.server.labels() == before
    page.context.new_page().goto(site.server.link)
    expect(page.locator(SAVED)).to_have_text("All saved")
    assert site.server.labels().keys() == {*before, row}
    assert asked(page) != row
    answer(page, "=")
    assert site.server.get("state")["n_answers"] == 2


def test_keys_can_be_changed_and_stay_changed(site: Site) -> None:
    page, server = site.page, site.server
    asked(page)
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keys")
    tab_to(page, sheet.get_by_role("button", name="Change the key of: Skip"))
    page.keyboard.press("Enter")
    page.keyboard.press("u")
    expect(sheet).to_contain_text("U is taken: “Unsure”.")
    page.keyboard.press("Enter")
    page.keyboard.press("k")
    expect(sheet).to_contain_text("“Skip” is now K.")
    page.keyboard.press("Escape")
    expect(sheet).not_to_be_attached()
    answer(page, "k")
    page.reload()
    row = asked(page)
    page.keyboard.press("s")
    expect(page.get_by_role("button", name="Skip K")).to_be_visible()
    assert asked(page) == row
    answer(page, "k")
    assert server.get("state")["n_passed"] == 2


NAMES = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "a very long name " * 11 + "to its end",
    "قطة سوداء",
    "🦊 & “fox” {{7*7}} ${7*7}",
)


def test_hostile_names_are_shown_as_text_on_every_page(browser: Browser, tmp_path: Path) -> None:
    with visited(browser, hostile_project(tmp_path)) as site:
        page = site.page
        asked(page)
        expect(page.locator(".brand strong")).to_have_text("<i onclick=alert(3)>")
        assert set(NAMES) & set(page.locator(".candidate-name").all_text_contents())
        page.keyboard.press("/")
        expect(page.locator(".option-text strong", has_text=NAMES[0])).to_be_visible()
        assert set(NAMES) <= set(page.locator(".option-text strong").all_text_contents())
        page.keyboard.press("Escape")
        # Map and rounds name groups, and not every class has most of the labels of one.
        groups = [name for name, _ in project_snapshot(site.server.project).slot_names if name in NAMES]
        assert groups
        places = {
            "classes?sort=new": (".class-name", NAMES),
            "grid?show=labelled": (".thumb-name", NAMES),
            "map": (".legend-name", groups),
            "rounds": (".changes li", groups),
        }
        for path, (shown, names) in places.items():
            page.goto(f"{site.server.url}/{path}")
            for name in names:
                expect(page.locator(shown).get_by_text(name).first).to_be_attached()
            assert page.locator("main :is(script, i, [onclick], [onerror]), [src=x]").count() == 0


def project_snapshot(folder: Path) -> Snapshot:
    with Project.open(folder) as project:
        return project.snapshot()


def hostile_project(folder: Path) -> Path:
    """A project after a round in which every new class got a name that tries to break out of the page."""
    path = trained_project(folder).rename(folder / "<i onclick=alert(3)>")
    settings = path / "agcd.toml"  # learning as the paper does leaves every class a picture on the map
    settings.write_text(f'protocol = "short"\n{settings.read_text()}')
    with Project.open(path) as project:
        rows = range(len(project.paths))[-len(NAMES) :]
        write_answers(project, [Answer(row, name) for row, name in zip(rows, NAMES, strict=True)])
        train(project)
        ask(project, 6)
    return path


def test_training_cannot_be_pressed_before_the_page_knows_whether_there_is_something_to_learn(site: Site) -> None:
    page, told = site.page, threading.Event()
    waiting: list[Route] = []
    answer(page, "1")
    page.route(WHAT_IS_KNOWN, lambda route: route.continue_() if told.is_set() else waiting.append(route))
    page.goto(f"{site.server.url}/rounds")
    learn = page.get_by_role("button", name="Learn from my answers now")
    expect(learn).to_be_disabled()
    place = learn.bounding_box()
    told.set()
    for route in waiting:
        route.continue_()
    expect(page.get_by_text("1 answer waits to be learned from.")).to_be_visible()
    expect(learn).to_be_enabled()
    assert learn.bounding_box() == place


def test_nothing_jumps_while_a_round_is_trained(site: Site) -> None:
    pages = {"label": site.page, "rounds": site.visitor("ann")}
    asked(site.page)
    answer(site.page, "=")
    asked(site.page)
    pages["rounds"].goto(f"{site.server.url}/rounds")
    expect(pages["rounds"].locator(".forecast li")).not_to_have_count(0)
    for page in pages.values():
        page.wait_for_load_state("networkidle")
        page.evaluate(WATCH_SHIFTS)
    train_long(site.server.project, n_epochs=2000)
    site.server.http.post("/api/v1/job", json={"kind": "train"})
    for page in pages.values():
        expect(page.locator("#strip-job")).to_contain_text("Learning from your answers", timeout=TRAINING_MS)
    site.page.wait_for_timeout(3000)
    shifts = {name: page.evaluate("window.shifts") for name, page in pages.items()}
    assert all(shift <= 0.02 for seen in shifts.values() for shift in seen), shifts
    assert sum(shifts["label"]) <= 0.01  # whoever labels meanwhile sees nothing but the strip


WATCH_SHIFTS = """() => {
  window.shifts = [];
  const watch = (list) => window.shifts.push(...list.getEntries().map((entry) => entry.value));
  new PerformanceObserver(watch).observe({ type: "layout-shift" });
}"""
