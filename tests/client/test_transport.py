"""Requests that are lost, refused or have to wait, against a server that does exactly what it is told."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agcd.client import ApiError, Client, NoAnswer
from agcd.client.transport import Address
from agcd.errors import ConfigError

LOST = 0
"""In place of a status: the connection is closed without an answer."""
UNDONE = {"what": "1 label", "row": None, "is_repeat": False}


@dataclass
class Scripted:
    """What the server answers, one after the other, and what it heard."""

    statuses: list[int]
    headers: dict[str, str] = field(default_factory=dict)
    heard: list[tuple[str, str, bytes]] = field(default_factory=list)
    authorizations: set[str] = field(default_factory=set)
    connections: set[tuple[str, int]] = field(default_factory=set)
    port: int = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: Scripted

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.script.heard.append((self.command, self.path, body))
        self.script.authorizations.add(self.headers["Authorization"])
        self.script.connections.add(self.client_address)
        status = self.script.statuses.pop(0)
        if status == LOST:
            self.close_connection = True
            return
        answer = b'["labels.csv"]' if status == 200 else json.dumps({"error": f"It is {status}."}).encode()
        self.send_response(status)
        for name, value in {**self.script.headers, "Content-Length": str(len(answer))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def answering(*statuses: int, headers: dict[str, str] | None = None) -> Iterator[Scripted]:
    script = Scripted(list(statuses), headers or {})
    handler = type("ScriptedHandler", (Handler,), {"script": script})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        script.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield script
        server.shutdown()
        thread.join()


def client(port: int, patience: float = 5.0) -> Client:
    return Client(f"http://127.0.0.1:{port}", token="secret", who="ann", patience=patience, timeout=5)


@pytest.mark.parametrize("status", [LOST, 408, 429, 502, 503, 504])
def test_a_request_is_sent_again_as_it_was(status: int) -> None:
    with (
        answering(status, status, 409) as script,
        client(script.port) as page,
        pytest.raises(ApiError, match=r"^It is 409\.$"),
    ):
        page.undo()
    assert len(script.heard) == 3
    assert len(set(script.heard)) == 1, "the same uid, so that it counts once"
    assert script.authorizations == {"Bearer secret"}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422])
def test_what_will_not_change_is_not_sent_again(status: int) -> None:
    with (
        answering(status) as script,
        client(script.port) as page,
        pytest.raises(ApiError, match=f"It is {status}") as refused,
    ):
        page.files()
    assert (refused.value.status, len(script.heard)) == (status, 1)


@pytest.mark.parametrize("status", [LOST, 502, 504])
def test_work_is_not_started_twice(status: int) -> None:
    with answering(status) as script, client(script.port) as page, pytest.raises((NoAnswer, ApiError)):
        page.start_job("train")
    assert len(script.heard) == 1


def test_work_that_was_turned_away_is_started_again() -> None:
    with answering(503, 409) as script, client(script.port) as page, pytest.raises(ApiError, match="It is 409"):
        page.start_job("train")
    assert len(script.heard) == 2


def test_patience_ends() -> None:
    with (
        answering(*[503] * 50) as script,
        client(script.port, patience=0.5) as page,
        pytest.raises(ApiError, match="It is 503"),
    ):
        page.files()
    assert 2 <= len(script.heard) < 10


def test_a_wait_that_the_page_asks_for_is_kept_or_refused() -> None:
    with (
        answering(429, headers={"Retry-After": "60"}) as script,
        client(script.port) as page,
        pytest.raises(ApiError, match="It is 429"),
    ):
        page.files()
    with answering(429, 200, headers={"Retry-After": "1"}) as script, client(script.port) as page:
        assert page.files() == ["labels.csv"]


def test_requests_share_one_connection() -> None:
    with answering(*[200] * 5) as script, client(script.port) as page:
        for _ in range(5):
            page.files()
    assert len(script.connections) == 1


def test_threads_may_share_a_client() -> None:
    with answering(*[200] * 40) as script, client(script.port) as page:
        threads = [threading.Thread(target=lambda: [page.files() for _ in range(5)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (len(script.heard), len(script.connections)) == (40, 1)


def test_nobody_there_is_one_sentence() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(NoAnswer, match=rf"^Nobody answers at http://127.0.0.1:{port} \(Connection refused\)\.$"):
        client(port, patience=0.3).files()


@pytest.mark.parametrize(
    ("text", "address", "token"),
    [
        ("http://127.0.0.1:8765", "http://127.0.0.1:8765", None),
        ("http://127.0.0.1:8765/login?token=a-b_c", "http://127.0.0.1:8765", "a-b_c"),
        ("https://Label.example.org/", "https://label.example.org", None),
        ("http://[::1]:80/login", "http://[::1]:80", None),
    ],
)
def test_an_address_or_the_printed_link_will_do(text: str, address: str, token: str | None) -> None:
    found = Address.of(text)
    assert (str(found), found.token) == (address, token)
    assert "a-b_c" not in repr(found)


@pytest.mark.parametrize("text", ["", "127.0.0.1:8765", "ftp://a", "http://", "http://a:b", "http://a/page", "fruit"])
def test_what_is_no_address_is_one_sentence(text: str) -> None:
    with pytest.raises(ConfigError, match=r"is not the address of a page, such as http://127\.0\.0\.1:8765\.$"):
        Client(text, token="secret")


def test_a_secret_is_needed_and_not_shown() -> None:
    with pytest.raises(ConfigError, match="wants a token"):
        Client("http://127.0.0.1:8765")
    assert "secret" not in repr(client(1))


def test_a_file_is_whole_or_absent(tmp_path: Path) -> None:
    with answering(200, LOST) as script, client(script.port, patience=0.0) as page:
        assert page.save("labels.csv", tmp_path) == tmp_path / "labels.csv"
        with pytest.raises(NoAnswer):
            page.save("model.onnx", tmp_path / "m.onnx")
    assert names(tmp_path) == ["labels.csv"]


def names(folder: Path) -> Sequence[str]:
    return sorted(path.name for path in folder.iterdir())
