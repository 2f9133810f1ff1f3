"""The shipped configurations of nginx and Caddy, by the real programs, in front of a real server."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import trustme
from playwright.sync_api import sync_playwright

from agcd.app.web.people import Role, add_person
from agcd.client import ApiError, Client
from support.browsers import ARGUMENTS, chromium
from support.killing import wait_for
from support.servers import trained_project

CONFIGURATIONS = Path(__file__).parents[2] / "packaging" / "proxy"
NAME = "label.example.org"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Proxied:
    """A page behind a proxy, as somebody elsewhere meets it: by its name, at ports that stand for 80 and 443."""

    http_port: int
    https_port: int
    context: ssl.SSLContext
    password: str

    def request(self, method: str, path: str, body: bytes = b"", *, name: str = NAME, **headers: str) -> Any:
        """The answer, read; headers by name with underscores."""
        own = {key.replace("_", "-"): value for key, value in headers.items()} | {"Host": name}
        with socket.create_connection(("127.0.0.1", self.https_port), 30) as plain:
            connection = http.client.HTTPConnection(NAME)
            connection.sock = self.context.wrap_socket(plain, server_hostname=NAME)
            try:
                connection.request(method, path, body, own)
                response = connection.getresponse()
                response.body = response.read()  # type: ignore[attr-defined]
                return response
            finally:
                connection.close()

    def log_in(self, password: str, **headers: str) -> Any:
        form = urlencode({"name": "ann", "secret": password}).encode()
        kind = {"Content_Type": "application/x-www-form-urlencoded", "Origin": f"https://{NAME}"}
        return self.request("POST", "/login", form, **kind, **headers)


@contextmanager
def running(*words: str | Path, env: dict[str, str] | None = None) -> Iterator[None]:
    process = subprocess.Popen([str(word) for word in words], env=os.environ | (env or {}), stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@contextmanager
def nginx(folder: Path, server_port: int, ports: tuple[int, int]) -> Iterator[None]:
    """The shipped file with other ports and paths, in the frame that a distribution's nginx.conf is."""
    text = (CONFIGURATIONS / "nginx.conf").read_text()
    for old, new in (("80", ports[0]), ("443", ports[1])):
        text = re.sub(rf"listen {old}\b", f"listen 127.0.0.1:{new}", text)
        text = re.sub(rf"    listen \[::\]:{old}.*\n", "", text)
    text = text.replace("/etc/ssl/agcd", str(folder)).replace("127.0.0.1:8765", f"127.0.0.1:{server_port}")
    (folder / "page.conf").write_text(text)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    whole = f"pid {folder}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{paths}include {folder}/page.conf;\n}}\n"
    (folder / "nginx.conf").write_text(whole)
    words = ["nginx", "-p", str(folder), "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf"]
    subprocess.run([*words, "-t"], check=True, capture_output=True)
    with running(*words, "-g", "daemon off;"):
        yield


@contextmanager
def caddy(folder: Path, server_port: int, ports: tuple[int, int]) -> Iterator[None]:
    """The shipped file whole, with a certificate of ours in place of one that Caddy would fetch."""
    shipped = (CONFIGURATIONS / "Caddyfile").read_text()
    with_own = shipped.replace("{$AGCD_HOST} {", f"{{$AGCD_HOST}} {{\n\ttls {folder}/cert.pem {folder}/key.pem", 1)
    frame = f"{{\n\tadmin off\n\thttp_port {ports[0]}\n\thttps_port {ports[1]}\n\tskip_install_trust\n}}\n"
    (folder / "Caddyfile").write_text(frame + with_own)
    env = {"AGCD_HOST": NAME, "AGCD_SERVER": f"127.0.0.1:{server_port}", "XDG_DATA_HOME": str(folder)}
    env |= {"XDG_CONFIG_HOME": str(folder), "HOME": str(folder)}
    with running("caddy", "run", "--adapter", "caddyfile", "--config", folder / "Caddyfile", env=env):
        yield


