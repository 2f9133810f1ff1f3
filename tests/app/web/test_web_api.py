"""The REST API on a real project: what the page does, done by a script."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agcd.app.model import train
from agcd.app.project import Project
from agcd.app.store.events import new_uid
from support import TESTS
from support.servers import Client, serving, trained_project


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with serving(trained_project(tmp_path)) as opened:
        yield opened


def test_a_question_comes_with_candidates_neighbours_and_a_reason(client: Client) -> None:
    card = client.question()
    assert card["number"] == 1
    assert card["of"] == 6
    assert len(card["upcoming"]) == 5
    shares = [candidate["probability"] for candidate in card["candidates"]]
    assert shares == sorted(shares, reverse=True)
    assert 1 <= len(shares) <= 5
    assert card["why"]
    for candidate in card["candidates"]:
        exemplars = candidate["exemplars"]
        assert 0 < len(exemplars) <= 6
        assert card["row"] not in [thumb["row"] for thumb in exemplars]
        human = [thumb["by"] == "human" for thumb in exemplars]
        assert human[: sum(human)] == [True] * sum(human) or not candidate["is_named"]
    assert all(thumb["by"] == "human" for thumb in card["labelled_neighbours"])
    assert card["neighbours"]
    assert card["row"] not in [thumb["row"] for thumb in card["neighbours"]]


def test_blind_mode_hides_every_suggestion(client: Client) -> None:
    card = client.question(blind=True)
    assert card["row"] is not None
    assert card["is_blind"]
    hidden = ("candidates", "neighbours", "labelled_neighbours", "why", "group")
    assert not any(card[name] for name in hidden)


def test_answers_spend_the_budget_and_passes_do_not(client: Client) -> None:
    rows = [client.question()["row"]]
    told = client.say(rows[0], "a new kind")
    assert told["stored"] == {"label": 1}
    assert [made["name"] for made in told["new_classes"]] == ["a new kind"]
    for kind in ("skip", "unsure", "junk"):
        rows.append(client.question()["row"])
        told = client.say(rows[-1], kind=kind)
    assert len(set(rows)) == 4
    state = told["state"]
    assert [state[name] for name in ("n_answers", "n_passed", "n_junk", "n_open", "n_novel")] == [1, 2, 1, 2, 1]
    assert state["is_due"]


def test_a_retried_post_counts_once(client: Client) -> None:
    row = client.question()["row"]
    body = {"uid": new_uid(), "who": "ann", "answers": [{"row": row, "kind": "label", "name": "kite"}]}
    assert not client.post("/api/v1/answers", body)["is_repeat"]
    client.say(row, "hawk")
    with ThreadPoolExecutor(4) as pool:
        repeats = list(pool.map(lambda _: client.post("/api/v1/answers", body), range(8)))
    assert all(told["is_repeat"] for told in repeats)
    assert repeats[-1]["state"]["n_answers"] == 2
    with Project.open(client.project) as project:
        labels, _ = project.label_state()
        assert labels.classes[labels.y_class[row]] == "hawk"


def test_a_retried_undo_takes_back_one_answer_only(client: Client) -> None:
    for name in ("one", "two"):
        client.say(client.question()["row"], name)
    body = {"uid": new_uid(), "who": "ann"}
    first, second = (client.post("/api/v1/undo", body) for _ in range(2))
    assert not first["is_repeat"]
    assert second["is_repeat"]
    assert second["state"]["n_answers"] == 1


def test_undo_gives_the_same_question_again_and_only_undoes_ones_own(client: Client) -> None:
    row = client.question()["row"]
    client.say(row, "kite")
    other = client.question(who="bob")["row"]
    client.say(other, "hawk", who="bob")
    undone = client.do("/api/v1/undo")
    assert undone["row"] == row
    assert client.question()["row"] == row
    assert undone["state"]["n_answers"] == 1
    assert "nothing to undo" in client.do("/api/v1/undo", 409)["error"]


def test_undo_reaches_across_a_merge(client: Client) -> None:
    rows = [client.question()["row"]]
    one = client.say(rows[0], "kite")["new_classes"][0]["class_id"]
    rows.append(client.question()["row"])
    two = client.say(rows[1], "hawk")["new_classes"][0]["class_id"]
    assert client.do("/api/v1/classes/merge", class_id=one, into=two)["state"]["n_novel"] == 1
    names = {name["name"]: name for name in client.get("/api/v1/names")}
    assert names["hawk"]["n_labels"] == 2
    assert names["hawk"]["aliases"] == ["kite"]
    assert "merge" in client.do("/api/v1/undo")["what"]
    assert {name["name"]: name["n_labels"] for name in client.get("/api/v1/names")}["kite"] == 1
    assert client.do("/api/v1/undo")["row"] == rows[1]
    assert client.do("/api/v1/undo")["row"] == rows[0]


def test_two_browsers_never_get_the_same_question(client: Client) -> None:
    def drain(holder: str) -> list[int]:
        rows: list[int] = []
        while (card := client.question(who="me", holder=holder))["row"] is not None:
            rows.append(card["row"])
            client.say(card["row"], kind="skip", who="me")
        return rows

    with ThreadPoolExecutor(3) as pool:
        drained = list(pool.map(drain, ("browser-1", "browser-2", "browser-3")))
    rows = [row for rows in drained for row in rows]
    assert len(rows) == len(set(rows)) == 6
    held = client.question(who="bob")
    assert held["row"] is None


def test_an_open_question_in_other_hands_is_said_to_be_there(client: Client) -> None:
    holders = [f"holder-{i}" for i in range(7)]
    assert client.question(holder=holders[0])["row"] is not None
    for holder in holders[1:6]:
        client.question(holder=holder)
    last = client.question(holder=holders[6])
    assert (last["row"], last["held_by_others"]) == (None, 6)


def test_the_board_shows_every_group_and_takes_no_single_answer_for_a_conflict(client: Client) -> None:
    board = client.get("/api/v1/board")
    assert sum(card["is_named"] for card in board["cards"]) == 3
    assert board["n_cards"] == len(board["cards"])
    assert sum(card["size"] for card in board["cards"]) == 50
    unnamed = next(card for card in board["cards"] if not card["is_named"])
    assert unnamed["name"] == f"unnamed #{unnamed['slot']}"
    assert (unnamed["n_agree"], unnamed["n_said"]) == (0, 0)
    first = client.get("/api/v1/members", key=unnamed["key"])["thumbs"][0]["row"]
    rows = [first, *(thumb["row"] for thumb in client.get(f"/api/v1/rows/{first}/neighbours"))]
    told = client.say(rows[0], "kite")
    client.say(rows[1], "kite")
    client.say(rows[2], "hawk")
    key = f"c-{told['new_classes'][0]['class_id']}"
    card = next(card for card in client.get("/api/v1/board")["cards"] if card["key"] == key)
    assert card["size"] >= 2
    assert card["n_said"] >= card["n_agree"] >= 1  # what each would be called without its own answer
    named = [other for other in client.get("/api/v1/board")["cards"] if other["is_named"]]
    # A single answer that looked like another class is how a class is found.
    assert not any("hawk (1)" in sentence for other in named for sentence in other["conflicts"])
    found = client.get("/api/v1/board", text="KITE", sort="conflicts")
    assert [card["name"] for card in found["cards"]] == ["kite"]


def test_classes_are_renamed_and_retired(client: Client) -> None:
    row = client.question()["row"]
    class_id = client.say(row, "kite")["new_classes"][0]["class_id"]
    client.do("/api/v1/classes/rename", class_id=class_id, name="red kite")
    assert "two classes" in client.do("/api/v1/classes/rename", 409, class_id=class_id, name="Blue-Triangle")["error"]
    client.do("/api/v1/classes/retire", class_id=class_id)
    body = {"uid": new_uid(), "who": "ann", "answers": [{"row": row + 1, "kind": "label", "class_id": class_id}]}
    assert "retired" in client.post("/api/v1/answers", body, 409)["error"]
    name = next(name for name in client.get("/api/v1/names") if name["class_id"] == class_id)
    assert (name["name"], name["aliases"], name["is_retired"]) == ("red kite", ["kite"], True)


def test_merge_preview_says_what_moves(client: Client) -> None:
    first, second = (f"c-{name['class_id']}" for name in client.get("/api/v1/names")[:2])
    preview = client.get("/api/v1/classes/merge-preview", one=first, into=second)
    assert "3 labels" in preview["what"]
    assert len(preview["labelled_one"]) == 3
    assert client.get("/api/v1/classes/merge-preview", 409, one=first, into=first)["error"]


def test_a_split_shows_two_halves_and_one_undo_takes_it_back(client: Client) -> None:
    card = next(card for card in client.get("/api/v1/board")["cards"] if card["size"] >= 8)
    halves = client.get("/api/v1/classes/split-preview", key=card["key"])["halves"]
    rows = [{thumb["row"] for thumb in half["typical"] + half["labelled"]} for half in halves]
    assert not rows[0] & rows[1]
    assert all(rows)
    answers = [
        {"row": row, "kind": "label", "name": f"half {i}"} for i, half in enumerate(rows) for row in sorted(half)[:3]
    ]
    before = client.get("/api/v1/state")["n_answers"]
    client.do("/api/v1/answers", answers=answers)
    assert client.do("/api/v1/undo")["state"]["n_answers"] == before


def test_growing_by_pages_is_kept_apart_from_labels(client: Client) -> None:
    card = next(card for card in client.get("/api/v1/board")["cards"] if card["is_named"] and card["size"] > 5)
    grow = client.get("/api/v1/grow", key=card["key"], order="list-of-ann")
    client.get("/api/v1/grow", key=card["key"], order="list-of-bob")
    rows = [thumb["row"] for thumb in grow["thumbs"]]
    assert grow["similarity"][0] >= grow["similarity"][1]
    body = {"uid": new_uid(), "who": "ann", "key": card["key"], "order": "list-of-ann", "last_row": rows[-1]}
    body |= {"except_rows": rows[-1:]}
    first, again = (client.post("/api/v1/accept", body) for _ in range(2))
    assert first["n_accepted"] == len(rows) - 1
    assert (again["n_accepted"], again["is_repeat"]) == (0, True)
    assert again["state"]["n_answers"] == 0
    assert again["state"]["is_due"], "accepted pictures teach, with a weight of their own"
    shown = client.get("/api/v1/grid", show="accepted")
    assert sorted(thumb["row"] for thumb in shown["thumbs"]) == sorted(rows[:-1])
    assert {thumb["by"] for thumb in shown["thumbs"]} == {"page"}
    table = list(csv.DictReader(io.StringIO(client.http.get("/api/v1/export/predictions.csv").text)))
    assert {line["by"] for line in table if int(line["row"]) in rows[:-1]} == {"page"}
    assert client.do("/api/v1/undo")["state"]["n_accepted"] == 0


def test_border_cases_and_chosen_rows_join_the_queue(client: Client) -> None:
    card = client.get("/api/v1/board")["cards"][0]
    assert client.do("/api/v1/queue", key=card["key"], n=3)["n_added"] <= 3
    rows = [thumb["row"] for thumb in client.get("/api/v1/grid", show="unlabelled", order="confident")["thumbs"]][:5]
    client.do("/api/v1/queue", rows=rows)
    asked = []
    for _ in range(8):
        asked.append(client.question(live=True)["row"])
        client.say(asked[-1], "kite")
    assert set(rows) <= set(asked)  # what somebody wants to be asked comes before what the rule would choose


def test_an_audit_measures_without_teaching(client: Client) -> None:
    body = {"uid": new_uid(), "n": 8}
    assert client.post("/api/v1/audit", body)["n_added"] == client.post("/api/v1/audit", body)["n_added"] == 8
    assert client.get("/api/v1/state")["n_audit_open"] == 8
    while (card := client.question(audit=True))["row"] is not None:
        assert card["is_blind"]
        state = client.say(card["row"], client.truth(card["row"]), is_audit=True)["state"]
    assert (state["n_audit"], state["n_answers"], state["is_due"]) == (8, 0, False)
    score = client.get("/api/v1/rounds")["rounds"][0]["audit"]
    assert score["n"] == 8
    assert 0 <= score["low"] <= score["share"] <= score["high"] <= 1
    assert client.get("/api/v1/grid", show="unlabelled")["n"] == 41 - 8


def test_grid_filters_orders_and_pages(client: Client) -> None:
    assert client.get("/api/v1/grid")["n"] == 50
    assert client.get("/api/v1/grid", show="labelled")["n"] == 9
    unsure = client.get("/api/v1/grid", show="unlabelled", order="uncertain")
    assert unsure["n"] == 41
    card = client.get("/api/v1/board")["cards"][0]
    assert client.get("/api/v1/grid", key=card["key"])["n"] >= card["size"]
    chosen = client.post("/api/v1/selections", {"rows": [3, 1, 3]})
    assert chosen["n"] == 2
    shown = client.get("/api/v1/grid", show="selection", selection=chosen["id"])
    assert [thumb["row"] for thumb in shown["thumbs"]] == [1, 3]
    assert client.get("/api/v1/grid", 409, show="selection", selection="0" * 32)["error"]


def test_the_map_has_a_point_for_every_picture(client: Client) -> None:
    points = client.get("/api/v1/map")
    assert len(points["row"]) == 50 == points["n_rows"]
    assert {len(points[name]) for name in ("x", "y", "name", "by", "margin", "disagrees", "v")} == {50}
    assert max(points["name"]) < len(points["names"]) == len(points["is_new"])
    assert client.get("/api/v1/map", 409, round=7)["error"]


@pytest.mark.parametrize(
    ("path", "params"),
    [
        ("/api/v1/board", {"sort": "size; DROP TABLE events"}),
        ("/api/v1/board", {"page": -1}),
        ("/api/v1/grid", {"order": "rowid"}),
        ("/api/v1/grid", {"key": "c-../../etc/passwd"}),
        ("/api/v1/question", {"who": "", "holder": "abcdefgh"}),
        ("/api/v1/question", {"who": "ann", "holder": "x"}),
        ("/api/v1/rows/1/neighbours", {"n": 100_000}),
        ("/api/v1/members", {"key": "s-1", "order": "payload"}),
    ],
)
def test_parameters_outside_their_list_are_refused(client: Client, path: str, params: dict[str, str]) -> None:
    assert client.get(path, 422, **params)["error"]


@pytest.mark.parametrize(
    "answer",
    [
        {"row": 1, "kind": "label"},
        {"row": 1, "kind": "label", "name": "x", "class_id": "0" * 32},
        {"row": 1, "kind": "label", "class_id": "0" * 32},
        {"row": 1, "kind": "label", "name": "skip"},
        {"row": 1, "kind": "label", "name": "a\u202eb"},
    ],
)
def test_answers_that_make_no_sense_store_nothing(client: Client, answer: dict[str, object]) -> None:
    body = {"uid": new_uid(), "who": "ann", "answers": [{"row": 2, "kind": "skip"}, answer]}
    assert client.post("/api/v1/answers", body, 409)["error"]
    assert client.get("/api/v1/state")["n_passed"] == 0


def test_ids_of_other_places_are_not_found(client: Client) -> None:
    assert client.get("/api/v1/members", 409, key="c-" + "0" * 32)["error"]
    assert client.get("/api/v1/export/project.db", 404)["error"]
    assert client.get("/api/v1/export/..%2fproject.db", 404)["error"]
    assert client.get("/image/5000?size=96", 404)["error"]


def test_every_route_is_in_the_openapi_description(client: Client) -> None:
    paths = client.get("/api/v1/openapi.json")["paths"]
    assert {
        "/api/v1/state",
        "/api/v1/question",
        "/api/v1/answers",
        "/api/v1/undo",
        "/api/v1/classes/merge",
        "/api/v1/job",
    } <= set(paths)
    for path, methods in paths.items():
        for method, described in methods.items():
            assert described.get("description"), f"{method} {path} is not documented"


def test_hostile_names_come_back_as_text(client: Client) -> None:
    name = "</script><img src=x onerror=alert(1)>"
    client.say(client.question()["row"], name)
    assert name in [known["name"] for known in client.get("/api/v1/names")]
    page = client.http.get("/classes")
    assert name not in page.text
    assert "unsafe" not in page.headers["content-security-policy"]


def test_serving_never_loads_torch(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from support.servers import serving\n"
        "with serving(Path(sys.argv[1])) as client:\n"
        "    client.say(client.question()['row'], 'kite')\n"
        "    for path in ('state', 'board', 'grid', 'map', 'rounds', 'names', 'job', 'export'):\n"
        "        client.get('/api/v1/' + path)\n"
        "    assert client.http.get('/api/v1/export/predictions.csv').status_code == 200\n"
        "assert 'torch' not in sys.modules, 'torch was loaded'"
    )
    project = trained_project(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", code, str(project)],
        capture_output=True,
        text=True,
        check=False,
        cwd=TESTS,
    )
    assert done.returncode == 0, done.stderr


def test_rows_whose_answers_are_on_their_way_are_not_handed_out_again(client: Client) -> None:
    first = client.question()["row"]
    ahead = client.question(answered=[first])
    assert ahead["row"] != first
    assert ahead["number"] == 2
    assert first not in [thumb["row"] for thumb in ahead["upcoming"]]


def test_between_a_round_and_its_view_the_round_before_is_shown(client: Client) -> None:
    client.say(client.question()["row"], "kite")
    with Project.open(client.project) as project:
        train(project)
    gone = client.project / "cache" / "rounds" / "001"
    before = client.get("/api/v1/map")
    assert before["round"] == 1
    gone.rename(gone.with_name("aside"))
    assert client.get("/api/v1/map")["round"] == 0
    assert client.get("/api/v1/state")["is_due"]
    assert client.question()["row"] is not None
    gone.with_name("aside").rename(gone)
    assert client.get("/api/v1/map") == before
    assert not client.get("/api/v1/state")["is_due"]
