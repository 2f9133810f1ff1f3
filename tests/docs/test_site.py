"""The documentation site is built without a warning, leads nowhere wrong, and needs no other host."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import typer
from playwright.sync_api import sync_playwright

from agcd.cli import app
from site_pages import commands
from site_pages.check import Page, faults
from site_pages.links import as_on_site
from site_pages.lists import four_columns
from support.browsers import ARGUMENTS, PHONE, chromium
from support.doc_blocks import REPOSITORY

WORDS = ("docs", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    told = run("mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder))
    assert told == "", "a warning of mkdocs"
    return folder


def run(module: str, *words: str) -> str:
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", module, *words]
    done = subprocess.run(command, cwd=REPOSITORY, env=found, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    assert faults(site) == []
    assert len(list(site.rglob("*.html"))) > 30


def test_every_setting_says_what_it_does(site: Path) -> None:
    page = (site / "reference" / "settings.html").read_text(encoding="utf-8")
    assert {"train.base_epochs", "train.answers.page_weight", "query.budget"} <= Page(page).anchors
    assert "<td></td>" not in page, "a setting without a docstring in agcd.config"


def test_pages_of_reference_know_what_there_is(site: Path) -> None:
    def has(page: str, *words: str) -> bool:
        text = (site / "reference" / f"{page}.html").read_text(encoding="utf-8")
        return all(word in text for word in words)

    assert has("commands", 'id="agcd-bench-run"', "<code>--seeds</code>", "<code>--set</code>")
    assert has("rest", "<code>POST /api/v1/answers</code>", 'id="answers"', "Too many wrong passwords")
    assert has("names", "<code>adaptive_novel</code>", "<code>label_spreading</code>", "agcd.encoders")
    assert has("python", 'id="agcd.ActiveDiscovery.teach"', 'id="agcd.types.PoolView.slot_weights"')


def test_options_are_spelled_as_the_command_line_reads_them() -> None:
    group: Any = typer.main.get_command(app)
    for command in commands.commands(app, "agcd"):
        found = group
        for name in command.name.split()[1:]:
            found = found.commands[name]
        read = {
            option for one in found.params if one.opts[0].startswith("-") for option in (*one.opts, *one.secondary_opts)
        }
        told = {code for line in commands.parameters(command.function) for code in re.findall("`(-[^`]+)`", line[0])}
        assert told == read - {"--install-completion", "--show-completion"}, command.name


def test_no_word_is_mistyped() -> None:
    assert run("codespell_lib", *WORDS) == ""


def test_a_browser_asks_no_other_host_and_nothing_is_wider_than_a_phone(site: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    place, asked, problems = f"http://127.0.0.1:{server.server_port}/", [], []
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        page = browser.new_context(**PHONE).new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: problems.append(str(error)))
        for name in ("index.html", "reference/settings.html", "results/index.html"):
            page.goto(place + name, wait_until="networkidle")
            assert page.evaluate("document.documentElement.scrollWidth") == 390, name
        page.locator("label.md-header__button[for=__search]").click()
        page.locator(".md-search__input").press_sequentially("round_epochs")
        page.locator(".md-search-result__link[href*='reference/settings.html']").first.wait_for()
        browser.close()
    server.shutdown()
    server.server_close()
    assert problems == []
    assert [url for url in asked if not url.startswith((place, "data:", "blob:"))] == []


class Quiet(SimpleHTTPRequestHandler):
    """Says nothing of requests."""

    def log_message(self, format: str, *args: object) -> None:
        pass


FAULTY = {
    "another host's script": ('<script src="https://example.org/a.js"></script>', "loads https://example.org/a.js"),
    "another host's font": ("<style>@import url(//fonts.example.org/x.css)</style>", "loads //fonts.example.org/x.css"),
    "a page that is not there": ('<a href="b.html">b</a>', "there is no b.html"),
    "a place that is not there": ('<p id="there"></p><a href="#here">b</a>', "a.html has no #here"),
    "a picture that is not there": ('<img src="c.png">', "there is no c.png"),
}


@pytest.mark.parametrize("name", FAULTY)
def test_what_is_wrong_with_a_page_is_found(name: str, tmp_path: Path) -> None:
    text, told = FAULTY[name]
    (tmp_path / "a.html").write_text(text)
    (found,) = faults(tmp_path)
    assert found.endswith(told)


def test_links_elsewhere_are_no_loads(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a id="x" href="https://example.org">e</a><a href="a.html#x">x</a>')
    assert faults(tmp_path) == []


def test_lists_are_written_as_both_readers_of_markdown_want_them() -> None:
    assert four_columns("Some:\n- a\n  b\n\n  c\n- d") == "Some:\n\n- a\n    b\n\n    c\n\n- d"
    assert four_columns("1. a\n   - b\n     c\n") == "1. a\n    - b\n        c\n"
    assert four_columns("no list\n    code\n") == "no list\n    code\n"


LINKS = {
    "[add](../CONTRIBUTING.md#add-a-strategy)": "[add](contributing.md#add-a-strategy)",
    "[log](results/../LOG.md)": "[log](LOG.md)",
    "[`tests/conftest.py`](../tests/conftest.py)": "`tests/conftest.py`",
    "[the tests](../tests/conftest.py)": "the tests (`tests/conftest.py`)",
    "`[code](../nowhere.md)`": "`[code](../nowhere.md)`",
    "```text\n[code](../nowhere.md)\n```": "```text\n[code](../nowhere.md)\n```",
    "[there](https://example.org) [here](#here)": "[there](https://example.org) [here](#here)",
}


@pytest.mark.parametrize("written", LINKS)
def test_links_into_the_repository_become_pages_or_names(written: str) -> None:
    assert as_on_site(written, "docs/method.md", REPOSITORY) == (LINKS[written], [])


def test_links_of_pages_beside_docs_and_links_that_lead_nowhere() -> None:
    text, unknown = as_on_site("[a](docs/api.md#errors) [b](docs/nowhere.md)", "CONTRIBUTING.md", REPOSITORY)
    assert text == "[a](api.md#errors) [b](docs/nowhere.md)"
    assert unknown == ["docs/nowhere.md"]