@pytest.fixture(scope="module", params=[nginx, caddy], ids=["nginx", "caddy"])
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    proxy = request.param
    if shutil.which(proxy.__name__) is None:
        pytest.skip(f"no {proxy.__name__} here (Debian's package has that name)")
    folder = tmp_path_factory.mktemp(proxy.__name__)
    authority = trustme.CA()
    own = authority.issue_cert(NAME)
    own.private_key_pem.write_to_path(folder / "key.pem")
    for part in own.cert_chain_pems:
        part.write_to_path(folder / "cert.pem", append=True)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    project, port, ports = trained_project(folder), free_port(), (free_port(), free_port())
    password = add_person(project, "ann", Role.LABEL)
    serve = [sys.executable, "-m", "agcd.cli", "serve", str(project), "--port", str(port), "--by-hand"]
    with running(*serve, "--behind-proxy", f"https://{NAME}"), proxy(folder, port, ports):
        wait_for("the server", lambda: answers(port), 0.1)
        wait_for("the proxy", lambda: answers(ports[1]), 0.1)
        yield Proxied(*ports, context, password)


def test_plain_http_leads_to_https(page: Proxied) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", page.http_port, timeout=30)
    connection.request("GET", "/label?a=b", headers={"Host": NAME})
    response = connection.getresponse()
    connection.close()
    assert response.status == 308
    assert re.fullmatch(rf"https://{re.escape(NAME)}(:{page.https_port})?/label\?a=b", response.headers["Location"])


def test_a_person_logs_in_and_sees_the_page(page: Proxied) -> None:
    assert page.request("GET", "/label", Accept="text/html").status == 401
    welcome = page.log_in(page.password)
    (cookie,) = SimpleCookie(welcome.headers["Set-Cookie"]).values()
    assert welcome.status in (200, 303)
    assert cookie.key.startswith("__Host-")
    assert (cookie["secure"], cookie["httponly"], cookie["samesite"].lower()) == (True, True, "strict")
    kept = f"{cookie.key}={cookie.value}"
    shown = page.request("GET", "/label", Cookie=kept, Accept="text/html")
    assert shown.status == 200
    assert "frame-ancestors 'none'" in shown.headers["Content-Security-Policy"]
    assert page.request("GET", "/static/style.css").status == 200
    assert page.request("GET", "/image/3?size=160", Cookie=kept).body.startswith(b"\xff\xd8")
    body, kind = b'{"uid": "uid-of-a-test", "who": "ann"}', "application/json"
    foreign = page.request("POST", "/api/v1/undo", body, Cookie=kept, Content_Type=kind, Origin="https://evil.example")
    assert foreign.status == 403


def test_a_browser_logs_in_and_answers(page: Proxied) -> None:
    """It keeps the cookie, runs the page's scripts under its policy, and its Origin is the public name."""
    way = f"--host-resolver-rules=MAP {NAME}:443 127.0.0.1:{page.https_port}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=[*ARGUMENTS, way])
        tab = browser.new_context(ignore_https_errors=True).new_page()
        complaints: list[str] = []
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.goto(f"https://{NAME}/login")
        tab.fill("input[name=name]", "ann")
        tab.fill("input[name=secret]", page.password)
        tab.keyboard.press("Enter")
        tab.wait_for_url(f"https://{NAME}/label")
        with tab.expect_response(lambda answer: answer.url.endswith("/api/v1/answers")) as stored:
            tab.wait_for_selector("img[src*='/image/']")
            tab.keyboard.press("1")
        assert stored.value.status == 200
        assert tab.url == f"https://{NAME}/label"
        assert not complaints
        browser.close()


def test_the_python_client_works_through_it(page: Proxied, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.create_connection
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: connect(("127.0.0.1", page.https_port), 30))
    with Client(f"https://{NAME}", who="ann", password=page.password, context=page.context) as ann:
        card = ann.question(live=False)
        assert card.row is not None
        assert ann.answer(card.row, "kiwi").stored == {"label": 1}
        assert ann.download("labels.csv").startswith(b"row,path")
        ann.undo()
        with pytest.raises(ApiError) as refused:
            ann.look(1000)
    assert refused.value.status == 404


def test_large_bodies_and_other_names_are_refused(page: Proxied) -> None:
    assert page.request("POST", "/api/v1/undo", b" " * 5_000_000, Content_Type="application/json").status == 413
    stranger = page.request("GET", "/login", name="other.example.org")
    assert stranger.status == 421 or not stranger.body, "nobody may lead another name here"


def test_guesses_are_counted_whatever_the_client_claims(page: Proxied) -> None:
    """Last, as it closes the door to passwords for a minute."""
    statuses = [page.log_in(f"wrong {n}", X_Forwarded_For=f"203.0.113.{n}").status for n in range(12)]
    assert statuses[0] == 401
    assert statuses[-1] == 429
    began = time.monotonic()
    assert page.request("GET", "/login").status == 200
    assert time.monotonic() - began < 10
