"""A browser, and sites in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from support.browsers import ARGUMENTS, Site, chromium, visited
from support.projects import make_project
from support.servers import trained_project


# Playwright runs an event loop in this thread for as long as it lives, and other tests start loops of their own:
# therefore it ends with the module.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    executable = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def site(browser: Browser, tmp_path: Path) -> Iterator[Site]:
    """A project with one round trained and six questions open."""
    with visited(browser, trained_project(tmp_path)) as site:
        yield site


@pytest.fixture
def new_site(browser: Browser, tmp_path: Path) -> Iterator[Site]:
    """A project that nobody has trained."""
    make_project(tmp_path, n_classes=None).close()
    with visited(browser, tmp_path / "project") as site:
        yield site
