"""Growing a class, finding pictures, and what looks alike, through the API and as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agcd.app.store.events import new_uid
from agcd.app.web.alike import shares_at_home, strongest_pairs
from agcd.app.web.file_names import FileNames
from agcd.rng import generator
from support.servers import Client, serving, trained_project


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with serving(trained_project(tmp_path)) as opened:
        yield opened


# ----------------------------------------------------------------------------------------------------- growing


def key_of(told: Any) -> str:
    return f"c-{told['new_classes'][0]['class_id']}"


def test_a_class_that_is_one_answer_old_grows(client: Client) -> None:
    row = client.question()["row"]
    key, order = key_of(client.say(row, "kite")), new_uid()
    grow = client.get("/api/v1/grow", key=key, order=order)
    rows = [thumb["row"] for thumb in grow["thumbs"]]
    assert row not in rows
    assert grow["page_size"] == len(rows) == 12
    assert grow["n"] == 40  # of 41 without an answer
    accepted = client.do("/api/v1/accept", key=key, order=order, last_row=rows[4])
    assert accepted["n_accepted"] == 5
    assert sorted(thumb["row"] for thumb in client.get("/api/v1/grid", show="accepted")["thumbs"]) == sorted(rows[:5])


def test_pages_keep_their_length_when_the_class_has_grown_meanwhile(client: Client) -> None:
    key, order = key_of(client.say(client.question()["row"], "kite")), new_uid()
    first = client.get("/api/v1/grow", key=key, order=order)
    for thumb in client.get("/api/v1/grid", show="unlabelled", order="confident")["thumbs"][:15]:
        client.say(thumb["row"], "kite")
    second = client.get("/api/v1/grow", key=key, order=order, page=1, per_page=first["page_size"])
    assert not {thumb["row"] for thumb in first["thumbs"]} & {thumb["row"] for thumb in second["thumbs"]}
    assert second["page_size"] == first["page_size"]
    assert client.get("/api/v1/grow", key=key, order=new_uid())["page_size"] > first["page_size"]


def test_a_class_of_accepted_pictures_alone_grows_on(client: Client) -> None:
    card, order = next(card for card in client.get("/api/v1/board")["cards"] if not card["is_named"]), new_uid()
    rows = [thumb["row"] for thumb in client.get("/api/v1/grow", key=card["key"], order=order)["thumbs"]]
    client.do("/api/v1/accept", key=card["key"], order=order, last_row=rows[1], name="kite")
    kite = next(name for name in client.get("/api/v1/names") if name["name"] == "kite")
    more = client.get("/api/v1/grow", key=f"c-{kite['class_id']}", order=new_uid())
    assert more["thumbs"]
    assert not {thumb["row"] for thumb in more["thumbs"]} & set(rows[:2])


def test_a_cut_outside_the_list_is_refused_in_a_sentence(client: Client) -> None:
    card, order = client.get("/api/v1/board")["cards"][0], new_uid()
    client.get("/api/v1/grow", key=card["key"], order=order)
    labelled = client.get("/api/v1/grid", show="labelled")["thumbs"][0]["row"]
    refused = client.do("/api/v1/accept", 409, key=card["key"], order=order, last_row=labelled, name="x")
    assert refused["error"] == f"Row {labelled} is not in that list of similar pictures."


# ----------------------------------------------------------------------------------------- finding pictures


def rows(client: Client, **wanted: Any) -> set[int]:
    return {thumb["row"] for thumb in client.get("/api/v1/grid", **wanted)["thumbs"]}


def test_pictures_are_found_by_the_name_of_their_file(client: Client) -> None:
    every = client.get("/api/v1/grid")["thumbs"]
    path = every[7]["path"]
    assert rows(client, text=path.upper()) == {every[7]["row"]}
    folder = path.rpartition("/")[0]
    found = rows(client, folder=folder)
    assert found == {thumb["row"] for thumb in every if thumb["path"].startswith(f"{folder}/")}
    assert folder in [choice["value"] for choice in client.get("/api/v1/grid/choices")["folders"]]
    assert client.get("/api/v1/grid", folder=folder)["title"] == f"all pictures in {folder}"


def test_pictures_are_found_by_who_answered_and_how_sure_the_name_is(client: Client) -> None:
    one, two = (thumb["row"] for thumb in client.get("/api/v1/grid", show="unlabelled")["thumbs"][:2])
    client.say(one, "kite", who="ann")
    client.say(two, "kite", who="bob")
    choices = client.get("/api/v1/grid/choices")
    assert [choice["value"] for choice in choices["people"]] == ["ann", "bob"]
    assert (rows(client, who="ann"), rows(client, who="bob")) == ({one}, {two})
    assert rows(client, round=choices["rounds"][0]["value"]) == {one, two}
    assert rows(client, who="ann", round=7) == set()
    kite = next(choice["value"] for choice in choices["classes"] if choice["word"] == "kite")
    assert {one, two} <= rows(client, key=kite)
    sure, unsure = rows(client, sure="sure"), rows(client, sure="unsure")
    assert not sure & unsure
    assert sure | unsure == rows(client)
    assert {one, two} <= sure


def test_a_file_is_found_below_its_folder_and_not_below_one_that_begins_alike() -> None:
    files = FileNames(["a/x.png", "a/b/y.png", "ab/z.png", "w.png"])
    assert files.folders == ["", "a", "a/b", "ab"]
    assert files.below("a").tolist() == [True, True, False, False]
    assert files.containing("Y.P").tolist() == [False, True, False, False]


def test_one_picture_comes_with_its_file_and_the_names_it_may_have(client: Client) -> None:
    thumb = client.get("/api/v1/grid", show="unlabelled")["thumbs"][0]
    client.say(thumb["row"], "kite")
    look = client.get(f"/api/v1/rows/{thumb['row']}")
    assert look["thumb"]["path"] == thumb["path"]
    assert look["likely"][0]["name"] == "kite"
    names = [name["name"] for name in look["likely"]]
    assert 1 < len(names) == len(set(names)) <= 5
    client.do("/api/v1/classes/retire", class_id=look["likely"][1]["class_id"])
    assert names[1] not in [name["name"] for name in client.get(f"/api/v1/rows/{thumb['row']}")["likely"]]
    assert client.get("/api/v1/rows/5000", 404)["error"]


# ----------------------------------------------------------------------------------------------- what looks alike


def test_a_class_named_twice_is_proposed_to_be_merged(client: Client) -> None:
    thumbs = client.get("/api/v1/grid", show="unlabelled")["thumbs"]
    rows = [thumb["row"] for thumb in thumbs if "blue-triangle" in thumb["path"]]
    for i, row in enumerate(rows):
        client.say(row, "sail" if i % 2 else "blue-triangle")
    pairs = client.get("/api/v1/classes/alike")
    assert {"sail", "blue-triangle"} in [{pair["one"]["name"], pair["into"]["name"]} for pair in pairs]
    for pair in pairs:
        assert pair["into"]["is_named"]
        assert pair["one"]["key"] != pair["into"]["key"]
        client.get("/api/v1/classes/merge-preview", one=pair["one"]["key"], into=pair["into"]["key"])


def clusters(centres: Any, n: int, seed: int = 0) -> tuple[Any, Any]:
    rng = generator(seed, "alike")
    x = np.repeat(np.asarray(centres, np.float32), n, 0) + rng.normal(0, 0.1, (len(centres) * n, 3)).astype(np.float32)
    return x / np.linalg.norm(x, axis=1, keepdims=True), np.repeat(np.arange(len(centres)), n)


@pytest.mark.parametrize("seed", range(5))
def test_only_groups_at_the_same_place_are_alike(seed: int) -> None:
    x, number = clusters([[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]], 12, seed)
    share = shares_at_home(x, number)
    assert not share.diagonal().any()
    assert {tuple(sorted(pair)) for pair in strongest_pairs(share, np.ones(4, np.bool_))} == {(0, 2)}


def test_one_picture_may_look_like_a_class_but_says_nothing_of_its_own() -> None:
    x, number = clusters([[1, 0, 0], [0, 1, 0]], 12)
    share = shares_at_home(np.concatenate([x, [[1, 0, 0]]]), np.append(number, 2))
    assert strongest_pairs(share, np.ones(3, np.bool_)) == [(2, 0)]
    assert not share[:, 2].any()


def test_two_groups_without_a_name_are_no_pair() -> None:
    x, number = clusters([[1, 0, 0], [1, 0, 0]], 12)
    assert strongest_pairs(shares_at_home(x, number), np.zeros(2, np.bool_)) == []


# ------------------------------------------------------------------------------------------------ the compact board


def test_the_board_has_a_line_for_each_class_where_there_are_many(client: Client) -> None:
    assert client.get("/api/v1/board")["view"] == "cards"
    assert client.get("/api/v1/board", view="lines")["view"] == "lines"
    unlabelled = [thumb["row"] for thumb in client.get("/api/v1/grid", show="unlabelled")["thumbs"]]
    for place, row in enumerate(unlabelled):
        client.say(row, f"class {place}")
    board = client.get("/api/v1/board")
    assert (board["view"], len(board["cards"])) == ("lines", board["n_cards"])
    assert all(len(card["typical"]) <= 3 for card in board["cards"])
    assert len(client.get("/api/v1/board", view="cards")["cards"]) == 12
    assert client.get("/api/v1/board", text="class 7")["view"] == "lines"  # a search does not change the view
