"""The notebook from which a person labels, with a script in the place of the person."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import agcd

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "label_from_a_notebook.ipynb"
PERSON = """
import threading
from agcd.client import Client

def play():
    with Client(page.link, who="ann") as person:
        person.wait_until_live()
        for _ in range(12):
            card = person.question()
            person.answer(card.row, truth[card.path])

threading.Thread(target=play).start()
"""


@pytest.mark.filterwarnings("ignore")
def test_a_person_labels_from_the_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.setenv("AGCD_CACHE", str(tmp_path / "cache"))
    source = str(Path(agcd.__file__).parents[1])  # of the kernel, and of the server that it starts
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]))
    monkeypatch.delenv("AGCD_PASSWORD", raising=False)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    after = next(i for i, cell in enumerate(notebook.cells) if cell.source.startswith("page = serve("))
    notebook.cells.insert(after + 1, nbformat.v4.new_code_cell(PERSON))
    client = nbclient.NotebookClient(
        notebook, timeout=500, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    shown = [json.dumps(cell.outputs) for cell in code]
    assert "Label here: http://127.0.0.1:" in shown[3]
    assert "0 to go" in shown[5]
    assert shown[6].count("ann") >= 12
    assert "of all names are right" in shown[7]
    assert "image/png" in shown[8]


def test_the_notebook_is_stored_without_outputs() -> None:
    """They would hold the link of somebody's page, with its token."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
