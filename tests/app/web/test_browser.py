"""The labelling page in a real browser: a whole round by keyboard alone, and the first steps of a project."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from playwright.sync_api import Page, expect

from support.browsers import (
    TRAINING_MS,
    Site,
    answer,
    asked,
    rows_asked_about,
    see_training,
    tab_to,
    toast,
    train_long,
)


def test_a_whole_round_is_labelled_by_keyboard_alone(site: Site, tmp_path: Path) -> None:
    page, server = site.page, site.server
    known, questions = server.labels(), rows_asked_about(server.project)
    accepted = answer(page, digit_of_a_named_class(page))
    skipped, unsure = answer(page, "s"), answer(page, "u")
    first = answer(page, lambda page: new_class(page, "first find", n_ticks=2, except_rows=questions))
    second = answer(page, lambda page: new_class(page, "second find", n_ticks=1, except_rows=questions))
    found = {row: name for row, name in server.labels().items() if row not in known}
    state = server.get("state")
    assert found[accepted] in known.values()
    assert (found[first], found[second]) == ("first find", "second find")
    assert sorted(found.values()).count("first find") == 3
    assert sorted(found.values()).count("second find") == 2
    assert not {skipped, unsure} & found.keys()
    assert (state["n_answers"], state["n_passed"], state["n_novel"]) == (6, 2, 2)

    merge_by_keys(page, "second find", "first find")
    assert server.labels() == known | {row: name.replace("second", "first") for row, name in found.items()}
    assert server.get("state")["n_novel"] == 1

    tab_to(page, page.get_by_role("link", name="Label"))
    page.keyboard.press("Enter")
    asked(page)
    undo(page, "Taken back: 1 merge")
    assert server.labels() == known | found
    undo(page, "Taken back: 2 label")
    assert server.labels() == known | {row: name for row, name in found.items() if name != "second find"}
    assert server.get("state")["n_novel"] == 1
    assert asked(page) == second  # what was taken back is asked again

    answer(page, lambda page: new_class(page, "second find", n_ticks=0, except_rows=questions))
    answer_the_rest(page)
    labels = server.labels()
    train_and_see_new_questions(site)
    assert server.labels() == labels  # training leaves what people said as it is

    predictions = download_predictions(page, tmp_path)
    assert len(predictions) == server.get("state")["n_images"]
    assert all(line["class"] for line in predictions)
    assert {int(line["row"]): line["class"] for line in predictions if line["by"] == "human"} == labels
    assert {"first find", "second find"} <= {line["class"] for line in predictions}


def digit_of_a_named_class(page: Page) -> str:
    asked(page)
    names = page.locator(".candidate-name").evaluate_all("all => all.map(one => one.classList.contains('unnamed'))")
    return str(names.index(False) + 1)


def new_class(page: Page, name: str, n_ticks: int, except_rows: set[int]) -> None:
    """Name a new class and tick neighbours, but not those that are asked about themselves."""
    page.keyboard.press("n")
    page.keyboard.type(name)
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name=f"Which of these are also “{name}”?")).to_be_visible()
    rows = page.locator(".also-grid [data-row]").evaluate_all("all => all.map(one => Number(one.dataset.row))")
    keys = [key for key, row in zip("123456789abc", rows, strict=False) if row not in except_rows][:n_ticks]
    for key in keys:
        page.keyboard.press(key)
    expect(page.locator(".also-grid [aria-pressed=true]")).to_have_count(n_ticks)
    page.keyboard.press("Enter")


def merge_by_keys(page: Page, one: str, into: str) -> None:
    tab_to(page, page.get_by_role("link", name="Classes"))
    page.keyboard.press("Enter")
    expect(page.locator(".class-card")).not_to_have_count(0)
    page.keyboard.press("/")
    page.keyboard.type(one)
    page.keyboard.press("Enter")
    expect(page.locator(".class-card:focus h3")).to_have_text(one)
    page.keyboard.press("m")
    page.keyboard.type(into)
    page.keyboard.press("Enter")
    preview = page.get_by_role("dialog", name="Merge two classes?")
    expect(preview).to_contain_text(f"2 labels of {one} will count as {into}, which has 3.")
    page.keyboard.press("Enter")
    toast(page, f"{one} is now {into}")


def undo(page: Page, words: str) -> None:
    with page.expect_response("**/api/undo"):
        page.keyboard.press("z")
    expect(page.locator(".card-said")).to_contain_text(words)


def answer_the_rest(page: Page) -> None:
    """Accept the first suggestion until nothing is asked; a group without a name gets one."""
    while not page.get_by_role("heading", name="All questions are answered").is_visible():
        if not page.locator(".card:not(.is-waiting) .candidate").count():
            page.wait_for_timeout(20)
        elif page.locator(".candidate-name").first.evaluate("one => one.classList.contains('unnamed')"):
            answer(page, lambda page: name_the_group(page, "first find"))
        else:
            answer(page, "Enter")


def name_the_group(page: Page, name: str) -> None:
    page.keyboard.press("Enter")
    page.keyboard.type(name)
    page.keyboard.press("Enter")


def train_and_see_new_questions(site: Site) -> None:
    page = site.page
    train_long(site.server.project)
    page.evaluate("window.isSamePage = true")
    page.keyboard.press("Enter")
    see_training(page, "Training round 1")
    expect(page.locator(".card")).to_be_visible(timeout=TRAINING_MS)
    toast(page, "The round is trained: new questions are ready.")
    asked(page)
    assert page.evaluate("window.isSamePage")
    assert site.server.get("state")["n_finished"] == 2


def download_predictions(page: Page, folder: Path) -> list[dict[str, str]]:
    tab_to(page, page.get_by_role("link", name="Rounds"))
    page.keyboard.press("Enter")
    link = page.locator("a[download='predictions.csv']")
    expect(link).to_be_visible()
    tab_to(page, link)
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    download.value.save_as(folder / "predictions.csv")
    with (folder / "predictions.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_new_project_is_prepared_and_trained_from_the_page(new_site: Site) -> None:
    page, server = new_site.page, new_site.server
    expect(page.locator(".health li")).to_have_text(server.get("state")["health"])
    expect(page.locator(".facts").first).to_contain_text("50pictures")
    page.keyboard.press("Enter")
    expect(page.locator(".job-panel")).to_be_visible()
    number = page.get_by_role("spinbutton")
    expect(number).to_be_editable(timeout=TRAINING_MS)
    estimate = server.get("state")["estimate"]
    expect(page.locator(".lead")).to_contain_text(f"About {estimate['n']} classes")
    expect(page.locator("svg.chart")).to_be_visible()
    expect(number).to_have_value(str(estimate["n"]))
    number.fill("6")
    train_long(server.project)
    page.get_by_role("button", name="Start training").click()
    see_training(page, "Base training")
    page.get_by_role("link", name="Start labelling").click(timeout=TRAINING_MS)
    asked(page)
    state = server.get("state")
    assert (state["n_slots"], state["n_finished"], state["n_slots_fixed"]) == (6, 1, True)


def test_during_base_training_the_label_page_does_not_say_that_all_is_answered(new_site: Site) -> None:
    page, server = new_site.page, new_site.server
    server.http.post("/api/n-classes", json={"n": 5}).raise_for_status()
    train_long(server.project, n_epochs=2000)
    server.http.post("/api/job", json={"kind": "round"}).raise_for_status()
    page.goto(f"{server.url}/label")
    expect(page.locator(".ending")).to_contain_text("being trained for the first time")
    expect(page.get_by_role("heading", level=1)).to_have_text("No questions yet")
    expect(page.locator(".ending")).not_to_contain_text("answers")
    expect(page.locator(".job-panel")).to_be_visible()
    server.http.delete("/api/job")
    expect(page.get_by_role("link", name="To the start page")).to_be_visible()


def test_without_new_answers_the_page_offers_new_questions_and_brings_them(site: Site) -> None:
    page, server = site.page, site.server
    for _ in range(6):
        answer(page, "s")
    before = rows_asked_about(server.project)
    ending = page.locator(".ending")
    expect(ending).to_contain_text("choose new questions without training again")
    ending.get_by_role("button", name="Choose new questions").click()
    expect(page.locator(".card")).to_be_visible(timeout=TRAINING_MS)
    assert asked(page) not in before
    assert server.get("state")["n_finished"] == 1


def test_a_question_in_ones_own_other_window_is_not_said_to_be_in_other_hands(site: Site) -> None:
    page, other = site.page, site.page.context.new_page()
    other.goto(f"{site.server.url}/label")
    asked(other)
    for _ in range(5):
        answer(page, "s")
    expect(page.get_by_role("heading", level=1)).to_have_text("No question is free")
    expect(page.locator(".ending")).to_contain_text("1 question is open in another window or with somebody else.")


def test_the_strip_counts_one_thing_in_the_singular(site: Site) -> None:
    page = site.page
    for _ in range(4):
        answer(page, "s")
    answer(page, lambda page: new_class(page, "a find", n_ticks=0, except_rows=set()))
    expect(page.locator(".strip")).to_contain_text("1 answer so far")
    expect(page.locator(".strip")).to_contain_text("1 class found by you")
    expect(page.locator(".strip")).to_contain_text("1 question left")


def test_the_page_speaks_to_a_practitioner(site: Site) -> None:
    """No word of the method's papers stands on a page."""
    page = site.page
    asked(page)
    for path in ("label", "classes", "grid", "map", "rounds", "start"):
        page.goto(f"{site.server.url}/{path}")
        page.wait_for_load_state("networkidle")
        words = set(re.findall(r"[a-z]+", page.locator("body").inner_text().lower()))
        assert not words & RESEARCHERS_WORDS, path


RESEARCHERS_WORDS = {"old", "novel", "slot", "slots", "margin", "loss", "seed", "seeds", "strategy", "entropy"}
