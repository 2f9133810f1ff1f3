"""Growing, ticking, looking closely and finding files in a real browser, by keyboard and by touch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Locator, Page, expect

from agcd.words import count
from support.browsers import PHONE, Site, asked, tab_to, toast

ROWS = "all => all.map(one => Number(one.dataset.row))"


def rows_of(pictures: Locator) -> list[int]:
    rows: list[int] = pictures.evaluate_all(ROWS)
    return rows


def go(page: Page, site: Site, path: str) -> Page:
    page.goto(f"{site.server.url}/{path}")
    return page


def card(page: Page, name: str) -> Locator:
    return page.locator("[data-key]", has=page.get_by_role("heading", name=name, exact=True))


def focus_card(page: Page, name: str) -> None:
    """Arrow keys until the card is the marked one."""
    expect(card(page, name)).to_be_visible()
    for _ in range(20):
        if card(page, name).evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press("ArrowRight")
    raise AssertionError(f"the arrow keys do not reach {name}")


# ------------------------------------------------------------------------------------------------------- growing


def test_a_class_grows_up_to_a_cut_with_the_keys(site: Site) -> None:
    page, server = go(site.page, site, "classes"), site.server
    before = server.labels()
    focus_card(page, "blue-triangle")
    page.keyboard.press("w")
    dialog = page.get_by_role("dialog", name="Grow “blue-triangle”")
    expect(dialog).to_contain_text("Page 1 of")
    pictures = dialog.locator(".grow-tile > .thumb")
    first_page = rows_of(pictures)
    tab_to(page, pictures.first)
    page.keyboard.press("x")
    expect(dialog).to_contain_text("1 picture crossed out")
    page.keyboard.press("ArrowRight")
    expect(dialog).to_contain_text("Page 2 of")
    second_page = rows_of(pictures)
    page.keyboard.press("ArrowLeft")
    expect(dialog).to_contain_text("Page 1 of")
    # The page proposes to cut before the first picture that is called otherwise.
    called = {thumb["row"]: thumb["name"] for thumb in server.pictures()}
    proposed = next(place for place, row in enumerate(first_page) if called[row] != "blue-triangle")
    expect(dialog.locator(".grow-summary")).to_contain_text(f"Proposed cut after picture {proposed}:")
    for key in (",", ",", "."):
        page.keyboard.press(key)
    expect(dialog.locator(".is-beyond")).to_have_count(len(first_page) - proposed + 1)
    expect(dialog.locator(".grow-summary")).to_contain_text(f"Cut after picture {proposed - 1}.")
    page.keyboard.press("Enter")
    toast(page, f"{proposed - 2} pictures accepted as “blue-triangle”")
    accepted = server.pictures(show="accepted")
    assert {thumb["row"] for thumb in accepted} == set(first_page[1 : proposed - 1])
    assert not {thumb["row"] for thumb in accepted} & set(second_page)
    assert {(thumb["name"], thumb["by"]) for thumb in accepted} == {("blue-triangle", "page")}
    assert server.labels() == before  # kept apart from what people said
    page.keyboard.press("z")
    toast(page, "Undone")
    assert server.pictures(show="accepted") == []


def test_a_class_of_one_answer_grows_under_the_thumb(site: Site) -> None:
    server = site.server
    server.do(
        "answers", answers=[{"row": server.pictures(show="unlabelled")[0]["row"], "kind": "label", "name": "kite"}]
    )
    page = go(site.visitor(**PHONE), site, "classes")
    card(page, "kite").get_by_role("button", name="Grow").tap()
    dialog = page.get_by_role("dialog", name="Grow “kite”")
    pictures = dialog.locator(".grow-tile > .thumb")
    expect(pictures).to_have_count(12)
    rows = rows_of(pictures)
    pictures.nth(3).tap()
    dialog.get_by_role("button", name=f"Cross out picture {rows[1]}").tap()
    dialog.get_by_role("button", name="Accept 3").tap()
    toast(page, "3 pictures accepted as “kite”")
    assert {thumb["row"] for thumb in server.pictures(show="accepted")} == {rows[0], rows[2], rows[3]}


def test_where_nothing_can_grow_no_dialog_opens(site: Site) -> None:
    page = go(site.page, site, "classes")
    page.route("**/api/v1/grow*", lambda route: route.fulfill(status=409, json={"error": "Not now."}))
    site.allow("409")
    focus_card(page, "blue-triangle")
    page.keyboard.press("w")
    toast(page, "Not now.")
    expect(page.get_by_role("dialog")).to_have_count(0)


# -------------------------------------------------------------------------------------------------------- ticking


def name_group(page: Page, press: Callable[[Locator], Any]) -> Locator:
    press(page.locator(".class-card.is-group").first.get_by_role("button", name="Name"))
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("kite")
    return dialog


def test_all_pictures_are_ticked_by_one_key(site: Site) -> None:
    page, server = go(site.page, site, "classes"), site.server
    before = len(server.labels())
    dialog = name_group(page, lambda button: button.click())
    ticks = dialog.locator(".tick")
    n = ticks.count()
    if dialog.locator(".tick[aria-pressed=true]").count() == n:
        ticks.last.click()
    tab_to(page, ticks.first)
    page.keyboard.press("a")
    expect(dialog.locator(".tick[aria-pressed=true]")).to_have_count(n)
    page.keyboard.press("a")
    expect(dialog.locator(".tick[aria-pressed=true]")).to_have_count(0)
    page.keyboard.press("a")
    dialog.get_by_role("button", name="Name it").click()
    toast(page, "labelled “kite”")
    assert len(server.labels()) == before + n


def test_the_tick_screen_works_with_a_thumb(site: Site) -> None:
    page = go(site.visitor(**PHONE), site, "classes")
    dialog = name_group(page, lambda button: button.tap())
    ticks, send = dialog.locator(".tick"), dialog.get_by_role("button", name="Name it")
    first = ticks.first.bounding_box()
    assert first is not None
    assert first["width"] > 90  # three in a row
    dialog.get_by_role("button", name="Tick all").tap()
    ticks.last.scroll_into_view_if_needed()
    last, below = ticks.last.bounding_box(), send.bounding_box()
    assert last is not None
    assert below is not None
    assert last["y"] + last["height"] <= below["y"]  # the button covers none
    ticks.last.tap()
    expect(dialog).to_contain_text(f"{count(ticks.count() - 1, 'picture')} ticked")


def test_all_neighbours_of_a_new_class_are_ticked_by_one_key(site: Site) -> None:
    page, server = site.page, site.server
    asked(page)
    before = len(server.labels())
    page.keyboard.press("n")
    page.keyboard.type("kite")
    with page.expect_response("**/api/v1/answers"):
        page.keyboard.press("Enter")
    asked(page)
    page.keyboard.press("m")
    ticks = page.locator(".also-grid [data-row]")
    expect(ticks).to_have_count(12)
    page.keyboard.press("a")
    expect(page.locator(".also-grid [aria-pressed=true]")).to_have_count(12)
    with page.expect_response("**/api/v1/answers"):
        page.keyboard.press("Enter")
    assert len(server.labels()) == before + 13


# -------------------------------------------------------------------------------------------- looking and naming


def test_a_border_picture_is_named_where_it_is_seen(site: Site) -> None:
    page, server = go(site.page, site, "classes"), site.server
    focus_card(page, "blue-triangle")
    border = rows_of(card(page, "blue-triangle").locator(".class-pictures").last.locator("[data-row]"))
    page.keyboard.press("v")
    dialog = page.get_by_role("dialog", name="Picture")
    expect(dialog).to_contain_text(f"1 of {len(border)}")
    expect(dialog.locator(".look-name-button")).not_to_have_count(0)
    named = dialog.locator(".look-name-button").nth(1).get_attribute("title")
    page.keyboard.press("2")
    toast(page, f"Labelled “{named}”")
    page.keyboard.press("ArrowRight")
    expect(dialog).to_contain_text(f"2 of {len(border)}")
    page.keyboard.press("n")
    page.keyboard.type("kite")
    page.keyboard.press("Enter")
    toast(page, "Labelled “kite”")
    expect(dialog.locator(".look-name")).to_contain_text("kite")
    labels = server.labels()
    assert [labels[row] for row in border[:2]] == [named, "kite"]
    page.keyboard.press("z")
    toast(page, "Undone")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert border[1] not in server.labels()


def test_a_picture_of_the_grid_is_named_by_touch(site: Site) -> None:
    page, server = go(site.visitor(**PHONE), site, "grid?show=unlabelled"), site.server
    cells = page.locator(".cell")
    expect(cells).not_to_have_count(0)
    row = rows_of(cells)[2]
    cells.nth(2).tap()
    expect(page.locator(".grid-chosen")).to_have_text("1 marked")
    page.get_by_role("button", name="Look").tap()
    likely = page.get_by_role("dialog", name="Picture").locator(".look-name-button").first
    named = likely.get_attribute("title")
    likely.tap()
    toast(page, f"Labelled “{named}”")
    assert server.labels()[row] == named


# ---------------------------------------------------------------------------------------------------- file names


def test_a_picture_is_found_by_its_file_and_its_path_copied(site: Site) -> None:
    page = site.visitor(permissions=["clipboard-read", "clipboard-write"])
    wanted = site.server.pictures()[7]
    go(page, site, "grid")
    page.keyboard.press("/")
    page.keyboard.type(wanted["path"].rpartition("/")[2])
    found = page.locator(f".cell[data-row='{wanted['row']}']")
    expect(page.locator(".cell")).to_have_count(len(site.server.pictures(text=wanted["path"].rpartition("/")[2])))
    expect(found).to_have_attribute("title", f"{wanted['name']}\n{wanted['path']}")
    page.keyboard.press("Tab")
    found.hover()
    page.locator(".picture-grid").focus()
    page.keyboard.press("c")
    toast(page, f"Copied: {wanted['path']}")
    assert page.evaluate("navigator.clipboard.readText()") == wanted["path"]


def test_the_grid_is_narrowed_by_folder_and_sureness_and_shown_whole_again(site: Site) -> None:
    page, server = go(site.page, site, "grid"), site.server
    folder = server.get("grid/choices")["folders"][0]["value"]
    page.get_by_label("Folder").select_option(folder)
    expect(page.get_by_role("heading", level=1)).to_have_text(f"all pictures in {folder}")
    expect(page.locator(".cell")).to_have_count(server.get("grid", folder=folder)["n"])
    page.get_by_label("The name is").select_option("unsure")
    expect(page.locator(".cell")).to_have_count(server.get("grid", folder=folder, sure="unsure")["n"])
    page.reload()
    expect(page.get_by_label("Folder")).to_have_value(folder)
    page.get_by_role("button", name="Show all").click()
    expect(page.locator(".cell")).to_have_count(50)


# ------------------------------------------------------------------------------------------------- many classes


def test_the_board_changes_to_lines_and_the_tab_remembers(site: Site) -> None:
    page = go(site.page, site, "classes")
    expect(page.locator(".class-card")).not_to_have_count(0)
    page.keyboard.press("t")
    expect(page.locator(".class-line")).to_have_count(site.server.get("board")["n_cards"])
    page.reload()
    expect(page.locator(".class-card")).to_have_count(0)
    expect(page.locator(".class-line").first).to_contain_text("picture")
    focus_card(page, "blue-triangle")
    page.keyboard.press("e")
    expect(page.get_by_role("dialog", name="Rename “blue-triangle”")).to_be_visible()


def test_classes_that_look_alike_are_merged_or_dismissed(site: Site) -> None:
    server = site.server
    rows = [thumb["row"] for thumb in server.pictures(show="unlabelled") if "blue-triangle" in thumb["path"]]
    server.do("answers", answers=[{"row": row, "kind": "label", "name": "blue-triangle"} for row in rows[1::2]])
    rows = rows[::2]
    server.do("answers", answers=[{"row": row, "kind": "label", "name": "sail"} for row in rows])
    page = go(site.page, site, "classes")
    pair = page.locator(".alike-pair", has_text="sail").filter(has_text="blue-triangle")
    expect(pair).to_have_count(1)
    pair.get_by_role("button", name="Merge…").click()
    dialog = page.get_by_role("dialog", name="Merge two classes?")
    expect(dialog).to_contain_text("will count as")
    dialog.get_by_role("button", name="Cancel").click()
    pair.get_by_role("button", name="No, they differ").click()
    expect(pair).to_have_count(0)
    page.reload()
    expect(page.locator("[data-key]")).not_to_have_count(0)
    expect(pair).to_have_count(0)


def test_close_to_the_map_points_become_pictures(site: Site) -> None:
    page = go(site.page, site, "map")
    expect(page.locator(".map-legend li")).not_to_have_count(0)
    with page.expect_request("**/image/*size=96*"):
        for _ in range(4):
            page.get_by_role("button", name="Closer").click()
    names = page.locator(".legend-name").evaluate_all("all => all.map(one => [one.textContent, one.title])")
    assert names
    assert all(text == title for text, title in names)  # a name that is cut off can still be read
