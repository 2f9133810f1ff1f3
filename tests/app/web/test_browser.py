"""The labelling page in a real browser: from the first question to the last by keyboard alone, and the first steps."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from agcd.app.project import Project
from support.browsers import TRAINING_MS, Site, answer, asked, tab_to, toast, train_long, visited
from support.datasets import toy_images
from support.projects import SETTINGS, make_project


def test_a_whole_project_is_labelled_by_keyboard_alone(site: Site, tmp_path: Path) -> None:
    page, server = site.page, site.server
    known = server.labels()
    accepted = answer(page, "2")
    skipped, unsure = answer(page, "s"), answer(page, "u")
    first = answer(page, lambda page: new_class(page, "first find"))
    tick_more(page, "first find", 2)
    second = answer(page, lambda page: new_class(page, "second find"))
    tick_more(page, "second find", 1)
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
    undo(page, "Taken back: 1 label")
    undo(page, "Taken back: 1 label")
    assert server.labels() == known | {row: name for row, name in found.items() if name != "second find"}
    assert server.get("state")["n_novel"] == 1
    assert asked(page) == second  # what was taken back is asked again

    answer(page, lambda page: new_class(page, "second find"))
    answer_the_rest(page)
    labels = server.labels()
    learn(site)
    assert server.labels() == labels  # training leaves what people said as it is

    predictions = download_predictions(page, tmp_path)
    assert len(predictions) == server.get("state")["n_images"]
    assert all(line["class"] for line in predictions)
    assert {int(line["row"]): line["class"] for line in predictions if line["by"] == "human"} == labels
    assert {"first find", "second find"} <= {line["class"] for line in predictions}


def new_class(page: Page, name: str) -> None:
    page.keyboard.press("n")
    page.keyboard.type(name)
    page.keyboard.press("Enter")


def tick_more(page: Page, name: str, n_ticks: int) -> None:
    """Tick pictures that are like the class that was named last."""
    asked(page)
    page.keyboard.press("m")
    expect(page.get_by_role("dialog", name=f"Which of these are also “{name}”?")).to_be_visible()
    for key in "123456789"[:n_ticks]:
        page.keyboard.press(key)
    expect(page.locator(".also-grid [aria-pressed=true]")).to_have_count(n_ticks)
    with page.expect_response("**/api/v1/answers"):
        page.keyboard.press("Enter")
    expect(page.locator(".card-said")).to_contain_text("more")


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
    with page.expect_response("**/api/v1/undo"):
        page.keyboard.press("z")
    expect(page.locator(".card-said")).to_contain_text(words)


def answer_the_rest(page: Page) -> None:
    """Take the first suggestion until nothing is asked."""
    while not page.get_by_role("heading", name="Nothing is left to ask").is_visible():
        if page.locator(".card:not(.is-waiting) .candidate").count():
            answer(page, "1")
        else:
            page.wait_for_timeout(20)


def learn(site: Site) -> None:
    page = site.page
    page.evaluate("window.isSamePage = true")
    page.keyboard.press("l")
    toast(page, "The model has learned from your answers.", timeout=TRAINING_MS)
    assert page.evaluate("window.isSamePage")
    assert site.server.get("state")["n_finished"] == 2


def download_predictions(page: Page, folder: Path) -> list[dict[str, str]]:
    tab_to(page, page.get_by_role("link", name="Progress"))
    page.keyboard.press("Enter")
    link = page.locator("a[download='predictions.csv']")
    expect(link).to_be_visible()
    tab_to(page, link)
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    download.value.save_as(folder / "predictions.csv")
    with (folder / "predictions.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_first_question_comes_by_itself_before_any_training(browser: Browser, tmp_path: Path) -> None:
    make_project(tmp_path, n_classes=None).close()
    train_long(tmp_path / "project", n_epochs=2000)
    with visited(browser, tmp_path / "project", by_hand=False) as site:
        page, server = site.page, site.server
        asked(page, timeout=TRAINING_MS)
        assert server.get("state")["n_finished"] == 0
        assert server.get("job")["state"] == "running"  # the first training goes on behind it
        answer(page, lambda page: new_class(page, "a find"))
        assert server.get("state")["n_novel"] == 1  # found by the person, though nothing was trained yet
        server.http.delete("/api/v1/job")


def test_a_folder_without_any_label_is_a_fine_start(browser: Browser, tmp_path: Path) -> None:
    toy_images(tmp_path / "all", n_classes=3, n_per_class=8)
    Project.create(tmp_path / "project", flat(tmp_path / "all", tmp_path / "images"), settings=SETTINGS).close()
    with visited(browser, tmp_path / "project", by_hand=False) as site:
        page, server = site.page, site.server
        asked(page, timeout=TRAINING_MS)
        for name in ("one", "two"):
            answer(page, lambda page, name=name: new_class(page, name))  # type: ignore[misc]
        assert sorted(set(server.labels().values())) == ["one", "two"]
        expect(page.locator("#strip-job")).to_be_hidden(timeout=TRAINING_MS)
        assert server.get("job")["state"] == "done", server.get("job")["error"]


def flat(source: Path, folder: Path) -> Path:
    folder.mkdir()
    for number, path in enumerate(sorted(source.rglob("*.png"))):
        path.rename(folder / f"{number:03d}.png")
    return folder


def test_a_new_project_is_begun_from_the_page_where_nothing_starts_by_itself(new_site: Site) -> None:
    page, server = new_site.page, new_site.server
    expect(page.locator(".health li")).to_have_text(server.get("state")["health"])
    expect(page.locator(".facts").first).to_contain_text("50pictures")
    page.goto(f"{server.url}/label")
    expect(page.get_by_role("heading", level=1)).to_have_text("The first question comes in a moment")
    page.goto(f"{server.url}/start")
    expect(page.get_by_role("button", name="Begin")).to_be_visible()
    page.keyboard.press("Enter")
    asked(page, timeout=TRAINING_MS)
    expect(page.locator(".card-file")).not_to_be_empty()


def test_questions_never_run_out_while_pictures_are_left(site: Site) -> None:
    page = site.page
    rows = [answer(page, "s") for _ in range(12)]
    assert len(set(rows)) == 12
    asked(page)


def test_the_strip_counts_one_thing_in_the_singular_and_claims_nothing_unchecked(site: Site) -> None:
    page = site.page
    answer(page, lambda page: new_class(page, "a find"))
    expect(page.locator(".strip")).to_contain_text("1 answer so far")
    expect(page.locator(".strip")).to_contain_text("1 class found by you")
    expect(page.locator("#strip-figure")).to_have_text("Not checked yet")


def test_the_page_speaks_to_a_practitioner(site: Site) -> None:
    """No word of the method's papers stands on a page."""
    page = site.page
    asked(page)
    for path in ("label", "review", "classes", "grid", "map", "rounds", "start"):
        page.goto(f"{site.server.url}/{path}")
        page.wait_for_load_state("networkidle")
        words = set(re.findall(r"[a-z]+", page.locator("body").inner_text().lower()))
        assert not words & RESEARCHERS_WORDS, path


RESEARCHERS_WORDS = {"old", "novel", "slot", "slots", "margin", "loss", "seed", "seeds", "strategy", "entropy"}
