"""Bodies are small, and paths are plain."""

from __future__ import annotations

import pytest

from support.asgi_client import call
from support.gates import BEARER, CHANGING, FORM, HOST, JSON, METHODS, make_gate, seen

# -------------------------------------------------------------------------------------------------------- bodies


def test_a_body_passes_whole() -> None:
    answer = call(make_gate(), "POST", "/api/v1/answers", JSON, chunks=(b'{"a"', b"", b": 1}"))
    assert answer.body == b'{"a": 1}'


@pytest.mark.parametrize("method", METHODS)
def test_an_announced_body_that_is_too_large_is_refused_unread(method: str) -> None:
    gate = make_gate(max_body=100)
    for headers in (JSON, {"host": HOST}):
        answer = call(gate, method, "/api/v1/x", {**headers, "content-length": "101"}, chunks=(b"x" * 101,))
        assert (answer.status, answer.n_read) == (413, 0)
    assert seen(gate) == []


@pytest.mark.parametrize("method", CHANGING)
def test_an_unannounced_body_that_is_too_large_is_refused_while_it_comes(method: str) -> None:
    gate = make_gate(max_body=100)
    headers = {**JSON, "transfer-encoding": "chunked"}
    answer = call(gate, method, "/api/v1/x", headers, chunks=(b"x" * 60,) * 1000)
    assert (answer.status, answer.n_read, seen(gate)) == (413, 2, [])
    assert call(gate, method, "/api/v1/x", headers, chunks=(b"x" * 50,) * 2).status == 200


def test_a_stranger_does_not_get_a_body_read() -> None:
    answer = call(make_gate(), "POST", "/api/v1/x", {"host": HOST, "content-type": "application/json"}, chunks=(b"{}",))
    assert (answer.status, answer.n_read) == (401, 0)


@pytest.mark.parametrize("lengths", [["2", "2"], ["2", "3"], ["-1"], ["two"], ["2, 2"], [""], ["²"]])
def test_a_length_that_is_not_one_number_is_a_bad_request(lengths: list[str]) -> None:
    headers = [*JSON.items(), *(("content-length", length) for length in lengths)]
    assert call(make_gate(), "POST", "/api/v1/x", headers, chunks=(b"{}",)).status == 400


@pytest.mark.parametrize("target", ["/api/v1/x", "/login"])
def test_a_body_that_never_ends_is_given_up(target: str) -> None:
    headers = FORM if target == "/login" else JSON
    answer = call(make_gate(body_seconds=0.05), "POST", target, headers, chunks=(b"{",), hangs=True)
    assert answer.status == 408


def test_a_client_that_leaves_in_the_middle_changes_nothing() -> None:
    gate = make_gate()
    answer = call(gate, "POST", "/api/v1/x", JSON, chunks=())
    assert (answer.messages, seen(gate)) == ([], [])


@pytest.mark.parametrize("method", CHANGING)
@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "application/jsonp"]
)
def test_the_api_takes_only_json(method: str, kind: str) -> None:
    gate = make_gate()
    for size in ({"content-length": "2"}, {"transfer-encoding": "chunked"}):
        headers = {**BEARER, "content-type": kind, **size}
        assert call(gate, method, "/api/v1/x", headers, chunks=(b"{}",)).status == 415
    assert seen(gate) == []


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8"])
def test_json_is_json_with_any_parameters(kind: str) -> None:
    headers = {**BEARER, "content-type": kind, "content-length": "2"}
    assert call(make_gate(), "POST", "/api/v1/x", headers, chunks=(b"{}",)).status == 200


@pytest.mark.parametrize("method", CHANGING)
@pytest.mark.parametrize("size", [{}, {"content-length": "0"}])
def test_an_empty_body_needs_no_type_but_must_be_empty(method: str, size: dict[str, str]) -> None:
    assert call(make_gate(), method, "/api/v1/x", {**BEARER, **size}).status == 200
    assert call(make_gate(), method, "/api/v1/x", {**BEARER, **size}, chunks=(b"{}",)).status == 413


# --------------------------------------------------------------------------------------------------------- paths


@pytest.mark.parametrize(
    "target",
    [
        "/image/../../etc/passwd",
        "/static/..",
        "/static/%2e%2e/%2e%2e/etc/passwd",
        "/static/.%2e/secret",
        "/static/%252e%252e/secret",
        "/static/%25252e%25252e/secret",
        "/static/..%2f..%2fetc",
        "/image/..\\..\\x",
        "/image/%5c%5cserver%5cshare",
        "/image/C:\\x",
        "/image/C:%255cx",
        "/image/1%00.jpg",
        "/image/1%2500",
        "/image/1%0d%0aSet-Cookie:x",
        "/image/%7f",
        "/image/%c2%85",
        "/static/style.css/../app.js",
        "/login/../api",
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE"])
def test_paths_that_climb_or_smuggle_are_not_found_even_with_the_secret(method: str, target: str) -> None:
    gate = make_gate()
    assert (call(gate, method, target, BEARER).status, seen(gate)) == (404, [])
    assert call(gate, method, target, {"host": HOST}).status == 404


@pytest.mark.parametrize(
    "target", ["/", "/image/7?size=160", "/api/v1/classes/red%20kite", "/a/%E6%84%9B", "/x/100%25"]
)
def test_ordinary_paths_pass(target: str) -> None:
    assert call(make_gate(), "GET", target, BEARER).status == 200
