"""The class board, the grid, the map and the rounds in a real browser."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from playwright.sync_api import Locator, Page, expect

from support.browsers import (
    Site,
    answer,
    asked,
    toast,
)


def go(site: Site, path: str) -> Page:
    site.page.goto(f"{site.server.url}/{path}")
    return site.page


# --------------------------------------------------------------------------------------------------- the board


def card(page: Page, name: str) -> Locator:
    return page.locator(".class-card", has=page.get_by_role("heading", name=name, exact=True))


def test_a_class_is_renamed_and_retired_on_the_board(site: Site) -> None:
    page, server = go(site, "classes"), site.server
    card(page, "blue-triangle").get_by_role("button", name="Rename").click()
    page.get_by_role("textbox", name="Name").fill("sail")
    page.keyboard.press("Enter")
    toast(page, "renamed to sail")
    expect(card(page, "sail")).to_be_visible()
    assert "sail" in server.labels().values()
    card(page, "sail").get_by_role("button", name="Retire").click()
    page.get_by_role("dialog").get_by_role("button", name="Retire").click()
    toast(page, "sail is retired")
    expect(card(page, "sail")).to_contain_text("retired")
    assert [each["name"] for each in server.get("names") if each["is_retired"]] == ["sail"]
    page.keyboard.press("z")
    toast(page, "Undone")
    expect(card(page, "sail").get_by_text("retired")).to_have_count(0)
    assert not any(each["is_retired"] for each in server.get("names"))


def test_a_class_is_split_in_two_and_the_split_is_undone(site: Site) -> None:
    page, server = go(site, "classes"), site.server
    before = server.labels()
    card(page, "orange-circle").get_by_role("button", name="Split").click()
    dialog = page.get_by_role("dialog", name="Split “orange-circle” in two")
    halves = dialog.get_by_label("Name")
    expect(halves.first).to_have_value("orange-circle")
    expect(dialog.get_by_role("button", name="Split")).to_be_disabled()  # the other half has no name
    halves.last.fill("other half")
    dialog.get_by_role("button", name="Split").click()
    toast(page, "orange-circle split")
    after = server.labels()
    assert before.items() <= {row: after[row].replace("other half", "orange-circle") for row in after}.items()
    assert list(after.values()).count("other half") > 0
    page.locator("#toasts .toast").get_by_role("button", name="Undo").click()
    toast(page, "Undone")
    assert server.labels() == before


# ----------------------------------------------------------------------------------------------------- the grid

ROWS = "all => all.map(one => one.dataset.row)"


def marked(page: Page) -> list[int]:
    return [int(row) for row in page.locator(".cell[aria-selected=true]").evaluate_all(ROWS)]


def test_pictures_are_marked_as_in_a_file_manager_and_labelled_together(site: Site) -> None:
    page, server = go(site, "grid?show=unlabelled"), site.server
    before, cells = server.labels(), page.locator(".cell")
    rows = [thumb["row"] for thumb in server.pictures(show="unlabelled")]
    expect(cells).to_have_count(len(rows))
    cells.nth(2).click()
    cells.nth(6).click(modifiers=["Shift"])
    cells.nth(4).click(modifiers=["ControlOrMeta"])
    chosen = [rows[place] for place in (2, 3, 5, 6)]
    assert marked(page) == chosen
    page.keyboard.press("l")
    page.keyboard.type("found together")
    page.keyboard.press("Enter")
    toast(page, "4 pictures labelled “found together”")
    assert server.labels() == before | dict.fromkeys(chosen, "found together")
    page.keyboard.press("z")
    toast(page, "Undone")
    expect(cells).to_have_count(len(rows))
    assert server.labels() == before


def test_a_rubber_band_marks_what_it_touches(site: Site) -> None:
    page = go(site, "grid?show=unlabelled")
    rows = [thumb["row"] for thumb in site.server.pictures(show="unlabelled")]
    cells = page.locator(".cell")
    expect(cells).to_have_count(len(rows))
    n_columns = len({box["x"] for box in (cells.nth(place).bounding_box() for place in range(len(rows))) if box})
    start, end = middle(cells.nth(1)), middle(cells.nth(n_columns + 2))
    drag(page, [start, end])
    assert marked(page) == [rows[place] for place in (1, 2, n_columns + 1, n_columns + 2)]
    expect(page.locator(".rubber-band")).to_have_count(0)
    page.keyboard.press("Escape")
    assert marked(page) == []


def middle(target: Locator) -> tuple[float, float]:
    box = target.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(page: Page, path: list[tuple[float, float]]) -> None:
    page.mouse.move(*path[0])
    page.mouse.down()
    for x, y in path[1:]:
        page.mouse.move(x, y, steps=4)
    page.mouse.up()


# ------------------------------------------------------------------------------------------------------ the map


def test_what_the_lasso_holds_is_what_the_grid_shows(site: Site) -> None:
    page, points = go(site, "map"), site.server.get("map")
    expect(page.locator(".map-legend li")).not_to_have_count(0)
    page.wait_for_function(IS_PAINTED)
    box = page.locator(".map-plot").bounding_box()
    assert box is not None
    x, inside = left_of_the_widest_gap(points)
    left, right = box["x"] + EDGE_PX, box["x"] + x * box["width"]
    top, bottom = box["y"] + EDGE_PX, box["y"] + box["height"] - EDGE_PX
    drag(page, [(left, top), (right, top), (right, bottom), (left, bottom)])
    expect(page.locator(".map-chosen")).to_contain_text(f"{len(inside)} chosen")
    page.get_by_role("button", name="Show in grid").click()
    page.wait_for_url("**/grid?selection=*")
    expect(page.locator(".cell")).to_have_count(len(inside))
    assert {int(row) for row in page.locator(".cell").evaluate_all(ROWS)} == inside


EDGE_PX = 12
"""Inside of the round corners, and outside of all points."""
IS_PAINTED = """() => {
  const canvas = document.querySelector(".map-plot canvas");
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  return pixels.some((value, index) => index % 4 === 3 && value > 0);
}"""


def left_of_the_widest_gap(points: dict[str, Any]) -> tuple[float, set[int]]:
    """Where to draw a line that no point is near, as a share of the width, and the rows to its left."""
    placed = sorted(zip(points["x"], points["row"], strict=True))
    low, high = placed[0][0], placed[-1][0]
    pad = (high - low) * 0.05  # what the page leaves free at each side
    gaps = [(after[0] - before[0], place) for place, (before, after) in enumerate(pairwise(placed))]
    place = max(gaps)[1]
    line = (placed[place][0] + placed[place + 1][0]) / 2
    return (line - low + pad) / (high - low + 2 * pad), {row for _, row in placed[: place + 1]}


# --------------------------------------------------------------------------------------------------- the rounds


def test_an_audit_is_drawn_and_answered_blind(site: Site) -> None:
    page, server = go(site, "rounds"), site.server
    expect(page.locator(".forecast li")).to_have_text(server.get("rounds")["forecast"]["sentences"])
    page.get_by_role("spinbutton").fill("5")
    page.get_by_role("button", name="Draw them").click()
    page.get_by_role("link", name="Answer them blind").click()
    names = [one["name"] for one in server.get("board")["cards"]]
    for _ in range(5):
        asked(page)
        # What was answered last may be shown; it is one's own word.
        shown = " ".join(page.locator("main :not(.card-said)").evaluate_all(OWN_TEXT))
        assert not any(name in shown for name in names)
        assert page.locator(".candidate, .band-thumbs img").count() == 0
        answer(page, lambda page: type_name(page, "orange-circle"))
    page.get_by_role("link", name="See the result").click()
    state, score = server.get("state"), server.get("rounds")["rounds"][0]["audit"]
    assert (state["n_audit"], state["n_audit_open"], state["n_answers"]) == (5, 0, 0)
    assert score["n"] == 5
    expect(page.locator(".audit-result")).to_contain_text(f"{score['n_right']} of 5 right")


OWN_TEXT = """all => all.map((one) => [...one.childNodes, ...one.attributes]
  .filter((node) => !(node instanceof Element)).map((node) => node.nodeValue).join(" "))"""


def type_name(page: Page, name: str) -> None:
    page.keyboard.press("Enter")
    page.keyboard.type(name)
    expect(page.locator(".option[aria-selected=true]")).to_contain_text(name)
    page.keyboard.press("Enter")
