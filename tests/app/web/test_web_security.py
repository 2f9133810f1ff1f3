"""What does not come from our own page goes no further, whatever the method; every answer protects the browser."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from fastapi import FastAPI, HTTPException
from starlette.types import Message

from agcd.app.web.auth import CSP
from support.asgi_client import Call, call
from support.gates import BEARER, CHANGING, FORM, HOST, JSON, METHODS, ORIGIN, SECRET, Echo, logged_in, make_gate, seen

# ------------------------------------------------------------------------------------------------------- Host


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "127.0.0.1",
        "127.0.0.1:8001",
        "localhost:8000.evil.example",
        "user@localhost:8000",
        "localhost:8000,evil.example",
        "",
    ],
)
def test_a_host_that_is_not_ours_is_misdirected_even_with_the_secret(method: str, host: str) -> None:
    gate = make_gate()
    answer = call(gate, method, "/api/v1/state", {**BEARER, "host": host})
    assert (answer.status, seen(gate)) == (421, [])
    assert answer.error.endswith(".")


@pytest.mark.parametrize("hosts", [[], [HOST, HOST], [HOST, "evil.example"]])
def test_there_must_be_exactly_one_host(hosts: list[str]) -> None:
    headers = [("authorization", f"Bearer {SECRET}"), *(("host", host) for host in hosts)]
    assert call(make_gate(), "GET", "/", headers).status == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "LocalHost:8000", "[::1]:8000"])
def test_every_spelling_of_the_loopback_is_ours(host: str) -> None:
    assert call(make_gate(), "GET", "/", {**BEARER, "host": host}).status == 200


# -------------------------------------------------------------------------------------------------- other sites


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "http://127.0.0.1:8001",
        "http://localhost:8000",
        f"http://{HOST}.evil.example",
        f"http://evil@{HOST}",
        f"{ORIGIN}/",
        HOST,
        "",
        f"ftp://{HOST}",
    ],
)
def test_an_origin_that_is_not_the_host_is_forbidden(method: str, origin: str) -> None:
    gate = make_gate()
    for headers in (BEARER, logged_in(gate), {"host": HOST}):
        assert call(gate, method, "/api/v1/state", {**headers, "origin": origin}).status == 403
    assert seen(gate) == []


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("site", ["cross-site", "same-site", "Same-Origin", "unheard-of", ""])
@pytest.mark.parametrize("target", ["/", "/api/v1/state", "/image/1", "/static/style.css"])
def test_what_another_site_sends_is_forbidden(method: str, site: str, target: str) -> None:
    gate = make_gate()
    fetched = {"sec-fetch-site": site, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    for headers in (BEARER, logged_in(gate)):
        assert call(gate, method, target, {**headers, **fetched}).status == 403
    assert seen(gate) == []


@pytest.mark.parametrize("name", ["origin", "sec-fetch-site"])
def test_headers_that_vouch_for_a_sender_count_only_once(name: str) -> None:
    gate = make_gate()
    value = {"origin": ORIGIN, "sec-fetch-site": "same-origin"}[name]
    headers = [*logged_in(gate).items(), (name, value), (name, value)]
    assert call(gate, "POST", "/api/v1/x", headers).status == 403


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("mode", ["navigate", "no-cors", "cors"])
def test_the_address_bar_may_only_visit(method: str, mode: str) -> None:
    gate = make_gate()
    headers = {**logged_in(gate), "sec-fetch-site": "none", "sec-fetch-mode": mode}
    is_visit = method in ("GET", "HEAD") and mode == "navigate"
    assert call(gate, method, "/", headers).status == (200 if is_visit else 403)


@pytest.mark.parametrize("method", CHANGING)
@pytest.mark.parametrize(
    ("proof", "status"),
    [
        ({}, 403),
        ({"origin": ORIGIN}, 200),
        ({"origin": f"https://{HOST}"}, 200),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "same-origin", "origin": ORIGIN}, 200),
        ({"sec-fetch-site": "same-origin", "origin": "null"}, 200),  # a form on a page with no-referrer
        ({"sec-fetch-site": "same-origin", "origin": "http://evil.example"}, 403),
    ],
)
def test_a_change_by_cookie_must_come_from_our_page(method: str, proof: dict[str, str], status: int) -> None:
    gate = make_gate()
    assert call(gate, method, "/api/v1/answers", {**logged_in(gate), **proof}).status == status
    assert len(seen(gate)) == (status == 200)


@pytest.mark.parametrize("method", METHODS)
def test_where_browsers_come_by_https_a_page_that_came_by_http_is_another_site(method: str) -> None:
    gate = make_gate(secure=True)
    assert call(gate, method, "/api/v1/state", {**BEARER, "origin": ORIGIN}).status == 403
    assert seen(gate) == []
    assert call(gate, "POST", "/api/v1/answers", {**logged_in(gate), "origin": f"https://{HOST}"}).status == 200


@pytest.mark.parametrize("method", CHANGING)
def test_a_change_by_bearer_needs_no_origin(method: str) -> None:
    assert call(make_gate(), method, "/api/v1/answers", BEARER).status == 200


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_link_on_another_site_may_lead_to_the_login(method: str) -> None:
    click = {"host": HOST, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert call(make_gate(), method, f"/login?token={SECRET}", click).status == 200
    for change in ({"sec-fetch-dest": "iframe"}, {"sec-fetch-mode": "no-cors"}, {"sec-fetch-dest": "image"}):
        assert call(make_gate(), method, f"/login?token={SECRET}", {**click, **change}).status == 403


def test_another_site_can_neither_post_a_login_nor_use_up_the_guesses() -> None:
    gate = make_gate()
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}):
        for _ in range(12):
            assert call(gate, "POST", "/login", {**FORM, **headers}, chunks=(b"secret=guess",)).status == 403
    assert call(gate, "POST", "/login", FORM, chunks=(f"secret={SECRET}".encode(),)).status == 200


@pytest.mark.parametrize("target", ["/", "/api/v1/answers", "/login", "/static/style.css", "*"])
def test_strangers_who_ask_for_options_hear_no_word_on_cors(target: str) -> None:
    gate = make_gate()
    asking = {"access-control-request-method": "DELETE", "access-control-request-private-network": "true"}
    for headers, status in (({}, 405 if target == "/login" else 401), ({"origin": "http://evil.example"}, 403)):
        answer = call(gate, "OPTIONS", target, {"host": HOST, **headers, **asking})
        assert answer.status == status
        assert not [name for name in answer.answer_headers if name.startswith("access-control")]
    assert seen(gate) == []


def test_permission_for_other_sites_does_not_pass_the_gate() -> None:
    gate = make_gate(Echo(((b"Access-Control-Allow-Origin", b"*"), (b"access-control-allow-credentials", b"true"))))
    answer = call(gate, "GET", "/", BEARER)
    assert answer.status == 200
    assert not [name for name in answer.answer_headers if name.startswith("access-control")]


@pytest.mark.parametrize("headers", [{}, {"authorization": f"Bearer {SECRET}", "origin": ORIGIN}])
def test_websockets_are_closed_before_they_open(headers: dict[str, str]) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(dict(message))

    pairs = [(name.encode(), value.encode()) for name, value in {"host": HOST, **headers}.items()]
    gate = make_gate()
    asyncio.run(gate({"type": "websocket", "path": "/", "headers": pairs}, receive, send))
    assert [message["type"] for message in sent] == ["websocket.close"]
    assert seen(gate) == []


def test_starting_and_stopping_passes_the_gate() -> None:
    sent: list[str] = []

    async def receive() -> Message:
        return {"type": "lifespan.startup"}

    async def send(message: Message) -> None:
        sent.append(message["type"])

    asyncio.run(make_gate()({"type": "lifespan"}, receive, send))
    assert sent == ["lifespan.startup.complete"]


# ------------------------------------------------------------------------------------------------------- headers


def failing_app() -> FastAPI:
    app = FastAPI()

    @app.get("/gone")
    async def gone() -> None:
        raise HTTPException(410)

    @app.get("/broken")
    async def broken() -> None:
        raise RuntimeError("ours")

    return app


@pytest.mark.parametrize(
    ("method", "target", "headers", "status"),
    [
        ("GET", "/", BEARER, 404),
        ("GET", "/gone", BEARER, 410),
        ("GET", "/broken", BEARER, 500),
        ("GET", "/login", {"host": HOST}, 200),
        ("GET", "/", {"host": HOST, "accept": "text/html"}, 401),
        ("GET", "/", {"host": HOST}, 401),
        ("GET", "/", {"host": "evil.example"}, 421),
        ("GET", "/", {"host": HOST, "origin": "http://evil.example"}, 403),
        ("GET", "/..", BEARER, 404),
        ("OPTIONS", "/", {"host": HOST}, 401),
        ("POST", "/api/v1/x", {**JSON, "content-length": "99999999"}, 413),
        ("POST", "/api/v1/x", {**BEARER, "content-length": "2"}, 415),
    ],
)
def test_every_answer_carries_the_protecting_headers(
    method: str, target: str, headers: dict[str, str], status: int
) -> None:
    request = Call(method, target, headers)
    with contextlib.suppress(RuntimeError):  # the route's own, told to the server after it was answered
        asyncio.run(request.send(make_gate(failing_app())))
    assert request.status == status
    answered = dict(request.answer_headers)
    assert answered["content-security-policy"] == CSP
    assert "unsafe" not in CSP
    assert answered["x-content-type-options"] == "nosniff"
    assert answered["x-frame-options"] == "DENY"
    assert answered["cross-origin-opener-policy"] == "same-origin"
    assert answered["cross-origin-resource-policy"] == "same-origin"
    assert answered["permissions-policy"] == "camera=(), microphone=(), geolocation=()"
    assert answered["cache-control"] == "no-store"
    # The login form alone tells its own server where it was: with no-referrer its origin would be "null".
    is_form = answered["content-type"].startswith("text/html")
    assert answered["referrer-policy"] == ("same-origin" if is_form else "no-referrer")
    assert "server" not in answered


def test_an_application_may_let_browsers_keep_things_but_not_weaken_the_policy() -> None:
    app = Echo(((b"Cache-Control", b"private, max-age=60"), (b"content-security-policy", b"default-src *")))
    answer = call(make_gate(app), "GET", "/", BEARER)
    assert answer.answer_headers.getlist("cache-control") == ["private, max-age=60"]
    assert answer.answer_headers.getlist("content-security-policy") == [CSP]


def test_single_paths_may_have_a_policy_of_their_own() -> None:
    gate = make_gate(csp={"/map": "default-src 'self'"})
    policies = [call(gate, "GET", path, BEARER).answer_headers["content-security-policy"] for path in ("/map", "/map/")]
    assert policies == ["default-src 'self'", CSP]
