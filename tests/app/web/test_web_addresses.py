"""Printed links work, by https and behind a proxy too, and the server listens only where it is meant to."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.client import HTTPConnection, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
import trustme

from agcd.app.web import addresses
from agcd.app.web.addresses import Address, allowed_hosts, own_names
from agcd.app.web.people import Role, add_person, remove_person
from agcd.app.web.serve import link_lines
from agcd.errors import ConfigError
from support.projects import make_project

PASSWORD = "a-password-of-the-server"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    make_project(folder).close()
    return folder / "project"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, ssl.SSLContext]:
    """A certificate for localhost, its key, and a client that trusts it."""
    folder, authority = tmp_path_factory.mktemp("certificate"), trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    return folder / "cert.pem", folder / "key.pem", trusting


@contextmanager
def served(project: Path, *options: str, password: str | None = PASSWORD) -> Iterator[list[str]]:
    """The lines that a real server prints before it serves."""
    command = [sys.executable, "-m", "agcd.cli", "serve", str(project), "--port", "0", "--by-hand", *options]
    env = {name: value for name, value in os.environ.items() if name != "AGCD_PASSWORD"}
    env |= {"AGCD_PASSWORD": password} if password else {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            if line.startswith("Keep this window open"):
                break
            lines.append(line.strip())
        try:
            yield lines
        finally:
            process.terminate()


def links_in(lines: list[str]) -> list[str]:
    return [line.partition(": ")[2] for line in lines if ": http" in line]


def fetched(
    link: str, method: str = "GET", body: str = "", headers: dict[str, str] | None = None, trusting: object = None
) -> tuple[int, str, dict[str, str]]:
    """What the server at this machine answers to who opens ``link``, whatever name it has: status, page, headers."""
    place = urlsplit(link)
    is_ipv6 = place.hostname is not None and ":" in place.hostname
    here, port = "::1" if is_ipv6 else "127.0.0.1", place.port or 0
    if place.scheme == "https":
        assert isinstance(trusting, ssl.SSLContext)
        connection: HTTPConnection = HTTPSConnection("localhost", port, timeout=20, context=trusting)
    else:
        connection = HTTPConnection(here, port, timeout=20)
    path = place.path + (f"?{place.query}" if place.query else "")
    connection.request(method, path, body, {"Host": place.netloc, "Accept": "text/html", **(headers or {})})
    answer = connection.getresponse()
    page, found = answer.read().decode(), {name.lower(): value for name, value in answer.getheaders()}
    connection.close()
    return answer.status, page, found


FORM = {"Content-Type": "application/x-www-form-urlencoded"}
IN = urlencode({"secret": PASSWORD})


# --------------------------------------------------------------------------------------------- a link that works


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as found:
            found.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    "host", ["0.0.0.0", pytest.param("::", marks=pytest.mark.skipif(not has_ipv6(), reason="no IPv6"))]
)
def test_every_link_for_other_machines_is_answered(project: Path, host: str) -> None:
    with served(project, "--host", host, "--allow-remote", "--name", "Labels.example") as lines:
        links = links_in(lines)
        names = [urlsplit(link).hostname for link in links]
        assert names[0] == "labels.example"
        assert socket.gethostname().lower() in names
        assert set(names) >= {name.strip("[]") for name in own_names(has_ipv6=host == "::")}
        for link in links:
            status, page, _ = fetched(link)
            assert (status, 'name="secret"' in page) == (200, True), link
            assert fetched(link, "POST", IN, FORM)[0] == 200
        port = urlsplit(links[0]).port
        assert fetched(f"http://evil.example:{port}/login")[0] == 421
    assert any("unencrypted" in line for line in lines)
    assert not any("token" in line for line in lines)


def test_on_this_machine_the_link_holds_the_token_and_people_may_be_added_meanwhile(project: Path) -> None:
    with served(project, password=None) as lines:
        assert len(lines) == 1
        link = lines[0].removeprefix("Label here: ")
        assert "You are logged in" in fetched(link)[1]
        place = link.partition("?")[0]
        assert 'name="name"' not in fetched(place)[1]
        password = add_person(project, "ann", Role.LABEL)
        assert 'name="name"' in fetched(place)[1]
        known = {"Authorization": f"Basic {b64encode(f'ann:{password}'.encode()).decode()}"}
        assert '<meta name="agcd-person" content="ann">' in fetched(place.replace("/login", "/grid"), headers=known)[1]
        remove_person(project, "ann")
        assert fetched(place.replace("/login", "/grid"), headers=known)[0] == 401
        wrong = link.replace("token=", "token=x")
        assert [fetched(wrong)[0] for _ in range(15)] == [401] * 15
        assert fetched(link)[0] == 200
        forged = [
            fetched(place, "POST", "secret=no", {**FORM, "X-Forwarded-For": f"192.0.2.{i}"})[0] for i in range(11)
        ]
        assert forged == [401] * 9 + [429] * 2, "without a proxy nobody is believed about where they come from"


@pytest.mark.parametrize(
    ("address", "token", "has_people", "lines"),
    [
        (Address(), "t", False, ["Label here: http://127.0.0.1:8765/login?token=t"]),
        (Address(), None, False, ["Label here: http://127.0.0.1:8765/login"]),
        (
            Address(),
            "t",
            True,
            [
                "Label here: http://127.0.0.1:8765/login?token=t",
                "Named people log in here: http://127.0.0.1:8765/login",
            ],
        ),
        (Address("::1", 80), "t", False, ["Label here: http://[::1]/login?token=t"]),
        (Address(public="https://Label.example/"), "t", True, ["Label here: https://label.example/login"]),
        (
            Address("192.0.2.7", certificate=Path("c"), names=("labels.example:443",)),
            "t",
            True,
            ["Label here: https://labels.example:443/login", "Label here: https://192.0.2.7:8765/login"],
        ),
        (
            Address("0.0.0.0", certificate=Path("c"), port=443),
            "t",
            True,
            [
                "Label here: https://lab/login",
                "Label here: https://192.0.2.9/login",
                "On this machine, without a password: https://127.0.0.1/login?token=t",
            ],
        ),
    ],
)
def test_the_token_is_told_for_this_machine_alone(
    address: Address, token: str | None, has_people: bool, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "own_names", lambda has_ipv6: ["lab", "192.0.2.9"])
    assert link_lines(address, token, has_people) == lines
    hosts = address.hosts()
    assert all(urlsplit(link).netloc in hosts for link in address.links())


def test_a_machine_without_network_or_name_has_links_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "_seen_from", lambda family, there: None)
    monkeypatch.setattr(socket, "gethostname", lambda: "localhost")
    assert own_names(has_ipv6=True) == []
    address = Address("0.0.0.0", allow_remote=True)
    assert address.local_link() == "http://127.0.0.1:8765"
    assert all(urlsplit(link).netloc in address.hosts() for link in address.links())


# ---------------------------------------------------------------------------------------------------- host names


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "[::1]", "LOCALHOST"])
def test_the_loopback_goes_by_three_names(host: str) -> None:
    names = {"127.0.0.1:8000", "localhost:8000", "[::1]:8000"}
    assert allowed_hosts(host, 8000) == names
    assert allowed_hosts(host, 80) == {"127.0.0.1:80", "localhost:80", "[::1]:80", "127.0.0.1", "localhost", "[::1]"}


def test_another_address_goes_by_itself_and_by_the_names_given() -> None:
    assert allowed_hosts("192.0.2.7", 8000) == {"192.0.2.7:8000"}
    assert allowed_hosts("2001:DB8::7", 8000) == {"[2001:db8::7]:8000"}
    given = allowed_hosts("192.0.2.7", 8000, ["Labels.example", "labels.example:443"])
    assert given == {"192.0.2.7:8000", "labels.example", "labels.example:8000", "labels.example:443"}
    assert allowed_hosts("0.0.0.0", 8000) == allowed_hosts("127.0.0.1", 8000), "all addresses include the loopback"


def test_a_public_address_is_the_only_name_behind_a_proxy() -> None:
    assert Address(public="https://Label.example.org").hosts() == {"label.example.org", "label.example.org:443"}
    assert Address(public="http://label.example:8080/").hosts() == {"label.example:8080"}
    assert Address(public="https://label.example:443").hosts() == {"label.example", "label.example:443"}


# ------------------------------------------------------------------------------------------- who may be let in there


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "localhost", "::1"])
def test_this_machine_needs_no_password_of_the_user(host: str) -> None:
    address = Address(host)
    address.check(has_people=False, password=None)
    assert not address.is_remote


ELSEWHERE = ["0.0.0.0", "::", "", "192.0.2.7", "labels.example", "127.1", "localhost.evil.example"]


@pytest.mark.parametrize("host", ELSEWHERE)
@pytest.mark.parametrize(
    ("allow_remote", "password", "words"),
    [
        (False, None, "--allow-remote"),
        (False, "long-enough-password", "--allow-remote"),
        (True, None, "needs named people"),
        (True, "", "needs named people"),
        (True, "elevenchars", "this one has 11"),
    ],
)
def test_other_machines_need_a_flag_and_people_or_a_password(
    host: str, allow_remote: bool, password: str | None, words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        Address(host, allow_remote=allow_remote).check(has_people=False, password=password)
    assert str(caught.value).endswith(".")
    Address(host, allow_remote=True).check(has_people=False, password="twelve-chars")
    Address(host, allow_remote=True).check(has_people=True, password=None)


def test_a_short_password_is_refused_on_this_machine_too() -> None:
    with pytest.raises(ConfigError, match="this one has 1"):
        Address().check(has_people=False, password="x")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"public": "label.example.org"}, "is not an address such as"),
        ({"public": "ftp://label.example.org"}, "is not an address such as"),
        ({"public": "https://label.example.org/agcd"}, "is not an address such as"),
        ({"public": "https://ann@label.example.org"}, "is not an address such as"),
        ({"public": "https://[::1"}, "is not an address such as"),
        ({"public": "https://"}, "is not an address such as"),
        ({"names": ("https://label.example.org",)}, "--name"),
        ({"names": ("a b",)}, "--name"),
        ({"certificate": Path("cert.pem")}, "both --certificate and --key"),
        ({"key": Path("key.pem")}, "both --certificate and --key"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_starts(change: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        replace(Address(), **change).check(has_people=True, password=None)  # type: ignore[arg-type]
    assert str(caught.value).endswith(".")


def test_behind_a_proxy_people_or_a_password_are_needed_although_it_is_this_machine() -> None:
    address = Address(public="https://label.example.org")
    with pytest.raises(ConfigError, match="needs named people"):
        address.check(has_people=False, password=None)
    address.check(has_people=True, password=None)


# ---------------------------------------------------------------------------------------------------------- https


def test_by_https_the_link_and_the_cookie_are_secure(
    project: Path, certificate: tuple[Path, Path, ssl.SSLContext]
) -> None:
    cert, key, trusting = certificate
    options = ["--certificate", str(cert), "--key", str(key), "--name", "localhost"]
    with served(project, "--host", "0.0.0.0", "--allow-remote", *options) as lines:
        assert not any("unencrypted" in line for line in lines)
        links = links_in(lines)
        assert all(link.startswith("https://") for link in links)
        for link in links:
            assert fetched(link, trusting=trusting)[0] == 200
        status, _, headers = fetched(links[0], "POST", IN, FORM, trusting)
        assert status == 200
        assert headers["set-cookie"].startswith("__Host-agcd_session_")
        assert "; secure" in headers["set-cookie"].lower()
        origin = links[0].removesuffix("/login")
        cookie = headers["set-cookie"].partition(";")[0]
        page = {"Cookie": cookie, "Origin": origin}
        assert fetched(f"{origin}/grid", headers=page, trusting=trusting)[0] == 200
        page["Origin"] = origin.replace("https", "http")
        assert fetched(f"{origin}/grid", headers=page, trusting=trusting)[0] == 403


@pytest.mark.parametrize("fault", ["missing", "swapped", "empty", "another", "folder", "protected"])
def test_wrong_certificate_files_are_one_sentence(
    tmp_path: Path, certificate: tuple[Path, Path, ssl.SSLContext], fault: str
) -> None:
    cert, key, _ = certificate
    (tmp_path / "empty.pem").touch()
    trustme.CA().issue_cert("other.example").private_key_pem.write_to_path(tmp_path / "other.pem")
    protected = (cert, tmp_path / "protected.pem")
    if fault == "protected":
        command = ["openssl", "pkey", "-in", str(key), "-aes128", "-passout", "pass:secret", "-out", str(protected[1])]
        subprocess.run(command, check=True, capture_output=True)
    pairs = {
        "missing": (cert, tmp_path / "nowhere.pem"),
        "swapped": (key, cert),
        "empty": (tmp_path / "empty.pem", key),
        "another": (cert, tmp_path / "other.pem"),
        "folder": (tmp_path, key),
        "protected": protected,
    }
    with pytest.raises(ConfigError) as caught:
        Address(certificate=pairs[fault][0], key=pairs[fault][1]).check(has_people=False, password=None)
    told = str(caught.value)
    assert told.endswith(".")
    words = {"missing": "cannot be read", "folder": "cannot be read", "protected": "protected by a password"}
    assert words.get(fault, "are not a certificate and its key") in told


# --------------------------------------------------------------------------------------------------- behind a proxy


@contextmanager
def proxied(target: int) -> Iterator[int]:
    """A small reverse proxy on this machine: it keeps the Host and says where a request comes from."""

    class Proxy(BaseHTTPRequestHandler):
        def do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            # Tests say by a header of their own which machine they are; a real proxy sees that.
            forwarded = [self.headers.get("X-Forwarded-For"), self.headers.get("X-Test-From", "192.0.2.1")]
            headers = {name: value for name, value in self.headers.items() if name.lower() != "x-forwarded-for"}
            headers["X-Forwarded-For"] = ", ".join(each for each in forwarded if each)
            inner = HTTPConnection("127.0.0.1", target, timeout=20)
            inner.request(self.command, self.path, body, {**headers, "X-Forwarded-Proto": "https"})
            answer = inner.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            inner.close()

        do_GET = do_POST = do

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_behind_a_proxy_the_public_address_counts(project: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    public = "https://label.example.org"
    with served(project, "--behind-proxy", public, "--port", str(port)) as lines, proxied(port) as proxy:
        assert lines == [f"Label here: {public}/login"]
        place, as_public = f"http://127.0.0.1:{proxy}", {"Host": "label.example.org"}
        assert fetched(f"{place}/login", headers=as_public)[0] == 200
        assert fetched(f"{place}/login")[0] == 421, "only the public name is answered"
        assert fetched(f"http://127.0.0.1:{port}/login")[0] == 421
        by_form = {**FORM, **as_public, "Origin": public}
        status, _, headers = fetched(f"{place}/login", "POST", IN, by_form)
        assert status == 200
        assert "; secure" in headers["set-cookie"].lower()
        page = {**as_public, "Cookie": headers["set-cookie"].partition(";")[0]}
        job = {**page, "Content-Type": "application/json"}
        assert fetched(f"{place}/grid", headers=page)[0] == 200
        assert fetched(f"{place}/logout", "POST", headers={**job, "Origin": "http://label.example.org"})[0] == 403
        wrong = {**by_form, "X-Test-From": "192.0.2.7"}
        assert [fetched(f"{place}/login", "POST", "secret=no", wrong)[0] for _ in range(11)] == [401] * 10 + [429]
        claimed = {**wrong, "X-Forwarded-For": "198.51.100.1"}
        assert fetched(f"{place}/login", "POST", IN, claimed)[0] == 429, (
            "what a client claims itself counts for nothing"
        )
        assert fetched(f"{place}/login", "POST", IN, {**by_form, "X-Test-From": "192.0.2.8"})[0] == 200
        assert fetched(f"{place}/logout", "POST", headers={**job, "Origin": public})[0] == 200
        assert fetched(f"{place}/grid", headers=page)[0] == 401
