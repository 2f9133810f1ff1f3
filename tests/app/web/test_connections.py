"""Connections that hold a place and send nothing: they are closed in time, and others are served meanwhile."""

from __future__ import annotations

import http.client
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from agcd.app.web.addresses import Address
from agcd.app.web.clients import client_of
from agcd.app.web.connections import Limits, Listener, OnceAMinute, limited, raise_descriptor_limit
from agcd.app.web.serve import serve
from support import TESTS
from support.projects import make_project

HALF = b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "
WHOLE = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
PATIENCE = 30.0
BIG = 64 * 2**20
"""Bytes, more than the buffers of a connection hold."""


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers at once, without reading the body; /big has a long answer."""
    if scope["type"] == "lifespan":
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(BIG // 2**20 if scope["path"] == "/big" else 0):
        await send({"type": "http.response.body", "body": bytes(2**20), "more_body": True})
    await send({"type": "http.response.body", "body": b"hello"})


@contextmanager
def listening(limits: Limits, idle_seconds: int = 30) -> Iterator[int]:
    """The port of a server that keeps ``limits``."""
    listener = Listener(socket.AF_INET)
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(
        hello, http=limited(limits), lifespan="off", timeout_keep_alive=idle_seconds, log_level="critical"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def connect(port: int, address: str = "127.0.0.1") -> socket.socket:
    """From any address of the loopback, which stand for different clients."""
    return socket.create_connection(("127.0.0.1", port), PATIENCE, (address, 0))


def status(port: int, address: str = "127.0.0.1") -> int:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE, source_address=(address, 0))
    try:
        client.request("GET", "/")
        return client.getresponse().status
    finally:
        client.close()


def is_closed(connection: socket.socket) -> bool:
    """Whether the server ends the connection, without having sent anything, before patience does."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def drip(connection: socket.socket) -> None:
    """A byte now and then."""
    for _ in range(int(PATIENCE / 0.02)):
        connection.sendall(b"G")
        time.sleep(0.02)


def whole_answer(connection: socket.socket) -> None:
    got = b""
    while not got.endswith(b"0\r\n\r\n"):
        got += connection.recv(1000)
    assert got.startswith(b"HTTP/1.1 200")


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def many(opened: ExitStack, port: int, n: int, address: str, first: bytes = b"") -> Sequence[socket.socket]:
    found = [opened.enter_context(connect(port, address)) for _ in range(n)]
    for connection in found:
        connection.sendall(first)
    return found


def test_200_half_sent_heads_are_closed_in_time_and_others_are_served_meanwhile(opened: ExitStack) -> None:
    with listening(Limits(header_seconds=0.5)) as port:
        hanging = [*many(opened, port, 150, "127.0.0.2", HALF), *many(opened, port, 50, "127.0.0.3")]
        assert [status(port) for _ in range(5)] == [200] * 5
        assert all(is_closed(connection) for connection in hanging)


def test_a_head_that_drips_has_no_more_time_than_others(opened: ExitStack) -> None:
    with listening(Limits(header_seconds=0.4)) as port:
        (slow,) = many(opened, port, 1, "127.0.0.1", HALF)
        with pytest.raises(OSError, match=r"reset|[Bb]roken pipe"):
            drip(slow)


