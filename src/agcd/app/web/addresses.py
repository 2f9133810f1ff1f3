"""Where the server listens, by which names browsers reach it, and who may be let in there."""

from __future__ import annotations

import ipaddress
import re
import socket
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from agcd.app.web.passwords import check_password
from agcd.errors import ConfigError

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
WILDCARDS = ("0.0.0.0", "::", "")
"""Addresses that stand for all of a machine, the loopback included."""
DEFAULT_PORTS = {"http": 80, "https": 443}
_NAME = re.compile(r"([a-z0-9_.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
_ELSEWHERE = {
    socket.AF_INET: ("192.0.2.1", "10.0.0.1", "172.16.0.1", "192.168.0.1"),
    socket.AF_INET6: ("2001:db8::1", "fd00::1"),
}
"""Addresses of other machines: that from which one would speak to them is ours. Nothing is sent to them."""


@dataclass(frozen=True)
class Address:
    """What a user says about where to serve."""

    host: str = "127.0.0.1"
    port: int = 8765
    allow_remote: bool = False
    names: tuple[str, ...] = ()
    """Others under which this machine is known."""
    certificate: Path | None = None
    key: Path | None = None
    public: str | None = None
    """The address of the proxy in front, as browsers see it: https://label.example.org"""
    proxy: str = "127.0.0.1,::1"
    """Where the proxy's requests come from; it is believed about whose they are."""

    @property
    def is_secure(self) -> bool:
        """Whether browsers come by https."""
        return self.scheme == "https"

    @property
    def scheme(self) -> str:
        if self.public:
            return urlsplit(self.public).scheme
        return "https" if self.certificate else "http"

    @property
    def is_remote(self) -> bool:
        """Whether other machines may come."""
        return not is_loopback(self.host) or bool(self.public)

    def check(self, has_people: bool, password: str | None) -> None:
        """Refuse, before anything is started, what cannot work or would let strangers in."""
        if password:
            check_password(password)
        check_address(self.host, self.allow_remote)
        if self.is_remote and not (password or has_people):
            raise ConfigError(
                "A page for other machines needs named people (agcd people DIR add NAME) or a password (AGCD_PASSWORD)."
            )
        self.check_certificate()
        for name in self.names:
            if not _NAME.fullmatch(_spelled(name)):
                raise ConfigError(f"--name {name!r} is not the name of a machine, such as label.example.org.")
        if self.public:
            _check_public(self.public, bool(self.certificate))

    def check_certificate(self) -> None:
        """Refuse files that are missing or do not belong together."""
        if not self.certificate and not self.key:
            return
        if not self.certificate or not self.key:
            raise ConfigError("For https give both --certificate and --key.")
        for path in (self.certificate, self.key):
            try:
                path.open("rb").close()
            except OSError as error:
                raise ConfigError(f"{path} cannot be read ({error.strerror}).") from None
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
                self.certificate, self.key, _no_password
            )
        except ssl.SSLError:
            raise ConfigError(
                f"{self.certificate} and {self.key} are not a certificate and its key, both in PEM format."
            ) from None

    def hosts(self) -> frozenset[str]:
        """The Host headers under which the server is meant."""
        if self.public:
            host, port = urlsplit(self.public).netloc.lower(), DEFAULT_PORTS[self.scheme]
            return frozenset({host, host.removesuffix(f":{port}")} | ({f"{host}:{port}"} if not _port(host) else set()))
        return allowed_hosts(self.host, self.port, [*self.names, *(f"{each}:{self.port}" for each in self._own())])

    def links(self) -> list[str]:
        """The addresses that a browser can open; those that others use come first."""
        if self.public:
            return [self.public.rstrip("/").lower()]
        named = [_spelled(name) for name in self.names]
        own = self._own() or [self._here() or _spelled(self.host)]
        return [self._link(name) for name in dict.fromkeys([*named, *own])]

    def local_link(self) -> str | None:
        """The one that works on this machine, None if the server does not listen there or a proxy is in front."""
        here = self._here()
        return self._link(here) if here and not self.public else None

    def _here(self) -> str | None:
        """What this machine calls the server, None if it listens elsewhere."""
        if is_loopback(self.host):
            return _spelled(self.host)
        return "127.0.0.1" if self.host in WILDCARDS else None

    def _link(self, name: str) -> str:
        is_plain = _port(name) or self.port == DEFAULT_PORTS[self.scheme]
        return f"{self.scheme}://{name}" if is_plain else f"{self.scheme}://{name}:{self.port}"

    def _own(self) -> list[str]:
        """What this machine calls itself, where the server listens at all of its addresses."""
        return own_names(has_ipv6=self.host == "::") if self.host in WILDCARDS else []


