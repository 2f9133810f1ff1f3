"""A real server and a real browser for the tests of the page; whatever the browser complains about is a failure."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Locator, Page, expect

from agcd.app.store.events import new_uid

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SECONDS = 20
"""Patience with the page; training in a child process has its own."""
TRAINING_MS = 90_000
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
"""What a context needs to be one."""
expect.set_options(timeout=SECONDS * 1000)


def chromium() -> str:
    """Where chromium is; without one the tests are skipped, but in CI that is a failure."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    if os.environ.get("CI"):
        pytest.fail("no chromium here: in CI the browser tests must run")
    pytest.skip("browser tests are skipped: no chromium here")


class Server:
    """``agcd serve`` in a process of its own, and a client with its token."""

    def __init__(self, project: Path, port: int = 0, *, by_hand: bool = True) -> None:
        command = [sys.executable, "-u", "-m", "agcd.cli", "serve", str(project), "--port", str(port)]
        command += ["--by-hand"] * by_hand  # otherwise training would start in the middle of a test
        self.project = project
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.link = self.process.stdout.readline().rpartition(" ")[2].strip()
        self.url, _, token = self.link.partition("/login?token=")
        self.http = httpx2.Client(base_url=self.url, headers={"Authorization": f"Bearer {token}"}, timeout=SECONDS)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def get(self, path: str, **params: Any) -> Any:
        return self._checked(self.http.get(f"/api/v1/{path}", params=params))

    def do(self, path: str, **values: Any) -> Any:
        """A change by somebody who is not at the browser."""
        body = {"uid": new_uid(), "who": "script", **values}
        return self._checked(self.http.post(f"/api/v1/{path}", json=body))

    def _checked(self, response: httpx2.Response) -> Any:
        assert response.status_code == 200, response.text
        return response.json()

    def labels(self) -> dict[int, str]:
        """Every row that people labelled, with the name of its class."""
        return {thumb["row"]: thumb["name"] for thumb in self.pictures(show="labelled")}

    def pictures(self, **choices: Any) -> list[dict[str, Any]]:
        """All pictures of a grid."""
        first = self.get("grid", **choices)
        pages = [self.get("grid", page=page, **choices) for page in range(1, first["n_pages"])]
        return [thumb for grid in (first, *pages) for thumb in grid["thumbs"]]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self._wait()

    def stop(self) -> None:
        """End it and the work that it started."""
        if self.process.poll() is None:
            self.http.delete("/api/v1/job")
            self.process.terminate()
        self._wait()

    def _wait(self) -> None:
        self.process.wait(SECONDS)
        self.http.close()
        assert self.process.stdout is not None
        self.process.stdout.close()


class Site:
    """One project served, browsers that visit it, and what they complained about."""

    def __init__(self, browser: Browser, project: Path, *, by_hand: bool = True) -> None:
        self.browser, self.server = browser, Server(project, by_hand=by_hand)
        self.problems: list[str] = []
        self.allowed: list[str] = []
        self.page = self.visitor()

    def visitor(self, who: str = "me", **options: Any) -> Page:
        """A page in a browser of its own, logged in by the link."""
        page = self._page(who, options)
        page.goto(self.server.link)
        page.wait_for_url(re.compile("/(label|start)$"))
        return page

    def person(self, name: str, password: str, **options: Any) -> Page:
        """A page in a browser of its own, logged in by name; the browser remembers that somebody else has answered."""
        page = self._page("me", options)
        page.goto(f"{self.server.url}/login")
        page.get_by_label("Name").fill(name)
        page.get_by_label("Password").fill(password)
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("/(label|start)$"))
        return page

    def _page(self, who: str, options: dict[str, Any]) -> Page:
        options = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce"} | options
        context = self.browser.new_context(**options)
        context.set_default_timeout(SECONDS * 1000)
        context.add_init_script(f"localStorage.setItem('agcd.who', JSON.stringify('{who}'))")
        page = context.new_page()
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))
        page.on("dialog", self._dialog)
        return page

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def _dialog(self, dialog: Dialog) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def allow(self, pattern: str) -> None:
        """A complaint that the test provokes."""
        self.allowed.append(pattern)

    def close(self) -> None:
        for context in self.browser.contexts:
            context.close()
        self.server.stop()

    def check(self) -> None:
        """Nothing was complained about but what the test allows."""
        rest = [problem for problem in self.problems if not any(re.search(each, problem) for each in self.allowed)]
        assert rest == []


@contextmanager
def visited(browser: Browser, project: Path, *, by_hand: bool = True) -> Iterator[Site]:
    """A site that must leave the browser without complaint."""
    site = Site(browser, project, by_hand=by_hand)
    try:
        yield site
    finally:
        site.close()
    site.check()


def train_long(project: Path, n_epochs: int = 100) -> None:
    """Let training last for some seconds, so that it can be watched."""
    settings = project / "agcd.toml"
    settings.write_text(settings.read_text().replace("_epochs = 2", f"_epochs = {n_epochs}"))


# ------------------------------------------------------------------------------------------------- on the page


def asked(page: Page, timeout: float = SECONDS * 1000) -> int:
    """The row of the question, once it can be answered."""
    shown = page.locator(".card:not(.is-waiting) .viewer img")
    expect(shown).to_have_attribute("alt", re.compile(r"^Picture \d+: which class is it"), timeout=timeout)
    found = re.search(r"Picture (\d+)", shown.get_attribute("alt") or "")
    assert found
    return int(found[1])


# The response arrives before the page has read it, and until then the page asks before it may be left.
NOTHING_BEING_SAVED = """async () => {
    const { onSaving } = await import("/static/lib/net.js");
    await new Promise((resolve) => onSaving(({ word }) => word !== "saving" && resolve()));
}"""


def answer(page: Page, keys: Callable[[Page], None] | str) -> int:
    """Answer the question by keys, and wait until the page knows that it is stored; the row that was asked about."""
    row = asked(page)
    with page.expect_response("**/api/v1/answers"):
        page.keyboard.press(keys) if isinstance(keys, str) else keys(page)
    page.evaluate(NOTHING_BEING_SAVED)
    return row


def tab_to(page: Page, target: Locator, most: int = 60) -> None:
    """Press Tab until the target has the focus."""
    for _ in range(most):
        if target.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {target}")


def toast(page: Page, text: str, timeout: float = SECONDS * 1000) -> None:
    """A message with this text is shown."""
    expect(page.locator("#toasts .toast", has_text=text)).to_be_visible(timeout=timeout)
