"""``agcd serve``: the page on this machine, with a link that holds the token."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn

from agcd.app.web.app import make_app
from agcd.app.web.auth import GateSettings, allowed_hosts, check_address
from agcd.app.web.connections import Limits, Listener, limited, raise_descriptor_limit
from agcd.app.web.server_state import ServerState
from agcd.app.web.training import SelfTraining
from agcd.errors import ConfigError


def _print_at_once(line: str) -> None:
    """Not held back in a buffer: scripts wait for the link."""
    print(line, flush=True)


def serve(
    folder: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    allow_remote: bool = False,
    names: Sequence[str] = (),
    password: str | None = None,
    trains_itself: bool = True,
    say: Callable[[str], None] = _print_at_once,
) -> None:
    """Serve one project until Ctrl-C. Without a password the link carries a token that is new at every start.

    ``names`` are those under which other machines know this one, where ``host`` stands for all its addresses.
    ``trains_itself``: the pictures are looked at and training starts without being asked to.
    """
    check_address(host, allow_remote, password)
    server = ServerState(folder)
    listening = _listen(host, port)
    port = listening.getsockname()[1]
    secret = password or secrets.token_urlsafe(24)
    shown = host if ":" not in host else f"[{host}]"
    app = make_app(server, GateSettings(secret, allowed_hosts(host, port, names)))
    http = limited(Limits.for_descriptors(raise_descriptor_limit()))
    # No access log: the link with the token would be in it.
    config = uvicorn.Config(
        app, http=http, access_log=False, log_level="warning", server_header=False, timeout_keep_alive=30
    )
    link = f"http://{shown}:{port}/login" + ("" if password else f"?token={secret}")
    say(f"Label here: {link}")
    say("Keep this window open; Ctrl-C ends the server, and nothing is lost.")
    training = SelfTraining(server) if trains_itself else None
    if training:
        training.start()
    uvicorn.Server(config).run(sockets=[listening])
    if training:
        training.stop()


def _listen(host: str, port: int) -> socket.socket:
    """A socket of our own, so that port 0 can choose a free one and a taken one is a sentence."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = Listener(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()  # from now on a browser that follows the link is kept waiting, not refused
    except OSError as error:
        listening.close()
        raise ConfigError(f"Port {port} of {host} cannot be used ({error.strerror}): choose one with --port.") from None
    return listening
