"""``agcd serve``: the page on this machine, with a link that holds the token, or for others who log in."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import uvicorn

from agcd.app.web.addresses import Address
from agcd.app.web.app import make_app
from agcd.app.web.auth import GateSettings
from agcd.app.web.connections import Limits, Listener, limited, raise_descriptor_limit
from agcd.app.web.people import People
from agcd.app.web.repeating import Checkpointing, Repeating
from agcd.app.web.server_state import ServerState
from agcd.app.web.training import SelfTraining
from agcd.app.web.watching import FolderWatch
from agcd.errors import ConfigError


def _print_at_once(line: str) -> None:
    """Not held back in a buffer: scripts wait for the link."""
    print(line, flush=True)


def serve(
    folder: Path,
    address: Address,
    *,
    password: str | None = None,
    trains_itself: bool = True,
    watches: bool = False,
    say: Callable[[str], None] = _print_at_once,
) -> None:
    """Serve one project until Ctrl-C. Without a password the link carries a token that is new at every start.

    ``trains_itself``: the pictures are looked at and training starts without being asked to. ``watches``: pictures that
    appear in the project's folder of images are added.
    """
    people, token = People(folder), secrets.token_urlsafe(24)
    address.check(bool(people.now()), password)
    server = ServerState(folder)
    if watches and server.project.has_given_embeddings:
        server.close()
        raise ConfigError("Embeddings came with these items, so new ones cannot be watched for: add them by agcd add.")
    listening = _listen(address.host, address.port)
    address = replace(address, port=listening.getsockname()[1])
    gate = GateSettings(token, address.hosts(), password, people, address.is_secure)
    for line in link_lines(address, None if password else token, bool(people.now())):
        say(line)
    say("Keep this window open; Ctrl-C ends the server, and nothing is lost.")
    by_itself: list[Repeating] = [Checkpointing(server), *([SelfTraining(server)] if trains_itself else [])]
    by_itself += [FolderWatch(server)] if watches else []
    for work in by_itself:
        work.start()
    uvicorn.Server(_config(make_app(server, gate), address)).run(sockets=[listening])
    for work in by_itself:
        work.stop()


def link_lines(address: Address, token: str | None, has_people: bool) -> list[str]:
    """Where to label. The token is only told for this machine: other links are passed on and stay in logs."""
    local, forms = address.local_link(), [f"{link}/login" for link in address.links()]
    with_token = f"{local}/login?token={token}" if local and token else None
    if not address.is_remote and with_token:
        return [f"Label here: {with_token}", *(f"Named people log in here: {form}" for form in forms if has_people)]
    lines = [f"Label here: {form}" for form in forms]
    if with_token:
        lines.append(f"On this machine, without a password: {with_token}")
    if address.is_remote and not address.is_secure:
        lines.append("Passwords and pictures travel unencrypted: docs/security.md says how to serve by https.")
    return lines


def _config(app: object, address: Address) -> uvicorn.Config:
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=limited(Limits.for_descriptors(raise_descriptor_limit())),
        access_log=False,  # the link with the token would be in it
        log_level="warning",
        server_header=False,
        timeout_keep_alive=30,
        ssl_certfile=address.certificate,
        ssl_keyfile=address.key,
        proxy_headers=bool(address.public),  # else every local program could claim to come from elsewhere
        forwarded_allow_ips=address.proxy,
    )


def _listen(host: str, port: int) -> socket.socket:
    """A socket of our own, so that port 0 can choose a free one and a taken one is a sentence."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = Listener(family)
    # Windows means by the common option that several servers may share a port, and by its own what others mean by it.
    listening.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR), 1)
    if host == "::":  # all addresses, also where the system would leave out those of IPv4
        listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    try:
        listening.bind((host, port))
        listening.listen()  # from now on a browser that follows the link is kept waiting, not refused
    except OSError as error:
        listening.close()
        raise ConfigError(f"Port {port} of {host} cannot be used ({error.strerror}): choose one with --port.") from None
    return listening
