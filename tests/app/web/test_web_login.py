"""Only who knows the secret comes in, and few guesses a minute are heard."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from jinja2 import UndefinedError

from agcd.app.web.auth import Gate, GateSettings, cookie_name
from agcd.app.web.templates import ENVIRONMENT, render
from agcd.errors import ConfigError
from support.asgi_client import Call, call
from support.gates import BEARER, CHANGING, FORM, HOST, METHODS, SECRET, logged_in, make_gate, seen

# ---------------------------------------------------------------------------------------------------- the secret


@pytest.mark.parametrize("method", [method for method in METHODS if method != "OPTIONS"])
@pytest.mark.parametrize("target", ["/", "/api/v1/state", "/image/1", "/static/app.js", "/docs", "/login/", "/nowhere"])
def test_strangers_get_nothing(method: str, target: str) -> None:
    gate = make_gate()
    answer = call(gate, method, target, {"host": HOST, "accept": "*/*"})
    assert (answer.status, seen(gate)) == (401, [])
    assert "Log in" in answer.error
    assert answer.answer_headers["www-authenticate"] == "Bearer"


def test_a_person_without_a_session_gets_the_login_page() -> None:
    answer = call(make_gate(), "GET", "/grid", {"host": HOST, "accept": "text/html,application/xhtml+xml"})
    assert answer.status == 401
    assert answer.answer_headers["content-type"].startswith("text/html")
    assert b'name="secret"' in answer.body
    assert b"Log in first" in answer.body


@pytest.mark.parametrize(
    ("change", "status"), [({"origin": "http://evil.example"}, 403), ({"host": "evil.example"}, 421)]
)
def test_where_logging_in_would_not_help_there_is_no_login_page(change: dict[str, str], status: int) -> None:
    answer = call(make_gate(), "GET", "/", {"host": HOST, "accept": "text/html", **change})
    assert answer.status == status
    assert answer.error.endswith(".")


@pytest.mark.parametrize("target", ["/static/style.css", "/static/favicon.svg"])
def test_what_the_login_page_needs_may_be_read_but_not_changed_by_anybody(target: str) -> None:
    gate = make_gate()
    assert call(gate, "GET", target, {"host": HOST}).status == 200
    assert call(gate, "HEAD", target, {"host": HOST}).status == 200
    assert {call(gate, method, target, {"host": HOST}).status for method in CHANGING} == {401}


@pytest.mark.parametrize(
    "authorization",
    ["Bearer wrong", "Bearer", "Bearer ", f"Bearer {SECRET}x", f"Bearer {SECRET[:-1]}", f"Basic {SECRET}", SECRET],
)
def test_only_the_right_bearer_comes_in(authorization: str) -> None:
    assert call(make_gate(), "GET", "/", {"host": HOST, "authorization": authorization}).status == 401


def test_the_word_bearer_may_be_written_in_any_case() -> None:
    assert call(make_gate(), "GET", "/", {"host": HOST, "authorization": f"bearer {SECRET}"}).status == 200


def test_two_authorizations_are_none() -> None:
    headers = [*BEARER.items(), ("authorization", "Bearer other")]
    assert call(make_gate(), "GET", "/", headers).status == 403


def test_a_password_may_hold_any_letter() -> None:
    gate = make_gate(secret="grüße & küsse = 愛")
    bearer = "grüße & küsse = 愛".encode().decode("latin-1")
    assert call(gate, "GET", "/", {"host": HOST, "authorization": f"Bearer {bearer}"}).status == 200
    form = b"secret=gr%C3%BC%C3%9Fe+%26+k%C3%BCsse+%3D+%E6%84%9B"
    assert call(gate, "POST", "/login", FORM, chunks=(form,)).status == 200
    assert call(gate, "GET", f"/login?token={form.decode().partition('=')[2]}", {"host": HOST}).status == 200


def test_an_empty_secret_is_refused_and_the_secret_is_not_printed() -> None:
    with pytest.raises(ConfigError, match="empty"):
        GateSettings("", frozenset({HOST}))
    assert SECRET not in repr(make_gate().settings)


# ---------------------------------------------------------------------------------------------- login and cookie


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_anybody_may_see_the_login_form(method: str) -> None:
    answer = call(make_gate(), method, "/login", {"host": HOST, "accept": "text/html"})
    assert answer.status == 200
    assert "set-cookie" not in answer.answer_headers


def test_the_login_link_sets_the_cookie_and_leads_on_without_a_redirect() -> None:
    answer = call(make_gate(), "GET", f"/login?token={SECRET}", {"host": HOST})
    assert answer.status == 200
    assert b'http-equiv="refresh"' in answer.body
    assert SECRET.encode() not in answer.body
    assert answer.answer_headers["referrer-policy"] == "no-referrer"


def test_the_token_is_taken_away_before_the_server_can_log_it() -> None:
    for headers in ({"host": HOST}, {"host": "evil.example"}):
        answer = call(make_gate(), "GET", f"/login?token={SECRET}", headers)
        assert answer.scope["query_string"] == b""


@pytest.mark.parametrize("secure", [False, True])
def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(secure: bool) -> None:
    answer = call(make_gate(secure=secure), "POST", "/login", FORM, chunks=(f"secret={SECRET}".encode(),))
    pair, *attributes = answer.answer_headers["set-cookie"].split("; ")
    assert {attribute.lower() for attribute in attributes} == {
        "httponly",
        "samesite=strict",
        "path=/",
        *(["secure"] if secure else []),
    }
    name, _, value = pair.partition("=")
    assert name == "agcd_session_8000"
    assert SECRET not in value
    assert len(value) >= 32


def test_servers_at_other_ports_have_cookies_of_their_own() -> None:
    names = {cookie_name(host) for host in ("localhost:1", "localhost:2", "localhost", "[::1]", "labels.example")}
    assert len(names) == 5
    assert all(name.replace("_", "").isalnum() for name in names)


def test_a_session_ends_with_the_server() -> None:
    before = logged_in(make_gate())
    after = make_gate()
    assert call(after, "GET", "/", before).status == 401
    assert call(after, "GET", "/", logged_in(after)).status == 200
    assert before != logged_in(after)


def test_a_cookie_put_beside_ours_by_a_neighbour_does_not_lock_us_out() -> None:
    gate = make_gate()
    cookie = logged_in(gate)["cookie"]
    for cookies in (f"agcd_session_8000=theirs; {cookie}", f"{cookie}; agcd_session_8000=theirs", f"a=b;{cookie};c"):
        assert call(gate, "GET", "/", {"host": HOST, "cookie": cookies}).status == 200
    assert call(gate, "GET", "/", [("host", HOST), ("cookie", "a=b"), ("cookie", cookie)]).status == 200
    value = cookie.partition("=")[2]
    for cookies in ("agcd_session_8000=", "agcd_session_8000", f"other={value}", value, f"agcd_session_8000={SECRET}"):
        assert call(gate, "GET", "/", {"host": HOST, "cookie": cookies}).status == 401


@pytest.mark.parametrize("body", [b"secret=wrong", b"secret=", b"", b"token=correct-horse-battery", b"\xff\xfe=%ff"])
def test_a_wrong_password_shows_the_form_again(body: bytes) -> None:
    answer = call(make_gate(), "POST", "/login", FORM, chunks=(body,))
    assert answer.status == 401
    assert b"That is not the password" in answer.body
    assert "set-cookie" not in answer.answer_headers


@pytest.mark.parametrize("query", ["token=wrong", "token=", f"token={SECRET}x"])
def test_a_wrong_token_shows_the_form(query: str) -> None:
    answer = call(make_gate(), "GET", f"/login?{query}", {"host": HOST, "accept": "text/html"})
    assert (answer.status, b'name="secret"' in answer.body) == (401, True)
    assert call(make_gate(), "GET", f"/login?{query}", {"host": HOST}).error.startswith("That is not")


def test_looking_at_a_login_link_does_not_log_in() -> None:
    assert "set-cookie" not in call(make_gate(), "HEAD", f"/login?token={SECRET}", {"host": HOST}).answer_headers


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"content-type": "application/json"}, b'{"secret": "correct-horse-battery"}', 415),
        ({"content-type": "multipart/form-data; boundary=x"}, b"", 415),
        ({}, b"secret=" + b"x" * 5000, 413),
        ({}, b"&".join(b"a=1" for _ in range(1000)), 400),
        ({}, b"secret=correct-horse-battery&secret=other", 400),
        ({"content-type": "application/x-www-form-urlencoded; charset=utf-8"}, b"secret=correct-horse-battery", 200),
    ],
)
def test_a_login_is_one_small_form(headers: dict[str, str], body: bytes, status: int) -> None:
    assert call(make_gate(), "POST", "/login", {**FORM, **headers}, chunks=(body,)).status == status


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_the_login_is_only_read_or_posted(method: str) -> None:
    assert call(make_gate(), method, "/login", FORM).status == 405


def by_form(gate: Gate, secret: str) -> Call:
    return call(gate, "POST", "/login", FORM, chunks=(f"secret={secret}".encode(),))


def by_link(gate: Gate, secret: str) -> Call:
    return call(gate, "GET", f"/login?token={secret}", {"host": HOST})


def by_bearer(gate: Gate, secret: str) -> Call:
    return call(gate, "GET", "/", {"host": HOST, "authorization": f"Bearer {secret}"})


WAYS = [by_form, by_link, by_bearer]


@pytest.mark.parametrize("way", WAYS)
def test_ten_wrong_guesses_close_every_way_in_until_the_minute_is_over(way: Callable[[Gate, str], Call]) -> None:
    now = [100.0]
    gate = make_gate(clock=lambda: now[0])
    session = logged_in(gate)
    assert [way(gate, "wrong").status for _ in range(11)] == [401] * 10 + [429]
    now[0] = 159.5
    for other in WAYS:
        answer = other(gate, SECRET)
        assert (answer.status, answer.answer_headers["retry-after"]) == (429, "1")
    assert call(gate, "GET", "/", session).status == 200, "who is in stays in"
    now[0] = 160.0
    assert way(gate, SECRET).status == 200


def test_right_passwords_and_old_cookies_do_not_count_as_guesses() -> None:
    gate = make_gate()
    for _ in range(30):
        assert by_form(gate, SECRET).status == 200
        assert call(gate, "GET", "/", {"host": HOST, "cookie": "agcd_session_8000=old"}).status == 401
    assert by_bearer(gate, SECRET).status == 200


def test_guesses_spread_over_more_than_a_minute_are_let_through() -> None:
    now = [0.0]
    gate = make_gate(clock=lambda: now[0])
    for _ in range(40):
        assert by_bearer(gate, "wrong").status == 401
        now[0] += 7.0


# ----------------------------------------------------------------------------------------------------- templates


def test_templates_escape_values_and_miss_none() -> None:
    template = ENVIRONMENT.from_string("<p title='{{ name }}'>{{ name }}</p>")
    assert "<script>" not in template.render(name="'><script>alert(1)</script>")
    with pytest.raises(UndefinedError):
        template.render()
    assert "&lt;script&gt;" in render("login.html.j2", error="<script>")
