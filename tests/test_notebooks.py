"""The notebooks run from their first cell to their last, and are stored with what a run of them showed."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
WITH_A_PERSON = "label_from_a_notebook"
"""It waits for somebody who answers: tests/client/test_notebook.py plays them."""
NOTEBOOKS = sorted(path for path in (ROOT / "notebooks").glob("*.ipynb") if path.stem != WITH_A_PERSON)
SHOWN = {
    "add_a_strategy": ("dense_and_novel", "propagation_herding"),
    "compare_strategies": ("novel_and_unsure", "image/png"),
    "first_steps_photographs": ("image/jpeg", "new pictures are named right"),
    "first_steps_texts": ("topics with a name", "new texts are named right"),
}
"""What the cells of each show, whatever the figures are."""
LEFT = {
    "add_a_strategy": "add_a_strategy/results.parquet",
    "compare_strategies": "compare_strategies/results.parquet",
    "first_steps_photographs": "fruit.safetensors",
    "first_steps_texts": "named.csv",
}
"""A file that each leaves behind."""
MOST_BYTES = 250_000
every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def shown_by(cells: list[Any]) -> list[Any]:
    """The outputs of all cells."""
    return [shown for cell in cells for shown in cell.get("outputs", [])]


def said(shown: Any) -> str:
    """The text of an output; pictures are left out."""
    lines = [shown.get("text", ""), *(shown.get("data", {}).get(kind, "") for kind in ("text/plain", "text/html"))]
    return "".join("".join(line) for line in lines)


@every_notebook
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("nbclient")
    spec = importlib.util.spec_from_file_location("make_notebooks", ROOT / "docs" / "make_notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    make_notebooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_notebooks)
    monkeypatch.setenv("AGCD_CACHE", str(tmp_path / "cache"))
    outputs = json.dumps(shown_by(make_notebooks.run(path, tmp_path).cells))
    assert all(words in outputs for words in SHOWN[path.stem])
    assert (tmp_path / LEFT[path.stem]).exists()


@every_notebook
def test_a_notebook_is_stored_as_it_ran(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = shown_by(cells)
    assert all(words in json.dumps(outputs) for words in SHOWN[path.stem])
    assert not any(shown["output_type"] == "error" or shown.get("name") == "stderr" for shown in outputs)
    assert not re.search(r"/(tmp|root|home|Users)/", "".join(map(said, outputs))), "a path of whoever ran it"
    assert path.stat().st_size < MOST_BYTES
