"""The notebooks run from their first cell to their last, and are stored without what they show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

WITH_A_PERSON = "label_from_a_notebook"
"""It waits for somebody who answers: tests/client/test_notebook.py plays them."""
NOTEBOOKS = sorted(
    path for path in (Path(__file__).parents[1] / "notebooks").glob("*.ipynb") if path.stem != WITH_A_PERSON
)
every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def outputs(cell: Any) -> str:
    """All that a cell shows, as text."""
    return json.dumps(cell.outputs)


@every_notebook
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.setenv("AGCD_CACHE", str(tmp_path / "cache"))
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert "novel_and_unsure" in outputs(code[3]), "the strategy of the notebook stands in its table"
    assert "image/png" in outputs(code[-1])
    assert (tmp_path / "compare_strategies" / "results.parquet").exists()


@every_notebook
def test_a_notebook_is_stored_without_outputs(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
