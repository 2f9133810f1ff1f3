"""``agcd serve`` in the background of a script or a notebook, for as long as it is wanted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import weakref
import webbrowser
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from agcd.client.client import Client, print_progress
from agcd.errors import AgcdError

_STOP_SECONDS = 30.0
"""For the server to end what it is doing; nothing is lost if it takes longer."""


class ServeError(AgcdError):
    """``agcd serve`` did not start; the message is what it said."""


class LocalPage(Client):
    """A page whose server runs in the background of this process and ends with ``close()``, or with this process."""

    def __init__(self, server: subprocess.Popen[str], link: str, who: str) -> None:
        password = os.environ.get("AGCD_PASSWORD") or None  # agcd serve takes it in place of the token
        super().__init__(link, token=password, who=who)
        self.link = link
        self._end = weakref.finalize(self, _stop, server)

    def close(self) -> None:
        """End the server; everything that was answered is stored."""
        super().close()
        self._end()

    def open_in_browser(self) -> bool:
        """Show the page in a browser on this machine; whether there is one with a window."""
        has_windows = sys.platform in ("win32", "darwin") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
        return has_windows and webbrowser.open(self.link)


def serve(
    project: str | Path,
    *,
    port: int = 0,
    who: str = "python",
    by_hand: bool = False,
    watch: bool = False,
    open_browser: bool = False,
    say: Callable[[str], None] = print,
) -> LocalPage:
    """Start ``agcd serve`` on this machine and say its link; the page is a client of it, and a context manager.

    ``port``: 0 takes a free one. ``by_hand`` and ``watch`` are those of the command.
    """
    command = [sys.executable, "-m", "agcd.cli", "serve", str(project), "--port", str(port)]
    command += ["--by-hand"] * by_hand + ["--watch"] * watch
    with TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        server = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, text=True, encoding="utf-8"
        )
        try:
            page = LocalPage(server, _link(server, errors), who)
        except BaseException:
            _stop(server)
            raise
    say(f"Label here: {page.link}")
    if open_browser:
        page.open_in_browser()
    return page


def label_in_browser(
    project: str | Path,
    n: int | None = None,
    *,
    timeout: float | None = None,
    open_browser: bool = True,
    **options: Any,
) -> list[dict[str, Any]]:
    """Serve a project until ``n`` answers came, or nothing is left to ask; the labels of the project, as ``labels()``.

    The link is printed, and opened where there is a browser with a window. ``options`` are those of ``serve``.
    """
    with serve(project, open_browser=open_browser, **options) as page:
        try:
            page.wait_for_answers(n, timeout, progress=print_progress)
        finally:
            print(file=sys.stderr)
        return page.labels()


def _link(server: subprocess.Popen[str], errors: IO[str]) -> str:
    assert server.stdout is not None
    line = server.stdout.readline()
    if found := re.match(r"Label here: (\S+)", line):
        return found[1]
    server.wait()
    errors.seek(0)
    said = (errors.read() or line).strip().splitlines()
    raise ServeError(said[-1].removeprefix("error: ") if said else f"agcd serve ended with code {server.returncode}.")


def _stop(server: subprocess.Popen[str]) -> None:
    server.terminate()
    try:
        server.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    if server.stdout:
        server.stdout.close()
