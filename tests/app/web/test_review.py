"""The review on a real project, done by a script: what is shown, stored, taken back, and when it ends."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agcd.app.labels import How
from agcd.app.project import Project
from agcd.app.snapshot import Snapshot
from agcd.app.store.events import new_uid
from agcd.app.web.review import Unseen, takes_labels
from agcd.app.web.routes import review as routes
from support.servers import Client, serving, trained_project
from support.snapshots import snapshots


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with serving(trained_project(tmp_path)) as opened:
        yield opened


def snapshot_of(client: Client) -> Snapshot:
    with Project.open(client.project) as project:
        return project.snapshot()


def hows(client: Client, rows: list[int]) -> set[How]:
    return {How(how) for how in snapshot_of(client).labels.how(np.array(rows)).tolist()}


def names(client: Client, rows: list[int]) -> list[str]:
    view = snapshot_of(client).labels
    infos = [view.class_of_row(row) for row in rows]
    return [info.name if info else "" for info in infos]


def shown_as(pictures: list[Any]) -> list[dict[str, Any]]:
    return [{"row": one["row"], "class_id": one["class_id"]} for one in pictures]


# ------------------------------------------------------------------------------------------------ what is shown


def test_the_least_certain_pictures_come_first_with_their_names_and_others(client: Client) -> None:
    page = client.get("/api/v1/review", n=8)
    chances = [one["p_right"] for one in page["pictures"]]
    assert chances == sorted(chances)
    everything = client.get("/api/v1/review", n=100)["pictures"]
    assert [one["row"] for one in page["pictures"]] == [one["row"] for one in everything][:8]
    for one in page["pictures"]:
        others = [other["class_id"] for other in one["others"]]
        assert one["class_id"] not in others
        assert len(set(others)) == len(others) == 2  # three classes are known
        assert one["by"] == "answers"
        assert one["path"].startswith("unlabelled/")


def test_expected_wrong_names_are_the_sum_over_what_is_left(client: Client) -> None:
    page = client.get("/api/v1/review", n=100)
    wrong = sum(1 - one["p_right"] for one in page["pictures"])
    assert page["left"]["expected_wrong"] == pytest.approx(wrong, abs=0.06)
    assert page["page_wrong"] == page["left"]["expected_wrong"]
    assert len(page["pictures"]) == page["left"]["n_left"]
    first = client.get("/api/v1/review", n=3)
    assert first["page_wrong"] == pytest.approx(sum(1 - one["p_right"] for one in first["pictures"]), abs=0.06)


def test_pictures_without_a_name_are_counted_apart(client: Client) -> None:
    left = client.get("/api/v1/review")["left"]
    assert left["n_total"] == 41  # 50 pictures, 9 of them labelled from the start
    assert left["n_checked"] == 0
    assert left["n_unnamed"] > 0
    assert left["n_left"] + left["n_unnamed"] == 41


def test_a_page_shows_one_class_and_begins_with_the_worst(client: Client) -> None:
    page = client.get("/api/v1/review", mode="class")
    wrong = [one["expected_wrong"] for one in page["classes"]]
    assert wrong == sorted(wrong, reverse=True)
    assert page["shown"] == page["classes"][0]
    assert {one["class_id"] for one in page["pictures"]} == {page["shown"]["class_id"]}
    last = page["classes"][-1]
    other = client.get("/api/v1/review", mode="class", key=last["key"])
    assert other["shown"] == last
    assert len(other["pictures"]) == min(24, last["n_left"])
    assert sum(one["n_left"] for one in page["classes"]) == page["left"]["n_left"]


def test_pictures_that_are_on_their_way_are_not_shown_again(client: Client) -> None:
    rows = [one["row"] for one in client.get("/api/v1/review", n=10)["pictures"]]
    hidden: dict[str, Any] = {"except": rows[:5]}
    page = client.get("/api/v1/review", n=5, **hidden)
    assert [one["row"] for one in page["pictures"]] == rows[5:]


def test_what_makes_no_sense_is_refused_in_one_sentence(client: Client) -> None:
    hidden: dict[str, Any] = {"except": [999]}
    assert "no row 999" in client.get("/api/v1/review", 404, **hidden)["error"]
    client.get("/api/v1/review", 422, mode="both")
    client.get("/api/v1/review", 422, n=101)
    client.get("/api/v1/review", 422, key="c-1")
    picture = client.get("/api/v1/review")["pictures"][0]
    right = shown_as([picture])
    twice = client.do("/api/v1/review/confirm", 422, mode="single", right=right, junk=[picture["row"]])
    assert "twice" in twice["error"]
    assert "Nothing is said" in client.do("/api/v1/review/confirm", 409, mode="single")["error"]
    assert "no row 999" in client.do("/api/v1/review/confirm", 404, mode="single", junk=[999])["error"]
    unknown = [{"row": picture["row"], "class_id": "0" * 32}]
    assert "no class with id" in client.do("/api/v1/review/confirm", 409, mode="single", right=unknown)["error"]
    nameless = [{"row": picture["row"]}]
    assert "either by" in client.do("/api/v1/review/confirm", 409, mode="single", changes=nameless)["error"]
    passing = [{"row": picture["row"], "name": "Junk"}]
    assert "answer of its own" in client.do("/api/v1/review/confirm", 409, mode="single", changes=passing)["error"]


# ---------------------------------------------------------------------------------------------- what is stored


def test_a_picture_confirmed_alone_is_a_label(client: Client) -> None:
    picture = client.get("/api/v1/review")["pictures"][0]
    told = client.do("/api/v1/review/confirm", mode="single", right=shown_as([picture]))
    assert told["stored"] == {"label": 1}
    assert hows(client, [picture["row"]]) == {How.ANSWERED}
    assert names(client, [picture["row"]]) == [picture["name"]]
    assert told["left"]["n_checked"] == 1


def test_a_page_is_accepted_and_its_wrong_ones_are_labels_and_one_undo_takes_all_back(client: Client) -> None:
    page = client.get("/api/v1/review", mode="class")
    before = page["left"]
    pictures, other = page["pictures"], page["pictures"][0]["others"][0]
    changes = [
        {"row": pictures[0]["row"], "class_id": other["class_id"]},
        {"row": pictures[1]["row"], "name": "a new kind"},
    ]
    told = client.do(
        "/api/v1/review/confirm",
        mode="class",
        right=shown_as(pictures[3:]),
        changes=changes,
        junk=[pictures[2]["row"]],
    )
    n = len(pictures)
    assert told["stored"] == {"accept": n - 3, "label": 2, "junk": 1}
    assert [made["name"] for made in told["new_classes"]] == ["a new kind"]
    rows = [one["row"] for one in pictures]
    assert hows(client, rows[:2]) == {How.ANSWERED}
    assert names(client, rows[:2]) == [other["name"], "a new kind"]
    assert hows(client, rows[2:3]) == {How.JUNK}
    assert hows(client, rows[3:]) == {How.ACCEPTED}
    assert set(names(client, rows[3:])) == {page["shown"]["name"]}
    assert told["left"]["n_checked"] == n
    client.do("/api/v1/undo")
    assert hows(client, rows) == {How.NOTHING}
    assert client.get("/api/v1/review")["left"] == before


def test_what_was_shown_counts_though_the_name_changed_meanwhile(client: Client) -> None:
    page = client.get("/api/v1/review", mode="class")
    rows = [one["row"] for one in page["pictures"]]
    seen = snapshot_of(client)
    assert seen.round is not None
    # Labels enough to call the group of these pictures something else.
    for row in rows[4:]:
        client.say(row, "renamed by labels", who="bob")
    now = {one["row"]: one["name"] for one in client.get("/api/v1/review", n=100)["pictures"]}
    shown = page["pictures"][:4]
    client.do("/api/v1/review/confirm", mode="class", right=shown_as(shown))
    assert names(client, rows[:4]) == [page["shown"]["name"]] * 4
    assert any(now.get(row) != page["shown"]["name"] for row in rows[:4])


def test_a_page_that_is_sent_twice_counts_once(client: Client) -> None:
    page = client.get("/api/v1/review", mode="class")
    body = {"uid": new_uid(), "who": "ann", "mode": "class", "right": shown_as(page["pictures"])}
    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(lambda _: client.post("/api/v1/review/confirm", body), range(6)))
    assert sorted(one["is_repeat"] for one in told) == [False, *[True] * 5]
    last = snapshot_of(client).labels.last_event
    client.do("/api/v1/undo")
    assert client.post("/api/v1/review/confirm", body)["is_repeat"]  # nor does it come back after it was undone
    assert snapshot_of(client).labels.last_event == last + 1


# --------------------------------------------------------------------------------------------------- the end


def test_accepting_the_rest_ends_the_review_and_is_one_step_to_undo(client: Client) -> None:
    left = client.get("/api/v1/review")["left"]
    called = {one["row"]: one["name"] for one in client.get("/api/v1/review", n=100)["pictures"]}
    body = {"uid": new_uid(), "who": "ann", "n": left["n_left"]}
    told = client.post("/api/v1/review/accept", body)
    assert (told["n_accepted"], told["expected_wrong"]) == (left["n_left"], left["expected_wrong"])
    assert names(client, list(called)) == list(called.values())
    assert hows(client, list(called)) == {How.ACCEPTED}
    end = client.get("/api/v1/review", mode="class")
    assert (end["pictures"], end["classes"], end["shown"]) == ([], [], None)
    assert end["left"]["n_left"] == end["left"]["expected_wrong"] == 0
    assert end["left"]["n_checked"] == left["n_checked"]  # nobody has looked at them
    assert (end["left"]["n_unseen"], end["left"]["unseen_wrong"]) == (left["n_left"], left["expected_wrong"])
    assert end["left"]["n_unnamed"] == left["n_unnamed"]  # they stay: nobody knows what they are
    again = client.post("/api/v1/review/accept", body)
    assert again["is_repeat"]
    assert again["n_accepted"] == 0
    assert "nothing left" in client.do("/api/v1/review/accept", 409, n=5)["error"]
    client.do("/api/v1/undo")
    assert client.get("/api/v1/review")["left"] == left


def test_of_very_many_the_surest_are_accepted_first(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "MAX_ACCEPTED", 10)
    everything = client.get("/api/v1/review", n=100)
    told = client.do("/api/v1/review/accept", n=len(everything["pictures"]))
    assert told["n_accepted"] == 10
    assert told["left"]["n_left"] == len(everything["pictures"]) - 10
    accepted = [one["p_right"] for one in everything["pictures"][-10:]]
    assert told["expected_wrong"] == pytest.approx(10 - sum(accepted), abs=0.06)


def test_more_than_was_agreed_to_is_not_accepted(client: Client) -> None:
    n = client.get("/api/v1/review")["left"]["n_left"]
    told = client.do("/api/v1/review/accept", 409, n=n - 1)
    assert f"{n} pictures are left by now" in told["error"]
    assert client.get("/api/v1/review")["left"]["n_checked"] == 0


def test_a_script_that_knows_the_truth_reviews_to_the_end(client: Client) -> None:
    while (page := client.get("/api/v1/review", mode="class"))["pictures"]:
        wrong = [one for one in page["pictures"] if one["name"] != client.truth(one["row"])]
        client.do(
            "/api/v1/review/confirm",
            mode="class",
            right=shown_as([one for one in page["pictures"] if one not in wrong]),
            changes=[{"row": one["row"], "name": client.truth(one["row"])} for one in wrong],
        )
    left = client.get("/api/v1/review")["left"]
    assert left["n_left"] == 0
    for one in client.get("/api/v1/grid", show="unlabelled")["thumbs"]:
        client.say(one["row"], client.truth(one["row"]))
    left = client.get("/api/v1/review")["left"]
    assert (left["n_checked"], left["n_unnamed"]) == (left["n_total"], 0)
    rows = np.flatnonzero(~snapshot_of(client).labels.is_test).tolist()
    assert names(client, rows) == [client.truth(row) for row in rows]


@pytest.mark.parametrize("seed", range(4))
def test_what_is_left_is_what_a_plain_loop_finds(seed: int) -> None:
    for snapshot in snapshots(seed)[::5]:
        unseen = Unseen.of(snapshot)
        rows, n_unnamed = [], 0
        for row in range(len(snapshot.labels.is_test)):
            if snapshot.labels.settled[row]:
                continue
            group = int(snapshot.says(np.array([row])).group[0])
            named = group >= 0 and bool(takes_labels(snapshot)[group])
            if named:
                rows.append(row)
            else:
                n_unnamed += 1
        assert unseen.rows.tolist() == rows
        assert unseen.n_unnamed == n_unnamed
        chances = snapshot.p_right(np.array(rows, np.int64))
        order = np.argsort(chances, kind="stable")
        assert unseen.least_certain(7).p_right.tolist() == chances[order][:7].tolist()
        assert sorted(unseen.surest(5).p_right.tolist()) == sorted(chances.tolist())[-5:]
        assert unseen.without(np.array(rows[:3], np.int64)).rows.tolist() == rows[3:]
