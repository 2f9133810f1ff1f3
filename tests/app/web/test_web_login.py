"""Only who knows the secret comes in, and few guesses a minute are heard."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from jinja2 import UndefinedError

from agcd.app.web.auth import Gate, GateSettings
from agcd.app.web.sessions import IDLE_SECONDS, LONGEST_SECONDS, PER_PERSON, cookie_name
from agcd.app.web.templates import ENVIRONMENT, render
from agcd.app.web.throttle import MAX_ADDRESSES, Throttle
from agcd.errors import ConfigError
from support.asgi_client import Call, call
from support.gates import BEARER, CHANGING, FORM, HOST, METHODS, ORIGIN, SECRET, logged_in, make_gate, seen

PASSWORD = "a-password-of-the-server"

# ---------------------------------------------------------------------------------------------------- the secret


@pytest.mark.parametrize("method", METHODS)
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
    gate = make_gate(password="grüße & küsse = 愛")
    bearer = "grüße & küsse = 愛".encode().decode("latin-1")
    assert call(gate, "GET", "/", {"host": HOST, "authorization": f"Bearer {bearer}"}).status == 200
    form = b"secret=gr%C3%BC%C3%9Fe+%26+k%C3%BCsse+%3D+%E6%84%9B"
    assert call(gate, "POST", "/login", FORM, chunks=(form,)).status == 200


def test_a_login_link_takes_the_token_and_never_the_password() -> None:
    gate = make_gate(password=PASSWORD)
    assert by_link(gate, SECRET).status == 200
    assert by_link(gate, PASSWORD).status == 401
    assert by_form(gate, PASSWORD).status == by_bearer(gate, PASSWORD).status == 200


def test_an_empty_secret_is_refused_and_the_secret_is_not_printed() -> None:
    with pytest.raises(ConfigError, match="empty"):
        GateSettings("", frozenset({HOST}))
    with pytest.raises(ConfigError, match="empty"):
        GateSettings(SECRET, frozenset({HOST}), password="")
    shown = repr(make_gate(password=PASSWORD).settings)
    assert SECRET not in shown
    assert PASSWORD not in shown


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
    assert name == ("__Host-agcd_session_8000" if secure else "agcd_session_8000")
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
    own = logged_in(gate)["cookie"]
    for cookies in (f"agcd_session_8000=theirs; {own}", f"{own}; agcd_session_8000=theirs", f"a=b;{own};c"):
        assert call(gate, "GET", "/", {"host": HOST, "cookie": cookies}).status == 200
    assert call(gate, "GET", "/", [("host", HOST), ("cookie", "a=b"), ("cookie", own)]).status == 200
    value = own.partition("=")[2]
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


def by_form(gate: Gate, secret: str, client: str = "127.0.0.1") -> Call:
    return call(gate, "POST", "/login", FORM, chunks=(f"secret={secret}".encode(),), client=client)


def by_link(gate: Gate, secret: str, client: str = "127.0.0.1") -> Call:
    return call(gate, "GET", f"/login?token={secret}", {"host": HOST}, client=client)


def by_bearer(gate: Gate, secret: str, client: str = "127.0.0.1") -> Call:
    return call(gate, "GET", "/", {"host": HOST, "authorization": f"Bearer {secret}"}, client=client)


GUESSING = [by_form, by_bearer]
Way = Callable[..., Call]


@pytest.mark.parametrize("way", GUESSING)
def test_ten_wrong_guesses_close_the_door_to_passwords_until_the_minute_is_over(way: Way) -> None:
    now = [100.0]
    gate = make_gate(clock=lambda: now[0], password=PASSWORD)
    session = logged_in(gate)
    assert [way(gate, "wrong").status for _ in range(11)] == [401] * 10 + [429]
    now[0] = 159.5
    for other in GUESSING:
        answer = other(gate, PASSWORD)
        assert (answer.status, answer.answer_headers["retry-after"]) == (429, "1")
    assert call(gate, "GET", "/", session).status == 200, "who is in stays in"
    now[0] = 160.0
    assert way(gate, PASSWORD).status == 200


@pytest.mark.parametrize("way", GUESSING)
def test_no_number_of_wrong_guesses_locks_out_the_right_token(way: Way) -> None:
    gate = make_gate()
    assert [way(gate, "wrong").status for _ in range(30)][-1] == 429
    assert [each(gate, SECRET).status for each in (by_form, by_link, by_bearer)] == [200] * 3


def test_a_site_that_opens_wrong_links_in_a_browser_does_not_lock_its_owner_out() -> None:
    gate = make_gate(password=PASSWORD)
    assert {by_link(gate, "wrong").status for _ in range(30)} == {401}
    assert by_form(gate, PASSWORD).status == 200


def test_guesses_from_one_address_do_not_hold_up_another() -> None:
    gate = make_gate(password=PASSWORD)
    for _ in range(20):
        by_form(gate, "wrong", "192.0.2.7")
    assert by_form(gate, PASSWORD, "192.0.2.7").status == 429
    assert by_form(gate, PASSWORD, "192.0.2.8").status == 200


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("2001:db8::1", "2001:db8::ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.7", "192.0.2.7", True),
        ("::ffff:192.0.2.7", "::ffff:192.0.2.8", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("no address", "no address", True),
    ],
)
def test_a_network_of_ipv6_counts_as_one_address(one: str, other: str, together: bool) -> None:
    throttle = Throttle(lambda: 0.0, limit=2)
    assert [throttle.guess(one) for _ in range(3)] == [0, 0, 60]
    assert bool(throttle.guess(other)) is together


def test_addresses_are_not_remembered_without_end() -> None:
    throttle = Throttle(lambda: 0.0, limit=1)
    for number in range(MAX_ADDRESSES + 1):
        assert throttle.guess(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}") == 0
    assert throttle.guess("10.0.0.0") == 0, "the first of them was forgotten"
    assert throttle.guess("10.0.39.16") == 60


def test_right_passwords_and_old_cookies_do_not_count_as_guesses() -> None:
    gate = make_gate(password=PASSWORD)
    for _ in range(30):
        assert by_form(gate, PASSWORD).status == 200
        assert call(gate, "GET", "/", {"host": HOST, "cookie": "agcd_session_8000=old"}).status == 401
    assert by_bearer(gate, PASSWORD).status == 200


def test_guesses_spread_over_more_than_a_minute_are_let_through() -> None:
    now = [0.0]
    gate = make_gate(clock=lambda: now[0])
    for _ in range(40):
        assert by_bearer(gate, "wrong").status == 401
        now[0] += 7.0


# ----------------------------------------------------------------------------------------------- sessions, logout


def cookie(gate: Gate, **headers: str) -> dict[str, str]:
    """The headers of our page in a browser that logs in."""
    return {**logged_in(gate), "origin": ORIGIN, **headers}


def test_every_login_is_a_session_of_its_own_and_a_logout_ends_that_one() -> None:
    gate = make_gate()
    one, other = cookie(gate), cookie(gate)
    assert one["cookie"] != other["cookie"]
    answer = call(gate, "POST", "/logout", one)
    assert (answer.status, b"You are logged out" in answer.body) == (200, True)
    assert "max-age=0" in answer.answer_headers["set-cookie"].lower()
    assert call(gate, "GET", "/", one).status == 401
    assert call(gate, "GET", "/", other).status == 200


def test_a_logout_comes_from_our_page_alone() -> None:
    gate = make_gate()
    session = logged_in(gate)
    for headers in ({}, {"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}):
        assert call(gate, "POST", "/logout", {**session, **headers}).status == 403
    for method in ("GET", "PUT", "DELETE"):
        assert call(gate, method, "/logout", {**session, "origin": ORIGIN}).status == 405
    assert call(gate, "GET", "/", session).status == 200


def test_who_logs_in_again_leaves_no_session_behind() -> None:
    gate = make_gate()
    before = logged_in(gate)
    again = call(gate, "GET", f"/login?token={SECRET}", before)
    assert again.status == 200
    assert call(gate, "GET", "/", before).status == 401


def test_a_session_ends_when_nobody_used_it_for_long_and_after_a_week_in_any_case() -> None:
    now = [0.0]
    gate = make_gate(clock=lambda: now[0])
    idle, used = logged_in(gate), logged_in(gate)
    now[0] = IDLE_SECONDS - 1
    assert call(gate, "GET", "/", used).status == 200
    now[0] = IDLE_SECONDS + 1
    assert call(gate, "GET", "/", idle).status == 401
    while now[0] < LONGEST_SECONDS - IDLE_SECONDS:
        now[0] += IDLE_SECONDS - 3
        assert call(gate, "GET", "/", used).status == 200
    now[0] = LONGEST_SECONDS
    assert call(gate, "GET", "/", used).status == 401


def test_only_so_many_sessions_are_kept_and_the_one_idle_for_longest_goes_first() -> None:
    now = [0.0]
    gate = make_gate(clock=lambda: now[0])
    sessions = []
    for _ in range(PER_PERSON):
        now[0] += 1
        sessions.append(logged_in(gate))
    now[0] += 1
    assert call(gate, "GET", "/", sessions[0]).status == 200
    newest = logged_in(gate)
    assert [call(gate, "GET", "/", each).status for each in (sessions[0], sessions[1], newest)] == [200, 401, 200]


# ----------------------------------------------------------------------------------------------------- templates


def test_templates_escape_values_and_miss_none() -> None:
    template = ENVIRONMENT.from_string("<p title='{{ name }}'>{{ name }}</p>")
    assert "<script>" not in template.render(name="'><script>alert(1)</script>")
    with pytest.raises(UndefinedError):
        template.render()
    assert "&lt;script&gt;" in render("login.html.j2", error="<script>", note="", asks_name=False)
