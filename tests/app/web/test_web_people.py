"""Named people: each comes in with a secret of their own, does what the role allows, and speaks for nobody else."""

from __future__ import annotations

import asyncio
import base64
import json
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agcd.app.create import PEOPLE, RECORDS
from agcd.app.web import login, passwords
from agcd.app.web.app import make_api
from agcd.app.web.auth import Gate
from agcd.app.web.passwords import check_password, hash_password, is_password, new_password
from agcd.app.web.people import (
    People,
    Role,
    add_person,
    change_role,
    people_of,
    remove_person,
    reset_password,
    role_named,
)
from agcd.app.web.roles import LABELLING, needed_role
from agcd.app.web.server_state import ServerState
from agcd.cli import app as commands
from agcd.errors import ConfigError, DataError
from support.asgi_client import Call, call
from support.gates import FORM, HOST, JSON, ORIGIN, SECRET, logged_in, make_gate, seen
from support.projects import make_project

PASSWORDS = {"ann": "a-secret-of-hers", "bob": "another-good-one", "eve": "looks-all-around"}
ROLES = {"ann": Role.MANAGE, "bob": Role.LABEL, "eve": Role.VIEW}


@pytest.fixture(autouse=True)
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guess costs nothing here; one test below looks at the real cost."""
    monkeypatch.setattr(passwords, "_N", 2)
    monkeypatch.setattr(passwords, "_P", 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project's folder with three people, as far as this file is concerned."""
    (tmp_path / RECORDS).touch()
    for name, role in ROLES.items():
        add_person(tmp_path, name, role, PASSWORDS[name])
    return tmp_path


@pytest.fixture
def gate(folder: Path) -> Gate:
    return make_gate(people=People(folder))


def by_name(gate: Gate, name: str, password: str, client: str = "127.0.0.1") -> Call:
    return call(gate, "POST", "/login", FORM, chunks=(f"name={name}&secret={password}".encode(),), client=client)


def session(gate: Gate, name: str) -> dict[str, str]:
    """The headers of our page in the browser of a person."""
    answer = by_name(gate, name, PASSWORDS[name])
    assert answer.status == 200
    own = answer.answer_headers["set-cookie"].partition(";")[0]
    return {"host": HOST, "cookie": own, "origin": ORIGIN, "content-type": "application/json"}