@pytest.mark.parametrize(
    "first",
    [WHOLE, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"],
    ids=["the next head", "the rest of a body that nobody wants"],
)
def test_after_an_answer_the_next_bytes_must_come_in_time_too(opened: ExitStack, first: bytes) -> None:
    with listening(Limits(header_seconds=0.4), idle_seconds=1000) as port:
        (slow,) = many(opened, port, 1, "127.0.0.1", first)
        assert slow.recv(1000).startswith(b"HTTP/1.1 200")
        with pytest.raises(OSError, match=r"reset|[Bb]roken pipe"):
            drip(slow)


def test_an_idle_connection_may_be_used_again_until_its_time_is_over(opened: ExitStack) -> None:
    with listening(Limits(header_seconds=0.2), idle_seconds=1) as port:
        (kept,) = many(opened, port, 1, "127.0.0.1", WHOLE)
        whole_answer(kept)
        time.sleep(0.5)
        kept.sendall(WHOLE)
        whole_answer(kept)
        assert is_closed(kept)


def test_an_answer_that_nobody_takes_is_given_up(opened: ExitStack) -> None:
    with listening(Limits(read_seconds=0.3)) as port:
        (slow,) = many(opened, port, 1, "127.0.0.1", b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(1.5)
        taken = 0
        try:
            while piece := slow.recv(2**20):
                taken += len(piece)
        except ConnectionResetError:
            pass
        assert taken < BIG


def test_one_client_may_not_take_all_places(opened: ExitStack) -> None:
    with listening(Limits(per_client=5)) as port:
        hanging = many(opened, port, 5, "127.0.0.2")
        assert status(port, "127.0.0.1") == 200
        refused = connect(port, "127.0.0.2")
        assert opened.enter_context(refused).recv(1000).startswith(b"HTTP/1.1 503")
        hanging[0].close()
        _wait_for_status(port, "127.0.0.2", 200)


def _wait_for_status(port: int, address: str, wanted: int) -> None:
    until = time.monotonic() + PATIENCE
    while status(port, address) != wanted:
        assert time.monotonic() < until


def test_where_all_places_are_taken_who_has_waited_longest_makes_room(opened: ExitStack) -> None:
    with listening(Limits(in_all=20)) as port:
        hanging = [*many(opened, port, 10, "127.0.0.2", HALF), *many(opened, port, 10, "127.0.0.3", HALF)]
        assert status(port) == 200
        assert is_closed(hanging[0])
        hanging[-1].sendall(b"\r\n\r\n")
        assert hanging[-1].recv(1000).startswith(b"HTTP/1.1 200"), "the others stay"


def test_where_all_places_are_busy_a_sentence_says_so(opened: ExitStack) -> None:
    with listening(Limits(in_all=2, read_seconds=1.0)) as port:
        busy = many(opened, port, 2, "127.0.0.2", b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n")
        assert [connection.recv(12) for connection in busy] == [b"HTTP/1.1 200"] * 2
        refused = opened.enter_context(connect(port)).recv(1000)
        assert refused.startswith(b"HTTP/1.1 503")
        assert b"try again in a moment" in refused


DESCRIPTORS = """
import resource, socket, sys, uvicorn
from agcd.app.web.connections import Limits, Listener, limited
from test_connections import hello
config = uvicorn.Config(hello, http=limited(Limits()), lifespan="off", log_level="warning")
with Listener(socket.AF_INET) as listener:
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(config).run(sockets=[listener])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors are not counted there")
def test_without_descriptors_the_log_has_one_line_and_later_all_goes_on(opened: ExitStack, tmp_path: Path) -> None:
    said = tmp_path / "log"
    with said.open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", DESCRIPTORS],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=Path(__file__).parent,
            env={**os.environ, "PYTHONPATH": str(TESTS)},
        )
    assert process.stdout is not None
    with process:
        port = int(process.stdout.readline())
        hanging = many(opened, port, 200, "127.0.0.1")
        n_closed = sum(is_closed(connection) for connection in hanging[100:])
        assert n_closed == 100, "who finds no descriptor is turned away at once"
        for connection in hanging:
            connection.close()
        _wait_for_status_of_all(port)
        process.terminate()
    assert len(said.read_text().splitlines()) == 1, said.read_text()
    assert "No more files can be opened" in said.read_text()


def _wait_for_status_of_all(port: int) -> None:
    """Whoever comes before the server has noticed that the others are gone is turned away."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            assert [status(port) for _ in range(5)] == [200] * 5
            return
        except (ConnectionError, http.client.HTTPException):
            time.sleep(0.02)
    raise AssertionError("the server does not answer any more")


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors are not counted there")
def test_the_server_asks_for_as_many_descriptors_as_it_may_have() -> None:
    code = (
        "import resource\n"
        "from agcd.app.web.connections import raise_descriptor_limit\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 300))\n"
        "print(raise_descriptor_limit(), resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=TESTS)
    assert done.stdout.strip() == "300 (300, 300)"
    assert raise_descriptor_limit() == raise_descriptor_limit() > 0


def test_one_client_cannot_take_all_places_before_it_has_said_anything(
    opened: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agcd.app.web.connections.MOST_ACCEPTED", 3)
    listener = opened.enter_context(Listener(socket.AF_INET))
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    port = listener.getsockname()[1]
    held = [opened.enter_context(_accepted(listener, connect(port))) for _ in range(3)]
    with opened.enter_context(connect(port)) as refused:
        with pytest.raises(BlockingIOError):
            listener.accept()
        assert is_closed(refused)
    opened.enter_context(_accepted(listener, connect(port, "127.0.0.2")))
    held[0].close()
    opened.enter_context(_accepted(listener, connect(port)))


def _accepted(listener: Listener, client: socket.socket) -> socket.socket:
    """The server's end; the client's goes."""
    client.close()
    return listener.accept()[0]


def test_connections_leave_half_of_the_descriptors_to_the_rest() -> None:
    assert Limits.for_descriptors(300) == Limits(in_all=150, per_client=75)
    assert Limits.for_descriptors(65_536) == Limits()


def test_agcd_serve_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_project(tmp_path).close()
    ran = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda server, sockets: ran.append((server.config.http, sockets[0])))
    serve(tmp_path / "project", Address(port=0), trains_itself=False, say=lambda _: None)
    ((protocol, listener),) = ran
    listener.close()
    assert isinstance(listener, Listener)
    assert protocol.limits == Limits.for_descriptors(raise_descriptor_limit())


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:1:2:3", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("not an address", "not an address"),
    ],
)
def test_who_can_choose_among_many_addresses_is_one_client(address: str, client: str) -> None:
    assert client_of(address) == client


def test_a_warning_is_logged_once_a_minute_and_an_error_always() -> None:
    once = OnceAMinute()
    records = [logging.LogRecord("x", level, "", 0, msg, (), None) for level in (30, 40) for msg in "aba"]
    assert [once.filter(record) for record in records] == [True, True, False, True, True, True]
