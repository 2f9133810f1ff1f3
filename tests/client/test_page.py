"""The blocks of docs/client.md, in their order, with a script in the place of the person."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from agcd.client import Client, LocalPage, serve
from agcd.client import local as local_page
from support.doc_blocks import blocks_of
from support.projects import truth
from support.servers import trained_project

N_ANSWERS = 20
"""What the page waits for."""


def play(link: str) -> None:
    """Answer as the page asks; it may be closed before the last answer is heard."""
    with Client(link, who="ann") as person:
        person.wait_until_live()
        for _ in range(N_ANSWERS):
            card = person.question()
            assert card.row is not None
            person.answer(card.row, truth(card.path))


def test_what_the_page_shows_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained_project(tmp_path).rename(tmp_path / "fruit")
    monkeypatch.chdir(tmp_path)
    by_notebook, in_cells, at_a_page, by_script = [
        b.text for b in blocks_of("docs/client.md") if b.language == "python"
    ]
    people: list[threading.Thread] = []
    started = LocalPage.__init__

    def with_a_person(page: LocalPage, *given: Any) -> None:
        started(page, *given)
        people.append(threading.Thread(target=play, args=(page.link,)))
        people[-1].start()

    names: dict[str, Any] = {}
    with monkeypatch.context() as patched:
        patched.setattr(local_page.LocalPage, "__init__", with_a_person)
        exec(by_notebook, names)
        assert sum(line["who"] == "ann" for line in names["labels"]) == N_ANSWERS
        exec(in_cells, names)
    for person in people:
        person.join()
    with serve("fruit", by_hand=True, say=lambda _: None) as page:
        names["truth"] = {item.row: truth(item.path) for item in page.items("all")}
        printed = page.link
        exec(at_a_page.replace("http://127.0.0.1:8765/login?token=…", printed), names)
        assert page.state().n_answers == 2 * N_ANSWERS + 1
    exec(by_script, names)
    assert (tmp_path / "model.onnx").exists() or (tmp_path / "model.safetensors").exists()