def basic(name: str, password: str) -> dict[str, str]:
    return {**JSON, "authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


# ------------------------------------------------------------------------------------------------------ coming in


def test_people_come_in_by_form_and_by_basic_with_their_own_password(gate: Gate) -> None:
    for name, password in PASSWORDS.items():
        assert call(gate, "GET", "/", session(gate, name)).status == 200
        assert call(gate, "GET", "/", basic(name, password)).status == 200
        assert call(gate, "GET", "/", basic(name, password + "x")).status == 401
        assert call(gate, "GET", "/", {"host": HOST, "authorization": f"Bearer {password}"}).status == 401
        assert call(gate, "GET", f"/login?token={password}", {"host": HOST}).status == 401
    assert by_name(gate, "ann", PASSWORDS["bob"]).status == 401
    assert by_name(gate, "Ann", PASSWORDS["ann"]).status == 401
    assert by_name(gate, "nobody", PASSWORDS["ann"]).status == 401


@pytest.mark.parametrize("credentials", ["", "%%%", "YW5u", base64.b64encode(b"\xff:\xff").decode(), SECRET])
def test_basic_that_is_none_is_refused(gate: Gate, credentials: str) -> None:
    assert call(gate, "GET", "/", {"host": HOST, "authorization": f"Basic {credentials}"}).status == 401


def test_the_form_asks_for_a_name_only_where_there_are_people(gate: Gate) -> None:
    assert b'name="name"' in call(gate, "GET", "/login", {"host": HOST}).body
    assert b'name="name"' not in call(make_gate(), "GET", "/login", {"host": HOST}).body


def test_the_token_still_does_everything_under_any_name(gate: Gate) -> None:
    body = json.dumps({"who": "whoever"}).encode()
    assert call(gate, "POST", "/api/v1/job", JSON, chunks=(body,)).status == 200
    assert call(gate, "POST", "/api/v1/job", {**logged_in(gate), "origin": ORIGIN}).status == 200


def test_wrong_guesses_are_few_and_no_address_holds_up_another_nor_the_token(gate: Gate) -> None:
    assert [by_name(gate, "ann", "wrong", "192.0.2.7").status for _ in range(11)] == [401] * 10 + [429]
    assert by_name(gate, "ann", PASSWORDS["ann"], "192.0.2.7").status == 429
    assert by_name(gate, "ann", PASSWORDS["ann"], "192.0.2.8").status == 200
    assert call(gate, "GET", "/", JSON, client="192.0.2.7").status == 200


def test_a_thousand_guesses_at_once_are_not_all_looked_at(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    monkeypatch.setattr(People, "check", lambda self, name, guess: looked.append(name))

    async def flood() -> list[Call]:
        calls = [Call("GET", "/", basic("ann", f"guess {i}")) for i in range(1000)]
        return await asyncio.gather(*(each.send(gate) for each in calls))

    statuses = [each.status for each in asyncio.run(flood())]
    assert (statuses.count(401), statuses.count(429), len(looked)) == (10, 990, 10)
    assert call(gate, "GET", "/", JSON).status == 200


def test_hashes_are_computed_outside_of_the_event_loop_and_only_so_many_wait(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    going_on, threads = threading.Event(), set()

    def slow(self: People, name: str, guess: bytes) -> None:
        threads.add(threading.get_ident())
        going_on.wait(20)

    monkeypatch.setattr(People, "check", slow)

    async def crowd() -> list[int]:
        calls = [Call("GET", "/", basic("ann", "guess"), client=f"10.0.0.{i}") for i in range(login.MAX_WAITING + 5)]
        waiting = [asyncio.create_task(each.send(gate)) for each in calls]
        served = await Call("GET", "/", JSON).send(gate)
        assert served.status == 200, "others are served meanwhile"
        going_on.set()
        return [(await each).status for each in waiting]

    statuses = asyncio.run(crowd())
    assert (statuses.count(401), statuses.count(503)) == (login.MAX_WAITING, 5)
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_a_script_pays_for_its_password_once(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(gate, "GET", "/", basic("bob", PASSWORDS["bob"])).status == 200
    monkeypatch.setattr(People, "check", lambda self, name, guess: None)
    assert call(gate, "GET", "/", basic("bob", PASSWORDS["bob"])).status == 200
    assert call(gate, "GET", "/", basic("bob", PASSWORDS["ann"])).status == 401
    assert call(gate, "GET", "/", basic("ann", PASSWORDS["bob"])).status == 401


# ------------------------------------------------------------------------------------- the file, while it is served


def test_changes_count_at_once(gate: Gate, folder: Path) -> None:
    bob, ann, script = session(gate, "bob"), session(gate, "ann"), basic("bob", PASSWORDS["bob"])
    assert call(gate, "POST", "/api/v1/job", bob).status == 403
    change_role(folder, "bob", Role.MANAGE)
    assert call(gate, "POST", "/api/v1/job", bob).status == 200
    assert call(gate, "POST", "/api/v1/job", script).status == 200
    new = reset_password(folder, "bob")
    assert call(gate, "GET", "/", bob).status == call(gate, "GET", "/", script).status == 401
    assert by_name(gate, "bob", PASSWORDS["bob"]).status == 401
    assert by_name(gate, "bob", new).status == 200
    remove_person(folder, "bob")
    assert by_name(gate, "bob", new).status == 401
    add_person(folder, "bob", Role.LABEL, PASSWORDS["bob"])
    assert call(gate, "GET", "/", bob).status == 401, "the session of somebody who was removed stays ended"
    assert call(gate, "GET", "/", ann).status == 200


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"people": [{"name": "ann"}]}',
        '{"people": [{"name": "a", "role": "god", "secret": "x"}]}',
        '{"people": [{"name": "ann", "role": "view", "secret": "scrypt$1$1$1$a$b"}]}',
        "[" * 100_000,
    ],
)
def test_a_damaged_file_lets_nobody_in_but_the_token(gate: Gate, folder: Path, text: str) -> None:
    ann = session(gate, "ann")
    (folder / PEOPLE).write_text(text)
    answer = call(gate, "GET", "/", ann)
    assert (answer.status, "damaged" in answer.error) == (503, True)
    assert by_name(gate, "ann", PASSWORDS["ann"]).status == 503
    assert call(gate, "GET", "/", JSON).status == 200
    with pytest.raises(DataError, match="damaged"):
        people_of(folder)


def test_a_file_that_is_damaged_while_a_password_is_checked_is_no_error_of_the_server(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(self: People, name: str, guess: bytes) -> None:
        raise DataError("people.json is damaged.")

    monkeypatch.setattr(People, "check", damaged)
    answer = call(gate, "GET", "/", basic("ann", PASSWORDS["ann"]))
    assert (answer.status, answer.error) == (503, "people.json is damaged.")


def test_only_hashes_are_kept_and_only_their_owner_reads_them(folder: Path) -> None:
    kept = (folder / PEOPLE).read_text()
    assert not any(password in kept for password in PASSWORDS.values())
    assert stat.S_IMODE((folder / PEOPLE).stat().st_mode) == 0o600
    assert not list(folder.glob("*.tmp"))


def test_two_equal_passwords_are_kept_differently_and_cost_16_mb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    one = hash_password("the same password")
    assert one.startswith("scrypt$16384$8$5$")
    monkeypatch.setattr(passwords, "_N", 2)
    assert hash_password("the same password").split("$")[4:] != hash_password("the same password").split("$")[4:]
    assert is_password(b"the same password", one)
    assert not is_password(b"the same passwore", one)


# ---------------------------------------------------------------------------------------------------------- roles

REQUESTS = [
    ("GET", "/grid", Role.VIEW),
    ("GET", "/api/v1/state", Role.VIEW),
    ("GET", "/image/3", Role.VIEW),
    ("GET", "/api/v1/export/labels.csv", Role.VIEW),
    ("GET", "/api/v1/question", Role.LABEL),
    ("POST", "/api/v1/answers", Role.LABEL),
    ("POST", "/api/v1/undo", Role.LABEL),
    ("POST", "/api/v1/review/accept", Role.LABEL),
    ("POST", "/api/v1/job", Role.MANAGE),
    ("DELETE", "/api/v1/job", Role.MANAGE),
    ("POST", "/api/v1/classes/merge", Role.MANAGE),
    ("POST", "/api/v1/audit", Role.MANAGE),
    ("POST", "/api/v1/answers/", Role.MANAGE),
    ("PUT", "/api/v1/answers", Role.MANAGE),
    ("PROPFIND", "/grid", Role.MANAGE),
    ("POST", "/api/v1/not-made-yet", Role.MANAGE),
]


@pytest.mark.parametrize(("method", "path", "needed"), REQUESTS)
def test_each_role_does_what_is_in_the_table_and_no_more(gate: Gate, method: str, path: str, needed: Role) -> None:
    for name, role in ROLES.items():
        before = len(seen(gate))
        answer = call(gate, method, path, session(gate, name))
        is_allowed = list(Role).index(role) >= list(Role).index(needed)
        assert (answer.status, len(seen(gate)) - before) == ((200, 1) if is_allowed else (403, 0))
        if not is_allowed:
            assert answer.error.startswith(f"{name} may ")
            assert f"needs the role '{needed.value}'." in answer.error


def test_the_table_names_routes_that_exist_and_every_other_change_is_for_managers(tmp_path: Path) -> None:
    make_project(tmp_path).close()
    server = ServerState(tmp_path / "project")
    paths = make_api(server).openapi()["paths"]
    routes = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    server.close()
    assert routes >= LABELLING
    changes = {(method, path) for method, path in routes if method != "GET"}
    managing = {path.removeprefix("/api/v1/") for method, path in changes if needed_role(method, path) == Role.MANAGE}
    assert managing == {
        *("job", "n-classes", "audit", "audit/release", "folders"),
        *("classes/rename", "classes/merge", "classes/retire"),
    }


# ------------------------------------------------------------------------------------------------- whose answers


def said(gate: Gate, name: str, body: Any, path: str = "/api/v1/answers") -> Call:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return call(gate, "POST", path, session(gate, name), chunks=(raw,))


@pytest.mark.parametrize("name", ["ann", "bob"])
def test_nobody_answers_in_anothers_name(gate: Gate, name: str) -> None:
    own, other = {"who": name, "answers": []}, {"who": "eve", "answers": []}
    assert said(gate, name, own).body == json.dumps(own).encode(), "what is right passes unchanged"
    for body in (other, {"who": name.upper()}, {"who": f"{name} "}, {"who": None}, {"who": [name]}, {"who": ""}):
        answer = said(gate, name, body)
        assert (answer.status, answer.error.startswith(f"You are logged in as {name}")) == (403, True)
    assert said(gate, name, {"who": "eve"}, "/api/v1/undo").status == 403


@pytest.mark.parametrize(
    "body",
    [
        b'{"who": "bob", "who": "eve"}',
        b'{"who": "eve", "who": "bob"}',
        b'{"wh\\u006f": "eve"}',
        b'{"answers": [{"who": "bob"}], "who": "eve"}',
        json.dumps({"who": "eve"}).encode("utf-16"),
        b"\xef\xbb\xbf" + b'{"who": "eve"}',
    ],
)
def test_another_name_cannot_be_hidden(gate: Gate, body: bytes) -> None:
    assert said(gate, "bob", body).status == 403
    assert seen(gate) == []


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[" * 100_000, b'{"who": "bob"'])
def test_what_cannot_be_read_is_not_passed_on(gate: Gate, body: bytes) -> None:
    assert said(gate, "bob", body).status == 422
    assert seen(gate) == []


def test_in_a_question_who_is_oneself_and_in_a_search_anybody(gate: Gate) -> None:
    bob = session(gate, "bob")
    assert call(gate, "GET", "/api/v1/question?who=bob&holder=x", bob).status == 200
    for query in ("who=eve", "who=bob&who=eve", "who=eve&who=bob", "who=", "%77ho=eve"):
        assert call(gate, "GET", f"/api/v1/question?{query}", bob).status == 403
    assert call(gate, "GET", "/api/v1/grid?who=eve", bob).status == 200


# ------------------------------------------------------------------------------------------------------ passwords


@pytest.mark.parametrize(
    ("password", "words"),
    [
        ("x", "at least 12 characters; this one has 1"),
        ("elevenchars", "this one has 11"),
        ("a" * 12, "different"),
        ("abababababab", "different"),
        ("Password1234", "commonest"),
        ("1q2w3e4r5t6y", "commonest"),
        ("i-am-Maria-2026", "name of its owner"),
        ("long" * 60, "at most 200"),
    ],
)
def test_weak_passwords_are_refused_in_one_sentence(tmp_path: Path, password: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        check_password(password, "maria")
    assert str(caught.value).endswith(".")
    (tmp_path / RECORDS).touch()
    with pytest.raises(ConfigError, match=words):
        add_person(tmp_path, "maria", Role.VIEW, password)
    assert people_of(tmp_path) == []


def test_new_passwords_are_good_ones_and_differ() -> None:
    made = {new_password() for _ in range(100)}
    assert len(made) == 100
    for password in made:
        check_password(password)


# -------------------------------------------------------------------------------------------------------- command


def run(*words: str, password: str | None = None) -> tuple[int, str]:
    done = CliRunner().invoke(commands, ["people", *words], env={"AGCD_PASSWORD": password})
    return done.exit_code, done.stdout if done.exception is None else str(done.exception)


def test_the_command_adds_lists_changes_and_removes(tmp_path: Path) -> None:
    (tmp_path / RECORDS).touch()
    place, people = str(tmp_path), People(tmp_path)
    assert "nobody yet" in run(place)[1]
    told = run(place, "add", "ann")[1]
    password = told.split("shown only now: ")[1].strip()
    assert people.check("ann", password.encode()) == people.now()["ann"]
    assert run(place, "add", "bob", "--role", "view", password="a-chosen-password") == (
        0,
        "bob may log in with the role view\npassword: the one in AGCD_PASSWORD\n",
    )
    assert people.check("bob", b"a-chosen-password")
    assert run(place)[1] == "label   ann\nview    bob\n"
    assert run(place, "role", "ann", "manage")[0] == 0
    fresh = run(place, "reset", "ann")[1].split("shown only now: ")[1].strip()
    assert people.check("ann", fresh.encode())
    assert not people.check("ann", password.encode())
    assert run(place, "remove", "bob")[0] == 0
    assert run(place)[1] == "manage  ann\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("add", "ANN"), "ann is there already"),
        (("add", "a:b"), "no colon"),
        (("add", "a" * 61), "at most 60"),
        (("add", " "), "empty"),
        (("add", "bob", "--role", "veiw"), "Did you mean 'view'"),
        (("role", "ann", "king"), "no role 'king'"),
        (("remove", "bob"), "Nobody is called 'bob'; there is ann."),
        (("reset", "bob"), "Nobody is called 'bob'"),
    ],
)
def test_mistakes_are_one_sentence_and_change_nothing(tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    (tmp_path / RECORDS).touch()
    add_person(tmp_path, "ann", Role.LABEL)
    before = (tmp_path / PEOPLE).read_bytes()
    code, told = run(str(tmp_path), *words)
    assert code == 1
    assert sentence in told
    assert (tmp_path / PEOPLE).read_bytes() == before


def test_there_are_no_people_without_a_project(tmp_path: Path) -> None:
    for words in ((), ("add", "ann")):
        assert "There is no project at" in run(str(tmp_path / "nowhere"), *words)[1]
    assert role_named("view") is Role.VIEW
    assert not list(tmp_path.iterdir())


def test_two_commands_at_once_lose_nobody(tmp_path: Path) -> None:
    (tmp_path / RECORDS).touch()
    names = [f"person {i}" for i in range(12)]
    adding = [threading.Thread(target=add_person, args=(tmp_path, name, Role.LABEL)) for name in names]
    for thread in adding:
        thread.start()
    for thread in adding:
        thread.join()
    assert {person.name for person in people_of(tmp_path)} == set(names)