def own_names(has_ipv6: bool) -> list[str]:
    """The name and the addresses of this machine, found without asking the network."""
    name = socket.gethostname().lower()
    names = [name] if _NAME.fullmatch(name) and name != "localhost" else []
    families = [socket.AF_INET, socket.AF_INET6] if has_ipv6 else [socket.AF_INET]
    found = [_spelled(own) for family in families for there in _ELSEWHERE[family] if (own := _seen_from(family, there))]
    return list(dict.fromkeys([*names, *found]))


def _seen_from(family: socket.AddressFamily, there: str) -> str | None:
    """Our address on the way to another machine; to connect by UDP only looks the way up."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as way:
            way.connect((there, 9))
            own = str(way.getsockname()[0])
    except OSError:  # no way leads there
        return None
    return None if is_loopback(own) else own


def allowed_hosts(host: str, port: int, names: Iterable[str] = ()) -> frozenset[str]:
    """The Host headers under which a server at ``host`` is meant; ``names`` are others that the user gives."""
    bare = host.lower().strip("[]")
    own = LOOPBACK if bare in ("127.0.0.1", "localhost", "::1", *WILDCARDS) else frozenset({_spelled(bare)})
    allowed = {f"{spelling}:{port}" for spelling in own}
    if port in DEFAULT_PORTS.values():  # browsers leave these out
        allowed.update(own)
    for name in map(_spelled, names):
        allowed.update({name, name.removesuffix(f":{port}")} if port in DEFAULT_PORTS.values() else {name})
        if not _port(name):
            allowed.add(f"{name}:{port}")
    return frozenset(allowed)


def check_address(host: str, allow_remote: bool) -> None:
    """Refuse to serve other machines unless the user asked for it."""
    if not is_loopback(host) and not allow_remote:
        raise ConfigError(
            f"Other machines could open the page at {host or 'all addresses'}: serve at 127.0.0.1, "
            "or allow it with --allow-remote and people or a password."
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can speak to the address."""
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _check_public(public: str, has_certificate: bool) -> None:
    try:
        found = urlsplit(public)
        is_plain = found.path in ("", "/") and not (found.query or found.fragment or "@" in found.netloc)
        is_good = found.scheme in DEFAULT_PORTS and is_plain and bool(_NAME.fullmatch(found.netloc.lower()))
    except ValueError:
        is_good = False
    if not is_good:
        raise ConfigError(f"--behind-proxy {public!r} is not an address such as https://label.example.org.")
    if has_certificate:
        raise ConfigError("Behind a proxy the proxy has the certificate: leave --certificate and --key out.")


def _port(name: str) -> str | None:
    found = re.search(r":([0-9]+)$", name)
    return found[1] if found else None


def _spelled(name: str) -> str:
    """A name as a browser writes it: in small letters, an address of IPv6 in brackets."""
    try:
        return f"[{ipaddress.IPv6Address(name.strip('[]'))}]"
    except ValueError:
        return name.lower()


def _no_password() -> str:
    raise ConfigError("The key is protected by a password: give --key a file without one.")
