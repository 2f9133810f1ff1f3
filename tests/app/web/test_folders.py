"""Sorting one's pictures into folders from the page: over HTTP, and in a real browser."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from agcd.app.export import folders
from agcd.app.store.events import new_uid
from support.browsers import Site
from support.projects import N_IMAGES
from support.servers import Client, serving, trained_project


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with serving(trained_project(tmp_path)) as client:
        yield client


def ended(client: Client) -> Any:
    """The sort, once it has ended."""
    for thread in threading.enumerate():
        if thread.name == "sort":
            thread.join(30)
    return client.get("/api/v1/folders")


def n_files(out: Path) -> int:
    return sum(path.suffix == ".png" for path in out.rglob("*"))


def test_pictures_are_sorted_below_the_project_and_a_repeated_request_counts_once(client: Client) -> None:
    out = client.project.resolve() / "sorted"
    idle = client.get("/api/v1/folders")
    assert (idle["state"], idle["where"], idle["is_there"]) == ("idle", str(out), False)
    body = {"uid": new_uid(), "how": "link"}
    assert client.post("/api/v1/folders", body)["state"] in ("running", "done")
    told = ended(client)
    assert (told["state"], told["done"], told["total"], told["is_there"]) == ("done", N_IMAGES, N_IMAGES, True)
    assert "pictures in" in told["sentence"]
    assert n_files(out) == N_IMAGES
    shutil.rmtree(out)
    client.post("/api/v1/folders", body)
    assert (ended(client)["state"], out.exists()) == ("done", False)
    client.post("/api/v1/folders", {"uid": new_uid(), "how": "copy", "only_checked": True})
    assert ended(client)["state"] == "done"
    assert n_files(out) == 9
    client.do("/api/v1/review/accept", n=client.get("/api/v1/review")["left"]["n_left"])
    client.post("/api/v1/folders", {"uid": new_uid(), "how": "copy", "only_checked": True})
    assert (ended(client)["state"], n_files(out)) == ("done", 9)  # accepted without a look is not checked


def test_two_sorts_at_once_are_refused(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    go, copy = threading.Event(), shutil.copy2

    def waiting(source: Any, target: Any) -> None:
        go.wait(30)
        copy(source, target)

    monkeypatch.setattr(folders.shutil, "copy2", waiting)  # type: ignore[attr-defined]
    client.post("/api/v1/folders", {"uid": new_uid()})
    refused = client.post("/api/v1/folders", {"uid": new_uid()}, 409)
    assert refused["error"] == "Your pictures are being sorted already: wait until that is done."
    go.set()
    assert ended(client)["state"] == "done"


def test_what_cannot_be_done_is_one_sentence(client: Client) -> None:
    (client.project / "sorted").mkdir()
    (client.project / "sorted" / "mine.txt").write_text("mine")
    client.post("/api/v1/folders", {"uid": new_uid()})
    told = ended(client)
    assert told["state"] == "failed"
    assert "holds files that were not sorted into it" in told["error"]
    assert client.post("/api/v1/folders", {"uid": new_uid(), "how": "move"}, 422)["error"]


def test_a_person_sorts_and_sees_where_the_folder_is(site: Site) -> None:
    page, out = site.page, site.server.project.resolve() / "sorted"
    page.goto(f"{site.server.url}/rounds")
    section = page.locator(".folder-sorting")
    expect(section.get_by_role("progressbar")).to_be_hidden()
    section.get_by_role("radio", name=re.compile("^Hard links")).check()
    section.get_by_role("button", name="Sort my pictures").click()
    expect(section.get_by_role("status")).to_contain_text("pictures in")
    expect(section.locator("code")).to_have_text(str(out))
    expect(section.get_by_role("button")).to_be_enabled()
    assert n_files(out) == N_IMAGES
    section.get_by_role("checkbox").check()
    section.get_by_role("radio", name=re.compile("^Copies")).check()
    section.get_by_role("button", name="Sort my pictures").click()
    expect(section.get_by_role("status")).to_contain_text("9 pictures in 3 classes.")
    page.reload()
    expect(section.get_by_role("status")).to_contain_text("9 pictures in 3 classes.")
    expect(section.locator("code")).to_have_text(str(out))
